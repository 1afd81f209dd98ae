//! What every result of a revision says besides what was asked.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::revision::Revision;
use crate::resource::Kept;

/// The member of a result's `_meta` that says who answers.
pub(super) const SERVER_META: &str = "io.modelcontextprotocol/serverInfo";

/// The result `body`, a JSON object without these members, as that revision wants it.
#[must_use]
pub fn complete(revision: Revision, kept: Option<Kept>, body: &str) -> Cow<'_, str> {
    if !revision.is_self_contained() {
        return Cow::Borrowed(body);
    }
    let rest = body.trim_start().strip_prefix('{').unwrap_or(body).trim_start();
    let mut result = Vec::with_capacity(body.len() + 192);
    begin(revision, kept, &mut result);
    if rest.starts_with('}') {
        // Nothing follows the comma.
        result.pop();
    }
    result.extend_from_slice(rest.as_bytes());
    Cow::Owned(String::from_utf8(result).expect("JSON is written in UTF-8"))
}

/// Begins a result: an object's bracket, and the members that come before all others, each with its comma.
pub(super) fn begin(revision: Revision, kept: Option<Kept>, out: &mut Vec<u8>) {
    out.push(b'{');
    if !revision.is_self_contained() {
        return;
    }
    out.extend_from_slice(br#""resultType":"complete","#);
    if let Some(Kept { ttl_ms, public }) = kept {
        let scope = if public { "public" } else { "private" };
        out.extend_from_slice(format!(r#""ttlMs":{ttl_ms},"cacheScope":"{scope}","#).as_bytes());
    }
    out.extend_from_slice(SERVER.as_bytes());
}

/// The name and version only: it stands in every answer.
const SERVER: &str = concat!(
    r#""_meta":{"io.modelcontextprotocol/serverInfo":{"name":"majordomus","version":""#,
    env!("CARGO_PKG_VERSION"),
    r#""}},"#
);

/// Adds the same to a result that has a `_meta` of its own.
pub(super) fn amend(revision: Revision, result: &mut Value) {
    if revision.is_self_contained() {
        result["resultType"] = "complete".into();
        result["_meta"][SERVER_META] = json!({ "name": "majordomus", "version": env!("CARGO_PKG_VERSION") });
    }
}

#[cfg(test)]
mod tests;
