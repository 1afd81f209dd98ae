//! Serving changes the repository not at all: its index, its refs and what `git status` says.

use std::fs::{self, File};
use std::time::{Duration, SystemTime};

use majordomus_e2e::{Files, World, files};
use serde_json::json;

/// All that git has, except the state folder and what only says when git last fetched or packed.
fn of_git(world: &World) -> Files {
    files(&world.path(".git"), &["majordomus"])
}

/// A repository in which any `git status` that may take the index's lock would write the index anew: a file was
/// touched, a second one changed, a third one is staged and a fourth is untracked.
fn restless() -> World {
    let world = World::new();
    world.commit("touched.txt", "Touched");
    world.commit("changed.txt", "Changed");
    world.write("changed.txt", "other\n");
    world.write("staged.txt", "staged\n");
    world.git(&["add", "staged.txt"]);
    world.write("untracked.txt", "untracked\n");
    world.git(&["tag", "a-tag"]);
    let long_ago = SystemTime::now() - Duration::from_secs(90_000);
    let touched = File::options().write(true).open(world.path("touched.txt"));
    touched.and_then(|file| file.set_modified(long_ago)).expect("its time can be set");
    world
}

#[test]
fn a_restless_index_is_written_by_an_ordinary_git_status() {
    let world = restless();
    let before = fs::read(world.path(".git/index")).unwrap();
    // The same call as ours, with the locks that ours leaves out.
    assert!(world.program("git").args(["status", "--short"]).output().unwrap().status.success());
    assert_ne!(fs::read(world.path(".git/index")).unwrap(), before, "the tests below could not fail");
}

#[test]
fn a_session_that_only_looks_leaves_status_index_head_and_refs_as_they_were() {
    let world = restless();
    let (status, git, all) = (world.status(), of_git(&world), files(&world.folder(), &[]));
    let mut client = world.client();
    client.ask("tools/list", &json!({}));
    client.ping();
    client.done("majordomus_episodes", &json!({}));
    assert_eq!((world.status(), of_git(&world)), (status.clone(), git.clone()), "while it runs");
    assert_eq!(client.lose().code, Some(0));
    assert_eq!((world.status(), of_git(&world)), (status, git), "afterwards");
    assert_eq!(files(&world.folder(), &[]), all);
}

#[test]
fn an_attach_and_a_lost_connection_change_the_state_folder_and_nothing_else() {
    let world = restless();
    let (status, git) = (world.status(), of_git(&world));
    let work = files(world.repository(), &[".git"]);
    let mut client = world.client();
    client.attach("my-thread");
    client.ping();
    assert_eq!((world.status(), of_git(&world)), (status.clone(), git.clone()), "while it runs");
    assert_eq!(client.lose().code, Some(0));
    assert_eq!((world.status(), of_git(&world)), (status, git), "afterwards");
    assert_eq!(files(world.repository(), &[".git"]), work);
    assert_eq!(world.logs("open").len(), 1);
}

#[test]
fn a_whole_session_leaves_index_and_refs_alone_and_adds_one_file() {
    let world = restless();
    let (git, work) = (of_git(&world), files(world.repository(), &[".git", ".ai"]));
    let status: Vec<String> = world.status().lines().map(str::to_owned).collect();
    let mut client = world.client();
    client.attach("my-thread");
    client.detach();
    assert_eq!(client.lose().code, Some(0));
    let record = world.record();
    for command in
        [&["episodes"][..], &["capture", "status"], &["doctor"], &["sessions", "show", record.text("session_id")]]
    {
        assert_eq!(world.run(command).code, Some(0), "{command:?}");
    }
    assert_eq!(of_git(&world), git);
    assert_eq!(files(world.repository(), &[".git", ".ai"]), work);
    let now = world.status();
    let new: Vec<&str> = now.lines().filter(|line| !status.iter().any(|before| before == line)).collect();
    assert_eq!(new, [format!("? {}", record.path)]);
}

#[test]
fn hooks_leave_index_and_refs_alone() {
    let world = restless();
    let (status, git) = (world.status(), of_git(&world));
    let about = json!({ "session_id": "a", "hook_event_name": "SessionStart", "source": "startup" });
    world.hook("start", &about);
    assert_eq!((world.status(), of_git(&world)), (status, git.clone()));
    world.hook("end", &json!({ "session_id": "a", "hook_event_name": "SessionEnd", "reason": "clear" }));
    assert_eq!(world.records().len(), 1);
    assert_eq!(of_git(&world), git);
}
