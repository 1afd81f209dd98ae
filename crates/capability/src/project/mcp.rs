//! The Model Context Protocol: capabilities as tools, refusals as results that a model can read.

mod complete;
mod completion;
mod prompts;
mod resources;
mod revision;
mod watching;

use std::sync::{Arc, OnceLock};

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

pub use complete::complete;
pub use completion::{Completed, Reference};
pub use prompts::PromptError;
pub use resources::ReadError;
pub use revision::{Era, Revision};

use crate::context::Context;
use crate::descriptor::{Descriptor, Effect, Reach};
use crate::handles;
use crate::raw::RawTool;
use crate::refusal::Refusal;
use crate::registry::{Capability, Registry};
use crate::resource::Kept;

/// The key in a refusal's `_meta` that tells programs its code and whether a retry helps.
///
/// The specification wants a reverse-DNS prefix whose second label is neither `mcp` nor `modelcontextprotocol`.
pub const ERROR_META: &str = "dev.majordomus/error";

/// The registry as a Model Context Protocol server shows it.
#[derive(Debug)]
pub struct Tools {
    registry: Arc<Registry>,
    lists: [Lists; Revision::ALL.len()],
}

/// The lists of one revision, each built once.
#[derive(Debug, Default)]
struct Lists {
    tools: OnceLock<Box<RawValue>>,
    resources: OnceLock<Box<RawValue>>,
    templates: OnceLock<Box<RawValue>>,
    prompts: OnceLock<Box<RawValue>>,
}

/// The result of a list, which is fixed for the life of the program.
fn list_of(revision: Revision, name: &str, entries: Vec<Value>) -> Box<RawValue> {
    let list = json!({ name: entries }).to_string();
    let list = complete(revision, Some(Kept::DECLARATIONS), &list).into_owned();
    RawValue::from_string(list).expect("it is JSON")
}

/// One `tools/call`.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The tool's name.
    pub name: &'a str,
    /// The arguments as they came, if any came.
    pub arguments: Option<&'a RawValue>,
    /// What the caller has to learn with the next result, whatever it asked.
    pub notice: Option<&'a str>,
}

/// Says that no tool has that name: a fault of the protocol, not a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no tool of that name")]
pub struct UnknownTool;

impl Tools {
    /// Projects `registry`.
    #[must_use]
    pub fn new(registry: Arc<Registry>) -> Self {
        Self { registry, lists: Default::default() }
    }

    /// The capabilities behind the tools.
    #[must_use]
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The names of the tools, in order.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        let tools = self.registry.capabilities().iter().filter_map(|capability| capability.descriptor().tool);
        tools.chain(self.registry.raw().iter().map(|tool| tool.name))
    }

    /// The result of `tools/list` in that revision; built once.
    #[must_use]
    pub fn list(&self, revision: Revision) -> &RawValue {
        self.lists[revision as usize].tools.get_or_init(|| {
            let tools = self.registry.capabilities().iter().filter_map(|capability| tool(capability, revision));
            list_of(revision, "tools", tools.chain(self.registry.raw().iter().map(raw_tool)).collect())
        })
    }

    /// Calls a tool and returns the result of `tools/call` in that revision, a refusal included.
    ///
    /// Arguments that are absent or `null` count as `{}`; whatever else is not an object is refused like any other
    /// wrong argument.
    ///
    /// # Errors
    /// [`UnknownTool`].
    pub fn call(&self, context: &Context, revision: Revision, call: Call<'_>) -> Result<String, UnknownTool> {
        let mut all = self.registry.capabilities().iter();
        let arguments = call.arguments.map_or("{}", RawValue::get);
        let Some(capability) = all.find(|capability| capability.descriptor().tool == Some(call.name)) else {
            let raw = self.registry.raw().iter().find(|tool| tool.name == call.name).ok_or(UnknownTool)?;
            let arguments = serde_json::from_str(arguments).unwrap_or_default();
            return Ok((raw.call)(context, &arguments).map_or_else(
                |refusal| refused(revision, &refusal, call.notice),
                |mut result| {
                    complete::amend(revision, &mut result);
                    result.to_string()
                },
            ));
        };
        Ok(match capability.call(context, arguments, call.notice) {
            Ok(answer) => answered(&answer, revision),
            Err(refusal) => refused(revision, &refusal, call.notice),
        })
    }

    /// Whether a call of that tool may take a disk; `arguments` is searched for a handle, whose caller may have to be
    /// looked up.
    #[must_use]
    pub fn may_wait(&self, name: &str, arguments: &str) -> bool {
        let mut all = self.registry.capabilities().iter().map(Capability::descriptor);
        let found = all.find(|declared| declared.tool == Some(name));
        found.is_some_and(|declared| declared.reach == Reach::Repository)
            || (arguments.len() > 2 && (arguments.contains(handles::ARGUMENT) || arguments.contains('\\')))
    }

    /// The client capabilities that a call of that tool needs; none where there is no such tool.
    #[must_use]
    pub fn needs(&self, name: &str) -> &'static [&'static str] {
        self.registry.raw().iter().find(|tool| tool.name == name).map_or(&[], |tool| tool.needs)
    }

    /// The result for a call that is refused before it is tried.
    #[must_use]
    pub fn refuse(&self, revision: Revision, refusal: &Refusal) -> String {
        refused(revision, refusal, None)
    }
}

