//! Sizes and pace over HTTP: long bodies, clients that do not read or do not finish, many connections.

use std::time::{Duration, Instant};

use majordomus_e2e::{Connection, Request, Server, World, until};
use serde_json::{Value, json};

const MIB: usize = 1 << 20;

/// Where a body may go to.
fn targets(server: &Server) -> Vec<Request> {
    let session = server.session();
    vec![session.message(""), Request::text("/mcp", ""), Request::text("/api/v1/episodes/attach", "")]
}

#[test]
fn a_body_that_is_said_to_be_too_large_is_413_before_it_is_sent() {
    let world = World::new();
    let server = world.serve(&[]);
    for target in targets(&server) {
        for length in ["4194305", "99999999999"] {
            let mut connection = server.connect();
            connection.send(&target.clone().header("Content-Length", length));
            let reply = connection.reply();
            assert_eq!(reply.status, 413, "{length}: {reply:?}");
            assert!(reply.code() == -32600 || reply.code() == "invalid_input", "{reply:?}");
        }
    }
    assert_eq!(server.episodes()["episodes"], json!([]));
}

#[test]
fn a_client_that_sends_too_large_a_body_whole_reads_why_it_was_refused() {
    let world = World::new();
    let server = world.serve(&[]);
    let body = vec![b' '; 5 * MIB];
    for target in targets(&server) {
        let mut connection = server.connect();
        let sent = connection.try_write(&target.body(&body).bytes(server.address()));
        let reply = connection.try_reply();
        assert!(reply.as_ref().is_ok_and(|reply| reply.status == 413), "{reply:?} after {sent:?}");
    }
}

#[test]
fn a_body_in_chunks_is_413_as_soon_as_it_is_too_large() {
    let world = World::new();
    let server = world.serve(&[]);
    let chunk = [b"10000\r\n", vec![b' '; MIB / 16].as_slice(), b"\r\n"].concat();
    for target in targets(&server) {
        let mut connection = server.connect();
        connection.send(&target.header("Transfer-Encoding", "chunked"));
        for _ in 0..4 * 16 {
            connection.write(&chunk);
        }
        connection.write(b"1\r\n \r\n");
        assert_eq!(connection.reply().status, 413);
    }
}

#[test]
fn a_body_in_chunks_and_one_of_just_the_bound_are_served() {
    let world = World::new();
    let server = world.serve(&[]);
    let mut session = server.session();
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let mut connection = server.connect();
    connection.send(&session.message("").header("Transfer-Encoding", "chunked"));
    for byte in ping.bytes() {
        connection.write(&[b'1', b'\r', b'\n', byte, b'\r', b'\n']);
    }
    connection.write(b"0\r\n\r\n");
    assert_eq!(connection.reply().done()["result"], json!({}));
    let padded = format!("{ping}{}", " ".repeat(4 * MIB - ping.len()));
    assert_eq!(session.post_text(&padded).done()["result"], json!({}));
    let refused = server.session().tool("majordomus_session_attach", &json!({ "external_id": "x".repeat(MIB) }));
    assert_eq!(refused["isError"], true, "a megabyte is read, and is no id: {refused}");
    assert!(refused.to_string().len() < 4096);
}

#[test]
fn a_client_that_asks_before_it_sends_a_body_is_told_to_go_on_or_why_not() {
    let world = World::new();
    let server = world.serve(&[]);
    let message = server.session().message("").header("Expect", "100-continue");
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let mut connection = server.connect();
    connection.send(&message.clone().header("Content-Length", &ping.len().to_string()));
    assert_eq!(connection.status(), 100);
    connection.write(ping.as_bytes());
    assert_eq!(connection.reply().done()["result"], json!({}));
    let mut connection = server.connect();
    connection.send(&message.clone().header("Content-Length", "99999999"));
    assert_eq!(connection.status(), 413);
    let mut connection = server.connect();
    connection.send(&message.header("Content-Length", "40").header("Origin", "http://evil.example"));
    assert_eq!(connection.status(), 403);
}

#[test]
fn a_head_without_end_is_refused_and_costs_little() {
    let world = World::new();
    let server = world.serve(&[]);
    let before = server.memory();
    for _ in 0..20 {
        let mut connection = server.connect();
        let head = format!("GET / HTTP/1.1\r\nHost: {}\r\n", server.address());
        let sent = connection.try_write(head.as_bytes()).and_then(|()| {
            (0..2000)
                .try_for_each(|number| connection.try_write(format!("X-{number}: {}\r\n", "x".repeat(1000)).as_bytes()))
        });
        match connection.try_reply() {
            Ok(reply) => assert!(matches!(reply.status, 400 | 431), "{reply:?}"),
            // It may have hung up while we were still writing.
            Err(_) => assert!(sent.is_err() || connection.ends_within(Duration::from_secs(5))),
        }
    }
    if let (Some(before), Some(after)) = (before, server.memory()) {
        assert!(after < before + 16 * MIB, "{before}, then {after} bytes");
    }
    server.session().ping();
}

/// Requests that are none, or that say two things at once.
const MALFORMED: &[&str] = &[
    "\r\n\r\nNONSENSE\r\n\r\n",
    "GET\r\n\r\n",
    "GET / HTTP/9.9\r\n\r\n",
    "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
    "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    "GET / HTTP/1.1\r\nHost : localhost\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: localhost\r\nX: a\0b\r\n\r\n",
    "\x16\x03\x01\x02",
];

