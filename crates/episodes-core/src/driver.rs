//! What opens and closes the repository's own episode.

use std::time::Duration;

use crate::ids::{EpisodeKey, PeerId};

/// Why an episode is closed.
///
/// It is reported to the repository as the end's reason, where the provider's deliberate list decides between
/// `closed` and `interrupted`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CloseReason {
    /// The holder, or somebody allowed to, ended it on purpose.
    Detach,
    /// The server was told to stop by its operator.
    Shutdown,
    /// Nobody came back within the grace, or nobody was heard for too long.
    Expired,
}

impl CloseReason {
    /// The word that stands in payloads, logs and records.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Detach => "detach",
            Self::Shutdown => "shutdown",
            Self::Expired => "expired",
        }
    }
}

/// What the board asks a driver to open or to join again.
#[derive(Clone, Debug)]
pub struct Opening {
    /// Which episode.
    pub key: EpisodeKey,
    /// Which connection of this process now holds it.
    pub peer: PeerId,
    /// What the client says it is, for display.
    pub client: Option<String>,
    /// The SHA-256 of the handle that was minted for this attachment, in hexadecimal. It is to become durable, and
    /// earlier ones stay good.
    pub handle: Option<String>,
    /// Whether this is whom an earlier server knew, by its handle or its carrier: another connection, and no further
    /// attachment.
    pub again: bool,
    /// The SHA-256 of the connection's own id, in hexadecimal, where its transport outlives a server. It is to become
    /// durable, so that the next server knows who comes back; with [`again`](Self::again) and no handle it is by this
    /// that an earlier one knew it, and then nothing is evidence.
    pub carrier: Option<String>,
    /// Whether it was taken from another connection of this process that still held it. Of those the board knows better
    /// than the repository who does.
    pub took_over: bool,
    /// Whether the connection holds it already by what this process knows, and asks once more: nothing is to be written
    /// unless somebody else has it by now.
    pub repeated: bool,
    /// How long before now its client was last heard: a call that is tried again is no evidence.
    pub ago: Duration,
    /// How long before now it was first asked for; longer than a moment only where it is tried again. Unless it is
    /// [`again`](Self::again), it then takes nothing from a connection to another process that was heard since.
    pub asked_ago: Duration,
}

/// What the board asks a driver to close.
#[derive(Clone, Debug)]
pub struct Closing {
    /// Which episode.
    pub key: EpisodeKey,
    /// Why.
    pub reason: CloseReason,
    /// Whether an operator asked for it, rather than the episode's own client or the server.
    pub by_operator: bool,
    /// How long before now the last evidence was, as far as this process saw it; `None` where it saw none.
    pub last_evidence_ago: Option<Duration>,
    /// How long before now it was first asked for: what began after that is another one, and goes on.
    pub asked_ago: Duration,
    /// Only for [`CloseReason::Expired`]: what was judged; `None` where somebody says so of an episode that is held.
    pub judged: Option<Judged>,
}

/// By which length the board judged that an episode is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Judged {
    /// The grace, or how long silence may last.
    pub limit: Duration,
    /// How long before now its connection or last stream was seen to go, less what was excused, where the length is counted
    /// from that and not from the last evidence.
    pub since_loss: Option<Duration>,
}

/// Evidence of a client at work, told to the driver at most once per interval and episode.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Which episode.
    pub key: EpisodeKey,
    /// Which connection of this process holds or held it; `None` only to ask whether it still waits for anybody here.
    pub peer: Option<PeerId>,
    /// How long before now the last evidence was.
    pub ago: Duration,
}

/// Says that a connection has let an episode go while this process lives on.
#[derive(Clone, Debug)]
pub struct Left {
    /// Which episode.
    pub key: EpisodeKey,
    /// Which connection of this process held it.
    pub peer: PeerId,
    /// How long before now, less what was excused: its grace runs from then.
    pub ago: Duration,
}

/// What became of a driver's call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is durable.
    Recorded,
    /// There is nothing to record, now or later: no repository, or nothing open under that key.
    Nothing,
    /// Only for a repeated opening: it is this connection's still, and nothing was written.
    Unchanged,
    /// It is no more this board's to speak of. For an opening by whom an earlier server knew, or one that is tried again:
    /// that episode is over, or somebody else's by now. For [`CloseReason::Expired`]: a connection to another process
    /// holds it.
    Gone,
    /// It could not be recorded; the board keeps the episode, says so, and asks again.
    Failed,
    /// Only for [`CloseReason::Expired`]: the repository knows of later evidence or of a holder elsewhere, so the
    /// episode is not over; ask again after this long.
    NotOver(Duration),
}

/// A driver's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// What to show as the episode's `repository`, verbatim.
    pub line: String,
    /// What became of the call.
    pub outcome: Outcome,
    /// What the repository knows of an opened episode, where that is more than this process does.
    pub known: Option<Known>,
}

/// What a repository durably knows of an open episode, so that a server that never saw it begin tells the truth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// When it was opened, RFC 3339 UTC.
    pub opened_at: String,
    /// How often a client has attached, this time included; `None` where the driver cannot tell.
    pub attachments: Option<u32>,
    /// Whether it was there before this call.
    pub resumed: bool,
}

/// Opens and closes the repository's own episode.
///
/// The board calls it outside its lock, never twice at once for one key, and never waits longer than its limit.
pub trait EpisodeDriver: Send + Sync {
    /// Opens the episode, or joins the one that is open under that key.
    fn open(&self, opening: &Opening) -> Report;

    /// Closes the episode.
    fn close(&self, closing: &Closing) -> Report;

    /// Notes evidence, and that the episode is held; called from the board's deadline list at most once per interval
    /// and episode, once when a connection goes, and at once where one that was told to be gone is not. Best effort.
    ///
    /// Returns whether the episode is still that connection's, as far as is known. Where it is not, because it is over or
    /// was attached through another process, the board forgets it: whoever it believed to hold it has lost it.
    fn seen(&self, _seen: &Seen) -> bool {
        true
    }

    /// Notes that a connection has let the episode go; undone by the next [`open`](Self::open) or [`seen`](Self::seen)
    /// of that key. Called after all evidence up to then, and once more where a gap was excused since. Best effort.
    ///
    /// Returns what [`seen`](Self::seen) does.
    fn left(&self, _left: &Left) -> bool {
        true
    }
}

/// A driver that records nothing: the board without a repository behind it.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullDriver;

impl EpisodeDriver for NullDriver {
    fn open(&self, _opening: &Opening) -> Report {
        nothing()
    }

    fn close(&self, _closing: &Closing) -> Report {
        nothing()
    }
}

fn nothing() -> Report {
    Report {
        line: "no episode was recorded: this board has no repository".into(),
        outcome: Outcome::Nothing,
        known: None,
    }
}
