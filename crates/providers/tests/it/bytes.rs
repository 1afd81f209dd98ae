//! Properties over arbitrary bytes and arbitrary JSON.

use majordomus_providers::{EventKind, HookEvent, Scan, Unreadable, all, attribute, find, read, value_end};
use proptest::prelude::*;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};

fn any_value() -> impl Strategy<Value = Value> {
    let text = prop_oneof![".{0,12}", r#"[\\"{}\[\]:, a]{0,12}"#];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_filter("JSON has finite numbers only", |n| n.is_finite()).prop_map(Value::from),
        text.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((text.clone(), inner), 0..6)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// A payload, possibly of JSON, possibly broken in one place.
fn any_payload() -> impl Strategy<Value = Vec<u8>> {
    const FIELDS: &[&str] = &[
        "session_id",
        "sessionId",
        "conversation_id",
        "hookEventName",
        "timestamp",
        "workspace_roots",
        "trigger",
        "agent_id",
        "cwd",
        "source",
        "reason",
        "hook_event_name",
        "connection",
        "cursor_version",
        "prompt",
        "other",
    ];
    const NAMES: &[&str] =
        &["SessionStart", "session_end", "PreCompact", "PreCompress", "Stop", "manual", "new", "a", "\u{fffd}", ""];
    let value = prop_oneof![any_value(), prop::sample::select(NAMES).prop_map(Value::from)];
    let object = prop::collection::vec((prop::sample::select(FIELDS), value), 0..8).prop_map(|pairs| {
        // Written by hand, because a map would drop repeated fields.
        let members: Vec<_> = pairs.iter().map(|(key, value)| format!("{}:{value}", json!(key))).collect();
        format!("{{{}}}", members.join(",")).into_bytes()
    });
    let broken = (object.clone(), any::<prop::sample::Index>(), any::<u8>()).prop_map(|(mut bytes, at, byte)| {
        let at = at.index(bytes.len());
        bytes[at] = byte;
        bytes
    });
    prop_oneof![object, broken, prop::collection::vec(any::<u8>(), 0..64)]
}

/// Feeds `bytes` cut at `cuts`, and returns the end of the value in the whole stream.
fn end_when_cut(bytes: &[u8], cuts: &[prop::sample::Index]) -> Option<usize> {
    let mut places: Vec<_> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    places.push(bytes.len());
    places.sort_unstable();
    let mut state = Scan::default();
    let mut before = 0;
    for place in places {
        if let Some(end) = value_end(&bytes[before..place], &mut state) {
            return Some(before + end);
        }
        before = place;
    }
    None
}

fn keeps_its_promises(outcome: &Result<HookEvent, Unreadable>) -> Result<(), TestCaseError> {
    match outcome {
        Ok(event) => {
            prop_assert!((1..=256).contains(&event.external_id.chars().count()), "{event:?}");
            prop_assert!(
                !event.external_id.contains(|c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')),
                "{event:?}"
            );
            for text in [&event.source, &event.reason, &event.native_event, &event.connection].into_iter().flatten() {
                prop_assert!(text.chars().count() <= 256, "{event:?}");
            }
        }
        Err(error) => {
            let text = error.to_string();
            prop_assert!(!text.contains(char::is_control) && text.chars().count() < 4000, "{text:?}");
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn any_bytes_give_an_event_or_a_reason_and_never_a_panic(payload in any_payload()) {
        for provider in all() {
            for kind in EventKind::ALL {
                keeps_its_promises(&read(provider, kind, &payload))?;
            }
        }
    }

    #[test]
    fn any_bytes_belong_to_whom_they_were_declared_for_or_to_who_runs_the_hook(
        payload in any_payload(),
        set in prop::sample::subsequence(vec!["CURSOR_VERSION", "GROK_HOOK_EVENT", "COPILOT_HOOK_DIR", "CLAUDE_CODE_SESSION_ID"], 0..4),
        value in prop::sample::select(vec!["a", "", "\u{fffd}"]),
    ) {
        let variable = |name: &str| set.contains(&name).then(|| value.to_owned());
        for provider in all() {
            let owner = attribute(provider, &payload, &variable);
            let readers = provider.adapter.map_or(&[][..], |adapter| adapter.also_read_by);
            prop_assert!(std::ptr::eq(owner, provider) || readers.contains(&owner.id), "{} for {}", owner.id, provider.id);
            let stream = [payload.as_slice(), b" {\"cursor_version\": 1}"].concat();
            if value_end(&payload, &mut Scan::default()).is_some() {
                prop_assert_eq!(attribute(provider, &stream, &variable).id, owner.id, "what follows changes nothing");
            }
        }
    }

    #[test]
    fn the_value_ends_where_a_parser_says(
        value in any_value(),
        pretty in any::<bool>(),
        before in "[ \t\r\n]{0,3}",
        mark in any::<bool>(),
        after in prop_oneof![prop::collection::vec(any::<u8>(), 0..24), any_value().prop_map(|v| format!(" {v}").into_bytes())],
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let text = if pretty { serde_json::to_string_pretty(&value).unwrap() } else { value.to_string() };
        let stream = [before.as_bytes(), text.as_bytes(), &after].concat();
        let mut parser = serde_json::Deserializer::from_slice(&stream).into_iter::<IgnoredAny>();
        // Letters right after a number or a word make it another one, or none at all.
        prop_assume!(matches!(parser.next(), Some(Ok(_))));
        let end = parser.byte_offset();
        // At the end of the stream only the reader knows that a number or a word is over.
        let open = end == stream.len() && !matches!(stream[end - 1], b'}' | b']' | b'"');
        let mark: &[u8] = if mark { b"\xEF\xBB\xBF" } else { b"" };
        let stream = [mark, &stream].concat();
        prop_assert_eq!(end_when_cut(&stream, &cuts), (!open).then_some(mark.len() + end));
    }

    #[test]
    fn the_end_does_not_depend_on_how_the_stream_is_cut(
        stream in prop_oneof![any_payload(), "[\\\\\"{}\\[\\] a1\u{feff}]{0,24}".prop_map(String::into_bytes)],
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let whole = end_when_cut(&stream, &[]);
        prop_assert_eq!(end_when_cut(&stream, &cuts), whole);
        let mut state = Scan::default();
        let single = stream.iter().enumerate().find_map(|(at, byte)| value_end(&[*byte], &mut state).map(|end| at + end));
        prop_assert_eq!(single, whole);
    }

    #[test]
    fn what_follows_the_value_changes_nothing(
        id in prop_oneof!["[a-z\u{fffd}]{1,8}", ".{0,8}"],
        others in prop::collection::vec(("[a-z]{1,3}", any_value()), 0..6),
        after in prop::collection::vec(any::<u8>(), 0..24),
    ) {
        let claude = find("claude-code").unwrap();
        let payload = Value::Object([("session_id".to_owned(), Value::from(id))].into_iter().chain(others).collect()).to_string();
        let alone = read(claude, EventKind::Activity, payload.as_bytes());
        let stream = [payload.as_bytes(), &after].concat();
        prop_assert_eq!(value_end(&stream, &mut Scan::default()), Some(payload.len()));
        prop_assert_eq!(&read(claude, EventKind::Activity, &stream), &alone);
    }

    #[test]
    fn an_id_is_read_as_any_parser_reads_it(id in "[^\\pC\u{2028}\u{2029}]{1,64}", ascii in any::<bool>()) {
        let mut text = json!({ "session_id": id }).to_string();
        if ascii {
            let escape = |c: char| c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect::<String>();
            text = text.chars().map(|c| if c.is_ascii() { c.to_string() } else { escape(c) }).collect();
        }
        let event = read(find("claude-code").unwrap(), EventKind::Start, text.as_bytes()).unwrap();
        prop_assert_eq!(event.external_id, id);
    }
}
