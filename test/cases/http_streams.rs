//! Streams of a session: when one opens, what stands on it, and what it holds.

use std::time::{Duration, Instant};

use majordomus_e2e::{Events, Request, Session, World, state_of, until};
use serde_json::json;

/// Within which a stream that says nothing shows that it is there, with room for a busy machine.
const BEAT: Duration = Duration::from_secs(20);

/// Checks that something is a comment and no event.
fn comment(text: Option<String>) {
    let text = text.expect("the stream is open");
    assert!(text.starts_with(':') && text.ends_with("\n\n"), "{text:?}");
    assert!(!text.contains("id:") && !text.contains("data:"), "{text:?}");
}

#[test]
fn a_stream_is_not_buffered_by_proxies_shows_itself_at_once_and_again_before_one_gives_it_up() {
    let world = World::new();
    let server = world.serve(&[]);
    let mut session = server.session();
    let mut stream = session.stream();
    assert_eq!(stream.head.header("x-accel-buffering"), Some("no"), "{:?}", stream.head);
    let caching = stream.head.header("cache-control").unwrap_or_default().to_owned();
    assert!(caching.contains("no-cache") || caching.contains("no-store"), "{caching}");
    assert_eq!((stream.head.header("content-length"), stream.head.header("mcp-session-id")), (None, None));
    comment(stream.next_within(Duration::from_secs(5)));
    let since = Instant::now();
    session.ping();
    comment(stream.next_within(BEAT));
    assert!(since.elapsed() > Duration::from_secs(10), "it comes now and then, not all the time");
    session.ping();
}

/// Checks that the server ends a stream, whatever it says before.
fn ends(mut stream: Events) {
    while let Some(text) = stream.next_within(Duration::from_secs(5)) {
        comment(Some(text));
    }
}

#[test]
fn delete_ends_the_streams_of_its_session_at_once() {
    let world = World::new();
    let server = world.serve(&[]);
    let (mut session, other) = (server.session(), server.session());
    let streams = [session.stream(), session.stream()];
    let mut kept = other.stream();
    assert_eq!(session.delete().status, 204);
    streams.into_iter().for_each(ends);
    comment(kept.next_within(Duration::from_secs(5)));
}

#[test]
fn a_session_has_a_few_streams_and_no_more_until_one_is_closed() {
    let world = World::new();
    let server = world.serve(&[]);
    let mut session = server.session();
    let mut streams: Vec<Events> = (0..4).map(|_| session.stream()).collect();
    let open = session.request("GET").header("Accept", "text/event-stream");
    let reply = server.ask(&open);
    assert_eq!((reply.status, reply.code()), (503, json!(-32603)), "{reply:?}");
    session.ping();
    drop(streams.pop());
    let stream = until("a stream's end is noticed", || {
        let mut connection = server.connect();
        connection.send(&open);
        (connection.status() == 200).then_some(connection)
    });
    drop((stream, streams));
    session.ping();
}

#[test]
fn others_are_served_while_hundreds_of_streams_are_open_and_their_ends_leave_nothing() {
    let world = World::new();
    let server = world.serve(&[]);
    // Its first episode gives a server descriptors that it keeps.
    let mut first = server.session();
    first.attach("first");
    first.detach();
    drop(first);
    let before = server.descriptors();
    let sessions: Vec<Session> = (0..50).map(|_| server.session()).collect();
    let streams: Vec<Events> = sessions.iter().flat_map(|session| [session.stream(), session.stream()]).collect();
    let since = Instant::now();
    let mut other = server.session();
    other.attach("my-thread");
    other.detach();
    assert!(since.elapsed() < Duration::from_secs(5), "{:?}", since.elapsed());
    drop((streams, sessions, other));
    if before.is_some() {
        until("every connection is closed", || (server.descriptors() <= before).then_some(()));
    }
}

#[test]
fn a_head_or_an_http_1_0_request_for_a_stream_does_not_hang() {
    let world = World::new();
    let server = world.serve(&[]);
    let session = server.session();
    let reply = server.ask(&Request::new("HEAD", "/mcp"));
    assert!(matches!(reply.status, 405), "{reply:?}");
    let mut connection = server.connect();
    let text = format!("GET /api/v1/live HTTP/1.0\r\nHost: {}\r\n\r\n", server.address());
    connection.write(text.as_bytes());
    assert!(connection.ends_within(Duration::from_secs(5)), "it is closed after the answer");
    drop(session);
}

#[test]
fn an_episode_stays_open_and_its_own_while_its_streams_come_and_go() {
    let world = World::new();
    let server = world.serve(&[]);
    let mut session = server.session();
    let opened = session.attach("my-thread");
    for _ in 0..3 {
        let mut stream = session.stream();
        comment(stream.next_within(Duration::from_secs(5)));
        drop(stream);
        session.ping();
        assert_eq!(state_of(&server.episodes(), "my-thread"), "open");
    }
    let again = session.attach("my-thread");
    assert_eq!(again["episode"]["attachments"], opened["episode"]["attachments"], "{again}");
    session.detach();
    assert_eq!(world.record()["attachments"], 1);
}
