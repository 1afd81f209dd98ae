//! Events that come in wrong orders, twice, late, or all at once: one true record, or none where none is true.

use std::collections::BTreeSet;

use majordomus_e2e::{
    CLAUDE_CODE, CODEX, COPILOT_CLI, CURSOR, GEMINI_CLI, Said, Vendor, World, answered, feed, run_at_once, session,
};
use serde_json::{Value, json};

const ID: &str = "7b1de0c4-93f2-4d8a-a6c5-e20f4419b8d3";

fn an_end_that_comes_first_ends_nothing(vendor: &Vendor) {
    let world = World::new();
    assert_eq!(vendor.ends(&world, ID), vendor.nothing_open(ID));
    assert!(world.records().is_empty() && world.logs("open").is_empty());
    let session = vendor.starts(&world, ID);
    vendor.works(&world, ID);
    assert!(vendor.ends(&world, ID).starts_with(&vendor.ended()));
    let record = world.record();
    assert_eq!((record.text("session_id"), &record["resumes"]), (session.as_str(), &Value::Null));
}

fn a_compaction_before_its_start_begins_the_session(vendor: &Vendor) {
    begins_with(vendor, "compact", vendor.compact, 1);
}

fn an_activity_before_its_start_begins_the_session(vendor: &Vendor) {
    begins_with(vendor, "activity", vendor.activity, 0);
}

/// The sitting began when the client was first seen, and the start that comes later is its own.
fn begins_with(vendor: &Vendor, event: &str, name: &str, compactions: u32) {
    let world = World::new();
    let began = session(&vendor.fire(&world, event, name, ID), " opened at ");
    let line = vendor.fire(&world, "start", vendor.start, ID);
    assert_eq!(session(&line, " kept, open since "), began);
    vendor.works(&world, ID);
    assert!(vendor.ends(&world, ID).starts_with(&vendor.ended()));
    let record = world.record();
    assert_eq!((record.text("session_id"), &record["resumes"]), (began.as_str(), &Value::Null));
    let counted = (&record["attachments"], &record["compactions"]);
    assert_eq!(counted, (&json!(1), &json!(compactions)), "its client came once, and compacted as often as it said");
}

fn a_start_after_the_end_is_another_sitting_of_the_conversation(vendor: &Vendor) {
    let world = World::new();
    let first = vendor.starts(&world, ID);
    vendor.works(&world, ID);
    vendor.ends(&world, ID);
    let second = vendor.starts(&world, ID);
    vendor.works(&world, ID);
    assert!(vendor.ends(&world, ID).starts_with(&vendor.ended()));
    let records = world.records();
    let told: BTreeSet<(&str, &str)> =
        records.iter().map(|record| (record.text("session_id"), record.text("external_id"))).collect();
    assert_eq!(told, BTreeSet::from([(first.as_str(), ID), (second.as_str(), ID)]));
    assert!(records.iter().all(|record| record["attachments"] == 1 && record.text("outcome") == vendor.outcome()));
}

/// Start, prompt, tools, compaction, turn's end and end, each twice in a row.
fn each_event_twice_is_the_same_as_once(vendor: &Vendor) {
    let world = World::new();
    let twice = |event: &str, name: &str| [0; 2].map(|_| vendor.fire(&world, event, name, ID));
    let [first, again] = twice("start", vendor.start);
    let session = session(&first, " opened at ");
    assert!(again.starts_with(&format!("session {session} kept, open since ")), "{again}");
    for name in ["02-prompt", vendor.activity] {
        assert_eq!(twice("activity", name), [0; 2].map(|_| format!("session {session} marked (activity)")));
    }
    let [first, again] = twice("end", vendor.end);
    assert!(first.starts_with(&vendor.ended()), "{first}");
    assert_eq!(again, vendor.nothing_open(ID));
    let record = world.record();
    assert_eq!(record.text("session_id"), session);
    assert_eq!((&record["attachments"], &record["take_overs"]), (&json!(1), &json!(0)));
    assert_eq!(record.end(), (vendor.outcome(), vendor.reason, "hook"));
}

