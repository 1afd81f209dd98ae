//! How a server over HTTP ends, and what becomes of the episodes that it holds.

use std::time::{Duration, Instant};

use majordomus_e2e::{
    Connection, Request, Server, World, majordomus, milliseconds, now_ms, published, session_id, state_of, until,
};
use rustix::process::Signal;
use serde_json::{Value, json};

const BOUND: Duration = Duration::from_secs(2);

/// Connections that keep a server busy: an open stream, an idle one, and two that stop half way.
struct Busy {
    _stream: majordomus_e2e::Events,
    _others: Vec<Connection>,
}

fn busy(server: &Server) -> Busy {
    let mut idle = server.connect();
    assert_eq!(idle.ask(&Request::get("/api/v1/live")).status, 200);
    let mut half = server.connect();
    half.write(b"POST /mcp HTTP/1.1\r\nHost: local");
    let mut body = server.connect();
    body.send(&Request::text("/api/v1/episodes/attach", "{").header("Content-Length", "40"));
    Busy { _stream: server.session().stream(), _others: vec![idle, half, body, server.connect()] }
}

#[test]
fn term_and_hup_end_a_busy_server_within_two_seconds_and_its_episodes_wait() {
    for signal in [Signal::TERM, Signal::HUP] {
        let world = World::new();
        let server = world.serve(&[]);
        let mut session = server.session();
        session.attach("by-session");
        let stream = session.stream();
        let attach = Request::post("/api/v1/episodes/attach", &json!({ "external_id": "by-handle" }));
        assert_eq!(server.ask(&attach).status, 200);
        let busy = busy(&server);
        let since = Instant::now();
        let left = server.end(signal);
        assert!(since.elapsed() < BOUND, "{signal:?}: {:?}", since.elapsed());
        assert_eq!((left.code, left.signal, left.err.as_str()), (Some(0), None, ""), "{signal:?}");
        drop((busy, stream));
        let listed = world.episodes();
        assert_eq!((&listed["open"], &listed["detached"]), (&json!(0), &json!(2)), "{signal:?}: {listed}");
        assert_eq!((world.logs("open").len(), world.records().len()), (2, 0), "{signal:?}");
        let mut client = world.client();
        let again = client.attach("by-session");
        assert_eq!((&again["resumed"], &again["episode"]["attachments"]), (&json!(true), &json!(2)), "{again}");
        client.detach();
        assert_eq!(client.lose().code, Some(0));
        assert_eq!(world.record()["take_overs"], 0, "{signal:?}");
    }
}

#[test]
fn ctrl_c_of_the_operator_ends_every_episode_as_interrupted_by_shutdown() {
    let world = World::new();
    let server = world.serve(&[]);
    let mut sessions: Vec<_> = (0..3).map(|_| server.session()).collect();
    for (number, session) in sessions.iter_mut().enumerate() {
        session.attach(&format!("session-{number}"));
    }
    assert_eq!(sessions[0].delete().status, 204, "one of them is detached");
    let stream = sessions[1].stream();
    let attach = Request::post("/api/v1/episodes/attach", &json!({ "external_id": "by-handle" }));
    assert_eq!(server.ask(&attach).status, 200);
    let busy = busy(&server);
    let (since, before) = (Instant::now(), now_ms());
    let left = server.end(Signal::INT);
    assert!(since.elapsed() < BOUND, "{:?}", since.elapsed());
    assert_eq!((left.code, left.err.as_str()), (Some(0), ""), "{left:?}");
    drop((busy, stream));
    assert!(world.logs("open").is_empty());
    let records = world.records();
    assert_eq!(records.len(), 4);
    for record in records {
        assert_eq!(record.end(), ("interrupted", "shutdown", "shutdown"), "{}", record["external_id"]);
        assert_eq!(record["closed_at"], record["last_activity_at"], "an interrupted one ends at its last evidence");
        assert!(record.time("closed_at") <= before + 2, "{record:#?}");
        assert!(record.time("started_at") <= record.time("closed_at"));
    }
    assert_eq!(world.episodes()["episodes"], json!([]));
}

#[test]
fn a_running_call_is_answered_before_the_server_goes() {
    let world = World::new();
    for round in 0..10 {
        let server = world.serve(&[]);
        let session = server.session();
        let arguments = json!({ "external_id": format!("round-{round}") });
        let params = json!({ "name": "majordomus_session_attach", "arguments": arguments });
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        let mut connection = server.connect();
        connection.send(&session.message(call.to_string()));
        let left = server.end(Signal::TERM);
        assert_eq!(left.code, Some(0));
        // What was answered is durable; what was not even read may be neither.
        if let Ok(reply) = connection.try_reply() {
            assert_eq!(reply.done()["result"]["structuredContent"]["recorded"], true, "{reply:?}");
            assert_eq!(state_of(&world.episodes(), &format!("round-{round}")), "detached");
        }
    }
}

