//! Linked worktrees, submodules and bare repositories: state beside the common repository, records in the checkout.

use std::fs;
use std::path::{Path, PathBuf};

use majordomus_e2e::{Record, Running, World, feed, payload_of, record_files};
use serde_json::json;

/// Runs a hook in a checkout and returns its line.
fn hook_in(world: &World, checkout: &Path, event: &str, name: &str) -> String {
    let payload = payload_of(name, "a").to_string();
    feed(world.capture("claude-code", event).current_dir(checkout), payload.as_bytes()).hook().to_owned()
}

fn sweep_in(world: &World, checkout: &Path) {
    let said = Running::start_with(world.majordomus(&["sessions", "list"]).current_dir(checkout)).wait();
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.err.is_empty() || said.err.starts_with("note: "), "{said:?}");
}

fn logs_in(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter(|entry| entry.path().extension().is_some_and(|extension| extension == "jsonl")).count()
}

fn only_record(checkout: &Path) -> Record {
    let found = record_files(checkout);
    assert_eq!(found.len(), 1, "{found:?}");
    Record::read(checkout, found[0].to_str().expect("a record's path is ASCII"))
}

/// A repository with a linked worktree on the branch `topic`.
fn linked() -> (World, PathBuf) {
    let world = World::new();
    let checkout = world.folder().join("linked one");
    let path = checkout.to_str().expect("paths of tests are UTF-8").to_owned();
    world.git(&["worktree", "add", "--quiet", "-b", "topic", &path]);
    (world, checkout)
}

#[test]
fn a_linked_worktree_has_its_state_in_the_common_directory_and_its_record_in_itself() {
    let (world, checkout) = linked();
    hook_in(&world, &checkout, "start", "SessionStart.startup");
    let state = world.path(".git/majordomus/linked-one");
    assert_eq!((logs_in(&state.join("open")), world.logs("open").len()), (1, 0));
    let commit = world.commit_in(&checkout, "topic.txt", "On the topic");
    world.commit("main.txt", "Meanwhile in the main worktree");
    hook_in(&world, &checkout, "end", "SessionEnd.clear");
    sweep_in(&world, &checkout);
    let record = only_record(&checkout);
    assert_eq!(
        (record.text("worktree"), record.text("branch"), record.text("head")),
        ("linked-one", "topic", &*commit)
    );
    assert_eq!(record.subjects(), ["On the topic"]);
    assert!(record_files(world.repository()).is_empty());
    assert_eq!(world.git(&["status", "--porcelain"]), "");
}

#[test]
fn the_same_id_in_two_worktrees_is_two_sessions() {
    let (world, checkout) = linked();
    let here = hook_in(&world, world.repository(), "start", "SessionStart.startup");
    let there = hook_in(&world, &checkout, "start", "SessionStart.startup");
    assert!(here.contains(" opened at ") && there.contains(" opened at "), "{here} {there}");
    hook_in(&world, world.repository(), "end", "SessionEnd.clear");
    hook_in(&world, &checkout, "end", "SessionEnd.clear");
    assert_eq!(world.record()["worktree"], "main");
    sweep_in(&world, &checkout);
    assert_eq!(only_record(&checkout)["worktree"], "linked-one");
}

#[test]
fn a_worktree_that_is_called_main_does_not_share_the_main_ones_state() {
    let world = World::new();
    let checkout = world.folder().join("main");
    world.git(&["worktree", "add", "--quiet", "-b", "topic", checkout.to_str().expect("UTF-8")]);
    hook_in(&world, &checkout, "start", "SessionStart.startup");
    assert!(world.logs("open").is_empty());
    assert!(hook_in(&world, world.repository(), "start", "SessionStart.startup").contains(" opened at "));
    hook_in(&world, &checkout, "end", "SessionEnd.clear");
    sweep_in(&world, &checkout);
    assert_eq!(only_record(&checkout).text("branch"), "topic");
    assert_eq!(world.logs("open").len(), 1);
}

#[test]
fn a_session_of_a_worktree_that_was_removed_gets_its_record_in_the_main_one() {
    let (world, checkout) = linked();
    hook_in(&world, &checkout, "start", "SessionStart.startup");
    let commit = world.commit_in(&checkout, "topic.txt", "On the topic");
    hook_in(&world, &checkout, "activity", "Stop");
    world.git(&["worktree", "remove", "--force", checkout.to_str().expect("UTF-8")]);
    assert!(!checkout.exists());
    majordomus_e2e::until("its idle time ends", || {
        let records = world.records_with(&["--idle-seconds", "1"]);
        let record = records.first()?;
        assert_eq!(record.end(), ("interrupted", "expired", "reaper"));
        assert_eq!((record.text("worktree"), record.text("branch")), ("linked-one", "topic"));
        assert_eq!(record.text("head"), commit);
        Some(())
    });
    assert_eq!(record_files(world.repository()).len(), 1);
}