/// Everything that a sitting consists of, in one moment; then what it takes to be sure that it has ended.
fn everything_at_once_leaves_a_record_for_each_session_and_no_other(vendor: &Vendor) {
    for _ in 0..4 {
        let world = World::new();
        let events = [
            ("start", vendor.start),
            ("activity", "02-prompt"),
            ("compact", vendor.compact),
            ("activity", vendor.activity),
            ("end", vendor.end),
        ];
        let said = run_at_once(events.iter().map(|(event, name)| vendor.hook(&world, event, name, ID)).collect());
        let lines: Vec<&str> = said.iter().map(Said::hook).collect();
        let may = ["session s-", "episode closed (", "no open episode for "];
        for line in &lines {
            assert!(may.iter().any(|may| line.starts_with(may)) || line.contains("has just ended"), "{lines:#?}");
        }
        let opened: BTreeSet<String> =
            lines.iter().filter(|line| line.contains(" opened at ")).map(|line| session(line, " opened at ")).collect();
        vendor.ends(&world, ID);
        let records = world.records();
        let recorded: BTreeSet<String> = records.iter().map(|record| record.text("session_id").to_owned()).collect();
        assert!(!opened.is_empty() && opened.len() <= 2, "{lines:#?}");
        assert_eq!((&recorded, records.len()), (&opened, opened.len()), "{lines:#?}");
        assert!(world.logs("open").is_empty() && world.logs("bad").is_empty());
    }
}

fn a_start_twice_at_once_is_one_session_attached_once(vendor: &Vendor) {
    let world = World::new();
    let start = || vendor.hook(&world, "start", vendor.start, ID);
    let said = run_at_once(vec![start(), start()]);
    let lines: Vec<&str> = said.iter().map(Said::hook).collect();
    let opened: Vec<&&str> = lines.iter().filter(|line| line.contains(" opened at ")).collect();
    let kept = lines.iter().filter(|line| line.contains(" kept, open since ")).count();
    assert_eq!((opened.len(), kept), (1, 1), "{lines:?}");
    vendor.works(&world, ID);
    vendor.ends(&world, ID);
    let record = world.record();
    assert_eq!((record.text("session_id"), &record["attachments"]), (&*session(opened[0], " opened"), &json!(1)));
}

/// Gemini sends its end twice, and once more while its terminal goes: in a row or in parallel.
fn ends_in_parallel_are_one_record(vendor: &Vendor) {
    let world = World::new();
    for round in 0..5 {
        let id = format!("round-{round}");
        vendor.starts(&world, &id);
        vendor.works(&world, &id);
        let said = run_at_once((0..3).map(|_| vendor.hook(&world, "end", vendor.end, &id)).collect());
        let ended = said.iter().filter(|said| said.hook().starts_with(&vendor.ended())).count();
        let nothing = said.iter().filter(|said| said.hook() == vendor.nothing_open(&id)).count();
        assert_eq!((ended, nothing), (1, 2), "{said:#?}");
    }
    let records = world.records();
    assert_eq!(records.len(), 5);
    assert!(records.iter().all(|record| record.end() == (vendor.outcome(), vendor.reason, "hook")));
}

fn what_comes_just_after_the_end_changes_nothing(vendor: &Vendor) {
    let world = World::new();
    let session = vendor.starts(&world, ID);
    vendor.works(&world, ID);
    vendor.ends(&world, ID);
    let path = world.path(&world.record().path);
    let bytes = std::fs::read(&path).expect("the record is there");
    for (event, name) in [("activity", "02-prompt"), ("activity", vendor.activity), ("compact", vendor.compact)] {
        let line = vendor.fire(&world, event, name, ID);
        assert!(line.contains(&format!("session {session} has just ended")), "{name}: {line}");
    }
    assert!(world.logs("open").is_empty());
    assert_eq!(std::fs::read(path).expect("the record is there"), bytes);
    assert_eq!(world.records().len(), 1);
}

fn a_sitting_that_only_starts_is_interrupted_at_its_start(vendor: &Vendor) {
    let world = World::new();
    let session = vendor.starts(&world, ID);
    assert!(world.records().is_empty() && world.logs("open").len() == 1);
    let record = majordomus_e2e::until("the idle time ends", || world.records_with(&["--idle-seconds", "1"]).pop());
    assert_eq!((record.text("session_id"), record.end()), (session.as_str(), ("interrupted", "expired", "reaper")));
    assert_eq!((&record["closed_at"], &record["end_process"]), (&record["started_at"], &Value::Null));
}

