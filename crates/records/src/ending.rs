//! Ending an episode: the first step, which makes the end durable and frees the key.

use std::io;
use std::path::Path;
use std::time::Duration;

use majordomus_episodes_core::driver::Judged;
use majordomus_episodes_core::{CloseReason, EpisodeKey};

use crate::append::{ATTEMPTS, Durable, Part, lock_soon, millis, read};
use crate::clock::Stamp;
use crate::line::{EndOutcome, Ended, Kind, Line, Witness};
use crate::log::Log;
use crate::state;
use crate::store::{Appender, Silence, Store, StoreError};
use crate::witnessed::ClientProcess;

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
    /// Only for an end by a process with connections: another process's connection holds it, and lives.
    HeldElsewhere,
    /// It goes on.
    GoesOn {
        /// The session's id.
        session_id: String,
        /// Why.
        because: GoesOn,
    },
}

/// Why an episode goes on although an end was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoesOn {
    /// Its client went on in another conversation, and may come back to this one.
    Left,
    /// One process of its client has left the conversation; another one is still in it.
    Shared,
    /// Only for an end by a connection: hooks drew this episode, and they, its idle time or a person end it.
    Hooks,
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
        /// How long ago that was first said, where it is tried again: it ends nothing that began since.
        asked_ago: Duration,
        /// What a hook says besides.
        hook: HookEnd<'a>,
    },
    /// Nobody was seen for as long as one waits.
    Silence {
        /// What this process knows of its own connections.
        own: Option<Own<'a>>,
    },
}

/// What the end that a hook reports is, besides its reason.
#[derive(Clone, Copy, Debug, Default)]
pub struct HookEnd<'a> {
    /// Whether the client goes on in another conversation, and may come back to this one.
    pub leaves: bool,
    /// Whether the provider's ends may come long after the sitting was over.
    pub late: bool,
    /// The client's process.
    pub client: Option<&'a ClientProcess>,
}

