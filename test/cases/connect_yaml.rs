//! What `majordomus connect` does to Goose's settings, which are YAML and a person's: only our lines come, and exactly they go
//! again.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::PathBuf;

use majordomus_e2e::{Files, Said, World, executable, feed, files, holds, install};
use serde_json::{Value, json};

/// Settings as people have them, and what of ours stands in them then.
const YAML: &[(&str, &str)] = &[
    (
        "",
        "extensions:\n  majordomus:\n    enabled: true\n    name: majordomus\n    type: stdio\n    cmd: BINARY\n    args: [mcp]\n",
    ),
    (
        "GOOSE_PROVIDER: anthropic # mine\nGOOSE_MODEL: 'x'",
        "\nextensions:\n  majordomus:\n    enabled: true\n    name: majordomus\n    type: stdio\n    cmd: BINARY\n    args: [mcp]",
    ),
    (
        // As somebody keeps it.
        "# Goose\nextensions:\n    developer: # theirs\n        enabled: true\n        type: builtin\n        timeout: 300\n\n    \
         \"my tools\":\n        cmd: ~/bin/tüls\n        args:\n        - -y\n        - 'a: b'\n        envs: {TOKEN: \"#1\"}\n    \
         # memory:\n    #     enabled: false\n\nGOOSE_MODE: auto\nprompt: |\n  extensions:\n    majordomus: no\n",
        "    majordomus:\n        enabled: true\n        name: majordomus\n        type: stdio\n        cmd: BINARY\n        args: [mcp]\n",
    ),
    (
        "\u{feff}extensions:\r\n  developer:\r\n    enabled: true\r\nGOOSE_MODE: auto\r\n",
        "  majordomus:\r\n    enabled: true\r\n    name: majordomus\r\n    type: stdio\r\n    cmd: BINARY\r\n    args: [mcp]\r\n",
    ),
    // As Goose makes it where it has none.
    ("{}\n", "extensions: {majordomus: {enabled: true, name: majordomus, type: stdio, cmd: BINARY, args: [mcp]}}"),
    (
        "extensions: {}\nGOOSE_MODE: auto",
        "majordomus: {enabled: true, name: majordomus, type: stdio, cmd: BINARY, args: [mcp]}",
    ),
    (
        "extensions: # none yet\nGOOSE_MODE: auto\n",
        "  majordomus:\n    enabled: true\n    name: majordomus\n    type: stdio\n    cmd: BINARY\n    args: [mcp]\n",
    ),
];

fn ok(said: Said) -> String {
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{said:?}");
    said.out
}

fn settings(world: &World) -> PathBuf {
    world.folder().join("home/.config/goose/config.yaml")
}

fn put(world: &World, text: &str) {
    let path = settings(world);
    fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("a folder can be made");
    fs::write(path, text).expect("the home folder can be written");
}

fn read(world: &World) -> String {
    fs::read_to_string(settings(world)).expect("the file is there")
}

/// Everything but what is ours to keep.
fn seen(world: &World) -> Files {
    files(&world.folder(), &["work/.git/majordomus", "state"])
}

#[test]
fn only_our_lines_come_into_yaml_and_exactly_they_go_again() {
    for (before, ours) in YAML {
        // From a place that YAML has to quote.
        let world = World::new();
        let program = world.folder().join("my: ü #/majordomus");
        fs::create_dir(program.parent().unwrap()).unwrap();
        install(&program);
        let run = |arguments: &[&str]| feed(world.program(&program).args(arguments), b"");
        put(&world, before);
        let all = seen(&world);
        let first = ok(run(&["connect", "goose", "--global"]));
        assert!(first.contains("+++ ~/.config/goose/config.yaml\n"), "{first}");
        assert!(first.contains("Goose: connected in ~/.config/goose/config.yaml\n"), "{first}");
        assert!(first.contains("  to do: Start a new session of Goose;"), "{first}");
        let after = read(&world);
        let ours = ours.replace("BINARY", &format!("{:?}", program.to_str().unwrap()));
        let (head, tail) = after.split_once(&ours).unwrap_or_else(|| panic!("{ours}\n{after}"));
        assert_eq!([head, tail].concat(), *before, "{after}");
        ok(run(&["connect", "goose", "--global", "--check"]));

        let with = seen(&world);
        let second = ok(run(&["connect", "goose", "--global"]));
        assert_eq!(second, "Goose: everything is in place, nothing was changed\n");
        assert_eq!(seen(&world), with);

        let removed = ok(run(&["connect", "goose", "--global", "--remove"]));
        assert!(removed.contains("Goose: taken out of ~/.config/goose/config.yaml\n"), "{removed}");
        assert_eq!(seen(&world), all, "{before:?}");
    }
}

