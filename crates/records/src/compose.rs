//! The second step of an end: asking git, and publishing the record.
//!
//! Whoever comes may do it, under a try-lock on the ended log: the first durable `facts` line wins, so everybody who
//! ever publishes this session publishes the same bytes.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use crate::append::{READ_MOST, folder_of, is_environment};
use crate::disk::Open;
use crate::facts::Facts;
use crate::git::{Answer, Question};
use crate::inside::{LeadsOut, stay_inside};
use crate::line::{Kind, Line, Witness};
use crate::log::Log;
use crate::record::{self, Setting};
use crate::redact::redact;
use crate::state;
use crate::store::{Store, StoreError, is_absent};

/// How often a log whose record cannot be composed is tried before it is put into `bad/`.
const TRIES: u64 = 3;

/// A limit from which running out of time counts as a try.
const FAIR: Duration = Duration::from_secs(1);

/// What became of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Composed {
    /// It is published, relative to the worktree's root.
    Published(String),
    /// It is for somebody else, or for later: another process is at it, or git needs longer than the limit.
    Later,
    /// There is no worktree to put it into; the log stays in the state folder and is listed.
    NoWorktree,
    /// Nothing happened in it before the provider resumed another session, so it leaves no record.
    Unused,
    /// There is no such log (any more).
    Gone,
    /// It failed for good; the log is in `bad/`.
    Bad,
}

/// Says what kept a record from being published.
#[derive(Debug, thiserror::Error)]
pub enum ComposeError {
    /// The disk or a folder refused.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A part of the record's path leads out of the repository.
    #[error(transparent)]
    LeadsOut(#[from] LeadsOut),
    /// Another file stands where the record goes.
    #[error("{} is there already and is not this session's record", .0.display())]
    Occupied(PathBuf),
    /// The log does not hold a whole session.
    #[error("{} is not the log of an ended session", .0.display())]
    NotALog(PathBuf),
}

impl Store {
    /// Composes and publishes the record of an ended session, asking git for at most `limit`.
    ///
    /// # Errors
    /// [`ComposeError`]; the log stays, and the next one who comes tries again.
    pub fn compose(&self, session_id: &str, limit: Duration) -> Result<Composed, ComposeError> {
        if !state::is_session_id(session_id) {
            return Ok(Composed::Gone);
        }
        for root in self.state.roots() {
            let path = state::ended_log(root, session_id);
            match self.compose_at(root, &path, session_id, limit) {
                Ok(Some(composed)) => return Ok(composed),
                Ok(None) => {}
                Err(error) => return self.failed(error, root, session_id),
            }
        }
        Ok(Composed::Gone)
    }

    /// Composes the log at a path; `None` where there is none.
    fn compose_at(
        &self,
        root: &Path,
        path: &Path,
        session_id: &str,
        limit: Duration,
    ) -> Result<Option<Composed>, ComposeError> {
        let mut file = match self.disk.open(path, Open::Existing) {
            Ok(file) => file,
            Err(error) if is_absent(&error) => return Ok(None),
            Err(error) => return Err(StoreError::io("cannot open", path)(error).into()),
        };
        if !file.try_lock().map_err(StoreError::io("cannot lock", path))? {
            return Ok(Some(Composed::Later));
        }
        let ours = file.identity().map_err(StoreError::io("cannot read", path))?;
        if self.disk.identity(path).map_err(StoreError::io("cannot read", path))? != Some(ours) {
            return Ok(Some(Composed::Gone));
        }
        let bytes = file.read_at(0, READ_MOST).map_err(StoreError::io("cannot read", path))?;
        let mut log = Log::parse(&bytes);
        if log.facts.is_none() {
            if self.checkout.record_root().is_none() {
                // There may be a worktree one day, and its git knows as much then.
                return Ok(Some(Composed::NoWorktree));
            }
            let Some(line) = self.facts_line(&log, root, session_id, limit)? else { return Ok(Some(Composed::Later)) };
            let line = line.to_bytes();
            file.append(&line).and_then(|()| file.sync()).map_err(StoreError::io("cannot write", path))?;
            log.extend(&line);
        }
        self.publish(&log, root, path).map(Some)
    }