/// What a process knows of its own connections: better than its lock says which of them have gone, and since when their
/// clients were silent.
#[derive(Clone, Copy, Debug)]
pub struct Own<'a> {
    /// Its holder's id.
    pub holder: &'a str,
    /// How long ago the client was last seen at work.
    pub last_evidence_ago: Duration,
    /// By which length it judged that the episode is over; `None` for the grace, counted from that evidence.
    pub judged: Option<Judged>,
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

    /// Ends an open episode because a person says so, whoever began it and whoever holds it.
    ///
    /// # Errors
    /// [`StoreError`] where the end could not be made durable; then the episode goes on.
    pub fn close_by_operator(&self, key: &EpisodeKey) -> Result<EndedAs, StoreError> {
        let said = Ending::Said {
            outcome: EndOutcome::Closed,
            reason: CloseReason::Detach.as_str(),
            witness: Witness::Operator,
            holder: None,
            last_evidence_ago: None,
            asked_ago: Duration::ZERO,
            hook: HookEnd::default(),
        };
        self.end(key, said)
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
        let asked = match ending {
            Ending::Said { asked_ago, .. } => Some(self.now().before(asked_ago)),
            Ending::Silence { .. } => None,
        };
        for _ in 0..ATTEMPTS {
            let Some(mut at) = open()? else { break };
            let (mut log, mut length) = read(&mut at, Part::Ends)?;
            let now = self.now();
            if is_said_again(&log, ending) {
                // That call failed because it could not make the line durable; it is the end that is asked for.
                at.file.sync().map_err(StoreError::io("cannot write", &at.path))?;
                let _ = self.retire(&mut at, &log);
                if let Some(ended) = ended_as(&log) {
                    return Ok(ended);
                }
            }
            if let (Some(start), Some(_)) = (&log.start, &log.end) {
                waiting.push(start.opened.session_id.clone());
                self.retire_or_leave(&mut at, &log)?;
                continue;
            }
            let is_later = asked.as_ref().is_some_and(|asked| log.began_since(now.age_of(asked), &now));
            if log.start.is_none() || is_later {
                break;
            }
            if is_for_hooks(&log, ending) {
                return Ok(goes_on(&log, GoesOn::Hooks));
            }
            if let Some((line, left)) = self.leaving(&log, ending, &now)? {
                let Some(log) = self.append(&mut at, log, length, &line, Durable::Content)? else { continue };
                // Where the others have left at the same moment, the last line of them is the end.
                if is_shared(&left) && !log.processes.iter().any(|other| other.is_running(&now.boot)) {
                    continue;
                }
                return Ok(left);
            }
            let line = match ending {
                Ending::Silence { own } => match self.judge_for(own, &log, &now) {
                    Silence::Held if own.is_some() => return Ok(EndedAs::HeldElsewhere),
                    Silence::Held => return Ok(EndedAs::NotOver(self.policy.own_grace())),
                    Silence::Waiting(left) => return Ok(EndedAs::NotOver(left)),
                    Silence::Over(judged) => {
                        if let (Some(own), Some(connection)) = (own, log.connection.clone())
                            && is_of(&connection, own.holder)
                        {
                            let ago = own.last_evidence_ago;
                            length += self.catch_up(&mut at, &mut log, &now, ago, connection)?;
                        }
                        self.silence_line(&log, judged, now)?
                    }
                },
                Ending::Said { outcome, reason, witness, holder, last_evidence_ago, hook, .. } => {
                    let ours =
                        log.connection.clone().filter(|connection| holder.is_some_and(|own| is_of(connection, own)));
                    // Whoever speaks for no connection may not speak for one that lives, but for a person who says so;
                    // nor is silence over because a caller says it is.
                    let foreign = log.connection.is_some() && ours.is_none() && witness != Witness::Operator;
                    match foreign.then(|| self.judge(&log, &now)) {
                        Some(Silence::Held) => return Ok(EndedAs::HeldElsewhere),
                        Some(Silence::Waiting(left)) if witness == Witness::Reaper => {
                            return Ok(EndedAs::NotOver(left));
                        }
                        _ => {}
                    }
                    let for_nobody = foreign && holder.is_none() && witness == Witness::Connection;
                    let witness = if for_nobody { Witness::Operator } else { witness };
                    if let (Some(ago), Some(connection)) = (last_evidence_ago, &ours) {
                        length += self.catch_up(&mut at, &mut log, &now, ago, connection.clone())?;
                    }
                    let mut line = self.line(Kind::End, now, witness)?;
                    if matches!(witness, Witness::Connection | Witness::Shutdown) {
                        line.after = joined_last(&log);
                    }
                    line.connection = ours.or_else(|| holder.map(Into::into));
                    let (process, terminal) = witnessed(&log, hook.client, &line.stamp.boot, witness);
                    line.redacting(|line, redact| {
                        let (reason, late) = (redact(reason), hook.late);
                        line.ended = Some(Ended { outcome, reason, judged_ms: None, late, process, terminal });
                    });
                    line
                }
            };
            let Some(log) = self.append(&mut at, log, length, &line, Durable::Content)? else { continue };
            // The end is durable; where it cannot be put aside now, whoever comes next does.
            let _ = self.retire(&mut at, &log);
            if let Some(ended) = ended_as(&log) {
                return Ok(ended);
            }
        }
        Ok(EndedAs::NothingOpen { waiting })
    }

    /// Judges silence as a process that knows its own connections does. What it did not see itself, such as a hook, may
    /// still stand in the log.
    fn judge_for(&self, own: Option<Own<'_>>, log: &Log, now: &Stamp) -> Silence {
        let ours = own.filter(|own| log.connection.as_deref().is_some_and(|connection| is_of(connection, own.holder)));
        let Some(own) = ours else { return self.judge(log, now) };
        let limit = own.judged.map_or(self.policy.own_grace(), |judged| judged.limit);
        let since_loss = own.judged.and_then(|judged| judged.since_loss).unwrap_or(own.last_evidence_ago);
        let waited = own.last_evidence_ago.min(since_loss);
        let waited = log.silent_for(now).map_or(waited, |silent| silent.min(waited));
        if waited < limit { Silence::Waiting(limit - waited) } else { Silence::Over(limit) }
    }

    /// Writes evidence that only this process has seen so far, and tells how many bytes that took.
    fn catch_up(
        &self,
        at: &mut Appender,
        log: &mut Log,
        now: &Stamp,
        ago: Duration,
        connection: String,
    ) -> Result<u64, StoreError> {
        let mut seen = self.line(Kind::Seen, now.before(ago), Witness::Connection)?;
        if log.silent_for(&seen.stamp).is_none_or(|since| since.is_zero()) {
            return Ok(0);
        }
        seen.connection = Some(connection);
        let bytes = seen.to_bytes();
        at.file.append(&bytes).map_err(StoreError::io("cannot write", &at.path))?;
        log.extend(&bytes);
        Ok(bytes.len() as u64)
    }

    pub(crate) fn silence_line(&self, log: &Log, judged: Duration, now: Stamp) -> Result<Line, StoreError> {
        let mut line = self.line(Kind::End, now, Witness::Reaper)?;
        line.after = joined_last(log);
        line.ended = Some(Ended::new(EndOutcome::Interrupted, "expired".into(), Some(millis(judged))));
        Ok(line)
    }

    /// What a hook's end is where it ends nothing: its client went on in another conversation, or this is one of several
    /// processes in it, such as a run that the client's own agent started and that resumed the same conversation.
    fn leaving(&self, log: &Log, ending: Ending<'_>, now: &Stamp) -> Result<Option<(Line, EndedAs)>, StoreError> {
        let Ending::Said { reason, witness: Witness::Hook, hook, .. } = ending else { return Ok(None) };
        // Also one that has said so before: ends come twice.
        let mut were_in = log.processes.iter().chain(&log.processes_gone);
        let came = hook.client.is_some_and(|own| were_in.any(|known| known.is(own)));
        let others = || log.processes.iter().filter(|known| hook.client.is_none_or(|own| !known.is(own)));
        let is_shared = came && others().any(|other| other.is_running(&now.boot));
        // Where nothing happened in what is left, nobody comes back to it.
        let is_left = hook.leaves && log.evidence_after_start > 0;
        if !(is_shared || is_left) {
            return Ok(None);
        }
        let mut line = self.line(Kind::Activity, now.clone(), Witness::Hook)?;
        (line.left, line.process) = (true, hook.client.cloned());
        line.redacting(|line, redact| line.source = Some(redact(reason)));
        Ok(Some((line, goes_on(log, if is_shared { GoesOn::Shared } else { GoesOn::Left }))))
    }

    /// Puts a log aside that somebody else has ended, who may have been killed before that was durable.
    pub(crate) fn retire_found(&self, at: &mut Appender, log: &Log) -> Result<(), StoreError> {
        if log.end.is_some() {
            at.file.sync().map_err(StoreError::io("cannot write", &at.path))?;
        }
        self.retire(at, log)
    }

    /// The same, and no failure where somebody else is at it: whoever asked looks again.
    pub(crate) fn retire_or_leave(&self, at: &mut Appender, log: &Log) -> Result<(), StoreError> {
        match self.retire_found(at, log) {
            Err(StoreError::Io { source, .. }) if source.kind() == io::ErrorKind::WouldBlock => Ok(()),
            done => done,
        }
    }

    /// Renames an ended log into `ended/`, which frees its key. Under the log's own lock, so that nobody renames the
    /// log that a new start has put in its place.
    pub(crate) fn retire(&self, at: &mut Appender, log: &Log) -> Result<(), StoreError> {
        // Somebody may have begun the next one at its path, since it was found to have ended.
        let Some(session_id) = log.session_id().filter(|_| log.end.is_some()) else { return Ok(()) };
        let ours = at.file.identity().map_err(StoreError::io("cannot read", &at.path))?;
        let named = || self.disk.identity(&at.path).map_err(StoreError::io("cannot read", &at.path));
        // Once it is renamed, its lock belongs to whoever composes its record, for as long as git takes.
        if named()? != Some(ours) {
            return Ok(());
        }
        lock_soon(&*at.file).map_err(StoreError::io("cannot lock", &at.path))?;
        if named()? == Some(ours) {
            let to = state::ended_log(&at.root, session_id);
            let folder = at.root.join("ended");
            self.disk.make_folders(&folder, true).map_err(StoreError::io("cannot make", &folder))?;
            self.note_ended(&at.root, log);
            self.disk.rename(&at.path, &to).map_err(StoreError::io("cannot rename", &at.path))?;
        }
        Ok(())
    }
}

