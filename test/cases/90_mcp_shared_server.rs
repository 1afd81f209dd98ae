//! Serving changes the repository not at all: its index, its refs and what `git status` says.

use std::fs::{self, File};
use std::time::{Duration, SystemTime};

use majordomus_e2e::{Files, Request, Session, World, files, published};
use rustix::process::Signal;
use serde_json::json;

/// The state folder, in a world.
const STATE: &[&str] = &["work/.git/majordomus"];

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
    let (status, git, all) = (world.status(), of_git(&world), files(&world.folder(), STATE));
    let mut client = world.client();
    client.ask("tools/list", &json!({}));
    client.ping();
    client.done("majordomus_episodes", &json!({}));
    assert_eq!((world.status(), of_git(&world)), (status.clone(), git.clone()), "while it runs");
    assert_eq!(client.lose().code, Some(0));
    assert_eq!((world.status(), of_git(&world)), (status, git), "afterwards");
    assert_eq!(files(&world.folder(), STATE), all);
    assert!(world.nothing_recorded());
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

#[test]
fn serving_over_http_changes_nothing_in_the_repository() {
    let world = restless();
    let (status, git) = (world.status(), of_git(&world));
    let work = files(world.repository(), &[".git"]);
    for signal in [Signal::TERM, Signal::HUP, Signal::INT] {
        let server = world.serve(&[]);
        let mut session = server.session();
        session.ask("tools/list", &json!({}));
        session.done("majordomus_announce", &json!({ "intent": "look around" }));
        for path in ["/", "/docs/", "/openapi.json", "/api/v1/episodes", "/api/v1/sessions", "/api/v1/server"] {
            assert_eq!(server.ask(&Request::get(path)).status, 200, "{path}");
        }
        assert_eq!((world.status(), of_git(&world)), (status.clone(), git.clone()), "while it runs");
        assert_eq!(session.delete().status, 204);
        assert_eq!(server.end(signal).code, Some(0), "{signal:?}");
        assert_eq!((world.status(), of_git(&world)), (status.clone(), git.clone()), "after {signal:?}");
    }
    assert_eq!(files(world.repository(), &[".git"]), work);
}

#[test]
fn an_attach_over_http_and_a_server_that_is_told_to_go_change_the_state_folder_and_nothing_else() {
    let world = restless();
    let (status, git) = (world.status(), of_git(&world));
    let work = files(world.repository(), &[".git"]);
    let server = world.serve(&[]);
    let (mut deleted, mut left) = (server.session(), server.session());
    deleted.attach("deleted");
    assert_eq!(deleted.delete().status, 204);
    left.attach("left");
    let attached = server.ask(&Request::post("/api/v1/episodes/attach", &json!({ "external_id": "by-handle" })));
    assert_eq!(attached.status, 200, "{attached:?}");
    assert_eq!((world.status(), of_git(&world)), (status.clone(), git.clone()), "while it runs");
    assert_eq!(server.end(Signal::TERM).code, Some(0));
    assert_eq!((world.status(), of_git(&world)), (status, git), "afterwards");
    assert_eq!(files(world.repository(), &[".git"]), work);
    assert_eq!(world.logs("open").len(), 3);
}

#[test]
fn serving_http_beside_stdio_changes_nothing_in_the_repository() {
    let world = restless();
    let (status, git) = (world.status(), of_git(&world));
    let work = files(world.repository(), &[".git"]);
    let mut client = world.server(&["mcp", "--http-port", "0"]);
    client.initialize();
    let mut session = Session::begin(published(&world), "2025-11-25");
    session.ping();
    client.ping();
    assert_eq!(session.done("majordomus_peers", &json!({}))["peers"].as_array().map(Vec::len), Some(2));
    assert_eq!((world.status(), of_git(&world)), (status.clone(), git.clone()), "while it runs");
    session.attach("my-thread");
    assert_eq!(client.lose().code, Some(0));
    assert_eq!((world.status(), of_git(&world)), (status, git), "afterwards");
    assert_eq!(files(world.repository(), &[".git"]), work);
    assert_eq!(world.episodes()["detached"], 1);
}
