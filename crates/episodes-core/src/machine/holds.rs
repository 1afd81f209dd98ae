//! What holds an episode: a process, a stream, or nothing but what was heard last.
//!
//! A process or socket that carries the messages of a peer which is none of its own, a carrier, is in between: while it is
//! open its peer is shown as there, but only what is heard moves a deadline. Its end is seen, so it is a loss at once.
//!
//! A touch says nothing here, so that it costs no more than the note in its seat. Whoever wants to know how an episode
//! stands asks the seat whether there was evidence since somebody last looked: a deadline that was noted before it is
//! only when to look again.

use std::time::Duration;

use crate::clock::Moment;
use crate::ids::PeerId;

use super::calls::Call;
use super::entry::{Hold, Leaving, Loss, Record, Wait};
use super::{Machine, nanoseconds};

impl Machine {
    /// Notes that a stream of the peer has opened. Returns the call that takes a departure back, if one was told.
    pub(crate) fn hold(&mut self, peer: PeerId, now: Moment) -> Option<Call> {
        self.tick(now);
        *self.streams.entry(peer).or_insert(0) += 1;
        let slot = self.held_by(peer)?;
        let counted = self.counted();
        let gone = self.seats.back(peer);
        let entry = self.entries.of_mut(slot);
        entry.hold = Hold::Held;
        entry.leaving = None;
        if gone {
            (entry.untold, entry.tell_at) = (true, Some(counted));
        }
        let call = if gone && self.has_background_room() { self.tell_now(slot) } else { None };
        self.refile(slot);
        call
    }

    /// Notes that a stream of the peer has ended; the last one is a loss.
    pub(crate) fn release(&mut self, peer: PeerId, now: Moment) {
        self.tick(now);
        let Some(streams) = self.streams.get_mut(&peer) else { return };
        *streams -= 1;
        if *streams > 0 {
            return;
        }
        self.streams.remove(&peer);
        let Some(slot) = self.held_by(peer) else { return };
        let (since, carried) = (self.counted(), self.carriers.contains_key(&peer));
        let entry = self.entries.of_mut(slot);
        if !entry.by_process {
            entry.hold = if carried { Hold::Silent { since } } else { Hold::Lost(Loss { since, confirmed: false }) };
            self.seats.look(peer);
            self.refile(slot);
        }
    }

    /// Notes that a carrier is open on which the peer was heard.
    pub(crate) fn carry(&mut self, peer: PeerId) {
        *self.carriers.entry(peer).or_insert(0) += 1;
    }

    /// Notes that one of its carriers has ended; where nothing else is left the peer is gone. Returns the call that tells
    /// so.
    pub(crate) fn put_down(&mut self, peer: PeerId, now: Moment) -> Option<Call> {
        self.tick(now);
        let carriers = self.carriers.get_mut(&peer)?;
        *carriers -= 1;
        if *carriers > 0 {
            return None;
        }
        self.carriers.remove(&peer);
        let slot = self.held_by(peer).filter(|_| !self.streams.contains_key(&peer))?;
        if self.entries.of(slot).by_process {
            return None;
        }
        self.look(slot);
        let since = self.counted();
        let entry = self.entries.of_mut(slot);
        entry.hold = Hold::Lost(Loss { since, confirmed: true });
        (entry.leaving, entry.tell_at) = (Some(Leaving { peer, at: since }), Some(since));
        self.seats.look(peer);
        self.refile(slot);
        self.tell_departed(slot)
    }

    /// Moves every deadline by `gap`. What was heard before the gap is looked at first, and only the one that stays
    /// silent is excused. Of what waits for its client the driver is told anew: that it waits so much longer, and to
    /// learn whether it was another process that its client came to meanwhile.
    pub(crate) fn excuse(&mut self, gap: Duration) {
        let slots: Vec<u32> = self.entries.slots().collect();
        for slot in &slots {
            self.look(*slot);
            self.refile(*slot);
        }
        self.excused = self.excused.saturating_add(nanoseconds(gap));
        for slot in slots {
            self.tell_again(slot);
            self.refile(slot);
        }
    }

    /// Notes that the driver is to be told once more of an episode, if it waits for its client.
    fn tell_again(&mut self, slot: u32) {
        let counted = self.counted();
        let entry = self.entries.of_mut(slot);
        if entry.record != Record::Recorded || entry.ending.is_some() {
            return;
        }
        match (entry.holder, entry.hold, entry.wait, entry.last_holder) {
            (Some(peer), Hold::Lost(loss), ..) if loss.confirmed && entry.gone => {
                entry.leaving = Some(Leaving { peer, at: loss.since });
            }
            (None, _, Some(Wait { lost_at: Some(at), .. }), Some(peer)) => entry.leaving = Some(Leaving { peer, at }),
            // Nobody here has left it: it is only asked for.
            (None, _, Some(_), None) => entry.untold = true,
            _ => return,
        }
        entry.tell_at = Some(counted);
    }

    /// How a seated peer's hold stands, by the evidence in its seat.
    fn standing(&self, slot: u32) -> Hold {
        let entry = self.entries.of(slot);
        let Some(holder) = entry.holder.filter(|holder| self.seats.active(*holder)) else { return entry.hold };
        let heard = self.seats.evidence(holder).map_or(i64::MIN, |at| at.saturating_sub(self.excused));
        match entry.hold {
            Hold::Held => Hold::Held,
            Hold::Silent { since } | Hold::Lost(Loss { since, .. }) => Hold::Silent { since: since.max(heard) },
        }
    }