    /// Asks git. `None` where it needs longer than `limit` and may be asked again.
    fn facts_line(
        &self,
        log: &Log,
        root: &Path,
        session_id: &str,
        limit: Duration,
    ) -> Result<Option<Line>, ComposeError> {
        let (Some(start), Some(end), Some(times)) = (&log.start, &log.end, record::times(log)) else {
            return Err(ComposeError::NotALog(state::ended_log(root, session_id)));
        };
        let question = Question {
            checkout: &self.checkout,
            start: &start.at,
            end: &end.at,
            started_ms: times.started_ms,
            closed_ms: times.closed_ms,
        };
        let Answer { mut facts, out_of_time } = self.git.ask(&question, limit);
        // Later git may say more, but a record must not wait for ever for what this machine cannot tell.
        if out_of_time && (limit < FAIR || self.count_try(root, session_id) < TRIES) {
            return Ok(None);
        }
        let redactions = redact_facts(&mut facts);
        facts.resumes = self.ended_last(root, &start.opened.key, &start.opened.session_id);
        facts.record = state::record_path(times.started_ms, &start.opened.session_id, end.at.branch_in_name());
        let mut line = self.line(Kind::Facts, self.now(), Witness::Recovery)?;
        (line.at, line.facts, line.redactions) = (end.at.clone(), Some(facts), redactions);
        Ok(Some(line))
    }

    fn publish(&self, log: &Log, state_root: &Path, log_path: &Path) -> Result<Composed, ComposeError> {
        let not = || ComposeError::NotALog(log_path.into());
        let (start, facts) = (log.start.as_ref().ok_or_else(not)?, log.facts.as_ref().ok_or_else(not)?);
        let Some(root) = self.checkout.record_root() else { return Ok(Composed::NoWorktree) };
        if self.is_unused(log, facts) {
            self.disk.remove(log_path).map_err(StoreError::io("cannot remove", log_path))?;
            return Ok(Composed::Unused);
        }
        let text = record::render(log, &Setting { worktree: &self.checkout.name }).ok_or_else(not)?;
        let path = root.join(&facts.record);
        let folder = folder_of(&path);
        stay_inside(&root, folder)?;
        self.disk.make_folders(folder, false).map_err(StoreError::io("cannot make", folder))?;
        // Named by the session and written by whoever holds the log's lock: what a killed composer left is replaced.
        let half = folder.join(format!(".{}.half", start.opened.session_id));
        let written = self.disk.write_shared(&half, text.as_bytes()).and_then(|()| self.disk.rename_new(&half, &path));
        match written {
            Ok(()) => self.disk.sync_folder(folder).map_err(StoreError::io("cannot write", folder))?,
            Err(error) => {
                let _ = self.disk.remove(&half);
                if error.kind() != io::ErrorKind::AlreadyExists {
                    return Err(StoreError::io("cannot write", &path)(error).into());
                }
                let there = self.disk.read(&path, READ_MOST).map_err(StoreError::io("cannot read", &path))?;
                if !is_record_of(&there, log) {
                    return Err(ComposeError::Occupied(path));
                }
            }
        }
        self.disk.remove(log_path).map_err(StoreError::io("cannot remove", log_path))?;
        let _ = self.disk.remove(&tries(state_root, &start.opened.session_id));
        Ok(Composed::Published(facts.record.clone()))
    }

    /// Whether this is a session that the provider started and dropped for another that it resumed: no event after
    /// the start, no commit, no file, and git says so.
    fn is_unused(&self, log: &Log, facts: &Facts) -> bool {
        let (Some(start), Some(end)) = (&log.start, &log.end) else { return false };
        let provider = majordomus_providers::find(&start.opened.provider);
        let replaced = if end.ended.judged_ms.is_some() {
            start.opened.beside_resume || self.resumed_beside(&start.opened.provider, &start.stamp)
        } else {
            provider.is_some_and(|provider| provider.is_switch(&end.ended.reason))
        };
        let none = |list: Option<usize>| list == Some(0);
        start.witness == Witness::Hook
            && replaced
            && log.evidence_after_start == 0
            && none(facts.commits.as_ref().map(Vec::len))
            && none(facts.changed_files.as_ref().map(Vec::len))
    }

