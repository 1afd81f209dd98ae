//! A disk that refuses: the agent is not harmed, and what could not be written is written later, once.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use majordomus_e2e::{Said, World, feed, majordomus, payload_of};

/// A hook in a shell that first runs `before`.
fn hook_after(world: &World, before: &str, event: &str, name: &str) -> Said {
    let mut shell = world.program("sh");
    let script = format!("{before}; exec \"$0\" capture session --provider claude-code --event {event}");
    shell.arg("-c").arg(script).arg(majordomus());
    feed(&mut shell, payload_of(name, "a").to_string().as_bytes())
}

/// Whether this user may do everything on a disk.
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[test]
fn where_no_byte_may_be_written_a_hook_exits_0_and_the_next_one_is_recorded() {
    let world = World::new();
    let said = hook_after(&world, "ulimit -f 0", "start", "SessionStart.startup");
    assert!(said.hook().starts_with("no episode was recorded: "), "{said:?}");
    assert_eq!(world.episodes()["open"], 0);
    assert!(world.hook("start", &payload_of("SessionStart.startup", "a")).contains(" opened at "));
    for (event, name) in [("compact", "PreCompact.auto"), ("activity", "Stop"), ("end", "SessionEnd.clear")] {
        let said = hook_after(&world, "ulimit -f 0", event, name);
        assert!(said.hook().starts_with("no episode was recorded: "), "{said:?}");
    }
    assert!(world.records().is_empty() && world.logs("open").len() == 1, "what was not made durable did not happen");
    assert!(world.hook("end", &payload_of("SessionEnd.clear", "a")).starts_with("episode closed (closed"));
    assert_eq!(world.record()["compactions"], 0);
}

#[test]
fn where_no_byte_may_be_written_a_server_answers_and_says_that_nothing_is_recorded() {
    let world = World::new();
    let mut shell = world.program("sh");
    shell.args(["-c", "ulimit -f 0; exec \"$0\" mcp"]).arg(majordomus());
    let mut client = majordomus_e2e::Client::start(&mut shell);
    client.initialize();
    let attached = client.attach("my-thread");
    assert_eq!(attached["recorded"], false, "{attached}");
    assert!(majordomus_e2e::reported(&attached).starts_with("no episode was recorded: "), "{attached}");
    client.ping();
    assert_eq!(client.lose().code, Some(0));
    assert_eq!(world.episodes()["detached"], 0);
    assert!(world.records().is_empty());
}

#[test]
fn a_file_where_the_records_belong_makes_the_record_wait_and_harms_nobody() {
    for file in [".ai", ".ai/repo", ".ai/repo/sessions"] {
        let world = World::new();
        fs::create_dir_all(world.path(file).parent().unwrap()).unwrap();
        world.write(file, "mine");
        world.hook("start", &payload_of("SessionStart.startup", "a"));
        let line = world.hook("end", &payload_of("SessionEnd.clear", "a"));
        assert!(line.starts_with("episode closed (closed, reason clear) into "), "{line}");
        // More often than a record is tried before its log is put away: a folder that refuses is no fault of the log.
        for _ in 0..5 {
            assert_eq!(world.run(&["sessions", "list"]).code, Some(0));
        }
        assert_eq!((world.logs("ended").len(), world.logs("bad").len()), (1, 0), "{file}");
        assert_eq!(fs::read(world.path(file)).unwrap(), b"mine");
        fs::remove_file(world.path(file)).unwrap();
        assert_eq!(world.record().path, line.rsplit(' ').next().unwrap(), "{file}");
    }
}

#[test]
fn a_file_where_the_state_belongs_sends_the_state_to_the_users_folder() {
    let world = World::new();
    world.write(".git/majordomus", "mine");
    assert!(world.hook("start", &payload_of("SessionStart.startup", "a")).contains(" opened at "));
    assert!(world.hook("activity", &payload_of("Stop", "a")).ends_with(" marked (activity)"));
    assert_eq!(world.episodes()["open"], 1);
    assert!(world.hook("end", &payload_of("SessionEnd.clear", "a")).starts_with("episode closed (closed"));
    assert_eq!(world.record().end(), ("closed", "clear", "hook"));
    assert_eq!(fs::read(world.path(".git/majordomus")).unwrap(), b"mine");
    assert!(fs::read_dir(world.folder().join("state/majordomus")).unwrap().next().is_some());
}

