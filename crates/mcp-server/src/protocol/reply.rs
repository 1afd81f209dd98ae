//! Answers as bytes.

use std::borrow::Cow;

use majordomus_capability::project::mcp::Revision;
use serde_json::Value;

/// Error codes of JSON-RPC 2.0 and of the protocol; majordomus has none of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Parse,
    InvalidRequest,
    UnknownMethod,
    InvalidParams,
    /// Also for what cannot be done now: there is no code for that.
    Internal,
    /// Nothing is there to be read, as sessions are told it.
    NoResource,
    /// A header does not say what the message says.
    HeaderMismatch,
    /// The client does not declare what the tool needs of it.
    MissingCapability,
    /// A revision that is not spoken, of those that are complete in themselves.
    UnsupportedVersion,
}

impl Fault {
    fn code(self) -> &'static str {
        match self {
            Self::Parse => "-32700",
            Self::InvalidRequest => "-32600",
            Self::UnknownMethod => "-32601",
            Self::InvalidParams => "-32602",
            Self::Internal => "-32603",
            Self::NoResource => "-32002",
            Self::HeaderMismatch => "-32020",
            Self::MissingCapability => "-32021",
            Self::UnsupportedVersion => "-32022",
        }
    }
}

/// Why a request has no result.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) fault: Fault,
    pub(crate) message: Cow<'static, str>,
    /// What programs can read of it.
    pub(crate) data: Option<Box<Value>>,
}

impl Failure {
    pub(crate) fn new(fault: Fault, message: impl Into<Cow<'static, str>>) -> Self {
        Self { fault, message: message.into(), data: None }
    }

    pub(crate) fn with(self, data: Value) -> Self {
        Self { data: Some(data.into()), ..self }
    }
}

/// Writes a response with a result that is already JSON on one line.
pub(crate) fn result(out: &mut Vec<u8>, id: &str, result: &str) {
    // What stands around the two, and a newline.
    out.reserve(id.len() + result.len() + 40);
    for part in [r#"{"jsonrpc":"2.0","id":"#, id, r#","result":"#, result, "}"] {
        out.extend_from_slice(part.as_bytes());
    }
}

/// Writes an error about the request with that id.
pub(crate) fn error(out: &mut Vec<u8>, id: &str, failure: &Failure) {
    about(out, &[r#","id":"#, id], failure);
}

/// Writes an error about something whose id could not be read, as that revision wants it; `null` while none is known.
pub(crate) fn error_without_id(out: &mut Vec<u8>, revision: Option<Revision>, failure: &Failure) {
    let null = revision.is_none_or(Revision::has_null_ids);
    about(out, if null { &[r#","id":null"#] } else { &[] }, failure);
}

fn about(out: &mut Vec<u8>, id: &[&str], failure: &Failure) {
    let message = Value::from(failure.message.as_ref()).to_string();
    let data = failure.data.as_ref().map_or_else(String::new, |data| format!(r#","data":{data}"#));
    let rest = [r#","error":{"code":"#, failure.fault.code(), r#","message":"#, &message, &data, "}}"];
    for part in [r#"{"jsonrpc":"2.0""#].iter().chain(id).chain(&rest) {
        out.extend_from_slice(part.as_bytes());
    }
}
