//! What a person can ask for by a name.

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::complete::complete;
use super::{Revision, Tools, list_of};
use crate::prompt::{Arguments, Prompt};
use crate::refusal::Refusal;

/// Says why there are no messages.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PromptError {
    /// No prompt has that name.
    #[error("there is no prompt of that name; the prompts are {0}")]
    Unknown(String),
    /// An argument is missing.
    #[error("the prompt needs the argument {0}")]
    Missing(&'static str),
    /// An argument that it does not take.
    #[error("the prompt takes no argument {0:?}")]
    Excess(String),
    /// An argument is not what it should be.
    #[error("{}", .0.message)]
    Refused(Refusal),
}

impl Tools {
    /// The result of `prompts/list` in that revision.
    #[must_use]
    pub fn prompts(&self, revision: Revision) -> &RawValue {
        self.lists[revision as usize].prompts.get_or_init(|| {
            let prompts = self.registry.prompts().iter().map(|prompt| entry(prompt, revision));
            list_of(revision, "prompts", prompts.collect())
        })
    }

    /// The result of `prompts/get` in that revision.
    ///
    /// # Errors
    /// [`PromptError`].
    pub fn prompt(&self, revision: Revision, name: &str, arguments: &Arguments) -> Result<String, PromptError> {
        let all = self.registry.prompts();
        let Some(prompt) = all.iter().find(|prompt| prompt.name == name) else {
            return Err(PromptError::Unknown(all.iter().map(|prompt| prompt.name).collect::<Vec<_>>().join(", ")));
        };
        let takes = |given: &str| prompt.arguments.iter().any(|argument| argument.name == given);
        if let Some(excess) = arguments.keys().find(|given| !takes(given)) {
            return Err(PromptError::Excess(excess.chars().take(64).collect()));
        }
        let is_missing = |name: &str| !arguments.contains_key(name);
        if let Some(missing) = prompt.arguments.iter().find(|one| one.required && is_missing(one.name)) {
            return Err(PromptError::Missing(missing.name));
        }
        let messages = (prompt.messages)(arguments).map_err(PromptError::Refused)?;
        let result = json!({ "description": prompt.description, "messages": messages }).to_string();
        Ok(complete(revision, None, &result).into_owned())
    }
}

fn entry(prompt: &Prompt, revision: Revision) -> Value {
    let mut entry = json!({ "name": prompt.name });
    if revision.has_titles() {
        entry["title"] = prompt.title.into();
    }
    entry["description"] = prompt.description.into();
    let argument = |one: &crate::prompt::Argument| json!({ "name": one.name, "description": one.description, "required": one.required });
    entry["arguments"] = prompt.arguments.iter().map(argument).collect();
    entry
}
