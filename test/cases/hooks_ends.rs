//! Ends that come twice, too early, never, or in a hook that is killed: one session, one record.

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use majordomus_e2e::{Dice, Running, World, feed, files, now_ms, payload_of, provider_payload, run_at_once, until};
use serde_json::{Value, json};

fn start(world: &World, id: &str) -> String {
    let line = world.hook("start", &payload_of("SessionStart.startup", id));
    line.split(' ').nth(1).unwrap_or_default().to_owned()
}

fn end(world: &World, id: &str) -> String {
    world.hook("end", &payload_of("SessionEnd.clear", id))
}

fn end_hook(world: &World, id: &str) -> (Command, Vec<u8>) {
    (world.capture("claude-code", "end"), payload_of("SessionEnd.clear", id).to_string().into_bytes())
}

/// Whether the end of a session is on the disk, wherever its log is by now.
fn is_ended(world: &World, session: &str) -> bool {
    let logs = world.logs("open").into_iter().chain(world.logs("ended"));
    // A log that has gone meanwhile was moved or published, which only an ended one is.
    let texts = logs.map(|log| fs::read_to_string(log).unwrap_or_else(|_| format!("{session} \"kind\":\"end\"")));
    let holds = |text: &String| text.contains(session) && text.contains("\"kind\":\"end\"");
    let published =
        || world.record_files().iter().any(|path| path.to_string_lossy().contains(&format!("/{session}--")));
    let texts: Vec<String> = texts.collect();
    texts.iter().any(holds) || published()
}

/// A git in front of the real one that says that it has begun and then hangs until its reader lets go.
struct HangingGit {
    folder: std::path::PathBuf,
}

impl HangingGit {
    fn new(world: &World) -> Self {
        let folder = world.folder().join("hanging");
        fs::create_dir(&folder).expect("a folder can be made");
        for pipe in ["begun", "hold"] {
            let made = world.program("mkfifo").arg(folder.join(pipe)).status().expect("mkfifo can be run");
            assert!(made.success());
        }
        let script = "#!/bin/sh\nfolder=${0%/*}\necho $$ >\"$folder/begun\"\nread line <\"$folder/hold\"\nexit 1\n";
        fs::write(folder.join("git"), script).expect("a script can be written");
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(folder.join("git"), mode).expect("a script can be made to run");
        Self { folder }
    }

    /// Puts it in front of everything on the PATH.
    fn before(&self, command: &mut Command) {
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", self.folder.display()));
    }

    /// Waits until git has been asked.
    fn begun(&self) -> Vec<u8> {
        // Opening waits for the other side; what is read is the process id, for nobody.
        let mut said = Vec::new();
        let mut pipe = fs::File::open(self.folder.join("begun")).expect("the pipe is there");
        pipe.read_to_end(&mut said).expect("the pipe can be read");
        said
    }
}

impl Drop for HangingGit {
    fn drop(&mut self) {
        // Whoever still waits gets an end; where nobody does, opening for both sides does not wait either.
        let _ = fs::File::options().read(true).write(true).open(self.folder.join("hold")).map(|mut hold| {
            let _ = std::io::Write::write_all(&mut hold, &b"\n".repeat(64));
        });
    }
}

#[test]
fn an_end_hook_that_is_killed_anywhere_never_costs_a_record_and_never_makes_two() {
    let world = World::new();
    let mut dice = Dice::new(60);
    let mut sessions = Vec::new();
    for round in 0..30 {
        let id = format!("id-{round}");
        let session = start(&world, &id);
        let (mut command, payload) = end_hook(&world, &id);
        let mut hook = Running::start(&mut command);
        hook.feed(&payload);
        // From before it has read anything to after its record is there.
        hook.ended_within(Duration::from_micros(round * 600 + dice.below(600)));
        hook.kill();
        if !is_ended(&world, &session) {
            let line = end(&world, &id);
            assert!(line.starts_with("episode closed (closed, reason clear) into "), "{line}");
        }
        sessions.push(session);
    }
    let mut recorded: Vec<String> = world.records().iter().map(|record| record.text("session_id").to_owned()).collect();
    recorded.sort();
    sessions.sort();
    assert_eq!(recorded, sessions);
    assert!(world.logs("open").is_empty() && world.logs("bad").is_empty());
}

