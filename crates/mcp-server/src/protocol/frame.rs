//! One line of JSON-RPC 2.0, read once and shallowly: ids and parameters stay the bytes that came.

use std::borrow::Cow;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::error::Category;
use serde_json::value::RawValue;

/// What one line holds.
#[derive(Debug)]
pub(super) enum Line<'a> {
    /// Nothing but space.
    Blank,
    /// Something that is not JSON in UTF-8.
    Broken,
    /// One message, or something that should have been one.
    One(Frame<'a>),
    /// An array: its elements, read only where `batches` was asked for.
    Batch(Vec<Frame<'a>>),
}

/// One message.
#[derive(Debug)]
pub(super) enum Frame<'a> {
    /// It wants exactly one answer.
    Request(Request<'a>),
    /// It wants none.
    Notification,
    /// It answers a request that we never made.
    Response,
    /// It is no message; whoever sent it is told, under its id where one can be read.
    Invalid { id: Option<&'a str>, why: &'static str },
}

#[derive(Debug)]
pub(super) struct Request<'a> {
    /// A string or an integer, byte for byte.
    pub(super) id: &'a str,
    pub(super) method: Cow<'a, str>,
    pub(super) params: Option<&'a RawValue>,
}

/// Reads a line; the elements of an array only where `batches`, because elsewhere it is refused as a whole.
pub(super) fn read(line: &[u8], batches: bool) -> Line<'_> {
    // Some shells and editors put a byte order mark in front of what they pipe.
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    let Ok(text) = std::str::from_utf8(line) else {
        return Line::Broken;
    };
    let text = text.trim_matches([' ', '\t', '\r', '\n']);
    match text.as_bytes().first() {
        None => Line::Blank,
        Some(b'{') => object(text).map_or(Line::Broken, Line::One),
        Some(b'[') if batches => {
            serde_json::from_str::<Vec<&RawValue>>(text).map_or(Line::Broken, |elements| Line::Batch(all(&elements)))
        }
        Some(b'[') if serde_json::from_str::<IgnoredAny>(text).is_ok() => Line::Batch(Vec::new()),
        Some(_) if serde_json::from_str::<IgnoredAny>(text).is_ok() => Line::One(NOT_AN_OBJECT),
        Some(_) => Line::Broken,
    }
}

const NOT_AN_OBJECT: Frame<'static> = Frame::Invalid { id: None, why: "a message is a JSON object" };

fn all<'a>(elements: &[&'a RawValue]) -> Vec<Frame<'a>> {
    elements
        .iter()
        .map(|element| {
            Some(element.get()).filter(|text| text.starts_with('{')).and_then(object).unwrap_or(NOT_AN_OBJECT)
        })
        .collect()
}

/// The members of a message, unread. A member that is there and `null` is there.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    method: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Reads an object; `None` where it is not JSON.
fn object(text: &str) -> Option<Frame<'_>> {
    let envelope = match serde_json::from_str::<Envelope<'_>>(text) {
        Ok(envelope) => envelope,
        Err(error) => {
            return match error.classify() {
                Category::Data => Some(Frame::Invalid { id: None, why: "a member of the message is there twice" }),
                Category::Io | Category::Syntax | Category::Eof => None,
            };
        }
    };
    let id = envelope.id.map(RawValue::get);
    let known = id.filter(|id| is_id(id));
    let invalid = |why| Some(Frame::Invalid { id: known, why });
    let Some(method) = envelope.method else {
        let response = envelope.result.is_some() || envelope.error.is_some();
        return if response { Some(Frame::Response) } else { invalid("the message has no method") };
    };
    let Some(id) = id else {
        return Some(Frame::Notification);
    };
    if !is_id(id) {
        return invalid("the id is neither a string nor an integer");
    }
    if envelope.jsonrpc.is_none_or(|version| version.get() != "\"2.0\"") {
        return invalid("jsonrpc is not \"2.0\"");
    }
    let Some(method) = string(method) else {
        return invalid("the method is not a string");
    };
    let params = envelope.params.filter(|params| params.get() != "null");
    Some(Frame::Request(Request { id, method, params }))
}

/// Whether the raw value is a string or an integer.
fn is_id(raw: &str) -> bool {
    let digits = raw.strip_prefix('-').unwrap_or(raw);
    raw.starts_with('"') || digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// The raw value as a string, if it is one.
pub(super) fn string(raw: &RawValue) -> Option<Cow<'_, str>> {
    let inner = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') { serde_json::from_str(raw.get()).ok().map(Cow::Owned) } else { Some(Cow::Borrowed(inner)) }
}
