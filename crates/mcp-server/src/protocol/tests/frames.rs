//! What is a message, and what becomes of the rest.

use majordomus_capability::project::mcp::Revision;
use serde_json::{Value, json};

use super::{Client, NULL, PING, initialize, request};
use crate::protocol::{BATCH_MAX, Handled};

#[test]
fn ids_are_echoed_byte_for_byte() {
    let mut client = Client::silent();
    let big = "9".repeat(100);
    for id in ["\"abc\"", "\"1\"", "1", "0", "-1", "-0", "9007199254740993", &big, "\"\"", r#""\u00e9\n""#, "\"é ✓\""]
    {
        let answer = client.raw(request(id, "ping").as_bytes());
        assert_eq!(answer, format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}}}}\n"));
    }
}

#[test]
fn a_request_whose_id_is_no_string_and_no_integer_is_not_executed() {
    let mut client = Client::new(Revision::NEWEST_LEGACY);
    for id in ["null", "true", "false", "{}", "[]", "1.5", "1.0", "1e2", "-1E2"] {
        let params = r#""params":{"name":"majordomus_session_attach","arguments":{"external_id":"a"}}"#;
        let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call",{params}}}"#);
        assert_eq!(client.error(&line), (-32600, NULL), "{id}");
    }
    assert!(client.board.list().is_empty());
}

#[test]
fn an_error_about_an_unreadable_id_has_the_id_that_its_revision_wants() {
    for revision in [None, Some(Revision::V2024_11_05), Some(Revision::V2025_06_18), Some(Revision::V2025_11_25)] {
        let mut client = revision.map_or_else(Client::silent, Client::new);
        for line in ["not json", "5", r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#] {
            let expected = (revision != Some(Revision::V2025_11_25)).then_some(&NULL);
            assert_eq!(client.ask(line).get("id"), expected, "{revision:?} {line}");
        }
    }
}

#[test]
fn a_notification_is_never_answered_whatever_it_says() {
    let mut client = Client::new(Revision::NEWEST_LEGACY);
    for line in [
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/unheard_of","params":[1]}"#,
        r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"majordomus_session_attach","arguments":{"external_id":"a"}}}"#,
        r#"{"jsonrpc":"1.0","method":"ping"}"#,
        r#"{"method":5}"#,
    ] {
        assert_eq!(client.raw(line.as_bytes()), "", "{line}");
    }
    assert!(client.board.list().is_empty(), "a call without an id is not executed");
}

#[test]
fn responses_are_dropped_silently_however_they_look() {
    let mut client = Client::new(Revision::NEWEST_LEGACY);
    for line in [
        r#"{"jsonrpc":"2.0","id":7,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}"#,
        r#"{"id":[],"error":null}"#,
        r#"{"result":1}"#,
    ] {
        for _ in 0..3 {
            assert_eq!(client.raw(line.as_bytes()), "", "{line}");
        }
    }
}