#[test]
fn an_end_is_durable_before_git_is_asked_and_git_that_hangs_does_not_hold_the_hook() {
    let world = World::new();
    let session = start(&world, "a");
    let git = HangingGit::new(&world);
    let (mut command, payload) = end_hook(&world, "a");
    git.before(&mut command);
    let since = Instant::now();
    let said = feed(&mut command, &payload);
    assert!(since.elapsed() < Duration::from_millis(1500), "{:?}", since.elapsed());
    assert!(said.hook().starts_with("episode closed (closed, reason clear) into "), "{said:?}");
    assert_eq!((world.record_files().len(), world.logs("ended").len()), (0, 1), "the record is for whoever comes next");
    let record = world.record();
    assert_eq!((record.text("session_id"), record.end()), (session.as_str(), ("closed", "clear", "hook")));
    assert!(said.line().ends_with(&record.path), "it is where the hook said: {said:?}");
    assert!(record["commits"].is_array(), "and it says all that git knows");
}

#[test]
fn an_end_hook_that_is_killed_while_git_is_asked_leaves_the_record_to_the_next_command() {
    let world = World::new();
    let session = start(&world, "a");
    let git = HangingGit::new(&world);
    let (mut command, payload) = end_hook(&world, "a");
    git.before(&mut command);
    let mut hook = Running::start(&mut command);
    hook.feed(&payload);
    git.begun();
    hook.kill();
    assert_eq!(end(&world, "a"), "no open episode for claude-code a; nothing to close");
    assert_eq!(world.record().text("session_id"), session);
}

/// A file that a hook left, with its bytes.
type Left<'a> = (&'a Path, &'a [u8]);

