//! Agents that move about: into other repositories, fixtures, git's own folders and worktrees that vanish, and hooks that
//! come late or together.

use std::fs;
use std::path::{Path, PathBuf};

use majordomus_e2e::{Running, World, feed, files, payload_of, provider_payload, record_files, run_at_once};
use serde_json::json;

fn text(path: &Path) -> &str {
    path.to_str().expect("paths of tests are UTF-8")
}

/// Runs a hook as Claude Code does: in the folder where the agent is, with the project's folder in a variable.
fn hook(world: &World, project: &Path, at: &Path, event: &str, name: &str) -> String {
    let payload = provider_payload(name, &json!({ "session_id": "a", "cwd": text(at) }));
    let mut hook = world.capture("claude-code", event);
    hook.current_dir(at).env("CLAUDE_PROJECT_DIR", project);
    feed(&mut hook, payload.to_string().as_bytes()).hook().to_owned()
}

#[test]
fn an_agent_that_goes_into_another_repository_stays_in_the_session_of_its_own() {
    let (a, b) = (World::new(), World::new());
    let line = hook(&a, a.repository(), a.repository(), "start", "SessionStart.startup");
    let session = line.split(' ').nth(1).unwrap().to_owned();
    for (event, name) in [("activity", "Stop"), ("compact", "PreCompact.auto")] {
        let line = hook(&a, a.repository(), b.repository(), event, name);
        assert_eq!(line, format!("session {session} marked ({event})"));
    }
    let line = hook(&a, a.repository(), b.repository(), "end", "SessionEnd.clear");
    assert!(line.starts_with("episode closed (closed, reason clear)"), "{line}");
    let record = a.record();
    assert_eq!((record.text("session_id"), &record["compactions"]), (session.as_str(), &json!(1)));
    assert!(!b.path(".git/majordomus").exists() && !b.path(".ai").exists());
}

#[test]
fn a_hook_that_comes_late_from_another_repository_opens_no_session_there() {
    let (a, b) = (World::new(), World::new());
    hook(&a, a.repository(), a.repository(), "start", "SessionStart.startup");
    hook(&a, a.repository(), b.repository(), "end", "SessionEnd.clear");
    let line = hook(&a, a.repository(), b.repository(), "activity", "Stop");
    assert!(line.contains(" has just ended"), "{line}");
    assert!(!b.path(".git/majordomus").exists(), "{line}");
    assert_eq!(a.record().end(), ("closed", "clear", "hook"));
}

#[test]
fn a_stop_that_comes_after_the_end_opens_no_second_session_and_a_start_does() {
    let world = World::new();
    let opened = world.hook("start", &payload_of("SessionStart.startup", "a"));
    let session = opened.split(' ').nth(1).unwrap();
    world.hook("end", &payload_of("SessionEnd.clear", "a"));
    for (event, name) in [("activity", "Stop"), ("compact", "PreCompact.auto"), ("activity", "StopFailure")] {
        let line = world.hook(event, &payload_of(name, "a"));
        assert!(line.starts_with("no episode was recorded: ") && line.contains(" has just ended"), "{line}");
        assert!(line.contains(session), "{line}");
    }
    assert!(world.logs("open").is_empty());
    assert_eq!(world.records().len(), 1);

    let line = world.hook("start", &payload_of("SessionStart.resume", "a"));
    assert!(line.contains(" opened at ") && !line.contains(session), "{line}");
    assert!(world.hook("activity", &payload_of("Stop", "a")).ends_with(" marked (activity)"));
    world.hook("end", &payload_of("SessionEnd.clear", "a"));
    let records = world.records();
    assert_eq!(records.len(), 2);
    let later = records.iter().find(|record| record["session_id"] != session).unwrap();
    assert_eq!(later["resumes"], session);
}

/// The least that git itself takes for a bare repository.
fn like_a_repository(folder: &Path) {
    for below in ["objects/pack", "objects/info", "refs/heads", "refs/tags"] {
        fs::create_dir_all(folder.join(below)).expect("a folder can be made");
    }
    let write = |name: &str, text: &str| fs::write(folder.join(name), text).expect("a file can be written");
    write("HEAD", "ref: refs/heads/main\n");
    write("config", "[core]\n\trepositoryformatversion = 0\n\tbare = true\n");
}

