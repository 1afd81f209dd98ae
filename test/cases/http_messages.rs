//! `/mcp`, method by method: which status and which answer every message has, and for whom a session begins.

use majordomus_e2e::{Reply, Request, Session, World, initialize, negotiated};
use serde_json::{Value, json};

const ALL: &str = "GET, POST, DELETE";

fn allowed(reply: &Reply) -> Vec<&str> {
    let mut methods: Vec<&str> = reply.header("allow").unwrap_or_default().split(',').map(str::trim).collect();
    methods.retain(|method| *method != "HEAD");
    methods.sort_unstable();
    methods
}

fn refused(reply: &Reply) -> (u16, Value) {
    (reply.status, reply.code())
}

fn request(method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 5, "method": method, "params": params })
}

#[test]
fn initialize_answers_at_once_with_a_revision_that_the_client_can_speak() {
    let world = World::new();
    let server = world.serve(&[]);
    let mut ids = Vec::new();
    for (asked, given) in negotiated() {
        let mut message = initialize("");
        message["params"]["protocolVersion"] = asked.clone();
        let reply = server.ask(&Request::post("/mcp", &message));
        assert_eq!(reply.done()["result"]["protocolVersion"], given, "{asked}");
        ids.push(reply.header("mcp-session-id").expect("a session has an id").to_owned());
    }
    assert!(ids.iter().all(|id| id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit())), "{ids:?}");
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), negotiated().len());
}

#[test]
fn the_header_of_an_initialize_is_not_judged_nor_is_an_old_session_that_it_names() {
    let world = World::new();
    let server = world.serve(&[]);
    for (name, value) in
        [("MCP-Protocol-Version", "2026-07-28"), ("MCP-Protocol-Version", "nonsense"), ("Mcp-Session-Id", "dead")]
    {
        let reply = server.ask(&Request::post("/mcp", &initialize("2025-06-18")).header(name, value));
        assert_eq!(reply.done()["result"]["protocolVersion"], "2025-06-18", "{name}: {value}");
        assert!(reply.header("mcp-session-id").is_some());
    }
}

#[test]
fn initialize_whose_params_are_wrong_in_themselves_begins_no_session() {
    let world = World::new();
    let server = world.serve(&[]);
    let reply = server.ask(&Request::post("/mcp", &request("initialize", &json!([1]))));
    assert_eq!((refused(&reply), reply.header("mcp-session-id")), ((200, json!(-32602)), None), "{reply:?}");
    assert_eq!(server.status()["peers"], 0);
}

#[test]
fn requests_of_a_session_are_answered_before_and_after_the_initialized_note() {
    let world = World::new();
    let server = world.serve(&[]);
    let mut connection = server.connect();
    let begun = connection.ask(&Request::post("/mcp", &initialize("2025-06-18")));
    let id = begun.header("mcp-session-id").expect("a session has an id").to_owned();
    let post = |message: &Value| Request::post("/mcp", message).header("Mcp-Session-Id", &id);
    let tools = connection.ask(&post(&request("tools/list", &json!({})))).done();
    assert!(tools["result"]["tools"].as_array().is_some_and(|tools| tools.len() >= 5), "{tools}");
    assert_eq!(connection.ask(&post(&request("ping", &json!({})))).done()["result"], json!({}));
    let noted = connection.ask(&post(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })));
    assert_eq!((noted.status, noted.body.len()), (202, 0));
    assert_eq!(connection.ask(&post(&request("tools/list", &json!({})))).done(), tools);
}

#[test]
fn methods_that_are_not_served_and_wrong_params_are_errors_with_status_200() {
    let world = World::new();
    let server = world.serve(&[]);
    let mut session = server.session();
    for (method, params, code) in [
        ("no/such", json!({}), -32601),
        ("server/discover", json!({}), -32601),
        ("subscriptions/listen", json!({}), -32601),
        ("tasks/list", json!({}), -32601),
        ("tools/call", json!({}), -32602),
        ("tools/call", json!({ "name": "no_such_tool" }), -32602),
        ("tools/call", json!([1]), -32602),
        ("tools/list", json!({ "cursor": "nope" }), -32602),
    ] {
        let reply = session.post(&request(method, &params));
        assert_eq!(refused(&reply), (200, json!(code)), "{method} {params}");
        assert_eq!(reply.json()["id"], 5);
    }
    for arguments in [json!({}), json!({ "external_id": 7 }), json!({ "external_id": "a", "other": 1 })] {
        let refusal = session.tool("majordomus_session_attach", &arguments);
        assert_eq!((&refusal["isError"], &refusal["structuredContent"]), (&json!(true), &Value::Null), "{refusal}");
    }
    let params = json!({ "name": "majordomus_episodes", "arguments": {}, "task": { "ttl": 1 } });
    assert_eq!(session.ask("tools/call", &params)["result"]["isError"], Value::Null, "a task is ignored");
    session.ping();
}

