//! HTTP: capabilities as routes, refusals as statuses with a body that programs can read.
//!
//! Everything here is a function of the registry and of bytes; a transport moves the bytes.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::arguments;
use crate::context::Context;
use crate::descriptor::{Method, Route};
use crate::handles;
use crate::refusal::{Code, Refusal};
use crate::registry::Capability;

/// The request header that can carry a handle instead of the argument `episode_handle`.
pub const HANDLE_HEADER: &str = "majordomus-episode-handle";

/// The argument that it stands for.
pub const HANDLE_ARGUMENT: &str = handles::ARGUMENT;

/// The parts of one request that carry arguments.
#[derive(Clone, Copy, Debug, Default)]
pub struct Parts<'a> {
    /// The values of the path's parameters, decoded, by name.
    pub path: &'a [(&'a str, &'a str)],
    /// The query string as it came, without its question mark.
    pub query: Option<&'a str>,
    /// The body as it came; empty where there was none.
    pub body: &'a [u8],
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The HTTP status.
    pub status: u16,
    /// A JSON object on one line.
    pub body: String,
    /// The entity tag, with its quotation marks, of an answer that caches may ask for again.
    pub tag: Option<String>,
}

/// Calls a capability as its route does.
#[must_use]
pub fn call(capability: &Capability, context: &Context, parts: Parts<'_>) -> Reply {
    match arguments(capability, parts).and_then(|arguments| capability.call(context, &arguments, None)) {
        Ok(answer) => answered(capability, answer),
        Err(refusal) => refused(&refusal),
    }
}

/// The answer for a refusal.
#[must_use]
pub fn refused(refusal: &Refusal) -> Reply {
    refused_as(refusal.code.status(), refusal)
}

/// The answer for a refusal that the transport knows a better status for.
#[must_use]
pub fn refused_as(status: u16, refusal: &Refusal) -> Reply {
    let Refusal { code, message, hint } = refusal;
    let error = Error { code: code.as_str(), message, hint: hint.as_deref() };
    let body = serde_json::to_string(&Refused { error }).expect("strings always serialise");
    Reply { status, body, tag: None }
}

fn answered(capability: &Capability, answer: String) -> Reply {
    let tag = || {
        let digest = Sha256::digest(answer.as_bytes());
        format!("\"{}\"", digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect::<String>())
    };
    let tag = capability.descriptor().immutable.then(tag);
    Reply { status: 200, body: answer, tag }
}

/// Whether one of the tags of an `If-None-Match` header is this one.
#[must_use]
pub fn matches_tag(header: &str, tag: &str) -> bool {
    let strong = |given: &str| given.trim().trim_start_matches("W/") == tag;
    header.trim() == "*" || header.split(',').any(strong)
}

/// The body of a refusal.
#[derive(Serialize)]
struct Refused<'a> {
    error: Error<'a>,
}

#[derive(Serialize)]
struct Error<'a> {
    code: &'a str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'a str>,
}

/// Gathers a capability's arguments from path, query and body into one JSON object.
fn arguments<'a>(capability: &Capability, parts: Parts<'a>) -> Result<Cow<'a, str>, Refusal> {
    let Some(Route { method: Method::Get, .. }) = capability.descriptor().route else {
        if parts.query.is_some_and(|query| !query.is_empty()) {
            let refusal = invalid("the arguments of a POST are a JSON object in its body, not a query");
            return Err(refusal);
        }
        return body(parts.body);
    };
    let properties = &capability.input()["properties"];
    let mut found = Map::new();
    for (name, value) in parts.path {
        found.insert((*name).to_owned(), coerced(name, value, &properties[*name])?);
    }
    for (name, value) in form_urlencoded::parse(parts.query.unwrap_or_default().as_bytes()) {
        if name == HANDLE_ARGUMENT {
            // Addresses end up in logs and histories, and a handle is a secret of its caller.
            let refusal = invalid(format!("{HANDLE_ARGUMENT} does not belong into an address"));
            return Err(refusal.hint(format!("send it as the header {HANDLE_HEADER}")));
        }
        let declared = &properties[name.as_ref()];
        if declared["type"] == "array" {
            let value = coerced(&name, &value, &declared["items"])?;
            match found.entry(name).or_insert_with(|| Value::Array(Vec::new())) {
                Value::Array(values) => values.push(value),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {}
            }
        } else {
            let value = coerced(&name, &value, declared)?;
            if found.insert(name.clone().into_owned(), value).is_some() {
                return Err(invalid(format!("{} is there twice", arguments::shown(&name))));
            }
        }
    }
    Ok(Value::Object(found).to_string().into())
}

fn body(bytes: &[u8]) -> Result<Cow<'_, str>, Refusal> {
    let text = std::str::from_utf8(bytes).map_err(|_| invalid("the body is not UTF-8"))?;
    // Nothing at all is the shortest way to give no arguments.
    Ok(if text.trim().is_empty() { "{}".into() } else { text.into() })
}

/// Reads a text as the type that its field is declared with; what is not declared stays a text and is refused by name.
fn coerced(name: &str, text: &str, declared: &Value) -> Result<Value, Refusal> {
    let (read, wanted) = match declared["type"].as_str() {
        Some("integer") => (text.parse::<i64>().ok().map(Value::from), "a whole number"),
        Some("number") => (text.parse::<f64>().ok().filter(|number| number.is_finite()).map(Value::from), "a number"),
        Some("boolean") => (text.parse::<bool>().ok().map(Value::from), "true or false"),
        _ => (Some(text.into()), "a text"),
    };
    read.ok_or_else(|| invalid(format!("{} is not {wanted}", arguments::shown(name))))
}

fn invalid(message: impl std::fmt::Display) -> Refusal {
    Refusal::new(Code::InvalidInput, message)
}

#[cfg(test)]
mod tests;
