//! `/mcp`, body by body: which bytes are a message, under which id it is answered, and what an array is.

use majordomus_e2e::{Reply, Request, Server, Session, World};
use serde_json::{Value, json};

const REVISIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

fn session(server: &Server, revision: &str) -> Session {
    Session::begin(server.address(), revision)
}

/// The status and the JSON-RPC error code.
fn refused(reply: &Reply) -> (u16, Value) {
    assert_eq!(reply.header("content-type"), Some("application/json"), "{reply:?}");
    let body = reply.json();
    assert!(body["error"]["message"].as_str().is_some_and(|message| message.len() > 10), "{body}");
    (reply.status, body["error"]["code"].clone())
}

/// Checks the id of an error about something whose id could not be read.
fn no_id(reply: &Reply, revision: &str) {
    let body = reply.json();
    let wanted = (revision < "2025-11-25").then_some(&Value::Null);
    assert_eq!(body.get("id"), wanted, "{revision}: {body}");
}

#[test]
fn every_id_comes_back_byte_for_byte() {
    let world = World::new();
    let server = world.serve(&[]);
    let mut session = server.session();
    for id in
        [r#""abc""#, r#""1""#, "1", "0", "9007199254740993", "-1", r#""""#, r#""\u0041\"é""#, "18446744073709551616"]
    {
        for (method, rest) in [("ping", r#""result":{}"#), ("no/such", r#""error":"#)] {
            let reply = session.post_text(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}"}}"#));
            assert_eq!(reply.status, 200, "{id}: {reply:?}");
            let begins = format!(r#"{{"jsonrpc":"2.0","id":{id},{rest}"#);
            assert!(reply.text().starts_with(&begins), "{begins} {reply:?}");
        }
        let text =
            majordomus_e2e::initialize("2025-06-18").to_string().replacen("\"id\":1", &format!("\"id\":{id}"), 1);
        let reply = server.ask(&Request::text("/mcp", text));
        assert!(reply.text().contains(&format!("\"id\":{id},\"result\"")), "{reply:?}");
    }
}

#[test]
fn an_id_that_is_null_an_object_an_array_or_a_bool_is_refused_and_nothing_is_executed() {
    let world = World::new();
    let server = world.serve(&[]);
    for revision in REVISIONS {
        let mut session = session(&server, revision);
        for id in ["null", "{}", "[]", "true", "1.5"] {
            let call = r#""params":{"name":"majordomus_session_attach","arguments":{"external_id":"never"}}"#;
            let reply = session.post_text(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call",{call}}}"#));
            assert_eq!(refused(&reply), (400, json!(-32600)), "{revision} {id}");
            no_id(&reply, revision);
        }
        session.ping();
    }
    let initialize = majordomus_e2e::initialize("2025-06-18").to_string().replacen("\"id\":1", "\"id\":null", 1);
    let reply = server.ask(&Request::text("/mcp", initialize));
    assert_eq!((refused(&reply), reply.header("mcp-session-id")), ((400, json!(-32600)), None), "{reply:?}");
    no_id(&reply, "");
    assert_eq!(server.episodes()["episodes"], json!([]));
    assert!(world.logs("open").is_empty() && world.records().is_empty());
}

#[test]
fn what_is_not_json_in_utf_8_is_a_parse_error_and_the_session_goes_on() {
    let world = World::new();
    let server = world.serve(&[]);
    for revision in REVISIONS {
        let mut session = session(&server, revision);
        for body in
            [&b"not json"[..], b"", b" \r\n", b"{", b"{\"jsonrpc\":\"2.0\",", b"\xff\xfe", b"[1,]", b"[{\"jsonrpc\""]
        {
            let reply = session.post_text(body);
            assert_eq!(refused(&reply), (400, json!(-32700)), "{revision} {body:?}");
            no_id(&reply, revision);
            session.ping();
        }
    }
    let reply = server.ask(&Request::text("/mcp", "not json"));
    assert_eq!(refused(&reply), (400, json!(-32700)), "without a session too");
    no_id(&reply, "");
}

#[test]
fn json_that_is_no_message_is_an_invalid_request() {
    let world = World::new();
    let server = world.serve(&[]);
    let mut session = server.session();
    for body in ["1", "\"a\"", "true", "null", "{}", r#"{"jsonrpc":"2.0","id":1}"#, r#"{"id":1,"method":"ping"}"#] {
        assert_eq!(refused(&session.post_text(body)), (400, json!(-32600)), "{body}");
    }
    let reply = session.post_text(r#"{"jsonrpc":"1.0","id":"mine","method":"ping"}"#);
    assert_eq!((refused(&reply), &reply.json()["id"]), ((400, json!(-32600)), &json!("mine")), "its id was readable");
    session.ping();
}

#[test]
fn a_byte_order_mark_and_blanks_around_a_message_are_taken() {
    let world = World::new();
    let server = world.serve(&[]);
    let mut session = server.session();
    let reply = session.post_text("\u{feff}\r\n {\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}\r\n\n");
    assert_eq!(reply.done()["result"], json!({}));
}

#[test]
fn notifications_and_responses_are_taken_without_a_body() {
    let world = World::new();
    let server = world.serve(&[]);
    let mut session = server.session();
    for body in [
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 99 } }),
        json!({ "jsonrpc": "2.0", "method": "notifications/never-heard-of", "params": [1] }),
        json!({ "jsonrpc": "2.0", "id": 7, "result": {} }),
        json!({ "jsonrpc": "2.0", "id": "x", "error": { "code": -32603, "message": "no" } }),
        json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -32700, "message": "no" } }),
    ] {
        let reply = session.post(&body);
        assert_eq!((reply.status, reply.text().as_str()), (202, ""), "{body}: {reply:?}");
    }
    session.ping();
}

