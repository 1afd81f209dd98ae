//! What a person or a script asks: status, lists, records, doctor, demo.

use std::fs;
use std::process::Stdio;

use majordomus_e2e::{Said, World, files, payload_of};
use serde_json::{Value, json};

/// Records a session of each id and returns their ids, the newest first.
fn record_all(world: &World, ids: &[&str]) -> Vec<String> {
    for id in ids {
        world.hook("start", &payload_of("SessionStart.startup", id));
        world.hook("end", &payload_of("SessionEnd.clear", id));
    }
    let mut sessions: Vec<String> = world.records().iter().map(|record| record.text("session_id").to_owned()).collect();
    sessions.sort();
    sessions.reverse();
    sessions
}

fn row(status: &Value, name: &str) -> (String, String, String) {
    let mut rows = status.as_array().expect("status is a list").iter();
    let row = rows.find(|row| row["name"] == name).unwrap_or_else(|| panic!("no {name} in {status}"));
    let text = |field: &str| row[field].as_str().expect("a row is text").to_owned();
    (text("capability"), text("state"), text("reason"))
}

/// What went wrong and what to do, as the two lines of a command that failed.
fn error_and_hint(said: &Said) -> (&str, &str) {
    assert_eq!((said.code, said.out.as_str()), (Some(1), ""), "{said:?}");
    let lines: Vec<&str> = said.err.lines().collect();
    let [error, hint] = lines[..] else { panic!("{said:?}") };
    (error.strip_prefix("error: ").expect("an error"), hint.strip_prefix("hint: ").expect("a hint"))
}

#[test]
fn status_verifies_the_connection_every_time_and_without_earlier_use() {
    for world in [World::new(), World::unborn(), World::plain()] {
        let before = files(&world.folder(), &[]);
        for _ in 0..2 {
            let said = world.run(&["capture", "status"]);
            assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{said:?}");
            let row = said.out.lines().find(|line| line.starts_with("generic:session ")).expect("a row");
            let words: Vec<&str> = row.split_whitespace().take(3).collect();
            assert_eq!(words, ["generic:session", "connection", "verified"]);
            let (capability, state, reason) = row_of(&world, "generic:session");
            assert_eq!((capability.as_str(), state.as_str()), ("connection", "verified"));
            assert!(!reason.is_empty());
        }
        assert_eq!(files(&world.folder(), &[]), before, "the store that it tries is gone");
    }
}

fn row_of(world: &World, name: &str) -> (String, String, String) {
    row(&world.run(&["capture", "status", "--json"]).json(), name)
}

#[test]
fn status_says_of_prompts_that_a_connection_has_none() {
    let world = World::new();
    let (capability, state, reason) = row_of(&world, "generic");
    assert_eq!((capability.as_str(), state.as_str()), ("none", "unsupported"));
    assert!(reason.contains("https://"), "with its citation: {reason}");
    assert_eq!(row_of(&world, "claude-code").1, "unadapted");
}

#[test]
fn status_cannot_verify_a_connection_where_no_store_can_be_made() {
    let world = World::new();
    let mut status = world.majordomus(&["capture", "status", "--json"]);
    status.env("TMPDIR", world.path("nowhere"));
    let said = majordomus_e2e::Running::start_with(&mut status).wait();
    let (_, state, reason) = row(&said.json(), "generic:session");
    assert_ne!(state, "verified", "{reason}");
}

#[test]
fn status_calls_hooks_verified_only_when_they_are_declared_and_were_seen_firing() {
    let world = World::new();
    let state = || row_of(&world, "claude-code:session").1;
    assert_eq!(state(), "unconfigured");
    world.hook("start", &payload_of("SessionStart.startup", "a"));
    assert_eq!(state(), "unconfigured", "seen firing, but no settings file names it now");

    let other = World::new();
    for (world, expected) in [(&other, "wired"), (&world, "verified")] {
        fs::create_dir(world.path(".claude")).unwrap();
        let command = "majordomus capture session --provider claude-code --event start";
        let hook = json!([{ "hooks": [{ "type": "command", "command": command }] }]);
        world.write(".claude/settings.json", &json!({ "hooks": { "SessionStart": hook } }).to_string());
        let (capability, state, reason) = row_of(world, "claude-code:session");
        assert_eq!((capability.as_str(), state.as_str()), ("hooks", expected), "{reason}");
        assert!(reason.contains(".claude/settings.json"), "{reason}");
    }
    fs::remove_file(world.path(".claude/settings.json")).unwrap();
    assert_eq!(state(), "unconfigured", "a hook that another tool has removed is not healthy");
}

