//! The reference: one page per capability, and tables over all of them, as Markdown.

mod fields;

use serde_json::{Map, Value};

use crate::descriptor::{Descriptor, Effect, Method, Route, TAGS};
use crate::handles;
use crate::project::markdown::{self, code, table, text};
use crate::project::mcp::{self, ERROR_META};
use crate::refusal::Code;
use crate::registry::{Capability, Registry};
use fields::{Field, fields};

/// Where the pages lie in the repository.
pub const FOLDER: &str = "docs/reference";

/// Where the examples' server answers.
const SERVER: &str = "http://127.0.0.1:8741";

/// The comment that every page begins with, and by which one that is left over is known.
pub const MARK: &str = "<!-- Written by `majordomus generate`; change what it is made of, not this page. -->";

/// A page of the reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Where it lies below [`FOLDER`].
    pub path: String,
    /// Markdown, with a newline at its end.
    pub text: String,
}

/// The pages, an index first.
#[must_use]
pub fn pages(registry: &Registry) -> Vec<Page> {
    let page = |path: &str, text: String| Page { path: path.to_owned(), text: format!("{MARK}\n\n{text}") };
    let mut pages = vec![page("README.md", index(registry))];
    for capability in registry.capabilities() {
        let path = format!("capabilities/{}.md", capability.descriptor().id);
        pages.push(page(&path, capability_page(capability)));
    }
    pages.push(page("tools.md", tools(registry)));
    pages.push(page("errors.md", errors()));
    pages
}

/// All tools on one page: the table of them, then the page of each.
#[must_use]
pub fn of_tools(registry: &Registry) -> String {
    let all = registry.capabilities().iter().filter(|capability| capability.descriptor().tool.is_some());
    all.fold(tools(registry), |page, capability| page + "\n" + &capability_page(capability))
}

fn index(registry: &Registry) -> String {
    let row = |capability: &Capability| {
        let declared = capability.descriptor();
        [
            linked(declared),
            text(declared.title),
            declared.tool.map(code).unwrap_or_default(),
            declared.route.map(request_line).unwrap_or_default(),
            declared.cli.map(command).unwrap_or_default(),
        ]
    };
    let table = table(["capability", "what", "tool", "route", "command"], registry.capabilities().iter().map(row));
    let used = |name: &str| registry.capabilities().iter().any(|one| one.descriptor().tags.contains(&name));
    let tags: String = TAGS
        .iter()
        .filter(|(name, _)| used(name))
        .map(|(name, meaning)| format!("- {}: {}\n", code(name), text(meaning)))
        .collect();
    format!(
        "# Reference\n\nEverything that this version can do, declared once and shown on every surface. Models call the \
         [tools](tools.md), programs the routes (as one document: [openapi.json](openapi.json)), people the commands. \
         A call that is refused says why by one of the [codes](errors.md).\n\n{table}\nThey belong to:\n\n{tags}"
    )
}

fn capability_page(capability: &Capability) -> String {
    let declared = capability.descriptor();
    let mut page = format!("# {}\n\n{}\n\n{}\n\n", declared.id, text(declared.title), text(declared.description));
    page.push_str(&format!("{}\n\n", nature(declared)));
    page.push_str(&format!("## Surfaces\n\n{}\n", surfaces(declared)));
    page.push_str(&format!("## Arguments\n\n{}\n", arguments(capability)));
    let answer = |field: &Field<'_>| {
        let there = if field.required { "always" } else { "not always" };
        [code(&field.path), field.kind(), there.into(), field.limits(), field.meaning()]
    };
    let answers = fields(capability.output());
    let answers = table(["field", "type", "there", "limits", "meaning"], answers.iter().map(answer));
    page.push_str(&format!("## Answer\n\n{answers}\nLater versions may add fields.\n\n"));
    let refusals = table(["code", "HTTP status", "does a retry help", "meaning"], capability.refusals().map(refusal));
    page.push_str(&format!("## Refusals\n\n{refusals}"));
    if let Some(route) = declared.route {
        page.push_str(&format!("\n## Example\n\n{}", example(capability, route)));
    }
    page
}

/// What a call does to what it finds, and how often.
fn nature(declared: &Descriptor) -> &'static str {
    match (declared.effect, declared.idempotent) {
        (Effect::Read, _) => "It changes nothing.",
        (Effect::Add, true) => {
            "It adds or moves something and removes nothing. The same call made again changes nothing more."
        }
        (Effect::Add, false) => {
            "It adds or moves something and removes nothing. The same call made again does so again."
        }
        (Effect::Destroy, true) => "It can remove something. The same call made again changes nothing more.",
        (Effect::Destroy, false) => "It can remove something. The same call made again can remove more.",
    }
}

fn surfaces(declared: &Descriptor) -> String {
    let tool = declared.tool.map(|tool| ["tool".into(), code(tool)]);
    let route = declared.route.map(|route| ["HTTP".into(), request_line(route)]);
    let cli = declared.cli.map(|cli| ["command".into(), command(cli)]);
    table(["surface", "called by"], [tool, route, cli].into_iter().flatten())
}