/// A compaction is a mark inside: it neither begins nor ends anything, nor attaches anybody; told again at once it is one.
fn a_compaction_changes_nothing_but_its_count(vendor: &Vendor) {
    let world = World::new();
    let session = vendor.starts(&world, ID);
    for _ in 0..3 {
        assert_eq!(vendor.fire(&world, "compact", vendor.compact, ID), format!("session {session} marked (compact)"));
    }
    vendor.ends(&world, ID);
    let record = world.record();
    assert_eq!((&record["attachments"], &record["compactions"]), (&json!(1), &json!(1)));
}

macro_rules! of_each_client {
    ($($case:ident;)*) => {
        $(mod $case {
            use super::*;
            #[test]
            fn claude_code() {
                super::$case(&CLAUDE_CODE);
            }
            #[test]
            fn codex() {
                super::$case(&CODEX);
            }
            #[test]
            fn gemini_cli() {
                super::$case(&GEMINI_CLI);
            }
            #[test]
            fn cursor() {
                super::$case(&CURSOR);
            }
            #[test]
            fn copilot_cli() {
                super::$case(&COPILOT_CLI);
            }
        })*
    };
}

of_each_client! {
    an_end_that_comes_first_ends_nothing;
    a_compaction_before_its_start_begins_the_session;
    an_activity_before_its_start_begins_the_session;
    a_start_after_the_end_is_another_sitting_of_the_conversation;
    each_event_twice_is_the_same_as_once;
    everything_at_once_leaves_a_record_for_each_session_and_no_other;
    a_start_twice_at_once_is_one_session_attached_once;
    ends_in_parallel_are_one_record;
    what_comes_just_after_the_end_changes_nothing;
    a_sitting_that_only_starts_is_interrupted_at_its_start;
    a_compaction_changes_nothing_but_its_count;
}

/// A resume is another attachment however soon it comes: only the same start twice is one.
#[test]
fn a_start_of_another_source_is_another_attachment() {
    for vendor in [&CLAUDE_CODE, &CODEX, &GEMINI_CLI] {
        let world = World::new();
        let session = vendor.starts(&world, ID);
        let line = vendor.fire(&world, "start", "15-start-resume", ID);
        assert!(line.starts_with(&format!("session {session} kept, open since ")), "{line}");
        vendor.works(&world, ID);
        vendor.ends(&world, ID);
        assert_eq!(world.record()["attachments"], json!(2), "{}", vendor.id);
    }
}

/// One that the client did by itself and one that somebody asked for are two, however close.
#[test]
fn compactions_of_different_triggers_are_each_one() {
    let world = World::new();
    CLAUDE_CODE.starts(&world, ID);
    for name in ["07-compact", "08-compact-auto"] {
        assert!(CLAUDE_CODE.fire(&world, "compact", name, ID).ends_with(" marked (compact)"));
    }
    CLAUDE_CODE.ends(&world, ID);
    assert_eq!(world.record()["compactions"], json!(2));
}

/// Gemini tells of a compaction before every request of every turn, with nothing compacted.
#[test]
fn a_long_sitting_of_gemini_has_no_compaction_that_nobody_asked_for() {
    let world = World::new();
    let session = GEMINI_CLI.starts(&world, ID);
    for _ in 0..3 {
        for (event, name) in [("activity", "02-prompt"), ("compact", "08-compact-auto"), ("activity", "05-turn-end")] {
            let line = GEMINI_CLI.fire(&world, event, name, ID);
            assert_eq!(line, format!("session {session} marked (activity)"), "{name}");
        }
    }
    GEMINI_CLI.ends(&world, ID);
    assert_eq!(world.record()["compactions"], json!(0));
}

/// After a compaction Claude Code and Codex start again under the same id: neither an attachment nor a second compaction.
#[test]
fn the_start_after_a_compaction_belongs_to_it() {
    for vendor in [&CLAUDE_CODE, &CODEX] {
        let world = World::new();
        let session = vendor.starts(&world, ID);
        vendor.fire(&world, "compact", vendor.compact, ID);
        let (mut hook, payload) = vendor.hook(&world, "start", "09-start-compact", ID);
        let said = feed(&mut hook, &payload);
        let line = answered(&said).1;
        assert!(line.starts_with(&format!("session {session} kept, open since ")), "{line}");
        vendor.ends(&world, ID);
        let record = world.record();
        assert_eq!((&record["attachments"], &record["compactions"]), (&json!(1), &json!(1)), "{}", vendor.id);
    }
}
