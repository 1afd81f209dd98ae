//! What `majordomus connect` does to settings as they are found: only our lines come, and exactly they go again.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use majordomus_e2e::{Files, Said, World, files, holds, named_pipe, run_at_once};
use serde_json::{Value, json};

/// The clients that are connected here, and the files that they are told in.
const CLIENTS: &[(&str, &str, &str)] = &[
    ("claude-code", ".claude/settings.json", ".mcp.json"),
    ("codex", ".codex/hooks.json", ".codex/config.toml"),
    ("gemini-cli", ".gemini/settings.json", ".gemini/settings.json"),
    ("cursor", ".cursor/hooks.json", ".cursor/mcp.json"),
    ("copilot-cli", ".github/hooks/majordomus.json", ".github/mcp.json"),
];

/// Settings as people have them.
const JSON: &[&str] = &[
    "",
    "{}",
    "{ }\n",
    "{\n}\n",
    "\u{feff}{\r\n  \"model\": \"x\",\r\n  \"list\": [\r\n    1\r\n  ]\r\n}",
    "{\"model\":\"x\",\"list\":[1,2]}",
    "{ \"model\": \"x\", \"hooks\": {} }\n",
    "{\n\t\"z\": 1, // last things first\n\t\"hooks\": {\n\t\t\"Stop\": [\n\t\t\t{\"hooks\": [{\"type\": \"command\", \"command\": \"say done\"}]},\n\t\t],\n\
     \t\t/* later */\n\t\t\"SessionStart\": [],\n\t\t\"stop\": [ {\"command\": \"x\"} ]\n\t},\n\t\"mcpServers\": { \"other\": {\"url\": \"u\"} },\n\t\"a\": null,\n}\n// end",
];

const TOML: &[&str] = &[
    "",
    "model = \"x\"",
    "\u{feff}# mine\r\nmodel = 'x' # y\r\n\r\n[mcp_servers.other]\r\ncommand = \"z\"\r\n",
    "[hooks.state.\"/a/b:session_start:0:0\"]\ntrusted_hash = \"q\"\n\n\n",
];

/// Everything but what is ours to keep.
fn seen(world: &World) -> Files {
    files(&world.folder(), &["work/.git/majordomus", "state"])
}

fn ok(said: Said) -> String {
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{said:?}");
    said.out
}

fn put(world: &World, below: &str, text: &str) {
    let path = world.path(below);
    fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("a folder can be made");
    fs::write(path, text).expect("the worktree can be written");
}

/// Whether all lines of `before` are in `after`, in order; one may have got a comma.
fn is_kept(before: &str, after: &str) -> bool {
    let mut after = after.chars();
    before.chars().all(|char| after.any(|other| other == char))
}

#[test]
fn only_our_lines_come_and_exactly_they_go_again() {
    for (client, hooks, servers) in CLIENTS {
        for (turn, json) in JSON.iter().enumerate() {
            let world = World::new();
            put(&world, hooks, json);
            if hooks != servers {
                let text = if servers.ends_with(".toml") { TOML[turn % TOML.len()] } else { json };
                put(&world, servers, text);
            }
            let before = seen(&world);
            let first = ok(world.run(&["connect", client]));
            assert!(first.contains("+++ ") && first.contains("connected in "), "{first}");
            let after = seen(&world);
            for path in [hooks, servers] {
                let at = Path::new("work").join(path);
                let text = |files: &Files| String::from_utf8(files[&at].clone()).unwrap();
                assert!(is_kept(&text(&before), &text(&after)), "{path}: {}", text(&after));
                assert_ne!(before[&at], after[&at]);
            }
            assert_eq!(before.len(), after.len(), "no other file is there");
            ok(world.run(&["connect", client, "--check"]));
            let ledger = || fs::metadata(world.state().join("connected.json")).expect("it is noted").ino();
            let noted = ledger();

            let second = ok(world.run(&["connect", client]));
            assert!(second.contains(": everything is in place, nothing was changed"), "{second}");
            assert!(!second.contains("+++"), "{second}");
            assert_eq!(seen(&world), after);
            assert_eq!(ledger(), noted, "nor is anything noted anew");

            let removed = ok(world.run(&["connect", client, "--remove"]));
            assert!(removed.contains(": taken out of "), "{removed}");
            assert_eq!(seen(&world), before, "{client}: {json:?}");
            assert!(!world.state().join("connected.json").exists());
            let again = ok(world.run(&["connect", client, "--remove"]));
            assert_eq!(again, "nothing of majordomus is in these settings, nothing was changed\n");
        }
    }
}

