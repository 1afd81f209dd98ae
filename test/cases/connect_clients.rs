//! `majordomus connect`: who is found, what is run, in which version, for whom, and what is only looked at.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use majordomus_e2e::{Said, World, executable, feed, files, holds, install, majordomus, payload_of};
use serde_json::{Value, json};

fn ok(said: &Said) -> &str {
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{said:?}");
    &said.out
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).expect("the file is there")).expect("the file is JSON")
}

/// The command line of Claude Code's hook for an event, as it stands in the settings.
fn line(world: &World, event: &str) -> String {
    let settings = read(&world.path(".claude/settings.json"));
    settings["hooks"][event][0]["hooks"][0]["command"].as_str().expect("a command line").to_owned()
}

/// A command with these folders before all others on its search path.
fn with_path(mut command: Command, folders: &[PathBuf]) -> Command {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = folders.iter().cloned().chain(std::env::split_paths(&path));
    command.env("PATH", std::env::join_paths(folders).expect("no folder has a colon"));
    command
}

#[test]
fn case_85_the_line_that_was_written_runs_from_any_install_path() {
    for folder in ["plain", "My Dir", "it's ü", "a\"b $(id) `id` \\ & ; # * ~ $HOME", "-dash", "new\nline"] {
        let world = World::new();
        let bin = world.folder().join(folder);
        fs::create_dir(&bin).unwrap();
        install(&bin.join("majordomus"));
        let mut connect = world.program(bin.join("majordomus"));
        ok(&feed(connect.args(["connect", "claude-code"]), b""));
        assert_eq!(
            line(&world, "SessionEnd").contains('\''),
            folder != "plain" || world.folder().to_str().unwrap().contains(' ')
        );
        for (event, name) in [("SessionStart", "SessionStart.startup"), ("SessionEnd", "SessionEnd.prompt_input_exit")]
        {
            let mut shell = world.program("sh");
            shell.args(["-c", &line(&world, event)]);
            let said = feed(&mut shell, payload_of(name, "5d1b").to_string().as_bytes());
            assert!(!said.hook().starts_with("no "), "{said:?}");
        }
        let record = world.record();
        assert_eq!((record.text("provider"), record.text("outcome")), ("claude-code", "closed"), "{folder}");
        let server = &read(&world.path(".mcp.json"))["mcpServers"]["majordomus"];
        assert_eq!(Path::new(server["command"].as_str().unwrap()), bin.join("majordomus"));
    }
}

#[test]
fn a_path_that_survives_an_upgrade_is_written() {
    let world = World::new();
    let at = |below: &str| world.folder().join(below);
    for below in ["cellar/1", "cellar/2", "bin"] {
        fs::create_dir_all(at(below)).unwrap();
    }
    install(&at("cellar/1/majordomus"));
    install(&at("cellar/2/majordomus"));
    symlink("../cellar/1/majordomus", at("bin/majordomus")).unwrap();
    let connect = |program: &str, more: &[&str]| {
        let mut command = with_path(world.program(at(program)), &[at("bin")]);
        feed(command.args(["connect", "claude-code"]).args(more), b"")
    };
    ok(&connect("cellar/1/majordomus", &[]));
    assert!(line(&world, "Stop").contains("bin/majordomus"), "{}", line(&world, "Stop"));
    fs::remove_file(at("bin/majordomus")).unwrap();
    symlink("../cellar/2/majordomus", at("bin/majordomus")).unwrap();
    fs::remove_dir_all(at("cellar/1")).unwrap();
    assert!(ok(&connect("bin/majordomus", &[])).contains("everything is in place"));

    // Where the entry is gone, what is written is stale; it is mended where it stands.
    fs::remove_file(at("bin/majordomus")).unwrap();
    let check = connect("cellar/2/majordomus", &["--check"]);
    assert_eq!(check.code, Some(1));
    assert!(check.out.contains(".claude/settings.json: stale: SessionStart, "), "{check:?}");
    let before = fs::read_to_string(world.path(".claude/settings.json")).unwrap();
    ok(&connect("cellar/2/majordomus", &[]));
    let after = fs::read_to_string(world.path(".claude/settings.json")).unwrap();
    assert_eq!(after, before.replace("/bin/majordomus", "/cellar/2/majordomus"));
}

