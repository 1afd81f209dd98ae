//! What falls due: expiries, evidence to tell, calls to try again. Costs what is due, never what exists.

use std::time::Duration;

use crate::clock::Moment;
use crate::driver::{CloseReason, Seen};

use super::calls::{Call, Work};
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
        first.into_iter().chain(evidence).min()
    }

    /// Puts the episode where it belongs in the deadline list.
    pub(super) fn refile(&mut self, slot: u32) {
        let entry = self.entries.of_mut(slot);
        let deadline = entry.deadline();
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
        let entry = self.entries.of(slot);
        let passed = |deadline: Option<i64>| deadline.is_some_and(|at| at <= until);
        if entry.ending.is_some() || entry.overdue(until) {
            return Some(self.begin_close(slot, CloseReason::Expired, None, true));
        }
        if passed(entry.retry_at) {
            return Some(self.begin_open(slot, true));
        }
        let call = if passed(entry.tell_at) { self.tell(slot) } else { None };
        self.refile(slot);
        call
    }

    /// Begins telling of the evidence that has waited longest.
    fn next_evidence(&mut self) -> Option<Call> {
        let (slot, _) = self.seats.oldest_untold()?;
        let holder = self.entries.of(slot).holder.expect("evidence waits only for an episode that is held");
        self.seats.told(holder);
        let call = self.tell(slot);
        self.refile(slot);
        call
    }

    /// Begins telling of a departed peer's last evidence, if that is owed and there is room; else the list does.
    pub(super) fn tell_departed(&mut self, slot: u32) -> Option<Call> {
        self.entries.of(slot).tell_at.filter(|_| self.has_background_room())?;
        let call = self.tell_now(slot);
        self.refile(slot);
        call
    }

    /// Tells of evidence, or puts it off where a call runs or the last one was too recent.
    fn tell(&mut self, slot: u32) -> Option<Call> {
        let counted = self.counted();
        let entry = self.entries.of(slot);
        let earliest = entry.told_at.map_or(counted, |at| self.tell_after(at));
        if entry.call.is_some() || earliest > counted {
            self.entries.of_mut(slot).tell_at = Some(earliest.max(counted));
            return None;
        }
        self.tell_now(slot)
    }

    /// Tells of evidence, or leaves it owed while a call runs. What is not recorded has nobody to tell.
    fn tell_now(&mut self, slot: u32) -> Option<Call> {
        let latest = self.latest;
        let ago = duration(latest.saturating_sub(self.evidence(slot)));
        let entry = self.entries.of_mut(slot);
        if entry.call.is_some() {
            return None;
        }
        entry.tell_at = None;
        if entry.record != Record::Recorded {
            return None;
        }
        entry.told_at = Some(latest);
        let seen = Seen { key: entry.key.clone(), peer: entry.last_holder, ago };
        Some(self.begin(slot, Work::Seen(seen), true))
    }

    /// When evidence may be told that has waited, or was last told, since then: time awake in, counted time out.
    fn tell_after(&self, since: i64) -> i64 {
        since.saturating_add(nanoseconds(self.limits.seen_every)).saturating_sub(self.excused)
    }
}
