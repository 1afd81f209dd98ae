//! Silence over HTTP is not loss: who says nothing is shown as detached, and its episode is still its own.

use std::time::{Duration, Instant};

use majordomus_e2e::{Request, Server, World, session_id, state_of, until};
use rustix::process::Signal;
use serde_json::{Value, json};

const GRACE: Duration = Duration::from_secs(2);
const SHORT: [&str; 2] = ["--grace-seconds", "2"];
const HANDLE: &str = "Majordomus-Episode-Handle";

/// What the server lists under an id.
fn listed(server: &Server, id: &str) -> Option<Value> {
    let listed = server.episodes();
    listed["episodes"].as_array().and_then(|all| all.iter().find(|one| one["external_id"] == id)).cloned()
}

/// Waits until the server shows an episode as detached; that somebody looks is no evidence of its client.
fn falls_silent(server: &Server, id: &str) -> Value {
    let shown = until("its silence shows", || {
        let shown = listed(server, id).expect("silence ends nothing");
        (shown["state"] == "detached").then_some(shown)
    });
    assert_eq!(shown.get("peer"), None, "nobody holds it: {shown}");
    shown
}

/// Waits until an episode has been silent for that long.
fn silent_for(server: &Server, id: &str, time: Duration) -> Value {
    until("time passes", || {
        let shown = listed(server, id).expect("silence ends nothing");
        (shown["last_activity_seconds_ago"].as_u64() >= Some(time.as_secs())).then_some(shown)
    })
}

#[test]
fn a_session_that_only_posts_is_shown_as_detached_when_silent_and_open_at_its_next_message() {
    let world = World::new();
    let server = world.serve(&SHORT);
    let mut session = server.session();
    let since = Instant::now();
    let opened = session.attach("my-thread");
    assert_eq!(state_of(&server.episodes(), "my-thread"), "open");
    let shown = falls_silent(&server, "my-thread");
    assert!(since.elapsed() >= GRACE, "{:?}", since.elapsed());
    assert_eq!(shown["attachments"], 1, "{shown}");
    session.ping();
    let shown = listed(&server, "my-thread").expect("it is there");
    assert_eq!((&shown["state"], &shown["attachments"]), (&json!("open"), &json!(1)), "{shown}");
    assert_eq!(shown["peer"], opened["episode"]["peer"], "{shown}");
    assert_eq!(session.done("majordomus_episodes", &json!({}))["mine"]["external_id"], "my-thread");
    assert_eq!(session.detach()["recorded"], true);
    let record = world.record();
    assert_eq!((&record["attachments"], &record["take_overs"], record.end().0), (&json!(1), &json!(0), "closed"));
}

#[test]
fn silence_far_beyond_the_grace_ends_nothing_whoever_looks() {
    let world = World::new();
    let server = world.serve(&SHORT);
    let mut session = server.session();
    let opened = session.attach("my-thread");
    let shown = silent_for(&server, "my-thread", 4 * GRACE);
    assert_eq!((&shown["state"], &shown["attachments"]), (&json!("detached"), &json!(1)), "{shown}");
    // Its server lives and is the one that judges.
    assert_eq!(world.records_with(&["--grace-seconds", "1"]).len(), 0);
    session.ping();
    let shown = listed(&server, "my-thread").expect("it is there");
    assert_eq!((&shown["state"], &shown["attachments"]), (&json!("open"), &json!(1)), "{shown}");
    session.detach();
    let record = world.record();
    assert_eq!((record.text("session_id"), &record["attachments"]), (session_id(&opened).as_str(), &json!(1)));
}

#[test]
fn a_session_with_an_open_stream_stays_open_however_silent() {
    let world = World::new();
    let server = world.serve(&SHORT);
    let (mut session, mut posts) = (server.session(), server.session());
    let opened = session.attach("streams");
    posts.attach("posts");
    let stream = session.stream();
    falls_silent(&server, "posts");
    let shown = silent_for(&server, "streams", 3 * GRACE);
    assert_eq!((&shown["state"], &shown["peer"]), (&json!("open"), &opened["episode"]["peer"]), "{shown}");
    drop(stream);
    assert_eq!(listed(&server, "streams").expect("a lost stream ends nothing")["attachments"], 1);
    session.ping();
    assert_eq!(state_of(&server.episodes(), "streams"), "open");
}

#[test]
fn a_caller_by_handle_is_shown_as_detached_when_silent_and_open_at_its_next_call() {
    let world = World::new();
    let server = world.serve(&SHORT);
    let attach = Request::post("/api/v1/episodes/attach", &json!({ "external_id": "my-thread" }));
    let attached = server.ask(&attach).done();
    let handle = attached["episode_handle"].as_str().expect("it is given a handle").to_owned();
    falls_silent(&server, "my-thread");
    let shown = silent_for(&server, "my-thread", 3 * GRACE);
    assert_eq!((&shown["state"], &shown["attachments"]), (&json!("detached"), &json!(1)), "{shown}");
    let mine = server.ask(&Request::get("/api/v1/episodes").header(HANDLE, &handle)).done();
    assert_eq!((&mine["mine"]["state"], &mine["mine"]["attachments"]), (&json!("open"), &json!(1)), "{mine}");
    let detach = Request::post("/api/v1/episodes/detach", &json!({ "episode_handle": handle }));
    assert_eq!(server.ask(&detach).done()["recorded"], true);
    assert_eq!(world.record().end(), ("closed", "detach", "connection"));
}

#[test]
fn a_silent_session_that_is_deleted_has_the_grace_from_then_and_no_longer() {
    let world = World::new();
    let server = world.serve(&SHORT);
    let mut session = server.session();
    session.attach("my-thread");
    falls_silent(&server, "my-thread");
    let since = Instant::now();
    assert_eq!(session.delete().status, 204);
    let record = until("the server ends it", || world.records_with(&["--grace-seconds", "900"]).pop());
    assert!(since.elapsed() >= GRACE, "{:?}", since.elapsed());
    assert_eq!(record.end(), ("interrupted", "expired", "reaper"));
}

#[test]
fn a_silent_session_whose_server_goes_finds_its_episode_at_the_next_one() {
    let world = World::new();
    let server = world.serve(&["--grace-seconds", "10"]);
    let mut session = server.session();
    let opened = session.attach("my-thread");
    assert_eq!(server.end(Signal::TERM).code, Some(0));
    let server = world.serve(&["--grace-seconds", "10"]);
    let again = server.session().attach("my-thread");
    assert_eq!((session_id(&again), &again["episode"]["attachments"]), (session_id(&opened), &json!(2)), "{again}");
}
