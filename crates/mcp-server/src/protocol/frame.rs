//! One line of JSON-RPC 2.0, read once and shallowly: ids and parameters stay the bytes that came.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::fmt;

use majordomus_capability::project::mcp::Era;
use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::error::Category;
use serde_json::value::RawValue;

/// The most messages of one batch: a short line must not cost a long answer without end.
pub const BATCH_MAX: usize = 100;

/// What one line holds.
#[derive(Debug)]
pub(crate) enum Line<'a> {
    /// Nothing but space.
    Blank,
    /// Something that is not JSON in UTF-8.
    Broken,
    /// One message, or something that should have been one.
    One(Frame<'a>),
    /// An array: its elements, read only where `batches` was asked for.
    Batch(Vec<Frame<'a>>),
    /// An array of more than [`BATCH_MAX`] elements: of so many.
    TooMany(usize),
}

/// One message.
#[derive(Debug)]
pub(crate) enum Frame<'a> {
    /// It wants exactly one answer.
    Request(Request<'a>),
    /// It wants none.
    Notification {
        /// The id of the request that it says nobody waits for any more.
        cancels: Option<&'a str>,
    },
    /// It answers a request that we never made.
    Response,
    /// It is no message; whoever sent it is told, under its id where one can be read.
    Invalid { id: Option<&'a str>, why: &'static str },
}

#[derive(Debug)]
pub(crate) struct Request<'a> {
    /// A string or an integer, byte for byte.
    pub(crate) id: &'a str,
    pub(crate) method: Cow<'a, str>,
    pub(crate) params: Option<&'a RawValue>,
    /// The parameters of a `tools/call`, once somebody has asked for them.
    called: OnceCell<Option<Called<'a>>>,
    /// What it says of itself, once somebody has asked.
    meta: OnceCell<Option<Meta<'a>>>,
}

/// What a `tools/call` calls.
#[derive(Debug)]
pub(crate) struct Called<'a> {
    /// The tool; absent where its name is none.
    pub(crate) name: Option<Cow<'a, str>>,
    pub(crate) arguments: Option<&'a RawValue>,
    /// What the client says besides, of this call alone.
    pub(crate) meta: Option<&'a RawValue>,
}

/// What a request that is complete in itself says of itself, unread.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct Meta<'a> {
    /// The revision; without it the request is none of those.
    #[serde(borrow, rename = "io.modelcontextprotocol/protocolVersion")]
    pub(crate) version: Option<&'a RawValue>,
    #[serde(borrow, rename = "io.modelcontextprotocol/clientCapabilities")]
    pub(crate) capabilities: Option<&'a RawValue>,
    #[serde(borrow, rename = "io.modelcontextprotocol/clientInfo")]
    pub(crate) client: Option<&'a RawValue>,
    /// The handle that names its caller.
    #[serde(borrow, rename = "dev.majordomus/episode-handle")]
    pub(crate) handle: Option<&'a RawValue>,
}

/// Reads a line; the elements of an array only where `batches`, because elsewhere it is refused as a whole.
pub(crate) fn read(line: &[u8], batches: bool) -> Line<'_> {
    // Some shells and editors put a byte order mark in front of what they pipe.
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    let Ok(text) = std::str::from_utf8(line) else {
        return Line::Broken;
    };
    let text = text.trim_matches([' ', '\t', '\r', '\n']);
    match text.as_bytes().first() {
        None => Line::Blank,
        Some(b'{') => object(text).map_or(Line::Broken, Line::One),
        Some(b'[') if batches => serde_json::from_str::<Elements<'_>>(text).map_or(Line::Broken, Line::from),
        Some(b'[') if serde_json::from_str::<IgnoredAny>(text).is_ok() => Line::Batch(Vec::new()),
        Some(_) if serde_json::from_str::<IgnoredAny>(text).is_ok() => Line::One(not_an_object()),
        Some(_) => Line::Broken,
    }
}

fn not_an_object<'a>() -> Frame<'a> {
    Frame::Invalid { id: None, why: "a message is a JSON object" }
}

/// The elements of an array: as many as a batch may have, and how many there are.
struct Elements<'a> {
    first: Vec<&'a RawValue>,
    count: usize,
}

