//! The ordered table of capabilities, and what it refuses.

mod error;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

pub use error::{DESCRIPTION_MAX, RegistrationError, TITLE_MAX};

use crate::context::Context;
use crate::descriptor::Descriptor;
use crate::prompt::Prompt;
use crate::raw::RawTool;
use crate::refusal::{Code, Refusal};
use crate::resource::Resource;
use crate::{arguments, handles, schema};

/// A field that every answer can carry and that no output type declares itself.
pub const NOTICE: &str = "notice";

/// Room for most answers, so that writing one rarely moves it.
const ANSWER_BYTES: usize = 1024;

type Handler = Box<dyn Fn(&Context, &str, Option<&str>) -> Result<String, Refusal> + Send + Sync>;

/// The capabilities in the order in which every surface shows them.
#[derive(Debug, Default)]
pub struct Registry {
    capabilities: Vec<Capability>,
    resources: Vec<Resource>,
    prompts: Vec<Prompt>,
    raw: Vec<RawTool>,
    /// Whether the declarations were checked before.
    known: bool,
}

impl Registry {
    /// Makes an empty registry.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes an empty registry for declarations that a test checks, so that adding them is nothing but noting them: who
    /// starts a server waits for no schema that nobody has asked for.
    pub(crate) fn of_known() -> Self {
        Self { known: true, ..Self::default() }
    }

    /// Adds a capability behind those that are there.
    ///
    /// # Errors
    /// [`RegistrationError`] for a declaration that some surface could not show or that contradicts another; nothing
    /// is added then.
    pub fn add<I, O>(
        &mut self,
        descriptor: Descriptor,
        handler: fn(&Context, I) -> Result<O, Refusal>,
    ) -> Result<&mut Self, RegistrationError>
    where
        I: DeserializeOwned + JsonSchema + 'static,
        O: Serialize + JsonSchema + 'static,
    {
        if !self.known {
            error::check(&self.capabilities, &descriptor, &schema::input::<I>(), &schema::output::<O>())?;
        }
        let handler: Handler = Box::new(move |context, arguments, notice| {
            let output = handler(context, arguments::parse(arguments)?)?;
            line(&Answer { output, notice }, ANSWER_BYTES).map_err(|error| Refusal::new(Code::Internal, error))
        });
        let (input, output) = (Schema::new(schema::input::<I>), Schema::new(with_notice::<O>));
        self.capabilities.push(Capability { descriptor, input, output, handler });
        Ok(self)
    }

    /// Adds something that can be read behind those that are there.
    ///
    /// # Errors
    /// [`RegistrationError`] for a declaration that clients could not show or that contradicts another.
    pub fn add_resource(&mut self, resource: Resource) -> Result<&mut Self, RegistrationError> {
        if !self.known {
            error::check_resource(&self.resources, &resource)?;
        }
        self.resources.push(resource);
        Ok(self)
    }

    /// Adds a prompt behind those that are there.
    ///
    /// # Errors
    /// As of a resource.
    pub fn add_prompt(&mut self, prompt: Prompt) -> Result<&mut Self, RegistrationError> {
        if !self.known {
            error::check_prompt(&self.prompts, &prompt)?;
        }
        self.prompts.push(prompt);
        Ok(self)
    }

    /// Adds a tool that is no capability behind all others.
    ///
    /// # Errors
    /// As of a capability's tool.
    pub fn add_raw(&mut self, tool: RawTool) -> Result<&mut Self, RegistrationError> {
        error::check_raw(&self.capabilities, &self.raw, &tool)?;
        self.raw.push(tool);
        Ok(self)
    }

    /// What can be read, in order.
    #[must_use]
    pub fn resources(&self) -> &[Resource] {
        &self.resources
    }

    /// The prompts, in order.
    #[must_use]
    pub fn prompts(&self) -> &[Prompt] {
        &self.prompts
    }

    /// The tools that are no capabilities, in order.
    #[must_use]
    pub fn raw(&self) -> &[RawTool] {
        &self.raw
    }

    /// The capabilities, in order.
    #[must_use]
    pub fn capabilities(&self) -> &[Capability] {
        &self.capabilities
    }

    /// The capability of that id.
    #[must_use]
    pub fn capability(&self, id: &str) -> Option<&Capability> {
        self.capabilities.iter().find(|capability| capability.descriptor.id == id)
    }
}

/// One registered capability.
pub struct Capability {
    descriptor: Descriptor,
    input: Schema,
    output: Schema,
    handler: Handler,
}

/// A schema, made when it is first asked for.
type Schema = LazyLock<Value>;

fn with_notice<O: JsonSchema>() -> Value {
    let mut output = schema::output::<O>();
    output["properties"][NOTICE] = json!({
        "type": "string",
        "description": "Something that happened to this session and that you should know; usually absent.",
    });
    output
}

impl Capability {
    /// What was declared.
    #[must_use]
    pub fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    /// The JSON Schema of the arguments: a closed object.
    #[must_use]
    pub fn input(&self) -> &Value {
        &self.input
    }

    /// The JSON Schema of the answer: an object, which may gain fields in later versions.
    #[must_use]
    pub fn output(&self) -> &Value {
        &self.output
    }

    /// Calls it with the JSON object `arguments` and answers with a JSON object on one line; `notice` travels with
    /// an answer as its last field.
    ///
    /// # Errors
    /// A [`Refusal`] with a code that the descriptor lists, [`Code::InvalidInput`] for arguments that do not fit, or
    /// [`Code::Internal`] where the handler panicked: one caller's bug is not everybody's.
    pub fn call(&self, context: &Context, arguments: &str, notice: Option<&str>) -> Result<String, Refusal> {
        if context.handle.is_some() && self.input()["properties"][handles::ARGUMENT].is_null() {
            // It names the caller all the same, and so is evidence; whether it is still good is no matter here.
            let _ = context.show_handle();
        }
        let answer =
            catch_unwind(AssertUnwindSafe(|| (self.handler)(context, arguments, notice))).unwrap_or_else(|_| {
                Err(Refusal::new(Code::Internal, format!("{} failed; this is a bug", self.descriptor.id)))
            });
        debug_assert!(
            answer.as_ref().err().is_none_or(|refusal| self.may_refuse(refusal.code)),
            "{} gives an undeclared refusal: {answer:?}",
            self.descriptor.id
        );
        answer
    }

    /// Whether an answer can be a refusal of that kind.
    #[must_use]
    pub fn may_refuse(&self, code: Code) -> bool {
        matches!(code, Code::InvalidInput | Code::Internal) || self.descriptor.errors.contains(&code)
    }

    /// The kinds of refusals that an answer can be, in the table's order.
    pub fn refusals(&self) -> impl Iterator<Item = Code> {
        Code::ALL.into_iter().filter(|code| self.may_refuse(*code))
    }
}

impl std::fmt::Debug for Capability {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Capability").field("descriptor", &self.descriptor).finish_non_exhaustive()
    }
}

/// Writes JSON on one line into a text that has room for `bytes` from the beginning.
pub(crate) fn line(value: &impl Serialize, bytes: usize) -> serde_json::Result<String> {
    let mut out = Vec::with_capacity(bytes);
    serde_json::to_writer(&mut out, value)?;
    Ok(String::from_utf8(out).expect("JSON is written in UTF-8"))
}

#[derive(Serialize)]
struct Answer<'a, O> {
    #[serde(flatten)]
    output: O,
    #[serde(skip_serializing_if = "Option::is_none")]
    notice: Option<&'a str>,
}

#[cfg(test)]
mod tests;
