//! A client without hooks over stdio: its connection draws the boundary of its episode.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use majordomus_e2e::{
    Dice, INITIALIZE, Record, World, attach_line, built, cargo_environment, detach_line, feed, files,
};
use majordomus_e2e::{holds, now_ms, provider_payload, reported, root, session_id, state_of};
use serde_json::{Value, json};

#[test]
fn the_conversation_of_the_readme_prints_two_lines_and_leaves_the_record_that_it_names() {
    let world = World::new();
    let head = world.git(&["rev-parse", "HEAD"]);
    let before = now_ms();
    let target = built().parent().and_then(Path::parent).expect("cargo has a target folder");
    let mut launcher = world.program(root().join("bin/majordomus-mcp"));
    launcher.args(["--http-port", "0"]).env("CARGO_TARGET_DIR", target).envs(cargo_environment());
    let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let conversation = format!("{INITIALIZE}\n{initialized}\n{}{}", attach_line("my-thread"), detach_line());
    let said = feed(&mut launcher, conversation.as_bytes());
    assert_eq!(said.code, Some(0), "{said:?}");

    let answers = said.out.lines().map(|line| serde_json::from_str::<Value>(line).expect("an answer is JSON"));
    let lines: Vec<String> = answers
        .filter_map(|answer| answer["result"]["structuredContent"]["episode"]["repository"].as_str().map(str::to_owned))
        .collect();
    let [opened, closed] = lines.try_into().expect("exactly two lines");
    let opened: Vec<&str> = opened.split(' ').collect();
    let ["session", session_id, "opened", "at", opened_at, "(head", short] = opened[..] else { panic!("{opened:?}") };
    assert_eq!(short, format!("{})", &head[..7]));
    let path = closed.strip_prefix("episode closed (closed, reason detach) into ").expect("it says where it went");
    let (year, month) = (&opened_at[..4], &opened_at[5..7]);
    assert_eq!(path, format!(".ai/repo/sessions/{year}/{month}/{session_id}--main.md"));

    let record = Record::read(world.repository(), path);
    let tree = world.git(&["rev-parse", "HEAD^{tree}"]);
    assert_eq!(record.front.as_object().map(|front| front.len()), Some(28), "{:#}", record.front);
    for (field, value) in [
        ("schema", json!("majordomus/session@1")),
        ("session_id", json!(session_id)),
        ("provider", json!("generic")),
        ("external_id", json!("my-thread")),
        ("client", json!("anything 0")),
        ("started_at", json!(opened_at)),
        ("last_activity_at", record["closed_at"].clone()),
        ("outcome", json!("closed")),
        ("end_reason", json!("detach")),
        ("end_witness", json!("connection")),
        ("end_process", Value::Null),
        ("end_terminal", Value::Null),
        ("witnesses", json!(["connection"])),
        ("attachments", json!(1)),
        ("take_overs", json!(0)),
        ("compactions", json!(0)),
        ("repository_roots", json!([head])),
        ("worktree", json!("main")),
        ("branch", json!("main")),
        ("start_head", json!(head)),
        ("head", json!(head)),
        ("head_tree", json!(tree)),
        ("commits", json!([])),
        ("changed_files", json!([])),
        ("resumes", Value::Null),
        ("clock_adjusted", json!(false)),
        ("redactions", json!(0)),
    ] {
        assert_eq!(record[field], value, "{field}");
    }
    assert!(before <= record.time("started_at") && record.time("started_at") <= record.time("closed_at"));
    assert!(record.time("closed_at") <= now_ms());
    for part in [
        "# Session on `main`",
        "**Closed on purpose:**",
        "`anything 0`, in the conversation `my-thread`",
        "## Commits",
        "## Files",
    ] {
        assert!(record.body.contains(part), "{part}: {}", record.body);
    }
    assert_eq!(world.episodes(), json!({ "open": 0, "detached": 0, "episodes": [] }));
}

/// Where a server says that it answers, and episodes would be.
const STATE: &str = "work/.git/majordomus";

#[test]
fn initialize_alone_opens_nothing_and_writes_nothing() {
    let world = World::new();
    let (before, status) = (files(&world.folder(), &[STATE]), world.status());
    let mut client = world.client();
    client.ask("tools/list", &json!({}));
    client.ping();
    assert_eq!(client.done("majordomus_episodes", &json!({}))["episodes"], json!([]));
    client.done("majordomus_peers", &json!({}));
    client.done("majordomus_announce", &json!({ "intent": "look around" }));
    assert_eq!(files(&world.folder(), &[STATE]), before, "while it is connected");
    assert!(world.nothing_recorded());
    let left = client.lose();
    assert_eq!((left.code, left.err.as_str()), (Some(0), ""));
    assert_eq!(files(&world.folder(), &[STATE]), before, "after it has gone");
    assert_eq!(world.status(), status);
    assert!(world.nothing_recorded());
}