    /// Counts a failure that is not the whole disk's, and puts the log away after the third.
    fn failed(&self, error: ComposeError, root: &Path, session_id: &str) -> Result<Composed, ComposeError> {
        let environment = match &error {
            ComposeError::Store(StoreError::Io { source, .. }) => is_environment(source),
            // The folder's fault and not the log's; it may be mended at any time.
            ComposeError::LeadsOut(_) => true,
            ComposeError::Store(_) | ComposeError::Occupied(_) | ComposeError::NotALog(_) => false,
        };
        if environment {
            return Err(error);
        }
        if self.count_try(root, session_id) >= TRIES {
            let bad = root.join("bad");
            let (from, to) = (state::ended_log(root, session_id), bad.join(format!("{session_id}.jsonl")));
            if self.disk.make_folders(&bad, true).and_then(|()| self.disk.rename(&from, &to)).is_ok() {
                let _ = self.disk.remove(&tries(root, session_id));
                return Ok(Composed::Bad);
            }
        }
        Err(error)
    }

    /// Counts one more try of a session's record, and tells how many there were. 0 where that cannot be counted.
    fn count_try(&self, root: &Path, session_id: &str) -> u64 {
        let counted = self.disk.open(&tries(root, session_id), Open::Create).and_then(|mut file| {
            file.append(b"x")?;
            file.length()
        });
        counted.unwrap_or(0)
    }

    /// Lists the sessions that have ended and wait for their records, oldest first.
    ///
    /// # Errors
    /// [`StoreError::Io`] where a folder is there and cannot be read.
    pub fn waiting_records(&self) -> Result<Vec<String>, StoreError> {
        let mut ids: Vec<String> = self.logs("ended")?.iter().filter_map(|path| session_of(path)).collect();
        ids.sort_unstable();
        ids.dedup();
        Ok(ids)
    }

    /// Lists the sessions whose records could not be composed.
    ///
    /// # Errors
    /// [`StoreError::Io`] where a folder is there and cannot be read.
    pub fn bad_logs(&self) -> Result<Vec<PathBuf>, StoreError> {
        self.logs("bad")
    }
}

/// Counts the tries of a session's record by its length.
fn tries(root: &Path, session_id: &str) -> PathBuf {
    root.join("ended").join(format!("{session_id}.tries"))
}

fn session_of(path: &Path) -> Option<String> {
    path.file_stem().and_then(|stem| stem.to_str()).filter(|stem| state::is_session_id(stem)).map(Into::into)
}

fn redact_facts(facts: &mut Facts) -> u64 {
    let mut count = 0;
    for commit in facts.commits.iter_mut().flatten() {
        let (subject, replaced) = redact(&commit.subject);
        commit.subject = subject;
        count += replaced;
    }
    count
}

#[derive(Deserialize)]
struct Identity {
    session_id: String,
    provider: String,
    external_id: String,
}

fn is_record_of(bytes: &[u8], log: &Log) -> bool {
    let Some(start) = &log.start else { return false };
    let Some(front) = std::str::from_utf8(bytes).ok().and_then(front_matter) else { return false };
    serde_saphyr::from_str::<Identity>(front).is_ok_and(|there| {
        let opened = &start.opened;
        there.session_id == opened.session_id
            && there.provider == opened.provider
            && there.external_id == opened.external_id
    })
}

/// Finds the front matter of a Markdown file: what stands between its first line `---` and the next such line.
#[must_use]
pub fn front_matter(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("---\n").or_else(|| text.strip_prefix("---\r\n"))?;
    let end = rest
        .match_indices("\n---")
        .find(|(at, _)| matches!(rest.as_bytes().get(at + 4), None | Some(b'\n' | b'\r')))?;
    Some(&rest[..=end.0])
}

#[cfg(test)]
mod tests;