/// Puts the state folder of a session back to each step at which a hook can have died while it ended it.
#[test]
fn an_end_that_stopped_after_any_of_its_steps_is_finished_once() {
    let world = World::new();
    let git = HangingGit::new(&world);
    let session = start(&world, "a");
    let open = world.logs("open").remove(0);
    let (mut command, payload) = end_hook(&world, "a");
    git.before(&mut command);
    let _ = feed(&mut command, &payload);
    let ended = world.logs("ended").remove(0);
    let log = fs::read(&ended).unwrap();
    let record = world.record();
    let path = world.path(&record.path);
    let text = fs::read(&path).unwrap();
    assert_eq!(record.text("session_id"), session);
    let half = path.with_file_name(format!(".{session}.half"));

    let steps: [(&str, &[Left<'_>]); 5] = [
        ("before the log was moved", &[(&open, &log)]),
        ("before git was asked", &[(&ended, &log)]),
        ("while the record was written", &[(&ended, &log), (&half, &text[..text.len() / 2])]),
        ("before the record got its name", &[(&ended, &log), (&half, &text)]),
        ("before the log was removed", &[(&ended, &log), (&path, &text)]),
    ];
    for (step, left) in steps {
        for again in [false, true] {
            fs::remove_file(&path).unwrap();
            for (file, bytes) in left {
                fs::write(file, bytes).unwrap();
            }
            if again {
                assert_eq!(end(&world, "a"), "no open episode for claude-code a; nothing to close", "{step}");
            }
            let found = world.record();
            assert_eq!((found.text("session_id"), &found.path), (session.as_str(), &record.path), "{step}");
            assert_eq!(fs::read(&path).unwrap().len(), text.len(), "{step}");
            assert!(world.logs("open").is_empty() && world.logs("bad").is_empty() && !half.exists(), "{step}");
        }
    }
}

#[test]
fn a_session_whose_end_never_comes_is_open_until_its_idle_time_and_then_interrupted() {
    let world = World::new();
    let session = start(&world, "a");
    world.hook("activity", &payload_of("Stop", "a"));
    let seen = now_ms();
    let listed = world.episodes();
    assert_eq!((&listed["open"], &listed["episodes"][0]["state"]), (&json!(1), &json!("open")), "{listed}");
    assert!(world.records().is_empty(), "an ordinary command waits for a day");
    let record = until("the idle time ends", || world.records_with(&["--idle-seconds", "1"]).pop());
    assert_eq!((record.text("session_id"), record.end()), (session.as_str(), ("interrupted", "expired", "reaper")));
    assert_eq!(record["closed_at"], record["last_activity_at"]);
    assert!(record.time("started_at") <= record.time("closed_at") && record.time("closed_at") <= seen);

    let line = world.hook("start", &payload_of("SessionStart.resume", "a"));
    assert!(line.contains(" opened at "), "a later event opens a new session: {line}");
    end(&world, "a");
    let records = world.records();
    let later = records.iter().find(|record| record["session_id"] != json!(session)).unwrap();
    assert_eq!((records.len(), &later["resumes"]), (2, &json!(session)));
}

#[test]
fn an_event_that_finds_its_session_past_its_time_names_it_in_resumes() {
    let world = World::new();
    let first = start(&world, "a");
    world.hook("activity", &payload_of("Stop", "a"));
    until("two seconds pass", || {
        (world.episodes()["episodes"][0]["last_activity_seconds_ago"].as_u64() >= Some(2)).then_some(())
    });
    let mut late = world.capture("claude-code", "start");
    late.env("MAJORDOMUS_IDLE_SECONDS", "1");
    let said = feed(&mut late, payload_of("SessionStart.resume", "a").to_string().as_bytes());
    assert!(said.hook().contains(" opened at "), "{said:?}");
    end(&world, "a");
    let records = world.records();
    let ends: Vec<_> = records.iter().map(|record| (record["resumes"].clone(), record.text("outcome"))).collect();
    assert_eq!(ends, [(Value::Null, "interrupted"), (json!(first), "closed")]);
}

#[test]
fn an_end_that_comes_twice_is_one_record_and_the_second_is_no_failure() {
    let world = World::new();
    start(&world, "a");
    let line = end(&world, "a");
    let bytes = fs::read(world.path(line.rsplit(' ').next().unwrap())).unwrap();
    assert_eq!(end(&world, "a"), "no open episode for claude-code a; nothing to close");
    assert_eq!(fs::read(world.path(&world.record().path)).unwrap(), bytes, "a record is never written again");
}

#[test]
fn ends_that_come_at_once_are_one_record() {
    let world = World::new();
    for round in 0..10 {
        let id = format!("id-{round}");
        start(&world, &id);
        let said = run_at_once((0..4).map(|_| end_hook(&world, &id)).collect());
        let closed =
            said.iter().filter(|said| said.hook().starts_with("episode closed (closed, reason clear)")).count();
        let nothing = said.iter().filter(|said| said.line().ends_with("; nothing to close")).count();
        assert_eq!((closed, nothing), (1, 3), "{said:#?}");
    }
    assert_eq!(world.records().len(), 10);
}

#[test]
fn a_second_start_that_a_resume_brings_along_leaves_no_record_of_its_own() {
    let world = World::new();
    let resumed = start(&world, "a");
    let other = payload_of("SessionStart.startup", "b").to_string().into_bytes();
    let resume = payload_of("SessionStart.resume", "a").to_string().into_bytes();
    let hook = || world.capture("claude-code", "start");
    let said = run_at_once(vec![(hook(), resume), (hook(), other)]);
    assert!(said[0].hook().contains(&format!("{resumed} kept")), "{said:?}");
    assert!(said[1].hook().contains(" opened at "), "{said:?}");
    end(&world, "a");
    until("the empty one expires", || {
        let records = world.records_with(&["--idle-seconds", "1"]);
        let ids: Vec<&str> = records.iter().map(|record| record.text("external_id")).collect();
        assert_eq!(ids, ["a"]);
        world.logs("open").is_empty().then_some(())
    });
    assert_eq!(world.record()["attachments"], 2);
}

#[test]
fn a_compaction_or_an_activity_before_its_start_begins_the_session() {
    let world = World::new();
    for (event, name) in [("compact", "PreCompact.auto"), ("activity", "PreToolUse")] {
        let line = world.hook(event, &payload_of(name, event));
        assert!(line.contains(" opened at "), "{line}");
        let session = line.split(' ').nth(1).unwrap();
        let line = world.hook("start", &payload_of("SessionStart.startup", event));
        assert!(line.starts_with(&format!("session {session} kept, open since ")), "{line}");
        end(&world, event);
    }
    assert_eq!(world.records().len(), 2);
}

#[test]
fn an_end_before_its_start_ends_nothing_and_the_start_still_counts() {
    let world = World::new();
    let before = files(&world.folder(), &[]);
    assert_eq!(end(&world, "a"), "no open episode for claude-code a; nothing to close");
    assert!(world.records().is_empty() && world.logs("open").is_empty());
    // That the hook was seen to fire may be noted; that is all.
    let after = files(&world.folder(), &[]);
    let new: Vec<_> = after.keys().filter(|path| !before.contains_key(*path)).collect();
    assert!(new.iter().all(|path| path.starts_with("work/.git/majordomus")), "{new:?}");
    start(&world, "a");
    assert_eq!(world.logs("open").len(), 1);
    end(&world, "a");
    assert_eq!(world.records().len(), 1);
}

#[test]
fn a_start_after_the_end_is_a_new_session_of_the_same_key() {
    let world = World::new();
    let first = start(&world, "a");
    end(&world, "a");
    let second = start(&world, "a");
    assert_ne!(first, second);
    let clear = provider_payload("SessionEnd.other", &json!({ "session_id": "a" }));
    world.hook("end", &clear);
    let records = world.records();
    let mut ids: Vec<_> = records.iter().map(|record| record.text("session_id")).collect();
    let mut expected = [first.as_str(), second.as_str()];
    ids.sort_unstable();
    expected.sort_unstable();
    assert_eq!(ids, expected);
    assert!(records.iter().all(|record| record["external_id"] == "a"));
}
