//! A state folder that holds what it should not, or takes no bytes: one fault costs one session's place and no more.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use majordomus_e2e::{Running, Said, World, majordomus, named_pipe, payload_of};
use serde_json::json;

/// Far above what any of these commands takes; what reads a pipe that nobody writes waits for ever.
const AT_ONCE: Duration = Duration::from_secs(5);

/// Runs a command that may neither wait nor crash.
fn run(world: &World, arguments: &[&str]) -> Said {
    let mut process = Running::start_with(&mut world.majordomus(arguments));
    assert!(process.ended_within(AT_ONCE), "{arguments:?} waits");
    process.wait()
}

/// Runs a hook that may neither wait nor crash, and returns its line.
fn hook(world: &World, event: &str, name: &str, id: &str) -> String {
    let mut process = Running::start(&mut world.capture("claude-code", event));
    process.feed(payload_of(name, id).to_string().as_bytes());
    assert!(process.ended_within(AT_ONCE), "{event} of {id} waits");
    process.wait().hook().to_owned()
}

/// Makes something at a path.
type Make = fn(&Path);

/// What is no log, whatever it is called.
const FOREIGN: [(&str, Make); 3] = [
    ("a folder", |path| fs::create_dir(path).expect("a folder can be made")),
    ("a pipe", named_pipe),
    ("a link to itself", |path| symlink(path, path).expect("a link can be made")),
];

#[test]
fn ten_broken_logs_do_not_keep_the_eleventh_from_its_record_and_end_where_doctor_lists_them() {
    let world = World::new();
    world.hook("start", &payload_of("SessionStart.startup", "a"));
    // A file where the records belong lets the session wait.
    world.write(".ai", "");
    assert!(world.hook("end", &payload_of("SessionEnd.clear", "a")).starts_with("episode closed"));
    let ended = world.state().join("ended");
    let broken: Vec<String> = (0..10).map(|nr| format!("s-20200101000000-{nr:08x}.jsonl")).collect();
    for name in &broken {
        fs::write(ended.join(name), "").unwrap();
    }
    fs::remove_file(world.path(".ai")).unwrap();
    let said = run(&world, &["sessions", "list", "--json"]);
    let listed = said.json();
    assert_eq!(listed["sessions"][0]["external_id"], "a", "the first command already: {said:?}");
    assert_eq!(world.record()["external_id"], "a");

    let bad: Vec<PathBuf> = world.logs("bad");
    assert_eq!(bad.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect::<Vec<_>>(), broken);
    let said = run(&world, &["doctor"]);
    assert!(broken.iter().all(|name| said.out.contains(name.as_str())), "{said:?}");
    assert_eq!(run(&world, &["sessions", "list"]).err, "", "once said is enough");
}

#[test]
fn what_is_no_log_in_open_takes_no_command_and_no_other_session_down() {
    let world = World::new();
    hook(&world, "start", "SessionStart.startup", "first");
    for (what, make) in FOREIGN {
        for below in ["open", "ended"] {
            fs::create_dir_all(world.state().join(below)).unwrap();
            make(&world.state().join(below).join(format!("{}-0123456789abcdef.jsonl", what.replace(' ', "-"))));
        }
    }
    for (nr, below) in ["open", "ended", "bad"].into_iter().enumerate() {
        fs::create_dir_all(world.state().join(below)).unwrap();
        // Named exactly as a session is.
        named_pipe(&world.state().join(below).join(format!("s-20200101000000-0000000{nr}.jsonl")));
    }
    let listed = run(&world, &["episodes", "--json"]).json();
    assert_eq!((&listed["open"], &listed["episodes"][0]["external_id"]), (&json!(1), &json!("first")), "{listed}");
    assert!(hook(&world, "start", "SessionStart.startup", "second").contains(" opened at "));
    for id in ["first", "second"] {
        assert!(hook(&world, "activity", "Stop", id).ends_with(" marked (activity)"));
        assert!(hook(&world, "end", "SessionEnd.clear", id).starts_with("episode closed (closed"));
    }
    for _ in 0..4 {
        let listed = run(&world, &["sessions", "list", "--json"]).json();
        assert_eq!(listed["sessions"].as_array().map(Vec::len), Some(2), "{listed}");
    }
    assert_eq!(run(&world, &["doctor"]).code, Some(0));
}

#[test]
fn what_stands_where_the_log_of_a_session_belongs_blocks_no_hook_and_costs_no_other_session() {
    for (what, make) in FOREIGN {
        let world = World::new();
        hook(&world, "start", "SessionStart.startup", "a");
        let log = world.logs("open").remove(0);
        hook(&world, "end", "SessionEnd.clear", "a");
        make(&log);
        let lines = [("start", "SessionStart.startup"), ("activity", "Stop"), ("end", "SessionEnd.clear")]
            .map(|(event, name)| hook(&world, event, name, "a"));
        // Where the log cannot be in its place it is in the user's own folder.
        assert!(lines[0].contains(" opened at ") && lines[1].ends_with(" marked (activity)"), "{what}: {lines:?}");
        assert!(lines[2].starts_with("episode closed (closed, reason clear)"), "{what}: {lines:?}");
        assert!(hook(&world, "start", "SessionStart.startup", "b").contains(" opened at "), "{what}");
        assert!(hook(&world, "end", "SessionEnd.clear", "b").starts_with("episode closed"), "{what}");
        let listed = run(&world, &["sessions", "list", "--json"]).json();
        assert_eq!(listed["sessions"].as_array().map(Vec::len), Some(3), "{what}: {listed}");
    }
}

