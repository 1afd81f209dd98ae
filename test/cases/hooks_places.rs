//! Where a hook runs and what it is told of that: the checkout, and nothing but the checkout.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use majordomus_e2e::{Running, Said, World, feed, files, majordomus, payload_of, provider_payload};
use serde_json::json;

/// Runs a hook in `folder` with a payload that names `cwd`.
fn hook_at(world: &World, folder: &Path, event: &str, name: &str, cwd: &str) -> Said {
    let payload = provider_payload(name, &json!({ "session_id": "a", "cwd": cwd }));
    feed(world.capture("claude-code", event).current_dir(folder), payload.to_string().as_bytes())
}

fn text(path: &Path) -> &str {
    path.to_str().expect("paths of tests are UTF-8")
}

#[test]
fn a_session_in_a_subfolder_is_recorded_at_the_root() {
    let world = World::new();
    let deep = world.path("a/b");
    fs::create_dir_all(&deep).unwrap();
    let elsewhere = world.folder().join("home");
    for (event, name) in [("start", "SessionStart.startup"), ("end", "SessionEnd.clear")] {
        let said = hook_at(&world, &elsewhere, event, name, text(&deep));
        assert!(!said.hook().starts_with("no "), "{said:?}");
    }
    assert!(world.record().path.starts_with(".ai/repo/sessions/"));
    assert!(!deep.join(".ai").exists() && !elsewhere.join(".ai").exists());

    let said = hook_at(&world, &deep, "start", "SessionStart.startup", text(&deep));
    assert!(said.hook().contains(" opened at "), "{said:?}");
    let listed =
        Running::start_with(world.majordomus(&["sessions", "list", "--json"]).current_dir(&deep)).wait().json();
    assert_eq!(listed["sessions"].as_array().map(Vec::len), Some(1), "{listed}");
}

#[test]
fn a_folder_that_is_no_checkout_gives_way_to_the_project_variable_and_then_to_where_the_hook_runs() {
    let world = World::new();
    let gone = world.path("gone");
    let home = world.folder().join("home");
    for cwd in [text(&gone), "/", "a/b", ".", "", "../work"] {
        let payload =
            provider_payload("SessionStart.startup", &json!({ "session_id": cwd.len().to_string() + "v", "cwd": cwd }));
        let mut hook = world.capture("claude-code", "start");
        hook.current_dir(&home).env("CLAUDE_PROJECT_DIR", world.repository());
        assert!(feed(&mut hook, payload.to_string().as_bytes()).hook().starts_with("session s-"), "by variable: {cwd}");

        let payload =
            provider_payload("SessionStart.startup", &json!({ "session_id": cwd.len().to_string() + "h", "cwd": cwd }));
        let mut hook = world.capture("claude-code", "start");
        hook.env("CLAUDE_PROJECT_DIR", &home);
        assert!(feed(&mut hook, payload.to_string().as_bytes()).hook().starts_with("session s-"), "by place: {cwd}");
    }
    assert!(!world.logs("open").is_empty());
    assert!(files(&home, &[]).is_empty(), "nothing is written where it was sent");
}

#[test]
fn a_relative_folder_is_not_taken_from_where_the_hook_runs() {
    let (world, other) = (World::new(), World::new());
    let relative = format!("../{}/work", other.folder().file_name().and_then(|name| name.to_str()).unwrap());
    assert!(world.folder().join(&relative).is_dir());
    let said = hook_at(&world, &world.folder(), "start", "SessionStart.startup", &relative);
    assert!(said.hook().contains("is not in a git repository"), "{said:?}");
    assert!(!other.state().exists());
}

