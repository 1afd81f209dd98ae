//! `majordomus capture session` as a provider's hook runs it: one line on standard error, exit 0 whatever comes.

use std::io::Write;
use std::time::Duration;

use majordomus_e2e::{Running, World, feed, majordomus, milliseconds, now_ms, payload_of, provider_payload};
use serde_json::{Value, json};

const ID: &str = "2f6d1c58-0b7e-4f8a-9d35-7be1a4c09e21";

/// Matches a line against words of which `*` stands for any one, and returns those.
fn words<'a>(line: &'a str, pattern: &str) -> Vec<&'a str> {
    let (words, wanted): (Vec<&str>, Vec<&str>) = (line.split(' ').collect(), pattern.split(' ').collect());
    assert_eq!(words.len(), wanted.len(), "{line:?} is not {pattern:?}");
    let any = words.into_iter().zip(wanted).filter(|(word, wanted)| {
        assert!(*wanted == "*" || word == wanted, "{line:?} is not {pattern:?}");
        *wanted == "*"
    });
    any.map(|(word, _)| word).collect()
}

#[test]
fn each_event_reports_the_line_of_its_kind() {
    let world = World::new();
    let head = world.git(&["rev-parse", "--short=7", "HEAD"]);
    let payload = |name: &str| provider_payload(name, &json!({}));

    let line = world.hook("start", &payload("SessionStart.startup"));
    let opened = words(&line, &format!("session * opened at * (head {head})"));
    let (session, at) = (opened[0], opened[1]);
    assert!(session.len() == 25 && session.starts_with("s-"), "{session}");
    assert!(milliseconds(at) <= now_ms());
    assert_eq!(
        world.hook("start", &payload("SessionStart.resume")),
        format!("session {session} kept, open since {at}")
    );
    assert_eq!(world.hook("compact", &payload("PreCompact.auto")), format!("session {session} marked (compact)"));
    assert_eq!(world.hook("compact", &payload("PreCompact.manual")), format!("session {session} marked (compact)"));
    let compacted =
        feed(&mut world.capture("claude-code", "start"), payload("SessionStart.compact").to_string().as_bytes());
    let line = format!("session {session} kept, open since {at}");
    assert_eq!(
        (compacted.code, compacted.line()),
        (Some(0), line.as_str()),
        "a compaction is a mark inside the episode"
    );
    assert_eq!(compacted.out.lines().count(), 1, "its conversation is told once what it is recorded as: {compacted:?}");
    assert!(compacted.out.contains(session) && compacted.out.contains(ID), "{compacted:?}");
    for name in ["UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "StopFailure", "PostCompact.manual"] {
        assert_eq!(world.hook("activity", &payload(name)), format!("session {session} marked (activity)"), "{name}");
    }
    let listed = world.episodes();
    let episode = &listed["episodes"][0];
    assert_eq!((&episode["state"], &episode["external_id"]), (&json!("open"), &json!(ID)), "{listed}");

    let month = format!("{}/{}", &at[..4], &at[5..7]);
    let path = format!(".ai/repo/sessions/{month}/{session}--main.md");
    let line = world.hook("end", &payload("SessionEnd.prompt_input_exit"));
    assert_eq!(line, format!("episode closed (closed, reason prompt_input_exit) into {path}"));
    assert!(world.path(&path).is_file(), "where there is time, the record is there when the hook ends");
    assert_eq!(
        world.hook("end", &payload("SessionEnd.prompt_input_exit")),
        format!("no open episode for claude-code {ID}; nothing to close"),
    );
    let record = world.record();
    assert_eq!((record.path.as_str(), record.end()), (path.as_str(), ("closed", "prompt_input_exit", "hook")));
    assert_eq!((&record["attachments"], &record["compactions"]), (&json!(2), &json!(2)), "one start, one resume");
    assert_eq!((record.text("provider"), record.text("external_id")), ("claude-code", ID));
}

#[test]
fn a_start_before_the_first_commit_reports_that_there_is_no_head() {
    let world = World::unborn();
    let line = world.hook("start", &payload_of("SessionStart.startup", "a"));
    words(&line, "session * opened at * (head none)");
}

