//! `majordomus doctor` of clients: the lines that are installed are run for real, and nobody else's.

use std::fs;
use std::path::{Path, PathBuf};

use majordomus_e2e::{Running, Said, World, executable, files, install};
use serde_json::{Value, json};

/// Runs doctor and returns how it ended and all that it says of a thing.
fn doctor(world: &World, about: &str) -> (Option<i32>, Vec<Value>) {
    let said = world.run(&["doctor", "--json"]);
    (said.code, of(&said, about))
}

fn of(said: &Said, about: &str) -> Vec<Value> {
    let checks: Value = serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {said:?}"));
    checks.as_array().expect("checks").iter().filter(|check| check["check"] == about).cloned().collect()
}

fn one(checks: Vec<Value>) -> (String, String, String) {
    let [check] = &checks[..] else { panic!("{checks:#?}") };
    let text = |field: &str| check[field].as_str().unwrap_or_default().to_owned();
    (text("verdict"), text("found"), text("hint"))
}

/// Connects a client to the program at `installed`.
fn connect(world: &World, installed: &Path, provider: &str) {
    let said = Running::start_with(world.program(installed).args(["connect", provider])).wait();
    assert_eq!(said.code, Some(0), "{said:?}");
}

fn installed(world: &World, folder: &str) -> PathBuf {
    let path = world.folder().join(folder).join("majordomus");
    fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("a folder can be made");
    install(&path);
    path
}

/// Claude Code's settings, with a line for a start.
fn declare(world: &World, lines: &[&str]) {
    fs::create_dir_all(world.path(".claude")).expect("a folder can be made");
    let hooks: Vec<Value> = lines.iter().map(|line| json!({ "type": "command", "command": line })).collect();
    let settings = json!({ "hooks": { "SessionStart": [{ "hooks": hooks }] } });
    world.write(".claude/settings.json", &settings.to_string());
}

fn start_line(program: &str) -> String {
    format!("{program} capture session --provider claude-code --event start")
}

#[test]
fn case_85_lines_of_every_client_are_run_from_any_install_path_and_leave_nothing() {
    let world = World::new();
    let program = installed(&world, "My Dir/it's ü");
    for provider in ["claude-code", "codex", "gemini-cli", "cursor", "copilot-cli"] {
        connect(&world, &program, provider);
        let before = files(&world.folder(), &[]);
        let (code, checks) = doctor(&world, &format!("hooks of {provider}"));
        let (verdict, found, _) = one(checks);
        assert_eq!((code, verdict.as_str()), (Some(0), "warning"), "{found}");
        assert!(
            found.contains("recorded a session in a throwaway repository, but it was never seen firing here"),
            "{found}"
        );
        assert!(files(&world.folder(), &[]) == before, "{provider}: something was left");
    }
}

#[test]
fn a_line_whose_program_has_gone_says_so_and_what_to_run() {
    let world = World::new();
    let program = installed(&world, "My Dir/it's ü");
    connect(&world, &program, "claude-code");
    fs::remove_file(&program).unwrap();
    let (code, checks) = doctor(&world, "hooks of claude-code");
    let (verdict, found, hint) = one(checks);
    assert_eq!((code, verdict.as_str(), hint.as_str()), (Some(1), "failed", "run majordomus connect claude-code"));
    assert!(found.starts_with(".claude/settings.json: SessionStart: exit code 127: "), "{found}");
    assert!(found.contains("not found"), "{found}");
    let (verdict, found, hint) = one(doctor(&world, "server of claude-code").1);
    assert_eq!((verdict.as_str(), hint.as_str()), ("failed", "run majordomus connect claude-code"), "{found}");
    assert!(found.contains(".mcp.json") && found.contains("does not exist"), "{found}");
}

#[test]
fn no_line_of_another_tool_and_none_that_could_be_one_is_run() {
    let world = World::new();
    let real = installed(&world, "bin");
    let ran = |name: &str| world.folder().join(name);
    let touch = |name: &str| format!("touch '{}'", ran(name).display());
    let (real, carried) = (format!("'{}'", real.display()), world.path("bin/majordomus"));
    executable(&carried, &format!("#!/bin/sh\n{}\n", touch("carried")));
    let ours = start_line(&real);
    // Beside ours, and with ours in it.
    let wrapped = format!("{ours}; {}", touch("wrapped"));
    declare(&world, &[&touch("other"), &wrapped, &ours]);
    let (_, found, _) = one(doctor(&world, "hooks of claude-code").1.into_iter().take(1).collect());
    assert!(found.contains("declares no"), "ours was tried: {found}");

    // With the form of ours.
    let inside = start_line(&format!("\"$({})/majordomus\"", touch("inside")));
    let argument = format!("{ours} --idle-seconds \"$({})\"", touch("argument"));
    let carried = start_line(&format!("'{}'", carried.display()));
    for (line, why) in [
        (&inside, "SessionStart has a part that only the client's shell could fill in"),
        (&argument, "SessionStart has a part that only the client's shell could fill in"),
        (&carried, "SessionStart names a program inside this repository"),
        (&start_line("bin/majordomus"), "SessionStart names a program by where the client runs"),
    ] {
        declare(&world, &[line]);
        let (verdict, found, _) = one(doctor(&world, "hooks of claude-code").1);
        assert_eq!(verdict, "warning", "{found}");
        assert_eq!(found, format!(".claude/settings.json: not tried: {why}"));
    }
    for name in ["other", "wrapped", "carried", "inside", "argument"] {
        assert!(!ran(name).exists(), "{name} was run");
    }
}

