//! Sessions over HTTP: which id is known, what a restart leaves of them, and that they cost little and end.

use majordomus_e2e::{Connection, Request, Server, Session, World, initialize, session_id, state_of, until};
use serde_json::json;

fn ping() -> serde_json::Value {
    json!({ "jsonrpc": "2.0", "id": "mine", "method": "ping" })
}

#[test]
fn an_unknown_session_is_404_with_the_requests_id_and_a_missing_one_400() {
    let world = World::new();
    let server = world.serve(&[]);
    let mut connection = server.connect();
    let long = "f".repeat(5000);
    for id in ["nope", "", "00000000000000000000000000000000", "../../x", "ümlaut", &long] {
        let reply = connection.ask(&Request::post("/mcp", &ping()).header("Mcp-Session-Id", id));
        assert_eq!(
            (reply.status, reply.code(), &reply.json()["id"]),
            (404, json!(-32600), &json!("mine")),
            "{reply:?}"
        );
        assert!(reply.text().contains("initialize"), "it says what to do: {reply:?}");
    }
    let reply = connection.ask(&Request::post("/mcp", &ping()));
    assert_eq!((reply.status, reply.code(), &reply.json()["id"]), (400, json!(-32600), &json!("mine")), "{reply:?}");
    assert!(reply.text().contains("Mcp-Session-Id") && reply.text().contains("initialize"), "{reply:?}");
}

#[test]
fn the_status_for_an_unknown_session_is_told_before_any_stream_opens() {
    let world = World::new();
    let server = world.serve(&[]);
    for accept in ["text/event-stream", "application/json, text/event-stream", "*/*"] {
        for request in [Request::post("/mcp", &ping()), Request::get("/mcp")] {
            let reply = server.ask(&request.header("Mcp-Session-Id", "nope").header("Accept", accept));
            assert_eq!((reply.status, reply.header("content-type")), (404, Some("application/json")), "{reply:?}");
            assert_eq!(reply.code(), -32600);
        }
    }
}

#[test]
fn notes_and_responses_of_an_unknown_session_are_404_too() {
    let world = World::new();
    let server = world.serve(&[]);
    for message in [
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 1, "result": {} }),
    ] {
        let reply = server.ask(&Request::post("/mcp", &message).header("Mcp-Session-Id", "nope"));
        assert_eq!(reply.status, 404, "{message}: {reply:?}");
    }
}

#[test]
fn after_kill_9_and_a_restart_the_old_session_is_404_and_the_comeback_gets_its_episode() {
    let world = World::new();
    let server = world.serve(&[]);
    let mut session = server.session();
    let opened = session.attach("my-thread");
    let (address, port) = (server.address(), server.address().port().to_string());
    server.kill9();

    let server = Server::start(&mut world.majordomus(&["serve", "--port", &port]));
    assert_eq!(server.address(), address);
    until("the new server knows of the episode", || {
        let listed = server.episodes();
        (listed["detached"] == 1).then_some(())
    });
    let mut connection = server.connect();
    for message in [session.message(ping().to_string()), session.request("GET"), session.request("DELETE")] {
        assert_eq!(connection.ask(&message).status, 404, "{message:?}");
    }
    let mut session = server.session();
    let again = session.attach("my-thread");
    assert_eq!((&again["resumed"], &again["episode"]["attachments"]), (&json!(true), &json!(2)), "{again}");
    assert_eq!(session_id(&again), session_id(&opened));
    assert_eq!(again["episode"]["opened_at"], opened["episode"]["opened_at"]);
    assert_eq!(world.logs("open").len(), 1);
    assert_eq!(server.episodes()["episodes"].as_array().map(Vec::len), Some(1));
    session.detach();
    let record = world.record();
    assert_eq!((&record["attachments"], &record["take_overs"]), (&json!(2), &json!(0)));
    assert_eq!(
        (record.text("session_id"), record.end()),
        (session_id(&opened).as_str(), ("closed", "detach", "connection"))
    );
}

