//! A stand-in for the services that models are reached at, on loopback: it calls the tool it is told to, then says one
//! fixed sentence.
//!
//! A request is the agent's own when it offers that tool; what clients ask beside it (titles, summaries, counts) is
//! answered with the sentence. Nothing that a model would say matters here, only what the client does around it.

mod anthropic;
mod chat;
mod gemini;
mod http;
mod responses;

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use anyhow::Context;
use majordomus_e2e::now_ms;
use serde_json::{Value, json};

use http::Request;

/// Where it answers.
pub(crate) const PORT: u16 = 9800;
/// What every turn ends with.
pub(crate) const SENTENCE: &str = "That is all for now.";

/// What the model does when the client gives it a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// It calls the tool and, given its result, says the sentence.
    Tool,
    /// It says the sentence.
    Text,
    /// It calls the tool and, given its result, begins to answer and never goes on.
    Slow,
}

/// The tool that the model calls.
#[derive(Clone, Debug)]
pub(crate) struct Tool {
    /// Its name at the server; clients put something before it.
    pub(crate) name: &'static str,
    /// What it is called with.
    pub(crate) arguments: Value,
}

/// A service that runs.
pub(crate) struct Service {
    shared: Arc<Shared>,
}

struct Shared {
    mode: Mode,
    tool: Tool,
    log: Mutex<File>,
    hanging: AtomicUsize,
    offers: AtomicUsize,
    calls: AtomicUsize,
}

/// One thing that a dialect can say.
enum Say<'a> {
    /// A call of the tool under the name, and in the namespace, that the client gave it.
    Call {
        name: &'a str,
        namespace: Option<&'a str>,
        arguments: &'a Value,
        number: usize,
    },
    Sentence,
    /// The beginning of an answer that does not go on.
    Nothing,
}

impl Service {
    /// Listens, and answers in threads of its own until the process ends.
    pub(crate) fn start(mode: Mode, tool: Tool, log: &Path) -> anyhow::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, PORT)).context("the service's port is taken")?;
        let log = OpenOptions::new().create(true).append(true).open(log)?;
        let shared = Arc::new(Shared {
            mode,
            tool,
            log: Mutex::new(log),
            hanging: AtomicUsize::new(0),
            offers: AtomicUsize::new(0),
            calls: AtomicUsize::new(0),
        });
        let serving = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&serving);
                // A client that hangs up has no answer to get.
                thread::spawn(move || shared.answer(stream));
            }
        });
        Ok(Self { shared })
    }

    /// How many requests have offered the tool.
    pub(crate) fn offers(&self) -> usize {
        self.shared.offers.load(Ordering::SeqCst)
    }

    /// Whether a turn has begun that will never finish.
    pub(crate) fn is_hanging(&self) -> bool {
        self.shared.hanging.load(Ordering::SeqCst) > 0
    }
}

