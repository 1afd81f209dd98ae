//! Requests that are complete in themselves, over HTTP: which status each has, and what a handle is worth from anywhere.

use majordomus_e2e::{Reply, Request, Stateless, World, meta, modern, session_id, state_of};
use serde_json::{Value, json};

fn refused(reply: &Reply) -> (u16, Value) {
    (reply.status, reply.code())
}

#[test]
fn a_whole_sitting_over_connections_that_come_and_go() {
    let world = World::new();
    let server = world.serve(&[]);
    let connect = || Stateless::connect(server.address());
    let found = connect().ask("server/discover", &json!({})).done()["result"].clone();
    assert_eq!((&found["supportedVersions"], &found["cacheScope"]), (&json!(["2026-07-28"]), &json!("public")));
    assert_eq!(server.status()["peers"], 0);
    let (opened, handle) = connect().attach("my-thread");
    assert_eq!(server.status()["peers"], 1);
    let mine = connect().done("majordomus_episodes", &json!({ "episode_handle": handle }));
    assert_eq!((&mine["mine"]["external_id"], &mine["mine"]["attachments"]), (&json!("my-thread"), &json!(1)));
    assert_eq!(state_of(&server.episodes(), "my-thread"), "open", "a connection that ends is nobody's loss");
    let closed = connect().detach(&handle);
    assert_eq!(closed["recorded"], true);
    let record = world.record();
    assert_eq!(
        (record.text("session_id"), record.end()),
        (session_id(&opened).as_str(), ("closed", "detach", "connection"))
    );
    assert_eq!(record.text("client"), "anything 0");
}

#[test]
fn each_fault_has_its_status_and_its_code_in_the_order_of_the_checks() {
    let world = World::new();
    let server = world.serve(&[]);
    let mut connection = server.connect();
    let list = modern(5, "tools/list", &json!({}));
    let call = modern(5, "tools/call", &json!({ "name": "majordomus_episodes", "arguments": {} }));
    let with = |member: &str, value: Value| {
        let mut message = list.clone();
        message["params"]["_meta"][format!("io.modelcontextprotocol/{member}")] = value;
        message
    };
    let mut bare = list.clone();
    bare["params"] = json!({});
    let swap = |request: Request, name: &'static str, value: &str| request.without(name).header(name, value);
    let plain = || Request::modern(&list);
    let cases: Vec<(&str, Request, (u16, i64))> = vec![
        ("nothing said of itself", Request::modern(&bare), (400, -32602)),
        ("no capabilities", Request::modern(&with("clientCapabilities", Value::Null)), (400, -32602)),
        ("capabilities that are none", Request::modern(&with("clientCapabilities", json!([]))), (400, -32602)),
        (
            "no capabilities, and no header either",
            Request::post("/mcp", &with("clientCapabilities", Value::Null)),
            (400, -32602),
        ),
        ("no header of the version", plain().without("MCP-Protocol-Version"), (400, -32020)),
        ("another version in the header", swap(plain(), "MCP-Protocol-Version", "2025-11-25"), (400, -32020)),
        ("the header twice", plain().header("MCP-Protocol-Version", "2026-07-28"), (400, -32020)),
        ("a version that is not spoken", Request::modern(&with("protocolVersion", json!("2099-01-01"))), (400, -32022)),
        ("one of the other era", Request::modern(&with("protocolVersion", json!("2025-11-25"))), (400, -32022)),
        (
            "not spoken, and no method either",
            Request::modern(&with("protocolVersion", json!("2099-01-01"))).without("Mcp-Method"),
            (400, -32022),
        ),
        ("no method", plain().without("Mcp-Method"), (400, -32020)),
        ("another method", swap(plain(), "Mcp-Method", "prompts/list"), (400, -32020)),
        ("the method in capitals", swap(plain(), "Mcp-Method", "TOOLS/LIST"), (400, -32020)),
        ("the method twice", plain().header("Mcp-Method", "tools/list"), (400, -32020)),
        ("a method that is not served", Request::modern(&modern(5, "no/such", &json!({}))), (404, -32601)),
        ("one of sessions", Request::modern(&modern(5, "ping", &json!({}))), (404, -32601)),
        ("another one", Request::modern(&modern(5, "initialize", &json!({}))), (404, -32601)),
        ("no name", Request::modern(&call).without("Mcp-Name"), (400, -32020)),
        ("another name", swap(Request::modern(&call), "Mcp-Name", "majordomus_peers"), (400, -32020)),
        ("a name in broken base64", swap(Request::modern(&call), "Mcp-Name", "=?base64?SGVsbG8?="), (400, -32020)),
        (
            "a tool that there is not",
            Request::modern(&modern(5, "tools/call", &json!({ "name": "nope" }))),
            (200, -32602),
        ),
        ("a cursor", Request::modern(&modern(5, "tools/list", &json!({ "cursor": "x" }))), (200, -32602)),
    ];
    for (what, request, expected) in cases {
        let reply = connection.ask(&request);
        assert_eq!(refused(&reply), (expected.0, json!(expected.1)), "{what}: {reply:?}");
        assert_eq!((&reply.json()["id"], reply.header("mcp-session-id")), (&json!(5), None), "{what}");
    }
    let error = connection.ask(&Request::modern(&with("protocolVersion", json!("2099-01-01")))).json()["error"].clone();
    assert_eq!(error["data"], json!({ "supported": ["2026-07-28"], "requested": "2099-01-01" }));
}