#[test]
fn every_reading_command_prints_json_and_says_nothing_else() {
    let world = World::new();
    let sessions = record_all(&world, &["a", "b"]);
    world.hook("start", &payload_of("SessionStart.startup", "c"));
    let show = ["sessions", "show", sessions[0].as_str()];
    for command in [&["capture", "status"][..], &["sessions", "list"], &show, &["episodes"], &["doctor"]] {
        let json = [command, &["--json"]].concat();
        let said = world.run(&json);
        assert!(!said.json().is_null());
        assert_eq!(said.err, "", "{command:?}");
        let said = world.run(command);
        assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{command:?}: {said:?}");
        assert!(said.out.ends_with('\n') && serde_json::from_str::<Value>(&said.out).is_err(), "{command:?}");
    }
    let shown = world.run(&["sessions", "show", &sessions[0], "--json"]).json();
    let text = world.run(&["sessions", "show", &sessions[0]]).out;
    assert_eq!((&shown["session_id"], &shown["text"]), (&json!(sessions[0]), &json!(text)));
    assert_eq!(fs::read_to_string(world.path(shown["path"].as_str().unwrap())).unwrap(), text);
}

#[test]
fn lists_that_are_empty_say_so() {
    let world = World::new();
    assert_eq!(world.run(&["sessions", "list", "--json"]).json(), json!({ "sessions": [] }));
    assert_eq!(world.run(&["episodes", "--json"]).json(), json!({ "open": 0, "detached": 0, "episodes": [] }));
    assert!(world.run(&["sessions", "list"]).out.contains("no session"));
    assert!(world.run(&["episodes"]).out.contains("no episode"));
}

#[test]
fn a_list_of_records_is_paged_newest_first_without_a_gap_or_a_double() {
    let world = World::new();
    let sessions = record_all(&world, &["a", "b", "c", "d", "e", "f", "g"]);
    let (mut paged, mut after) = (Vec::new(), None::<String>);
    loop {
        let mut arguments = vec!["sessions", "list", "--json", "--limit", "3"];
        arguments.extend(after.iter().flat_map(|after| ["--after", after.as_str()]));
        let page = world.run(&arguments).json();
        let ids = page["sessions"].as_array().unwrap().iter().map(|session| session["session_id"].as_str().unwrap());
        paged.push(ids.map(str::to_owned).collect::<Vec<_>>());
        let Some(next) = page["next"].as_str() else { break };
        after = Some(next.to_owned());
    }
    assert_eq!(paged.iter().map(Vec::len).collect::<Vec<_>>(), [3, 3, 1]);
    assert_eq!(paged.concat(), sessions);

    let said = world.run(&["sessions", "list", "--limit", "3"]);
    assert_eq!(said.out.lines().count(), 3);
    assert_eq!(said.line(), format!("older ones: majordomus sessions list --after {}", sessions[2]));
    assert_eq!(world.run(&["sessions", "list", "--limit", "7"]).err, "");
}

#[test]
fn a_record_that_is_not_there_is_an_error_with_a_hint() {
    let world = World::new();
    record_all(&world, &["a"]);
    for id in
        ["s-20260102030405-0a1b2c3d", "nonsense", "", "../../../etc/passwd", "s-20260102030405-0a1b2c3d\u{1b}[31m"]
    {
        let said = world.run(&["sessions", "show", id]);
        let (error, hint) = error_and_hint(&said);
        assert!(error.starts_with("there is no record of ") && !error.contains('\u{1b}'), "{error}");
        assert!(hint.contains("majordomus sessions list"), "{hint}");
    }
}

#[test]
fn a_wrong_command_line_exits_2() {
    let world = World::new();
    for arguments in [
        &[][..],
        &["nonsense"],
        &["mcp", "--wrong"],
        &["mcp", "--grace-seconds", "0"],
        &["mcp", "--http-port", "many"],
        &["sessions"],
        &["sessions", "show"],
        &["sessions", "list", "--limit", "0"],
        &["episodes", "extra"],
        &["doctor", "--idle-seconds", "soon"],
        &["demo", "--json"],
    ] {
        let said = world.run(arguments);
        assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{arguments:?}: {said:?}");
        assert!(!said.err.is_empty());
    }
    for arguments in [&["--help"][..], &["--version"], &["mcp", "--help"], &["sessions", "list", "--help"]] {
        let said = world.run(arguments);
        assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{arguments:?}: {said:?}");
    }
}

