//! What joins the board of a server to the repository: in this process, or through the command.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use majordomus_episodes_core::driver::{Closing, Judged, Known, Left, Opening, Outcome, Report, Seen};
use majordomus_episodes_core::{CloseReason, EpisodeDriver, EpisodeKey, PeerId};
use majordomus_providers::EventKind;

use crate::append::holder_id;
use crate::capture::{self, CaptureError, Captured, Event};
use crate::clock::rfc3339;
use crate::ending::EndedAs;
use crate::holder::Holder;
use crate::joining::Whose;
use crate::state::key_hash;
use crate::store::{Silence, Store, StoreError};

/// Records a server's episodes into its checkout, by the same function that the command runs.
pub struct RecordDriver {
    store: Store,
    holder: Holder,
    /// Sessions that have ended and whose records still wait.
    waiting: Mutex<Vec<String>>,
}

impl RecordDriver {
    /// Makes a driver for the episodes of a checkout. Writes nothing yet.
    ///
    /// # Errors
    /// [`StoreError::Random`] where the machine has no random bytes.
    pub fn new(store: Store) -> Result<Self, StoreError> {
        Ok(Self { store, holder: Holder::new(holder_id()?), waiting: Mutex::default() })
    }

    /// The episodes it records into.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// What other processes know this one by as a holder: for those that are connected to it, to be noted as dead by.
    #[must_use]
    pub fn holder_id(&self) -> &str {
        self.holder.id()
    }

    /// Writes the beat by which other processes know since when this one is gone.
    pub fn beat(&self) {
        // A beat that cannot be written costs a part of a grace, no truth.
        let _ = self.holder.beat(&self.store.now());
    }

    /// Leaves: notes since when the connections are gone, or takes the note away where nothing waits for them.
    pub fn leave(&self) {
        let own = |open: &crate::store::OpenEpisode| {
            open.log.connection.as_deref().is_some_and(|connection| connection.starts_with(self.holder.id()))
        };
        match self.store.open_episodes() {
            Ok(open) if !open.iter().any(own) => self.holder.leave(self.store.disk()),
            _ => self.holder.retire(&self.store.now()),
        }
    }

    /// Composes the records of the sessions that ended here and did not fit into the time at once, for at most `limit`
    /// in all. What is left is done by whoever comes next.
    pub fn compose_waiting(&self, limit: Duration) {
        let until = Instant::now() + limit;
        let waiting = std::mem::take(&mut *self.waiting());
        for session_id in waiting {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || self.store.compose(&session_id, left).is_err() {
                self.waiting().push(session_id);
            }
        }
    }

    /// Says no more of an episode that is not this process's.
    fn forget(&self, key: &EpisodeKey) {
        self.holder.forget(&self.store.now(), &key_hash(key));
    }

    /// Whether an episode that another process's client has left still waits for it.
    fn waits(&self, key: &EpisodeKey) -> bool {
        self.store.find(key).map_or(true, |open| open.is_some_and(|open| open.silence != Silence::Held))
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, Vec<String>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, key: &EpisodeKey, kind: EventKind, with: With<'_>) -> Report {
        let Some(provider) = majordomus_providers::find(key.provider.as_str()) else {
            return failed(&CaptureError::UnknownProvider(key.provider.to_string()));
        };
        let event = Event {
            provider,
            kind,
            key,
            source: (kind == EventKind::Start).then_some("attach"),
            reason: with.reason.map(CloseReason::as_str),
            client_process: None,
            connection: Some((&self.holder, with.peer.map_or(0, PeerId::number))),
            client: with.client,
            handle: with.handle,
            again: with.again,
            carrier: with.carrier,
            took_over: with.took_over,
            repeated: with.repeated,
            by_operator: with.by_operator,
            last_evidence_ago: with.last_evidence_ago,
            asked_ago: with.asked_ago,
            judged: with.judged,
        };
        match capture::record(&self.store, &event) {
            Ok(captured) => {
                let line = capture::report(&event, &captured);
                self.follow(captured, line, with.reason)
            }
            Err(error @ StoreError::Gone) => Report { outcome: Outcome::Gone, ..failed(&error.into()) },
            Err(error) => failed(&error.into()),
        }
    }