#[test]
fn files_and_folders_that_were_not_there_are_gone_again() {
    let world = World::new();
    let before = seen(&world);
    let all: Vec<&str> = CLIENTS.iter().map(|(client, ..)| *client).collect();
    ok(world.run(&[&["connect"], &all[..]].concat()));
    for (_, hooks, servers) in CLIENTS {
        assert!(world.path(hooks).is_file() && world.path(servers).is_file());
    }
    let hooks: Value = serde_json::from_slice(&fs::read(world.path(".claude/settings.json")).unwrap()).unwrap();
    let entry = &hooks["hooks"]["SessionEnd"][0]["hooks"][0];
    assert_eq!((&entry["type"], &entry["timeout"]), (&json!("command"), &json!(5)));
    let servers: Value = serde_json::from_slice(&fs::read(world.path(".mcp.json")).unwrap()).unwrap();
    assert_eq!(servers["mcpServers"]["majordomus"]["args"], json!(["mcp"]));
    // One after the other, in another order than they came.
    for client in ["gemini-cli", "claude-code", "copilot-cli", "codex", "cursor"] {
        ok(world.run(&["connect", "--remove", client]));
    }
    assert_eq!(seen(&world), before);

    // What somebody has put there since stays, with its folder.
    ok(world.run(&["connect", "cursor", "claude-code"]));
    put(&world, ".claude/agents/x.md", "x");
    let with = fs::read_to_string(world.path(".cursor/mcp.json")).unwrap();
    put(&world, ".cursor/mcp.json", &with.replacen("{\n", "{\n  \"theirs\": true,\n", 1));
    ok(world.run(&["connect", "--remove"]));
    assert!(!world.path(".claude/settings.json").exists() && world.path(".claude/agents/x.md").exists());
    assert_eq!(fs::read_to_string(world.path(".cursor/mcp.json")).unwrap(), "{\n  \"theirs\": true\n}\n");
    assert!(!world.path(".cursor/hooks.json").exists());
}

#[test]
fn case_92_settings_behind_a_link_are_written_where_it_leads_and_the_link_stays() {
    let world = World::new();
    let shared = world.path("shared ü");
    fs::create_dir_all(shared.join("claude")).unwrap();
    fs::write(shared.join("claude/settings.json"), "{\"model\": \"x\"}").unwrap();
    fs::write(shared.join("servers.json"), "{}\n").unwrap();
    fs::set_permissions(shared.join("servers.json"), Permissions::from_mode(0o640)).unwrap();
    symlink(shared.join("claude"), world.path(".claude")).unwrap();
    symlink("shared ü/servers.json", world.path(".mcp.json")).unwrap();
    let before = seen(&world);
    ok(world.run(&["connect", "claude-code"]));
    assert_eq!(fs::read_link(world.path(".mcp.json")).unwrap(), Path::new("shared ü/servers.json"));
    assert_eq!(fs::metadata(shared.join("servers.json")).unwrap().mode() & 0o777, 0o640);
    assert_eq!(holds(&files(&shared, &[]), "majordomus").len(), 2);
    // A home that is a link, and a project that is reached by one, are the same home and project.
    symlink(world.folder(), world.folder().join("link")).unwrap();
    let mut through = world.majordomus(&["connect", "claude-code", "--check"]);
    through.current_dir(world.folder().join("link/work")).env("HOME", world.folder().join("link/home"));
    ok(majordomus_e2e::feed(&mut through, b""));
    fs::remove_file(world.folder().join("link")).unwrap();
    ok(world.run(&["connect", "claude-code", "--remove"]));
    assert_eq!(seen(&world), before);

    fs::remove_file(world.path(".mcp.json")).unwrap();
    symlink("nowhere", world.path(".mcp.json")).unwrap();
    let said = world.run(&["connect", "claude-code"]);
    assert_eq!(said.code, Some(1));
    assert!(said.err.contains(".mcp.json is left as it is: it is a link to nowhere"), "{said:?}");
}

#[test]
fn case_92_a_link_that_leads_out_of_the_project_is_not_written_through_and_a_persons_own_is() {
    let world = World::new();
    let theirs = world.folder().join("dotfiles ü");
    fs::create_dir_all(theirs.join("claude")).expect("a folder can be made");
    symlink(theirs.join("claude"), world.path(".claude")).expect("a link can be made");
    let before = seen(&world);
    for arguments in [&["connect", "claude-code"][..], &["connect", "claude-code", "--check"]] {
        let said = world.run(arguments);
        assert_eq!(said.code, Some(1), "{said:?}");
        let all = format!("{}{}", said.out, said.err);
        assert!(all.contains("leads out of the project, to ") && all.contains("--global"), "{said:?}");
    }
    assert_eq!(seen(&world), before, "neither there nor anywhere else");

    symlink(theirs.join("claude"), world.folder().join("home/.claude")).expect("a link can be made");
    let said = ok(world.run(&["connect", "claude-code", "--global"]));
    let leads = format!("note: ~/.claude/settings.json leads to {}", theirs.join("claude/settings.json").display());
    assert!(said.contains(&leads), "{said}");
    assert_eq!(holds(&files(&theirs, &[]), "majordomus").len(), 1);
}

