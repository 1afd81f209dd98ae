//! Recorded payloads of each provider.

use majordomus_providers::{EventKind, Unreadable, find, read};

use crate::{project_file, project_folder};

const FOLDER: &str = "test/fixtures/providers/claude-code";
const FIRST: &str = "2f6d1c58-0b7e-4f8a-9d35-7be1a4c09e21";
const SECOND: &str = "c81e4d0a-93f2-4b6c-8a17-55d0e2f7b934";

/// File, kind, id, source, reason.
type Fixture = (&'static str, EventKind, &'static str, Option<&'static str>, Option<&'static str>);

const CLAUDE_CODE: &[Fixture] = &[
    ("PostCompact.manual.json", EventKind::Activity, FIRST, None, None),
    ("PostToolUse.json", EventKind::Activity, FIRST, None, None),
    ("PreCompact.auto.json", EventKind::Compact, FIRST, None, None),
    ("PreCompact.manual.json", EventKind::Compact, FIRST, None, None),
    ("PreToolUse.json", EventKind::Activity, FIRST, None, None),
    ("SessionEnd.clear.json", EventKind::End, FIRST, None, Some("clear")),
    ("SessionEnd.logout.json", EventKind::End, FIRST, None, Some("logout")),
    ("SessionEnd.other.json", EventKind::End, FIRST, None, Some("other")),
    ("SessionEnd.prompt_input_exit.json", EventKind::End, FIRST, None, Some("prompt_input_exit")),
    ("SessionEnd.resume.json", EventKind::End, FIRST, None, Some("resume")),
    ("SessionStart.clear.json", EventKind::Start, SECOND, Some("clear"), None),
    ("SessionStart.compact.json", EventKind::Start, FIRST, Some("compact"), None),
    ("SessionStart.resume.json", EventKind::Start, FIRST, Some("resume"), None),
    ("SessionStart.startup.json", EventKind::Start, FIRST, Some("startup"), None),
    ("Stop.json", EventKind::Activity, FIRST, None, None),
    ("StopFailure.json", EventKind::Activity, FIRST, None, None),
    ("UserPromptSubmit.json", EventKind::Activity, FIRST, None, None),
];

#[test]
fn every_claude_code_payload_gives_its_event_and_no_other() {
    let claude = find("claude-code").unwrap();
    for (file, kind, id, source, reason) in CLAUDE_CODE {
        let payload = project_file(&format!("{FOLDER}/{file}"));
        let event = read(claude, *kind, payload.as_bytes()).unwrap_or_else(|error| panic!("{file}: {error}"));
        assert_eq!(event.external_id, *id, "{file}");
        assert_eq!(event.cwd.as_deref(), Some("/home/ines/code/orchard"), "{file}");
        assert_eq!((event.source.as_deref(), event.reason.as_deref()), (*source, *reason), "{file}");
        assert_eq!(event.native_event.as_deref(), file.split('.').next(), "{file}");
        assert_eq!(event.connection, None, "{file}");

        for other in EventKind::ALL.into_iter().filter(|other| other != kind) {
            let error = read(claude, other, payload.as_bytes()).unwrap_err();
            let Unreadable::OtherEvent { asked, serves, .. } = error else { panic!("{file} as {other}: {error}") };
            assert_eq!((asked, serves), (other, Some(*kind)), "{file}");
        }
    }
}

#[test]
fn every_fixture_is_tested_and_every_known_event_has_one() {
    let tested: Vec<_> = CLAUDE_CODE.iter().map(|(file, ..)| *file).collect();
    assert_eq!(project_folder(FOLDER), tested);

    let adapter = find("claude-code").unwrap().adapter.unwrap();
    let known = [adapter.start_events, adapter.end_events, adapter.compact_events, adapter.activity_events].concat();
    for event in known {
        assert!(tested.iter().any(|file| file.split('.').next() == Some(event)), "no fixture of {event}");
    }
}

#[test]
fn a_renamed_id_is_reported_with_what_is_there_instead() {
    let claude = find("claude-code").unwrap();
    for (file, kind, ..) in CLAUDE_CODE {
        let payload = project_file(&format!("{FOLDER}/{file}")).replace("\"session_id\"", "\"thread_id\"");
        let error = read(claude, *kind, payload.as_bytes()).unwrap_err();
        let Unreadable::NoId { keys_present, looked_for } = &error else { panic!("{file}: {error}") };
        assert_eq!(*looked_for, ["session_id"]);
        assert_eq!(keys_present.names()[0], "thread_id", "{file}");
        assert!(error.to_string().contains("thread_id"), "{error}");
    }
}

#[test]
fn the_persons_prompt_is_in_no_event() {
    let payload = project_file(&format!("{FOLDER}/UserPromptSubmit.json"));
    let prompt = "graft the pear branch";
    assert!(payload.contains(prompt));
    let event = read(find("claude-code").unwrap(), EventKind::Activity, payload.as_bytes()).unwrap();
    assert!(!format!("{event:?}").contains(prompt));
}

#[test]
fn a_payload_that_is_cut_anywhere_is_truncated_and_says_nothing_of_its_text() {
    let claude = find("claude-code").unwrap();
    let payload = project_file(&format!("{FOLDER}/UserPromptSubmit.json"));
    let whole = payload.trim_end();
    for end in 1..whole.len() {
        let error = read(claude, EventKind::Activity, &whole.as_bytes()[..end]).unwrap_err();
        assert_eq!(error, Unreadable::Truncated { bytes: end });
        assert!(!error.to_string().contains("pear"), "{error}");
    }
}