    fn follow(&self, captured: Captured, line: String, reason: Option<CloseReason>) -> Report {
        match captured {
            Captured::Joined(joined) => {
                self.waiting().extend(joined.ended);
                if joined.unchanged {
                    return Report { line, outcome: Outcome::Unchanged, known: None };
                }
                let known = Known {
                    opened_at: rfc3339(joined.opened_ms),
                    attachments: Some(joined.attachments),
                    resumed: joined.kept,
                };
                Report { line, outcome: Outcome::Recorded, known: Some(known) }
            }
            Captured::Marked { .. } | Captured::JustEnded { .. } => {
                Report { line, outcome: Outcome::Recorded, known: None }
            }
            Captured::Ended(EndedAs::Ended { session_id, .. }) => {
                if capture::compose_at_once(&self.store, &session_id).is_none() {
                    self.waiting().push(session_id);
                }
                Report { line, outcome: Outcome::Recorded, known: None }
            }
            Captured::Ended(EndedAs::NothingOpen { waiting }) => {
                self.waiting().extend(waiting);
                Report { line, outcome: Outcome::Nothing, known: None }
            }
            Captured::Ended(EndedAs::NotOver(left)) => Report { line, outcome: Outcome::NotOver(left), known: None },
            Captured::Ended(EndedAs::HeldElsewhere) if reason == Some(CloseReason::Expired) => {
                Report { line, outcome: Outcome::Gone, known: None }
            }
            Captured::Ended(EndedAs::GoesOn { .. }) => Report { line, outcome: Outcome::Gone, known: None },
            Captured::Ended(EndedAs::HeldElsewhere) => Report { line, outcome: Outcome::Nothing, known: None },
        }
    }
}

#[derive(Default)]
struct With<'a> {
    peer: Option<PeerId>,
    client: Option<&'a str>,
    handle: Option<&'a str>,
    again: bool,
    carrier: Option<&'a str>,
    took_over: bool,
    repeated: bool,
    reason: Option<CloseReason>,
    by_operator: bool,
    last_evidence_ago: Option<Duration>,
    asked_ago: Duration,
    judged: Option<Judged>,
}

impl EpisodeDriver for RecordDriver {
    fn open(&self, opening: &Opening) -> Report {
        let with = With {
            peer: Some(opening.peer),
            client: opening.client.as_deref(),
            handle: opening.handle.as_deref(),
            again: opening.again,
            carrier: opening.carrier.as_deref(),
            took_over: opening.took_over,
            repeated: opening.repeated,
            last_evidence_ago: Some(opening.ago),
            asked_ago: opening.asked_ago,
            ..With::default()
        };
        self.run(&opening.key, EventKind::Start, with)
    }

    fn close(&self, closing: &Closing) -> Report {
        let with = With {
            reason: Some(closing.reason),
            by_operator: closing.by_operator,
            last_evidence_ago: closing.last_evidence_ago,
            asked_ago: closing.asked_ago,
            judged: closing.judged,
            ..With::default()
        };
        let report = self.run(&closing.key, EventKind::End, with);
        // Also where somebody else has ended it: what this process says of it is asked for by nobody.
        if matches!(report.outcome, Outcome::Recorded | Outcome::Nothing | Outcome::Gone) {
            self.forget(&closing.key);
        }
        report
    }

    fn seen(&self, seen: &Seen) -> bool {
        let Some(peer) = seen.peer else { return self.waits(&seen.key) };
        match self.store.seen(&seen.key, (self.holder.id(), peer.number()), seen.ago) {
            Ok(Whose::Its) if !self.holder.holds(&key_hash(&seen.key)) => {
                // Where this cannot be written, others still judge by the evidence.
                let _ = self.store.hold(&self.holder, self.store.state().preferred(), &self.store.now(), &seen.key);
            }
            // Evidence that cannot be written now is in the next line; nothing waits for it.
            Ok(Whose::Its | Whose::Beside) | Err(_) => {}
            Ok(Whose::Others) => {
                self.forget(&seen.key);
                return false;
            }
        }
        true
    }