#[test]
fn a_program_that_will_not_stay_is_not_written_down() {
    let world = World::new();
    install(&world.temporary().join("majordomus"));
    let said = feed(world.program(world.temporary().join("majordomus")).args(["connect", "claude-code"]), b"");
    assert_eq!(said.code, Some(1));
    assert!(said.err.contains("is in a folder for temporary files\nhint: "), "{said:?}");
    assert!(!world.path(".claude").exists());
}

#[test]
fn clients_are_found_by_their_programs_and_folders() {
    let world = World::new();
    let bin = world.folder().join("bin");
    executable(&bin.join("gemini"), "#!/bin/sh\nexit 1\n");
    fs::create_dir(world.path(".claude")).unwrap();
    fs::create_dir(world.folder().join("home/.cursor")).unwrap();
    fs::write(bin.join("codex"), "not to be run").unwrap();
    let mut command = world.majordomus(&["connect", "--check", "--json"]);
    command.env("PATH", &bin);
    let said = feed(&mut command, b"");
    let seen: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((said.code, &seen["complete"]), (Some(1), &json!(false)));
    let clients: Vec<&Value> = seen["clients"].as_array().unwrap().iter().map(|client| &client["client"]).collect();
    assert_eq!(clients, ["claude-code", "gemini-cli", "cursor"]);
    assert_eq!(seen["clients"][0]["files"][0]["path"], ".claude/settings.json");
    assert_eq!(seen["clients"][0]["files"][0]["missing"][0], "SessionStart");

    let nobody = World::new();
    let said = feed(nobody.majordomus(&["connect"]).env("PATH", nobody.folder()), b"");
    assert_eq!(said.code, Some(1));
    assert!(
        said.err.starts_with("error: no client was found here\nhint: name those that you use: claude-code, "),
        "{said:?}"
    );
}

#[test]
fn what_is_only_looked_at_is_not_changed() {
    let world = World::new();
    let before = files(&world.folder(), &[]);
    let said = world.run(&["connect", "claude-code", "--dry-run"]);
    assert!(ok(&said).contains("+++ .claude/settings.json\n") && said.out.contains("+++ .mcp.json\n"), "{said:?}");
    assert!(said.out.contains("Claude Code: would be connected in .claude/settings.json, .mcp.json\n"), "{said:?}");
    let check = world.run(&["connect", "claude-code", "--check"]);
    assert_eq!((check.code, check.err.as_str()), (Some(1), ""));
    assert!(check.out.starts_with("Claude Code: .claude/settings.json: missing: SessionStart, "), "{check:?}");
    assert_eq!(files(&world.folder(), &[]), before, "not even a state folder is made");

    ok(&world.run(&["connect", "claude-code"]));
    let connected = files(&world.folder(), &[]);
    let check = world.run(&["connect", "claude-code", "--check"]);
    assert_eq!(ok(&check), "Claude Code: .claude/settings.json: in place\nClaude Code: .mcp.json: in place\n");
    assert!(ok(&world.run(&["connect", "--remove", "--dry-run"])).contains("+++ /dev/null\n"));
    assert_eq!(files(&world.folder(), &[]), connected);
}

#[test]
fn who_cannot_be_connected_is_told_why() {
    let world = World::new();
    let said = world.run(&["connect", "claude-cod"]);
    assert_eq!(said.code, Some(2));
    assert!(said.err.contains("claude-code") && said.err.contains("[possible values: "), "{said:?}");
    let said = world.run(&["connect", "claude-code", "generic"]);
    assert_eq!(said.code, Some(1));
    assert!(
        said.err.starts_with("error: Any MCP client cannot be connected: it stands for every MCP client"),
        "{said:?}"
    );
    assert!(!world.path(".claude").exists(), "nor is anybody else");

    let plain = World::plain();
    let said = plain.run(&["connect", "claude-code"]);
    assert_eq!(said.code, Some(1));
    assert!(
        said.err.contains("is not in a git repository\nhint: run this inside a git repository, or with --global"),
        "{said:?}"
    );
}