fn arguments(capability: &Capability) -> String {
    let row = |field: &Field<'_>| {
        let required = if field.required { "yes" } else { "no" };
        [code(&field.path), field.kind(), required.into(), field.limits(), field.meaning()]
    };
    let found = fields(capability.input());
    if found.is_empty() {
        return "None.\n".into();
    }
    let mut text = table(["argument", "type", "required", "limits", "meaning"], found.iter().map(row));
    let routed = capability.descriptor().route.is_some();
    if routed && found.iter().any(|field| field.path == handles::ARGUMENT) {
        text.push_str(
            "\nOver HTTP the header `Majordomus-Episode-Handle` can carry the handle instead; a URL never carries it.\n",
        );
    }
    text
}

fn refusal(code: Code) -> [String; 4] {
    let [word, status, _, retry, meaning] = error(code);
    [word, status, retry, meaning]
}

/// A request that can be copied, once the words in capitals are replaced.
fn example(capability: &Capability, route: Route) -> String {
    let required = capability.input()["required"].as_array().map_or(&[][..], Vec::as_slice).iter();
    let samples: Map<String, Value> = required
        .filter_map(Value::as_str)
        .map(|name| (name.to_owned(), sample(name, &capability.input()["properties"][name])))
        .collect();
    // Who is given a handle needs none before.
    let has_handle = |schema: &Value| !schema["properties"][handles::ARGUMENT].is_null();
    let by_handle = route.method == Method::Post && has_handle(capability.input()) && !has_handle(capability.output());
    let replace = if samples.is_empty() && !by_handle { "" } else { "Replace the words in capitals.\n\n" };
    let request = match route.method {
        Method::Get => format!("curl '{}'", url(route, &samples)),
        Method::Post => {
            let json = " \\\n  -H 'Content-Type: application/json'";
            let handle = if by_handle { " \\\n  -H 'Majordomus-Episode-Handle: EPISODE_HANDLE'" } else { "" };
            format!("curl '{SERVER}{}'{json}{handle} \\\n  -d '{}'", route.path, Value::Object(samples))
        }
    };
    format!("{replace}```sh\n{request}\n```\n")
}

/// The URL of a query with these arguments.
fn url(route: Route, arguments: &Map<String, Value>) -> String {
    let mut url = format!("{SERVER}{}", route.path);
    for (name, value) in arguments {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        if route.parameters().any(|part| part == name) {
            url = url.replace(&format!("{{{name}}}"), &value);
        } else {
            let mark = if url.contains('?') { '&' } else { '?' };
            url.push_str(&format!("{mark}{name}={value}"));
        }
    }
    url
}

/// A value of the type that an argument has; for a text, its name in capitals, to be replaced.
fn sample(name: &str, schema: &Value) -> Value {
    if let Some(first) = schema["enum"].get(0) {
        return first.clone();
    }
    match schema["type"].as_str() {
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or_else(|| 1.into()),
        Some("boolean") => true.into(),
        Some("array") => vec![sample(name, &schema["items"])].into(),
        _ => name.to_uppercase().into(),
    }
}

fn tools(registry: &Registry) -> String {
    let tools = registry.capabilities().iter().map(Capability::descriptor);
    let row = |declared: &Descriptor| {
        let hints = mcp::hints(declared).map(|(_, value)| if value { "yes" } else { "no" }.to_owned());
        let [read_only, destructive, idempotent, open_world] = hints;
        let (tool, capability) = (code(declared.tool.unwrap_or_default()), linked(declared));
        [tool, text(declared.title), capability, read_only, destructive, idempotent, open_world]
    };
    let head = ["tool", "title", "capability", "read-only", "destructive", "idempotent", "open world"];
    let table = table(head, tools.filter(|declared| declared.tool.is_some()).map(row));
    let bytes = mcp::list_bytes(registry, mcp::Revision::NEWEST);
    format!(
        "# Tools\n\nWhat a client of the Model Context Protocol is shown, in this order, with the hints that it is given \
         of each. The list has {bytes} bytes with the schemas of arguments and answers: about {} tokens, at four bytes a \
         token, of which clients give their models the texts and the arguments.\n\n{table}",
        bytes / 4
    )
}

fn errors() -> String {
    let head = ["code", "HTTP status", "as a tool's result", "does a retry help", "meaning"];
    let table = table(head, Code::ALL.map(error));
    format!(
        "# Errors\n\nWhy a call can be refused. Over HTTP the body is `{{\"error\": {{\"code\", \"message\", \"hint\"}}}}`, \
         the hint only where it is known what to do instead. A tool answers with a result that a model can read: \
         `isError` is true, the text begins with the code, and `_meta` has code and retry under `{ERROR_META}`; faults \
         of the protocol itself are errors of JSON-RPC.\n\n{table}"
    )
}

/// One row of the table of codes.
fn error(code: Code) -> [String; 5] {
    let retry = if code.retry() { "yes" } else { "no" };
    let result = markdown::code(&format!("isError: {}", code.as_str()));
    [markdown::code(code.as_str()), code.status().to_string(), result, retry.into(), text(code.meaning())]
}

/// A capability's id, linked to its page.
fn linked(declared: &Descriptor) -> String {
    format!("[{}](capabilities/{}.md)", text(declared.id), declared.id)
}

fn request_line(route: Route) -> String {
    code(&format!("{} {}", route.method.as_str(), route.path))
}

fn command(words: &str) -> String {
    code(&format!("majordomus {words}"))
}

#[cfg(test)]
mod tests;