#[test]
fn a_line_that_fails_says_why() {
    let world = World::new();
    let program = world.folder().join("fake/majordomus");
    for (script, expected) in [
        ("echo first >&2; echo 'no such thing' >&2; exit 3", "exit code 3: no such thing"),
        ("cat > /dev/null; echo nothing to do >&2", "it ran, but recorded no start: nothing to do"),
        ("exit 0", "it ran, but recorded no start"),
        ("kill -KILL $$", "exit code 137"),
        ("exec sleep 600", "not done after 5 s"),
    ] {
        executable(&program, &format!("#!/bin/sh\n{script}\n"));
        declare(&world, &[&start_line(&format!("'{}'", program.display()))]);
        let (code, checks) = doctor(&world, "hooks of claude-code");
        let (verdict, found, _) = one(checks);
        assert_eq!((code, verdict.as_str()), (Some(1), "failed"), "{found}");
        let said = found.strip_prefix(".claude/settings.json: SessionStart: ").unwrap_or_else(|| panic!("{found}"));
        assert!(said.starts_with(expected) || said.contains("signal: 9"), "{said}");
    }
    declare(&world, &[]);
    let end = "majordomus capture session --provider claude-code --event end";
    let hook = json!([{ "hooks": [{ "type": "command", "command": end }] }]);
    world.write(".claude/settings.json", &json!({ "hooks": { "SessionEnd": hook } }).to_string());
    let (_, found, _) = one(doctor(&world, "hooks of claude-code").1);
    assert_eq!(found, ".claude/settings.json: no hook is declared for the start of a sitting");
}

#[test]
fn a_line_that_is_tried_gets_nothing_of_the_person_and_a_name_that_is_clearly_ours() {
    let world = World::new();
    let program = world.folder().join("fake/majordomus");
    executable(&program, "#!/bin/sh\ncat > \"$0.payload\"; env > \"$0.env\"; pwd > \"$0.pwd\"\n");
    declare(&world, &[&start_line(&format!("'{}'", program.display()))]);
    let mut doctor = world.majordomus(&["doctor"]);
    doctor.env("GIT_DIR", world.path(".git")).env("CLAUDE_CODE_SESSION_ID", "a-real-one");
    let said = Running::start_with(&mut doctor).wait();
    assert_eq!(said.code, Some(1), "{said:?}");
    let beside = |what: &str| fs::read_to_string(program.with_extension(what)).unwrap();
    let payload: Value = serde_json::from_str(&beside("payload")).unwrap();
    assert_eq!(payload["session_id"], "majordomus-doctor");
    assert_eq!((&payload["source"], &payload["hook_event_name"]), (&json!("startup"), &json!("SessionStart")));
    assert_eq!(payload["cwd"], beside("pwd").trim_end());
    let env = beside("env");
    let temporary = world.temporary();
    for (name, below) in [("HOME", "home"), ("XDG_STATE_HOME", "state"), ("TMPDIR", "tmp")] {
        let value = env.lines().find_map(|line| line.strip_prefix(&format!("{name}="))).expect("it is set");
        assert!(Path::new(value).starts_with(&temporary) && value.ends_with(below), "{name}={value}");
    }
    assert!(!env.contains("GIT_") && !env.contains("CLAUDE"), "{env}");
    assert_eq!(fs::read_dir(temporary).unwrap().count(), 0, "it is gone");
}

#[test]
fn a_line_that_names_the_home_folder_is_run_with_the_persons() {
    let world = World::new();
    let installed = world.folder().join("home/bin/majordomus");
    fs::create_dir_all(installed.parent().unwrap()).unwrap();
    install(&installed);
    for program in ["~/bin/majordomus", "\"$HOME/bin/majordomus\"", "\"${HOME}\"/bin/majordomus"] {
        declare(&world, &[&start_line(program)]);
        let before = files(&world.folder(), &[]);
        let checks = doctor(&world, "hooks of claude-code").1;
        assert!(
            checks.iter().any(|check| check["found"].as_str().unwrap().contains("recorded a session")),
            "{checks:?}"
        );
        assert!(files(&world.folder(), &[]) == before, "{program}: something was left");
    }
}

#[test]
fn a_server_that_is_not_ours_is_only_named() {
    let world = World::new();
    world.write(".mcp.json", r#"{ "mcpServers": { "majordomus": { "command": "other-tool", "args": ["mcp"] } } }"#);
    let (verdict, found, _) = one(doctor(&world, "server of claude-code").1);
    assert_eq!(
        (verdict.as_str(), found.as_str()),
        ("warning", ".mcp.json: what is called majordomus there is something else")
    );
    fs::remove_file(world.path(".mcp.json")).unwrap();
    assert!(doctor(&world, "server of claude-code").1.is_empty());
    let said = world.run(&["connect", "codex"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let (verdict, found, _) = one(doctor(&world, "server of codex").1);
    assert_eq!(verdict, "ok", "{found}");
    assert!(found.contains("if it is not started: Trust the project when Codex asks"), "{found}");
}
