//! What clients can read by its URI.

use crate::context::Context;
use crate::descriptor::Reach;
use crate::refusal::Refusal;

/// Something that can be read by its URI, or a template of such.
#[derive(Clone, Copy, Debug)]
pub struct Resource {
    /// The URI, such as `majordomus://episodes`; with one part that is a `{name}` it is a template.
    pub uri: &'static str,
    /// One word for programs.
    pub name: &'static str,
    /// A few words for a person.
    pub title: &'static str,
    /// Sentences for a model: what it holds, and when to read it.
    pub description: &'static str,
    /// What its contents are.
    pub mime_type: &'static str,
    /// How long what was read may be kept.
    pub kept: Kept,
    /// How far reading it reaches.
    pub reach: Reach,
    /// Reads it; a template is given the value of its parameter, else the text is empty.
    pub read: fn(&Context, &str) -> Result<Contents, Refusal>,
    /// Values that a template's parameter may have, by what they begin with.
    pub complete: Option<Complete>,
    /// How it is seen to have changed.
    pub watch: Watch,
}

/// How something that can be read is seen to have changed.
#[derive(Clone, Copy, Debug)]
pub enum Watch {
    /// It never does.
    Never,
    /// By what reading it gives: JSON, of which ages are no change.
    Read,
    /// By something that costs less, given the value of a template's parameter.
    Mark(fn(&Context, &str) -> u64),
}

/// Finds values that an argument may have, by what they begin with; the likeliest first.
pub type Complete = fn(&Context, &str) -> Vec<String>;

/// What was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Contents {
    /// Text.
    Text(String),
    /// Bytes, in base64.
    Blob(String),
}

/// How long clients and those between may keep a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    /// For how many milliseconds.
    pub ttl_ms: u64,
    /// Whether whoever asks next may be given it too.
    pub public: bool,
}

impl Kept {
    /// A list that is fixed as long as the program is: long enough to be asked rarely, short enough for an upgrade.
    pub const DECLARATIONS: Self = Self { ttl_ms: 5 * 60 * 1000, public: true };
    /// A page that comes with the program.
    pub const PAGE: Self = Self { ttl_ms: 60 * 60 * 1000, public: true };
    /// What never changes again, and is nobody else's business.
    pub const RECORD: Self = Self { ttl_ms: 24 * 60 * 60 * 1000, public: false };
    /// What may be another thing at once.
    pub const LIVE: Self = Self { ttl_ms: 0, public: false };
}

impl Resource {
    /// Whether it is a template.
    #[must_use]
    pub fn is_template(&self) -> bool {
        self.uri.contains('{')
    }

    /// What stands before a template's parameter, its name, and what stands behind it.
    pub(crate) fn template(&self) -> Option<(&'static str, &'static str, &'static str)> {
        let (before, rest) = self.uri.split_once('{')?;
        let (name, behind) = rest.split_once('}')?;
        Some((before, name, behind))
    }

    /// The name of a template's parameter.
    #[must_use]
    pub fn parameter(&self) -> Option<&'static str> {
        self.template().map(|(_, name, _)| name)
    }

    /// The value that a URI gives the parameter, decoded; an empty text where it is this very URI; `None` where it is
    /// another one.
    #[must_use]
    pub fn value(&self, uri: &str) -> Option<String> {
        let Some((before, _, behind)) = self.template() else { return (uri == self.uri).then(String::new) };
        let value = uri.strip_prefix(before)?.strip_suffix(behind)?;
        if value.is_empty() || value.contains('/') { None } else { decoded(value) }
    }

    /// Whether some URI could be of both.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        let parts = |uri: &'static str| uri.split('/');
        let fits = |(one, other): (&str, &str)| one == other || one.starts_with('{') || other.starts_with('{');
        parts(self.uri).count() == parts(other.uri).count() && parts(self.uri).zip(parts(other.uri)).all(fits)
    }
}

/// Decodes what a URI writes with percent signs; `None` where that is no UTF-8.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        bytes.push(digit(rest.next())? << 4 | digit(rest.next())?);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests;