#[test]
fn a_file_where_a_folder_of_the_state_belongs_takes_no_command_down_and_loses_no_session() {
    for below in ["open", "ended", "bad", "holders", "history", "fired"] {
        let world = World::new();
        fs::create_dir_all(world.state()).unwrap();
        fs::write(world.state().join(below), "mine").unwrap();
        assert!(hook(&world, "start", "SessionStart.startup", "a").contains(" opened at "), "{below}");
        let line = hook(&world, "end", "SessionEnd.clear", "a");
        assert!(line.starts_with("episode closed (closed, reason clear)"), "{below}: {line}");
        for command in [&["sessions", "list"][..], &["episodes"], &["capture", "status"]] {
            assert_eq!(run(&world, command).code, Some(0), "{below}: {command:?}");
        }
        assert_eq!(fs::read(world.state().join(below)).unwrap(), b"mine");
        fs::remove_file(world.state().join(below)).unwrap();
        assert_eq!(world.record().end(), ("closed", "clear", "hook"), "{below}");
    }
}

/// Runs a script where `$DISK` is a full file system with a repository in it, which still takes names; `hook EVENT ID`
/// runs a hook there. `None` where there are no namespaces for that.
fn on_a_full_disk(world: &World, script: &str) -> Option<String> {
    let disk = world.folder().join("disk");
    fs::create_dir(&disk).expect("a folder can be made");
    let inside = |script: &str| {
        let mut unshare = Command::new("unshare");
        unshare.args(["--map-root-user", "--mount", "sh", "-c", script]).env("DISK", &disk);
        unshare
    };
    let mount = "mount -t tmpfs -o size=256k,nr_inodes=1000 none \"$DISK\"";
    if !inside(mount).output().is_ok_and(|output| output.status.success()) {
        return None;
    }
    let script = format!(
        "set -e; {mount}; cd \"$DISK\"; git init --quiet --template= --initial-branch=main .
        hook() {{ printf '{{\"session_id\": \"%s\"}}' \"$2\" | \"$BIN\" capture session --provider claude-code --event \"$1\" 2>&1; }}
        cat /dev/zero >fill 2>/dev/null || true
        mkdir names && : >names/one
        {script}"
    );
    let mut shell = inside(&script);
    let environment = world.majordomus(&[]);
    shell.env_clear().env("DISK", &disk).env("BIN", majordomus());
    for (name, value) in environment.get_envs() {
        if let Some(value) = value {
            shell.env(name, value);
        }
    }
    let output = shell.output().expect("unshare can be run");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}{err}");
    Some(out.into_owned())
}

/// What of the disk's own state holds nothing, and what the user's folder holds.
const LEFT: &str = "echo left; find .git/majordomus/main/open -type f 2>/dev/null || true
    echo there; find \"$XDG_STATE_HOME/majordomus\" -path '*/open/*' -size +0 2>/dev/null | wc -l";

#[test]
fn a_state_folder_that_takes_names_but_no_bytes_sends_a_session_to_the_users_folder() {
    let world = World::new();
    let script = format!(
        "hook start a; {LEFT}
        hook activity a; rm fill; hook end a; \"$BIN\" sessions list; echo again; hook start a; hook end a"
    );
    let Some(out) = on_a_full_disk(&world, &script) else { return };
    let lines: Vec<&str> = out.lines().collect();
    assert!(lines[0].starts_with("session s-") && lines[0].contains(" opened at "), "{out}");
    assert_eq!((&lines[1..3], lines[3].trim()), (&["left", "there"][..], "1"), "nothing empty stays: {out}");
    assert!(lines[4].ends_with(" marked (activity)"), "{out}");
    assert!(lines[5].starts_with("episode closed ("), "{out}");
    let listed = lines.iter().filter(|line| line.contains("claude-code:a")).count();
    assert_eq!(listed, 1, "{out}");
    assert!(out.split("again\n").nth(1).unwrap().contains(" opened at "), "{out}");
}

#[test]
fn a_connection_to_a_server_whose_state_folder_takes_no_bytes_is_recorded_in_the_users_folder() {
    let world = World::new();
    let call = |id: u32, tool: &str, arguments: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
        )
    };
    let lines = [
        majordomus_e2e::INITIALIZE.to_owned(),
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.into(),
        call(2, "majordomus_session_attach", r#"{"external_id":"t"}"#),
    ];
    let script = format!("cat \"$HOME/lines\" | \"$BIN\" mcp; {LEFT}");
    fs::write(world.folder().join("home/lines"), lines.join("\n") + "\n").unwrap();
    let Some(out) = on_a_full_disk(&world, &script) else { return };
    let answer: serde_json::Value = out
        .lines()
        .find_map(|line| serde_json::from_str(line).ok().filter(|line: &serde_json::Value| line["id"] == 2))
        .unwrap();
    assert_eq!(answer["result"]["structuredContent"]["recorded"], true, "{out}");
    assert!(out.contains("left\nthere\n1"), "{out}");
}
