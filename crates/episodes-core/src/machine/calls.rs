//! Driver calls: what is asked, and how the answer is folded in.

use std::time::Duration;

use crate::board::{Closed, ConnectionEpisode};
use crate::clock::Moment;
use crate::driver::{CloseReason, Closing, EpisodeDriver, Left, Opening, Outcome, Report, Seen};
use crate::ids::EpisodeKey;

use super::entry::{Record, Wait};
use super::{Machine, nanoseconds};

/// The least that [`Outcome::NotOver`] postpones an expiry.
const NOT_OVER_AT_LEAST: Duration = Duration::from_secs(1);

/// A call that the caller of the machine must make, and whose answer it must fold in.
#[derive(Debug)]
#[must_use = "the key stays busy until the call's answer is folded in"]
pub(crate) struct Call {
    pub(crate) ticket: Ticket,
    pub(crate) work: Work,
}

/// Which call an answer belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    slot: u32,
    serial: u64,
    kind: Kind,
    background: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Open,
    Close,
    Tell,
}

/// What to ask the driver.
#[derive(Debug)]
pub(crate) enum Work {
    Open(Opening),
    Close(Closing),
    Tell(Telling),
}

/// What to tell the driver, evidence first.
#[derive(Debug)]
pub(crate) struct Telling {
    pub(crate) seen: Option<Seen>,
    pub(crate) left: Option<Left>,
}

impl Work {
    fn kind(&self) -> Kind {
        match self {
            Self::Open(_) => Kind::Open,
            Self::Close(_) => Kind::Close,
            Self::Tell(_) => Kind::Tell,
        }
    }

    /// Asks the driver. This is where a caller's thread meets the disk.
    pub(crate) fn ask(&self, driver: &dyn EpisodeDriver) -> Report {
        match self {
            Self::Open(opening) => driver.open(opening),
            Self::Close(closing) => driver.close(closing),
            Self::Tell(telling) => {
                let ours = telling.seen.as_ref().is_none_or(|seen| driver.seen(seen))
                    && telling.left.as_ref().is_none_or(|left| driver.left(left));
                let outcome = if ours { Outcome::Recorded } else { Outcome::Gone };
                Report { line: String::new(), outcome, known: None }
            }
        }
    }
}

/// What a folded answer means for whoever waits for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Completion {
    /// The driver answered an opening; the episode as it is now.
    Opened { episode: ConnectionEpisode, resumed: bool, recorded: bool },
    /// The episode has left the board.
    Ended(Closed),
    /// The end is not durable; the episode stays and is tried again.
    Kept(ConnectionEpisode),
    /// The repository knows better: the episode has not expired and stays.
    NotOver(EpisodeKey, ConnectionEpisode),
    /// A connection to another process has it; this board has forgotten it.
    Gone(EpisodeKey),
    /// Evidence or a departure was told.
    Told,
}

impl Machine {
    /// Whether one more call may run.
    pub(super) fn has_room(&self) -> bool {
        self.running < self.limits.driver_calls
    }

    /// Whether one more call may run that no client waits for. Those leave most of the room to clients, so that
    /// many expiries at once refuse nobody.
    pub(super) fn has_background_room(&self) -> bool {
        self.has_room() && self.background < (self.limits.driver_calls / 4).max(1)
    }

    /// Marks the key busy and names the call.
    pub(super) fn begin(&mut self, slot: u32, work: Work, background: bool) -> Call {
        self.serial += 1;
        self.running += 1;
        self.background += usize::from(background);
        self.entries.of_mut(slot).call = Some(self.serial);
        self.refile(slot);
        Call { ticket: Ticket { slot, serial: self.serial, kind: work.kind(), background }, work }
    }

    /// Folds a call's answer in, however late, and frees its key.
    pub(crate) fn complete(&mut self, ticket: Ticket, report: Report, now: Moment) -> Completion {
        let now = self.tick(now);
        self.running -= 1;
        self.background -= usize::from(ticket.background);
        self.completions += 1;
        let entry = self.entries.of_mut(ticket.slot);
        assert_eq!(entry.call.take(), Some(ticket.serial), "one call at a time runs for a key");
        let completion = match ticket.kind {
            // Nobody waits for what is tried again.
            Kind::Open if ticket.background && report.outcome == Outcome::Gone => self.forget(ticket.slot),
            Kind::Open => self.opened(ticket.slot, report, now),
            Kind::Close => self.close_answered(ticket.slot, report, now),
            Kind::Tell if report.outcome == Outcome::Gone => self.forget(ticket.slot),
            Kind::Tell => Completion::Told,
        };
        if !matches!(completion, Completion::Ended(_) | Completion::Gone(_)) {
            self.refile(ticket.slot);
        }
        completion
    }