#[test]
fn yaml_that_was_not_there_is_gone_again_and_what_is_only_looked_at_is_not_changed() {
    let world = World::plain();
    let before = files(&world.folder(), &[]);
    let said = ok(world.run(&["connect", "goose", "--global", "--dry-run"]));
    assert!(said.contains("--- /dev/null\n+++ ~/.config/goose/config.yaml\n") && said.contains("+    cmd: "), "{said}");
    let check = world.run(&["connect", "goose", "--global", "--check"]);
    assert_eq!((check.code, check.err.as_str()), (Some(1), ""));
    assert_eq!(check.out, "Goose: ~/.config/goose/config.yaml: missing: majordomus\n");
    assert_eq!(files(&world.folder(), &[]), before);

    ok(world.run(&["connect", "goose", "--global"]));
    assert!(read(&world).starts_with("extensions:\n  majordomus:\n    enabled: true\n"));
    ok(world.run(&["connect", "--global", "--remove"]));
    assert!(!world.folder().join("home/.config").exists());

    // What somebody has put there since stays, and the mapping with it; without the ledger too.
    ok(world.run(&["connect", "goose", "--global"]));
    put(&world, &(read(&world) + "  memory:\n    enabled: true\n# theirs\n"));
    fs::remove_file(world.folder().join("state/majordomus/connected.json")).unwrap();
    ok(world.run(&["connect", "--global", "--remove"]));
    assert_eq!(read(&world), "extensions:\n  memory:\n    enabled: true\n# theirs\n");
}

#[test]
fn yaml_behind_a_link_or_in_another_configuration_folder_is_written_there() {
    let world = World::new();
    let theirs = world.folder().join("dotfiles ü/goose.yaml");
    fs::create_dir(theirs.parent().unwrap()).unwrap();
    fs::write(&theirs, "a: 1 # no newline").unwrap();
    fs::set_permissions(&theirs, Permissions::from_mode(0o600)).unwrap();
    fs::create_dir_all(settings(&world).parent().unwrap()).unwrap();
    symlink(&theirs, settings(&world)).unwrap();
    let before = seen(&world);
    let said = ok(world.run(&["connect", "goose", "--global"]));
    assert!(said.contains(&format!("note: ~/.config/goose/config.yaml leads to {}\n", theirs.display())), "{said}");
    assert_eq!(fs::read_link(settings(&world)).unwrap(), theirs);
    assert_eq!(fs::metadata(&theirs).unwrap().mode() & 0o777, 0o600);
    assert!(fs::read_to_string(&theirs).unwrap().starts_with("a: 1 # no newline\nextensions:\n  majordomus:\n"));
    ok(world.run(&["connect", "goose", "--global", "--remove"]));
    assert_eq!(seen(&world), before);

    let elsewhere = world.folder().join("xdg");
    fs::create_dir_all(elsewhere.join("goose")).unwrap();
    let with = seen(&world);
    let run = |more: &[&str]| {
        let mut command = world.majordomus(&["connect", "--global"]);
        feed(command.args(more).env("XDG_CONFIG_HOME", &elsewhere).env("PATH", "/nowhere"), b"")
    };
    // By its folder it is found there, too.
    let said = ok(run(&[]));
    assert!(said.contains("Goose: connected in ~/.config/goose/config.yaml\n"), "{said}");
    assert_eq!(holds(&files(&elsewhere, &[]), "majordomus").len(), 1);
    assert_eq!(fs::read_to_string(&theirs).unwrap(), "a: 1 # no newline");
    ok(run(&["--remove"]));
    assert_eq!(seen(&world), with);
}