#[test]
fn a_file_that_cannot_be_edited_keeps_its_client_from_being_changed_at_all() {
    for (file, text, why) in [
        (".claude/settings.json", "{\n  \"a\": 1\n  \"b\": 2\n}", "line 2, column 9: "),
        (".mcp.json", "{\"mcpServers\": [}", "line 1, column 17: "),
        (".mcp.json", "{\"mcpServers\": []}", "mcpServers is a list, not an object"),
        (
            ".claude/settings.json",
            "{\"hooks\": {}, \"hooks\": {}}",
            "line 1, column 15: the key \"hooks\" stands there twice",
        ),
        (".claude/settings.json", "{\"hooks\": []}", "hooks is a list, not an object"),
        (".claude/settings.json", "{\"hooks\": {\"Stop\": {}}}", "hooks.Stop is an object, not a list"),
    ] {
        let world = World::new();
        put(&world, file, text);
        let before = seen(&world);
        let said = world.run(&["connect", "claude-code", "gemini-cli"]);
        assert_eq!(said.code, Some(1));
        assert!(said.err.contains(&format!("error: Claude Code: {file} is left as it is: {why}")), "{said:?}");
        let after = seen(&world);
        let changed: Vec<_> = after.keys().filter(|path| before.get(*path) != after.get(*path)).collect();
        assert!(changed.iter().all(|path| path.starts_with("work/.gemini")), "{changed:?}");
        assert!(said.out.contains("Gemini CLI: connected in "), "the others are connected: {said:?}");
        assert_eq!(world.run(&["connect", "claude-code", "--check"]).code, Some(1));
    }
    let world = World::new();
    fs::create_dir(world.path(".claude")).unwrap();
    named_pipe(&world.path(".claude/settings.json"));
    let said = world.run(&["connect", "claude-code"]);
    assert!(said.err.contains("it is not an ordinary file"), "{said:?}");
}

#[test]
fn somebody_elses_server_of_our_name_stays_and_the_hooks_come() {
    for entry in [
        "{\"url\": \"http://127.0.0.1:1/mcp\"}",
        "{\"command\": \"/opt/butler\", \"args\": [\"mcp\"]}",
        "{\"command\": \"/opt/majordomus\", \"args\": [\"serve\"]}",
    ] {
        let world = World::new();
        let theirs = format!("{{\"mcpServers\": {{\"majordomus\": {entry}}}}}");
        put(&world, ".mcp.json", &theirs);
        let said = world.run(&["connect", "claude-code"]);
        assert_eq!(said.code, Some(1), "{said:?}");
        let why = "mcpServers.majordomus is there already and is not this program's entry";
        assert!(said.err.contains(why), "{said:?}");
        assert!(said.out.contains("Claude Code: connected in .claude/settings.json\n"), "{said:?}");
        assert_eq!(world.run(&["connect", "claude-code"]).code, Some(1));
        ok(world.run(&["connect", "claude-code", "--remove"]));
        assert_eq!(fs::read_to_string(world.path(".mcp.json")).unwrap(), theirs);
        assert!(!world.path(".claude").exists());
    }
}

#[test]
fn a_hook_that_is_not_quite_ours_stays_and_ours_comes_beside_it() {
    for line in [
        "/opt/butler capture session --provider claude-code --event end",
        "majordomus capture session --provider cursor --event end",
        "majordomus capture session --provider claude-code --event end --log /tmp/x",
        "majordomus capture session --provider claude-code --event end || true",
    ] {
        let world = World::new();
        let theirs = json!({ "hooks": { "SessionEnd": [{ "hooks": [{ "type": "command", "command": line }] }] } });
        put(&world, ".claude/settings.json", &theirs.to_string());
        let settings = || fs::read_to_string(world.path(".claude/settings.json")).expect("the settings are there");
        ok(world.run(&["connect", "claude-code"]));
        let both: Value = serde_json::from_str(&settings()).expect("the settings are JSON");
        let ends = &both["hooks"]["SessionEnd"];
        assert_eq!((ends.as_array().map(Vec::len), &ends[0]), (Some(2), &theirs["hooks"]["SessionEnd"][0]), "{line}");
        ok(world.run(&["connect", "claude-code", "--remove"]));
        assert_eq!(settings(), theirs.to_string());
    }
}

