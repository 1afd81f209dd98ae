//! Answers as bytes.

use std::borrow::Cow;

use majordomus_capability::project::mcp::Revision;

/// Error codes of JSON-RPC 2.0; majordomus has none of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Parse,
    InvalidRequest,
    UnknownMethod,
    InvalidParams,
    /// Also for what cannot be done now: there is no code for that.
    Internal,
}

impl Fault {
    fn code(self) -> &'static str {
        match self {
            Self::Parse => "-32700",
            Self::InvalidRequest => "-32600",
            Self::UnknownMethod => "-32601",
            Self::InvalidParams => "-32602",
            Self::Internal => "-32603",
        }
    }
}

/// Why a request has no result.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) fault: Fault,
    pub(crate) message: Cow<'static, str>,
}

impl Failure {
    pub(crate) fn new(fault: Fault, message: impl Into<Cow<'static, str>>) -> Self {
        Self { fault, message: message.into() }
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
    let message = serde_json::Value::from(failure.message.as_ref()).to_string();
    let rest = [r#","error":{"code":"#, failure.fault.code(), r#","message":"#, &message, "}}"];
    for part in [r#"{"jsonrpc":"2.0""#].iter().chain(id).chain(&rest) {
        out.extend_from_slice(part.as_bytes());
    }
}