#[test]
fn attach_reaches_the_store_in_the_common_git_directory() {
    let world = World::new();
    let status = world.status();
    let mut client = world.client();
    let attached = client.attach("my-thread");
    assert_eq!((&attached["resumed"], &attached["recorded"]), (&json!(false), &json!(true)), "{attached}");
    assert_eq!((&attached["episode"]["state"], &attached["reattach_grace_seconds"]), (&json!("open"), &json!(900)));

    let [log] = world.logs("open").try_into().expect("one open log");
    let name = log.file_stem().and_then(|name| name.to_str()).expect("a log has a name");
    let hash = name.strip_prefix("my-thread-").unwrap_or_else(|| panic!("{name}"));
    assert!(hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()), "{hash}");
    let text = fs::read_to_string(&log).expect("a log can be read");
    let lines: Vec<Value> = text
        .split_terminator('\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_str(line).expect("a line is JSON"))
        .collect();
    assert_eq!(lines.len(), 1, "{text}");
    let start = &lines[0];
    for (field, value) in [
        ("v", json!(1)),
        ("kind", json!("start")),
        ("time", attached["episode"]["opened_at"].clone()),
        ("head", json!(world.git(&["rev-parse", "HEAD"]))),
        ("branch", json!("main")),
        ("witness", json!("connection")),
        ("client", json!("anything 0")),
    ] {
        assert_eq!(start[field], value, "{field}");
    }
    assert_eq!(start["opened"]["session_id"], session_id(&attached));
    for (path, mode) in [(&log, 0o600), (&world.state(), 0o700), (&world.state().join("open"), 0o700)] {
        let found = fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
        assert_eq!(found, mode, "{}", path.display());
    }
    assert_eq!(world.status(), status, "serving changes nothing that git sees");
}

#[test]
fn a_lost_connection_detaches_and_never_closes() {
    let world = World::new();
    let mut client = world.client();
    client.attach("my-thread");
    let listed = world.episodes();
    assert_eq!((&listed["open"], &listed["detached"]), (&json!(1), &json!(0)), "{listed}");
    assert_eq!(client.lose().code, Some(0));
    let listed = world.episodes();
    assert_eq!((&listed["open"], &listed["detached"]), (&json!(0), &json!(1)), "{listed}");
    assert_eq!(state_of(&listed, "my-thread"), "detached");
    assert_eq!(world.records().len(), 0);
    assert_eq!(world.logs("open").len(), 1);
}

#[test]
fn a_comeback_under_the_same_id_gets_its_own_episode() {
    let world = World::new();
    let mut first = world.client();
    let opened = first.attach("my-thread");
    drop(first.lose());

    let mut second = world.client();
    let again = second.attach("my-thread");
    assert_eq!(again["resumed"], true, "{again}");
    assert_eq!(session_id(&again), session_id(&opened));
    assert_eq!(again["episode"]["opened_at"], opened["episode"]["opened_at"]);
    assert_eq!(again["episode"]["attachments"], 2);
    let kept = format!("session {} kept, open since ", session_id(&opened));
    assert_eq!(reported(&again), kept + opened["episode"]["opened_at"].as_str().unwrap());
    assert_eq!(world.logs("open").len(), 1);
    second.detach();
    assert_eq!(second.lose().code, Some(0));
    let record = world.record();
    assert_eq!((record.text("session_id"), &record["attachments"]), (session_id(&opened).as_str(), &json!(2)));
    assert_eq!(record["take_overs"], 0);
}

#[test]
fn kill_9_leaves_it_open_to_be_resumed_and_the_comeback_opens_no_second_one() {
    let world = World::new();
    let mut first = world.client();
    let opened = first.attach("my-thread");
    first.kill9();
    assert_eq!(state_of(&world.episodes(), "my-thread"), "detached");
    assert_eq!(world.records().len(), 0);

    let mut second = world.client();
    let again = second.attach("my-thread");
    assert_eq!(session_id(&again), session_id(&opened));
    assert_eq!((&again["resumed"], &again["episode"]["attachments"]), (&json!(true), &json!(2)), "{again}");
    assert_eq!(again["episode"]["opened_at"], opened["episode"]["opened_at"]);
    let closed = second.detach();
    assert_eq!((&closed["recorded"], &closed["episode"]["attachments"]), (&json!(true), &json!(2)), "{closed}");
    let record = world.record();
    assert_eq!((record.text("session_id"), &record["attachments"]), (session_id(&opened).as_str(), &json!(2)));
    assert_eq!(record.end(), ("closed", "detach", "connection"));
}

