//! What makes a declaration a bad one.

use serde_json::Value;

use super::{Capability, NOTICE};
use crate::descriptor::{Descriptor, Effect, Method, Route, TAGS};
use crate::prompt::Prompt;
use crate::raw::RawTool;
use crate::resource::Resource;
use crate::schema;

/// The most characters of a title.
pub const TITLE_MAX: usize = 60;
/// The most characters of a description: models read all of them, every time.
pub const DESCRIPTION_MAX: usize = 600;

/// Says why a declaration is refused; each names the capability's id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "each message says what its fields are")]
pub enum RegistrationError {
    /// The id is not `noun.verb`.
    #[error("{id:?} is not an id of the form noun.verb in lower case")]
    Id { id: &'static str },
    /// The id is taken.
    #[error("{id} is declared twice")]
    DuplicateId { id: &'static str },
    /// Another capability has that tool name.
    #[error("{id} has the tool name {tool} of {other}")]
    DuplicateTool { id: &'static str, tool: &'static str, other: &'static str },
    /// Another capability has that route.
    #[error("{id} has the route {method} {path} of {other}")]
    DuplicateRoute { id: &'static str, method: &'static str, path: &'static str, other: &'static str },
    /// Some path would fit this route and another capability's.
    #[error("{id} has the path {path}, which some request of {other} would fit too")]
    AmbiguousRoute { id: &'static str, path: &'static str, other: &'static str },
    /// Another capability has those command words.
    #[error("{id} has the command {cli:?} of {other}")]
    DuplicateCli { id: &'static str, cli: &'static str, other: &'static str },
    /// The title is blank.
    #[error("{id} has no title")]
    BlankTitle { id: &'static str },
    /// The title is too long.
    #[error("the title of {id} has {chars} characters, at most {TITLE_MAX} are allowed")]
    LongTitle { id: &'static str, chars: usize },
    /// The description is blank.
    #[error("{id} has no description")]
    BlankDescription { id: &'static str },
    /// The description does not end with a period.
    #[error("the description of {id} does not end with a period")]
    UnfinishedDescription { id: &'static str },
    /// The description is too long.
    #[error("the description of {id} has {chars} characters, at most {DESCRIPTION_MAX} are allowed")]
    LongDescription { id: &'static str, chars: usize },
    /// Clients refuse such a tool name.
    #[error("{id} has the tool name {tool:?}, which is not [A-Za-z0-9_-]{{1,64}}")]
    Tool { id: &'static str, tool: &'static str },
    /// The path is not below the API's root, or its parts are neither words nor parameters of different names.
    #[error("{id} has the path {path:?}, which is not words and {{parameters}} below /api/v1/")]
    Path { id: &'static str, path: &'static str },
    /// The path has a parameter that is not among the required arguments.
    #[error("{id} has no required argument {name:?} for its path")]
    PathParameter { id: &'static str, name: &'static str },
    /// The path of something that takes its arguments from a body has a parameter.
    #[error("{id} is served by POST, and its path has the parameter {name:?}: all its arguments come in the body")]
    PostParameter { id: &'static str, name: &'static str },
    /// An argument of a query that no query string can carry.
    #[error(
        "{id} is served by GET, and its argument {name:?} is neither a text, a number, a boolean nor a list of these"
    )]
    DeepQuery { id: &'static str, name: String },
    /// The command's words are not such.
    #[error("{id} has the command {cli:?}, which is not words in lower case with one blank between them")]
    Cli { id: &'static str, cli: &'static str },
    /// Something else than a query that is called immutable.
    #[error("{id} is called immutable and is no query")]
    ImmutableChange { id: &'static str },
    /// A query that is served by POST, or something else that is served by GET.
    #[error("{id} is served by {method}: queries, and only they, are served by GET")]
    MethodOfEffect { id: &'static str, method: &'static str },
    /// A query that is not idempotent.
    #[error("{id} is a query and not idempotent")]
    QueryNotIdempotent { id: &'static str },
    /// An error code is listed twice.
    #[error("{id} lists the error {code} twice")]
    DuplicateError { id: &'static str, code: &'static str },
    /// It belongs to something that nobody describes.
    #[error("{id} has the tag {tag:?}, which is not one of those that are described")]
    UnknownTag { id: &'static str, tag: &'static str },
    /// The input is not an object.
    #[error("the input of {id} is not a JSON object")]
    InputNotObject { id: &'static str },
    /// The input ignores what it does not know.
    #[error("the input of {id} takes unknown fields")]
    OpenInput { id: &'static str },
    /// The output is not an object.
    #[error("the output of {id} is not a JSON object")]
    OutputNotObject { id: &'static str },
    /// The output shows an absent field as `null`.
    #[error("the output of {id} can hold null; absent fields are left out")]
    NullInOutput { id: &'static str },
    /// Two things that are read, or two prompts, or two tools, could be meant by one name.
    #[error("{id} is declared twice, or something else fits it too")]
    Ambiguous { id: &'static str },
    /// The URI of something that is read is none, or has more than one parameter, or one that is not a whole part of it.
    #[error("{id:?} is not a URI with at most one {{parameter}}, which is a whole part between slashes")]
    Uri { id: &'static str },
    /// The output declares a field that every answer has anyway.
    #[error("the output of {id} has a field `{NOTICE}` of its own")]
    ReservedField { id: &'static str },
}

use RegistrationError as Bad;

pub(super) fn check_resource(known: &[Resource], new: &Resource) -> Result<(), Bad> {
    let id = new.uri;
    let is_name = |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    // A parameter is a whole part: its value has no slash, so that two templates can be told apart by their parts.
    let (fixed, whole) = new.template().map_or((id, true), |(before, name, behind)| {
        let is_part = before.ends_with('/') && (behind.is_empty() || behind.starts_with('/'));
        (before, is_part && is_name(name) && !behind.contains(['{', '}', ' ']))
    });
    if !fixed.contains("://") || fixed.contains(['{', '}', ' ']) || !whole {
        return Err(Bad::Uri { id });
    }
    if known.iter().any(|other| other.name == new.name || other.overlaps(new)) {
        return Err(Bad::Ambiguous { id });
    }
    described(id, new.title, new.description)
}

pub(super) fn check_prompt(known: &[Prompt], new: &Prompt) -> Result<(), Bad> {
    let id = new.name;
    let names: Vec<_> = new.arguments.iter().map(|argument| argument.name).collect();
    let twice = (1..names.len()).any(|at| names[at..].contains(&names[at - 1]));
    if twice || known.iter().any(|other| other.name == id) {
        return Err(Bad::Ambiguous { id });
    }
    described(id, new.title, new.description)
}

pub(super) fn check_raw(known: &[Capability], raw: &[RawTool], new: &RawTool) -> Result<(), Bad> {
    let id = new.name;
    let is_taken = known.iter().any(|other| other.descriptor.tool == Some(id)) || raw.iter().any(|one| one.name == id);
    if is_taken {
        return Err(Bad::Ambiguous { id });
    }
    described(id, id, new.description)
}

pub(super) fn check(known: &[Capability], new: &Descriptor, input: &Value, output: &Value) -> Result<(), Bad> {
    let id = new.id;
    names(known, new)?;
    texts(new)?;
    let query = new.effect == Effect::Read;
    if query && !new.idempotent {
        return Err(Bad::QueryNotIdempotent { id });
    }
    if let Some(route) = new.route.filter(|route| (route.method == Method::Get) != query) {
        return Err(Bad::MethodOfEffect { id, method: route.method.as_str() });
    }
    let mut errors = new.errors;
    while let [code, rest @ ..] = errors {
        if rest.contains(code) {
            return Err(Bad::DuplicateError { id, code: code.as_str() });
        }
        errors = rest;
    }
    if new.immutable && !query {
        return Err(Bad::ImmutableChange { id });
    }
    if let Some(&tag) = new.tags.iter().find(|tag| !TAGS.iter().any(|(name, _)| name == *tag)) {
        return Err(Bad::UnknownTag { id, tag });
    }
    schemas(id, input, output)?;
    route(new, input)
}

/// Whether a route can carry all the arguments.
fn route(new: &Descriptor, input: &Value) -> Result<(), Bad> {
    let (id, Some(route)) = (new.id, new.route) else { return Ok(()) };
    if let Some(name) = route.parameters().next().filter(|_| route.method == Method::Post) {
        return Err(Bad::PostParameter { id, name });
    }
    let required = |name: &str| input["required"].as_array().is_some_and(|all| all.iter().any(|field| field == name));
    if let Some(name) = route.parameters().find(|name| !required(name)) {
        return Err(Bad::PathParameter { id, name });
    }
    let flat = |schema: &Value| {
        schema["type"].as_str().is_some_and(|name| matches!(name, "string" | "integer" | "number" | "boolean"))
    };
    let fits = |schema: &Value| flat(schema) || (schema["type"] == "array" && flat(&schema["items"]));
    let mut properties = input["properties"].as_object().into_iter().flatten();
    match properties.find(|(_, schema)| route.method == Method::Get && !fits(schema)) {
        Some((name, _)) => Err(Bad::DeepQuery { id, name: name.clone() }),
        None => Ok(()),
    }
}

fn names(known: &[Capability], new: &Descriptor) -> Result<(), Bad> {
    let id = new.id;
    let word = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    if !id.split_once('.').is_some_and(|(noun, verb)| word(noun) && word(verb)) {
        return Err(Bad::Id { id });
    }
    if let Some(tool) = new.tool {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        if !(1..=64).contains(&tool.len()) || !tool.bytes().all(fits) {
            return Err(Bad::Tool { id, tool });
        }
    }
    if let Some(route) = new.route.filter(|route| !is_path(*route)) {
        return Err(Bad::Path { id, path: route.path });
    }
    let fits = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
    if let Some(cli) = new.cli.filter(|cli| !cli.split(' ').all(fits)) {
        return Err(Bad::Cli { id, cli });
    }
    for capability in known {
        let old = &capability.descriptor;
        let other = old.id;
        if other == id {
            return Err(Bad::DuplicateId { id });
        }
        if let Some(tool) = new.tool.filter(|tool| old.tool == Some(tool)) {
            return Err(Bad::DuplicateTool { id, tool, other });
        }
        if let (Some(new), Some(old)) = (new.route, old.route) {
            if new.method == old.method && new.has_shape_of(old) {
                return Err(Bad::DuplicateRoute { id, method: new.method.as_str(), path: new.path, other });
            }
            // Whatever the methods are: a router looks for the path first.
            if new.path != old.path && new.overlaps(old) {
                return Err(Bad::AmbiguousRoute { id, path: new.path, other });
            }
        }
        if let Some(cli) = new.cli.filter(|cli| old.cli == Some(cli)) {
            return Err(Bad::DuplicateCli { id, cli, other });
        }
    }
    Ok(())
}

fn is_path(route: Route) -> bool {
    let word = |word: &str| {
        let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-');
        !word.is_empty() && word.bytes().all(fits)
    };
    let part = |part: &str| word(part.strip_prefix('{').and_then(|name| name.strip_suffix('}')).unwrap_or(part));
    let mut names: Vec<_> = route.parameters().collect();
    names.sort_unstable();
    names.is_sorted_by(|one, other| one < other)
        && route.path.strip_prefix("/api/v1/").is_some_and(|below| below.split('/').all(part))
}

fn texts(new: &Descriptor) -> Result<(), Bad> {
    described(new.id, new.title, new.description)
}

fn described(id: &'static str, title_text: &str, text: &str) -> Result<(), Bad> {
    let (title, description) = (title_text.chars().count(), text.chars().count());
    if title_text.trim().is_empty() {
        return Err(Bad::BlankTitle { id });
    }
    if title > TITLE_MAX {
        return Err(Bad::LongTitle { id, chars: title });
    }
    if text.trim().is_empty() {
        return Err(Bad::BlankDescription { id });
    }
    if !text.ends_with('.') {
        return Err(Bad::UnfinishedDescription { id });
    }
    if description > DESCRIPTION_MAX {
        return Err(Bad::LongDescription { id, chars: description });
    }
    Ok(())
}

fn schemas(id: &'static str, input: &Value, output: &Value) -> Result<(), Bad> {
    if input["type"] != "object" {
        return Err(Bad::InputNotObject { id });
    }
    if input["additionalProperties"] != false {
        return Err(Bad::OpenInput { id });
    }
    if output["type"] != "object" {
        return Err(Bad::OutputNotObject { id });
    }
    if schema::has_null(output) {
        return Err(Bad::NullInOutput { id });
    }
    if !output["properties"][NOTICE].is_null() {
        return Err(Bad::ReservedField { id });
    }
    Ok(())
}
