//! Why a payload gives no event, and what to do about it.

use std::fmt;

use crate::EventKind;

/// Says why a payload gives no event. No text repeats a value of the payload other than an event name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// Nothing but white space.
    #[error("the payload is empty; the hook must get one JSON object on standard input")]
    Empty,
    /// The bytes end inside a value.
    #[error(
        "the payload ends after {bytes} bytes, in the middle of its JSON value; send the whole object before closing standard input"
    )]
    Truncated {
        /// How many bytes there were.
        bytes: usize,
    },
    /// The bytes are not JSON.
    #[error("the payload is not JSON ({fault} at line {line}, column {column}); send one JSON object and nothing else")]
    Invalid {
        /// What the parser met.
        fault: String,
        /// The line, from 1.
        line: usize,
        /// The byte in that line, from 1.
        column: usize,
    },
    /// A JSON value of another kind.
    #[error("the payload is {found}; send one JSON object")]
    NotAnObject {
        /// What it is, with its article.
        found: &'static str,
    },
    /// No field carries an id.
    #[error("the payload names no session: looked for {}, found {keys_present}; check that --provider names the agent that ran this hook", list(.looked_for))]
    NoId {
        /// The fields that would have carried it.
        looked_for: &'static [&'static str],
        /// The fields that are there.
        keys_present: KeysPresent,
    },
    /// An id that could be mistaken for another or that no record can carry.
    #[error(
        "the session id in {field} cannot be used: {problem}; it must be one line of 1 to 256 characters that is the same in every event of the session"
    )]
    BadId {
        /// The field that carries it.
        field: &'static str,
        /// What is wrong with it.
        problem: IdProblem,
    },
    /// The payload belongs to another event than the one asked for.
    #[error(
        "the payload is of the event {found}, which is no {asked} event of this provider; use --event {serves} where that hook is declared"
    )]
    OtherEvent {
        /// The kind that the command line asked for.
        asked: EventKind,
        /// The native event name, escaped and bounded.
        found: String,
        /// The kind that this event serves.
        serves: EventKind,
    },
    /// Its hooks could be recorded, but nobody has found out yet how its payloads are spelled.
    #[error("the payload is of {provider}, whose hooks this version cannot read; nothing of it is recorded")]
    Unadapted {
        /// The provider's id.
        provider: &'static str,
    },
    /// Nothing draws a boundary for this provider.
    #[error(
        "sittings of {provider} cannot be recorded by a hook; remove the hook, or name the agent that ran it with --provider"
    )]
    NotOffered {
        /// The provider's id.
        provider: &'static str,
    },
}

/// Says what is wrong with an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdProblem {
    /// It has no characters.
    #[error("it is empty")]
    Empty,
    /// It has more than 256 characters.
    #[error("it is longer than 256 characters")]
    TooLong,
    /// It has a control character or a line separator.
    #[error("it holds the control character U+{code:04X}")]
    Control {
        /// The character's code.
        code: u32,
    },
    /// It is neither a string nor a number.
    #[error("it is {found}")]
    NotText {
        /// What it is, with its article.
        found: &'static str,
    },
    /// It holds bytes or escapes that are no character, so that two such ids could look the same.
    #[error("it is not valid Unicode")]
    NotUnicode,
    /// The payload gives it more than once, differently.
    #[error("it is given twice with two values")]
    Twice,
}

/// Lists the names of a payload's fields: at most 20, each escaped and at most 64 characters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeysPresent {
    names: Vec<String>,
    more: usize,
}

impl KeysPresent {
    /// The most names that are kept.
    pub const MAX: usize = 20;
    const NAME_MAX_CHARS: usize = 64;

    /// Returns the names, in the payload's order.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns how many further fields there were.
    #[must_use]
    pub fn more(&self) -> usize {
        self.more
    }

    pub(crate) fn push(&mut self, name: &[u8]) {
        if self.names.len() == Self::MAX {
            self.more += 1;
            return;
        }
        // A character is at most four bytes, so what is cut off here would not be shown anyway.
        let shown = &name[..name.len().min(4 * Self::NAME_MAX_CHARS + 4)];
        self.names.push(escaped(&String::from_utf8_lossy(shown), Self::NAME_MAX_CHARS));
    }
}

impl fmt::Display for KeysPresent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.names.is_empty() {
            return f.write_str("no fields");
        }
        f.write_str(&self.names.join(", "))?;
        if self.more > 0 {
            write!(f, " and {} more", self.more)?;
        }
        Ok(())
    }
}

/// Escapes what a terminal or a log line could take for its own, and keeps at most `max` characters of the result.
pub(crate) fn escaped(text: &str, max: usize) -> String {
    bounded(&text.escape_debug().take(max + 1).collect::<String>(), max)
}

/// Keeps at most `max` characters; a text that was cut ends with an ellipsis.
pub(crate) fn bounded(text: &str, max: usize) -> String {
    if text.chars().nth(max).is_none() {
        return text.to_owned();
    }
    text.chars().take(max - 1).chain(['…']).collect()
}

fn list(names: &[&str]) -> String {
    names.join(", ")
}

#[cfg(test)]
mod tests;
