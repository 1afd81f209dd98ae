use super::start;
use crate::{EventKind, IdProblem, Unreadable, find, read};

fn id_of(json: &str) -> Result<String, IdProblem> {
    match start(format!("{{\"session_id\": {json}}}")) {
        Ok(event) => Ok(event.external_id),
        Err(Unreadable::BadId { field: "session_id", problem }) => Err(problem),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn a_payload_without_an_id_is_refused_with_the_names_that_are_there() {
    let error = start(r#"{"conversation_id": "x", "cwd": "/tmp", "session_id": null}"#).unwrap_err();
    let Unreadable::NoId { looked_for, keys_present } = &error else { panic!("{error:?}") };
    assert_eq!(*looked_for, ["session_id", "sessionId"]);
    assert_eq!(keys_present.names(), ["conversation_id", "cwd", "session_id"]);
    assert!(error.to_string().contains("conversation_id, cwd, session_id"), "{error}");
    assert!(start("{}").unwrap_err().to_string().contains("no fields"));
    assert!(matches!(start(r#"{"Session_Id": "x", "a": {"session_id": "y"}}"#), Err(Unreadable::NoId { .. })));
}

#[test]
fn an_id_is_kept_verbatim_whatever_it_looks_like() {
    let kept = [
        "../../../tmp/pwn",
        "a/b",
        "C:x",
        "CON",
        ".",
        "-rf",
        "%2e%2e",
        " a ",
        "é",
        "e\u{301}",
        "A",
        "日本語",
        "🦀",
        "\u{fffd}",
        "$(id)",
    ];
    for id in kept {
        assert_eq!(id_of(&format!("\"{id}\"")).unwrap(), id);
    }
    assert_eq!(id_of(r#""..\\..\\x""#).unwrap(), r"..\..\x");
    assert_eq!(id_of("\"\\ud83e\\udd80\"").unwrap(), "🦀");
}

#[test]
fn a_number_is_an_id_as_it_is_written() {
    for number in ["0", "-7", "12345678901234567890123", "12345678901234567890124", "1.0", "1.00", "1e3"] {
        assert_eq!(id_of(number).unwrap(), number);
    }
}

#[test]
fn an_id_of_another_kind_is_refused() {
    for (json, found) in [("true", "a boolean"), ("{}", "an object"), ("[\"a\"]", "an array")] {
        assert_eq!(id_of(json), Err(IdProblem::NotText { found }));
    }
    assert_eq!(id_of("\"\""), Err(IdProblem::Empty));
}

#[test]
fn the_longest_id_is_taken_and_a_longer_one_is_refused_and_not_cut() {
    for char in ["x", "é", "🦀", "\\ud83e\\udd80", "\\u0041"] {
        assert_eq!(id_of(&format!("\"{}\"", char.repeat(256))).unwrap().chars().count(), 256, "{char}");
        assert_eq!(id_of(&format!("\"{}\"", char.repeat(257))), Err(IdProblem::TooLong), "{char}");
    }
    assert_eq!(id_of(&"7".repeat(256)).unwrap().len(), 256);
    assert_eq!(id_of(&"7".repeat(257)), Err(IdProblem::TooLong));
    assert_eq!(id_of(&format!("\"{}\"", "x".repeat(2 << 20))), Err(IdProblem::TooLong));
}

#[test]
fn an_id_of_more_than_one_line_or_with_a_control_character_is_refused() {
    for (json, code) in
        [("\\n", 10), ("\\r", 13), ("\\u0000", 0), ("\\t", 9), ("\\u007f", 127), ("\\u0085", 0x85), ("\\u2028", 0x2028)]
    {
        assert_eq!(id_of(&format!("\"a{json}b\"")), Err(IdProblem::Control { code }), "{json}");
    }
    assert_eq!(id_of("\"\u{2029}\""), Err(IdProblem::Control { code: 0x2029 }));
}

#[test]
fn two_ids_that_only_differ_in_what_is_no_character_never_become_one() {
    assert_eq!(id_of("\"a\\ud800\""), Err(IdProblem::NotUnicode));
    assert_eq!(id_of("\"\\udc00a\""), Err(IdProblem::NotUnicode));
    for byte in [b"\xff".as_slice(), b"\xc3", b"\xed\xa0\x80", b"\xf0\x9f"] {
        let payload = [b"{\"session_id\": \"a".as_slice(), byte, b"\"}"].concat();
        let expected = Unreadable::BadId { field: "session_id", problem: IdProblem::NotUnicode };
        assert_eq!(start(&payload), Err(expected), "{}", payload.escape_ascii());
    }
}

#[test]
fn an_id_that_is_given_twice_must_be_the_same() {
    assert_eq!(start(r#"{"session_id": "a", "session_id": "a"}"#).unwrap().external_id, "a");
    assert_eq!(start(r#"{"session_id": null, "session_id": "a", "session_id": null}"#).unwrap().external_id, "a");
    let expected = Err(Unreadable::BadId { field: "session_id", problem: IdProblem::Twice });
    assert_eq!(start(r#"{"session_id": "a", "session_id": "b"}"#), expected);
    assert_eq!(start(r#"{"session_id": "a", "session_id": "b", "session_id": "b"}"#), expected);
    assert_eq!(start(r#"{"session_id": "a", "cwd": "/x", "cwd": "/y"}"#).unwrap().cwd.as_deref(), Some("/y"));
}

#[test]
fn the_first_of_several_names_is_preferred_and_only_it_must_be_unambiguous() {
    let provider = find("cursor").unwrap();
    assert!(provider.adapter.unwrap().session_id.starts_with(&["conversation_id", "session_id"]));
    let id = |payload: &str| read(provider, EventKind::Start, payload.as_bytes()).map(|event| event.external_id);
    for payload in [
        r#"{"conversation_id": "c", "session_id": "s"}"#,
        r#"{"session_id": "s", "conversation_id": "c"}"#,
        r#"{"session_id": "s", "session_id": "t", "conversation_id": "c"}"#,
        r#"{"conversation_id": "c", "session_id": "s", "session_id": "t"}"#,
    ] {
        assert_eq!(id(payload).as_deref(), Ok("c"), "{payload}");
    }
    assert_eq!(id(r#"{"session_id": "s", "conversation_id": null}"#).as_deref(), Ok("s"));
    let expected = Err(Unreadable::BadId { field: "session_id", problem: IdProblem::Twice });
    assert_eq!(id(r#"{"session_id": "s", "session_id": "t"}"#), expected);
    let expected = Err(Unreadable::BadId { field: "conversation_id", problem: IdProblem::Twice });
    assert_eq!(id(r#"{"conversation_id": "c", "conversation_id": "d", "session_id": "s"}"#), expected);
}
