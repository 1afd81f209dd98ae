//! Hooks among ten thousand other sittings, and hooks that are killed after no time at all.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use majordomus_e2e::{
    CLAUDE_CODE, CODEX, COPILOT_CLI, CURSOR, GEMINI_CLI, Record, Running, Vendor, World, session, until,
};
use serde_json::json;

const FIVE: [&Vendor; 5] = [&CLAUDE_CODE, &CODEX, &GEMINI_CLI, &CURSOR, &COPILOT_CLI];
const MANY: usize = 10_000;
const RECORDS: usize = 2_000;

/// When each file in a folder was last written.
fn written(folder: &Path) -> BTreeMap<PathBuf, SystemTime> {
    let entries = fs::read_dir(folder).expect("the folder is there").map(|entry| entry.expect("it can be listed"));
    entries
        .map(|entry| (entry.path(), entry.metadata().and_then(|about| about.modified()).expect("a file has a time")))
        .collect()
}

/// A world in which ten thousand sittings are open and thousands have their records.
fn crowded() -> World {
    let world = World::new();
    CLAUDE_CODE.starts(&world, "one-that-ended");
    CLAUDE_CODE.works(&world, "one-that-ended");
    CLAUDE_CODE.ends(&world, "one-that-ended");
    let record = world.record();
    let (path, id) = (world.path(&record.path), record.text("session_id").to_owned());
    let text = fs::read_to_string(&path).expect("the record is there");
    for nr in 0..RECORDS {
        let other = format!("{}{nr:08x}", &id[..id.len() - 8]);
        let copy = path.with_file_name(format!("{other}--main.md"));
        fs::write(copy, text.replace(&id, &other).replace("one-that-ended", &format!("ended-{nr}")))
            .expect("a file can be written");
    }
    let opened = CLAUDE_CODE.starts(&world, "one-that-is-open");
    CLAUDE_CODE.works(&world, "one-that-is-open");
    let log = world.logs("open").remove(0);
    let text = fs::read_to_string(&log).expect("the log is there");
    for nr in 0..MANY {
        let other = format!("{}{nr:08x}", &opened[..opened.len() - 8]);
        let copy = log.with_file_name(format!("open-{nr}-{:016x}.jsonl", nr * 7919 + 1));
        fs::write(copy, text.replace(&opened, &other).replace("one-that-is-open", &format!("open-{nr}")))
            .expect("a file can be written");
    }
    world
}

#[test]
fn among_ten_thousand_open_sittings_each_hook_touches_its_own() {
    let world = crowded();
    let folder = world.state().join("open");
    let before = written(&folder);
    assert_eq!(before.len(), MANY + 1);
    for vendor in FIVE {
        let opened = vendor.starts(&world, "mine");
        let own = world.logs("open").into_iter().filter(|path| !before.contains_key(path)).count();
        assert_eq!(own, 1);
        vendor.works(&world, "mine");
        let line = vendor.fire(&world, "compact", vendor.compact, "mine");
        assert_eq!(line, format!("session {opened} marked (compact)"));
        let line = vendor.ends(&world, "mine");
        assert!(line.starts_with(&vendor.ended()), "{line}");
        let path = line.rsplit(' ').next().unwrap();
        until("the record is there", || {
            let there = world.path(path).is_file();
            if !there {
                let _ = world.run(&["sessions", "show", &opened]);
            }
            there.then_some(())
        });
        let record = Record::read(world.repository(), path);
        assert_eq!((record.text("session_id"), record.text("provider")), (opened.as_str(), vendor.id));
        assert_eq!((record.end(), &record["compactions"]), ((vendor.outcome(), vendor.reason, "hook"), &json!(1)));
    }
    let after = written(&folder);
    let touched: Vec<&PathBuf> =
        before.iter().filter(|(path, at)| after.get(*path) != Some(at)).map(|(path, _)| path).collect();
    assert!(touched.is_empty() && after.len() == before.len(), "no other was written, moved or removed: {touched:?}");
    let bad = world.state().join("bad");
    assert!(!bad.exists() || fs::read_dir(bad).unwrap().next().is_none());
}

