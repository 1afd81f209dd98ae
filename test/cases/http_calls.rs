//! Calls that take time: called off, abandoned, or made by many at once.

use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use majordomus_e2e::{Connection, Reply, Request, Server, Session, World, session_id, state_of, until};
use rustix::fs::{FlockOperation, flock};
use serde_json::{Value, json};

/// Locks the only open log: whoever has to write to it waits for a moment.
fn locked(world: &World) -> File {
    let log = world.logs("open").remove(0);
    let file = File::open(log).expect("a log can be read");
    flock(&file, FlockOperation::NonBlockingLockExclusive).expect("nobody else has it");
    file
}

fn call(id: &Value, tool: &str, arguments: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": tool, "arguments": arguments } })
        .to_string()
}

fn cancelled(id: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } })
}

/// Detaches while the log is locked, calls that off over another connection until there is an answer, and returns it.
fn detach_called_off(world: &World, server: &Server, session: &mut Session, id: &Value) -> Reply {
    let lock = locked(world);
    let mut connection = server.connect();
    connection.send(&session.message(call(id, "majordomus_session_detach", &json!({}))));
    let over = AtomicBool::new(false);
    let reply = thread::scope(|scope| {
        let reads = scope.spawn(|| {
            let reply = connection.reply();
            over.store(true, Ordering::Release);
            reply
        });
        until("the call is over", || {
            // The same id as another type is another call.
            let other = if id.is_string() { json!(7) } else { json!("7") };
            for id in [&other, id] {
                assert_eq!(session.post(&cancelled(id)).status, 202);
            }
            over.load(Ordering::Acquire).then_some(())
        });
        reads.join().expect("an answer came")
    });
    drop(lock);
    reply
}

#[test]
fn a_call_that_is_called_off_ends_with_202_and_what_had_begun_is_finished() {
    let world = World::new();
    let server = world.serve(&[]);
    let mut session = server.session();
    for id in [json!("mine"), json!(7)] {
        // A call waits for a tenth of a second; a machine may be too busy to say a word meanwhile.
        let called_off = (0..20).any(|_| {
            session.attach("my-thread");
            let reply = detach_called_off(&world, &server, &mut session, &id);
            until("what had begun is finished", || world.logs("open").is_empty().then_some(()));
            assert!(matches!(reply.status, 200 | 202), "{reply:?}");
            assert_eq!(reply.body.is_empty(), reply.status == 202, "{reply:?}");
            reply.status == 202
        });
        assert!(called_off, "{id}");
        session.ping();
    }
    let records = world.records();
    assert!(records.len() >= 2 && records.iter().all(|record| record.end() == ("closed", "detach", "connection")));
}

#[test]
fn a_call_of_another_session_cannot_be_called_off() {
    let world = World::new();
    let server = world.serve(&[]);
    let (mut session, mut other) = (server.session(), server.session());
    session.attach("my-thread");
    let lock = locked(&world);
    let mut connection = server.connect();
    connection.send(&session.message(call(&json!(7), "majordomus_session_detach", &json!({}))));
    for _ in 0..20 {
        assert_eq!(other.post(&cancelled(&json!(7))).status, 202);
    }
    drop(lock);
    assert_eq!(connection.reply().done()["result"]["structuredContent"]["episode"]["external_id"], "my-thread");
}

#[test]
fn a_client_that_closes_its_side_after_asking_is_answered() {
    let world = World::new();
    let server = world.serve(&[]);
    let session = server.session();
    for (at, request) in [
        session.message(call(&json!(7), "majordomus_episodes", &json!({}))),
        session.message(call(&json!(8), "majordomus_session_attach", &json!({ "external_id": "my-thread" }))),
        Request::get("/openapi.json"),
        Request::post("/api/v1/episodes/attach", &json!({ "external_id": "by-route" })),
    ]
    .iter()
    .enumerate()
    {
        let mut connection = server.connect();
        connection.send(request);
        connection.close_write();
        let reply = connection.try_reply();
        assert!(reply.as_ref().is_ok_and(|reply| reply.status == 200), "{at}: {reply:?}");
    }
}

#[test]
fn a_client_that_hangs_up_after_asking_has_not_called_it_off() {
    let world = World::new();
    let server = world.serve(&[]);
    for number in 0..10 {
        let session = server.session();
        let arguments = json!({ "external_id": format!("thread-{number}") });
        let mut connection = server.connect();
        // A client that has gone before it was let in is nobody: whose connection it was cannot be told any more.
        assert_eq!(connection.ask(&Request::get("/api/v1/live")).status, 200);
        connection.send(&session.message(call(&json!(7), "majordomus_session_attach", &arguments)));
        drop(connection);
        let log = format!("thread-{number}-");
        until("what was asked for is done", || {
            let logs = world.logs("open");
            logs.iter().any(|path| path.to_string_lossy().contains(&log)).then_some(())
        });
    }
    assert_eq!(server.episodes()["open"], 10);
}