#[test]
fn only_the_reasons_that_somebody_gives_on_purpose_close() {
    let world = World::new();
    for (name, outcome, reason) in [
        ("SessionEnd.prompt_input_exit", "closed", "prompt_input_exit"),
        ("SessionEnd.clear", "closed", "clear"),
        ("SessionEnd.other", "interrupted", "other"),
        ("SessionEnd.logout", "interrupted", "logout"),
    ] {
        world.hook("start", &payload_of("SessionStart.startup", name));
        world.hook("activity", &payload_of("Stop", name));
        let line = world.hook("end", &payload_of(name, name));
        words(&line, &format!("episode closed ({outcome}, reason {reason}) into *"));
    }
    world.hook("start", &payload_of("SessionStart.startup", "unnamed"));
    let unnamed = provider_payload("SessionEnd.other", &json!({ "session_id": "unnamed", "reason": null }));
    words(&world.hook("end", &unnamed), "episode closed (interrupted, reason unknown) into *");
    let mut outcomes: Vec<_> = world.records().iter().map(|record| record.text("outcome").to_owned()).collect();
    outcomes.sort();
    assert_eq!(outcomes, ["closed", "closed", "interrupted", "interrupted", "interrupted"]);
}

#[test]
fn whatever_the_payload_is_a_hook_exits_0_says_one_line_and_prints_nothing() {
    let world = World::new();
    let deep = "[".repeat(100_000);
    let cases: [(&[u8], &str); 18] = [
        (b"", "the payload is empty"),
        (b" \n\t\r\n", "the payload is empty"),
        (b"null", "the payload is null"),
        (b"[]", "the payload is an array"),
        (b"\"text\"", "the payload is a string"),
        (b"17", "the payload is a number"),
        (b"not json", "the payload is not JSON"),
        (b"{\"session_id\": \"a\"", "in the middle of its JSON value"),
        (b"{\"session_id\": \"a", "in the middle of its JSON value"),
        (b"{\"session_id\": ", "in the middle of its JSON value"),
        (b"{}", "the payload names no session"),
        (b"{\"session_id\": null}", "the payload names no session"),
        (b"{\"session_id\": \"\"}", "it is empty"),
        (b"{\"session_id\": {\"a\": 1}}", "it is an object"),
        (b"{\"session_id\": \"a\", \"session_id\": \"b\"}", "given twice"),
        (b"{\"session_id\": \"a\\u0000b\"}", "control character"),
        (b"\xff\xfe\x00", "the payload is not JSON"),
        (deep.as_bytes(), ""),
    ];
    for event in ["start", "compact", "activity", "end"] {
        for (payload, why) in cases {
            let said = feed(&mut world.capture("claude-code", event), payload);
            let line = said.hook();
            let shown = String::from_utf8_lossy(&payload[..payload.len().min(40)]);
            assert!(line.starts_with("no episode was recorded: "), "{event} {shown}: {line}");
            assert!(line.contains(why), "{event} {shown}: {line}");
        }
    }
    assert!(!world.state().join("open").exists() && world.records().is_empty());
}

#[test]
fn a_payload_of_another_event_is_refused_by_name() {
    let world = World::new();
    let line = world.hook("start", &payload_of("SessionEnd.clear", "a"));
    assert!(line.starts_with("no episode was recorded: ") && line.contains("SessionEnd"), "{line}");
    assert!(world.logs("open").is_empty());
}

#[test]
fn a_renamed_field_is_never_one_key_for_all_sessions() {
    let world = World::new();
    for field in ["sessionid", "conversation_id", "sessionID", "thread_id"] {
        let mut payload = provider_payload("SessionStart.startup", &json!({ "session_id": null }));
        payload[field] = json!("abc");
        let line = world.hook("start", &payload);
        assert!(line.contains("names no session") && line.contains(field), "{line}");
        assert!(!line.contains("abc"), "no value of the payload is repeated: {line}");
    }
    assert!(world.logs("open").is_empty());
}

