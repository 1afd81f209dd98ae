use crate::{EpisodeSource, EventKind, HookEvent, IdProblem, PromptSource, Provider, Unreadable, find, read};

mod id;

fn claude(kind: EventKind, payload: impl AsRef<[u8]>) -> Result<HookEvent, Unreadable> {
    read(find("claude-code").unwrap(), kind, payload.as_ref())
}

fn start(payload: impl AsRef<[u8]>) -> Result<HookEvent, Unreadable> {
    claude(EventKind::Start, payload)
}

fn stub(episode: EpisodeSource) -> Provider {
    Provider {
        id: "stub",
        title: "Stub",
        episode,
        episode_evidence: "",
        prompts: PromptSource::None,
        prompts_evidence: "",
        ends_evidence: "",
        deliberate: &[],
        finished: &[],
        switch: &[],
        late_end: false,
        idle_seconds: 1,
        programs: &[],
        folders: &[],
        limits: &[],
        identity: None,
        mcp: None,
        signs: None,
        adapter: None,
    }
}

#[test]
fn empty_truncated_invalid_and_other_values_are_told_apart() {
    for empty in ["", " ", "\r\n\t", "\u{feff}", "\u{feff} \n"] {
        assert_eq!(start(empty), Err(Unreadable::Empty), "{empty:?}");
    }
    for truncated in
        ["{", "{\"session_id\": \"a", "{\"session_id\": \"a\"", "{\"session_id\": \"a\",", "[1,", "\"abc", "tru"]
    {
        assert_eq!(start(truncated), Err(Unreadable::Truncated { bytes: truncated.len() }), "{truncated:?}");
    }
    for invalid in
        ["hello", "{]", "{'session_id': 'a'}", "{\"session_id\": \"a\",}", "{\"session_id\": a}", "<xml/>", "\0", "[}"]
    {
        assert!(matches!(start(invalid), Err(Unreadable::Invalid { .. })), "{invalid:?} {:?}", start(invalid));
    }
    let others = [
        ("[]", "an array"),
        ("\"a\"", "a string"),
        ("7", "a number"),
        ("-0.5", "a number"),
        ("true", "a boolean"),
        ("null", "null"),
    ];
    for (payload, found) in others {
        assert_eq!(start(payload), Err(Unreadable::NotAnObject { found }));
    }
}

#[test]
fn an_invalid_payload_is_reported_with_its_place_and_without_its_text() {
    let error = claude(EventKind::Activity, "{\"session_id\": \"a\",\n \"prompt\": \"my secret\" oops}").unwrap_err();
    let Unreadable::Invalid { line: 2, column: 24, fault } = &error else { panic!("{error:?}") };
    assert!(!fault.contains("line"), "{fault}");
    assert!(!error.to_string().contains("secret"), "{error}");
}

#[test]
fn only_the_first_value_counts_and_a_byte_order_mark_does_not() {
    for payload in [
        "\u{feff}{\"session_id\":\"a\"}",
        "{\"session_id\":\"a\"}{\"session_id\":\"b\"}",
        " {\"session_id\":\"a\"}\0junk",
    ] {
        assert_eq!(start(payload).unwrap().external_id, "a");
    }
}

#[test]
fn bytes_that_are_no_character_elsewhere_do_not_cost_the_event() {
    let payload = b"{\"\xff\": 1, \"\\ud800\": 2, \"note\": \"\xc3\", \"cwd\": \"/src/\xe9\", \"reason\": \"\\ud800\", \"session_id\": \"a\"}";
    let event = start(payload).unwrap();
    assert_eq!((event.external_id.as_str(), event.cwd.as_deref(), event.reason), ("a", Some("/src/\u{fffd}"), None));
}