    /// Takes an episode off the board that is not this process's: whoever is seated at it is told with its next touch.
    /// The key was busy until now, so nobody has sat down at it since the driver looked.
    fn forget(&mut self, slot: u32) -> Completion {
        self.unseat(slot, None);
        let key = self.entries.of(slot).key.clone();
        self.remove(slot);
        Completion::Gone(key)
    }

    fn opened(&mut self, slot: u32, report: Report, now: i64) -> Completion {
        if report.outcome == Outcome::Gone {
            let holder = self.entries.of(slot).holder;
            self.unseat(slot, holder);
            let episode = ConnectionEpisode { repository: report.line, ..self.view(slot, now) };
            self.remove(slot);
            return Completion::Ended(Closed { episode, recorded: false });
        }
        let (retry_at, counted) = (self.retry_at(), self.counted());
        let entry = self.entries.of_mut(slot);
        if report.outcome != Outcome::Unchanged {
            entry.repository = report.line;
        }
        if let Some(known) = report.known {
            entry.opened_at = known.opened_at;
            entry.attachments = known.attachments.unwrap_or(entry.attachments);
            entry.resumed = known.resumed;
        }
        (entry.record, entry.retry_at) = match report.outcome {
            Outcome::Recorded | Outcome::Unchanged => (Record::Recorded, None),
            Outcome::Nothing => (Record::Nothing, None),
            // An opening cannot be "not over"; a driver that says so has not opened anything.
            Outcome::Failed | Outcome::NotOver(_) | Outcome::Gone => (Record::Failed, Some(retry_at)),
        };
        if entry.leaving.is_some() && entry.record == Record::Recorded {
            // It went while the driver could not yet be told.
            entry.tell_at = Some(counted);
        }
        let (resumed, recorded) = (entry.resumed, entry.record == Record::Recorded);
        Completion::Opened { episode: self.view(slot, now), resumed, recorded }
    }

    fn close_answered(&mut self, slot: u32, report: Report, now: i64) -> Completion {
        let (retry_at, counted) = (self.retry_at(), self.counted());
        let grace = nanoseconds(self.limits.grace);
        let entry = self.entries.of_mut(slot);
        entry.repository = report.line;
        let ending = entry.ending.expect("a close call belongs to an ending");
        let recorded = report.outcome == Outcome::Recorded;
        let completion = match report.outcome {
            Outcome::Gone => self.forget(slot),
            Outcome::Recorded | Outcome::Nothing => {
                let episode = self.view(slot, now);
                self.remove(slot);
                Completion::Ended(Closed { episode, recorded })
            }
            Outcome::NotOver(wait) if ending.reason == CloseReason::Expired => {
                entry.ending = None;
                // Whoever knows of later evidence has the episode.
                entry.record = Record::Recorded;
                let expires_at = counted.saturating_add(nanoseconds(wait.max(NOT_OVER_AT_LEAST)));
                let judged = entry.wait.unwrap_or(Wait { expires_at, limit: grace, lost_at: None });
                entry.wait = Some(Wait { expires_at, ..judged });
                entry.tell_at = entry.leaving.map(|_| counted);
                let key = entry.key.clone();
                Completion::NotOver(key, self.view(slot, now))
            }
            Outcome::Failed | Outcome::NotOver(_) | Outcome::Unchanged => {
                entry.retry_at = Some(retry_at);
                Completion::Kept(self.view(slot, now))
            }
        };
        if let Some(peer) = ending.by {
            self.remember(peer, &completion);
        }
        completion
    }

    pub(super) fn retry_at(&self) -> i64 {
        // A zero would be due again in the same sweep.
        self.counted().saturating_add(nanoseconds(self.limits.retry_every.max(Duration::from_millis(1))))
    }
}
