//! `majordomus capture status` of clients with hooks: declared, waiting, seen firing, overwritten.

use std::fs;
use std::path::Path;

use majordomus_e2e::{Running, World, executable, feed, install, payload_of};
use serde_json::{Value, json};

const NEVER: &str = "never seen firing";

/// State and reason of a provider's sessions.
fn state(world: &World, provider: &str) -> (String, String) {
    let rows = world.run(&["capture", "status", "--json"]).json();
    let name = format!("{provider}:session");
    let row = rows.as_array().expect("rows").iter().find(|row| row["name"] == name.as_str()).expect("a row");
    let text = |field: &str| row[field].as_str().expect("a row is text").to_owned();
    (text("state"), text("reason"))
}

/// Asserts a state, and that its reason has these parts.
fn assert_state(world: &World, provider: &str, expected: &str, parts: &[&str]) {
    let (state, reason) = state(world, provider);
    assert_eq!(state, expected, "{reason}");
    for part in parts {
        assert!(reason.contains(part), "{part:?} is not in {reason:?}");
    }
}

fn ok(world: &World, arguments: &[&str]) {
    let said = world.run(arguments);
    assert_eq!(said.code, Some(0), "{said:?}");
}

/// What doctor says of a thing, all of it.
fn checks(world: &World, about: &str) -> Vec<Value> {
    let said = world.run(&["doctor", "--json"]);
    let checks: Value = serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {said:?}"));
    checks.as_array().expect("checks").iter().filter(|check| check["check"] == about).cloned().collect()
}

fn settings(world: &World) -> Value {
    let text = fs::read(world.path(".claude/settings.json")).expect("the settings are there");
    serde_json::from_slice(&text).expect("the settings are JSON")
}

fn set(world: &World, settings: &Value) {
    world.write(".claude/settings.json", &settings.to_string());
}

#[test]
fn case_89_hooks_that_wait_for_trust_are_wired_until_a_real_event() {
    let world = World::new();
    assert_state(&world, "codex", "unconfigured", &["no settings file names it", ".codex/hooks.json"]);
    ok(&world, &["connect", "codex"]);
    for _ in 0..2 {
        let expected = ["declared in .codex/hooks.json", NEVER, "approve the hooks", "Hooks need review"];
        assert_state(&world, "codex", "wired", &expected);
        // That it works is no event of a client.
        let [check] = &checks(&world, "hooks of codex")[..] else { panic!("one check") };
        assert_eq!(check["verdict"], "warning", "{check}");
        assert!(check["found"].as_str().unwrap().contains("never seen firing here"), "{check}");
        assert!(check["hint"].as_str().unwrap().contains("Hooks need review"), "{check}");
        assert!(world.logs("open").is_empty() && world.record_files().is_empty());
    }
    let start = json!({ "session_id": "t-1", "cwd": world.repository(), "source": "startup" });
    let said = feed(&mut world.capture("codex", "start"), start.to_string().as_bytes());
    assert!(said.hook().contains(" opened at "), "{said:?}");
    assert_state(&world, "codex", "verified", &["last seen firing at 20", "no end seen yet", ".codex/hooks.json"]);
    let [check] = &checks(&world, "hooks of codex")[..] else { panic!("one check") };
    assert_eq!(check["verdict"], "ok", "{check}");
}

#[test]
fn case_90_hooks_that_somebody_has_overwritten_are_not_healthy_though_they_fired() {
    let world = World::new();
    ok(&world, &["connect", "claude-code"]);
    world.hook("start", &payload_of("SessionStart.startup", "a"));
    world.hook("end", &payload_of("SessionEnd.prompt_input_exit", "a"));
    let healthy = ["last seen firing at 20", "last end seen at 20", "with reason prompt_input_exit"];
    assert_state(&world, "claude-code", "verified", &healthy);
    let ours = settings(&world);

    let mut without_end = ours.clone();
    without_end["hooks"].as_object_mut().unwrap().remove("SessionEnd");
    let mut changed = ours.clone();
    let line = &mut changed["hooks"]["SessionEnd"][0]["hooks"][0]["command"];
    *line = line.as_str().unwrap().replace("--event end", "--event activity").into();
    let theirs =
        json!({ "hooks": { "SessionStart": [{ "hooks": [{ "type": "command", "command": "other-tool run" }] }] } });
    for (now, named) in [
        (&without_end, "SessionEnd in .claude/settings.json"),
        (&changed, "SessionEnd in "),
        (&theirs, "SessionStart, "),
    ] {
        set(&world, now);
        let expected =
            ["overwritten by somebody else since; run majordomus connect claude-code", named, "last seen firing"];
        assert_state(&world, "claude-code", "unconfigured", &expected);
        let all = checks(&world, "hooks of claude-code");
        let failed = all.iter().find(|check| check["verdict"] == "failed").unwrap_or_else(|| panic!("{all:?}"));
        assert_eq!(failed["hint"], "run majordomus connect claude-code");
    }
    fs::remove_file(world.path(".claude/settings.json")).unwrap();
    assert_state(&world, "claude-code", "unconfigured", &["overwritten by somebody else since"]);

    ok(&world, &["connect", "claude-code"]);
    assert_state(&world, "claude-code", "verified", &healthy);
    ok(&world, &["connect", "claude-code", "--remove"]);
    let (state, reason) = state(&world, "claude-code");
    assert_eq!(state, "unconfigured");
    assert!(reason.contains("no settings file names it now") && !reason.contains("overwritten"), "{reason}");
}

