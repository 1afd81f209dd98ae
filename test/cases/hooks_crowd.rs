//! Many hooks at once: nothing is lost and nothing is there twice.

use std::collections::BTreeSet;
use std::fs;

use majordomus_e2e::{Said, World, payload_of, run_at_once};
use serde_json::json;

/// How many processes meet.
const CROWD: usize = 102;

/// Runs the hooks at once: an event, the payload of that event, and whose it is.
fn meet(world: &World, hooks: impl IntoIterator<Item = (&'static str, &'static str, String)>) -> Vec<Said> {
    let command = |(event, name, id): (&str, &str, String)| {
        (world.capture("claude-code", event), payload_of(name, &id).to_string().into_bytes())
    };
    run_at_once(hooks.into_iter().map(command).collect())
}

fn session_in(said: &Said) -> String {
    said.hook().split(' ').nth(1).unwrap_or_default().to_owned()
}

#[test]
fn a_hundred_hooks_of_one_open_session_are_all_in_its_log() {
    let world = World::new();
    let opened = meet(&world, [("start", "SessionStart.startup", "a".into())]);
    let said = meet(
        &world,
        (0..CROWD).map(|nr| match nr % 3 {
            0 => ("start", "SessionStart.resume", "a".into()),
            1 => ("compact", "PreCompact.auto", "a".into()),
            _ => ("activity", "Stop", "a".into()),
        }),
    );
    let session = session_in(&opened[0]);
    assert!(said.iter().all(|said| session_in(said) == session), "{said:#?}");
    let log = fs::read_to_string(&world.logs("open")[0]).expect("the log can be read");
    let count = |kind: &str| log.lines().filter(|line| line.contains(&format!("\"kind\":\"{kind}\""))).count();
    assert_eq!(
        (count("attach"), count("compact"), count("activity")),
        (CROWD / 3, CROWD / 3, CROWD / 3),
        "none is lost"
    );
    let closed = meet(&world, [("end", "SessionEnd.clear", "a".into())]);
    assert!(closed[0].hook().starts_with("episode closed (closed, reason clear)"), "{closed:?}");
    let record = world.record();
    // Whatever is told so often at once is one and the same thing.
    assert_eq!((&record["attachments"], &record["compactions"]), (&json!(2), &json!(1)));
}

#[test]
fn a_hundred_first_starts_of_one_key_open_one_session() {
    let world = World::new();
    let said = meet(&world, (0..CROWD).map(|_| ("start", "SessionStart.startup", "a".into())));
    let sessions: BTreeSet<String> = said.iter().map(session_in).collect();
    let opened = said.iter().filter(|said| said.hook().contains(" opened at ")).count();
    assert_eq!((sessions.len(), opened), (1, 1), "{said:#?}");
    assert_eq!(world.logs("open").len(), 1);
    assert_eq!(world.episodes()["episodes"][0]["attachments"], 1, "it was told often, and came once");
}

#[test]
fn a_hundred_starts_marks_and_ends_of_one_key_leave_one_record_for_each_session() {
    let world = World::new();
    let said = meet(
        &world,
        (0..CROWD).map(|nr| match nr % 3 {
            0 => ("start", "SessionStart.startup", "a".into()),
            1 => ("compact", "PreCompact.auto", "a".into()),
            _ => ("end", "SessionEnd.clear", "a".into()),
        }),
    );
    let lines: Vec<&str> = said.iter().map(Said::hook).collect();
    let failed: Vec<&&str> = lines
        .iter()
        .filter(|line| line.starts_with("no episode was recorded") && !line.contains("has just ended"))
        .collect();
    assert!(failed.is_empty(), "{failed:#?}");
    let opened: BTreeSet<String> =
        said.iter().filter(|said| said.line().contains(" opened at ")).map(session_in).collect();
    let closed: Vec<&str> = lines.iter().filter_map(|line| line.split_once(") into ")).map(|(_, path)| path).collect();
    assert!(!opened.is_empty());

    meet(&world, [("end", "SessionEnd.clear", "a".into())]);
    let records = world.records();
    assert!(world.logs("open").is_empty() && world.logs("bad").is_empty());
    let recorded: BTreeSet<String> = records.iter().map(|record| record.text("session_id").to_owned()).collect();
    assert_eq!(recorded, opened, "each session that was opened has its record, and no other");
    assert_eq!(records.len(), recorded.len());
    let distinct: BTreeSet<&str> = closed.iter().copied().collect();
    assert_eq!(distinct.len(), closed.len(), "no end was claimed twice: {closed:#?}");
    assert!(distinct.iter().all(|path| records.iter().any(|record| record.path == **path)), "{closed:#?}");
}

#[test]
fn a_hundred_keys_at_once_are_as_many_sessions() {
    let world = World::new();
    let ids = || (0..CROWD).map(|nr| format!("id-{nr}"));
    let opened = meet(&world, ids().map(|id| ("start", "SessionStart.startup", id)));
    assert!(opened.iter().all(|said| said.hook().contains(" opened at ")), "{opened:#?}");
    let sessions: BTreeSet<String> = opened.iter().map(session_in).collect();
    assert_eq!((sessions.len(), world.logs("open").len()), (CROWD, CROWD));
    let marked = meet(&world, ids().map(|id| ("compact", "PreCompact.auto", id)));
    assert!(marked.iter().all(|said| said.hook().ends_with(" marked (compact)")), "{marked:#?}");
    let closed = meet(&world, ids().map(|id| ("end", "SessionEnd.clear", id)));
    assert!(closed.iter().all(|said| said.hook().starts_with("episode closed (closed")), "{closed:#?}");
    let records = world.records();
    let recorded: BTreeSet<String> = records.iter().map(|record| record.text("session_id").to_owned()).collect();
    assert_eq!((recorded, records.len()), (sessions, CROWD));
    assert!(records.iter().all(|record| record["compactions"] == 1 && record["attachments"] == 1));
    assert!(world.logs("open").is_empty());
}
