//! A client whose hooks drew its sitting and whose model attaches too: one episode, two witnesses, one record.

use std::path::Path;
use std::process::Command;

use majordomus_e2e::{Agent, CLAUDE_CODE, CODEX, Client, World, feed, payload_of, reported, sample_of, until};
use serde_json::{Value, json};

const ID: &str = "7d1f6b0a-3c52-4a86-9b7e-0f4f4c1d2e90";

/// An MCP server as Claude Code starts it in the conversation `id`.
fn server_of(world: &World, id: &str) -> Client {
    let mut command: Command = world.majordomus(&["mcp"]);
    let mut client = Client::start(command.env("CLAUDE_CODE_SESSION_ID", id));
    client.initialize();
    client
}

/// An MCP server as a client starts it that names its conversation in no variable.
fn server_of_a(world: &World, name: &str) -> Client {
    let mut client = world.server(&["mcp"]);
    let about = json!({ "name": name, "version": "1" });
    client.ask("initialize", &json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": about }));
    client
}

fn stand_in() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_stand-in"))
}

fn start(world: &World, id: &str) -> String {
    let line = world.hook("start", &payload_of("SessionStart.startup", id));
    line.split(' ').nth(1).expect("a session").to_owned()
}

fn end(world: &World, id: &str, name: &str) -> String {
    world.hook("end", &payload_of(name, id))
}

fn attached(answer: &Value) -> (&str, &str) {
    let episode = &answer["episode"];
    (episode["provider"].as_str().expect("a provider"), episode["external_id"].as_str().expect("an id"))
}

#[test]
fn a_model_that_attaches_joins_the_sitting_that_its_clients_hooks_drew() {
    let world = World::new();
    let session = start(&world, ID);
    let mut client = server_of(&world, ID);
    let answer = client.attach("a name of the model's own");
    assert_eq!(attached(&answer), ("claude-code", ID), "{answer:#}");
    assert!(reported(&answer).starts_with(&format!("session {session} kept, open since ")), "{answer:#}");
    assert_eq!((&answer["resumed"], &answer["recorded"]), (&json!(true), &json!(true)));
    client.ping();

    let let_go = client.detach();
    assert_eq!(let_go["recorded"], true);
    assert_eq!(reported(&let_go), "the connection let go; the client's own hooks end this episode");
    assert_eq!(client.detach(), let_go, "asked again, it says so again");
    assert!(client.mine().is_null(), "it holds nothing any more");
    assert_eq!((world.logs("open").len(), world.record_files().len()), (1, 0), "nothing has ended");
    let _ = client.lose();

    let line = end(&world, ID, "SessionEnd.prompt_input_exit");
    assert!(line.starts_with("episode closed (closed, reason prompt_input_exit) into "), "{line}");
    let record = world.record();
    assert_eq!((record.text("session_id"), record.text("provider")), (session.as_str(), "claude-code"));
    assert_eq!(record["witnesses"], json!(["hook", "connection"]));
    assert_eq!((&record["attachments"], &record["take_overs"]), (&json!(1), &json!(0)));
    assert_eq!(record.end(), ("closed", "prompt_input_exit", "hook"));
}

#[test]
fn a_variable_that_is_stale_after_clear_does_not_keep_the_model_from_its_sitting() {
    let world = World::new();
    start(&world, ID);
    // The server lives on over /clear and keeps the id that it was started with.
    let mut client = server_of(&world, ID);
    end(&world, ID, "SessionEnd.clear");
    let next = "f0c4f3f6-5f6e-4a5b-8a37-6a2f7a1c0b11";
    let session = start(&world, next);
    let answer = client.attach("whatever");
    assert_eq!(attached(&answer), ("claude-code", next), "found by the process that ran the hooks: {answer:#}");
    assert!(reported(&answer).contains(&session));
}

