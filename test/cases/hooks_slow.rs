//! What does not answer, a git, a lock, a payload, costs a bounded time and no session.

use std::fs::File;
use std::io::Write;
use std::process::Command;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use majordomus_e2e::{Record, Running, Said, World, executable, feed, payload_of, until};
use rustix::fs::{FlockOperation, flock};
use serde_json::json;

/// What a busy machine may add to a bound.
const SLACK: Duration = Duration::from_secs(2);

/// A git that answers everything but `status`, for which it hangs.
const HANGS: &str = "#!/bin/sh
for argument; do case $argument in status) exec sleep 1000;; esac; done
PATH=${PATH#*:}; exec git \"$@\"
";

/// Puts the git that hangs first on a command's path.
fn hanging<'a>(world: &World, command: &'a mut Command) -> &'a mut Command {
    let tools = world.folder().join("tools");
    executable(&tools.join("git"), HANGS);
    command.env("PATH", format!("{}:{}", tools.display(), std::env::var("PATH").unwrap_or_default()))
}

fn timed(run: impl FnOnce() -> Said) -> (Said, Duration) {
    let began = Instant::now();
    let said = run();
    (said, began.elapsed())
}

#[test]
fn a_git_that_hangs_delays_a_list_by_its_bound_and_costs_a_record_only_what_git_did_not_say() {
    let world = World::new();
    let ids = ["a", "b", "c", "d", "e"];
    for id in ids {
        world.hook("start", &payload_of("SessionStart.startup", id));
    }
    let (head, tree) = (world.git(&["rev-parse", "HEAD"]), world.git(&["rev-parse", "HEAD^{tree}"]));
    world.write("a.txt", "Not committed");
    for id in ids {
        let mut hook = world.capture("claude-code", "end");
        let payload = payload_of("SessionEnd.clear", id).to_string();
        let (said, took) = timed(|| feed(hanging(&world, &mut hook), payload.as_bytes()));
        assert!(said.hook().starts_with("episode closed (closed"), "{said:?}");
        assert!(took < SLACK, "the end of {id} took {took:?}");
    }
    let list = || {
        let (said, took) = timed(|| {
            Running::start_with(hanging(&world, &mut world.majordomus(&["sessions", "list", "--json"]))).wait()
        });
        assert!(took < Duration::from_secs(2) + SLACK, "{took:?}");
        said
    };
    // The oldest is tried by each command; after a few it is given what is known.
    let mut tries = 0;
    let first = until("the first of them is published", || {
        tries += 1;
        assert!(tries <= 4, "it is tried for ever");
        list().json()["sessions"].as_array().and_then(|listed| listed.first().cloned())
    });
    assert!(tries >= 3, "the short tries of hooks count for nothing: {tries}");
    let record = Record::read(world.repository(), first["path"].as_str().unwrap());
    assert_eq!((record.text("head"), record.text("head_tree")), (&*head, &*tree));
    assert_eq!((&record["commits"], &record["repository_roots"]), (&json!([]), &json!([head])));
    assert_eq!(record["changed_files"], json!(null), "what git did not say is not nothing");
    assert!(record.body.contains("uncommitted_files: git did not answer in time"), "{}", record.body);
    assert_eq!(world.logs("bad").len(), 0);

    // With a git that answers all the others have everything.
    let records = world.records();
    assert_eq!(records.len(), ids.len());
    let whole = records.iter().filter(|record| record["changed_files"] == json!(["a.txt"])).count();
    assert_eq!(whole, ids.len() - 1, "{records:#?}");
}

#[test]
fn doctor_says_that_sessions_wait_for_a_composer_that_does_not_come_to_its_end() {
    let world = World::new();
    world.hook("start", &payload_of("SessionStart.startup", "a"));
    let mut hook = world.capture("claude-code", "end");
    let payload = payload_of("SessionEnd.clear", "a").to_string();
    assert!(feed(hanging(&world, &mut hook), payload.as_bytes()).hook().starts_with("episode closed"));
    let waiting = world.logs("ended");
    assert_eq!(waiting.len(), 1);
    // The composer's lock: whoever has it is at it, and doctor need not wait for the same git.
    let at_it = File::open(&waiting[0]).unwrap();
    flock(&at_it, FlockOperation::NonBlockingLockExclusive).unwrap();
    let said = world.run(&["doctor"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let session = waiting[0].file_stem().unwrap().to_str().unwrap();
    assert!(said.out.contains("wait for their records") && said.out.contains(session), "{said:?}");
    drop(at_it);
    assert_eq!(world.record().text("session_id"), session);
}

#[test]
fn a_log_that_somebody_else_has_locked_delays_an_end_for_a_moment_and_loses_nothing() {
    let world = World::new();
    world.hook("start", &payload_of("SessionStart.startup", "a"));
    let log = world.logs("open").remove(0);
    let locked = File::open(&log).unwrap();
    flock(&locked, FlockOperation::NonBlockingLockExclusive).unwrap();
    for (event, name) in [("activity", "Stop"), ("end", "SessionEnd.clear")] {
        let payload = payload_of(name, "a").to_string();
        let (said, took) = timed(|| feed(&mut world.capture("claude-code", event), payload.as_bytes()));
        assert!(!said.hook().starts_with("no "), "{said:?}");
        assert!(took < Duration::from_secs(1) + SLACK, "{event} took {took:?}");
    }
    let (said, took) = timed(|| world.run(&["sessions", "list"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(took < Duration::from_secs(2) + SLACK, "{took:?}");
    assert!(world.record_files().is_empty() && log.is_file(), "its owner still has it");
    drop(locked);
    let record = world.record();
    assert_eq!(record.end(), ("closed", "clear", "hook"));
    assert!(world.logs("open").is_empty());
}

#[test]
fn a_payload_that_trickles_for_ever_ends_the_hook_within_seconds() {
    let world = World::new();
    let mut hook = Running::start(&mut world.capture("claude-code", "start"));
    let mut input = hook.input.take().unwrap();
    let (stop, stopped) = channel::<()>();
    let writer = thread::spawn(move || {
        let _ = input.write_all(b"{\"session_id\": \"");
        // One byte every few milliseconds, until the test is over or nobody reads.
        while stopped.recv_timeout(Duration::from_millis(5)) == Err(RecvTimeoutError::Timeout) {
            if input.write_all(b"a").is_err() {
                break;
            }
        }
    });
    let ended = hook.ended_within(Duration::from_secs(4) + SLACK);
    drop(stop);
    assert!(ended, "it reads for as long as somebody writes");
    let said = hook.wait();
    assert!(said.hook().starts_with("no episode was recorded: the payload ends after "), "{said:?}");
    writer.join().unwrap();
    assert!(world.logs("open").is_empty());
}