#[test]
fn ten_kills_and_comebacks_are_one_episode_with_eleven_attachments() {
    let world = World::new();
    let mut dice = Dice::new(200);
    for round in 1..=10 {
        let mut client = world.client();
        assert_eq!(client.attach("my-thread")["episode"]["attachments"], round);
        for _ in 0..dice.below(30) {
            client.send(&json!({ "jsonrpc": "2.0", "id": "unread", "method": "ping" }));
        }
        client.kill9();
    }
    let mut client = world.client();
    assert_eq!(client.attach("my-thread")["episode"]["attachments"], 11);
    client.detach();
    let record = world.record();
    assert_eq!((&record["attachments"], &record["take_overs"]), (&json!(11), &json!(0)));
    assert!(world.logs("open").is_empty());
}

#[test]
fn a_kill_in_the_middle_of_an_attach_leaves_nothing_twice() {
    let world = World::new();
    let mut dice = Dice::new(90);
    for _ in 0..20 {
        let mut client = world.server(&["mcp"]);
        client.write(format!("{INITIALIZE}\n{}", attach_line("my-thread")).as_bytes());
        // Between nothing and both answers have been seen when it is killed.
        for _ in 0..dice.below(3) {
            client.line();
        }
        client.kill9();
        assert!(world.logs("open").len() <= 1, "one key, one log");
    }
    let mut client = world.client();
    client.attach("my-thread");
    client.detach();
    let record = world.record();
    assert!((1..=21).contains(&record["attachments"].as_u64().unwrap()), "{}", record["attachments"]);
    assert!(world.logs("open").is_empty());
}

#[test]
fn only_commits_of_the_session_are_listed() {
    let world = World::new();
    world.commit("before.txt", "Before the session");
    world.git(&["checkout", "--quiet", "-b", "other"]);
    world.commit("elsewhere.txt", "On another branch, before the session");
    world.git(&["checkout", "--quiet", "main"]);
    let start = world.git(&["rev-parse", "HEAD"]);

    let mut client = world.client();
    client.attach("my-thread");
    let during = world.commit("during.txt", "During the session");
    world.git(&["checkout", "--quiet", "other"]);
    client.detach();
    world.commit("after.txt", "After the session");

    let record = world.record();
    assert_eq!(record.subjects(), ["During the session"]);
    let commit = &record["commits"][0];
    assert_eq!(
        (commit["sha"].as_str(), commit["tree"].as_str()),
        (Some(during.as_str()), Some(world.git(&["rev-parse", &format!("{during}^{{tree}}")]).as_str()),)
    );
    assert!(commit["patch_id"].is_string(), "{commit}");
    assert_eq!(record["changed_files"], json!(["during.txt"]));
    assert_eq!((record.text("branch"), record.text("start_head")), ("other", start.as_str()));
    assert!(record.path.ends_with("--other.md"), "{}", record.path);
}

#[test]
fn what_the_person_and_the_model_write_is_in_no_file() {
    let world = World::new();
    let words = ["graft the pear branch", "Grafted", "Two modules were renamed"];
    let start = provider_payload("SessionStart.startup", &json!({}));
    world.hook("start", &start);
    for name in ["UserPromptSubmit", "Stop", "PostCompact.manual", "PreToolUse", "PostToolUse"] {
        let payload = provider_payload(name, &json!({}));
        assert!(words.iter().any(|word| payload.to_string().contains(word)) || name.ends_with("ToolUse"), "{name}");
        world.hook("activity", &payload);
    }
    let open = files(&world.folder(), &[]);
    world.hook("end", &provider_payload("SessionEnd.prompt_input_exit", &json!({})));
    let ended = files(&world.folder(), &[]);
    assert_eq!(world.records().len(), 1);
    for word in words {
        assert_eq!((holds(&open, word), holds(&ended, word)), (Vec::new(), Vec::new()), "{word}");
    }
    assert!(!holds(&ended, start["session_id"].as_str().unwrap()).is_empty(), "what is looked for can be found");
}
