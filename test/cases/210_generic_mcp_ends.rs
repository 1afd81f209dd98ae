//! How the episode of a connection ends, and how it does not.

use std::io::Write;
use std::process::Stdio;

use majordomus_e2e::{Client, INITIALIZE, World, attach_line, detach_line, milliseconds, now_ms, reported, session_id};
use majordomus_e2e::{state_of, until};
use rustix::process::Signal;
use serde_json::{Value, json};

#[test]
fn expiry_gives_one_interrupted_record_that_ends_at_the_last_evidence() {
    let world = World::new();
    let mut client = world.client();
    let opened = client.attach("my-thread");
    client.ping();
    client.kill9();
    let killed = now_ms();
    assert_eq!(world.records().len(), 0, "the grace is not over");

    let expired = || world.records_with(&["--grace-seconds", "1"]).pop();
    let record = until("the grace ends", expired);
    assert_eq!(record.text("session_id"), session_id(&opened));
    assert_eq!(record.end(), ("interrupted", "expired", "reaper"));
    assert_eq!(record["closed_at"], record["last_activity_at"]);
    assert!(record.time("started_at") <= record.time("closed_at"), "no negative duration");
    assert!(record.time("closed_at") <= killed, "{} is after the kill", record["closed_at"]);
    assert!(now_ms() - record.time("closed_at") >= 1000, "it waited for the grace");
    assert!(record.body.contains("**Interrupted:** nobody ended it."), "{}", record.body);
    assert_eq!(world.records_with(&["--grace-seconds", "1"]).len(), 1);
}

#[test]
fn evidence_after_the_attach_is_where_an_expired_episode_ends() {
    let world = World::new();
    let mut client = world.client();
    let opened = client.attach("my-thread");
    let opened = milliseconds(opened["episode"]["opened_at"].as_str().unwrap());
    until("time passes", || (now_ms() > opened + 50).then_some(()));
    let before_the_ping = now_ms();
    client.ping();
    assert_eq!(client.lose().code, Some(0));
    let gone = now_ms();
    let record = until("the grace ends", || world.records_with(&["--grace-seconds", "1"]).pop());
    let last = record.time("last_activity_at");
    // A time is kept in whole milliseconds, and never as a later one.
    assert!((before_the_ping - 1..=gone).contains(&last), "{before_the_ping} <= {last} <= {gone}");
}

#[test]
fn an_attach_that_finds_its_episode_past_the_grace_opens_a_session_that_names_the_old_one() {
    let world = World::new();
    let server = || {
        let mut client = Client::start(world.majordomus(&["mcp"]).env("MAJORDOMUS_GRACE_SECONDS", "1"));
        client.initialize();
        client
    };
    let mut client = server();
    let opened = client.attach("my-thread");
    client.kill9();
    // Looked at with a longer grace than was promised, so that nobody ends it meanwhile.
    until("two seconds pass", || {
        let said = world.run(&["episodes", "--json", "--grace-seconds", "900"]);
        let listed: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        (listed["episodes"][0]["last_activity_seconds_ago"].as_u64() >= Some(2)).then_some(())
    });
    let mut client = server();
    let again = client.attach("my-thread");
    assert_eq!((&again["resumed"], &again["episode"]["attachments"]), (&json!(false), &json!(1)), "{again}");
    assert_ne!(session_id(&again), session_id(&opened));
    client.detach();
    assert_eq!(client.lose().code, Some(0));
    let records = world.records();
    let by_id = |id: &str| records.iter().find(|record| record["session_id"] == id).expect("both have a record");
    assert_eq!(by_id(&session_id(&opened)).end(), ("interrupted", "expired", "reaper"));
    assert_eq!(by_id(&session_id(&again)).end(), ("closed", "detach", "connection"));
    assert_eq!(by_id(&session_id(&again))["resumes"], json!(session_id(&opened)));
    assert_eq!(records.len(), 2);
}

#[test]
fn an_attach_after_somebody_else_noticed_the_expiry_names_the_old_session_too() {
    let world = World::new();
    let mut client = world.client();
    let opened = client.attach("my-thread");
    client.kill9();
    until("the grace ends", || world.records_with(&["--grace-seconds", "1"]).pop());
    let mut client = world.client();
    let again = client.attach("my-thread");
    assert_eq!(again["resumed"], false, "{again}");
    client.detach();
    let records = world.records();
    let later = records.iter().find(|record| record["session_id"] == session_id(&again)).unwrap();
    assert_eq!((records.len(), &later["resumes"]), (2, &json!(session_id(&opened))));
    let earlier = records.iter().find(|record| record["session_id"] == session_id(&opened)).unwrap();
    assert_eq!(earlier["resumes"], Value::Null);
}

#[test]
fn detach_twice_gives_the_same_answer_and_one_record() {
    let world = World::new();
    let mut client = world.client();
    client.attach("my-thread");
    let first = client.detach();
    assert_eq!(client.detach(), first);
    assert_eq!(client.done("majordomus_session_detach", &json!({ "external_id": "my-thread" })), first);
    assert_eq!(client.lose().code, Some(0));
    assert_eq!(world.record().path, reported(&first).rsplit(' ').next().unwrap());
}

