//! Ending an episode: the first step, which makes the end durable and frees the key.

use std::path::Path;
use std::time::Duration;

use majordomus_episodes_core::EpisodeKey;

use crate::append::{ATTEMPTS, Durable, read};
use crate::clock::Stamp;
use crate::disk::Open;
use crate::line::{EndOutcome, Ended, Kind, Line, Witness};
use crate::log::Log;
use crate::state;
use crate::store::{Appender, Silence, Store, StoreError};

/// What became of an end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndedAs {
    /// The episode is over, and that is durable.
    Ended {
        /// The session's id.
        session_id: String,
        /// How.
        outcome: EndOutcome,
        /// Where its record goes, relative to the worktree's root.
        record: String,
    },
    /// Nothing is open under that key; sessions whose records still wait.
    NothingOpen {
        /// Their ids.
        waiting: Vec<String>,
    },
    /// Only for silence: somebody holds it, or there is time left.
    NotOver(Duration),
    /// Only for a connection's end: another living connection holds it.
    HeldElsewhere,
}

/// Why an episode ends.
#[derive(Clone, Copy, Debug)]
pub enum Ending<'a> {
    /// Somebody or something said so.
    Said {
        /// By the provider's list.
        outcome: EndOutcome,
        /// In the provider's word.
        reason: &'a str,
        /// Who saw it.
        witness: Witness,
        /// The holder whose connection says it; none for hooks and people.
        holder: Option<&'a str>,
        /// Evidence of this process that the log does not have yet.
        last_evidence_ago: Option<Duration>,
    },
    /// Nobody was seen for as long as one waits.
    Silence {
        /// The holder whose own connections this process judges: it knows better than its lock says which of them
        /// have gone, and since when their clients were silent.
        own: Option<(&'a str, Duration)>,
    },
}

impl Store {
    /// Ends the episode of a key: the first step, after which the end is durable and the key is free. The record
    /// follows with [`Store::compose`].
    ///
    /// # Errors
    /// [`StoreError`] where the end could not be made durable; then the episode goes on.
    pub fn end(&self, key: &EpisodeKey, ending: Ending<'_>) -> Result<EndedAs, StoreError> {
        self.end_in(&|| self.open_for_append(key, false), ending)
    }

    /// Ends the episode whose log lies at `path`.
    pub(crate) fn end_at(&self, path: &Path, ending: Ending<'_>) -> Result<EndedAs, StoreError> {
        self.end_in(&|| self.appender_at(path), ending)
    }

    fn end_in(
        &self,
        open: &dyn Fn() -> Result<Option<Appender>, StoreError>,
        ending: Ending<'_>,
    ) -> Result<EndedAs, StoreError> {
        let mut waiting = Vec::new();
        for _ in 0..ATTEMPTS {
            let Some(mut at) = open()? else { break };
            let bytes = read(&mut at)?;
            let mut log = Log::parse(&bytes);
            let now = self.now();
            if let (Some(start), Some(_)) = (&log.start, &log.end) {
                waiting.push(start.opened.session_id.clone());
                self.retire(&mut at, &log)?;
                continue;
            }
            if log.start.is_none() {
                break;
            }
            let mut length = bytes.len();
            let line = match ending {
                Ending::Silence { own } => match self.judge_for(own, &log, &now) {
                    Silence::Held => return Ok(EndedAs::NotOver(self.policy.grace)),
                    Silence::Waiting(left) => return Ok(EndedAs::NotOver(left)),
                    Silence::Over(judged) => {
                        if let (Some((_, ago)), Some(connection)) = (own, log.connection.clone()) {
                            length += self.catch_up(&mut at, &mut log, &now, ago, connection)?;
                        }
                        self.silence_line(judged, now)?
                    }
                },
                Ending::Said { outcome, reason, witness, holder, last_evidence_ago } => {
                    let ours =
                        log.connection.clone().filter(|connection| holder.is_some_and(|own| is_of(connection, own)));
                    if holder.is_some() && ours.is_none() && self.judge(&log, &now) == Silence::Held {
                        return Ok(EndedAs::HeldElsewhere);
                    }
                    if let (Some(ago), Some(connection)) = (last_evidence_ago, &ours) {
                        length += self.catch_up(&mut at, &mut log, &now, ago, connection.clone())?;
                    }
                    let mut line = self.line(Kind::End, now, witness)?;
                    line.connection = ours.or_else(|| holder.map(Into::into));
                    line.redacting(|line, redact| {
                        line.ended = Some(Ended { outcome, reason: redact(reason), judged_ms: None });
                    });
                    line
                }
            };
            let Some(log) = self.append(&mut at, log, length, &line, Durable::Content)? else { continue };
            self.retire(&mut at, &log)?;
            let (Some(start), Some(end)) = (&log.start, &log.end) else { continue };
            return Ok(EndedAs::Ended {
                session_id: start.opened.session_id.clone(),
                outcome: end.ended.outcome,
                record: state::record_path(start.stamp.wall_ms, &start.opened.session_id, end.at.branch.as_deref()),
            });
        }
        Ok(EndedAs::NothingOpen { waiting })
    }

