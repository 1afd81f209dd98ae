//! Ids that try to be paths, and secrets that must not reach the disk.

use std::collections::BTreeSet;

use majordomus_e2e::{Files, World, files, holds, provider_payload};
use serde_json::json;

/// Everything in the world but where state and records belong.
fn elsewhere(world: &World) -> Files {
    files(&world.folder(), &["work/.git/majordomus", "work/.ai"])
}

fn hostile_ids() -> Vec<String> {
    let mut ids: Vec<String> = [
        "../../../tmp/pwn",
        "..",
        ".",
        "/",
        "/etc/passwd",
        "a/b",
        "..\\..\\x",
        "C:x",
        "CON",
        "nul.txt",
        "-rf",
        "--help",
        "%2e%2e%2f",
        "~",
        "$HOME",
        "`id`",
        "a;b",
        "a\"b",
        "a'b",
        "a: b",
        "# a",
        "---",
        "[]",
        "{}",
        "!!str",
        "*",
        "&a",
        "null",
        "true",
        "1e3",
        "0x10",
        "{{a}}",
        "</session>",
        "```",
        "a`b``c",
        "\u{202e}evil",
        "😀",
        "\u{e9}",
        "e\u{301}",
        "A",
        "a",
        " a",
        "a ",
        "ß",
        "İ",
    ]
    .map(str::to_owned)
    .into();
    ids.push("x".repeat(256));
    ids.push("😀".repeat(256));
    ids
}

#[test]
fn hostile_ids_are_sessions_like_any_other_and_write_nowhere_else() {
    let world = World::new();
    let before = elsewhere(&world);
    let ids = hostile_ids();
    for id in &ids {
        let line = world.hook("start", &provider_payload("SessionStart.startup", &json!({ "session_id": id })));
        assert!(line.contains(" opened at "), "{id:?}: {line}");
    }
    assert_eq!(world.logs("open").len(), ids.len());
    let names: BTreeSet<String> =
        world.logs("open").iter().map(|path| path.file_name().unwrap().to_string_lossy().to_lowercase()).collect();
    assert_eq!(names.len(), ids.len(), "names differ also where case does not count");
    assert!(names.iter().all(|name| name.len() < 80 && name.is_ascii()), "{names:?}");
    for id in &ids {
        let line = world.hook("end", &provider_payload("SessionEnd.clear", &json!({ "session_id": id })));
        assert!(line.starts_with("episode closed (closed, reason clear) into .ai/repo/sessions/"), "{id:?}: {line}");
        assert!(!line.contains('\u{202e}'));
    }
    let recorded: BTreeSet<String> =
        world.records().iter().map(|record| record.text("external_id").to_owned()).collect();
    assert_eq!(recorded, ids.into_iter().collect(), "kept verbatim");
    assert_eq!(elsewhere(&world), before);
    let bidi = world.records().iter().any(|record| record.body.contains('\u{202e}'));
    assert!(!bidi, "what turns text around is shown escaped");
}

#[test]
fn hostile_ids_of_connections_are_sessions_like_any_other_too() {
    let world = World::new();
    let before = elsewhere(&world);
    let mut client = world.client();
    for id in hostile_ids() {
        assert_eq!(client.attach(&id)["episode"]["external_id"], id);
        assert_eq!(client.detach()["recorded"], true, "{id:?}");
    }
    assert_eq!(client.lose().code, Some(0));
    let recorded: BTreeSet<String> =
        world.records().iter().map(|record| record.text("external_id").to_owned()).collect();
    assert_eq!(recorded, hostile_ids().into_iter().collect());
    assert_eq!(elsewhere(&world), before);
}

#[test]
fn ids_that_no_line_can_carry_are_refused_and_write_nothing() {
    let world = World::new();
    let mut client = world.client();
    for id in ["", "a\nb", "a\0b", "a\u{1b}[31m", "a\u{2028}b", "a\u{85}b", &"x".repeat(257)] {
        let line = world.hook("start", &provider_payload("SessionStart.startup", &json!({ "session_id": id })));
        assert!(line.starts_with("no episode was recorded: "), "{id:?}: {line}");
        let refused = client.tool("majordomus_session_attach", &json!({ "external_id": id }));
        assert_eq!(refused["isError"], true, "{id:?}: {refused}");
    }
    assert!(world.logs("open").is_empty());
}

#[test]
fn a_branch_whose_name_is_hostile_becomes_a_harmless_part_of_the_path() {
    let world = World::new();
    world.git(&["checkout", "--quiet", "-b", "feat/../..-$(id)`x`;ü\u{202e}".replace("..", "x").as_str()]);
    world.hook("start", &provider_payload("SessionStart.startup", &json!({})));
    world.hook("end", &provider_payload("SessionEnd.clear", &json!({})));
    let record = world.record();
    let name = record.path.rsplit('/').next().unwrap();
    assert!(name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte)), "{name}");
    assert_eq!(record.text("branch"), world.git(&["branch", "--show-current"]));
    assert!(!record.body.contains('\u{202e}'));
}