#[test]
fn structured_answers_and_titles_are_only_sent_to_revisions_that_have_them() {
    let world = World::new();
    let server = world.serve(&[]);
    for (revision, structured) in
        [("2024-11-05", false), ("2025-03-26", false), ("2025-06-18", true), ("2025-11-25", true)]
    {
        let mut session = Session::begin(server.address(), revision);
        let tools = session.ask("tools/list", &json!({}));
        assert_eq!(tools["result"]["tools"][0]["outputSchema"].is_object(), structured, "{revision}");
        assert_eq!(tools["result"]["tools"][0]["annotations"].is_object(), revision != "2024-11-05", "{revision}");
        let result = session.tool("majordomus_episodes", &json!({}));
        assert_eq!(result["structuredContent"].is_object(), structured, "{revision}: {result}");
        let text = result["content"][0]["text"].as_str().expect("a result has text");
        assert_eq!(serde_json::from_str::<Value>(text).expect("it is JSON")["episodes"], json!([]));
    }
}

#[test]
fn get_without_a_session_is_405_and_says_what_is_allowed() {
    let world = World::new();
    let server = world.serve(&[]);
    let mut session = server.session();
    for accept in ["text/event-stream", "*/*", "application/json"] {
        let reply = server.ask(&Request::get("/mcp").header("Accept", accept));
        assert_eq!((reply.status, allowed(&reply)), (405, vec!["DELETE", "GET", "POST"]), "{reply:?}");
    }
    let later = session.request("GET").without("MCP-Protocol-Version").header("MCP-Protocol-Version", "2026-07-28");
    let reply = server.ask(&later.header("Accept", "text/event-stream"));
    assert_eq!((reply.status, reply.header("allow")), (405, Some(ALL)), "a later revision has no such stream");
    for method in ["PUT", "PATCH", "OPTIONS"] {
        let reply = server.ask(&Request::new(method, "/mcp"));
        assert_eq!((reply.status, allowed(&reply)), (405, vec!["DELETE", "GET", "POST"]), "{method}: {reply:?}");
    }
    session.ping();
}

#[test]
fn get_with_a_dead_session_is_404_and_one_that_takes_no_events_406() {
    let world = World::new();
    let server = world.serve(&[]);
    let mut session = server.session();
    let reply = server.ask(&session.request("GET").header("Accept", "application/json"));
    assert_eq!(reply.status, 406, "{reply:?}");
    assert_eq!(session.delete().status, 204);
    let reply = server.ask(&session.request("GET").header("Accept", "text/event-stream"));
    assert_eq!((refused(&reply), reply.header("content-type")), ((404, json!(-32600)), Some("application/json")));
}

#[test]
fn delete_is_204_once_then_404_without_an_id_400_and_405_for_a_later_revision() {
    let world = World::new();
    let server = world.serve(&[]);
    let mut session = server.session();
    let reply = server.ask(&Request::new("DELETE", "/mcp"));
    assert_eq!(refused(&reply), (400, json!(-32600)), "{reply:?}");
    let later = Request::new("DELETE", "/mcp").header("Mcp-Session-Id", &session.id);
    let reply = server.ask(&later.header("MCP-Protocol-Version", "2026-07-28"));
    assert_eq!((reply.status, reply.header("allow")), (405, Some(ALL)), "{reply:?}");
    session.ping();
    let reply = session.delete();
    assert_eq!((reply.status, reply.body.len()), (204, 0), "{reply:?}");
    assert_eq!(refused(&session.delete()), (404, json!(-32600)));
    assert_eq!(refused(&session.post(&request("ping", &json!({})))), (404, json!(-32600)), "dead at once");
}

#[test]
fn a_version_header_that_is_no_revision_is_400_and_another_known_one_is_served_as_negotiated() {
    let world = World::new();
    let server = world.serve(&[]);
    let session = Session::begin(server.address(), "2025-06-18");
    let mut connection = server.connect();
    let ping = |version: &str| {
        let body = request("ping", &json!({}));
        let message = Request::post("/mcp", &body).header("Mcp-Session-Id", &session.id);
        if version.is_empty() { message } else { message.header("MCP-Protocol-Version", version) }
    };
    for (version, code) in
        [("1999-01-01", -32600), ("nonsense", -32600), ("2025-06-18 ,", -32600), ("2026-07-28", -32602)]
    {
        let reply = connection.ask(&ping(version));
        assert_eq!((refused(&reply), &reply.json()["id"]), ((400, json!(code)), &json!(5)), "{version}: {reply:?}");
    }
    for version in ["", "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        assert_eq!(connection.ask(&ping(version)).done()["result"], json!({}), "{version}");
    }
    let list = Request::post("/mcp", &request("tools/list", &json!({}))).header("Mcp-Session-Id", &session.id);
    let tools = connection.ask(&list.header("MCP-Protocol-Version", "2024-11-05")).done();
    assert!(tools["result"]["tools"][0]["outputSchema"].is_object(), "the session's revision has them: {tools}");
}

#[test]
fn a_cancelled_note_for_a_request_that_does_not_run_changes_nothing() {
    let world = World::new();
    let server = world.serve(&[]);
    let mut session = server.session();
    session.attach("my-thread");
    for id in [json!(1), json!("never"), json!(null), json!({})] {
        let note = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } });
        assert_eq!(session.post(&note).status, 202);
    }
    assert_eq!(session.detach()["recorded"], true);
}