#[test]
fn a_comment_that_somebody_wrote_where_only_ours_was_stays() {
    let world = World::new();
    put(&world, ".claude/settings.json", "{}");
    ok(world.run(&["connect", "claude-code"]));
    let settings = || fs::read_to_string(world.path(".claude/settings.json")).expect("the settings are there");
    let commented = settings().replacen("\"hooks\": {", "\"hooks\": { // theirs", 1);
    put(&world, ".claude/settings.json", &commented);
    ok(world.run(&["connect", "claude-code", "--remove"]));
    let left = settings();
    assert!(left.contains("\"hooks\": { // theirs") && !left.contains("majordomus"), "{left}");
}

#[test]
fn a_file_that_cannot_be_written_is_whole_and_it_is_said() {
    let world = World::new();
    put(&world, ".claude/settings.json", "{}");
    put(&world, ".mcp.json", "{}");
    fs::set_permissions(world.path(".claude/settings.json"), Permissions::from_mode(0o444)).unwrap();
    let before = seen(&world);
    let said = world.run(&["connect", "claude-code"]);
    assert_eq!(said.code, Some(1));
    assert!(said.err.starts_with("error: cannot write .claude/settings.json: it is read-only\nhint: "), "{said:?}");
    assert_eq!(seen(&world), before);
    assert!(!world.state().join("connected.json").exists(), "nor is anything noted that was not done");
    fs::set_permissions(world.path(".claude/settings.json"), Permissions::from_mode(0o644)).unwrap();

    // No byte more may be written, as on a full disk.
    let mut full = world.program("sh");
    full.args(["-c", "ulimit -f 0; exec \"$0\" connect claude-code"]).arg(majordomus_e2e::majordomus());
    let said = majordomus_e2e::feed(&mut full, b"");
    assert_eq!(said.code, Some(1));
    assert!(said.err.contains("error: cannot write .claude/settings.json: "), "{said:?}");
    assert_eq!(seen(&world), before, "and nothing is left beside it");
    ok(world.run(&["connect", "claude-code"]));
    ok(world.run(&["connect", "claude-code", "--remove"]));
    assert_eq!(seen(&world), before);
}

#[test]
fn without_the_ledger_what_is_ours_goes_all_the_same() {
    let world = World::new();
    put(&world, ".claude/settings.json", "{\n  \"model\": \"x\"\n}\n");
    ok(world.run(&["connect", "claude-code", "cursor"]));
    let ledger = world.state().join("connected.json");
    assert_eq!(fs::metadata(&ledger).unwrap().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(world.state()).unwrap().mode() & 0o777, 0o700);
    fs::remove_file(ledger).unwrap();
    ok(world.run(&["connect", "--remove"]));
    assert_eq!(fs::read_to_string(world.path(".claude/settings.json")).unwrap(), "{\n  \"model\": \"x\"\n}\n");
    assert!(holds(&files(world.repository(), &[".git"]), "majordomus").is_empty());
}

#[test]
fn the_ledger_holds_nothing_of_what_somebody_wrote() {
    let world = World::new();
    let token = format!("ghp_{}", "a1".repeat(18));
    let text = format!("{{\n  \"TOKEN\": \"{token}\", // {token}\n  \"hooks\": {{ }}\n}}\n");
    put(&world, ".gemini/settings.json", &text);
    let said = ok(world.run(&["connect", "gemini-cli"]));
    assert!(said.contains("[redacted]") && !said.contains(&token), "nor is it shown: {said}");
    assert!(holds(&files(&world.state(), &[]), "ghp_").is_empty());
    assert!(holds(&files(&world.state(), &[]), "TOKEN").is_empty());
    assert!(!holds(&files(&world.state(), &[]), "SessionEnd").is_empty());
}

#[test]
fn many_at_once_lose_nothing_of_each_other() {
    let world = World::new();
    put(&world, ".gemini/settings.json", "{\n  \"a\": 1\n}\n");
    let before = seen(&world);
    let turns = (0..15).map(|turn| (world.majordomus(&["connect", CLIENTS[turn % CLIENTS.len()].0]), Vec::new()));
    for said in run_at_once(turns.collect()) {
        ok(said);
    }
    let all: Vec<&str> = CLIENTS.iter().map(|(client, ..)| *client).collect();
    ok(world.run(&[&["connect", "--check"], &all[..]].concat()));
    let turns = CLIENTS.iter().map(|(client, ..)| (world.majordomus(&["connect", "--remove", client]), Vec::new()));
    for said in run_at_once(turns.collect()) {
        ok(said);
    }
    assert_eq!(seen(&world), before);
}
