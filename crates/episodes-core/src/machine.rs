//! The rules, without a lock, a clock or a driver: what happened and when goes in, what to ask the driver comes out.
//!
//! Two scales of time, both in nanoseconds: *awake* is what the clock says and what ages are counted in; *counted* is
//! awake less all that was excused, and what deadlines stand in, so that excusing a gap moves every deadline at once.
//! Evidence waits to be told in time awake: telling it is no judgement and needs no excuse.
//!
//! A key with a call running is busy: it stands in no deadline list and no second call begins for it. Who holds it may
//! still change, as that asks nobody.

mod calls;
mod due;
mod ends;
mod entry;
mod holds;
mod seats;

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use crate::board::{Adopted, Attached, BoardError, ConnectionEpisode, ConnectionEpisodeState, Limits, Touch};
use crate::clock::{Moment, rfc3339};
use crate::driver::{CloseReason, Opening};
use crate::ids::{EpisodeKey, PeerId};

pub(crate) use calls::{Call, Completion, Ticket, Work};
pub(crate) use due::Due;
pub(crate) use ends::End;

use ends::{Asked, Memory};
use entry::{Entries, Entry, Joining, Record, Takeover, Wait};
use seats::{Seat, Seats};

#[cfg(test)]
mod tests;

/// How often in turn two peers may take one episode back from each other.
const RETURNS_ALLOWED: u32 = 1;

/// All episodes and who holds them.
pub(crate) struct Machine {
    limits: Limits,
    entries: Entries,
    by_key: HashMap<EpisodeKey, u32>,
    seats: Seats,
    /// How many streams of a peer are open, where some are.
    streams: HashMap<PeerId, u32>,
    /// How many carriers of a peer are open, where some are.
    carriers: HashMap<PeerId, u32>,
    /// Who took the episode of a peer that has not been told yet.
    taken_by: HashMap<PeerId, PeerId>,
    memories: HashMap<PeerId, Memory>,
    /// When something is due, in counted time, and for which slot. Evidence of held episodes is due by `seats`.
    deadlines: BTreeSet<(i64, u32)>,
    /// The latest time that was told: time never runs backwards here, in whatever order callers get the lock.
    latest: i64,
    excused: i64,
    running: usize,
    background: usize,
    serial: u64,
    completions: u64,
    /// How many entries and seats a sweep has looked at.
    #[cfg(test)]
    examined: u64,
}

/// A wish to hold an episode.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    pub(crate) peer: PeerId,
    /// Whether the peer is an open process, which is its hold.
    pub(crate) by_process: bool,
    pub(crate) key: EpisodeKey,
    pub(crate) client: Option<String>,
    /// The hash of the handle that was minted for it.
    pub(crate) handle: Option<String>,
    /// Whether it is whom an earlier server knew.
    pub(crate) again: bool,
    /// The hash of its connection's own id, where that outlives a server.
    pub(crate) carrier: Option<String>,
}

impl Wish {
    /// Whether an earlier server knew it by its carrier: it takes its seat back without a word of its client's.
    fn is_silent(&self) -> bool {
        self.again && self.handle.is_none() && self.carrier.is_some()
    }
}

/// What comes next for somebody who attaches.
#[derive(Debug)]
pub(crate) enum Attach {
    /// The peer holds it already.
    Held(Box<Attached>),
    /// A call runs for that key.
    Wait,
    /// What is over under that key must be closed first.
    CloseFirst(Call),
    /// The peer holds it now.
    Seated(Box<Seated>),
}

/// An attachment that has taken place on the board.
#[derive(Debug)]
pub(crate) struct Seated {
    /// The driver is to be asked.
    pub(crate) open: Call,
    pub(crate) taken_over_from: Option<PeerId>,
    pub(crate) left: Option<Departure>,
}

/// An episode that its holder has let go.
#[derive(Debug)]
pub(crate) struct Departure {
    pub(crate) episode: ConnectionEpisode,
    /// That, and its last evidence, is to be told; nobody waits for that.
    pub(crate) tell: Option<Call>,
}