#[test]
fn a_variable_that_holds_no_number_is_an_error_with_a_hint() {
    let world = World::new();
    for arguments in [&["sessions", "list"][..], &["episodes"], &["doctor"], &["mcp"]] {
        let mut command = world.majordomus(arguments);
        command.env("MAJORDOMUS_GRACE_SECONDS", "soon");
        let said = majordomus_e2e::Running::start_with(&mut command).wait();
        let (error, hint) = error_and_hint(&said);
        assert!(error.contains("MAJORDOMUS_GRACE_SECONDS") && hint.contains("900"), "{arguments:?}: {said:?}");
    }
}

#[test]
fn outside_git_a_reading_command_is_an_error_with_a_hint() {
    let world = World::plain();
    for arguments in
        [&["sessions", "list"][..], &["sessions", "list", "--json"], &["episodes"], &["sessions", "show", "x"]]
    {
        let said = world.run(arguments);
        let (error, hint) = error_and_hint(&said);
        assert!(error.contains("is not in a git repository") && hint.contains("git init"), "{said:?}");
    }
    let said = world.run(&["doctor", "--json"]);
    assert_eq!(said.code, Some(1));
    let checks: Value = serde_json::from_str(&said.out).unwrap();
    assert!(checks.as_array().unwrap().iter().any(|check| check["verdict"] == "failed" && check["hint"].is_string()));
}

#[test]
fn a_server_outside_git_serves_and_says_that_nothing_is_recorded() {
    let world = World::plain();
    let mut client = world.client();
    let attached = client.attach("my-thread");
    assert_eq!(attached["recorded"], false, "{attached}");
    assert!(majordomus_e2e::reported(&attached).starts_with("no episode was recorded: "), "{attached}");
    client.detach();
    let left = client.lose();
    assert_eq!((left.code, left.err.as_str()), (Some(0), ""));
    assert!(files(&world.folder(), &[]).values().all(Vec::is_empty));
}

#[test]
fn doctor_finds_nothing_wrong_in_a_healthy_repository_and_names_what_was_put_aside() {
    let world = World::new();
    let checks = world.run(&["doctor", "--json"]).json();
    assert!(checks.as_array().unwrap().iter().all(|check| check["verdict"] == "ok"), "{checks}");
    assert!(!world.state().exists() && !world.path(".ai").exists(), "looking makes nothing");

    world.hook("start", &payload_of("SessionStart.startup", "a"));
    let bad = world.state().join("bad");
    fs::create_dir(&bad).unwrap();
    fs::rename(&world.logs("open")[0], bad.join("s-20260102030405-0a1b2c3d.jsonl")).unwrap();
    let said = world.run(&["doctor"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains("s-20260102030405-0a1b2c3d.jsonl") && said.out.contains("hint: "), "{said:?}");
}

#[test]
fn a_reader_that_has_gone_ends_a_list_quietly() {
    let world = World::new();
    record_all(&world, &["a"]);
    for arguments in [&["sessions", "list"][..], &["capture", "status"], &["doctor", "--json"], &["--help"]] {
        let mut child = world.majordomus(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{arguments:?}");
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
    }
}

#[test]
fn the_demo_shows_a_closed_and_an_interrupted_record_and_leaves_nothing() {
    let (world, other) = (World::plain(), World::new());
    let (before, untouched) = (files(&world.folder(), &[]), files(&other.folder(), &[]));
    let mut demo = world.majordomus(&["demo"]);
    // What is set in the person's shell is not what is shown.
    demo.env("MAJORDOMUS_GRACE_SECONDS", "500").env("GIT_DIR", other.path(".git"));
    let said = majordomus_e2e::Running::start_with(&mut demo).wait();
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{said:?}");
    for (line, times) in [
        ("outcome: \"closed\"", 1),
        ("end_reason: \"detach\"", 1),
        ("attachments: 3", 1),
        ("outcome: \"interrupted\"", 1),
        ("end_reason: \"expired\"", 1),
        ("schema: \"majordomus/session@1\"", 2),
    ] {
        assert_eq!(said.out.lines().filter(|found| *found == line).count(), times, "{line}: {}", said.out);
    }
    assert_eq!(files(&world.folder(), &[]), before);
    assert_eq!(files(&other.folder(), &[]), untouched);
}

#[test]
fn a_demo_without_a_place_to_work_is_an_error() {
    let world = World::plain();
    let mut demo = world.majordomus(&["demo"]);
    demo.env("TMPDIR", world.path("nowhere"));
    let said = majordomus_e2e::Running::start_with(&mut demo).wait();
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.err.starts_with("error: "), "{said:?}");
}