#[test]
fn a_connection_whose_client_has_no_sitting_of_hooks_draws_its_own() {
    let world = World::new();
    let mut client = server_of(&world, ID);
    assert_eq!(attached(&client.attach("own")), ("generic", "own"));
    client.detach();
    start(&world, "another conversation of another process");
    assert_eq!(world.record().text("provider"), "generic");
}

#[test]
fn a_client_that_names_its_conversation_with_each_call_joins_that_one_of_several() {
    let world = World::new();
    let mut client = world.server(&["mcp"]);
    let about = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "codex-mcp-client", "version": "0.171.0" } });
    client.ask("initialize", &about);
    for thread in ["thread-a", "thread-b"] {
        let payload = json!({ "session_id": thread, "hook_event_name": "SessionStart", "source": "startup", "cwd": world.repository() });
        let said = feed(&mut world.capture("codex", "start"), payload.to_string().as_bytes());
        assert!(said.hook().contains(" opened at "), "{said:?}");
    }
    let mut attach = |meta: Value| {
        let call = json!({ "name": "majordomus_session_attach", "arguments": { "external_id": "model's own" }, "_meta": meta });
        client.ask("tools/call", &call)["result"]["structuredContent"].clone()
    };
    let answer = attach(json!({ "threadId": "thread-b", "progressToken": 1 }));
    assert_eq!(attached(&answer), ("codex", "thread-b"), "{answer:#}");
    let answer = attach(json!({ "threadId": "thread-a" }));
    assert_eq!(attached(&answer), ("codex", "thread-a"), "{answer:#}");
    let answer = attach(json!({ "threadId": "a thread without hooks" }));
    assert_eq!(attached(&answer), ("generic", "model's own"), "no other thread of that process is taken for it");
}

#[test]
fn a_thread_that_is_named_and_has_no_hooks_is_not_the_only_one_of_its_process() {
    let world = World::new();
    CODEX.starts(&world, "thread-a");
    let mut client = server_of_a(&world, "codex-mcp-client");
    let arguments = json!({ "external_id": "own" });
    let call =
        json!({ "name": "majordomus_session_attach", "arguments": arguments, "_meta": { "threadId": "thread-b" } });
    let answer = client.ask("tools/call", &call)["result"]["structuredContent"].clone();
    assert_eq!(attached(&answer), ("generic", "own"), "{answer:#}");
}

#[test]
fn of_several_sittings_of_one_process_none_is_guessed() {
    let world = World::new();
    for thread in ["thread-a", "thread-b"] {
        CODEX.starts(&world, thread);
    }
    let mut client = server_of_a(&world, "codex-mcp-client");
    assert_eq!(attached(&client.attach("own")), ("generic", "own"));
}

#[test]
fn a_sitting_of_another_process_or_another_client_is_not_joined() {
    let world = World::new();
    let mut agent = Agent::start(&world, stand_in());
    let line = agent.hook("codex", "start", &sample_of(&world, "codex", "01-start", "thread-a"));
    assert!(line.contains(" opened at "), "{line}");
    CLAUDE_CODE.starts(&world, ID);
    let mut client = server_of_a(&world, "codex-mcp-client");
    assert_eq!(attached(&client.attach("own")), ("generic", "own"));
}

#[test]
fn a_process_that_has_left_a_sitting_does_not_join_it_any_more() {
    let world = World::new();
    let mut agent = Agent::start(&world, stand_in());
    agent.hook("claude-code", "start", &sample_of(&world, "claude-code", "01-start", ID));
    CLAUDE_CODE.fire(&world, "start", "15-start-resume", ID);
    let line = CLAUDE_CODE.ends(&world, ID);
    assert!(line.ends_with(" kept: another process of its client is still in it"), "{line}");
    let mut client = server_of_a(&world, "claude-code");
    assert_eq!(attached(&client.attach("own")), ("generic", "own"));
}

