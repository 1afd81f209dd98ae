//! Tools whose results are passed through as they are.

use serde_json::Value;

use crate::context::Context;
use crate::refusal::Refusal;

/// A tool that is no capability: it has no other surface, and what it answers is the protocol's own result.
#[derive(Clone, Debug)]
pub struct RawTool {
    /// The tool's name.
    pub name: &'static str,
    /// Sentences for a model.
    pub description: &'static str,
    /// The JSON Schema of its arguments.
    pub input: Value,
    /// The client capabilities without which it cannot do its work, such as `sampling`. Requests that are complete in
    /// themselves declare what their client has; a session's client is not asked.
    pub needs: &'static [&'static str],
    /// Calls it with the JSON object that was given; the result is an object.
    pub call: fn(&Context, &Value) -> Result<Value, Refusal>,
}
