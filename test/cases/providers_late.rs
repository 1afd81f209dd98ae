//! An end that comes a minute after the sitting, from a process of its own, says nothing about when.

use std::path::Path;

use majordomus_e2e::{Agent, CODEX, GEMINI_CLI, Vendor, World, now_ms, sample_of, session, until};
use serde_json::json;

const ID: &str = "01a3c5e7-52d8-7c40-9f1b-7d3e60a4b9c2";

/// Lets as much time pass as tells two moments apart in seconds.
fn a_moment_passes() {
    let since = now_ms();
    until("a moment passes", || (now_ms() > since + 1200).then_some(()));
}

/// A sitting with a commit of its own, then one of somebody else's on another branch, then the end.
fn a_sitting_with_a_later_commit(world: &World, vendor: &Vendor) -> (String, String, [i64; 2]) {
    let session = vendor.starts(world, ID);
    let own = world.commit("lamps.txt", "Sort the lamps");
    let from = now_ms();
    vendor.works(world, ID);
    let seen = [from, now_ms()];
    a_moment_passes();
    world.git(&["checkout", "--quiet", "-b", "of-somebody-else"]);
    world.commit("ladder.txt", "Paint the ladder");
    world.write("wet.txt", "not committed\n");
    let line = vendor.ends(world, ID);
    assert!(line.starts_with(&vendor.ended()), "{line}");
    (session, own, seen)
}

#[test]
fn an_end_of_codex_leaves_everything_as_it_was_when_it_was_last_seen_at_work() {
    let world = World::new();
    let (session, own, [from, to]) = a_sitting_with_a_later_commit(&world, &CODEX);
    let record = world.record();
    assert_eq!((record.text("session_id"), record.end()), (session.as_str(), ("interrupted", "other", "hook")));
    let last = record.time("last_activity_at");
    assert!(from <= last && last <= to, "{from} <= {last} <= {to}");
    assert_eq!(record["closed_at"], record["last_activity_at"]);
    assert_eq!((record.text("head"), record.text("branch")), (own.as_str(), "main"));
    assert_eq!((record.subjects(), &record["changed_files"]), (vec!["Sort the lamps"], &json!(["lamps.txt"])));
    assert_eq!(record["head_tree"], json!(world.git(&["rev-parse", "main^{tree}"])));
    assert!(record.path.ends_with(&format!("{session}--main.md")), "{}", record.path);
    assert!(record.body.contains(" may report an end long after the sitting was over, so "), "{}", record.body);
    assert!(!record.body.contains("Paint the ladder") && !record.body.contains("wet.txt"), "{}", record.body);
}

/// What the end of any other client says is that the client was there: what it finds then is the sitting's.
#[test]
fn an_end_that_comes_in_time_is_when_the_sitting_ended() {
    let world = World::new();
    let (_, _, [_, to]) = a_sitting_with_a_later_commit(&world, &GEMINI_CLI);
    let record = world.record();
    assert!(record.time("closed_at") >= to + 1200, "it ended when it ended");
    assert_eq!((record.text("branch"), record.subjects().len()), ("of-somebody-else", 2));
    assert!(!record.body.contains(" may report an end long after "), "{}", record.body);
    assert_eq!(record["changed_files"], json!(["ladder.txt", "lamps.txt", "wet.txt"]));
}

#[test]
fn an_end_of_codex_without_anything_since_its_start_is_at_the_start() {
    let world = World::new();
    let from = now_ms();
    CODEX.starts(&world, ID);
    let to = now_ms();
    a_moment_passes();
    world.commit("ladder.txt", "Paint the ladder");
    CODEX.ends(&world, ID);
    let record = world.record();
    let closed = record.time("closed_at");
    assert!(from <= closed && closed <= to);
    assert_eq!((&record["started_at"], &record["head"]), (&record["closed_at"], &record["start_head"]));
    assert_eq!((&record["commits"], &record["changed_files"]), (&json!([]), &json!([])));
}

/// The daemon is none of several processes in the conversation, so the one that runs keeps nothing open.
#[test]
fn an_end_from_a_process_that_was_never_in_the_sitting_ends_it() {
    let world = World::new();
    let mut agent = Agent::start(&world, Path::new(env!("CARGO_BIN_EXE_stand-in")));
    let line = agent.hook("codex", "start", &sample_of(&world, "codex", "01-start", ID));
    let line = [line, CODEX.ends(&world, ID)];
    assert!(line[0].contains(" opened at ") && line[1].starts_with(&CODEX.ended()), "{line:?}");
    assert_eq!((world.record()["end_process"].as_str(), world.logs("open").len()), (Some("running"), 0));
}

/// Its daemon ends every thread that it has; one that came in meanwhile is another sitting.
#[test]
fn a_late_end_of_codex_ends_only_its_own_thread() {
    let world = World::new();
    let first = CODEX.starts(&world, ID);
    CODEX.works(&world, ID);
    let other = "01a3c5e7-52d8-7c40-9f1b-000000000002";
    let second = CODEX.starts(&world, other);
    a_moment_passes();
    CODEX.ends(&world, ID);
    CODEX.works(&world, other);
    assert_eq!((world.record().text("session_id"), world.logs("open").len()), (first.as_str(), 1));
    CODEX.ends(&world, other);
    let line = CODEX.fire(&world, "start", "15-start-resume", ID);
    let third = session(&line, " opened at ");
    CODEX.works(&world, ID);
    CODEX.ends(&world, ID);
    let records = world.records();
    let of = |session: &str| records.iter().find(|record| record["session_id"] == session).expect("it has a record");
    assert_eq!((records.len(), &of(&third)["resumes"]), (3, &json!(first)));
    assert!(of(&second)["resumes"].is_null());
}