    /// Judges silence as a process that knows its own connections does.
    fn judge_for(&self, own: Option<(&str, Duration)>, log: &Log, now: &Stamp) -> Silence {
        let ours =
            own.filter(|(holder, _)| log.connection.as_deref().is_some_and(|connection| is_of(connection, holder)));
        let Some((_, ago)) = ours else { return self.judge(log, now) };
        let (silent, limit) = (ago.min(log.silent_for(now).unwrap_or(ago)), self.policy.grace);
        if silent < limit { Silence::Waiting(limit - silent) } else { Silence::Over(limit) }
    }

    /// Writes evidence that only this process has seen so far, and tells how many bytes that took.
    fn catch_up(
        &self,
        at: &mut Appender,
        log: &mut Log,
        now: &Stamp,
        ago: Duration,
        connection: String,
    ) -> Result<usize, StoreError> {
        let mut seen = self.line(Kind::Seen, now.before(ago), Witness::Connection)?;
        if log.silent_for(&seen.stamp).is_none_or(|since| since.is_zero()) {
            return Ok(0);
        }
        seen.connection = Some(connection);
        let bytes = seen.to_bytes();
        at.file.append(&bytes).map_err(StoreError::io("cannot write", &at.path))?;
        log.extend(&bytes);
        Ok(bytes.len())
    }

    pub(crate) fn silence_line(&self, judged: Duration, now: Stamp) -> Result<Line, StoreError> {
        let mut line = self.line(Kind::End, now, Witness::Reaper)?;
        line.ended = Some(Ended {
            outcome: EndOutcome::Interrupted,
            reason: "expired".into(),
            judged_ms: Some(u64::try_from(judged.as_millis()).unwrap_or(u64::MAX)),
        });
        Ok(line)
    }

    /// Renames an ended log into `ended/`, which frees its key. Under the log's own lock, so that nobody renames the
    /// log that a new start has put in its place.
    pub(crate) fn retire(&self, at: &mut Appender, log: &Log) -> Result<(), StoreError> {
        let Some(session_id) = log.session_id() else { return Ok(()) };
        at.file.lock().map_err(StoreError::io("cannot lock", &at.path))?;
        let ours = at.file.identity().map_err(StoreError::io("cannot read", &at.path))?;
        let now = self.disk.identity(&at.path).map_err(StoreError::io("cannot read", &at.path))?;
        if now == Some(ours) {
            let to = state::ended_log(&at.root, session_id);
            let folder = at.root.join("ended");
            self.disk.make_folders(&folder, true).map_err(StoreError::io("cannot make", &folder))?;
            self.note_ended(at, log);
            self.disk.rename(&at.path, &to).map_err(StoreError::io("cannot rename", &at.path))?;
        }
        Ok(())
    }

    /// Notes which session of this key has ended. Best effort, and perhaps twice: all that hangs on it is the link
    /// from the next session of the key to this one.
    fn note_ended(&self, at: &Appender, log: &Log) {
        let Some(start) = &log.start else { return };
        if let Ok(mut file) = self.disk.open(&state::history(&at.root), Open::Create) {
            let _ = file.append(format!("{} {}\n", start.opened.key, start.opened.session_id).as_bytes());
        }
    }

    /// Finds the session of a key that ended last before the session `session_id` of that key did.
    pub(crate) fn ended_last(&self, root: &Path, hash: &str, session_id: &str) -> Option<String> {
        let bytes = self.disk.read(&state::history(root)).ok()?;
        let lines = bytes.split(|&byte| byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok());
        let ids = lines.filter_map(|line| line.split_once(' ')).filter(|(of, _)| *of == hash).map(|(_, id)| id);
        // In the order in which they ended; a session that waits long for its record is not the last any more.
        let before = ids.take_while(|id| *id != session_id).filter(|id| state::is_session_id(id));
        before.last().map(str::to_owned)
    }
}

/// Whether a connection is one of this holder's.
fn is_of(connection: &str, holder: &str) -> bool {
    connection.rsplit_once('-').is_some_and(|(id, _)| id == holder)
}
