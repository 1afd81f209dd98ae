//! Refusals: one table of codes, and the one place where a board's error becomes one.

use std::fmt;

use majordomus_episodes_core::board::BoardError;

use crate::handles;

/// The most characters a refusal's message may have; what is longer is cut.
const MESSAGE_MAX: usize = 400;

/// What kind of refusal it is. The words, statuses and retry hints are part of the public interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    /// The arguments are wrong in themselves.
    InvalidInput,
    /// What the arguments name does not exist.
    NotFound,
    /// The arguments are fine and the rules say no.
    Refused,
    /// The caller may not do this.
    Forbidden,
    /// Somebody else's doing stands in the way.
    Conflict,
    /// Not now.
    Unavailable,
    /// A bug.
    Internal,
}

impl Code {
    /// Every code, in the table's order.
    pub const ALL: [Self; 7] = [
        Self::InvalidInput,
        Self::NotFound,
        Self::Refused,
        Self::Forbidden,
        Self::Conflict,
        Self::Unavailable,
        Self::Internal,
    ];

    /// The word, the HTTP status, whether the same call may succeed later, and what it means: the table.
    const fn row(self) -> (&'static str, u16, bool, &'static str) {
        match self {
            Self::InvalidInput => ("invalid_input", 400, false, "The arguments are wrong in themselves."),
            Self::NotFound => ("not_found", 404, false, "What the arguments name does not exist."),
            Self::Refused => ("refused", 422, false, "The arguments are fine and the rules say no."),
            Self::Forbidden => ("forbidden", 403, false, "The caller may not do this."),
            Self::Conflict => ("conflict", 409, false, "Somebody else's doing stands in the way."),
            Self::Unavailable => ("unavailable", 503, true, "Not now."),
            Self::Internal => ("internal", 500, false, "A bug."),
        }
    }

    /// The word that stands in answers.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.row().0
    }

    /// The HTTP status.
    #[must_use]
    pub const fn status(self) -> u16 {
        self.row().1
    }

    /// Whether the same call, unchanged, may succeed later.
    #[must_use]
    pub const fn retry(self) -> bool {
        self.row().2
    }

    /// What it means, in a sentence.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        self.row().3
    }
}

/// Says why a call was refused, in words for whoever called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What kind it is.
    pub code: Code,
    /// What is wrong, on what.
    pub message: String,
    /// What to do instead, where that is known.
    pub hint: Option<String>,
}

impl Refusal {
    /// Refuses with `message`, of which control characters are escaped and the excess over one line is cut.
    #[must_use]
    pub fn new(code: Code, message: impl fmt::Display) -> Self {
        Self { code, message: printable(&handles::masked(&message.to_string()), MESSAGE_MAX), hint: None }
    }

    /// Adds what to do instead.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl From<BoardError> for Refusal {
    fn from(error: BoardError) -> Self {
        let (code, hint) = match &error {
            BoardError::InvalidId(_) => (Code::InvalidInput, None),
            BoardError::NotFound { .. } => (Code::NotFound, Some("list the episodes to see which are there")),
            BoardError::NotHeld => {
                (Code::NotFound, Some("attach first, or give the external_id of an episode nobody holds"))
            }
            BoardError::HeldByOther { .. } => (Code::Forbidden, Some("only its holder, or an operator, may end it")),
            BoardError::Conflict { .. } => {
                (Code::Conflict, Some("use an external_id that belongs to this conversation alone"))
            }
            BoardError::Unavailable { .. } => (Code::Unavailable, Some("call again in a few seconds")),
            BoardError::NotRecorded { .. } => (
                Code::Unavailable,
                Some("the end is tried again without you; calling again shows whether it succeeded"),
            ),
        };
        let refusal = Self::new(code, &error);
        hint.map_or(refusal.clone(), |hint| refusal.hint(hint))
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code.as_str(), self.message)?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, " (hint: {hint})"))
    }
}

impl std::error::Error for Refusal {}

/// Escapes what does not belong on one line and cuts what is longer than `max` characters.
pub(crate) fn printable(text: &str, max: usize) -> String {
    let mut line = String::new();
    for (at, char) in text.chars().enumerate() {
        if at == max {
            line.push('…');
            break;
        }
        if char.is_control()
            || matches!(char, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        {
            line.extend(char.escape_unicode());
        } else {
            line.push(char);
        }
    }
    line
}

#[cfg(test)]
mod tests;
