//! A client whose server is another process: its bridge draws the boundary of its episode, and not that server.

use std::time::{Duration, Instant};

use majordomus_e2e::{Client, World, reported, session_id, state_of, until};
use rustix::process::Signal;
use serde_json::json;

#[test]
fn a_whole_session_over_a_bridge_leaves_the_record_that_it_names() {
    let world = World::new();
    let (holder, mut client) = (world.holder(), world.bridge());
    let head = world.git(&["rev-parse", "HEAD"]);
    let opened = client.attach("my-thread");
    let line = reported(&opened).to_owned();
    assert!(line.starts_with("session s-") && line.ends_with(&format!("(head {})", &head[..7])), "{line}");
    assert_eq!((&opened["resumed"], &opened["recorded"]), (&json!(false), &json!(true)), "{opened}");
    let commit = world.commit("during.txt", "During the session");
    let closed = client.detach();
    let path = reported(&closed).strip_prefix("episode closed (closed, reason detach) into ").expect("it says where");
    let record = world.record();
    assert_eq!((record.path.as_str(), record.text("session_id")), (path, session_id(&opened).as_str()));
    assert_eq!(record.end(), ("closed", "detach", "connection"));
    assert_eq!((record.text("client"), record.text("external_id")), ("anything 0", "my-thread"));
    assert_eq!(record["commits"][0]["sha"], commit);
    assert_eq!((&record["attachments"], &record["take_overs"]), (&json!(1), &json!(0)));
    assert_eq!(client.lose().code, Some(0));
    assert_eq!(holder.lose().code, Some(0));
    assert_eq!(world.episodes(), json!({ "open": 0, "detached": 0, "episodes": [] }));
}

#[test]
fn initialize_alone_over_a_bridge_opens_nothing_and_writes_nothing() {
    let world = World::new();
    let (holder, mut client) = (world.holder(), world.bridge());
    client.ask("tools/list", &json!({}));
    assert_eq!(client.done("majordomus_episodes", &json!({}))["episodes"], json!([]));
    assert!(world.nothing_recorded());
    let left = client.lose();
    assert_eq!((left.code, left.err.as_str()), (Some(0), ""));
    assert_eq!(holder.lose().code, Some(0));
    assert!(world.nothing_recorded());
}

/// A bridge is lost, and another one resumes its episode.
fn another_bridge_resumes(lose: impl Fn(Client)) {
    let world = World::new();
    let (mut holder, mut first) = (world.holder(), world.bridge());
    let opened = first.attach("my-thread");
    assert_eq!(state_of(&world.episodes(), "my-thread"), "open");
    lose(first);
    until("its going is seen", || {
        let listed = holder.done("majordomus_episodes", &json!({}));
        (state_of(&listed, "my-thread") == "detached").then_some(())
    });
    world.until_detached("my-thread");
    assert!(world.records().is_empty(), "a lost connection detaches, never closes");

    let mut second = world.bridge();
    let again = second.attach("my-thread");
    assert_eq!(session_id(&again), session_id(&opened));
    assert_eq!((&again["resumed"], &again["episode"]["attachments"]), (&json!(true), &json!(2)), "{again}");
    assert_eq!(again["episode"]["opened_at"], opened["episode"]["opened_at"]);
    let closed = second.detach();
    assert_eq!((&closed["recorded"], &closed["episode"]["attachments"]), (&json!(true), &json!(2)), "{closed}");
    let record = world.record();
    assert_eq!((&record["attachments"], &record["take_overs"]), (&json!(2), &json!(0)));
    assert_eq!((record.text("session_id"), record.end().0), (session_id(&opened).as_str(), "closed"));
    assert_eq!(second.lose().code, Some(0));
    assert_eq!(holder.lose().code, Some(0));
    assert_eq!((world.records().len(), world.logs("open").len()), (1, 0));
}

#[test]
fn an_episode_whose_bridges_input_ended_is_resumed_over_another_bridge() {
    another_bridge_resumes(|first| assert_eq!(first.lose().code, Some(0)));
}

#[test]
fn an_episode_whose_bridge_was_killed_is_resumed_over_another_bridge() {
    another_bridge_resumes(Client::kill9);
}

#[test]
fn an_episode_whose_bridge_was_told_to_go_is_resumed_over_another_bridge() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        another_bridge_resumes(|first| {
            first.signal(signal);
            let left = first.wait();
            assert_eq!((left.code, left.signal, left.err.as_str()), (Some(0), None, ""), "{signal:?}");
        });
    }
}

#[test]
fn ten_bridges_that_are_killed_one_after_another_are_one_episode_with_eleven_attachments() {
    let world = World::new();
    let holder = world.holder();
    for round in 1..=10 {
        let mut client = world.bridge();
        assert_eq!(client.attach("my-thread")["episode"]["attachments"], round);
        client.kill9();
    }
    let mut client = world.bridge();
    assert_eq!(client.attach("my-thread")["episode"]["attachments"], 11);
    client.detach();
    let record = world.record();
    // One that comes before its predecessor is seen to have gone takes over; it is never opened twice.
    assert_eq!(record["attachments"], 11);
    assert!(world.logs("open").is_empty());
    assert_eq!(holder.lose().code, Some(0));
}

#[test]
fn an_attach_names_the_repository_that_it_records_into() {
    let world = World::new();
    let (mut holder, mut client) = (world.holder(), world.bridge());
    assert_eq!(holder.attach("a")["records_into"], "work");
    assert_eq!(client.attach("b")["records_into"], "work");
    let linked = world.folder().join("linked");
    world.git(&["worktree", "add", "--quiet", linked.to_str().expect("a path is text"), "-b", "side"]);
    let mut elsewhere = Client::start(world.majordomus(&["mcp"]).current_dir(&linked));
    elsewhere.initialize();
    let named = elsewhere.attach("c")["records_into"].as_str().expect("it names one").to_owned();
    assert!(named.contains("linked") && named != "work", "{named}");
    let plain = World::plain();
    let attached = plain.client().attach("d");
    assert_eq!((&attached["recorded"], attached.get("records_into")), (&json!(false), None), "{attached}");
}

#[test]
fn what_a_bridge_was_asked_before_its_input_ended_is_answered_and_then_it_detaches() {
    let world = World::new();
    let (holder, mut client) = (world.holder(), world.bridge());
    client.attach("my-thread");
    let ids: Vec<u64> = (0..50).map(|_| client.begin("tools/list", &json!({}))).collect();
    client.close_input();
    let answers = client.answers(&ids, Instant::now() + Duration::from_secs(5));
    assert!(answers.values().all(|answer| answer["result"]["tools"].is_array()));
    assert_eq!(client.wait().code, Some(0));
    world.until_detached("my-thread");
    assert_eq!(holder.lose().code, Some(0));
}