#[test]
fn a_hook_whose_own_folder_is_gone_says_so_or_goes_by_the_payload() {
    let world = World::new();
    let script =
        "mkdir gone && cd gone && rmdir ../gone && exec \"$0\" capture session --provider claude-code --event start";
    let run = |cwd: &str| {
        let payload = provider_payload("SessionStart.startup", &json!({ "session_id": "a", "cwd": cwd })).to_string();
        let mut shell = world.program("sh");
        shell.args(["-c", script]).arg(majordomus()).current_dir(world.folder().join("tmp"));
        feed(&mut shell, payload.as_bytes())
    };
    assert!(run("/nowhere").hook().starts_with("no episode was recorded: "));
    let said = run(text(world.repository()));
    assert!(said.hook().contains(" opened at "), "{said:?}");
}

#[test]
fn outside_git_a_hook_says_so_and_writes_nothing_anywhere() {
    let world = World::plain();
    for (event, name) in [("start", "SessionStart.startup"), ("activity", "Stop"), ("end", "SessionEnd.clear")] {
        let line = world.hook(event, &payload_of(name, "a"));
        assert!(line.starts_with("no episode was recorded: ") && line.contains("is not in a git repository"), "{line}");
    }
    assert!(files(&world.folder(), &[]).values().all(Vec::is_empty));
    assert!(files(world.repository(), &[]).is_empty());
}

#[test]
fn git_variables_of_the_caller_do_not_lead_to_another_repository() {
    let (world, other) = (World::new(), World::new());
    other.commit("theirs.txt", "Theirs");
    let before = files(&other.folder(), &[]);
    let hook = |event, name| {
        let mut hook = world.capture("claude-code", event);
        let git = other.path(".git");
        hook.env("GIT_DIR", &git).env("GIT_COMMON_DIR", &git).env("GIT_WORK_TREE", other.repository());
        hook.env("GIT_INDEX_FILE", git.join("index")).env("GIT_OBJECT_DIRECTORY", git.join("objects"));
        hook.env("GIT_NAMESPACE", "theirs").env("GIT_CEILING_DIRECTORIES", world.folder()).env("GIT_PREFIX", "x/");
        feed(&mut hook, payload_of(name, "a").to_string().as_bytes()).hook().to_owned()
    };
    let line = hook("start", "SessionStart.startup");
    assert!(line.contains(" opened at "), "{line}");
    let commit = world.commit("ours.txt", "Ours");
    let line = hook("end", "SessionEnd.clear");
    assert!(line.starts_with("episode closed (closed, reason clear) into "), "{line}");
    assert!(world.path(line.rsplit(' ').next().unwrap()).is_file(), "{line}");
    let record = world.record();
    assert_eq!((record.subjects(), record.text("head")), (vec!["Ours"], commit.as_str()));
    assert_eq!(record["changed_files"], json!(["ours.txt"]));
    assert_eq!(files(&other.folder(), &[]), before);
}

#[test]
fn a_detached_head_is_recorded_without_a_branch_and_with_its_commits() {
    let world = World::new();
    world.git(&["checkout", "--quiet", "--detach"]);
    let start = world.git(&["rev-parse", "HEAD"]);
    world.hook("start", &payload_of("SessionStart.startup", "a"));
    let commit = world.commit("a.txt", "On no branch");
    world.hook("end", &payload_of("SessionEnd.clear", "a"));
    let record = world.record();
    assert_eq!((&record["branch"], record.text("start_head"), record.text("head")), (&json!(null), &*start, &*commit));
    assert_eq!(record.subjects(), ["On no branch"]);
    assert!(record.path.ends_with("--detached.md") && record.body.contains("a detached HEAD"), "{}", record.path);
}