impl<'de> Deserialize<'de> for Elements<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Few;

        impl<'de> Visitor<'de> for Few {
            type Value = Elements<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<Self::Value, A::Error> {
                let mut first = Vec::new();
                while first.len() < BATCH_MAX
                    && let Some(element) = array.next_element()?
                {
                    first.push(element);
                }
                let mut count = first.len();
                // Millions of elements are only counted: what is refused takes no memory.
                while array.next_element::<IgnoredAny>()?.is_some() {
                    count += 1;
                }
                Ok(Elements { first, count })
            }
        }

        deserializer.deserialize_seq(Few)
    }
}

impl<'a> From<Elements<'a>> for Line<'a> {
    fn from(elements: Elements<'a>) -> Self {
        if elements.count > BATCH_MAX {
            return Self::TooMany(elements.count);
        }
        let read = |element: &'a RawValue| {
            Some(element.get()).filter(|text| text.starts_with('{')).and_then(object).unwrap_or_else(not_an_object)
        };
        Self::Batch(elements.first.into_iter().map(read).collect())
    }
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
        return Some(Frame::Notification { cancels: cancelled(method, envelope.params) });
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
    Some(Frame::Request(Request { id, method, params, called: OnceCell::new(), meta: OnceCell::new() }))
}

/// The member of `_meta` that makes a request a modern one.
const VERSION_META: &str = "io.modelcontextprotocol/protocolVersion";

impl<'a> Request<'a> {
    /// What it calls, if it is a `tools/call` whose parameters can be read; read once.
    pub(crate) fn called(&self) -> Option<&Called<'a>> {
        #[derive(Default, Deserialize)]
        struct Params<'a> {
            #[serde(borrow)]
            name: Option<&'a RawValue>,
            #[serde(borrow)]
            arguments: Option<&'a RawValue>,
            #[serde(borrow, rename = "_meta")]
            meta: Option<&'a RawValue>,
        }
        let read = || {
            let params: Params<'a> = params(self.params)?;
            let name = params.name.and_then(string);
            Some(Called { name, arguments: params.arguments, meta: params.meta })
        };
        self.called.get_or_init(|| if self.method == "tools/call" { read() } else { None }).as_ref()
    }

    /// The era that the request itself belongs to, whatever came before it: one client may speak both.
    pub(crate) fn era(&self) -> Era {
        if self.meta().is_some() { Era::Modern } else { Era::Legacy }
    }

    /// What it says of itself, if it is complete in itself; read once.
    pub(crate) fn meta(&self) -> Option<&Meta<'a>> {
        #[derive(Deserialize)]
        struct Params<'a> {
            #[serde(borrow, rename = "_meta")]
            meta: Option<Meta<'a>>,
        }
        let read = || {
            // The name in it could also be written with escapes; who does that is no client that wants to be understood.
            let text = self.params.map(RawValue::get).filter(|params| params.contains(VERSION_META))?;
            let params: Params<'a> = serde_json::from_str(text).ok()?;
            params.meta.filter(|meta| meta.version.is_some())
        };
        self.meta.get_or_init(read).as_ref()
    }
}

/// The id that a cancellation names.
fn cancelled<'a>(method: &RawValue, params: Option<&'a RawValue>) -> Option<&'a str> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params<'a> {
        #[serde(borrow)]
        request_id: &'a RawValue,
    }
    let params = params.filter(|_| method.get() == "\"notifications/cancelled\"")?;
    serde_json::from_str::<Params<'_>>(params.get()).ok().map(|params| params.request_id.get())
}

/// Whether the raw value is a string or an integer.
fn is_id(raw: &str) -> bool {
    let digits = raw.strip_prefix('-').unwrap_or(raw);
    raw.starts_with('"') || digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Reads parameters: an object, or nothing at all; `None` for whatever else there is.
pub(crate) fn params<'a, P: Default + Deserialize<'a>>(raw: Option<&'a RawValue>) -> Option<P> {
    let Some(raw) = raw else {
        return Some(P::default());
    };
    // serde would also take an array for a struct, member by member.
    raw.get().starts_with('{').then(|| serde_json::from_str(raw.get()).ok()).flatten()
}

/// The raw value as a string, if it is one.
pub(crate) fn string(raw: &RawValue) -> Option<Cow<'_, str>> {
    let inner = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') { serde_json::from_str(raw.get()).ok().map(Cow::Owned) } else { Some(Cow::Borrowed(inner)) }
}