#[test]
fn file_names_and_subjects_that_are_hostile_cannot_leave_their_place_in_the_record() {
    let world = World::new();
    world.hook("start", &provider_payload("SessionStart.startup", &json!({})));
    let name = "a\n---\n`b`\" \u{202e}.txt";
    world.commit(name, "```\n\n# Not a heading\n---\nsession_id: forged");
    world.commit("b.txt", "`` ` <script> [x](y) \u{7}\u{202e}");
    world.hook("end", &provider_payload("SessionEnd.clear", &json!({})));
    let record = world.record();
    assert_eq!(record["changed_files"], json!([name, "b.txt"]));
    assert_eq!(record.subjects()[0], "```");
    assert_ne!(record["session_id"], "forged");
    let headings = record.body.lines().filter(|line| line.starts_with('#')).count();
    assert_eq!(headings, 3, "{}", record.body);
    assert!(!record.body.contains(['\u{202e}', '\u{7}']), "{}", record.body);
}

/// Secrets of known shapes, put together here so that nobody's scanner takes this file for a leak.
fn secrets() -> Vec<String> {
    vec![
        format!("ghp_{}", "Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4zAb3d"),
        format!("sk-ant-api03-{}", "Ab3dEf6hIj9kLm2nOp5qRs8t"),
        format!("whsec_{}", "Ab3dEf6hIj9kLm2nOp5qRs8t"),
        format!("AKIA{}", "IOSFODNN7EXAMPLE"),
        format!("xoxb-{}", "123456789012-Ab3dEf6hIj9kLm2n"),
        format!("glpat-{}", "Ab3dEf6hIj9kLm2nOp5q"),
    ]
}

#[test]
fn secrets_in_ids_reasons_branches_and_subjects_reach_no_file() {
    for secret in secrets() {
        let world = World::new();
        world.git(&["checkout", "--quiet", "-b", &format!("try-{secret}")]);
        let (name, place) = (format!("id {secret}"), world.path(".git/config"));
        let start = json!({ "session_id": name, "source": format!("startup {secret}") });
        let lines = [
            world.hook("start", &provider_payload("SessionStart.startup", &start)),
            world.hook("compact", &provider_payload("PreCompact.auto", &json!({ "session_id": name }))),
        ];
        assert!(lines[0].contains(" opened at ") && lines[1].ends_with("marked (compact)"), "{lines:?}");
        let open = files(&world.state(), &[]);
        world.commit("a.txt", &format!("Use {secret} for now"));
        world.git(&["remote", "add", "origin", &format!("https://user:{secret}@example.org/x.git")]);
        let end = json!({ "session_id": name, "reason": format!("other {secret}") });
        let line = world.hook("end", &provider_payload("SessionEnd.other", &end));
        assert!(!line.contains(&secret), "{line}");
        let record = world.record();
        let shown = world.run(&["sessions", "show", record.text("session_id"), "--json"]).out;
        // What git itself keeps is git's: the branch, the commit and the remote.
        let left =
            [files(&world.state(), &[]), files(&world.path(".ai"), &[]), files(&world.folder(), &["work"]), open];
        for (place, files) in left.iter().enumerate() {
            assert_eq!(holds(files, &secret), Vec::<std::path::PathBuf>::new(), "place {place}");
        }
        assert!(!shown.contains(&secret) && shown.contains("[redacted]"), "{shown}");
        assert!(record["redactions"].as_u64() >= Some(3), "{}", record["redactions"]);
        assert!(place.is_file());
    }
}

#[test]
fn secrets_that_a_client_calls_itself_reach_no_file() {
    for secret in secrets() {
        let world = World::new();
        let mut client = world.server(&["mcp"]);
        let about = json!({ "name": format!("client {secret}"), "version": secret });
        client.ask("initialize", &json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": about }));
        client.attach(&format!("thread {secret}"));
        let open = files(&world.folder(), &[]);
        client.detach();
        assert_eq!(client.lose().code, Some(0));
        assert!(world.record()["redactions"].as_u64() >= Some(2));
        let ended = files(&world.folder(), &[]);
        assert_eq!((holds(&open, &secret), holds(&ended, &secret)), (Vec::new(), Vec::new()));
    }
}

#[test]
fn a_session_whose_id_holds_a_secret_is_found_again_and_expires_like_any_other() {
    let world = World::new();
    let id = format!("thread {}", secrets()[0]);
    let mut client = world.client();
    client.attach(&id);
    client.kill9();
    let mut client = world.client();
    let again = client.attach(&id);
    assert_eq!((&again["resumed"], &again["episode"]["attachments"]), (&json!(true), &json!(2)), "{again}");
    client.kill9();
    let expired = || world.records_with(&["--grace-seconds", "1"]).pop();
    let record = majordomus_e2e::until("the grace ends", expired);
    assert_eq!((record.text("external_id"), record.end().1), ("thread [redacted]", "expired"));
    assert!(world.logs("open").is_empty());
}

#[test]
fn what_is_no_secret_is_left_alone() {
    let world = World::new();
    let uuid = "2f6d1c58-0b7e-4f8a-9d35-7be1a4c09e21";
    world.hook("start", &provider_payload("SessionStart.startup", &json!({ "session_id": uuid })));
    let subject = "Revert 358ac02cd2181484388f94191327296726fcdc33: the token is in src/token/secret_key.rs";
    world.commit("sk-learn-notes.txt", subject);
    world.hook("end", &provider_payload("SessionEnd.clear", &json!({ "session_id": uuid })));
    let record = world.record();
    assert_eq!(
        (record.text("external_id"), record.subjects(), &record["redactions"]),
        (uuid, vec![subject], &json!(0))
    );
    assert_eq!(record["changed_files"], json!(["sk-learn-notes.txt"]));
}