#[test]
fn yaml_that_cannot_be_edited_is_left_as_it_is_and_it_is_said_why() {
    for (text, why) in [
        ("a: [1\nb: 2\n", "line 2, column 2: "),
        ("ü: 1\nextensions:\n\tmajordomus: 1\n", "line 3, column 2: "),
        ("extensions: {}\nextensions: {}\n", "line 2, column 1: the key \"extensions\" stands there twice"),
        ("extensions: []\n", "extensions is a list, not an object"),
        ("a: &a {}\nextensions: *a\n", "extensions is the alias *a; write out what it stands for"),
        ("a: &a {b: {}}\nextensions: {<<: *a}\n", "extensions takes members from elsewhere with <<; write them out"),
        ("a: 1\n---\nb: 1\n", "it holds several documents"),
        ("a: |\n  text", "the text at its end has no newline, and readers differ in what it means; end it with one"),
        (
            "extensions:\n  majordomus: {type: sse, uri: u}\n",
            "extensions.majordomus is there already and is not this program's entry",
        ),
    ] {
        let world = World::new();
        put(&world, text);
        let before = seen(&world);
        let said = world.run(&["connect", "goose", "--global"]);
        assert_eq!(said.code, Some(1), "{said:?}");
        let expected = format!("error: Goose: ~/.config/goose/config.yaml is left as it is: {why}");
        assert!(said.err.contains(&expected), "{said:?}");
        assert_eq!(seen(&world), before);
    }
}

#[test]
fn who_has_no_settings_of_a_project_is_told_what_to_run() {
    let world = World::new();
    for arguments in
        [&["connect", "goose"][..], &["connect", "claude-code", "goose"], &["connect", "goose", "--remove"]]
    {
        let said = world.run(arguments);
        assert_eq!((said.code, said.out.as_str()), (Some(1), ""));
        let expected = "error: Goose is told of servers and hooks in the settings of a person, and has none of a project\n\
                        hint: run majordomus connect goose --global\n";
        assert_eq!(said.err, expected);
    }
    assert!(!world.path(".claude").exists() && !settings(&world).exists());

    // Who names nobody gets those that can be connected here, and is told of the others.
    let bin = world.folder().join("bin");
    executable(&bin.join("goose"), "#!/bin/sh\nexit 1\n");
    let run = |arguments: &[&str]| feed(world.majordomus(arguments).env("PATH", &bin), b"");
    assert!(run(&["connect"]).err.contains("hint: run majordomus connect goose --global\n"));
    fs::create_dir(world.path(".cursor")).unwrap();
    let said = run(&["connect"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains("Cursor: connected in ") && !settings(&world).exists(), "{said:?}");
    assert!(said.out.ends_with("has none of a project; run majordomus connect goose --global\n"), "{said:?}");
}

#[test]
fn status_and_doctor_say_how_the_connection_of_a_client_without_read_hooks_stands() {
    let world = World::new();
    let status = || {
        let said = world.run(&["capture", "status", "--json"]);
        let rows: Vec<Value> = serde_json::from_str(&said.out).unwrap();
        let row = rows.into_iter().find(|row| row["name"] == "goose:session").unwrap();
        (row["state"].as_str().unwrap().to_owned(), row["reason"].as_str().unwrap().to_owned())
    };
    let doctor = || {
        let said = world.run(&["doctor", "--json"]);
        let seen: Value = serde_json::from_str(&said.out).unwrap();
        let checks = seen.as_array().unwrap().iter().filter(|check| check["check"] == "server of goose");
        checks.cloned().collect::<Vec<_>>()
    };
    let unread = "its hooks could be recorded; this version cannot read them yet; ";
    let (state, reason) = status();
    assert_eq!(state, "unadapted");
    assert_eq!(
        reason,
        format!("{unread}its connection is once it has the server: run majordomus connect goose --global")
    );
    assert_eq!(doctor(), Vec::<Value>::new());

    ok(world.run(&["connect", "goose", "--global"]));
    assert_eq!(status().1, format!("{unread}its connection is, by the server in ~/.config/goose/config.yaml"));
    let [check] = &doctor()[..] else { panic!("one file is looked at") };
    assert_eq!(check["verdict"], "ok");
    assert!(check["found"].as_str().unwrap().starts_with("~/.config/goose/config.yaml names /"), "{check}");

    let with = read(&world);
    let line = with.lines().find(|line| line.trim_start().starts_with("cmd: ")).unwrap();
    put(&world, &with.replace(line, "    cmd: /gone/majordomus"));
    assert_eq!(doctor()[0]["verdict"], "failed");
    assert_eq!(doctor()[0]["hint"], json!("run majordomus connect goose --global"));
    put(&world, "extensions: {}\n");
    assert_eq!(doctor()[0]["found"], json!("~/.config/goose/config.yaml: overwritten by somebody else since"));
    put(&world, "extensions: [\n");
    assert!(doctor()[0]["found"].as_str().unwrap().starts_with("~/.config/goose/config.yaml cannot be read: line 1"));
    assert!(status().1.contains("; ~/.config/goose/config.yaml cannot be read: line 1"), "{}", status().1);
}