    fn left(&self, left: &Left) -> bool {
        // Of one that cannot be read it is still true that this process has let it go.
        if let Ok(Whose::Others) = self.store.whose(&left.key, (self.holder.id(), left.peer.number())) {
            self.forget(&left.key);
            return false;
        }
        let now = self.store.now();
        let since = now.before(left.ago);
        self.holder.let_go(&now, &key_hash(&left.key), since, self.store.policy().own_grace());
        true
    }
}

fn failed(error: &CaptureError) -> Report {
    let outcome = if error.may_pass() { Outcome::Failed } else { Outcome::Nothing };
    Report { line: capture::not_recorded(error), outcome, known: None }
}

/// Records nothing and says why: what a server has outside a repository.
#[derive(Clone, Debug)]
pub struct Unrecorded(String);

impl Unrecorded {
    /// Says that nothing is recorded because of `why`.
    #[must_use]
    pub fn because(why: CaptureError) -> Self {
        Self(capture::not_recorded(&why))
    }

    fn report(&self) -> Report {
        Report { line: self.0.clone(), outcome: Outcome::Nothing, known: None }
    }
}

impl EpisodeDriver for Unrecorded {
    fn open(&self, _opening: &Opening) -> Report {
        self.report()
    }

    fn close(&self, _closing: &Closing) -> Report {
        self.report()
    }
}

/// Records a server's episodes by running `majordomus capture session`, as a hook does.
#[derive(Clone, Debug)]
pub struct ToolDriver {
    program: PathBuf,
    folder: PathBuf,
}

impl ToolDriver {
    /// Runs `program` in `folder`, which lies in the checkout to record into.
    #[must_use]
    pub fn new(program: PathBuf, folder: PathBuf) -> Self {
        Self { program, folder }
    }

    fn run(&self, key: &EpisodeKey, event: &str, about: (&str, &str)) -> Report {
        match self.call(key, event, about) {
            Ok(line) => understood(line),
            Err(error) => {
                let line = format!("no episode was recorded: cannot run {}: {error}", self.program.display());
                Report { line, outcome: Outcome::Failed, known: None }
            }
        }
    }

    fn call(&self, key: &EpisodeKey, event: &str, about: (&str, &str)) -> std::io::Result<String> {
        let mut child = Command::new(&self.program)
            .args(["capture", "session", "--provider", key.provider.as_str(), "--event", event])
            .current_dir(&self.folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let payload = serde_json::json!({ "session_id": key.external_id.as_str(), about.0: about.1 });
        if let Some(mut stdin) = child.stdin.take() {
            // A program that does not read says what it made of that on stderr.
            let _ = stdin.write_all(payload.to_string().as_bytes());
        }
        let output = child.wait_with_output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        let last = said.lines().map(str::trim).rfind(|line| !line.is_empty());
        Ok(last.map_or_else(|| format!("no episode was recorded: {} said nothing", self.program.display()), Into::into))
    }
}

/// Reads what the command reported. It names no count of attachments, so that stays the board's own.
fn understood(line: String) -> Report {
    let mut words = line.split(' ');
    let (outcome, known) = match (words.next(), words.next(), words.next()) {
        (Some("session"), Some(_), Some(how @ ("opened" | "kept,"))) => {
            let resumed = how == "kept,";
            // "opened at T", "kept, open since T".
            let at = words.nth(if resumed { 2 } else { 1 }).map(str::to_owned);
            (Outcome::Recorded, at.map(|opened_at| Known { opened_at, attachments: None, resumed }))
        }
        (Some("session"), ..) | (Some("episode"), Some("closed"), _) => (Outcome::Recorded, None),
        (Some("no"), Some("open"), _) => (Outcome::Nothing, None),
        _ if line.ends_with("is not in a git repository") => (Outcome::Nothing, None),
        _ => (Outcome::Failed, None),
    };
    Report { line, outcome, known }
}

impl EpisodeDriver for ToolDriver {
    fn open(&self, opening: &Opening) -> Report {
        if opening.repeated {
            // The command knows of no connection, so it would take this for another attach.
            return Report { line: String::new(), outcome: Outcome::Unchanged, known: None };
        }
        self.run(&opening.key, "start", ("source", "attach"))
    }

    fn close(&self, closing: &Closing) -> Report {
        self.run(&closing.key, "end", ("reason", closing.reason.as_str()))
    }
}

#[cfg(test)]
mod tests;
