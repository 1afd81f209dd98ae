//! `majordomus mcp`, line by line: what a client may send, and what comes back.

use majordomus_e2e::{INITIALIZE, Said, World, attach_line, feed, negotiated, now_ms, state_of};
use rustix::process::Signal;
use serde_json::{Value, json};

/// Sends everything at once, closes the input, and returns what was answered.
fn converse(world: &World, input: &[u8]) -> (Vec<Value>, Said) {
    let said = feed(&mut world.majordomus(&["mcp"]), input);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.is_empty() || said.out.ends_with('\n'), "{said:?}");
    let answers = said.out.lines().map(|line| serde_json::from_str(line).expect("an answer is JSON")).collect();
    (answers, said)
}

/// Sends lines after an initialize line of that revision, and returns the answers to them.
fn after_initialize(world: &World, revision: &str, lines: &str) -> Vec<Value> {
    let initialize = INITIALIZE.replace("2025-06-18", revision);
    let (mut answers, _) = converse(world, format!("{initialize}\n{lines}").as_bytes());
    assert_eq!(answers.remove(0)["result"]["protocolVersion"], revision);
    answers
}

fn code(answer: &Value) -> &Value {
    &answer["error"]["code"]
}

const PING: &str = "{\"jsonrpc\":\"2.0\",\"id\":\"after\",\"method\":\"ping\"}\n";

/// The last answer must be the one to [`PING`]: whatever came before, the connection lives.
fn alive(answers: &mut Vec<Value>) {
    assert_eq!(answers.pop(), Some(json!({ "jsonrpc": "2.0", "id": "after", "result": {} })));
}

#[test]
fn at_the_end_of_input_the_server_leaves_at_once() {
    let world = World::new();
    let since = now_ms();
    let said = world.run(&["mcp"]);
    assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (Some(0), "", ""), "from /dev/null");
    let mut client = world.client();
    client.attach("my-thread");
    let left = client.lose();
    assert_eq!((left.code, left.rest.len(), left.err.as_str()), (Some(0), 0, ""));
    assert!(now_ms() - since < 2000);
    assert_eq!(state_of(&world.episodes(), "my-thread"), "detached");
}

#[test]
fn a_server_whose_client_was_killed_sees_the_end_of_input_and_leaves() {
    let world = World::new();
    // The client is another process of which the server knows nothing but the pipe.
    let script = "mkfifo input && { \"$0\" mcp <input & } && exec cat >input";
    let mut shell = world.program("sh");
    shell.args(["-c", script]).arg(majordomus_e2e::majordomus()).current_dir(world.repository());
    let mut client = majordomus_e2e::Client::start(&mut shell);
    client.initialize();
    client.attach("my-thread");
    let since = now_ms();
    client.signal(Signal::KILL);
    // The server is the last one that holds the output: it has ended when that has.
    assert_eq!(client.line(), None);
    assert!(now_ms() - since < 1000);
    assert_eq!(state_of(&world.episodes(), "my-thread"), "detached");
}

#[test]
fn a_signal_ends_a_server_that_has_not_been_spoken_to() {
    let world = World::new();
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let mut client = world.client();
        client.ping();
        let since = now_ms();
        client.signal(signal);
        let left = client.wait();
        assert_eq!((left.code, left.signal, left.err.as_str()), (Some(0), None, ""), "{signal:?}");
        assert!(now_ms() - since < 2000, "{signal:?}");
    }
    assert!(world.nothing_recorded());
}

#[test]
fn a_line_that_is_not_json_is_answered_once_and_the_session_goes_on() {
    let world = World::new();
    let (answers, said) = converse(&world, format!("not json\n{INITIALIZE}\n").as_bytes());
    assert_eq!((code(&answers[0]), &answers[0]["id"]), (&json!(-32700), &Value::Null), "{answers:?}");
    assert_eq!((answers.len(), &answers[1]["id"]), (2, &json!(1)), "{answers:?}");
    assert!(answers[1]["result"]["serverInfo"]["name"] == "majordomus");
    assert_eq!(said.err.lines().count(), 1, "a diagnostic for a person: {said:?}");
}

#[test]
fn a_thousand_lines_of_a_log_are_a_thousand_errors_and_one_diagnostic() {
    let world = World::new();
    let noise = "2026-01-02 INFO something happened\n".repeat(1000);
    let (mut answers, said) = converse(&world, format!("{INITIALIZE}\n{noise}{PING}").as_bytes());
    alive(&mut answers);
    assert_eq!(answers.len(), 1001);
    assert!(answers[1..].iter().all(|answer| code(answer) == -32700), "once per line");
    assert_eq!(said.err.lines().count(), 1, "{}", said.err);
}