#[test]
fn where_neither_place_takes_the_state_a_hook_says_so_in_one_line() {
    let world = World::new();
    world.write(".git/majordomus", "mine");
    fs::write(world.folder().join("state/majordomus"), "mine").unwrap();
    for (event, name) in [("start", "SessionStart.startup"), ("activity", "Stop"), ("end", "SessionEnd.clear")] {
        let line = world.hook(event, &payload_of(name, "a"));
        assert!(line.starts_with("no episode was recorded: ") || line.starts_with("no open episode"), "{line}");
    }
    fs::remove_file(world.path(".git/majordomus")).unwrap();
    assert!(world.hook("start", &payload_of("SessionStart.startup", "a")).contains(" opened at "));
}

#[test]
fn a_worktree_that_may_not_be_written_makes_the_record_wait() {
    // Nobody keeps root from writing; the tests above do.
    if is_root() {
        return;
    }
    let world = World::new();
    world.hook("start", &payload_of("SessionStart.startup", "a"));
    let mode = |mode| fs::set_permissions(world.repository(), fs::Permissions::from_mode(mode)).unwrap();
    mode(0o555);
    let line = world.hook("end", &payload_of("SessionEnd.clear", "a"));
    assert!(line.starts_with("episode closed (closed"), "{line}");
    assert_eq!(world.run(&["sessions", "list"]).code, Some(0));
    assert_eq!(world.logs("ended").len(), 1);
    mode(0o755);
    assert_eq!(world.record().end().0, "closed");
}

#[test]
fn a_full_disk_costs_no_session_and_leaves_no_half_record() {
    // A disk of 256 KiB in a mount namespace of its own; where there are none, the limits above have to do.
    let inside = |script: &str| {
        let mut unshare = Command::new("unshare");
        unshare.args(["--map-root-user", "--mount", "sh", "-c", script]);
        unshare
    };
    let world = World::new();
    let disk = world.folder().join("disk");
    fs::create_dir(&disk).unwrap();
    let mount = "mount -t tmpfs -o size=256k none \"$DISK\"";
    let can = inside(mount).env("DISK", &disk).output().is_ok_and(|output| output.status.success());
    if !can {
        return;
    }
    let script = format!(
        "set -e; {mount}; cd \"$DISK\"; git init --quiet --template= --initial-branch=main .
        hook() {{ printf '{{\"session_id\": \"%s\"}}' \"$2\" | \"$BIN\" capture session --provider claude-code --event \"$1\"; }}
        hook start a; hook start b; hook compact a
        cat /dev/zero >fill 2>/dev/null || true
        hook compact a; hook end a; hook start c; hook activity b; hook end b
        rm fill
        hook end a; hook end b; hook start c; hook end c
        \"$BIN\" sessions list --json; find . -name '*.half'; ls .git/majordomus/main/open .git/majordomus/main/ended"
    );
    let environment = world.majordomus(&[]);
    let mut shell = inside(&script);
    shell.env_clear().env("DISK", &disk).env("BIN", majordomus());
    for (name, value) in environment.get_envs() {
        // The user's own state folder would take what the repository cannot.
        if let Some(value) = value.filter(|_| name != "XDG_STATE_HOME" && name != "HOME") {
            shell.env(name, value);
        }
    }
    let output = shell.output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}{err}");
    let (json, left) = out.split_at(out.rfind('}').map_or(0, |end| end + 1));
    let listed: serde_json::Value = serde_json::from_str(json).unwrap();
    let mut ids: Vec<&str> =
        listed["sessions"].as_array().unwrap().iter().filter_map(|session| session["external_id"].as_str()).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["a", "b", "c"], "{out}{err}");
    assert!(!left.contains(".half") && !left.contains(".jsonl"), "{left}{err}");
    assert_eq!(err.lines().count(), 12, "one line for each hook: {err}");
}