#[test]
fn the_settings_of_a_person_are_changed_on_request_from_anywhere() {
    let world = World::plain();
    let home = world.folder().join("home");
    fs::create_dir(home.join(".codex")).unwrap();
    fs::write(home.join(".codex/config.toml"), "model = \"x\"").unwrap();
    let before = files(&home, &[]);
    let said = world.run(&["connect", "claude-code", "codex", "--global"]);
    assert!(ok(&said).contains("+++ ~/.claude/settings.json\n"), "{said:?}");
    assert!(
        said.out.contains("note: it has no file for the MCP servers of a person that could be written"),
        "{said:?}"
    );
    assert!(said.out.contains("  to do: Trust the project when Codex asks"), "{said:?}");
    assert!(read(&home.join(".claude/settings.json"))["hooks"]["SessionStart"].is_array());
    assert!(
        fs::read_to_string(home.join(".codex/config.toml"))
            .unwrap()
            .starts_with("model = \"x\"\n\n[mcp_servers.majordomus]\n")
    );
    assert!(files(world.repository(), &[]).is_empty());
    assert!(world.folder().join("state/majordomus/connected.json").is_file());
    ok(&world.run(&["connect", "--global", "--remove"]));
    assert_eq!(files(&home, &[]), before);
}

#[test]
fn whoever_is_connected_for_a_person_and_a_project_is_told_so() {
    let world = World::new();
    ok(&world.run(&["connect", "claude-code", "--global"]));
    let said = world.run(&["connect", "claude-code"]);
    assert!(ok(&said).contains("  note: its hooks are declared in ~/.claude/settings.json too"), "{said:?}");
    let said = world.run(&["connect", "claude-code", "--global"]);
    assert!(ok(&said).contains("  note: its hooks are declared in .claude/settings.json too"), "{said:?}");
}

#[test]
fn only_events_that_the_installed_version_knows_are_declared() {
    let world = World::new();
    let bin = world.folder().join("bin");
    let events = |version: &str| {
        executable(&bin.join("codex"), &format!("#!/bin/sh\n{version}\n"));
        let said = feed(&mut with_path(world.majordomus(&["connect", "codex"]), std::slice::from_ref(&bin)), b"");
        ok(&said);
        let hooks = read(&world.path(".codex/hooks.json"))["hooks"].as_object().unwrap().clone();
        (hooks.keys().cloned().collect::<Vec<_>>(), said.out)
    };
    let (few, said) = events("read wait; echo codex-cli 0.144.5");
    assert_eq!(few, ["SessionStart", "UserPromptSubmit", "Stop"]);
    assert!(
        said.contains(
            "note: the installed version does not know PreCompact (since 0.154.0), SessionEnd (since 0.146.0)"
        ),
        "{said}"
    );
    let (all, _) = events("echo codex-cli 0.171.0");
    assert_eq!(all, ["SessionStart", "UserPromptSubmit", "Stop", "PreCompact", "SessionEnd"]);
    let (kept, said) = events("exec sleep 60");
    assert_eq!(kept, all, "what is there is not taken back because the version cannot be told");
    assert!(
        said.contains("note: the version of OpenAI Codex CLI cannot be told, so it gets no hooks for PreCompact"),
        "{said}"
    );
    let (few, _) = events("echo codex-cli 0.146.0");
    assert_eq!(few, ["SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"], "and it is where it can");
    ok(&world.run(&["connect", "codex", "--remove"]));
    assert!(!world.path(".codex").exists());
}

#[test]
fn every_worktree_has_settings_of_its_own() {
    let world = World::new();
    let other = world.folder().join("other tree");
    world.git(&["worktree", "add", "--quiet", "--detach", other.to_str().unwrap()]);
    let run = |arguments: &[&str]| feed(world.majordomus(arguments).current_dir(&other), b"");
    ok(&run(&["connect", "claude-code"]));
    assert!(!world.path(".claude").exists());
    assert!(!holds(&files(&other, &[]), majordomus().to_str().unwrap()).is_empty());
    ok(&world.run(&["connect", "claude-code"]));
    ok(&run(&["connect", "--remove"]));
    assert!(!other.join(".claude").exists() && world.path(".claude/settings.json").exists());
}
