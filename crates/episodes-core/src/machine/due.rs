//! What falls due: expiries, evidence to tell, calls to try again. Costs what is due, never what exists.

use std::time::Duration;

use crate::clock::Moment;
use crate::driver::{CloseReason, Left, Seen};

use super::calls::{Call, Telling, Work};
use super::ends::Asked;
use super::entry::Record;
use super::{Machine, duration, nanoseconds};

/// What a sweep does next.
#[derive(Debug)]
pub(crate) enum Due {
    /// This call is due.
    Call(Call),
    /// Something is due, and too many calls run to begin it.
    NoRoom,
    /// Nothing more is due.
    Nothing,
}

impl Machine {
    /// Begins the next call that is due at `until`, which may be a little before now.
    pub(crate) fn due(&mut self, until: Moment, now: Moment) -> Due {
        self.tick(now);
        let until = nanoseconds(until.awake).saturating_sub(self.excused);
        if self.has_returned() {
            if !self.has_background_room() {
                return Due::NoRoom;
            }
            if let Some(call) = self.tell_returned() {
                return Due::Call(call);
            }
        }
        loop {
            let Some(at) = self.next_counted().filter(|at| *at <= until) else { return Due::Nothing };
            if !self.has_background_room() {
                return Due::NoRoom;
            }
            #[cfg(test)]
            {
                self.examined += 1;
            }
            let call = match self.deadlines.first() {
                Some(&(first, slot)) if first == at => self.next_of(slot, until),
                Some(_) | None => self.next_evidence(),
            };
            if let Some(call) = call {
                return Due::Call(call);
            }
        }
    }

    /// When something is due, in time awake. Where nothing can begin because too many calls hang, that is when to
    /// look again.
    pub(crate) fn next_due(&self) -> Option<Duration> {
        let at = self.next_counted()?.saturating_add(self.excused);
        let at = if self.has_background_room() {
            at
        } else {
            at.max(self.latest.saturating_add(nanoseconds(self.limits.retry_every)))
        };
        Some(duration(at))
    }

    /// The earliest deadline, in counted time.
    fn next_counted(&self) -> Option<i64> {
        let first = self.deadlines.first().map(|(at, _)| *at);
        let evidence = self.seats.oldest_untold().map(|(_, since)| self.tell_after(since));
        let returned = self.has_returned().then(|| self.counted());
        first.into_iter().chain(evidence).chain(returned).min()
    }

    /// Puts the episode where it belongs in the deadline list.
    pub(super) fn refile(&mut self, slot: u32) {
        let deadline = self.deadline(slot);
        let entry = self.entries.of_mut(slot);
        if entry.filed_at == deadline {
            return;
        }
        if let Some(at) = entry.filed_at {
            self.deadlines.remove(&(at, slot));
        }
        if let Some(at) = deadline {
            self.deadlines.insert((at, slot));
        }
        self.entries.of_mut(slot).filed_at = deadline;
    }

    /// Begins what is due for an episode. Expiry is decided here, by comparing times, in the step that marks it.
    fn next_of(&mut self, slot: u32, until: i64) -> Option<Call> {
        let passed = |deadline: Option<i64>| deadline.is_some_and(|at| at <= until);
        if self.entries.of(slot).ending.is_some() || self.overdue(slot, until) {
            self.unseat(slot, None);
            return Some(self.begin_close(slot, CloseReason::Expired, Asked::background()));
        }
        if passed(self.entries.of(slot).retry_at) {
            return Some(self.begin_open(slot, true));
        }
        self.look(slot);
        self.confirm_loss(slot, until);
        let call = if passed(self.entries.of(slot).tell_at) { self.tell(slot) } else { None };
        self.refile(slot);
        call
    }