const MIXED: &str = r#"[{"jsonrpc":"2.0","id":2,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}]"#;
const NOTES: &str =
    r#"[{"jsonrpc":"2.0","method":"notifications/initialized"},{"jsonrpc":"2.0","method":"notifications/x"}]"#;

#[test]
fn a_revision_with_batches_gets_an_array_of_answers_and_none_for_notifications() {
    let world = World::new();
    let server = world.serve(&[]);
    for revision in ["2024-11-05", "2025-03-26"] {
        let mut session = session(&server, revision);
        let reply = session.post_text(MIXED);
        assert_eq!(reply.done(), json!([{ "jsonrpc": "2.0", "id": 2, "result": {} }]), "{revision}");
        let reply = session.post_text(NOTES);
        assert_eq!((reply.status, reply.body.len()), (202, 0), "{revision}: {reply:?}");
        let reply = session.post_text("[]");
        assert_eq!(refused(&reply), (400, json!(-32600)), "{revision}");
        let answers = session.post_text("[1]").json();
        let answers = answers.as_array().cloned().unwrap_or_else(|| vec![answers]);
        assert_eq!((answers.len(), &answers[0]["error"]["code"]), (1, &json!(-32600)), "{revision}: {answers:?}");
        session.ping();
    }
}

#[test]
fn an_initialize_inside_a_batch_begins_nothing() {
    let world = World::new();
    let server = world.serve(&[]);
    let mut session = session(&server, "2025-03-26");
    let batch = json!([majordomus_e2e::initialize("2025-03-26"), { "jsonrpc": "2.0", "id": 2, "method": "ping" }]);
    let reply = session.post(&batch);
    let answers = reply.done();
    assert_eq!((&answers[0]["error"]["code"], &answers[1]["result"]), (&json!(-32600), &json!({})), "{answers}");
    assert_eq!(reply.header("mcp-session-id"), None);
    let reply = server.ask(&Request::post("/mcp", &batch));
    assert_eq!((refused(&reply), reply.header("mcp-session-id")), ((400, json!(-32600)), None), "{reply:?}");
    assert_eq!(server.status()["peers"], 1);
}

#[test]
fn every_other_revision_refuses_an_array_whole_and_executes_nothing_of_it() {
    let world = World::new();
    let server = world.serve(&[]);
    let call = json!({ "name": "majordomus_session_attach", "arguments": { "external_id": "never" } });
    let batch = json!([{ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call }]).to_string();
    for revision in ["2025-06-18", "2025-11-25"] {
        let mut session = session(&server, revision);
        for body in [MIXED, NOTES, "[]", "[1]", &batch] {
            let reply = session.post_text(body);
            assert_eq!(refused(&reply), (400, json!(-32600)), "{revision} {body}");
            no_id(&reply, revision);
            assert!(reply.text().contains("batch"), "{reply:?}");
        }
        session.ping();
    }
    assert_eq!(server.episodes()["episodes"], json!([]));
}