#[test]
fn a_client_whose_hooks_are_not_read_is_recorded_by_its_connection_though_it_names_its_conversation() {
    let world = World::new();
    let mut client = world.server(&["mcp"]);
    let about = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "goose-cli", "version": "1.53.0" } });
    client.ask("initialize", &about);
    let meta = json!({ "agent-session-id": "20261201_1", "agent-working-dir": world.repository() });
    let call = json!({ "name": "majordomus_session_attach", "arguments": { "external_id": "own" }, "_meta": meta });
    let answer = client.ask("tools/call", &call)["result"]["structuredContent"].take();
    assert_eq!(attached(&answer), ("generic", "own"), "{answer:#}");
    client.detach();
    assert_eq!(world.record().end(), ("closed", "detach", "connection"));
}

#[test]
fn an_id_that_is_open_already_is_what_it_says() {
    let world = World::new();
    let mut first = world.client();
    first.attach("worker-1");
    let _ = first.lose();
    start(&world, ID);
    let mut client = server_of(&world, ID);
    let answer = client.attach("worker-1");
    assert_eq!((attached(&answer), &answer["resumed"]), (("generic", "worker-1"), &json!(true)));
}

#[test]
fn a_bridge_says_whose_client_it_serves_and_the_sitting_outlives_the_server() {
    let world = World::new();
    let server = world.client();
    let session = start(&world, ID);
    let mut bridged = server_of(&world, ID);
    assert_eq!(attached(&bridged.attach("a name")), ("claude-code", ID));
    server.kill9();
    let mine = until("the next server has given the episode back", || {
        let mine = bridged.mine();
        (!mine.is_null()).then_some(mine)
    });
    assert_eq!((mine["provider"].as_str(), mine["external_id"].as_str()), (Some("claude-code"), Some(ID)));
    let _ = bridged.lose();
    end(&world, ID, "SessionEnd.other");
    let record = world.record();
    assert_eq!(record.text("session_id"), session);
    assert_eq!((record.end(), &record["attachments"]), (("interrupted", "other", "hook"), &json!(1)));
}

#[test]
fn a_client_without_a_variable_of_its_own_keeps_its_sitting_when_the_server_dies() {
    let world = World::new();
    let server = world.client();
    let payload = json!({ "session_id": "thread-a", "hook_event_name": "SessionStart", "source": "startup", "cwd": world.repository() });
    let said = feed(&mut world.capture("codex", "start"), payload.to_string().as_bytes());
    assert!(said.hook().contains(" opened at "), "{said:?}");
    let mut bridged = world.server(&["mcp"]);
    let about = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "codex-mcp-client", "version": "0.171.0" } });
    bridged.ask("initialize", &about);
    assert_eq!(attached(&bridged.attach("a name")), ("codex", "thread-a"), "known by the process that ran its hook");
    // Nor is it mixed up with what another client's hooks drew meanwhile.
    start(&world, ID);
    server.kill9();
    let mine = until("the next server has given the episode back", || {
        let mine = bridged.mine();
        (!mine.is_null()).then_some(mine)
    });
    assert_eq!((mine["provider"].as_str(), mine["external_id"].as_str()), (Some("codex"), Some("thread-a")));
    assert_eq!(mine["attachments"], 1);
}

#[test]
fn a_client_that_went_on_from_its_hooks_sitting_to_another_gets_that_one_back() {
    let world = World::new();
    let server = world.client();
    let mut first = world.client();
    first.attach("worker-1");
    let _ = first.lose();
    CODEX.starts(&world, "thread-a");
    let mut bridged = server_of_a(&world, "codex-mcp-client");
    assert_eq!(attached(&bridged.attach("a name")), ("codex", "thread-a"));
    assert_eq!(attached(&bridged.attach("worker-1")), ("generic", "worker-1"));
    server.kill9();
    let mine = until("the next server has given the episode back", || {
        let mine = bridged.mine();
        (!mine.is_null()).then_some(mine)
    });
    assert_eq!((mine["provider"].as_str(), mine["external_id"].as_str()), (Some("generic"), Some("worker-1")));
}

