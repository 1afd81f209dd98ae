//! What an event log says, read from its bytes.

use std::collections::HashSet;
use std::time::Duration;

use crate::clock::Stamp;
use crate::facts::Facts;
use crate::line::{Ended, Head, Kind, Line, Opened, Witness};
use crate::witnessed::ClientProcess;

/// An event log, folded into what it means. A pure function of the log's bytes.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// The counting start, if there is one.
    pub start: Option<Start>,
    /// When the client was last seen at work, and where HEAD stood then.
    pub last_evidence: Option<(Stamp, Head)>,
    /// The connection that joined last; `None` for hooks.
    pub connection: Option<String>,
    /// The carrier of whoever joined last; `None` where they gave none.
    pub carrier: Option<String>,
    /// How long that connection was promised to be waited for, in milliseconds.
    pub grace_ms: Option<u64>,
    /// The hashes of the handles that are good: those that were minted since somebody else joined last.
    pub handles: Vec<String>,
    /// What the client last said it is.
    pub client: Option<String>,
    /// How often a client attached, the start included.
    pub attachments: u32,
    /// How often an attach took the episode from a live connection.
    pub take_overs: u32,
    /// How often context was discarded.
    pub compactions: u32,
    /// The first counting end.
    pub end: Option<End>,
    /// The first facts after it.
    pub facts: Option<Facts>,
    /// How many secrets were replaced in the lines that count.
    pub redactions: u64,
    /// Whether a wall clock ran backwards between two lines, so that a shown time was moved forward.
    pub clock_adjusted: bool,
    /// How many lines did not parse.
    pub skipped: usize,
    /// The processes of the client that are in the conversation, as far as hooks could tell: the first to come first.
    pub processes: Vec<ClientProcess>,
    /// Those that were in it and have left it.
    pub processes_gone: Vec<ClientProcess>,
    /// Whether the client has gone on in another conversation, and may come back to this one.
    pub left: bool,
    /// Who saw the client at work, the first to do so first.
    pub witnesses: Vec<Witness>,
    /// How many pieces of evidence stand after the start.
    pub evidence_after_start: usize,
    /// The id of the line that joined last.
    joined: Option<String>,
    /// How long the machine had been awake when that was written.
    pub(crate) joined_up: u64,
    /// The last start that a hook told.
    told: Option<Told>,
    /// When context was last discarded, and by what that was triggered.
    compacted: Option<(Stamp, Option<String>)>,
    ids: HashSet<String>,
    latest: Option<Stamp>,
    /// The last evidence's stamp as it was written: what ages are counted from. The one that is shown may have been moved.
    written: Option<Stamp>,
    /// When a connection was last heard, as it was written: no hook.
    heard: Option<Stamp>,
}

/// A start as a hook told it.
#[derive(Clone, Debug)]
struct Told {
    /// `None` for any: a mark that came before its start says nothing of why that is.
    source: Option<Option<String>>,
    process: Option<ClientProcess>,
    stamp: Stamp,
}

impl Told {
    fn of(line: &Line) -> Option<Self> {
        let by_mark = line.opened.as_ref().is_some_and(|opened| opened.by_mark.is_some());
        let source = (!by_mark).then(|| line.source.clone());
        let by_hook = line.witness == Witness::Hook;
        by_hook.then(|| Self { source, process: line.process.clone(), stamp: line.stamp.clone() })
    }

    /// Whether a line tells the same start once more: clients run a hook twice, or from two files.
    fn is_told_again(&self, line: &Line) -> bool {
        let same = match (&self.process, &line.process) {
            (Some(one), Some(other)) => one.is(other),
            _ => true,
        };
        let apart = line.stamp.age_of(&self.stamp).max(self.stamp.age_of(&line.stamp));
        let source = self.source.as_ref().is_none_or(|source| *source == line.source);
        line.witness == Witness::Hook && same && source && apart <= TOLD_TWICE
    }
}

/// How far apart the same start is told twice.
const TOLD_TWICE: Duration = Duration::from_secs(5);

/// The counting start of a log.
#[derive(Clone, Debug)]
pub struct Start {
    /// Who, and under which session id.
    pub opened: Opened,
    /// When.
    pub stamp: Stamp,
    /// Where HEAD stood.
    pub at: Head,
    /// Who saw it.
    pub witness: Witness,
    /// What the provider says it was caused by.
    pub source: Option<String>,
}

/// The counting end of a log.
#[derive(Clone, Debug)]
pub struct End {
    /// How and why.
    pub ended: Ended,
    /// When it was written.
    pub stamp: Stamp,
    /// Where HEAD stood: at the end itself, or for silence at the last evidence.
    pub at: Head,
    /// Who saw it.
    pub witness: Witness,
    /// The connection, or its holder, that said so.
    pub connection: Option<String>,
    /// The id of its line.
    pub line_id: String,
}

/// How many handles of one episode are good at the same time; the oldest goes first.
pub const HANDLES_MAX: usize = 16;