#[test]
fn what_was_put_into_the_persons_settings_and_is_gone_is_mended_there() {
    let world = World::new();
    ok(&world, &["connect", "claude-code", "--global"]);
    assert_state(&world, "claude-code", "wired", &["declared in ~/.claude/settings.json,", NEVER]);
    fs::write(world.folder().join("home/.claude/settings.json"), "{}").unwrap();
    let mend = "run majordomus connect claude-code --global";
    assert_state(&world, "claude-code", "unconfigured", &["overwritten by somebody else since", mend]);
    // The project's are as good.
    ok(&world, &["connect", "claude-code"]);
    assert_state(&world, "claude-code", "wired", &["declared in .claude/settings.json,"]);
}

#[test]
fn what_is_declared_in_part_says_what_is_missing() {
    let world = World::new();
    fs::create_dir(world.path(".claude")).unwrap();
    let line = "majordomus capture session --provider claude-code --event start";
    let hook = json!([{ "hooks": [{ "type": "command", "command": line }] }]);
    set(&world, &json!({ "hooks": { "SessionStart": hook } }));
    let missing = "declared in .claude/settings.json without UserPromptSubmit, Stop, PreCompact, SessionEnd, never";
    assert_state(&world, "claude-code", "wired", &[missing]);
    ok(&world, &["connect", "codex"]);
    let expected =
        ["PreCompact (which versions from 0.154.0 on know)", "SessionEnd (which versions from 0.146.0 on know)"];
    assert_state(&world, "codex", "wired", &expected);
    // One of another provider, or one that does more, is not ours.
    for other in [line.replace("claude-code", "codex"), format!("{line}; other-tool")] {
        set(&world, &json!({ "hooks": { "SessionStart": [{ "hooks": [{ "type": "command", "command": other }] }] } }));
        assert_state(&world, "claude-code", "unconfigured", &["no settings file names it"]);
    }
}

#[test]
fn a_program_that_does_not_exist_any_more_is_named() {
    let world = World::new();
    let installed = world.folder().join("My ü/majordomus");
    fs::create_dir(installed.parent().unwrap()).unwrap();
    install(&installed);
    let said = Running::start_with(world.program(&installed).args(["connect", "gemini-cli"])).wait();
    assert_eq!(said.code, Some(0), "{said:?}");
    let payload = json!({ "session_id": "g", "cwd": world.repository(), "source": "startup" });
    let said = feed(&mut world.capture("gemini-cli", "start"), payload.to_string().as_bytes());
    assert!(said.hook().contains(" opened at "), "{said:?}");
    assert_state(&world, "gemini-cli", "verified", &[]);
    fs::remove_file(&installed).unwrap();
    let expected = [&*installed.to_string_lossy(), "does not exist any more; run majordomus connect gemini-cli"];
    assert_state(&world, "gemini-cli", "unconfigured", &expected);
    // Where a program is that only has a name depends on who looks for it.
    executable(&installed, "#!/bin/sh\n");
    assert_state(&world, "gemini-cli", "verified", &[]);
}

#[test]
fn a_client_that_runs_the_hooks_of_others_is_wired_by_them() {
    let world = World::new();
    assert_state(&world, "vscode-copilot", "unconfigured", &["no settings file names it"]);
    ok(&world, &["connect", "claude-code"]);
    let expected = ["it runs what .claude/settings.json declares for Claude Code", NEVER];
    assert_state(&world, "vscode-copilot", "wired", &expected);
    assert_state(&world, "grok", "wired", &["Claude Code", "/hooks-trust"]);
}

#[test]
fn settings_that_cannot_be_read_are_named() {
    let world = World::new();
    fs::create_dir(world.path(".claude")).unwrap();
    world.write(".claude/settings.json", "{ \"hooks\": ");
    assert_state(&world, "claude-code", "unconfigured", &[".claude/settings.json cannot be read: line 1"]);
    world.write(".claude/settings.json", "{ \"hooks\": {}, // theirs\n}\n");
    assert_state(&world, "claude-code", "unconfigured", &["no settings file names it"]);
}

#[test]
fn what_cannot_be_recorded_says_since_when_or_why_not() {
    let world = World::new();
    assert_state(&world, "devin-cli", "unadapted", &[]);
    let outside = World::plain();
    assert_state(&outside, "codex", "unconfigured", &["not in a git repository"]);
    assert!(!Path::new(&outside.path(".git")).exists());
}