#[test]
fn a_server_that_is_stopped_or_whose_grace_is_over_ends_nothing_that_hooks_drew() {
    let world = World::new();
    let server = world.serve(&["--grace-seconds", "1"]);
    let session = start(&world, ID);
    let mut client = server_of(&world, ID);
    client.attach("a name");
    let _ = client.lose();
    until("the server has let it go", || {
        let listed = world.run(&["peers", "--json"]);
        (listed.code == Some(0) && listed.json()["peers"].as_array().is_some_and(Vec::is_empty)).then_some(())
    });
    let stopped = world.run(&["serve", "stop"]);
    assert_eq!(stopped.code, Some(0), "{stopped:?}");
    drop(server);
    assert!(world.records().is_empty(), "nobody ended it");
    let line = end(&world, ID, "SessionEnd.prompt_input_exit");
    assert!(line.starts_with("episode closed (closed, "), "{line}");
    assert_eq!(world.record().text("session_id"), session);
}

#[test]
fn a_person_may_still_close_what_hooks_drew_and_a_connection_holds() {
    let world = World::new();
    start(&world, ID);
    let mut client = server_of(&world, ID);
    client.attach("a name");
    until("the server answers commands", || (world.run(&["server", "status"]).code == Some(0)).then_some(()));
    let said = world.run(&["episodes", "close", ID]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(world.record().end(), ("closed", "detach", "operator"));
}

#[test]
fn a_client_without_a_session_joins_too_and_its_handle_outlives_the_server() {
    let world = World::new();
    let session = start(&world, ID);
    let silent = || {
        let mut command: Command = world.majordomus(&["mcp"]);
        Client::start(command.env("CLAUDE_CODE_SESSION_ID", ID))
    };
    let mut first = silent();
    let (answer, handle) = first.modern_attach("a name of the model's own");
    assert_eq!(attached(&answer), ("claude-code", ID), "{answer:#}");
    first.kill9();
    let mut second = silent();
    let mine = second.modern_done("majordomus_episodes", &json!({ "episode_handle": handle }))["mine"].clone();
    assert_eq!(mine["external_id"], ID, "{mine}");
    let let_go = second.modern_detach(&handle);
    assert_eq!(reported(&let_go), "the connection let go; the client's own hooks end this episode");
    assert_eq!((world.logs("open").len(), world.record_files().len()), (1, 0), "nothing has ended");
    let _ = second.lose();
    end(&world, ID, "SessionEnd.prompt_input_exit");
    let record = world.record();
    assert_eq!((record.text("session_id"), record.end()), (session.as_str(), ("closed", "prompt_input_exit", "hook")));
    assert_eq!((&record["attachments"], &record["take_overs"]), (&json!(1), &json!(0)));
}

#[test]
fn of_two_sittings_that_a_client_joined_in_turn_the_last_one_is_given_back() {
    let world = World::new();
    let server = world.client();
    for thread in ["thread-a", "thread-b"] {
        CODEX.starts(&world, thread);
    }
    let mut bridged = server_of_a(&world, "codex-mcp-client");
    for thread in ["thread-b", "thread-a"] {
        let call = json!({ "name": "majordomus_session_attach", "arguments": { "external_id": "own" }, "_meta": { "threadId": thread } });
        let answer = bridged.ask("tools/call", &call)["result"]["structuredContent"].clone();
        assert_eq!(attached(&answer), ("codex", thread), "{answer:#}");
    }
    server.kill9();
    let mine = until("the next server has given the episode back", || {
        let said = bridged.ask("tools/call", &json!({ "name": "majordomus_episodes", "arguments": {} }));
        let mine = said["result"]["structuredContent"]["mine"].clone();
        (!mine.is_null()).then_some(mine)
    });
    assert_eq!((mine["provider"].as_str(), mine["external_id"].as_str()), (Some("codex"), Some("thread-a")));
}
