//! What an argument may be.

use serde_json::json;

use super::complete::complete;
use super::{Revision, Tools};
use crate::context::Context;
use crate::resource::Complete;

/// What is being filled in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reference<'a> {
    /// A prompt, by its name.
    Prompt(&'a str),
    /// A template, as it is written, or any URI that fits it.
    Resource(&'a str),
}

/// Whether there is such an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Completed {
    /// The result.
    Result(String),
    /// Nothing of that name can be filled in.
    UnknownReference,
    /// It has no such argument.
    UnknownArgument,
}

/// The most values of one answer, as the protocol has it.
const VALUES_MAX: usize = 100;

impl Tools {
    /// The result of `completion/complete` in that revision.
    #[must_use]
    pub fn complete(
        &self,
        context: &Context,
        revision: Revision,
        reference: Reference<'_>,
        (name, begins): (&str, &str),
    ) -> Completed {
        let found: Option<Option<Option<Complete>>> = match reference {
            Reference::Prompt(wanted) => {
                self.registry.prompts().iter().find(|prompt| prompt.name == wanted).map(|prompt| {
                    prompt.arguments.iter().find(|argument| argument.name == name).map(|argument| argument.complete)
                })
            }
            Reference::Resource(wanted) => {
                let mut templates = self.registry.resources().iter().filter(|one| one.is_template());
                let found = templates.find(|one| one.uri == wanted || one.value(wanted).is_some());
                found.map(|one| (one.parameter() == Some(name)).then_some(one.complete))
            }
        };
        let values = match found {
            None => return Completed::UnknownReference,
            Some(None) => return Completed::UnknownArgument,
            Some(Some(complete)) => complete.map(|find| find(context, begins)).unwrap_or_default(),
        };
        let total = values.len();
        let shown: Vec<String> = values.into_iter().take(VALUES_MAX).collect();
        let result = json!({ "completion": { "values": shown, "total": total, "hasMore": total > VALUES_MAX } });
        Completed::Result(complete(revision, None, &result.to_string()).into_owned())
    }
}