    /// Takes in what the seat says; evidence after a loss voids it.
    pub(super) fn look(&mut self, slot: u32) {
        let hold = self.standing(slot);
        let entry = self.entries.of_mut(slot);
        let Some(holder) = entry.holder else { return };
        if matches!((entry.hold, hold), (Hold::Lost(_), Hold::Silent { .. })) {
            entry.leaving = None;
        }
        entry.hold = hold;
        if hold != Hold::Held {
            self.seats.look(holder);
        }
    }

    /// Who holds the episode, as it is shown: nobody, where nothing holds it and nothing was heard for a while.
    pub(super) fn shown_holder(&self, slot: u32) -> Option<PeerId> {
        let holder = self.entries.of(slot).holder?;
        let until = match self.standing(slot) {
            Hold::Held => return Some(holder),
            Hold::Silent { .. } if self.carriers.contains_key(&holder) => return Some(holder),
            Hold::Silent { since } => since.saturating_add(self.grace()),
            Hold::Lost(loss) if loss.confirmed => return None,
            Hold::Lost(loss) => loss.since.saturating_add(self.patience()),
        };
        (self.counted() < until).then_some(holder)
    }

    /// Whether the episode's time is over at `counted`.
    pub(super) fn overdue(&self, slot: u32, counted: i64) -> bool {
        self.waits(slot).is_some_and(|wait| wait.expires_at <= counted)
    }

    /// How long the episode waits, unless it is held.
    fn waits(&self, slot: u32) -> Option<Wait> {
        let entry = self.entries.of(slot);
        if entry.holder.is_none() {
            return entry.wait;
        }
        match self.standing(slot) {
            Hold::Held => None,
            Hold::Silent { since } => {
                let limit = self.idle();
                Some(Wait { expires_at: since.saturating_add(limit), limit, lost_at: None })
            }
            Hold::Lost(loss) => Some(self.wait_from(loss.since)),
        }
    }

    fn wait_from(&self, since: i64) -> Wait {
        Wait { expires_at: since.saturating_add(self.grace()), limit: self.grace(), lost_at: Some(since) }
    }

    /// Ends the patience with a loss that is past it and unanswered: the departure is to be told.
    pub(super) fn confirm_loss(&mut self, slot: u32, until: i64) {
        let patience = self.patience();
        let entry = self.entries.of_mut(slot);
        if let (Some(peer), Hold::Lost(loss)) = (entry.holder, &mut entry.hold)
            && !loss.confirmed
            && loss.since.saturating_add(patience) <= until
        {
            loss.confirmed = true;
            entry.leaving = Some(Leaving { peer, at: loss.since });
            entry.tell_at = Some(until);
        }
    }

    /// When something is due for the episode, as far as was looked; nothing is while a call runs.
    pub(super) fn deadline(&self, slot: u32) -> Option<i64> {
        let entry = self.entries.of(slot);
        if entry.call.is_some() {
            return None;
        }
        if entry.ending.is_some() {
            return entry.retry_at;
        }
        let over = match (entry.holder, entry.hold) {
            (None, _) => entry.wait.map(|wait| wait.expires_at),
            (Some(_), Hold::Held) => None,
            (Some(_), Hold::Silent { since }) => Some(since.saturating_add(self.idle())),
            (Some(_), Hold::Lost(loss)) => {
                let length = if loss.confirmed { self.grace() } else { self.patience() };
                Some(loss.since.saturating_add(length))
            }
        };
        [over, entry.retry_at, entry.tell_at].into_iter().flatten().min()
    }

    /// What holds the episode that the peer is about to sit down at.
    pub(super) fn hold_of(&self, peer: PeerId, by_process: bool) -> Hold {
        if by_process || self.streams.contains_key(&peer) { Hold::Held } else { Hold::Silent { since: self.counted() } }
    }

    /// Detaches what the peer holds: the grace runs from now, and the driver is to be told.
    pub(super) fn depart(&mut self, slot: u32, peer: PeerId) {
        let counted = self.counted();
        let wait = self.wait_from(counted);
        let left = self.seats.vacate(peer).expect("a holder has a seat");
        let entry = self.entries.of_mut(slot);
        entry.holder = None;
        entry.takeover = None;
        entry.stood_up(left.evidence);
        entry.wait = Some(wait);
        entry.untold |= left.untold;
        entry.leaving = Some(Leaving { peer, at: counted });
        entry.gone = false;
        entry.tell_at = Some(counted);
        self.refile(slot);
    }

    /// Frees the seat at an episode that ends: its peer is told with its next touch, unless it is who asks. What the
    /// seat said, stands in the entry.
    pub(super) fn unseat(&mut self, slot: u32, asks: Option<PeerId>) {
        let wait = self.waits(slot);
        let Some(holder) = self.entries.of(slot).holder else { return };
        let left = if asks == Some(holder) { self.seats.vacate(holder) } else { self.seats.lose(holder) };
        let entry = self.entries.of_mut(slot);
        entry.holder = None;
        entry.stood_up(left.expect("a holder has a seat").evidence);
        entry.wait = wait;
    }

    fn grace(&self) -> i64 {
        nanoseconds(self.limits.grace)
    }

    /// How long silence may last. It is not judged more strictly than a loss.
    fn idle(&self) -> i64 {
        nanoseconds(self.limits.handle_idle.max(self.limits.grace))
    }

    fn patience(&self) -> i64 {
        nanoseconds(self.limits.stream_patience.min(self.limits.grace))
    }
}
