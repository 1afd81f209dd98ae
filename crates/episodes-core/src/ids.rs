//! Names of providers, sittings and connections.

use std::fmt;
use std::sync::Arc;

/// The most characters an external id may have.
pub const EXTERNAL_ID_MAX_CHARS: usize = 256;

/// Says why a string cannot be an external id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// The string is empty.
    #[error("external_id is empty; give the id that this conversation durably has, 1 to 256 characters on one line")]
    Empty,
    /// The string is longer than [`EXTERNAL_ID_MAX_CHARS`].
    #[error("external_id has {0} characters; at most 256 are allowed")]
    TooLong(usize),
    /// The string holds a control character or a line separator.
    #[error("external_id holds a control character (U+{0:04X}) at character {1}; give one line of printable text")]
    Control(u32, usize),
}

/// What a client durably calls its own sitting: one line of 1 to 256 characters without control characters, verbatim.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExternalId(Arc<str>);

impl ExternalId {
    /// Checks `id` and keeps it as it is.
    ///
    /// # Errors
    /// [`IdError`] where it is empty, too long or not one printable line.
    pub fn new(id: &str) -> Result<Self, IdError> {
        if id.is_empty() {
            return Err(IdError::Empty);
        }
        let mut count = 0;
        for (at, char) in id.chars().enumerate() {
            if char.is_control() || matches!(char, '\u{2028}' | '\u{2029}') {
                return Err(IdError::Control(char as u32, at));
            }
            count = at + 1;
        }
        if count > EXTERNAL_ID_MAX_CHARS {
            return Err(IdError::TooLong(count));
        }
        Ok(Self(id.into()))
    }

    /// The id, verbatim.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ExternalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for ExternalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Who drew an episode's boundary: `claude-code`, `codex`, … or `generic`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Provider(Arc<str>);

impl Provider {
    /// The provider of a connection whose maker is not known from declared data.
    pub const GENERIC: &'static str = "generic";

    /// Names a provider; whether it is declared is not this crate's to know.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self(name.into())
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What an episode is found by.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EpisodeKey {
    /// Who drew the boundary.
    pub provider: Provider,
    /// What the client calls its sitting.
    pub external_id: ExternalId,
}

impl EpisodeKey {
    /// Joins a provider's name and an external id.
    ///
    /// # Errors
    /// [`IdError`] where `external_id` is not one.
    pub fn new(provider: &str, external_id: &str) -> Result<Self, IdError> {
        Ok(Self { provider: Provider::new(provider), external_id: ExternalId::new(external_id)? })
    }
}

impl fmt::Display for EpisodeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.provider, self.external_id)
    }
}

/// This process's name for one connection: `p1`, `p2`, … in attachment order. Never an identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PeerId(pub(crate) u64);

impl PeerId {
    /// The running number, from 1.
    #[must_use]
    pub fn number(self) -> u64 {
        self.0
    }
}

impl fmt::Display for PeerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "p{}", self.0)
    }
}