impl Machine {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            entries: Entries::default(),
            by_key: HashMap::new(),
            seats: Seats::default(),
            streams: HashMap::new(),
            carriers: HashMap::new(),
            taken_by: HashMap::new(),
            memories: HashMap::new(),
            deadlines: BTreeSet::new(),
            latest: 0,
            excused: 0,
            running: 0,
            background: 0,
            serial: 0,
            completions: 0,
            #[cfg(test)]
            examined: 0,
        }
    }

    /// Gives the peer the episode, or says what must happen first.
    pub(crate) fn attach(&mut self, wish: &Wish, now: Moment) -> Result<Attach, BoardError> {
        let wall_ms = now.wall_ms;
        let now = self.tick(now);
        let Some(&slot) = self.by_key.get(&wish.key) else {
            if wish.again {
                return Err(BoardError::NotFound { key: wish.key.clone() });
            }
            self.demand_room()?;
            let slot = self.insert(Entry::new(wish.key.clone(), rfc3339(wall_ms), now));
            return Ok(self.seat(slot, wish, None, now));
        };
        let entry = self.entries.of(slot);
        let holds = entry.holder == Some(wish.peer);
        let overdue = self.overdue(slot, self.counted());
        let answered = wish.handle.is_none() && matches!(entry.record, Record::Recorded | Record::Nothing);
        // Whoever asks once more for what is recorded may have lost it to another process without having been told.
        let asks = entry.record == Record::Recorded && !wish.again;
        if holds && !overdue && answered && !asks {
            return Ok(self.hold_on(slot, wish, now));
        }
        if entry.call.is_some() {
            return Ok(Attach::Wait);
        }
        let ending = entry.ending.is_some();
        // Whoever is refused has changed nothing: an episode that opened all the same would be recorded for nobody.
        self.demand_room()?;
        if ending || overdue {
            // Only what is overdue or has its reason already comes here, so the reason given does not count.
            self.unseat(slot, Some(wish.peer));
            return Ok(Attach::CloseFirst(self.begin_close(slot, CloseReason::Expired, Asked::default())));
        }
        if holds && answered {
            return Ok(self.repeat(slot, wish, now));
        }
        if holds {
            return Ok(self.sit_again(slot, wish, now));
        }
        let takeover = self.takeover(slot, wish, now)?;
        Ok(self.seat(slot, wish, takeover, now))
    }

    /// Notes a message of the peer.
    pub(crate) fn touch(&mut self, peer: PeerId, now: Duration) -> Touch {
        self.tick_awake(now);
        match self.touch_held(peer) {
            Seat::Vacant => Touch::None,
            Seat::Held => Touch::Held,
            Seat::Lost => {
                self.seats.vacate(peer);
                Touch::Lost { by: self.taken_by.remove(&peer) }
            }
        }
    }

    /// Forgets the peer; what it held waits for its client.
    pub(crate) fn detach(&mut self, peer: PeerId, now: Moment) -> Option<Departure> {
        let now = self.tick(now);
        self.memories.remove(&peer);
        self.taken_by.remove(&peer);
        self.streams.remove(&peer);
        self.carriers.remove(&peer);
        match self.held_by(peer) {
            Some(slot) => {
                self.depart(slot, peer);
                let tell = self.tell_departed(slot);
                Some(Departure { episode: self.view(slot, now), tell })
            }
            None => {
                self.seats.vacate(peer);
                None
            }
        }
    }

    /// Puts a detached episode on the board that an earlier process opened, unless its key is there.
    pub(crate) fn adopt(&mut self, adopted: Adopted, now: Moment) {
        let now = self.tick(now);
        if self.by_key.contains_key(&adopted.key) {
            return;
        }
        let silent_since = now.saturating_sub(nanoseconds(adopted.silent_for));
        let grace_left = self.limits.grace.saturating_sub(adopted.waiting_for);
        let expires_at = self.counted().saturating_add(nanoseconds(grace_left));
        let slot = self.insert(Entry {
            attachments: adopted.attachments,
            repository: adopted.line,
            record: Record::Recorded,
            wait: Some(Wait { expires_at, limit: nanoseconds(self.limits.grace), lost_at: None }),
            ..Entry::new(adopted.key, adopted.opened_at, silent_since)
        });
        self.refile(slot);
    }

    /// All episodes, in no order.
    pub(crate) fn list(&mut self, now: Duration) -> Vec<ConnectionEpisode> {
        let now = self.tick_awake(now);
        self.entries.slots().map(|slot| self.view(slot, now)).collect()
    }

    /// The keys of all episodes, in no order.
    pub(crate) fn keys(&self) -> Vec<EpisodeKey> {
        self.by_key.keys().cloned().collect()
    }

    /// The episode under that key.
    pub(crate) fn of_key(&mut self, key: &EpisodeKey, now: Moment) -> Option<ConnectionEpisode> {
        let now = self.tick(now);
        self.by_key.get(key).map(|slot| self.view(*slot, now))
    }

    /// The episode that the peer is seated at.
    pub(crate) fn of_peer(&mut self, peer: PeerId, now: Duration) -> Option<ConnectionEpisode> {
        let now = self.tick_awake(now);
        self.held_by(peer).map(|slot| self.view(slot, now))
    }

    /// Whether a call runs for that key.
    pub(crate) fn is_busy(&self, key: &EpisodeKey) -> bool {
        self.by_key.get(key).is_some_and(|slot| self.entries.of(*slot).call.is_some())
    }

    /// How many calls run.
    pub(crate) fn running(&self) -> usize {
        self.running
    }

    /// How many calls have been answered since the beginning.
    pub(crate) fn completions(&self) -> u64 {
        self.completions
    }

    /// How many episodes there are.
    pub(crate) fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Answers a repeated attach as the first one was.
    fn hold_on(&mut self, slot: u32, wish: &Wish, now: i64) -> Attach {
        if !wish.is_silent() {
            self.touch_held(wish.peer);
        }
        let entry = self.entries.of(slot);
        Attach::Held(Box::new(Attached {
            resumed: entry.resumed,
            recorded: entry.record == Record::Recorded,
            episode: self.view(slot, now),
            taken_over_from: None,
            left: None,
            ended: None,
        }))
    }

    /// Whom the peer takes the episode from, if from anybody; refused where two keep taking it back.
    /// Whom an earlier server knew takes nothing from those who came since.
    fn takeover(&self, slot: u32, wish: &Wish, now: i64) -> Result<Option<Takeover>, BoardError> {
        let entry = self.entries.of(slot);
        let Some(from) = self.shown_holder(slot) else {
            // Whoever came last in this process is known here, and is not put out for whom the repository refuses.
            let other = entry.last_holder.is_some() && entry.joining.carrier != wish.carrier;
            let refused = wish.is_silent() && other;
            return if refused { Err(BoardError::NotFound { key: entry.key.clone() }) } else { Ok(None) };
        };
        if wish.again {
            return Err(BoardError::HeldByOther { key: entry.key.clone(), peer: from });
        }
        let peer = wish.peer;
        let returned = entry.takeover.filter(|last| {
            (last.by, last.from) == (from, peer) && now.saturating_sub(last.at) < nanoseconds(self.limits.grace)
        });
        let returns = returned.map_or(0, |last| last.returns + 1);
        if returns > RETURNS_ALLOWED {
            return Err(BoardError::Conflict { key: entry.key.clone(), peer: from });
        }
        Ok(Some(Takeover { by: peer, from, at: now, returns }))
    }

    /// Seats the peer at an episode that it does not hold and that no call runs for.
    fn seat(&mut self, slot: u32, wish: &Wish, takeover: Option<Takeover>, now: i64) -> Attach {
        let left = self.held_by(wish.peer);
        if let Some(left) = left {
            self.depart(left, wish.peer);
        }
        // Also where it is no take-over, since nothing was heard for a while.
        if let Some(from) = self.entries.of(slot).holder {
            if let Some(remains) = self.seats.lose(from) {
                self.entries.of_mut(slot).evidence = remains.evidence;
            }
            self.taken_by.insert(from, wish.peer);
        }
        self.memories.remove(&wish.peer);
        self.taken_by.remove(&wish.peer);
        let entry = self.entries.of_mut(slot);
        entry.holder = Some(wish.peer);
        entry.last_holder = Some(wish.peer);
        // Of whom takes its seat back this process has seen nothing yet.
        entry.witnessed |= !wish.is_silent();
        entry.takeover = takeover;
        entry.wait = None;
        let carrier = wish.carrier.clone();
        let took_over = takeover.is_some();
        entry.joining = Joining { again: wish.again, carrier, took_over, asked_at: now, ..Joining::default() };
        self.sit(slot, wish, !wish.again, now);
        // The opening first: somebody waits for it.
        let open = self.begin_open(slot, false);
        let left = left.map(|left| {
            let tell = self.tell_departed(left);
            Departure { episode: self.view(left, now), tell }
        });
        let taken_over_from = takeover.map(|takeover| takeover.from);
        Attach::Seated(Box::new(Seated { open, taken_over_from, left }))
    }

    /// Asks the driver whether the peer has what it seems to hold. Until it answers, and where nothing has changed, that is
    /// a message like any other.
    fn repeat(&mut self, slot: u32, wish: &Wish, now: i64) -> Attach {
        // That it is back, the call below says.
        self.seats.back(wish.peer);
        self.touch_held(wish.peer);
        let entry = self.entries.of_mut(slot);
        let carrier = wish.carrier.clone();
        entry.joining = Joining { carrier, repeated: true, asked_at: now, ..Joining::default() };
        if wish.client.is_some() {
            entry.client.clone_from(&wish.client);
        }
        entry.owe_nothing();
        let open = self.begin_open(slot, false);
        Attach::Seated(Box::new(Seated { open, taken_over_from: None, left: None }))
    }

    /// Seats the peer once more at what it holds: an opening that failed is tried again, or a handle was minted.
    fn sit_again(&mut self, slot: u32, wish: &Wish, now: i64) -> Attach {
        if wish.handle.is_some() {
            let carrier = wish.carrier.clone();
            self.entries.of_mut(slot).joining = Joining { again: wish.again, carrier, ..Joining::default() };
        }
        self.entries.of_mut(slot).joining.asked_at = now;
        self.sit(slot, wish, wish.handle.is_some() && !wish.again, now);
        let open = self.begin_open(slot, false);
        Attach::Seated(Box::new(Seated { open, taken_over_from: None, left: None }))
    }

    /// Gives the peer its seat, with this attachment as evidence, whether it counts or not; unless it only takes its seat
    /// back.
    fn sit(&mut self, slot: u32, wish: &Wish, counts: bool, now: i64) {
        let evidence = if wish.is_silent() { self.evidence(slot) } else { now };
        self.seats.hold(wish.peer, slot, evidence);
        let hold = self.hold_of(wish.peer, wish.by_process);
        let entry = self.entries.of_mut(slot);
        (entry.hold, entry.by_process) = (hold, wish.by_process);
        if counts || wish.again {
            entry.resumed = entry.attachments > 0;
        }
        entry.attachments += u32::from(counts);
        entry.owe_nothing();
        if wish.handle.is_some() {
            entry.joining.handle.clone_from(&wish.handle);
        }
        if wish.client.is_some() {
            entry.client.clone_from(&wish.client);
        }
    }

    /// Refuses where no further call may run.
    fn demand_room(&self) -> Result<(), BoardError> {
        if self.has_room() { Ok(()) } else { Err(no_room()) }
    }

    fn begin_open(&mut self, slot: u32, background: bool) -> Call {
        let latest = self.latest;
        let ago = duration(latest.saturating_sub(self.evidence(slot)));
        let entry = self.entries.of_mut(slot);
        let peer = entry.last_holder.expect("only an episode that was attached in this process is opened");
        entry.record = Record::Asked;
        entry.retry_at = None;
        let Joining { handle, again, carrier, took_over, repeated, asked_at } = entry.joining.clone();
        let (key, client) = (entry.key.clone(), entry.client.clone());
        let asked_ago = duration(latest.saturating_sub(asked_at));
        let opening = Opening { key, peer, client, handle, again, carrier, took_over, repeated, ago, asked_ago };
        self.begin(slot, Work::Open(opening), background)
    }

    fn touch_held(&mut self, peer: PeerId) -> Seat {
        self.seats.touch(peer, self.latest)
    }

    fn insert(&mut self, entry: Entry) -> u32 {
        let key = entry.key.clone();
        let slot = self.entries.insert(entry);
        self.by_key.insert(key, slot);
        slot
    }

    fn remove(&mut self, slot: u32) {
        let entry = self.entries.remove(slot);
        if let Some(at) = entry.filed_at {
            self.deadlines.remove(&(at, slot));
        }
        self.by_key.remove(&entry.key);
    }

    /// When the episode's last evidence was.
    fn evidence(&self, slot: u32) -> i64 {
        let entry = self.entries.of(slot);
        entry.holder.and_then(|holder| self.seats.evidence(holder)).unwrap_or(entry.evidence)
    }

    fn view(&self, slot: u32, now: i64) -> ConnectionEpisode {
        let entry = self.entries.of(slot);
        let holder = self.shown_holder(slot);
        ConnectionEpisode {
            external_id: entry.key.external_id.as_str().into(),
            provider: entry.key.provider.as_str().into(),
            peer: holder,
            opened_at: entry.opened_at.clone(),
            last_activity_seconds_ago: duration(now.saturating_sub(self.evidence(slot))).as_secs(),
            attachments: entry.attachments,
            state: match holder {
                Some(_) => ConnectionEpisodeState::Open,
                None => ConnectionEpisodeState::Detached,
            },
            repository: entry.repository.clone(),
        }
    }

    /// Takes the time in; returns the latest that was told.
    fn tick(&mut self, now: Moment) -> i64 {
        self.tick_awake(now.awake)
    }

    /// The same where the wall clock shows nowhere.
    fn tick_awake(&mut self, awake: Duration) -> i64 {
        self.latest = self.latest.max(nanoseconds(awake));
        self.latest
    }

    /// Counted time: what deadlines are compared with.
    fn counted(&self) -> i64 {
        self.latest.saturating_sub(self.excused)
    }
}

/// A span in nanoseconds, 292 years at most.
fn nanoseconds(span: Duration) -> i64 {
    i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)
}

/// Nanoseconds as a span, never negative.
fn duration(nanoseconds: i64) -> Duration {
    Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(0))
}

/// What a caller is told at once when no further call may run.
fn no_room() -> BoardError {
    BoardError::Unavailable { why: "too many calls to the repository are still running; try again shortly".into() }
}
