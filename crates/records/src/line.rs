//! One line of an event log.

use serde::{Deserialize, Serialize};

use crate::clock::Stamp;
use crate::facts::Facts;
use crate::witnessed::ClientProcess;

/// The version that this code writes.
pub const LINE_VERSION: u32 = 1;

/// What a line says happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The episode began.
    Start,
    /// A client joined it again.
    Attach,
    /// A connection showed its client at work.
    Seen,
    /// The client discarded context.
    Compact,
    /// A hook showed its client at work.
    Activity,
    /// The episode is over.
    End,
    /// What git said about it afterwards.
    Facts,
}

/// Who saw what a line says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Witness {
    /// A provider's hook.
    Hook,
    /// The client's own connection.
    Connection,
    /// A process that judged silence by comparing times.
    Reaper,
    /// A server that was told to stop.
    Shutdown,
    /// A person, by a command.
    Operator,
    /// A process that found what another one had left.
    Recovery,
}

impl Witness {
    /// The word that stands in logs and records.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hook => "hook",
            Self::Connection => "connection",
            Self::Reaper => "reaper",
            Self::Shutdown => "shutdown",
            Self::Operator => "operator",
            Self::Recovery => "recovery",
        }
    }
}

/// How a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndOutcome {
    /// Somebody ended it on purpose, and that was seen.
    Closed,
    /// Anything else.
    Interrupted,
}

impl EndOutcome {
    /// The word that stands in logs, records and reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Interrupted => "interrupted",
        }
    }

    /// Reads that word.
    pub(crate) fn of(word: &str) -> Option<Self> {
        [Self::Closed, Self::Interrupted].into_iter().find(|outcome| outcome.as_str() == word)
    }
}

/// Where HEAD stood.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The commit, as full hexadecimal; `None` while the branch is unborn.
    pub head: Option<String>,
    /// The branch's short name; `None` when detached.
    pub branch: Option<String>,
    /// The length in bytes of HEAD's reflog; `None` where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reflog: Option<u64>,
    /// Whether git's refs could not be read, so that what is `None` is unknown and not absent: a format other than
    /// files, or damage.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unreadable: bool,
}

impl Head {
    /// The branch as a record's file name has it; `None` when detached.
    #[must_use]
    pub fn branch_in_name(&self) -> Option<&str> {
        self.branch.as_deref().or(self.unreadable.then_some("unknown-branch"))
    }
}

/// What only the first line of a log says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opened {
    /// `s-<YYYYMMDDHHMMSS>-<8 hex>`.
    pub session_id: String,
    /// The hash that its files are found by, made of the id as the client gave it.
    pub key: String,
    /// Who drew the boundary.
    pub provider: String,
    /// What the client calls its sitting, with known secret shapes replaced.
    pub external_id: String,
    /// The session that this one continues, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumes: Option<String>,
    /// By which mark it was opened, where that came before its start or instead of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_mark: Option<Kind>,
    /// Whether the provider resumed another session at the same moment, so that this one may never be used.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub beside_resume: bool,
}

/// What only an end says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// How it ended, by the provider's own list of deliberate reasons.
    pub outcome: EndOutcome,
    /// Why, in the provider's word.
    pub reason: String,
    /// For an end that was judged by silence: the length in milliseconds that was judged. Such an end is void where
    /// younger evidence stands before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judged_ms: Option<u64>,
    /// Whether the provider's ends may come long after the sitting was over: then this one says nothing of when it was.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub late: bool,
    /// Whether the client's process was running when a hook said so; `None` where that could not be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<bool>,
    /// Whether the client's terminal was there; `None` where it had none or that could not be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal: Option<bool>,
}

impl Ended {
    /// An end of which nothing is said but how and why; `judged_ms` for silence.
    #[must_use]
    pub fn new(outcome: EndOutcome, reason: String, judged_ms: Option<u64>) -> Self {
        Self { outcome, reason, judged_ms, late: false, process: None, terminal: None }
    }
}

/// One line of an event log. Order is position in the file, never time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// The format's version.
    pub v: u32,
    /// 16 hexadecimal digits; a line that had to be written again keeps its id and counts once.
    pub id: String,
    /// What happened.
    pub kind: Kind,
    /// When.
    #[serde(flatten)]
    pub stamp: Stamp,
    /// Where HEAD stood.
    #[serde(flatten)]
    pub at: Head,
    /// Who saw it.
    pub witness: Witness,
    /// The connection, 32 hexadecimal digits and its number within its process; none for hooks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<String>,
    /// How long the connection was promised to be waited for once it is lost, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_ms: Option<u64>,
    /// What the client says it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// What the provider says it was caused by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Whether an attach took the episode from a connection that was still there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub took_over: bool,
    /// The SHA-256 of a handle that was minted for this attachment, in hexadecimal; none for a connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handle: Option<String>,
    /// Whether this is whom an earlier server knew, by its handle or else by its carrier: another connection, and no further
    /// attachment. By its carrier it is no evidence either, and time and HEAD are those of the last one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub again: bool,
    /// The SHA-256 of the connection's own id, in hexadecimal, where its transport outlives a server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carrier: Option<String>,
    /// The id of the line that had joined last when this one was decided on: with a carrier, and in an end that a
    /// connection's own process or a judge of silence says. Where another one stands between, the end did not happen, nor
    /// does the joining if that one is of the same carrier: its server was stopped, and the client has gone on at another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// The client's process, where a hook could tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<ClientProcess>,
    /// Whether that process left the conversation with this, which goes on or waits for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub left: bool,
    /// Only in a start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opened: Option<Opened>,
    /// Only in an end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Ended>,
    /// Only in facts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<Facts>,
    /// How many secrets were replaced in this line.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub redactions: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Line {
    /// Whether a connection only took its seat back at another server: nothing of its client was seen.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        self.again && self.handle.is_none() && self.carrier.is_some()
    }

    /// Writes the line as it is appended: newline, JSON, newline, so that a torn line before it cannot swallow it.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![b'\n'];
        serde_json::to_writer(&mut bytes, self).expect("a line holds only strings, numbers and string keys");
        bytes.push(b'\n');
        bytes
    }
}