#[test]
fn what_is_no_message_is_an_invalid_request() {
    let mut client = Client::new(Revision::NEWEST_LEGACY);
    for (line, id) in [
        ("5", NULL),
        ("\"text\"", NULL),
        ("null", NULL),
        ("true", NULL),
        ("{}", NULL),
        (r#"{"jsonrpc":"2.0","id":4}"#, json!(4)),
        (r#"{"jsonrpc":"2.0","id":4,"method":null}"#, json!(4)),
        (r#"{"jsonrpc":"2.0","id":4,"method":["ping"]}"#, json!(4)),
        (r#"{"jsonrpc":"1.0","id":4,"method":"ping"}"#, json!(4)),
        (r#"{"jsonrpc":2.0,"id":4,"method":"ping"}"#, json!(4)),
        (r#"{"id":"x","method":"ping"}"#, json!("x")),
        (r#"{"jsonrpc":"2.0","id":4,"id":5,"method":"ping"}"#, NULL),
    ] {
        assert_eq!(client.error(line), (-32600, id), "{line}");
    }
}

#[test]
fn a_malformed_line_is_answered_once_and_the_stream_survives() {
    let mut client = Client::silent();
    for line in ["not json", "{", "{\"jsonrpc\":\"2.0\",\"id\":1", "[1,", "{} {}", "{'id':1}", "\u{0}", "tru"] {
        assert_eq!(client.error(line), (-32700, NULL), "{line}");
        assert_eq!(client.session.handle(line.as_bytes(), &mut Vec::new()), Handled::Malformed);
    }
    client.initialize(Revision::NEWEST_LEGACY);
}

#[test]
fn a_line_that_is_not_utf_8_is_a_malformed_line() {
    let mut client = Client::silent();
    for line in [b"\xff\xfe".as_slice(), b"{\"jsonrpc\":\"2.0\",\"id\":\"\xff\",\"method\":\"ping\"}"] {
        let answer: Value = serde_json::from_str(&client.raw(line)).unwrap();
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(-32700), &NULL));
    }
    client.initialize(Revision::NEWEST_LEGACY);
}

#[test]
fn a_byte_order_mark_a_carriage_return_and_blank_lines_say_nothing() {
    let mut client = Client::silent();
    for line in ["", "\r", " \t", "\u{feff}", "\u{feff}\r\n"] {
        assert_eq!(client.raw(line.as_bytes()), "");
        assert_eq!(client.session.handle(line.as_bytes(), &mut Vec::new()), Handled::Blank);
    }
    let line = format!("\u{feff}{}\r\n", initialize(""));
    assert_eq!(client.ask(&line)["result"]["protocolVersion"], "2025-11-25");
}

#[test]
fn batches_are_answered_in_the_revisions_that_have_them() {
    for revision in [Revision::V2024_11_05, Revision::V2025_03_26] {
        let mut client = Client::new(revision);
        let cancelled = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}"#;
        let batch =
            format!("[ {},{cancelled}, {} ,{}]", request("2", "ping"), request("\"x\"", "nope"), "{\"result\":1}");
        let answer = client.ask(&batch);
        assert_eq!(answer[0], json!({"jsonrpc": "2.0", "id": 2, "result": {}}));
        assert_eq!((&answer[1]["id"], &answer[1]["error"]["code"]), (&json!("x"), &json!(-32601)));
        assert_eq!(answer.as_array().unwrap().len(), 2);

        assert_eq!(client.raw(format!("[{cancelled},{cancelled}]").as_bytes()), "", "no empty array is written");
        assert_eq!(client.error("[]"), (-32600, NULL));
        let answer = client.ask("[1,[],{}]");
        assert!(answer.as_array().unwrap().iter().all(|one| one["error"]["code"] == -32600 && one["id"] == NULL));
        assert_eq!(answer.as_array().unwrap().len(), 3);
        let inside = client.ask(&format!("[{}]", initialize("")));
        assert_eq!(inside[0]["error"]["code"], -32600);
        assert_eq!(client.session.revision(), Some(revision));
        assert_eq!(client.ask(PING)["result"], json!({}));
    }
}

#[test]
fn a_batch_is_bounded() {
    let mut client = Client::new(Revision::V2025_03_26);
    let batch = |count: usize| format!("[{}]", vec![PING; count].join(","));
    assert_eq!(client.ask(&batch(BATCH_MAX)).as_array().unwrap().len(), BATCH_MAX);
    assert_eq!(client.error(&batch(BATCH_MAX + 1)), (-32600, NULL));
}

#[test]
fn elsewhere_a_batch_is_one_invalid_request_and_nothing_of_it_is_executed() {
    for revision in [Revision::V2025_06_18, Revision::V2025_11_25] {
        let mut client = Client::new(revision);
        let attach = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"majordomus_session_attach","arguments":{"external_id":"a"}}}"#;
        for line in [format!("[{attach},{PING}]"), "[]".into(), "[1]".into()] {
            let answer = client.ask(&line);
            assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(-32600), &NULL));
            assert!(answer["error"]["message"].as_str().unwrap().contains("batches"), "{answer}");
        }
        assert!(client.board.list().is_empty());
        assert_eq!(client.ask(PING)["result"], json!({}));
    }
}

#[test]
fn deep_nesting_is_no_reason_to_fall_over() {
    let mut client = Client::new(Revision::V2025_03_26);
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let line = format!(r#"{{"jsonrpc":"2.0","id":2,"method":"ping","params":{deep}}}"#);
    assert_eq!(client.ask(&line)["result"], json!({}));
    let line = format!(
        r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"majordomus_episodes","arguments":{{"state":{deep}}}}}}}"#
    );
    assert_eq!(client.ask(&line)["result"]["isError"], true);
    assert_eq!(client.ask(&deep)[0]["error"]["code"], -32600);
}