#[test]
fn an_ended_session_of_a_worktree_that_was_removed_before_its_record_was_written_gets_it_in_the_main_one() {
    let (world, checkout) = linked();
    hook_in(&world, &checkout, "start", "SessionStart.startup");
    // A file where the folder of records should be: the end is durable, the record has to wait.
    fs::write(checkout.join(".ai"), "").unwrap();
    hook_in(&world, &checkout, "end", "SessionEnd.clear");
    assert!(record_files(&checkout).is_empty());
    world.git(&["worktree", "remove", "--force", checkout.to_str().expect("UTF-8")]);
    let record = majordomus_e2e::until("the record is in the main worktree", || world.records().pop());
    assert_eq!((record.text("worktree"), record.end()), ("linked-one", ("closed", "clear", "hook")));
}

#[test]
fn a_submodule_is_a_checkout_of_its_own() {
    let (world, library) = (World::new(), World::new());
    let url = library.repository().to_str().expect("UTF-8").to_owned();
    world.git(&["submodule", "--quiet", "add", &url, "library"]);
    world.git(&["commit", "--quiet", "--message", "Add the library"]);
    let checkout = world.path("library");
    hook_in(&world, &checkout, "start", "SessionStart.startup");
    assert_eq!(logs_in(&world.path(".git/modules/library/majordomus/main/open")), 1);
    let commit = world.commit_in(&checkout, "inside.txt", "Inside");
    hook_in(&world, &checkout, "end", "SessionEnd.clear");
    sweep_in(&world, &checkout);
    let record = only_record(&checkout);
    assert_eq!((record.subjects(), record.text("head")), (vec!["Inside"], &*commit));
    assert!(record_files(world.repository()).is_empty() && !world.state().exists());
}

#[test]
fn a_worktree_of_a_bare_repository_is_recorded_in_itself() {
    let world = World::new();
    let (bare, checkout) = (world.folder().join("bare.git"), world.folder().join("checkout"));
    let path = |path: &Path| path.to_str().expect("paths of tests are UTF-8").to_owned();
    world.git(&["clone", "--quiet", "--bare", ".", &path(&bare)]);
    world.git_in(&bare, &["worktree", "add", "--quiet", "-b", "topic", &path(&checkout)]);
    hook_in(&world, &checkout, "start", "SessionStart.startup");
    assert_eq!(logs_in(&bare.join("majordomus/checkout/open")), 1);
    world.commit_in(&checkout, "topic.txt", "On the topic");
    hook_in(&world, &checkout, "end", "SessionEnd.clear");
    sweep_in(&world, &checkout);
    assert_eq!(only_record(&checkout).subjects(), ["On the topic"]);
}

#[test]
fn in_a_bare_repository_a_session_stays_in_the_state_and_no_hook_fails() {
    let world = World::new();
    let bare = world.folder().join("bare.git");
    world.git(&["clone", "--quiet", "--bare", ".", bare.to_str().expect("UTF-8")]);
    assert!(hook_in(&world, &bare, "start", "SessionStart.startup").contains(" opened at "));
    assert!(hook_in(&world, &bare, "end", "SessionEnd.clear").starts_with("episode closed (closed"));
    assert_eq!(logs_in(&bare.join("majordomus/main/ended")), 1);
    sweep_in(&world, &bare);
    assert_eq!(logs_in(&bare.join("majordomus/main/ended")), 1, "it is kept");
    let said = Running::start_with(world.majordomus(&["doctor"]).current_dir(&bare)).wait();
    assert!(said.out.contains("1 ended sessions wait for their records"), "and listed: {said:?}");
    assert!(!bare.join(".ai").exists());
}

#[test]
fn a_shallow_clone_knows_no_roots_rather_than_wrong_ones() {
    let world = World::new();
    world.commit("a.txt", "Second");
    let (url, clone) = (format!("file://{}", world.repository().display()), world.folder().join("shallow"));
    world.git(&["clone", "--quiet", "--depth", "1", &url, clone.to_str().expect("UTF-8")]);
    hook_in(&world, &clone, "start", "SessionStart.startup");
    hook_in(&world, &clone, "end", "SessionEnd.clear");
    sweep_in(&world, &clone);
    let record = only_record(&clone);
    assert_eq!((&record["repository_roots"], &record["commits"]), (&json!(null), &json!([])));
}