/// Begins sessions in pieces that fit what one connection may ask for at once, and forgets them.
fn begin(server: &Server, count: usize) {
    const PIECE: usize = 1000;
    let request = Request::post("/mcp", &initialize("2025-06-18")).bytes(server.address());
    for piece in 0..count.div_ceil(PIECE) {
        let mut connection = server.connect();
        for _ in 0..PIECE.min(count - piece * PIECE) {
            connection.write(&request);
            let reply = connection.reply();
            assert_eq!(reply.status, 200, "{reply:?}");
        }
    }
}

#[test]
fn a_thousand_sessions_that_end_leave_none() {
    let world = World::new();
    let server = world.serve(&[]);
    let mut connection = server.connect();
    for _ in 0..1000 {
        let begun = connection.ask(&Request::post("/mcp", &initialize("2025-06-18")));
        let id = begun.header("mcp-session-id").expect("a session has an id");
        let end = Request::new("DELETE", "/mcp").header("Mcp-Session-Id", id);
        assert_eq!(connection.ask(&end).status, 204);
    }
    assert_eq!(server.status()["peers"], 0);
    let mut session = server.session();
    assert_eq!(server.status()["peers"], 1, "the count counts");
    session.ping();
}

#[test]
fn sessions_that_never_end_are_bounded_the_least_recently_heard_goes_and_its_episode_waits() {
    const MOST: usize = 10_000;
    let world = World::new();
    let server = world.serve(&[]);
    let (mut first, mut kept) = (server.session(), server.session());
    first.attach("first");
    let streams = kept.stream();
    let empty = server.memory();
    begin(&server, MOST);
    let full = server.memory();
    assert_eq!(server.status()["peers"], MOST);
    let reply = first.post(&ping());
    assert_eq!((reply.status, reply.code()), (404, json!(-32600)), "{reply:?}");
    assert_eq!(state_of(&server.episodes(), "first"), "detached");
    begin(&server, MOST);
    assert_eq!(server.status()["peers"], MOST);
    kept.ping();
    drop(streams);
    let again = server.session().attach("first");
    assert_eq!((&again["resumed"], &again["episode"]["attachments"]), (&json!(true), &json!(2)), "{again}");
    if let (Some(empty), Some(full), Some(later)) = (empty, full, server.memory()) {
        let each = full.saturating_sub(empty) / MOST;
        assert!(each <= 4096, "{each} bytes for each session");
        assert!(later < full + (4 << 20), "it goes on growing: {empty}, {full}, {later} bytes");
    }
}

#[test]
fn ten_thousand_invented_session_ids_store_nothing() {
    let world = World::new();
    let server = world.serve(&[]);
    let mut session = server.session();
    let ask = |from: usize, count: usize| {
        let mut connection: Connection = server.connect();
        for number in from..from + count {
            let id = format!("{number:032x}");
            let reply = connection.ask(&Request::post("/mcp", &ping()).header("Mcp-Session-Id", &id));
            assert_eq!(reply.status, 404, "{id}");
        }
    };
    ask(0, 1000);
    let before = server.memory();
    ask(1000, 10_000);
    assert_eq!(server.status()["peers"], 1);
    if let (Some(before), Some(after)) = (before, server.memory()) {
        assert!(after < before + (1 << 20), "{before}, then {after} bytes");
    }
    session.ping();
}

#[test]
fn a_client_that_begins_sessions_without_end_is_slowed_and_others_are_not() {
    let world = World::new();
    let server = world.serve(&[]);
    let mut session = server.session();
    let request = Request::post("/mcp", &initialize("2025-06-18")).bytes(server.address());
    let mut connection = server.connect();
    let refused = (0..20_000).find_map(|_| {
        connection.write(&request);
        let reply = connection.reply();
        (reply.status != 200).then_some(reply)
    });
    // A slow machine may not be able to ask for too much; then there is nothing to refuse.
    if let Some(reply) = refused {
        assert_eq!((reply.status, reply.header("retry-after")), (503, Some("1")), "{reply:?}");
        assert_eq!((&reply.json()["id"], reply.code()), (&json!(1), json!(-32603)), "{reply:?}");
    }
    session.ping();
    assert!(Session::begin(server.address(), "2025-06-18").delete().status == 204);
}
