//! What real clients were seen to send, replayed over stdio and over HTTP: each request is answered once, as its revision has
//! it, and the call of a tool is the attach that their models would make.

use std::fs;
use std::path::PathBuf;

use majordomus_e2e::{Request, Schema, Server, World, root, state_of};
use serde_json::{Value, json};

/// One run of a client: who, and its messages in order.
fn runs() -> Vec<(String, Vec<Value>)> {
    let folder = root().join("test/fixtures/frames");
    let mut files: Vec<PathBuf> = Vec::new();
    for client in fs::read_dir(&folder).expect("there are frames").flatten().filter(|entry| entry.path().is_dir()) {
        files.extend(fs::read_dir(client.path()).expect("of a client").flatten().map(|entry| entry.path()));
    }
    files.sort();
    assert_eq!(files.len(), 25, "{files:?}");
    files
        .into_iter()
        .map(|file| (file.strip_prefix(&folder).expect("below").display().to_string(), messages(&file)))
        .collect()
}

fn messages(file: &PathBuf) -> Vec<Value> {
    let text = fs::read_to_string(file).expect("a run can be read");
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.map(|line| ours(serde_json::from_str(line).expect("a message is JSON"))).collect()
}

/// The same message, with our tool in the place of the one that was called.
fn ours(mut message: Value) -> Value {
    if message["method"] == "tools/call" {
        message["params"]["name"] = "majordomus_session_attach".into();
        message["params"]["arguments"] = json!({ "external_id": "my-thread" });
    }
    message
}

fn version_of(message: &Value) -> Option<&str> {
    message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"].as_str()
}

/// The revision that a message is of, given that of the session.
fn revision<'a>(message: &'a Value, session: &'a str) -> &'a str {
    version_of(message).unwrap_or(session)
}

fn result_of(method: &str) -> &'static str {
    match method {
        "initialize" => "InitializeResult",
        "server/discover" => "DiscoverResult",
        "ping" => "EmptyResult",
        "tools/list" => "ListToolsResult",
        "tools/call" => "CallToolResult",
        "prompts/list" => "ListPromptsResult",
        "resources/list" => "ListResourcesResult",
        "resources/templates/list" => "ListResourceTemplatesResult",
        _ => panic!("{method} was never seen"),
    }
}

/// Holds an answer against what was asked; returns the revision of the session, once one has begun.
fn check(run: &str, message: &Value, answer: &Value, session: &mut String) {
    let method = message["method"].as_str().expect("a request has a method");
    assert_eq!(answer["id"], message["id"], "{run} {method}");
    if method == "initialize" {
        *session = answer["result"]["protocolVersion"].as_str().expect("it is agreed on").to_owned();
        assert_eq!(
            message["params"]["protocolVersion"],
            session.as_str(),
            "{run}: every client is given what it asks for"
        );
    }
    Schema::of(known(revision(message, session))).answers(answer, Some(result_of(method)));
    assert_ne!(answer["result"]["isError"], true, "{run} {method}: {answer}");
}

fn known(revision: &str) -> &'static str {
    let all = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];
    all.into_iter().find(|known| *known == revision).unwrap_or_else(|| panic!("{revision:?} is no revision"))
}

fn is_request(message: &Value) -> bool {
    message["method"].is_string() && !message["id"].is_null()
}

/// Whether somebody attached, and how often: one process is one client, however often its model calls.
fn compare(run: &str, world: &World, messages: &[Value]) {
    let calls = messages.iter().filter(|message| message["method"] == "tools/call").count();
    if calls == 0 {
        assert!(world.nothing_recorded(), "{run} asked for nothing");
        return;
    }
    assert_eq!((world.logs("open").len(), world.records().len()), (1, 0), "{run}");
    assert_eq!(state_of(&world.episodes(), "my-thread"), "detached", "{run}");
}

#[test]
fn what_every_client_sends_over_stdio_is_answered_and_recorded() {
    for (run, messages) in runs() {
        let world = World::new();
        let mut client = world.server(&["mcp"]);
        let mut session = String::new();
        for message in &messages {
            client.send(message);
            if is_request(message) {
                check(&run, message, &client.receive(), &mut session);
            }
        }
        let left = client.lose();
        assert_eq!((left.code, left.err.as_str()), (Some(0), ""), "{run}");
        compare(&run, &world, &messages);
    }
}

/// A POST of a message as its client sends it: with the headers of its revision.
fn post(message: &Value, id: Option<&str>, session: &str) -> Request {
    if version_of(message).is_some() {
        return Request::modern(message);
    }
    let request = Request::post("/mcp", message);
    match id {
        Some(id) => request.header("Mcp-Session-Id", id).header("MCP-Protocol-Version", session),
        None => request,
    }
}

#[test]
fn what_every_client_sends_is_answered_over_http_too() {
    let world = World::new();
    let server: Server = world.serve(&[]);
    for (run, messages) in runs() {
        let mut connection = server.connect();
        let (mut id, mut session): (Option<String>, String) = (None, String::new());
        for message in &messages {
            let reply = connection.ask(&post(message, id.as_deref(), &session));
            if is_request(message) {
                id = reply.header("mcp-session-id").map(str::to_owned).or(id);
                check(&run, message, &reply.done(), &mut session);
            } else {
                assert_eq!(reply.status, 202, "{run}: {reply:?}");
            }
        }
        if let Some(id) = &id {
            let reply = connection.ask(&Request::new("DELETE", "/mcp").header("Mcp-Session-Id", id));
            assert_eq!(reply.status, 204, "{run}: {reply:?}");
        }
    }
    assert_eq!((world.logs("open").len(), world.records().len()), (1, 0), "all of them are one conversation here");
}