#[test]
fn a_folder_that_looks_like_a_bare_repository_is_a_part_of_the_checkout_it_lies_in() {
    let world = World::new();
    let fixture = world.path("fixtures/bare");
    like_a_repository(&fixture);
    let before = files(&fixture, &[]);
    for at in [fixture.clone(), fixture.join("refs/heads")] {
        hook(&world, &at, &at, "start", "SessionStart.startup");
        assert_eq!(world.logs("open").len(), 1, "{}", at.display());
        let line = hook(&world, &at, &at, "end", "SessionEnd.clear");
        assert!(line.starts_with("episode closed (closed"), "{line}");
        assert_eq!(files(&fixture, &[]), before, "{}", at.display());
    }
    let records = world.records();
    assert_eq!(records.len(), 2);
    assert!(records.iter().all(|record| record["worktree"] == "main" && record["branch"] == "main"), "{records:#?}");
}

#[test]
fn a_hook_inside_dot_git_belongs_to_that_checkout() {
    let world = World::new();
    let linked = world.folder().join("linked");
    world.git(&["worktree", "add", "--quiet", "-b", "topic", text(&linked)]);
    for at in [world.path(".git"), world.path(".git/objects"), world.path(".git/hooks")] {
        fs::create_dir_all(&at).unwrap();
        hook(&world, &at, &at, "start", "SessionStart.startup");
        let line = hook(&world, &at, &at, "end", "SessionEnd.clear");
        assert!(line.starts_with("episode closed (closed"), "{}: {line}", at.display());
        assert!(!at.join(".ai").exists() && !at.join("majordomus/.ai").exists(), "{}", at.display());
    }
    let records = world.records();
    assert_eq!(records.len(), 3);
    assert!(records.iter().all(|record| record["worktree"] == "main"), "{records:#?}");
    assert!(record_files(&linked).is_empty());
}

fn run_in(world: &World, folder: &Path, arguments: &[&str]) -> majordomus_e2e::Said {
    Running::start_with(world.majordomus(arguments).current_dir(folder)).wait()
}

#[test]
fn a_session_of_a_vanished_worktree_of_a_bare_repository_called_dot_git_waits_and_is_listed() {
    let world = World::new();
    let x = world.folder().join("x");
    let (bare, topic, other): (PathBuf, PathBuf, PathBuf) =
        (x.join(".git"), world.folder().join("topic"), world.folder().join("other"));
    world.git(&["clone", "--quiet", "--bare", ".", text(&bare)]);
    for (branch, checkout) in [("topic", &topic), ("other", &other)] {
        world.git_in(&bare, &["worktree", "add", "--quiet", "-b", branch, text(checkout)]);
    }
    hook(&world, &topic, &topic, "start", "SessionStart.startup");
    // A file where the records belong lets the session wait for its own.
    fs::write(topic.join(".ai"), "").unwrap();
    let line = hook(&world, &topic, &topic, "end", "SessionEnd.clear");
    assert!(line.starts_with("episode closed (closed"), "{line}");
    world.git_in(&bare, &["worktree", "remove", "--force", text(&topic)]);

    for folder in [&x, &bare, &other] {
        for _ in 0..4 {
            let said = run_in(&world, folder, &["sessions", "list"]);
            assert_eq!(said.code, Some(0), "{said:?}");
        }
        let said = run_in(&world, folder, &["doctor"]);
        assert!(said.out.contains("1 ended sessions wait for their records"), "{}: {said:?}", folder.display());
    }
    assert!(!x.join(".ai").exists() && !bare.join(".ai").exists() && record_files(&other).is_empty());
    let ended = bare.join("majordomus/topic/ended");
    let logs =
        fs::read_dir(ended).unwrap().flatten().filter(|entry| entry.path().extension().is_some_and(|e| e == "jsonl"));
    assert_eq!(logs.count(), 1, "it is kept");
}

#[test]
fn hooks_at_the_same_moment_leave_it_known_that_they_fire() {
    for _ in 0..5 {
        let world = World::new();
        let hooks = (0..16).map(|nr| {
            let payload = payload_of("SessionStart.startup", &format!("s{nr}"));
            (world.capture("claude-code", "start"), payload.to_string().into_bytes())
        });
        for said in run_at_once(hooks.collect()) {
            assert!(said.hook().contains(" opened at "), "{said:?}");
        }
        let rows = world.run(&["capture", "status", "--json"]).json();
        let row = rows.as_array().unwrap().iter().find(|row| row["name"] == "claude-code:session").unwrap();
        assert_eq!(row["state"], "unconfigured", "{row}");
        assert!(row["reason"].as_str().unwrap().starts_with("last seen firing at "), "{row}");
    }
}