#[test]
fn an_attach_that_is_refused_for_want_of_room_opens_nothing() {
    let world = World::new();
    let server = world.serve(&[]);
    // A bounded number of calls may wait for the disk; more than that are turned away at once.
    let asks = (0..60).map(|number| {
        let mut connection = server.connect();
        let request = Request::post("/api/v1/episodes/attach", &json!({ "external_id": format!("e{number}") }));
        connection.send(&request);
        connection
    });
    let mut connections: Vec<Connection> = asks.collect();
    let replies: Vec<Reply> = connections.iter_mut().map(Connection::reply).collect();
    assert!(replies.iter().all(|reply| matches!(reply.status, 200 | 503)), "{replies:?}");
    let done = replies.iter().filter(|reply| reply.status == 200).count();
    let listed = server.episodes();
    assert_eq!((&listed["open"], &listed["detached"]), (&json!(done), &json!(0)));
}

#[test]
fn nobody_waits_for_the_disk_of_another_client() {
    let world = World::new();
    let server = world.serve(&[]);
    let mut session = server.session();
    session.attach("my-thread");
    let lock = locked(&world);
    let mut connections: Vec<Connection> = (0..8)
        .map(|number| {
            let mut connection = server.connect();
            connection.send(&session.message(call(&json!(number), "majordomus_session_detach", &json!({}))));
            connection
        })
        .collect();
    let since = Instant::now();
    let mut other = server.session();
    other.attach("other");
    other.ping();
    assert_eq!(other.detach()["recorded"], true);
    for target in ["/api/v1/episodes", "/api/v1/sessions", "/api/v1/server", "/openapi.json"] {
        assert_eq!(server.ask(&Request::get(target)).status, 200);
    }
    assert!(since.elapsed() < Duration::from_secs(1), "{:?}", since.elapsed());
    drop(lock);
    for connection in &mut connections {
        assert_eq!(connection.reply().status, 200);
    }
    until("it is ended", || (world.records().len() == 2).then_some(()));
}

#[test]
fn a_delete_during_a_call_leaves_no_session_and_an_episode_that_waits() {
    let world = World::new();
    let server = world.serve(&[]);
    for round in 0..20 {
        let mut session = server.session();
        let id = format!("round-{round}");
        let mut connection = server.connect();
        connection.send(&session.message(call(&json!(7), "majordomus_session_attach", &json!({ "external_id": id }))));
        assert_eq!(session.delete().status, 204);
        let reply = connection.reply();
        assert!(matches!(reply.status, 200 | 404), "{reply:?}");
        if reply.status == 200 {
            assert_eq!(state_of(&server.episodes(), &id), "detached", "{id}");
        }
    }
    assert_eq!(server.status()["peers"], 0);
    assert_eq!(server.episodes()["open"], 0);
}

/// Attaches under one id by many callers at once, and returns the session ids that they were given.
fn race(callers: Vec<Box<dyn FnOnce() -> Value + Send>>) -> Vec<String> {
    let running: Vec<_> = callers.into_iter().map(thread::spawn).collect();
    let mut ids: Vec<String> = running.into_iter().map(|one| session_id(&one.join().expect("it is served"))).collect();
    ids.sort();
    ids.dedup();
    ids
}

fn by_route(server: &Server) -> Box<dyn FnOnce() -> Value + Send> {
    let mut connection = server.connect();
    Box::new(move || {
        connection.ask(&Request::post("/api/v1/episodes/attach", &json!({ "external_id": "raced" }))).done()
    })
}

#[test]
fn callers_that_attach_under_one_id_at_once_have_started_one_episode() {
    let world = World::new();
    for _ in 0..10 {
        let servers = [world.serve(&[]), world.serve(&[])];
        let mut callers = Vec::new();
        for server in &servers {
            for _ in 0..4 {
                callers.push(by_route(server));
            }
        }
        let ids = race(callers);
        assert_eq!((ids.len(), world.logs("open").len()), (1, 1), "{ids:?}");
    }
}

#[test]
fn callers_that_end_nothing_or_have_ended_all_leave_no_peer() {
    let world = World::new();
    let server = world.serve(&[]);
    let mut connection = server.connect();
    for number in 0..100 {
        let reply = connection.ask(&Request::post("/api/v1/episodes/detach", &json!({ "external_id": "never" })));
        assert_eq!(reply.status, 404, "{reply:?}");
        let attach = json!({ "external_id": format!("e{number}") });
        let attached = connection.ask(&Request::post("/api/v1/episodes/attach", &attach)).done();
        let handle = json!({ "episode_handle": attached["episode_handle"] });
        assert_eq!(connection.ask(&Request::post("/api/v1/episodes/detach", &handle)).done()["recorded"], true);
    }
    until("nobody is left", || (server.status()["peers"] == 0).then_some(()));
    assert_eq!(world.records().len(), 100);
}

#[test]
fn one_sessions_messages_may_come_over_many_connections_at_once() {
    let world = World::new();
    let server = world.serve(&[]);
    let mut session: Session = server.session();
    session.attach("my-thread");
    let running: Vec<_> = (0..8)
        .map(|number| {
            let mut connection = server.connect();
            let message = session.message(call(&json!(number), "majordomus_episodes", &json!({})));
            thread::spawn(move || {
                for _ in 0..50 {
                    let answer = connection.ask(&message).done();
                    assert_eq!(answer["id"], number);
                    assert_eq!(answer["result"]["structuredContent"]["mine"]["external_id"], "my-thread");
                }
            })
        })
        .collect();
    for one in running {
        one.join().expect("all are answered");
    }
    assert_eq!(session.detach()["episode"]["attachments"], 1);
}