/// By how much the wall clock may differ from the time since boot between two lines: a time server moves it gently.
const DRIFT_MS: u64 = 2_000;

impl Log {
    /// Reads a log. Lines that do not parse are counted and skipped wherever they stand.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Self {
        let mut log = Self::default();
        log.extend(bytes);
        log
    }

    /// Reads more of the same log, for instance what was appended after [`Log::parse`].
    pub fn extend(&mut self, bytes: &[u8]) {
        for line in bytes.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            match serde_json::from_slice::<Line>(line) {
                Ok(line) => self.take(line),
                Err(_) => self.skipped += 1,
            }
        }
    }

    /// The id of the line that joined last, for lines that are void where another joins before they are written.
    pub(crate) fn joined_last(&self) -> Option<String> {
        self.joined.clone()
    }

    /// Tells whether a line with this id counts in the log.
    #[must_use]
    pub fn counts(&self, line_id: &str) -> bool {
        self.ids.contains(line_id)
    }

    /// Returns the session's id, once the log has a start.
    #[must_use]
    pub fn session_id(&self) -> Option<&str> {
        self.start.as_ref().map(|start| start.opened.session_id.as_str())
    }

    /// Returns how long the client has been silent at `now`.
    #[must_use]
    pub fn silent_for(&self, now: &Stamp) -> Option<Duration> {
        self.age_at(now)
    }

    /// How old the last evidence is. Between boots only wall times are left, and the clock may have been set since or before:
    /// of the time as it was written and as it is shown, the one that says less.
    fn age_at(&self, now: &Stamp) -> Option<Duration> {
        let (shown, _) = self.last_evidence.as_ref()?;
        let written = self.written.as_ref().unwrap_or(shown);
        Some(now.age_of(written).min(now.age_of(shown)))
    }

    /// Whether a connection was heard later than `ago` before `now`.
    pub(crate) fn is_heard_since(&self, ago: Duration, now: &Stamp) -> bool {
        self.heard.as_ref().is_some_and(|heard| heard.is_after(ago, now))
    }

    /// Whether the episode began later than `ago` before `now`.
    pub(crate) fn began_since(&self, ago: Duration, now: &Stamp) -> bool {
        self.start.as_ref().is_some_and(|start| start.stamp.is_after(ago, now))
    }

    /// How long before `now` something was that its client did `ago`: never before what stands there. What another boot
    /// wrote was before that, whatever the wall clock was set to since.
    pub(crate) fn clamp(&self, ago: Duration, now: &Stamp) -> Duration {
        let within = self.written.as_ref().filter(|written| written.boot == now.boot);
        within.map_or(ago, |written| now.age_of(written).min(ago))
    }

    fn take(&mut self, line: Line) {
        if self.ids.contains(&line.id) {
            return;
        }
        if self.end.is_some() {
            if let (Kind::Facts, None, Some(facts)) = (line.kind, &self.facts, line.facts) {
                self.facts = Some(facts);
                self.redactions += line.redactions;
                self.ids.insert(line.id);
            }
            return;
        }
        match line.kind {
            Kind::Facts => {}
            Kind::End => self.take_end(line),
            Kind::Start if self.start.is_none() => {
                let Some(opened) = line.opened.clone() else { return };
                self.start = Some(Start {
                    opened,
                    stamp: line.stamp.clone(),
                    at: line.at.clone(),
                    witness: line.witness,
                    source: line.source.clone(),
                });
                self.attachments = 1;
                if line.opened.as_ref().is_some_and(|opened| opened.by_mark == Some(Kind::Compact)) {
                    self.compact(&line);
                }
                self.mint(&line);
                self.carrier.clone_from(&line.carrier);
                (self.joined, self.joined_up) = (Some(line.id.clone()), line.stamp.up_ms);
                self.told = Told::of(&line);
                self.enter(line.process.as_ref());
                self.evidence(line);
            }
            // Two processes may start one episode at once: the first line in the file is the start, the other a
            // client that joined.
            Kind::Start | Kind::Attach => {
                if self.start.is_none() || self.is_stale(&line) {
                    return;
                }
                let same = line.connection.is_some() && line.connection == self.connection
                    || line.carrier.is_some() && line.carrier == self.carrier;
                // A handle that stands there already was written by a call that could not tell so.
                let is_minted = line.handle.as_ref().is_some_and(|handle| !self.handles.contains(handle));
                // In a conversation whose hooks tell who comes and goes, a connection is a second witness, and no second client.
                let beside = line.connection.is_some()
                    && self.start.as_ref().is_some_and(|start| start.witness == Witness::Hook);
                let twice = !self.left && self.told.as_ref().is_some_and(|told| told.is_told_again(&line));
                if !line.again && !beside && !twice && (is_minted || !same) {
                    self.attachments = self.attachments.saturating_add(1);
                    self.take_overs += u32::from(line.took_over);
                    if line.handle.is_none() {
                        self.handles.clear();
                    }
                }
                self.mint(&line);
                self.carrier.clone_from(&line.carrier);
                (self.joined, self.joined_up) = (Some(line.id.clone()), line.stamp.up_ms);
                if line.witness == Witness::Hook {
                    self.told = Told::of(&line);
                    self.left = false;
                }
                self.enter(line.process.as_ref());
                if line.is_silent() {
                    self.join(line);
                } else {
                    self.evidence_after_start += 1;
                    self.evidence(line);
                }
            }
            Kind::Seen | Kind::Compact | Kind::Activity => {
                if self.start.is_none() {
                    return;
                }
                // After a take-over the loser's messages are no evidence.
                if line.kind == Kind::Seen && line.connection.is_some() && line.connection != self.connection {
                    return;
                }
                if line.kind == Kind::Compact {
                    self.compact(&line);
                }
                if line.left {
                    self.leave(line.process.as_ref());
                    self.left = self.processes.is_empty();
                }
                self.evidence_after_start += 1;
                let (connection, grace_ms) = (self.connection.take(), self.grace_ms);
                self.evidence(line);
                (self.connection, self.grace_ms) = (connection, grace_ms);
            }
        }
    }

    /// Whether a line that joins was decided on before something that it would have had to look at.
    fn is_stale(&self, line: &Line) -> bool {
        let its = line.carrier.is_some() && line.carrier == self.carrier;
        if its { line.after != self.joined } else { line.is_silent() }
    }

    /// Counts a compaction, once where a client tells it twice.
    fn compact(&mut self, line: &Line) {
        let apart = |last: &Stamp| line.stamp.age_of(last).max(last.age_of(&line.stamp));
        let twice = |(last, source): &(Stamp, Option<String>)| *source == line.source && apart(last) <= TOLD_TWICE;
        if !self.compacted.as_ref().is_some_and(twice) {
            self.compactions += 1;
        }
        self.compacted = Some((line.stamp.clone(), line.source.clone()));
    }

    fn enter(&mut self, process: Option<&ClientProcess>) {
        self.processes_gone.retain(|gone| !process.is_some_and(|new| new.is(gone)));
        self.processes.extend(process.filter(|new| !self.processes.iter().any(|known| known.is(new))).cloned());
    }

    fn leave(&mut self, process: Option<&ClientProcess>) {
        let Some(process) = process else { return };
        self.processes.retain(|known| !known.is(process));
        if !self.processes_gone.iter().any(|known| known.is(process)) {
            self.processes_gone.push(process.clone());
        }
    }

    fn mint(&mut self, line: &Line) {
        self.handles.extend(line.handle.clone().filter(|handle| !self.handles.contains(handle)));
        if self.handles.len() > HANDLES_MAX {
            self.handles.remove(0);
        }
    }

    fn take_end(&mut self, line: Line) {
        if self.start.is_none() || (line.after.is_some() && line.after != self.joined) {
            return;
        }
        let Some(ended) = line.ended else { return };
        if let (Some(judged_ms), Some(age)) = (ended.judged_ms, self.age_at(&line.stamp))
            && age < Duration::from_millis(judged_ms)
        {
            return;
        }
        self.redactions += line.redactions;
        let at = match &self.last_evidence {
            Some((_, at)) if ended.judged_ms.is_some() || ended.late => at.clone(),
            _ => line.at,
        };
        self.ids.insert(line.id.clone());
        let stamp = self.forward(line.stamp);
        self.end = Some(End { ended, stamp, at, witness: line.witness, connection: line.connection, line_id: line.id });
    }

    fn evidence(&mut self, line: Line) {
        let by_connection = line.connection.is_some();
        if !self.witnesses.contains(&line.witness) {
            self.witnesses.push(line.witness);
        }
        let (stamp, at) = self.join(line);
        if by_connection {
            self.heard = Some(stamp.clone());
        }
        self.written = Some(stamp.clone());
        let stamp = self.forward(stamp);
        self.last_evidence = Some((stamp, at));
    }

    /// Takes in whose line it is; returns when it was, and where HEAD stood.
    fn join(&mut self, line: Line) -> (Stamp, Head) {
        self.redactions += line.redactions;
        self.connection = line.connection;
        self.grace_ms = line.grace_ms;
        self.client = line.client.or(self.client.take());
        self.ids.insert(line.id);
        (line.stamp, line.at)
    }

    /// Keeps wall times from jumping. Within one boot they go on as the machine ran and slept since the line before,
    /// whatever somebody has set the clock to; between boots they do not run backwards.
    fn forward(&mut self, mut stamp: Stamp) -> Stamp {
        if let Some(before) = &self.latest {
            let expected = stamp.expected_wall_ms(before).unwrap_or(stamp.wall_ms.max(before.wall_ms));
            if stamp.wall_ms.abs_diff(expected) > DRIFT_MS {
                stamp.wall_ms = expected;
                self.clock_adjusted = true;
            }
            stamp.wall_ms = stamp.wall_ms.max(before.wall_ms);
        }
        self.latest = Some(stamp.clone());
        stamp
    }
}

#[cfg(test)]
mod tests;