    /// Begins telling of the evidence that has waited longest.
    fn next_evidence(&mut self) -> Option<Call> {
        let (slot, _) = self.seats.oldest_untold()?;
        let holder = self.entries.of(slot).holder.expect("evidence waits only for an episode that is held");
        self.seats.told(holder);
        self.entries.of_mut(slot).untold = true;
        let call = self.tell(slot);
        self.refile(slot);
        call
    }

    /// Whether somebody whom the driver was told to be gone may have been active since.
    pub(crate) fn has_returned(&self) -> bool {
        self.seats.has_returned()
    }

    /// Begins telling that one of those is active, if there is room; else the list does.
    pub(crate) fn tell_returned(&mut self) -> Option<Call> {
        while self.has_background_room()
            && let Some((peer, slot)) = self.seats.take_returned()
        {
            let counted = self.counted();
            let entry = self.entries.of_mut(slot);
            if !entry.gone {
                continue;
            }
            (entry.untold, entry.tell_at) = (true, Some(counted));
            self.seats.told(peer);
            let call = self.tell_now(slot);
            self.refile(slot);
            if call.is_some() {
                return call;
            }
        }
        None
    }

    /// Begins telling that a peer has left and of its last evidence, if there is room; else the list does.
    pub(super) fn tell_departed(&mut self, slot: u32) -> Option<Call> {
        self.entries.of(slot).tell_at.filter(|_| self.has_background_room())?;
        let call = self.tell_now(slot);
        self.refile(slot);
        call
    }

    /// Tells what is owed, or puts evidence off where a call runs or the last one was too recent. That somebody has
    /// gone, or has not, does not wait.
    fn tell(&mut self, slot: u32) -> Option<Call> {
        let counted = self.counted();
        let entry = self.entries.of(slot);
        if entry.leaving.is_some() || entry.gone {
            return self.tell_now(slot);
        }
        let earliest = entry.told_at.map_or(counted, |at| self.tell_after(at));
        if entry.call.is_some() || earliest > counted {
            self.entries.of_mut(slot).tell_at = Some(earliest.max(counted));
            return None;
        }
        self.tell_now(slot)
    }

    /// Tells what is owed, or leaves it owed while a call runs. What is not recorded has nobody to tell of evidence, but
    /// once it is, the driver believes that it is held.
    pub(super) fn tell_now(&mut self, slot: u32) -> Option<Call> {
        self.look(slot);
        let (latest, counted) = (self.latest, self.counted());
        let entry = self.entries.of_mut(slot);
        if entry.call.is_some() {
            return None;
        }
        entry.tell_at = None;
        if entry.record != Record::Recorded {
            entry.untold = false;
            entry.leaving = entry.leaving.filter(|_| entry.record != Record::Nothing);
            return None;
        }
        let mut untold = std::mem::take(&mut entry.untold);
        let leaving = entry.leaving.take();
        let (key, peer, holder) = (entry.key.clone(), entry.last_holder, entry.holder);
        if let (Some(_), Some(holder)) = (leaving, holder) {
            untold |= self.seats.untold(holder);
            self.seats.gone(holder);
        }
        let since = duration(latest.saturating_sub(self.evidence(slot)));
        let seen = untold.then(|| Seen { key: key.clone(), peer, ago: since });
        let ago = |at: i64| duration(counted.saturating_sub(at));
        let left = leaving.map(|leaving| Left { key, peer: leaving.peer, ago: ago(leaving.at) });
        let entry = self.entries.of_mut(slot);
        entry.gone = left.is_some() && holder.is_some();
        if seen.is_some() {
            entry.told_at = Some(latest);
        }
        let nothing = seen.is_none() && left.is_none();
        (!nothing).then(|| self.begin(slot, Work::Tell(Telling { seen, left }), true))
    }

    /// When evidence may be told that has waited, or was last told, since then: time awake in, counted time out.
    fn tell_after(&self, since: i64) -> i64 {
        since.saturating_add(nanoseconds(self.limits.seen_every)).saturating_sub(self.excused)
    }
}