#[test]
fn detach_without_attach_is_a_refusal_that_says_what_to_do() {
    let world = World::new();
    let mut client = world.client();
    for (arguments, advice) in [(json!({}), "attach first"), (json!({ "external_id": "never-seen" }), "hint: ")] {
        let refused = client.tool("majordomus_session_detach", &arguments);
        assert_eq!((&refused["isError"], &refused["structuredContent"]), (&json!(true), &Value::Null), "{refused}");
        let text = refused["content"][0]["text"].as_str().expect("a refusal has text");
        assert!(text.contains(advice), "{text}");
    }
    client.ping();
    assert!(world.nothing_recorded());
}

#[test]
fn an_attach_under_another_id_leaves_the_first_one_detached() {
    let world = World::new();
    let mut client = world.client();
    client.attach("first");
    client.attach("second");
    let listed = client.done("majordomus_episodes", &json!({}));
    assert_eq!(listed["mine"]["external_id"], "second", "{listed}");
    assert_eq!((state_of(&listed, "first"), state_of(&listed, "second")), ("detached".into(), "open".into()));

    let closed = client.done("majordomus_session_detach", &json!({ "external_id": "first" }));
    assert_eq!(closed["recorded"], true, "nobody holds it, so anybody here may finish it: {closed}");
    assert_eq!(world.record()["external_id"], "first");
    assert_eq!(world.logs("open").len(), 1);
}

#[test]
fn a_second_connection_takes_an_episode_over_and_the_first_one_can_no_longer_end_it() {
    let world = World::new();
    // Two processes that share nothing but the repository.
    let [mut first, mut second] = [(); 2].map(|()| world.server(&["mcp", "--standalone"]));
    first.initialize();
    second.initialize();
    let opened = first.attach("my-thread");
    let taken = second.attach("my-thread");
    assert_eq!((session_id(&taken), &taken["episode"]["attachments"]), (session_id(&opened), &json!(2)), "{taken}");
    first.ping();
    first.tool("majordomus_session_detach", &json!({}));
    assert_eq!(state_of(&world.episodes(), "my-thread"), "open", "the loser's detach is not the holder's");
    assert_eq!(first.lose().code, Some(0));
    assert_eq!(state_of(&world.episodes(), "my-thread"), "open", "nor is its going");
    assert_eq!(world.records().len(), 0);
    second.detach();
    let record = world.record();
    assert_eq!((&record["attachments"], &record["take_overs"]), (&json!(2), &json!(1)));
}

#[test]
fn term_int_and_hup_with_the_input_still_open_detach_within_two_seconds() {
    let world = World::new();
    for (signal, id) in [(Signal::TERM, "term"), (Signal::INT, "int"), (Signal::HUP, "hup")] {
        let mut client = world.client();
        client.attach(id);
        client.signal(signal);
        let since = now_ms();
        // The input stays open in `client` until it is waited for.
        let left = client.wait();
        assert!(now_ms() - since < 2000, "{id}");
        assert_eq!((left.code, left.signal, left.err.as_str()), (Some(0), None, ""), "{id}");
        assert_eq!(state_of(&world.episodes(), id), "detached");
    }
    assert_eq!(world.records().len(), 0);
    assert_eq!(world.logs("open").len(), 3);
}

#[test]
fn a_client_that_reads_no_answer_is_recorded_all_the_same() {
    let world = World::new();
    let mut command = world.majordomus(&["mcp"]);
    let mut server = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    drop(server.stdout.take());
    let mut input = server.stdin.take().unwrap();
    // The server may leave as soon as it sees that nobody reads: what it was told before still counts.
    let conversation = format!("{INITIALIZE}\n{}{}", attach_line("my-thread"), detach_line());
    let _ = input.write_all(conversation.as_bytes());
    drop(input);
    server.wait().unwrap();
    assert_eq!(world.record().end(), ("closed", "detach", "connection"));
}

#[test]
fn an_episode_that_was_left_behind_is_shown_as_detached_by_every_other_process() {
    let world = World::new();
    let mut client = world.client();
    client.attach("first");
    client.attach("second");
    let listed = world.episodes();
    assert_eq!(
        (state_of(&listed, "first"), state_of(&listed, "second")),
        ("detached".into(), "open".into()),
        "{listed}"
    );
}

#[test]
fn an_episode_that_was_left_behind_expires_while_its_server_lives() {
    let world = World::new();
    let mut client = world.server(&["mcp", "--grace-seconds", "1"]);
    client.initialize();
    client.attach("first");
    client.attach("second");
    let left_at = now_ms();
    // Looked for with the ordinary grace: only the server itself can have ended it.
    let record = until("the server ends it", || world.records().pop());
    assert_eq!(record["external_id"], "first");
    assert_eq!(record.end(), ("interrupted", "expired", "reaper"));
    assert!(record.time("closed_at") <= left_at && now_ms() - record.time("closed_at") >= 1000);
    // The record is there a moment before its server's own list has heard of it.
    let listed = until("the server lists it no more", || {
        let listed = client.done("majordomus_episodes", &json!({}));
        (listed["detached"] == 0).then_some(listed)
    });
    assert_eq!(state_of(&listed, "second"), "open", "what is held never expires");
    assert_eq!(world.record()["external_id"], "first");
}