/// How many bytes a model's client gets to read as the list of tools in that revision, as JSON on one line.
pub(crate) fn list_bytes(registry: &Registry, revision: Revision) -> usize {
    let tools = registry.capabilities().iter().filter_map(|capability| tool(capability, revision));
    Value::from(tools.collect::<Vec<_>>()).to_string().len()
}

/// One entry of `tools/list`; `None` for a capability that is no tool.
fn tool(capability: &Capability, revision: Revision) -> Option<Value> {
    let declared = capability.descriptor();
    let mut tool = json!({ "name": declared.tool? });
    if revision.has_titles() {
        tool["title"] = declared.title.into();
    }
    tool["description"] = declared.description.into();
    tool["inputSchema"] = capability.input().clone();
    if revision.has_structured_content() {
        tool["outputSchema"] = capability.output().clone();
    }
    if revision.has_annotations() {
        // All four are written out: a client that assumes the defaults asks the person before each call.
        let mut hints: Map<String, Value> =
            hints(declared).map(|(name, value)| (name.into(), value.into())).into_iter().collect();
        if !revision.has_titles() {
            hints.insert("title".into(), declared.title.into());
        }
        tool["annotations"] = hints.into();
    }
    Some(tool)
}

fn raw_tool(tool: &RawTool) -> Value {
    json!({ "name": tool.name, "description": tool.description, "inputSchema": tool.input })
}

/// What clients are told of a tool before they ask the person.
pub(crate) fn hints(declared: &Descriptor) -> [(&'static str, bool); 4] {
    [
        ("readOnlyHint", declared.effect == Effect::Read),
        ("destructiveHint", declared.effect == Effect::Destroy),
        ("idempotentHint", declared.idempotent),
        ("openWorldHint", false),
    ]
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "text")]
struct Text<'a> {
    text: &'a str,
}

fn answered(answer: &str, revision: Revision) -> String {
    // The answer is JSON already; it stands here as a text, with its quotation marks escaped, and as itself.
    let mut result = Vec::with_capacity(2 * answer.len() + answer.len() / 4 + 256);
    complete::begin(revision, None, &mut result);
    result.extend_from_slice(br#""content":[{"type":"text","text":"#);
    serde_json::to_writer(&mut result, answer).expect("a text always serialises");
    result.extend_from_slice(b"}]");
    if revision.has_structured_content() {
        result.extend_from_slice(br#","structuredContent":"#);
        result.extend_from_slice(answer.as_bytes());
    }
    result.push(b'}');
    String::from_utf8(result).expect("JSON is written in UTF-8")
}

/// A refusal has no structured content: clients check that against the output schema even in errors.
fn refused(revision: Revision, refusal: &Refusal, notice: Option<&str>) -> String {
    let mut text = format!("{}: {}", refusal.code.as_str(), refusal.message);
    if let Some(hint) = &refusal.hint {
        text.push_str("\nhint: ");
        text.push_str(hint);
    }
    let mut content = vec![json!(Text { text: &text })];
    if let Some(notice) = notice {
        content.push(json!(Text { text: &format!("notice: {notice}") }));
    }
    let mut result = json!({
        "content": content,
        "isError": true,
        "_meta": { ERROR_META: { "code": refusal.code.as_str(), "retry": refusal.code.retry() } },
    });
    complete::amend(revision, &mut result);
    result.to_string()
}

#[cfg(test)]
mod tests;