impl Shared {
    fn answer(&self, mut stream: TcpStream) -> anyhow::Result<()> {
        let Some(request) = Request::read(&mut stream)? else { return Ok(()) };
        let path = request.path.split('?').next().unwrap_or_default().to_owned();
        if request.method != "POST" {
            self.note(&json!({"method": request.method, "path": path}));
            let models = json!([{"id": "stand-in", "object": "model", "created": 1, "owned_by": "nobody"}]);
            return match path.ends_with("/models") {
                true => http::json(&mut stream, 200, &json!({"object": "list", "data": models, "models": []})),
                false => http::json(&mut stream, 404, &json!({})),
            };
        }
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let offered = find_tool(&body, self.tool.name);
        self.offers.fetch_add(usize::from(offered.is_some()), Ordering::SeqCst);
        let results = results(&body);
        let number = self.calls.fetch_add(1, Ordering::SeqCst);
        let say = match (&offered, self.mode) {
            (Some((name, namespace)), Mode::Tool | Mode::Slow) if results.is_empty() => {
                Say::Call { name, namespace: namespace.as_deref(), arguments: &self.tool.arguments, number }
            }
            (Some(_), Mode::Slow) => Say::Nothing,
            _ => Say::Sentence,
        };
        let said = match say {
            Say::Call { .. } => "call",
            Say::Sentence => "sentence",
            Say::Nothing => "nothing",
        };
        self.note(&json!({"method": "POST", "path": path, "offered": offered, "results": results, "said": said}));
        let streamed = body["stream"] == true || path.contains(":stream");
        let answer = match () {
            () if path.ends_with("/count_tokens") => return http::json(&mut stream, 200, &json!({"input_tokens": 10})),
            () if path.ends_with(":countTokens") => return http::json(&mut stream, 200, &json!({"totalTokens": 10})),
            () if path.ends_with("/messages") => anthropic::answer(&body, &say),
            () if path.ends_with("/responses") => responses::answer(&body, &say),
            () if path.ends_with("/chat/completions") => chat::answer(&body, &say),
            () if path.contains("enerateContent") => gemini::answer(&body, &say),
            () => return http::json(&mut stream, 404, &json!({})),
        };
        if !streamed && !matches!(say, Say::Nothing) {
            return http::json(&mut stream, 200, &answer.whole);
        }
        http::events(&mut stream, &answer.events)?;
        if matches!(say, Say::Nothing) {
            self.hanging.fetch_add(1, Ordering::SeqCst);
            http::until_hung_up(&mut stream);
        }
        Ok(())
    }

    fn note(&self, what: &Value) {
        let mut line = what.clone();
        line["at_ms"] = now_ms().into();
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        // A log that cannot be written shows in the proof, where something is missing then.
        let _ = log.write_all(format!("{line}\n").as_bytes());
    }
}

/// An answer in both of the forms that a client may ask for.
struct Answer {
    whole: Value,
    events: Vec<String>,
}

/// An event with a name, as two of the dialects have it.
fn named(event: &Value) -> String {
    format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default())
}

/// An event without a name.
fn unnamed(event: &Value) -> String {
    format!("data: {event}\n\n")
}

/// Finds the tool among those offered: the name that the client gave it, and the namespace that it stands in.
fn find_tool(value: &Value, name: &str) -> Option<(String, Option<String>)> {
    match value {
        Value::Array(items) => items.iter().find_map(|item| find_tool(item, name)),
        Value::Object(fields) => {
            let own = ["tools", "functionDeclarations", "function_declarations"];
            for (key, inner) in fields {
                if own.contains(&key.as_str())
                    && let Some(found) = find_listed(inner, name, None)
                {
                    return Some(found);
                }
            }
            fields.values().find_map(|inner| find_tool(inner, name))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

fn find_listed(tools: &Value, name: &str, namespace: Option<&str>) -> Option<(String, Option<String>)> {
    tools.as_array()?.iter().find_map(|tool| {
        let own = tool["name"].as_str().or(tool["function"]["name"].as_str());
        if tool["tools"].is_array() {
            return find_listed(&tool["tools"], name, own);
        }
        let own = own.filter(|own| own.ends_with(name))?;
        Some((own.to_owned(), namespace.map(Into::into)))
    })
}

/// The results of tools that the conversation holds, as text.
fn results(body: &Value) -> Vec<String> {
    let mut found = Vec::new();
    collect(body, &mut found);
    found
}

fn collect(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        Value::Object(fields) => {
            let kind = value["type"].as_str().unwrap_or_default();
            let is_result = matches!(kind, "tool_result" | "function_call_output" | "custom_tool_call_output");
            if is_result || value["role"] == "tool" {
                let content = if value["output"].is_null() { &value["content"] } else { &value["output"] };
                found.push(text_of(content));
            } else if let Some(response) = fields.get("functionResponse") {
                found.push(text_of(&response["response"]));
            } else {
                fields.values().for_each(|inner| collect(inner, found));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(|part| part["text"].as_str().unwrap_or_default()).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => content.to_string(),
    }
}
