//! What callers hand to the board and what it answers.

use std::time::Duration;

use crate::ids::{EpisodeKey, IdError, PeerId, Provider};
use crate::peers::Peer;

/// One sitting, as the board shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionEpisode {
    /// What the client calls its sitting, verbatim.
    pub external_id: String,
    /// Who drew the boundary.
    pub provider: String,
    /// Which connection holds it; absent where nobody does, as far as could be seen.
    pub peer: Option<PeerId>,
    /// When it was opened: RFC 3339, UTC, milliseconds, `Z`.
    pub opened_at: String,
    /// Whole seconds awake since the last evidence.
    pub last_activity_seconds_ago: u64,
    /// How often a client has attached, the first time included.
    pub attachments: u32,
    /// Whether somebody holds it.
    pub state: ConnectionEpisodeState,
    /// What the driver last said about it, verbatim.
    pub repository: String,
}

/// Whether an episode is held. There is no closed state: a closed episode leaves the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ConnectionEpisodeState {
    /// A connection holds it, or its caller was heard not long ago.
    Open,
    /// Nobody holds it, or nobody was heard for a while; it waits for its client.
    Detached,
}

impl ConnectionEpisodeState {
    /// The word that surfaces show.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Detached => "detached",
        }
    }
}

/// A wish to hold an episode.
#[derive(Clone, Copy, Debug)]
pub struct AttachRequest<'a> {
    /// Who wants it.
    pub peer: &'a Peer,
    /// What the client durably calls its sitting.
    pub external_id: &'a str,
    /// Who drew the boundary.
    pub provider: &'a str,
    /// What the client says it is, for display.
    pub client: Option<&'a str>,
    /// The SHA-256 of the handle that was minted for this attachment, in hexadecimal.
    pub handle: Option<&'a str>,
    /// Whether the caller proves by its handle, or without one by its carrier, that it attached to this episode before a
    /// server's death.
    pub again: bool,
    /// The SHA-256 of the connection's own id, in hexadecimal, where its transport outlives a server.
    pub carrier: Option<&'a str>,
}

/// What became of an attach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attached {
    /// The episode that the peer now holds.
    pub episode: ConnectionEpisode,
    /// Whether the episode was there before this attachment.
    pub resumed: bool,
    /// Whether the repository durably has it.
    pub recorded: bool,
    /// Which connection held it until now.
    pub taken_over_from: Option<PeerId>,
    /// The episode that the peer held before and that now waits, detached.
    pub left: Option<ConnectionEpisode>,
    /// The episode that had to be closed under this id first, because it was already over.
    pub ended: Option<ConnectionEpisode>,
}

/// What became of a deliberate end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closed {
    /// The episode as it was at its end; `repository` is the driver's line.
    pub episode: ConnectionEpisode,
    /// Whether the end is durable. Where it is not and the driver failed, the board tries again by itself.
    pub recorded: bool,
}

/// What a message of a peer meant for the episode it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touch {
    /// The peer holds nothing; the message is no evidence.
    None,
    /// The message is evidence for the episode that the peer holds; it is shown as open again if it was not.
    Held,
    /// The peer held an episode until it was taken or closed from elsewhere, as far as this process has learnt. Said once.
    Lost {
        /// Which connection holds it now; absent where it was closed, or is another process's by now.
        by: Option<PeerId>,
    },
}

/// A detached episode that is known from an earlier server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adopted {
    /// Which episode.
    pub key: EpisodeKey,
    /// When it was opened: RFC 3339, UTC.
    pub opened_at: String,
    /// How often a client has attached.
    pub attachments: u32,
    /// How long before now its last evidence was.
    pub silent_for: Duration,
    /// How long it has already waited for its client, of its grace.
    pub waiting_for: Duration,
    /// What to show as `repository`.
    pub line: String,
}

/// Says why the board did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BoardError {
    /// The external id is not one.
    #[error(transparent)]
    InvalidId(#[from] IdError),
    /// No episode has that key.
    #[error("no open episode for {key}")]
    NotFound {
        /// The key that was asked for.
        key: EpisodeKey,
    },
    /// No id was given, and the peer holds nothing that could be meant.
    #[error("this connection holds no episode, and no external_id was given")]
    NotHeld,
    /// Somebody else holds the episode: only its holder, or an operator, may end it, and whom an earlier server knew does
    /// not take it back.
    #[error("the episode for {key} is held by {peer}")]
    HeldByOther {
        /// The episode's key.
        key: EpisodeKey,
        /// Who holds it.
        peer: PeerId,
    },
    /// Two connections keep taking the episode from each other; it stays with the one that has it.
    #[error("the episode for {key} is held by {peer}, which took it back: two clients use one external_id")]
    Conflict {
        /// The episode's key.
        key: EpisodeKey,
        /// Who holds it.
        peer: PeerId,
    },
    /// The driver is too busy or has not answered in time; a retry may help.
    #[error("{why}")]
    Unavailable {
        /// What the caller waited for.
        why: String,
    },
    /// An end could not be made durable; the board keeps the episode and tries again.
    #[error("{line}")]
    NotRecorded {
        /// What the driver said.
        line: String,
    },
}

/// What can name an episode.
///
/// A bare `&str` is an external id of [`Provider::GENERIC`]; a pair is provider and external id.
pub trait IntoKey {
    /// Checks the names and joins them.
    ///
    /// # Errors
    /// [`IdError`] where the external id is not one.
    fn into_key(self) -> Result<EpisodeKey, IdError>;
}

impl IntoKey for &str {
    fn into_key(self) -> Result<EpisodeKey, IdError> {
        EpisodeKey::new(Provider::GENERIC, self)
    }
}

impl IntoKey for (&str, &str) {
    fn into_key(self) -> Result<EpisodeKey, IdError> {
        EpisodeKey::new(self.0, self.1)
    }
}

impl IntoKey for EpisodeKey {
    fn into_key(self) -> Result<EpisodeKey, IdError> {
        Ok(self)
    }
}

impl IntoKey for &EpisodeKey {
    fn into_key(self) -> Result<EpisodeKey, IdError> {
        Ok(self.clone())
    }
}
