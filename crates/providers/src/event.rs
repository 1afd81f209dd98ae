//! What a payload says, in the product's own words.

use std::fmt;
use std::str::FromStr;

/// Names what a hook reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// A sitting starts, or goes on after it was left.
    Start,
    /// A sitting ends.
    End,
    /// The conversation is made shorter inside a running sitting.
    Compact,
    /// The client is at work.
    Activity,
}

impl EventKind {
    /// Every kind, in the order in which a command line lists them.
    pub const ALL: [Self; 4] = [Self::Start, Self::End, Self::Compact, Self::Activity];

    /// Returns the word of the command line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::End => "end",
            Self::Compact => "compact",
            Self::Activity => "activity",
        }
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for EventKind {
    type Err = UnknownEventKind;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text).ok_or(UnknownEventKind)
    }
}

/// Says that a word names no [`EventKind`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no such event; give start, end, compact or activity")]
pub struct UnknownEventKind;

/// Holds what one payload says. Every text is the client's own, verbatim, and hostile until proved otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookEvent {
    /// What it is: what was asked for, unless the payload shows that it is less than that. What happens inside a subagent is
    /// activity of the sitting around it, and so is a compaction that discards nothing.
    pub kind: EventKind,
    /// What the client durably calls its sitting: one line of 1 to 256 characters without control characters.
    pub external_id: String,
    /// The working directory, as given: possibly relative, empty or gone.
    pub cwd: Option<String>,
    /// Why the sitting starts, or by what its context is discarded; at most 256 characters.
    pub source: Option<String>,
    /// Why the sitting ends, at most 256 characters.
    pub reason: Option<String>,
    /// The native event name, at most 256 characters.
    pub native_event: Option<String>,
    /// The connection that witnessed it, at most 256 characters; only in a connection's own payload.
    pub connection: Option<String>,
}

#[cfg(test)]
mod tests;
