//! Recorded payloads of each provider.

use majordomus_providers::{Adapter, EventKind, Unreadable, find, read};
use serde_json::Value;

use crate::{project_file, project_folder};

pub(crate) mod recorded;
use recorded::{Fixture, RECORDED};

const FOLDER: &str = "test/fixtures/providers";
/// What the person wrote to the agent in the recorded sittings.
const PROMPT: &str = "graft the pear branch";

/// Every recorded payload: its provider, what is expected of it, its text.
pub(crate) fn payloads() -> impl Iterator<Item = (&'static str, &'static Fixture, String)> {
    let files = RECORDED.iter().flat_map(|(id, fixtures)| fixtures.iter().map(move |fixture| (*id, fixture)));
    files.map(|(id, fixture)| (id, fixture, project_file(&format!("{FOLDER}/{id}/{}", fixture.0))))
}

fn folded(name: &str) -> String {
    name.replace(['_', '-'], "").to_ascii_lowercase()
}

/// A payload of Copilot CLI for an event key in camelCase, which names no event.
fn is_unnamed(id: &str, file: &str) -> bool {
    id == "copilot-cli" && !file.contains(".pascal.")
}

#[test]
fn every_payload_gives_its_event_and_no_other() {
    for (id, (file, kind, session, source, reason), payload) in payloads() {
        let provider = find(id).unwrap();
        let at = format!("{id}/{file}");
        let event = read(provider, *kind, payload.as_bytes()).unwrap_or_else(|error| panic!("{at}: {error}"));
        let less = ["gemini-cli/PreCompress.auto.json", "codex/PreCompact.subagent.json"].contains(&at.as_str());
        assert_eq!(event.kind, if less { EventKind::Activity } else { *kind }, "{at}");
        assert_eq!(event.external_id, *session, "{at}");
        let folder = (at != "cursor/sessionStart.no_roots.json").then_some("/home/ines/code/orchard");
        assert_eq!(event.cwd.as_deref(), folder, "{at}");
        // A compaction's cause is what triggered it.
        let said: Value = serde_json::from_str(&payload).unwrap();
        let source = source.or(said["trigger"].as_str().filter(|_| *kind == EventKind::Compact));
        assert_eq!((event.source.as_deref(), event.reason.as_deref()), (source, *reason), "{at}");
        let named = file.split('.').next().filter(|_| !is_unnamed(id, file));
        assert_eq!(event.native_event.as_deref().map(folded), named.map(folded), "{at}");
        assert_eq!(event.connection, None, "{at}");

        for other in EventKind::ALL.into_iter().filter(|other| other != kind) {
            let outcome = read(provider, other, payload.as_bytes());
            if is_unnamed(id, file) {
                assert!(outcome.is_ok(), "{at} as {other}: only the command line says what it is");
                continue;
            }
            let Err(Unreadable::OtherEvent { asked, serves, .. }) = outcome else {
                panic!("{at} as {other}: {outcome:?}")
            };
            assert_eq!((asked, serves), (other, *kind), "{at}");
        }
    }
}

#[test]
fn every_fixture_is_tested_and_every_known_event_has_one() {
    let providers: Vec<_> = RECORDED.iter().map(|(id, _)| *id).collect();
    let mut sorted = providers.clone();
    sorted.sort_unstable();
    assert_eq!(project_folder(FOLDER), sorted);
    for (id, fixtures) in RECORDED {
        let tested: Vec<_> = fixtures.iter().map(|(file, ..)| *file).collect();
        assert_eq!(project_folder(&format!("{FOLDER}/{id}")), tested);
        let Adapter { start_events, end_events, compact_events, activity_events, .. } =
            find(id).unwrap().adapter.unwrap();
        for event in [start_events, end_events, compact_events, activity_events].into_iter().copied().flatten() {
            let has_one = |file: &&str| file.split('.').next().is_some_and(|name| folded(name) == folded(event));
            assert!(tested.iter().any(has_one), "no fixture of {id}'s {event}");
        }
    }
}

#[test]
fn a_name_in_another_casing_is_the_same_event() {
    for (id, (file, kind, session, ..), payload) in payloads() {
        let mut payload: Value = serde_json::from_str(&payload).unwrap();
        let key = if payload.get("hookEventName").is_some() { "hookEventName" } else { "hook_event_name" };
        let Some(name) = payload.get(key).and_then(Value::as_str).map(str::to_owned) else { continue };
        let snake: String = name
            .char_indices()
            .flat_map(|(at, char)| {
                (at > 0 && char.is_uppercase()).then_some('_').into_iter().chain(char.to_lowercase())
            })
            .collect();
        for spelled in [snake.clone(), snake.replace('_', "-"), name.to_uppercase(), name.to_lowercase()] {
            payload[key] = spelled.clone().into();
            let provider = find(id).unwrap();
            let event = read(provider, *kind, payload.to_string().as_bytes());
            let event = event.unwrap_or_else(|error| panic!("{id}/{file} as {spelled}: {error}"));
            assert_eq!(
                (event.external_id.as_str(), event.native_event),
                (*session, Some(spelled.clone())),
                "{id}/{file}"
            );
            for other in EventKind::ALL.into_iter().filter(|other| other != kind) {
                let outcome = read(provider, other, payload.to_string().as_bytes());
                assert!(matches!(outcome, Err(Unreadable::OtherEvent { .. })), "{id}/{file} as {spelled}: {outcome:?}");
            }
        }
    }
}

#[test]
fn a_renamed_id_is_reported_with_what_is_there_instead() {
    for (id, (file, kind, ..), payload) in payloads() {
        let adapter = find(id).unwrap().adapter.unwrap();
        let renamed = adapter
            .session_id
            .iter()
            .fold(payload, |payload, name| payload.replace(&format!("\"{name}\""), "\"chat\""));
        let error = read(find(id).unwrap(), *kind, renamed.as_bytes()).unwrap_err();
        let Unreadable::NoId { keys_present, looked_for } = &error else { panic!("{id}/{file}: {error}") };
        assert_eq!(*looked_for, adapter.session_id);
        assert!(keys_present.names().contains(&"chat".to_owned()), "{id}/{file}: {keys_present}");
        let line = error.to_string();
        assert!(line.contains("chat") && !line.contains('\n') && !line.contains(PROMPT), "{line}");
    }
}

#[test]
fn the_persons_prompt_is_in_no_event() {
    let mut met = Vec::new();
    for (id, (file, kind, ..), payload) in payloads() {
        let event = read(find(id).unwrap(), *kind, payload.as_bytes()).unwrap();
        assert!(!format!("{event:?}").contains(PROMPT), "{id}/{file}");
        met.extend(payload.contains(PROMPT).then_some(id));
    }
    met.dedup();
    // Grok's field for it is not known.
    assert_eq!(met, ["claude-code", "codex", "gemini-cli", "cursor", "copilot-cli", "vscode-copilot"]);
}

#[test]
fn a_payload_that_is_cut_anywhere_is_truncated_and_says_nothing_of_its_text() {
    for (id, (file, kind, ..), payload) in payloads() {
        let whole = payload.trim_end();
        for end in 1..whole.len() {
            let error = read(find(id).unwrap(), *kind, &whole.as_bytes()[..end]).unwrap_err();
            assert_eq!(error, Unreadable::Truncated { bytes: end }, "{id}/{file}");
            assert!(!error.to_string().contains("pear"), "{error}");
        }
    }
}
