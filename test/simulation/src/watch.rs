//! Whoever watches from outside: reads the disk after every step and holds it against what really happened.

mod invariants;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use majordomus_records::clock::Stamp;
use majordomus_records::line::EndOutcome;
use majordomus_records::log::Log;

use crate::disk::Platter;
use crate::run::Tally;
use crate::server::Place;
use crate::truth::{At, BY_CONNECTION, Key, Truth};

/// What turned out not to be true.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wrong {
    /// The sentence that should be.
    pub(crate) sentence: &'static str,
    /// How it is instead.
    pub(crate) what: String,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.sentence, self.what)
    }
}

/// What the log of a session said when it had ended.
#[derive(Clone, Debug)]
struct Ended {
    key: Key,
    outcome: &'static str,
    reason: String,
    witness: &'static str,
    judged_ms: Option<u64>,
    started_at: At,
    stamp: Stamp,
    last_evidence: At,
    attachments: u32,
    /// Its times as a record has to say them: started, last active, closed.
    times: [String; 3],
    /// Whether nothing happened in it after its start.
    is_empty: bool,
}

impl Ended {
    /// Whether nothing happened in it before another session was resumed, so that it leaves no record.
    fn may_be_unused(&self, resumes: &[Stamp]) -> bool {
        let beside = |resume: &Stamp| {
            let resume = At::of(resume);
            resume.boot == self.started_at.boot && resume.up_ms.abs_diff(self.started_at.up_ms) <= 5_000
        };
        self.key.provider != BY_CONNECTION && self.is_empty && (self.reason == "resume" || resumes.iter().any(beside))
    }
}

/// A record, as its front matter has it.
#[derive(Clone, Debug)]
struct Record {
    fields: BTreeMap<String, String>,
}

impl Record {
    fn field(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", String::as_str)
    }
}

/// The watcher.
#[derive(Debug)]
pub(crate) struct Watch {
    state: PathBuf,
    records_folder: PathBuf,
    logs: BTreeMap<PathBuf, Log>,
    /// The bytes that were read of each.
    read: BTreeMap<PathBuf, Vec<u8>>,
    records: BTreeMap<PathBuf, Record>,
    ended: BTreeMap<String, Ended>,
    /// Sessions that somebody was told have been followed by another one.
    followed: BTreeSet<String>,
    /// Sessions whose logs were on the disk, but for those that went with the power and that nobody was told of.
    seen: BTreeMap<String, Key>,
    power_lost: bool,
    /// What has ended since the last look.
    fresh: Vec<String>,
}

impl Watch {
    pub(crate) fn new(place: &Place) -> Self {
        Self {
            state: place.state(),
            records_folder: place.records(),
            logs: BTreeMap::new(),
            read: BTreeMap::new(),
            records: BTreeMap::new(),
            ended: BTreeMap::new(),
            followed: BTreeSet::new(),
            seen: BTreeMap::new(),
            power_lost: false,
            fresh: Vec::new(),
        }
    }

    pub(crate) fn must_have_ended(&mut self, session_id: &str) {
        self.followed.insert(session_id.into());
    }

    pub(crate) fn power_lost(&mut self) {
        self.power_lost = true;
    }

    /// Looks at what has changed, and judges.
    pub(crate) fn look(&mut self, platter: &Platter, truth: &mut Truth) -> Result<(), Wrong> {
        for bytes in platter.take_removed() {
            self.take_log(&Log::parse(&bytes));
        }
        for path in platter.take_changed() {
            self.look_at(platter, path);
        }
        if std::mem::take(&mut self.power_lost) {
            self.forget_what_is_gone(truth);
        }
        invariants::hold(self, truth)?;
        for session_id in std::mem::take(&mut self.fresh) {
            if let Some(ended) = self.ended.get(&session_id) {
                truth.release(&ended.key, At::of(&ended.stamp));
            }
        }
        Ok(())
    }

    fn look_at(&mut self, platter: &Platter, path: PathBuf) {
        let is = |extension: &str| path.extension().is_some_and(|found| found == extension);
        if is("jsonl") && path.starts_with(&self.state) {
            let before = self.read.remove(&path).zip(self.logs.remove(&path));
            let Some(bytes) = platter.peek(&path) else { return };
            // A log only grows, but for a loss of power.
            let log = match before {
                Some((read, mut log)) if bytes.starts_with(&read) => {
                    log.extend(&bytes[read.len()..]);
                    log
                }
                _ => Log::parse(&bytes),
            };
            self.take_log(&log);
            if log.start.is_some() {
                self.read.insert(path.clone(), bytes);
                self.logs.insert(path, log);
            }
        } else if is("md") && path.starts_with(&self.records_folder) {
            match platter.peek(&path) {
                Some(bytes) => drop(self.records.insert(path, front_matter(&bytes))),
                None => drop(self.records.remove(&path)),
            }
        }
    }

