//! Whose a payload is, over all that were recorded.

use majordomus_providers::{all, attribute, find};

use crate::fixtures::payloads;

fn owner(declared: &str, payload: &str, environment: &[(&str, &str)]) -> &'static str {
    let variable = |name: &str| environment.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
    attribute(find(declared).unwrap(), payload.as_bytes(), &variable).id
}

#[test]
fn a_payload_under_its_own_name_is_its_own() {
    for (id, (file, ..), payload) in payloads() {
        assert_eq!(owner(id, &payload, &[]), id, "{file}");
    }
}

#[test]
fn a_payload_under_the_name_of_whose_hook_it_is_goes_to_who_ran_it() {
    let cases = [
        ("claude-code", &["claude-code", "cursor", "grok", "copilot-cli", "vscode-copilot"][..]),
        ("cursor", &["cursor", "grok"]),
        ("copilot-cli", &["copilot-cli", "vscode-copilot"]),
        ("vscode-copilot", &["vscode-copilot", "copilot-cli"]),
    ];
    for (declared, runners) in cases {
        let readers = find(declared).unwrap().adapter.unwrap().also_read_by;
        assert!(runners.iter().skip(1).all(|id| readers.contains(id)), "{declared}: {readers:?}");
        for (id, (file, ..), payload) in payloads().filter(|(id, ..)| runners.contains(id)) {
            assert_eq!(owner(declared, &payload, &[]), id, "{id}/{file} under {declared}");
        }
    }
}

#[test]
fn no_shape_of_one_fits_a_payload_of_another() {
    // Codex and Gemini CLI run nobody else's hooks; their payloads are tried all the same, against everybody's shapes.
    for declared in all().iter().filter(|provider| provider.adapter.is_some()) {
        for (id, (file, ..), payload) in payloads() {
            let owner = owner(declared.id, &payload, &[]);
            assert!(owner == id || owner == declared.id, "{id}/{file} under {} went to {owner}", declared.id);
        }
    }
}

#[test]
fn a_variable_of_a_hook_tells_what_the_payload_does_not() {
    let payload = r#"{"session_id": "a", "hook_event_name": "SessionStart", "cwd": "/src"}"#;
    assert_eq!(owner("claude-code", payload, &[]), "claude-code");
    for (name, id) in [
        ("CURSOR_VERSION", "cursor"),
        ("GROK_HOOK_EVENT", "grok"),
        ("COPILOT_PROJECT_DIR", "copilot-cli"),
        ("COPILOT_HOOK_DIR", "copilot-cli"),
        ("DEVIN_PROJECT_DIR", "devin-cli"),
        ("GEMINI_SESSION_ID", "claude-code"),
        ("COPILOT_AGENT_SESSION_ID", "claude-code"),
    ] {
        assert_eq!(owner("claude-code", payload, &[(name, "x")]), id, "{name}");
        assert_eq!(
            owner("claude-code", "{\"session_id\"", &[(name, "x")]),
            id,
            "{name}: a torn payload changes nothing"
        );
        assert_eq!(owner("claude-code", payload, &[(name, "")]), "claude-code", "{name} is set to nothing");
        assert_eq!(owner("codex", payload, &[(name, "x")]), "codex", "nobody else runs Codex's hooks");
        assert_eq!(owner("generic", payload, &[(name, "x")]), "generic");
    }
}

#[test]
fn what_an_agent_inherits_from_an_outer_one_does_not_take_its_payload_away() {
    let outer = [
        ("CURSOR_VERSION", "2.9.1"),
        ("COPILOT_PROJECT_DIR", "/home/ines/code/orchard"),
        ("COPILOT_HOOK_DIR", "/home/ines/code/orchard/.github/hooks"),
        ("GROK_HOOK_EVENT", "session_start"),
        ("DEVIN_PROJECT_DIR", "/home/ines/code/orchard"),
    ];
    for (_, (file, _, session, ..), payload) in payloads().filter(|(id, ..)| *id == "claude-code") {
        let own = [&outer[..], &[("CLAUDE_CODE_SESSION_ID", *session)]].concat();
        assert_eq!(owner("claude-code", &payload, &own), "claude-code", "{file}");
        let stranger = [&outer[..], &[("CLAUDE_CODE_SESSION_ID", "another")]].concat();
        assert_eq!(owner("claude-code", &payload, &stranger), "cursor", "{file}: the id is an outer agent's");
    }
    // And the other way round: what runs inside of Claude Code has its id in the environment, and its own in the payload.
    for (id, (file, ..), payload) in
        payloads().filter(|(id, ..)| ["cursor", "grok", "copilot-cli", "vscode-copilot"].contains(id))
    {
        assert_eq!(owner("claude-code", &payload, &[("CLAUDE_CODE_SESSION_ID", "outer")]), id, "{file}");
    }
}

#[test]
fn a_shape_looks_at_the_names_of_fields_and_at_whole_values() {
    let cursor = "cursor";
    for (payload, id) in [
        (r#"{"session_id": "a", "cursor_version": null}"#, cursor),
        (r#"{"session_id": "a", "tool_input": {"cursor_version": "2.9"}}"#, "claude-code"),
        (r#"{"session_id": "a", "prompt": "cursor_version"}"#, "claude-code"),
        (r#"{"cursor_version": "2.9"} and more"#, cursor),
        (r#"["cursor_version"]"#, "claude-code"),
        (r#"{"sessionId": "a", "hookEventName": "session_start"}"#, "grok"),
        (r#"{"sessionId": "a", "hookEventName": "session_star"}"#, "claude-code"),
        (r#"{"sessionId": "a", "hookEventName": ["session_start"]}"#, "claude-code"),
        (r#"{"sessionId": "a", "hookEventName": "Stop", "timestamp": 1}"#, "vscode-copilot"),
        (r#"{"sessionId": "a", "timestamp": 1}"#, "copilot-cli"),
        ("", "claude-code"),
    ] {
        assert_eq!(owner("claude-code", payload, &[]), id, "{payload}");
    }
}