#[test]
fn a_wrong_command_line_under_capture_exits_1_and_never_2() {
    let world = World::new();
    for arguments in [
        &["capture"][..],
        &["capture", "sessions"],
        &["capture", "session"],
        &["capture", "session", "--provider", "claude-code"],
        &["capture", "session", "--event", "start"],
        &["capture", "session", "--provider", "claude-code", "--event", "begin"],
        &["capture", "session", "--provider", "claude-code", "--event", "start", "--wrong"],
        &["capture", "session", "--provider", "claude-code", "--event", "start", "extra"],
        &["capture", "session", "--provider", "claude-code", "--event", "start", "--grace-seconds", "0"],
        &["capture", "session", "--provider", "claude-code", "--event", "start", "--grace-seconds", "soon"],
        &["capture", "status", "--wrong"],
    ] {
        let said = world.run(arguments);
        assert_eq!((said.code, said.out.as_str()), (Some(1), ""), "{arguments:?}: {said:?}");
        assert!(!said.err.is_empty(), "{arguments:?}");
    }
    assert_eq!(world.run(&["capture", "--help"]).code, Some(0));
}

#[test]
fn what_only_the_environment_got_wrong_is_no_wrong_command_line() {
    let world = World::new();
    let mut command = world.capture("claude-code", "start");
    command.env("MAJORDOMUS_GRACE_SECONDS", "soon").env("MAJORDOMUS_IDLE_SECONDS", "-1");
    let said = feed(&mut command, payload_of("SessionStart.startup", "a").to_string().as_bytes());
    assert_eq!((said.code, said.out.as_str()), (Some(0), ""), "{said:?}");
    assert!(said.line().starts_with("session s-"), "{said:?}");
    assert_eq!(world.logs("open").len(), 1);
}

#[test]
fn an_unknown_provider_is_said_and_not_recorded() {
    let world = World::new();
    let said = feed(&mut world.capture("claude", "start"), b"{\"session_id\": \"a\"}");
    assert!(said.hook().starts_with("no episode was recorded: claude is not a declared provider"), "{said:?}");
    assert!(!world.state().exists());
}

#[test]
fn a_connections_own_payload_goes_through_the_same_command() {
    let world = World::unborn();
    let run = |event, payload: Value| {
        feed(&mut world.capture("generic", event), payload.to_string().as_bytes()).hook().to_owned()
    };
    let line = run("start", json!({ "session_id": "my-thread", "source": "attach" }));
    let session = words(&line, "session * opened at * (head none)")[0].to_owned();
    let line = run("start", json!({ "session_id": "my-thread", "source": "attach" }));
    assert_eq!(words(&line, "session * kept, open since *")[0], session);
    let line = run("end", json!({ "session_id": "my-thread", "reason": "detach" }));
    words(&line, "episode closed (closed, reason detach) into *");
    run("start", json!({ "session_id": "other", "source": "attach" }));
    let line = run("end", json!({ "session_id": "other", "reason": "shutdown" }));
    words(&line, "episode closed (interrupted, reason shutdown) into *");
    assert_eq!(world.records().len(), 2);
}

#[test]
fn a_parent_that_keeps_the_input_open_does_not_keep_the_hook() {
    let world = World::new();
    // A hook that waits for more than the first whole value needs at least its idle limit of a second, every time.
    let quick = (0..5).any(|nr| {
        let mut hook = Running::start(&mut world.capture("claude-code", "start"));
        let mut input = hook.input.take().unwrap();
        input.write_all(payload_of("SessionStart.startup", &nr.to_string()).to_string().as_bytes()).unwrap();
        let quick = hook.ended_within(Duration::from_millis(700));
        assert!(hook.wait().hook().contains(" opened at "));
        drop(input);
        quick
    });
    assert!(quick);
}