#[test]
fn a_provider_that_offers_nothing_has_no_events() {
    let refused = |episode| read(&stub(episode), EventKind::Start, br#"{"session_id": "a"}"#).unwrap_err();
    assert_eq!(refused(EpisodeSource::None), Unreadable::NotOffered { provider: "stub" });
    let error = refused(EpisodeSource::Hooks);
    assert_eq!(error, Unreadable::Unadapted { provider: "stub" });
    assert!(error.to_string().contains("stub") && !error.to_string().contains('\n'), "{error}");
}

#[test]
fn another_event_than_the_asked_one_is_refused_and_says_which_it_is() {
    let named = |name: &str| format!(r#"{{"session_id": "a", "hook_event_name": "{name}"}}"#);
    let error = start(named("SessionEnd")).unwrap_err();
    let expected =
        Unreadable::OtherEvent { asked: EventKind::Start, found: "SessionEnd".to_owned(), serves: EventKind::End };
    assert_eq!(error, expected);
    assert!(error.to_string().contains("--event end"), "{error}");
    assert!(matches!(claude(EventKind::Activity, named("SessionEnd")), Err(Unreadable::OtherEvent { .. })));
    assert!(matches!(claude(EventKind::Compact, named("SessionStart")), Err(Unreadable::OtherEvent { .. })));
    assert!(matches!(claude(EventKind::End, named("Stop")), Err(Unreadable::OtherEvent { .. })));
}

#[test]
fn an_event_that_nobody_knows_is_what_the_settings_say() {
    for name in ["Tomorrow", "Session Start", "", "a\\u001b[2J\\n", "\u{fffd}"] {
        for kind in EventKind::ALL {
            let event = claude(kind, format!(r#"{{"session_id": "a", "hook_event_name": "{name}"}}"#)).unwrap();
            assert_eq!((event.kind, event.native_event.is_none()), (kind, name.is_empty()), "{name:?}");
        }
    }
    let long = format!(r#"{{"session_id": "a", "hook_event_name": "{}"}}"#, "Session".repeat(100));
    assert_eq!(start(long).unwrap().native_event.unwrap().chars().count(), 256);
}

#[test]
fn nothing_needs_a_named_event() {
    for kind in EventKind::ALL {
        for unnamed in [
            r#"{"session_id": "a"}"#,
            r#"{"session_id": "a", "hook_event_name": ""}"#,
            r#"{"session_id": "a", "hook_event_name": {}}"#,
        ] {
            assert_eq!(claude(kind, unnamed).unwrap().native_event, None);
        }
    }
}

#[test]
fn what_happens_inside_a_subagent_is_activity() {
    let inside =
        |name: &str, agent: &str| format!(r#"{{"session_id": "a", "hook_event_name": "{name}", "agent_id": {agent}}}"#);
    let asked =
        [(EventKind::Start, "SessionStart"), (EventKind::End, "SessionEnd"), (EventKind::Compact, "PreCompact")];
    for (kind, name) in asked {
        assert_eq!(claude(kind, inside(name, r#""a7f3c2""#)).unwrap().kind, EventKind::Activity, "{name}");
        assert_eq!(claude(kind, inside(name, "7")).unwrap().kind, EventKind::Activity, "{name}");
        for no_agent in ["null", r#""""#, "{}"] {
            assert_eq!(claude(kind, inside(name, no_agent)).unwrap().kind, kind, "{name} {no_agent}");
        }
    }
}

#[test]
fn a_compaction_that_discards_nothing_is_activity() {
    let gemini =
        |payload: &str| read(find("gemini-cli").unwrap(), EventKind::Compact, payload.as_bytes()).unwrap().kind;
    let claude = |payload: &str| claude(EventKind::Compact, payload).unwrap().kind;
    for (trigger, kind) in [
        (r#", "trigger": "manual""#, EventKind::Compact),
        (r#", "trigger": "auto""#, EventKind::Activity),
        (r#", "trigger": "tomorrow""#, EventKind::Activity),
        (r#", "trigger": null"#, EventKind::Activity),
        ("", EventKind::Activity),
    ] {
        let payload = format!(r#"{{"session_id": "a", "hook_event_name": "PreCompress"{trigger}}}"#);
        assert_eq!(gemini(&payload), kind, "{payload}");
        assert_eq!(claude(&payload.replace("PreCompress", "PreCompact")), EventKind::Compact, "{payload}");
    }
}

#[test]
fn the_folder_is_the_first_text_of_a_list_and_an_empty_list_says_nothing() {
    let cursor = |payload: &str| read(find("cursor").unwrap(), EventKind::Start, payload.as_bytes()).unwrap().cwd;
    for (roots, cwd) in [
        (r#"["/src/a", "/src/b"]"#, Some("/src/a")),
        (r#"[null, 7, {"a": "b"}, "/src/c"]"#, Some("/src/c")),
        (r#""/src/d""#, Some("/src/d")),
        (r#"["\ud800", "/src/b"]"#, Some("/tmp")),
        ("[]", Some("/tmp")),
        ("[[\"/src\"]]", Some("/tmp")),
        ("null", Some("/tmp")),
        ("{}", None),
    ] {
        for payload in [
            format!(r#"{{"conversation_id": "a", "workspace_roots": {roots}, "cwd": "/tmp"}}"#),
            format!(r#"{{"cwd": "/tmp", "workspace_roots": {roots}, "conversation_id": "a"}}"#),
        ] {
            assert_eq!(cursor(&payload).as_deref(), cwd, "{payload}");
        }
    }
}

#[test]
fn a_connections_payload_needs_no_adapter_and_names_no_folder() {
    let generic = find("generic").unwrap();
    let payload = br#"{"session_id": "thread-7", "source": "attach", "connection": "c0ffee", "cwd": "/etc", "hook_event_name": "SessionEnd"}"#;
    let expected = HookEvent {
        kind: EventKind::Start,
        external_id: "thread-7".to_owned(),
        cwd: None,
        source: Some("attach".to_owned()),
        reason: None,
        native_event: None,
        connection: Some("c0ffee".to_owned()),
    };
    assert_eq!(read(generic, EventKind::Start, payload).unwrap(), expected);
    for reason in ["detach", "shutdown", "expired"] {
        let payload = format!(r#"{{"session_id": "thread-7", "reason": "{reason}"}}"#);
        let event = read(generic, EventKind::End, payload.as_bytes()).unwrap();
        assert_eq!((event.reason.as_deref(), event.connection), (Some(reason), None));
    }
    assert_eq!(start(payload.replace(b"SessionEnd", b"SessionStart")).unwrap().connection, None);
}

trait Replace {
    fn replace(&self, from: &[u8], to: &[u8]) -> Vec<u8>;
}

impl Replace for [u8] {
    fn replace(&self, from: &[u8], to: &[u8]) -> Vec<u8> {
        let at = self.windows(from.len()).position(|window| window == from).unwrap();
        [&self[..at], to, &self[at + from.len()..]].concat()
    }
}

#[test]
fn optional_texts_are_passed_on_bounded_and_other_kinds_are_dropped() {
    let event = start(r#"{"session_id": "a", "cwd": "", "source": 7, "reason": ["x"]}"#).unwrap();
    assert_eq!((event.cwd.as_deref(), event.source.as_deref(), event.reason), (Some(""), Some("7"), None));
    let long = "clear".repeat(100);
    let event = claude(EventKind::End, format!(r#"{{"session_id": "a", "reason": "{long}"}}"#)).unwrap();
    assert_eq!(event.reason.unwrap().chars().count(), 256);
    let path = format!("/{}", "d/".repeat(5000));
    assert_eq!(start(format!(r#"{{"session_id": "a", "cwd": "{path}"}}"#)).unwrap().cwd, Some(path));
}

#[test]
fn deep_and_large_fields_that_nobody_asked_for_are_passed_over() {
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    let payload =
        format!(r#"{{"tool_input": {deep}, "blob": "{}", "session_id": "a", "cwd": {deep}}}"#, "x".repeat(2 << 20));
    let event = claude(EventKind::Activity, payload).unwrap();
    assert_eq!((event.external_id.as_str(), event.cwd), ("a", None));
    let object = format!("{}1{}", "{\"a\":".repeat(100_000), "}".repeat(100_000));
    let expected = Unreadable::BadId { field: "session_id", problem: IdProblem::NotText { found: "an object" } };
    assert_eq!(start(format!("{{\"session_id\": {object}}}")), Err(expected));
}