#[test]
fn kill_9_and_any_command_after_the_grace_leave_one_interrupted_record_at_the_last_evidence() {
    let world = World::new();
    let server = world.serve(&["--grace-seconds", "1"]);
    let mut session = server.session();
    let opened = session.attach("by-session");
    let stream = session.stream();
    session.ping();
    server.kill9();
    let killed = now_ms();
    drop(stream);
    assert_eq!(world.logs("open").len(), 1);
    let record = until("the grace ends", || world.records().pop());
    assert_eq!(record.text("session_id"), session_id(&opened));
    assert_eq!(record.end(), ("interrupted", "expired", "reaper"));
    assert_eq!(record["closed_at"], record["last_activity_at"]);
    let start = milliseconds(opened["episode"]["opened_at"].as_str().expect("a time"));
    assert!((start..=killed).contains(&record.time("closed_at")), "{start} {} {killed}", record["closed_at"]);
    assert!(now_ms() - record.time("closed_at") >= 1000, "it waited for the grace");
    assert_eq!((world.records().len(), world.logs("open").len()), (1, 0));
}

#[test]
fn what_a_session_did_last_is_where_its_record_ends_after_term() {
    let world = World::new();
    let server = world.serve(&[]);
    let mut session = server.session();
    let opened = session.attach("my-thread");
    let opened = milliseconds(opened["episode"]["opened_at"].as_str().expect("a time"));
    until("time passes", || (now_ms() > opened + 50).then_some(()));
    let before = now_ms();
    session.ping();
    let after = now_ms();
    assert_eq!(server.end(Signal::TERM).code, Some(0));
    let record = until("the grace ends", || world.records_with(&["--grace-seconds", "1"]).pop());
    let last = record.time("last_activity_at");
    // A record's time is reckoned back from when it was written, to the millisecond.
    assert!((before - 2..=after + 2).contains(&last), "{before} <= {last} <= {after}");
    assert_eq!(record.end(), ("interrupted", "expired", "reaper"));
}

#[test]
fn a_deleted_sessions_episode_expires_after_the_grace_while_its_server_lives() {
    let world = World::new();
    let server = world.serve(&["--grace-seconds", "1"]);
    let (mut gone, mut here) = (server.session(), server.session());
    gone.attach("gone");
    here.attach("here");
    let stream = here.stream();
    assert_eq!(gone.delete().status, 204);
    let left_at = now_ms();
    // Looked for with the ordinary grace: only the server itself can have ended it.
    let expired = || world.records_with(&["--grace-seconds", "900"]).pop();
    let record = until("the server ends it", expired);
    assert_eq!((record.text("external_id"), record.end()), ("gone", ("interrupted", "expired", "reaper")));
    assert!(record.time("closed_at") <= left_at + 2 && now_ms() - record.time("closed_at") >= 1000);
    let names = |listed: &Value| {
        listed["episodes"].as_array().map(|all| all.iter().map(|one| one["external_id"].clone()).collect::<Vec<_>>())
    };
    until("the server lists it no more", || (names(&server.episodes()) == Some(vec![json!("here")])).then_some(()));
    assert_eq!(state_of(&server.episodes(), "here"), "open", "what is held never expires");
    drop(stream);
}

#[test]
fn what_others_hold_is_not_ended_when_the_stdio_client_of_their_server_leaves() {
    let world = World::new();
    let mut client = world.server(&["mcp"]);
    client.initialize();
    let mut session = majordomus_e2e::Session::begin(published(&world), "2025-06-18");
    let opened = session.attach("my-thread");
    let stream = session.stream();
    client.close_input();
    drop(stream);
    drop(client);
    assert_eq!(state_of(&world.episodes(), "my-thread"), "detached");
    let mut client = world.client();
    assert_eq!(session_id(&client.attach("my-thread")), session_id(&opened));
    assert_eq!(client.lose().code, Some(0));
    assert!(world.records().is_empty());
}

#[test]
fn a_git_that_hangs_does_not_keep_a_server_that_is_told_to_go() {
    const HANGS: &str = "#!/bin/sh\nfor argument; do case $argument in status) exec sleep 1000;; esac; done\n\
                         PATH=${PATH#*:}; exec git \"$@\"\n";
    for signal in [Signal::TERM, Signal::INT] {
        let world = World::new();
        let tools = world.folder().join("tools");
        majordomus_e2e::executable(&tools.join("git"), HANGS);
        let mut command = world.majordomus(&["serve", "--port", "0"]);
        let path = std::env::var("PATH").unwrap_or_default();
        let server = Server::start(command.env("PATH", format!("{}:{path}", tools.display())));
        let sessions = (0..5).map(|number| {
            let mut session = server.session();
            session.attach(&format!("session-{number}"));
            session
        });
        let sessions: Vec<_> = sessions.collect();
        let since = Instant::now();
        let left = server.end(signal);
        // What a busy machine may add is added.
        assert!(since.elapsed() < BOUND + Duration::from_secs(1), "{signal:?}: {:?}", since.elapsed());
        assert_eq!(left.code, Some(0), "{left:?}");
        drop(sessions);
        let open = world.logs("open").len();
        assert_eq!(open, if signal == Signal::TERM { 5 } else { 0 }, "{signal:?}");
    }
}

#[test]
fn a_server_whose_starter_ignores_hup_goes_on_when_its_terminal_goes() {
    let world = World::new();
    let mut command = world.program("sh");
    command.args(["-c", "trap '' HUP; exec \"$0\" serve --port 0"]).arg(majordomus());
    let server = Server::start(&mut command);
    server.signal(Signal::HUP);
    let mut connection = server.connect();
    for _ in 0..200 {
        assert_eq!(connection.ask(&Request::get("/api/v1/live")).status, 200);
    }
    assert_eq!(server.end(Signal::TERM).code, Some(0));
}