/// Whether the end of a session is on the disk, wherever its log is by now.
fn is_ended(world: &World, session: &str) -> bool {
    let published = || {
        let names = world.record_files();
        names.iter().any(|path| path.to_string_lossy().contains(&format!("/{session}--")))
    };
    let logs = world.logs("open").into_iter().chain(world.logs("ended"));
    // A log that has gone meanwhile was moved or published, which only an ended one is.
    let mut texts = logs.map(|log| fs::read_to_string(log).ok());
    let held =
        |text: Option<String>| text.is_some_and(|text| text.contains(session) && text.contains("\"kind\":\"end\""));
    texts.any(held) || published()
}

fn an_end_hook_that_is_killed_after_20_ms_has_lost_nothing(vendor: &Vendor) {
    let world = World::new();
    let (mut sessions, mut durable) = (Vec::new(), 0);
    for round in 0..10 {
        let id = format!("id-{round}");
        sessions.push(vendor.starts(&world, &id));
        vendor.works(&world, &id);
        let (mut command, payload) = vendor.hook(&world, "end", vendor.end, &id);
        let (mut hook, since) = (Running::start(&mut command), Instant::now());
        hook.feed(&payload);
        hook.ended_within(Duration::from_millis(20).saturating_sub(since.elapsed()));
        hook.kill();
        if is_ended(&world, &sessions[round]) {
            durable += 1;
        } else {
            // The machine was busy with others: then the sitting is as it was, and the client's next try ends it.
            let line = vendor.ends(&world, &id);
            assert!(line.starts_with(&vendor.ended()), "{line}");
        }
    }
    assert!(durable > 0, "20 ms are enough");
    let records = world.records();
    let mut recorded: Vec<&str> = records.iter().map(|record| record.text("session_id")).collect();
    recorded.sort_unstable();
    sessions.sort();
    assert_eq!(recorded, sessions);
    assert!(records.iter().all(|record| record.end() == (vendor.outcome(), vendor.reason, "hook")));
    assert!(world.logs("open").is_empty() && world.logs("bad").is_empty());
}

#[test]
fn an_end_hook_of_claude_code_that_is_killed_after_20_ms_has_lost_nothing() {
    an_end_hook_that_is_killed_after_20_ms_has_lost_nothing(&CLAUDE_CODE);
}

#[test]
fn an_end_hook_of_codex_that_is_killed_after_20_ms_has_lost_nothing() {
    an_end_hook_that_is_killed_after_20_ms_has_lost_nothing(&CODEX);
}

#[test]
fn an_end_hook_of_gemini_cli_that_is_killed_after_20_ms_has_lost_nothing() {
    an_end_hook_that_is_killed_after_20_ms_has_lost_nothing(&GEMINI_CLI);
}

#[test]
fn an_end_hook_of_cursor_that_is_killed_after_20_ms_has_lost_nothing() {
    an_end_hook_that_is_killed_after_20_ms_has_lost_nothing(&CURSOR);
}

#[test]
fn an_end_hook_of_copilot_cli_that_is_killed_after_20_ms_has_lost_nothing() {
    an_end_hook_that_is_killed_after_20_ms_has_lost_nothing(&COPILOT_CLI);
}

/// Start, activity and compaction hooks that are killed anywhere: what they said is there or is not, and never half.
#[test]
fn a_hook_that_is_killed_anywhere_leaves_a_session_that_goes_on() {
    for vendor in FIVE {
        let world = World::new();
        for round in 0..10_u64 {
            let id = format!("id-{round}");
            for (event, name) in [("start", vendor.start), ("activity", vendor.activity), ("compact", vendor.compact)] {
                let (mut command, payload) = vendor.hook(&world, event, name, &id);
                let mut hook = Running::start(&mut command);
                hook.feed(&payload);
                hook.ended_within(Duration::from_micros(round * 400));
                hook.kill();
            }
            let line = vendor.fire(&world, "activity", vendor.activity, &id);
            assert!(line.contains(" opened at ") || line.ends_with(" marked (activity)"), "{line}");
            let here = session(&line, "");
            let line = vendor.ends(&world, &id);
            assert!(line.starts_with(&vendor.ended()) && line.contains(&here), "{line}");
        }
        assert_eq!(world.records().len(), 10, "{}", vendor.id);
        assert!(world.logs("open").is_empty() && world.logs("bad").is_empty());
    }
}