#[test]
fn a_malformed_request_is_refused_and_nobody_else_notices() {
    let world = World::new();
    let server = world.serve(&[]);
    let mut session = server.session();
    for request in MALFORMED {
        let mut connection = server.connect();
        connection.write(request.as_bytes());
        connection.close_write();
        if let Ok(reply) = connection.try_reply() {
            assert_eq!(reply.status, 400, "{request:?}: {reply:?}");
        }
        assert!(connection.ends_within(Duration::from_secs(5)), "{request:?}");
        session.ping();
    }
    // Who says both lengths must not smuggle a second request in.
    let mut connection = server.connect();
    connection.write(
        b"POST /api/v1/episodes/attach HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
          Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n",
    );
    let first = connection.try_reply();
    assert!(first.is_ok_and(|reply| reply.status == 400), "an empty body or a bad request, and no more");
}

/// Calls while others hold the server up, and must be served all the same.
fn is_served(server: &Server) {
    let since = Instant::now();
    let mut session = server.session();
    let id = format!("served-{}", session.id);
    session.attach(&id);
    session.ping();
    assert_eq!(session.detach()["recorded"], true);
    assert_eq!(session.delete().status, 204);
    assert!(since.elapsed() < Duration::from_secs(5), "{:?}", since.elapsed());
}

#[test]
fn others_are_served_while_clients_say_nothing_or_stop_half_way() {
    let world = World::new();
    let server = world.serve(&[]);
    let message = server.session().message(json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }).to_string());
    let whole = message.bytes(server.address());
    let halves = [0, 1, 20, whole.len() - 60, whole.len() - 1];
    let connections: Vec<Connection> = (0..100)
        .map(|number| {
            let mut connection = server.connect();
            connection.write(&whole[..halves[number % halves.len()]]);
            connection
        })
        .collect();
    is_served(&server);
    // They are late, not gone.
    for (number, mut connection) in connections.into_iter().enumerate() {
        connection.write(&whole[halves[number % halves.len()]..]);
        assert_eq!(connection.reply().done()["result"], json!({}));
    }
}

#[test]
fn others_are_served_while_a_client_never_reads_and_its_answers_are_bounded() {
    let world = World::new();
    let server = world.serve(&[]);
    is_served(&server);
    let before = server.memory();
    let request = Request::get("/openapi.json").bytes(server.address()).repeat(20);
    let stuck: Vec<Connection> = (0..10)
        .map(|_| {
            let mut connection = server.connect();
            connection.blocks_after(&request);
            connection
        })
        .collect();
    is_served(&server);
    if let (Some(before), Some(after)) = (before, server.memory()) {
        assert!(after < before + 32 * MIB, "{before}, then {after} bytes");
    }
    drop(stuck);
    is_served(&server);
}

#[test]
fn two_hundred_connections_that_are_dropped_leave_no_descriptor_behind() {
    let world = World::new();
    let server = world.serve(&[]);
    is_served(&server);
    let before = server.descriptors();
    let whole = Request::get("/api/v1/live").bytes(server.address());
    let mut connections: Vec<Connection> = (0..200).map(|_| server.connect()).collect();
    for (number, connection) in connections.iter_mut().enumerate() {
        connection.write(&whole[..whole.len() * (number % 5) / 4]);
    }
    if let (Some(before), Some(_)) = (before, server.descriptors()) {
        until("they are accepted, but for those of before that may have gone only now", || {
            server.descriptors().filter(|open| *open >= before + 190)
        });
    }
    drop(connections);
    if before.is_some() {
        until("all are closed", || (server.descriptors() <= before).then_some(()));
    }
    is_served(&server);
}

#[test]
fn a_server_without_descriptors_says_that_it_cannot_record_and_is_well_again_when_it_has_some() {
    let world = World::new();
    let mut command = world.program("sh");
    command.args(["-c", "ulimit -n 40 && exec \"$0\" serve --port 0"]).arg(majordomus_e2e::majordomus());
    let server = Server::start(&mut command);
    let mut session = server.session();
    let connections: Vec<Connection> = (0..60).map(|_| server.connect()).collect();
    if server.descriptors().is_some() {
        until("it has no more", || server.descriptors().filter(|open| *open >= 40));
        let attached = session.attach("my-thread");
        assert_eq!(attached["recorded"], false, "it is not claimed: {attached}");
        assert!(attached["episode"]["repository"].as_str().is_some_and(|why| why.contains("no episode was recorded")));
    }
    drop(connections);
    is_served(&server);
    until("what could not be recorded is", || (session.attach("my-thread")["recorded"] == true).then_some(()));
    session.detach();
    assert!(world.records().iter().any(|record| record["external_id"] == "my-thread"));
}

#[test]
fn answers_on_one_connection_come_in_order_however_fast_they_are_asked_for() {
    let world = World::new();
    let server = world.serve(&[]);
    let session = server.session();
    let mut connection = server.connect();
    for id in 0..500 {
        connection.send(&session.message(json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }).to_string()));
    }
    let ids: Vec<Value> = (0..500).map(|_| connection.reply().done()["id"].clone()).collect();
    assert!(ids.into_iter().eq((0..500).map(Value::from)));
}