/// Whose being there an end is about. What hooks drew is not read whole, and what joins it is their client itself.
fn joined_last(log: &Log) -> Option<String> {
    let by_connection = log.start.as_ref().is_some_and(|start| start.witness == Witness::Connection);
    log.joined_last().filter(|_| by_connection)
}

fn goes_on(log: &Log, because: GoesOn) -> EndedAs {
    EndedAs::GoesOn { session_id: log.session_id().unwrap_or_default().into(), because }
}

fn is_shared(ended: &EndedAs) -> bool {
    matches!(ended, EndedAs::GoesOn { because: GoesOn::Shared, .. })
}

/// Whether an end is not for whoever asks for it: what hooks drew is ended by them, by its idle time or by a person, and a
/// connection to it only comes and goes.
fn is_for_hooks(log: &Log, ending: Ending<'_>) -> bool {
    let by_connection = match ending {
        Ending::Said { witness, .. } => !matches!(witness, Witness::Hook | Witness::Operator),
        Ending::Silence { own } => own.is_some(),
    };
    by_connection && log.start.as_ref().is_some_and(|start| start.witness == Witness::Hook)
}

/// Whether the client's process was running, and its terminal there, when a hook told of the end. The process that the
/// conversation began in is known also where the one that ran the hook has gone.
fn witnessed(log: &Log, client: Option<&ClientProcess>, boot: &str, witness: Witness) -> (Option<bool>, Option<bool>) {
    if witness != Witness::Hook {
        return (None, None);
    }
    let known = client.and_then(|own| log.processes.iter().find(|known| known.is(own)));
    let process = known.or(log.processes.last()).or(client);
    (process.map(|process| process.is_running(boot)), process.and_then(|process| process.has_terminal(boot)))
}

/// Whether a log ends with what a holder says now: an earlier call of its own wrote the line and could not tell so.
fn is_said_again(log: &Log, ending: Ending<'_>) -> bool {
    let (Some(end), Ending::Said { reason, holder: Some(holder), .. }) = (&log.end, ending) else { return false };
    let by = end.connection.as_deref();
    end.ended.reason == reason && by.is_some_and(|by| by == holder || is_of(by, holder))
}

fn ended_as(log: &Log) -> Option<EndedAs> {
    let (start, end) = (log.start.as_ref()?, log.end.as_ref()?);
    Some(EndedAs::Ended {
        session_id: start.opened.session_id.clone(),
        outcome: end.ended.outcome,
        record: state::record_path(start.stamp.wall_ms, &start.opened.session_id, end.at.branch_in_name()),
    })
}

/// Whether a connection is one of this holder's.
pub(crate) fn is_of(connection: &str, holder: &str) -> bool {
    connection.rsplit_once('-').is_some_and(|(id, _)| id == holder)
}