#[test]
fn a_session_that_makes_the_first_commit_lists_it() {
    let world = World::unborn();
    world.hook("start", &payload_of("SessionStart.startup", "none"));
    world.hook("end", &payload_of("SessionEnd.clear", "none"));
    let record = world.record();
    let nothing = json!(null);
    assert_eq!((&record["start_head"], &record["head"], &record["head_tree"]), (&nothing, &nothing, &nothing));
    assert_eq!((&record["commits"], &record["repository_roots"]), (&json!([]), &json!([])));
    assert_eq!(record.text("branch"), "main");

    world.hook("start", &payload_of("SessionStart.startup", "first"));
    let root = world.commit("a.txt", "The first one");
    world.hook("end", &payload_of("SessionEnd.clear", "first"));
    let records = world.records();
    let record = records.iter().find(|record| record["external_id"] == "first").unwrap();
    assert_eq!((record.subjects(), &record["repository_roots"]), (vec!["The first one"], &json!([root])));
    assert_eq!((&record["start_head"], record.text("head")), (&nothing, &*root));
}

#[test]
fn a_rebase_in_progress_keeps_no_session_from_being_recorded() {
    let world = World::new();
    world.commit("a.txt", "One");
    world.git(&["checkout", "--quiet", "-b", "topic", "HEAD~1"]);
    world.commit("a.txt", "Another");
    world.hook("start", &payload_of("SessionStart.startup", "a"));
    let rebase = world.program("git").args(["rebase", "main"]).output().unwrap();
    assert!(!rebase.status.success() && world.path(".git/rebase-merge").is_dir(), "{rebase:?}");
    world.hook("end", &payload_of("SessionEnd.clear", "a"));
    let record = world.record();
    assert_eq!((&record["branch"], &record["commits"]), (&json!(null), &json!([])));
    assert_eq!(record.text("head"), world.git(&["rev-parse", "main"]));
}

#[test]
fn a_checkout_that_is_reached_through_a_link_is_the_same_one() {
    let world = World::new();
    let link = world.folder().join("link");
    symlink(world.repository(), &link).unwrap();
    let first = hook_at(&world, &link, "start", "SessionStart.startup", text(&link));
    let again = hook_at(&world, world.repository(), "start", "SessionStart.resume", text(world.repository()));
    let session = first.hook().split(' ').nth(1).unwrap();
    assert!(again.hook().starts_with(&format!("session {session} kept")), "{again:?}");
    assert!(hook_at(&world, &link, "end", "SessionEnd.clear", text(&link)).hook().starts_with("episode closed"));
    assert_eq!((world.record().text("session_id"), &world.record()["worktree"]), (session, &json!("main")));
    let listed = files(&world.folder(), &["work"]);
    assert!(listed.keys().all(|path| !path.to_string_lossy().contains(".ai")), "{listed:?}");
}

#[test]
fn a_records_folder_that_leads_out_of_the_repository_is_refused_and_nothing_is_written_there() {
    for below in [".ai", ".ai/repo", ".ai/repo/sessions"] {
        let world = World::new();
        let outside = world.folder().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::create_dir_all(world.path(below).parent().unwrap()).unwrap();
        symlink(&outside, world.path(below)).unwrap();
        world.hook("start", &payload_of("SessionStart.startup", "a"));
        let line = world.hook("end", &payload_of("SessionEnd.clear", "a"));
        assert!(line.starts_with("episode closed"), "the end is durable all the same: {line}");
        let said = world.run(&["sessions", "list"]);
        assert_eq!(said.code, Some(1), "what lies there is not read either: {said:?}");
        assert!(said.err.contains("leads out of the repository\nhint: "), "{below}: {said:?}");
        assert!(files(&outside, &[]).is_empty(), "{below}");

        fs::remove_file(world.path(below)).unwrap();
        assert_eq!(world.records().len(), 1, "{below}: once the link is gone it is written");
    }
}

#[test]
fn a_link_that_stays_inside_the_repository_is_followed() {
    let world = World::new();
    fs::create_dir(world.path("kept")).unwrap();
    symlink("kept", world.path(".ai")).unwrap();
    world.hook("start", &payload_of("SessionStart.startup", "a"));
    world.hook("end", &payload_of("SessionEnd.clear", "a"));
    assert_eq!(world.record().end().0, "closed");
    assert!(world.path("kept/repo/sessions").is_dir());
}