#[test]
fn responses_and_errors_that_nobody_asked_for_are_never_answered() {
    let world = World::new();
    let errors = "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"no\"}}\n".repeat(1000);
    let results = "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}\n".repeat(10);
    let notifications = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/never-heard-of\"}\n".repeat(10);
    let mut answers = after_initialize(&world, "2025-06-18", &format!("{errors}{results}{notifications}{PING}"));
    alive(&mut answers);
    assert_eq!(answers, Vec::<Value>::new());
}

#[test]
fn a_byte_order_mark_blank_lines_and_carriage_returns_are_taken_without_a_word() {
    let world = World::new();
    for input in [
        format!("\u{feff}{INITIALIZE}\n"),
        format!("\n\r\n \t\n{INITIALIZE}\r\n\r\n\n"),
        format!("{INITIALIZE}\r\n"),
        INITIALIZE.to_owned(),
    ] {
        let (answers, said) = converse(&world, input.as_bytes());
        assert_eq!((answers.len(), &answers[0]["id"]), (1, &json!(1)), "{input:?}: {answers:?}");
        assert_eq!(said.err, "", "{input:?}");
    }
}

#[test]
fn a_line_that_is_not_utf_8_is_dropped_and_the_next_one_answered() {
    let world = World::new();
    let input = [b"\xff\xfe\n", INITIALIZE.as_bytes(), b"\n\"\xc3\x28\"\n", PING.as_bytes()].concat();
    let (mut answers, _) = converse(&world, &input);
    alive(&mut answers);
    assert_eq!(answers.len(), 3, "{answers:?}");
    assert_eq!((code(&answers[0]), &answers[1]["id"], code(&answers[2])), (&json!(-32700), &json!(1), &json!(-32700)));
}

#[test]
fn nothing_is_written_before_the_initialize_result() {
    let world = World::new();
    let mut client = world.server(&["mcp"]);
    client.write(format!("{INITIALIZE}\n").as_bytes());
    let first = client.receive();
    assert_eq!((&first["id"], first["result"]["capabilities"].is_object()), (&json!(1), true), "{first}");
    let left = client.lose();
    assert_eq!((left.rest, left.err.as_str()), (Vec::new(), ""));
}

#[test]
fn requests_are_answered_without_the_initialized_notification_but_not_before_initialize() {
    let world = World::new();
    let list = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
    let (mut answers, _) = converse(&world, format!("{list}\n{INITIALIZE}\n{list}\n{PING}").as_bytes());
    alive(&mut answers);
    assert_eq!((code(&answers[0]), &answers[0]["id"]), (&json!(-32602), &json!(2)), "{answers:?}");
    let mut tools = answers[2]["result"]["tools"].as_array().expect("a list of tools").iter();
    assert!(tools.any(|tool| tool["name"] == "majordomus_session_attach"), "{answers:?}");
    let (mut answers, _) = converse(&world, PING.as_bytes());
    alive(&mut answers);
    assert!(answers.is_empty(), "a ping is answered before initialize too");
    let (answers, _) = converse(&world, attach_line("my-thread").as_bytes());
    assert_eq!(code(&answers[0]), -32602);
    assert!(world.nothing_recorded());
}

#[test]
fn every_version_is_answered_at_once_with_one_that_is_supported() {
    let world = World::new();
    for (asked, given) in negotiated() {
        let mut client = world.server(&["mcp"]);
        let about = json!({ "name": "anything", "version": "0" });
        let params = json!({ "protocolVersion": asked, "capabilities": {}, "clientInfo": about });
        assert_eq!(client.ask("initialize", &params)["result"]["protocolVersion"], given, "{asked}");
        client.ping();
    }
    let mut client = world.server(&["mcp"]);
    assert_eq!(client.ask("initialize", &json!({}))["result"]["protocolVersion"], "2025-11-25", "missing");
}

#[test]
fn ids_come_back_byte_for_byte() {
    let world = World::new();
    let long = format!("\"{}\"", "x".repeat(10_000));
    let ids = [
        "\"abc\"",
        "\"1\"",
        "1",
        "0",
        "9007199254740993",
        "-1",
        "\"\"",
        "18446744073709551616",
        "\"a\\u0062\\\"\\/\"",
        "\"ü😀\"",
        &long,
    ];
    let lines: String =
        ids.iter().map(|id| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n")).collect();
    let said = feed(&mut world.majordomus(&["mcp"]), lines.as_bytes());
    let expected: String =
        ids.iter().map(|id| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}}}}\n")).collect();
    assert_eq!(said.out, expected);
}

