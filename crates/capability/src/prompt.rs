//! What a person can ask of their agent by a name.

use serde_json::{Value, json};

use crate::refusal::Refusal;
use crate::resource::Complete;

/// Something that a person asks by a name, and that their client gives the model as messages.
#[derive(Clone, Copy, Debug)]
pub struct Prompt {
    /// One word.
    pub name: &'static str,
    /// A few words for a person.
    pub title: &'static str,
    /// A sentence for a person: what it asks for.
    pub description: &'static str,
    /// What it takes.
    pub arguments: &'static [Argument],
    /// The messages as the protocol has them, from arguments that were checked to be there and to be known.
    pub messages: fn(&Arguments) -> Result<Vec<Value>, Refusal>,
}

/// One argument of a prompt.
#[derive(Clone, Copy, Debug)]
pub struct Argument {
    /// One word.
    pub name: &'static str,
    /// What to give.
    pub description: &'static str,
    /// Whether there is nothing to ask without it.
    pub required: bool,
    /// Values that it may have, by what they begin with.
    pub complete: Option<Complete>,
}

/// What was given, by name.
pub type Arguments = std::collections::BTreeMap<String, String>;

/// A message of the person's.
#[must_use]
pub fn said(text: &str) -> Value {
    json!({ "role": "user", "content": { "type": "text", "text": text } })
}