#[test]
fn a_parent_that_says_half_and_keeps_the_input_open_is_given_up() {
    let world = World::new();
    for half in [&b"{\"session_id\": \"a\", \"cw"[..], b""] {
        let mut hook = Running::start(&mut world.capture("claude-code", "start"));
        let mut input = hook.input.take().unwrap();
        input.write_all(half).unwrap();
        assert!(hook.ended_within(Duration::from_secs(3)), "it waits for ever");
        assert!(hook.wait().hook().starts_with("no episode was recorded: the payload "));
        drop(input);
    }
}

#[test]
fn a_payload_that_comes_byte_by_byte_is_read_to_its_end() {
    let world = World::new();
    let payload = payload_of("SessionStart.startup", "slow").to_string();
    let mut hook = Running::start(&mut world.capture("claude-code", "start"));
    let mut input = hook.input.take().unwrap();
    for byte in payload.bytes() {
        // It must not have made up its mind before the last byte.
        assert!(!hook.ended_within(Duration::from_millis(3)));
        input.write_all(&[byte]).unwrap();
    }
    let said = hook.wait();
    assert!(said.hook().starts_with("session s-"), "{said:?}");
    assert_eq!(world.episodes()["episodes"][0]["external_id"], "slow");
}

#[test]
fn an_empty_a_closed_and_a_terminal_input_are_each_called_empty() {
    let world = World::new();
    let capture = ["capture", "session", "--provider", "claude-code", "--event", "start"];
    assert!(world.run(&capture).hook().contains("the payload is empty"));

    let mut closed = world.program("sh");
    closed.args(["-c", "exec \"$0\" \"$@\" <&-"]).arg(majordomus()).args(capture);
    assert!(Running::start_with(&mut closed).wait().hook().contains("the payload is empty"));

    let flags = rustix::pty::OpenptFlags::RDWR | rustix::pty::OpenptFlags::NOCTTY;
    let Ok(terminal) = rustix::pty::openpt(flags) else { return };
    rustix::pty::unlockpt(&terminal).unwrap();
    let name = rustix::pty::ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();
    let Ok(input) = std::fs::File::options().read(true).write(true).open(name) else { return };
    let said = Running::start_with(world.majordomus(&capture).stdin(input)).wait();
    assert!(said.hook().contains("the payload is empty"), "{said:?}");
    drop(terminal);
}

#[test]
fn two_megabytes_are_taken_even_where_nothing_is_recorded() {
    let world = World::plain();
    let mut big = provider_payload("Stop", &json!({ "last_assistant_message": "x".repeat(2 << 20) }));
    for trailing in [0, 2 << 20] {
        big["trailing"] = json!(trailing);
        let mut bytes = big.to_string().into_bytes();
        bytes.extend(std::iter::repeat_n(b' ', trailing));
        for provider in ["claude-code", "nobody"] {
            let mut hook = Running::start(&mut world.capture(provider, "activity"));
            let written = hook.input.take().unwrap().write_all(&bytes);
            assert!(written.is_ok(), "the agent gets {written:?}");
            assert!(hook.wait().hook().starts_with("no episode was recorded: "));
        }
    }
}

#[test]
fn two_megabytes_are_taken_even_by_a_wrong_command_line() {
    let world = World::new();
    let mut command = world.majordomus(&["capture", "session", "--provider", "claude-code", "--event", "begin"]);
    let mut hook = Running::start(&mut command);
    let written = hook.input.take().unwrap().write_all(&[b'x'; 2 << 20]);
    assert!(written.is_ok(), "the agent gets {written:?}");
    assert_eq!(hook.wait().code, Some(1));
}

#[test]
fn two_megabytes_are_taken_and_recorded_in_a_repository() {
    let world = World::new();
    world.hook("start", &payload_of("SessionStart.startup", "a"));
    let fields = json!({ "session_id": "a", "last_assistant_message": "x".repeat(2 << 20) });
    let big = provider_payload("Stop", &fields).to_string();
    let mut hook = Running::start(&mut world.capture("claude-code", "activity"));
    hook.input.take().unwrap().write_all(big.as_bytes()).unwrap();
    assert!(hook.wait().hook().ends_with("marked (activity)"));
}