#[test]
fn an_id_that_is_none_is_an_invalid_request_and_nothing_is_done() {
    let world = World::new();
    let call = attach_line("never").trim_end().to_owned();
    let lines: String = ["null", "{}", "[]", "true", "1.5", "1e3"]
        .iter()
        .map(|id| call.replacen("\"id\":2", &format!("\"id\":{id}"), 1) + "\n")
        .collect();
    assert!(!lines.contains("\"id\":2"), "{lines}");
    let mut answers = after_initialize(&world, "2025-06-18", &format!("{lines}{PING}"));
    alive(&mut answers);
    assert_eq!(answers.len(), 6, "{answers:?}");
    for answer in answers {
        assert_eq!((code(&answer), &answer["id"]), (&json!(-32600), &Value::Null), "{answer}");
    }
    assert!(world.nothing_recorded());
}

#[test]
fn messages_that_are_none_are_answered_with_what_is_wrong() {
    let world = World::new();
    for (line, expected) in [
        (r#"{"jsonrpc":"1.0","id":5,"method":"ping"}"#, -32600),
        (r#"{"id":5,"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":5}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":5,"method":7}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":5,"method":"ping","method":"ping"}"#, -32600),
        (r#""text""#, -32600),
        (r#"{"jsonrpc":"2.0","id":5,"method":"never/heard-of"}"#, -32601),
        (r#"{"jsonrpc":"2.0","id":5,"method":"tools/call"}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":[]}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"never_heard_of"}}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":5,"method":"tools/list","params":{"cursor":"nope"}}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":5,"method":"ping""#, -32700),
    ] {
        let mut answers = after_initialize(&world, "2025-11-25", &format!("{line}\n{PING}"));
        alive(&mut answers);
        assert_eq!((answers.len(), code(&answers[0])), (1, &json!(expected)), "{line}: {answers:?}");
        assert!(answers[0]["error"]["message"].as_str().is_some_and(|message| message.len() > 10), "{answers:?}");
    }
}

#[test]
fn an_argument_that_is_wrong_is_a_result_that_the_model_can_read() {
    let world = World::new();
    let mut client = world.client();
    for (tool, arguments, named) in [
        ("majordomus_session_attach", json!({}), "external_id"),
        ("majordomus_session_attach", json!({ "external_id": 7 }), "external_id"),
        ("majordomus_session_attach", json!({ "external_id": "a", "unknown_field": 1 }), "unknown_field"),
        ("majordomus_session_attach", json!([]), "object"),
        ("majordomus_episodes", json!({ "limit": 0 }), "limit"),
        ("majordomus_episodes", json!({ "cursor": "nope" }), "cursor"),
    ] {
        let refused = client.tool(tool, &arguments);
        assert_eq!((&refused["isError"], &refused["structuredContent"]), (&json!(true), &Value::Null), "{refused}");
        let text = refused["content"][0]["text"].as_str().unwrap();
        assert!(text.starts_with("invalid_input: ") && text.contains(named), "{arguments}: {text}");
    }
    assert!(world.nothing_recorded());
}

#[test]
fn batches_are_served_where_the_revision_has_them_and_refused_elsewhere() {
    let world = World::new();
    let mixed = r#"[{"jsonrpc":"2.0","id":2,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}]"#;
    let notes =
        r#"[{"jsonrpc":"2.0","method":"notifications/initialized"},{"jsonrpc":"2.0","method":"notifications/x"}]"#;
    for revision in ["2024-11-05", "2025-03-26"] {
        let mut answers = after_initialize(&world, revision, &format!("{mixed}\n{notes}\n[]\n[1]\n{PING}"));
        alive(&mut answers);
        assert_eq!(answers[0], json!([{ "jsonrpc": "2.0", "id": 2, "result": {} }]), "{revision}");
        assert_eq!(code(&answers[1]), -32600, "only notifications have no answer; the next one is of the empty batch");
        assert_eq!((answers.len(), code(&answers[2][0])), (3, &json!(-32600)), "{answers:?}");
    }
    for revision in ["2025-06-18", "2025-11-25"] {
        let mut answers = after_initialize(&world, revision, &format!("{mixed}\n{notes}\n[]\n[1]\n{PING}"));
        alive(&mut answers);
        assert_eq!(answers.len(), 4, "{answers:?}");
        assert!(answers.iter().all(|answer| code(answer) == -32600 && answer["id"].is_null()), "{answers:?}");
        assert!(answers[0]["error"]["message"].as_str().is_some_and(|message| message.contains("batch")));
    }
}

#[test]
fn a_batch_whose_json_is_broken_is_a_parse_error() {
    let world = World::new();
    for revision in ["2025-03-26", "2025-11-25"] {
        let mut answers = after_initialize(&world, revision, &format!("[{{\"jsonrpc\"\n[1,]\n{PING}"));
        alive(&mut answers);
        assert_eq!((answers.len(), code(&answers[0]), code(&answers[1])), (2, &json!(-32700), &json!(-32700)));
    }
}