#[test]
fn headers_are_read_as_the_specification_writes_them() {
    let world = World::new();
    let server = world.serve(&[]);
    let mut connection = server.connect();
    let call = modern(5, "tools/call", &json!({ "name": "majordomus_episodes", "arguments": {} }));
    let named = |name: &str| Request::modern(&call).without("Mcp-Name").header("Mcp-Name", name);
    for request in [
        named("  majordomus_episodes \t"),
        named("=?base64?bWFqb3Jkb211c19lcGlzb2Rlcw==?="),
        Request::modern(&call).without("Mcp-Method").header("MCP-METHOD", "tools/call"),
        Request::modern(&call).without("Mcp-Method").header("mcp-method", "tools/call"),
        Request::modern(&call).header("Mcp-Session-Id", "dead"),
    ] {
        assert_eq!(connection.ask(&request).done()["result"]["structuredContent"]["open"], 0);
    }
}

#[test]
fn notes_are_taken_answers_are_refused_and_there_are_no_batches() {
    let world = World::new();
    let server = world.serve(&[]);
    let mut connection = server.connect();
    let post = |message: &Value| Request::post("/mcp", message).header("MCP-Protocol-Version", "2026-07-28");
    for method in ["notifications/initialized", "notifications/cancelled", "no/such"] {
        let reply = connection.ask(&post(&json!({ "jsonrpc": "2.0", "method": method })));
        assert_eq!((reply.status, reply.body.len()), (202, 0), "{method}");
    }
    let reply = connection.ask(&post(&json!({ "jsonrpc": "2.0", "id": 1, "result": {} })));
    assert_eq!(refused(&reply), (400, json!(-32600)));
    for batch in [json!([]), json!([modern(1, "tools/list", &json!({}))])] {
        let reply = connection.ask(&post(&batch));
        assert_eq!(refused(&reply), (400, json!(-32600)), "{batch}");
    }
    for method in ["GET", "DELETE"] {
        let reply = connection.ask(&Request::new(method, "/mcp").header("MCP-Protocol-Version", "2026-07-28"));
        assert_eq!((reply.status, reply.header("allow")), (405, Some("GET, POST, DELETE")), "{method}");
    }
}

#[test]
fn a_session_that_somebody_names_beside_it_is_none_of_its_business() {
    let world = World::new();
    let server = world.serve(&[]);
    let mut session = server.session();
    session.attach("by-session");
    let mut stateless = Stateless::connect(server.address());
    let (_, handle) = stateless.attach("by-handle");
    let message = modern(5, "tools/call", &json!({ "name": "majordomus_session_detach", "arguments": {} }));
    let reply = session.post_text(message.to_string());
    assert_eq!(refused(&reply), (400, json!(-32020)), "its headers say that it is of a session: {reply:?}");
    let reply = server.ask(&Request::modern(&message).header("Mcp-Session-Id", &session.id));
    assert_eq!(reply.done()["result"]["isError"], true, "{reply:?}");
    assert_eq!(state_of(&server.episodes(), "by-session"), "open");
    stateless.detach(&handle);
    assert_eq!(session.detach()["recorded"], true);
}

#[test]
fn a_handle_that_is_guessed_stolen_or_replayed_after_its_end_gives_nothing() {
    let world = World::new();
    let server = world.serve(&[]);
    let mut client = Stateless::connect(server.address());
    let (_, handle) = client.attach("my-thread");
    let mut guess = handle.clone().into_bytes();
    guess[10] = if guess[10] == b'A' { b'B' } else { b'A' };
    let guess = String::from_utf8(guess).expect("it is ASCII");
    for (wrong, why) in [(guess.as_str(), "does not know"), ("ep_", ""), ("", ""), ("p1", "")] {
        let refusal = client.tool("majordomus_session_detach", &json!({ "episode_handle": wrong }));
        assert_eq!(refusal["isError"], true, "{wrong}: {refusal}");
        let text = refusal["content"][0]["text"].as_str().expect("it has text");
        assert!(text.contains(why) && !text.contains(&guess[3..]), "{text}");
    }
    assert_eq!(state_of(&server.episodes(), "my-thread"), "open");
    // Nothing that others are shown has a handle in it.
    let shown = [client.done("majordomus_episodes", &json!({})), client.done("majordomus_peers", &json!({}))];
    assert!(shown.iter().all(|shown| !shown.to_string().contains(&handle)));
    client.detach(&handle);
    let refusal = client.tool("majordomus_announce", &json!({ "intent": "go on", "episode_handle": handle }));
    assert_eq!(refusal["isError"], true);
    assert_eq!(world.records().len(), 1);
}

#[test]
fn handles_stay_good_when_the_server_is_replaced() {
    let world = World::new();
    let server = world.serve(&[]);
    let (opened, handle) = Stateless::connect(server.address()).attach("my-thread");
    server.kill9();
    let server = world.serve(&[]);
    let mut client = Stateless::connect(server.address());
    let mine = client.done("majordomus_episodes", &json!({ "episode_handle": handle }))["mine"].clone();
    assert_eq!((&mine["external_id"], &mine["attachments"]), (&json!("my-thread"), &json!(1)));
    assert_eq!(mine["opened_at"], opened["episode"]["opened_at"]);
    client.detach(&handle);
    assert_eq!(world.record()["attachments"], 1);
}

#[test]
fn who_it_is_it_may_keep_to_itself() {
    let world = World::new();
    let server = world.serve(&[]);
    let mut meta = meta();
    meta.as_object_mut().expect("an object").remove("io.modelcontextprotocol/clientInfo");
    let params = json!({ "name": "majordomus_session_attach", "arguments": { "external_id": "a" }, "_meta": meta });
    let reply = server.ask(&Request::modern(&modern(1, "tools/call", &params))).done();
    assert_eq!(reply["result"]["structuredContent"]["recorded"], true, "{reply}");
}