    fn take_log(&mut self, log: &Log) {
        let (Some(session_id), Some(key)) = (log.session_id(), key_of(log)) else { return };
        self.seen.insert(session_id.into(), key);
        // Once it is published, the record says how it was, whatever comes back of its log after a loss of power.
        if self.record_of(session_id).is_some() && self.ended.contains_key(session_id) {
            return;
        }
        if let Some(ended) = ended(log)
            && self.ended.insert(session_id.into(), ended).is_none()
        {
            self.fresh.push(session_id.into());
        }
    }

    /// After a loss of power only what is on the disk counts, and what somebody was told.
    fn forget_what_is_gone(&mut self, truth: &Truth) {
        let there: BTreeMap<&str, &Log> =
            self.logs.values().filter_map(|log| log.session_id().map(|id| (id, log))).collect();
        let recorded: BTreeSet<&str> = self.records.values().map(|record| record.field("session_id")).collect();
        self.seen.retain(|id, _| there.contains_key(&**id) || recorded.contains(&**id) || truth.told.contains_key(id));
        let (seen, resumes) = (&self.seen, &truth.resumes);
        self.ended.retain(|id, ended| match there.get(&**id) {
            Some(log) => log.end.is_some(),
            // Its log was removed because nothing had happened in it.
            None => recorded.contains(&**id) || (seen.contains_key(id) && ended.may_be_unused(resumes)),
        });
        self.fresh.retain(|id| self.ended.contains_key(id));
    }

    /// What must be true when everything was finished that can be.
    pub(crate) fn the_end(&self, truth: &Truth) -> Result<(), Wrong> {
        invariants::hold_in_the_end(self, truth)
    }

    /// Counts what the records say.
    pub(crate) fn count(&self, tally: &mut Tally) {
        let count = |wanted: &dyn Fn(&Ended) -> bool| self.ended.values().filter(|ended| wanted(ended)).count() as u64;
        tally.sessions = self.seen.len() as u64;
        tally.closed = count(&|ended| ended.outcome == "closed");
        tally.expired = count(&|ended| ended.judged_ms.is_some());
        tally.shut_down = count(&|ended| ended.reason == "shutdown");
        let take_overs = self.records.values().map(|record| record.field("take_overs").parse().unwrap_or(0));
        tally.take_overs = take_overs.sum();
    }

    fn log_of(&self, session_id: &str) -> Option<(&Path, &Log)> {
        let found = self.logs.iter().find(|(_, log)| log.session_id() == Some(session_id));
        found.map(|(path, log)| (path.as_path(), log))
    }

    fn record_of(&self, session_id: &str) -> Option<&Record> {
        self.records.values().find(|record| record.field("session_id") == session_id)
    }
}

fn key_of(log: &Log) -> Option<Key> {
    let opened = &log.start.as_ref()?.opened;
    Some(Key { provider: opened.provider.clone(), id: opened.external_id.clone() })
}

fn ended(log: &Log) -> Option<Ended> {
    let (start, end) = (log.start.as_ref()?, log.end.as_ref()?);
    let (last, _) = log.last_evidence.as_ref()?;
    let at_work = matches!(end.witness.as_str(), "hook" | "connection") && end.ended.judged_ms.is_none();
    let last_active = if at_work { end.stamp.wall_ms } else { last.wall_ms };
    let closed = if end.ended.outcome == EndOutcome::Closed { end.stamp.wall_ms } else { last_active };
    Some(Ended {
        key: key_of(log)?,
        outcome: end.ended.outcome.as_str(),
        reason: end.ended.reason.clone(),
        witness: end.witness.as_str(),
        judged_ms: end.ended.judged_ms,
        started_at: At::of(&start.stamp),
        stamp: end.stamp.clone(),
        last_evidence: At::of(last),
        attachments: log.attachments,
        times: [start.stamp.wall_ms, last_active, closed].map(majordomus_records::clock::rfc3339),
        is_empty: log.evidence_after_start == 0,
    })
}

fn front_matter(bytes: &[u8]) -> Record {
    let text = String::from_utf8_lossy(bytes);
    let lines = text.lines().skip(1).take_while(|line| *line != "---");
    let fields = lines.filter_map(|line| line.split_once(": "));
    Record { fields: fields.map(|(name, value)| (name.into(), value.trim_matches('"').into())).collect() }
}
