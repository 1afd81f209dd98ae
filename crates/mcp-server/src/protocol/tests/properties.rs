//! Whatever bytes come, nothing panics and everybody gets the answer that is due.

use majordomus_capability::project::mcp::{Era, Revision};
use proptest::prelude::*;
use serde_json::Value;

use super::Client;

/// Lines of every kind, from noise to nearly right messages.
fn line() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "\\",
        "\"id\"",
        "\"method\"",
        "\"params\"",
        "\"jsonrpc\"",
        "\"2.0\"",
        "\"ping\"",
        "\"tools/call\"",
        "\"name\"",
        "\"arguments\"",
        "\"result\"",
        "\"initialize\"",
        "null",
        "true",
        "1",
        "-1.5e3",
        " ",
        "\u{feff}",
    ]);
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..80),
        prop::collection::vec(piece, 0..20).prop_map(|pieces| pieces.concat().into_bytes()),
        (id(), method(), json()).prop_map(|(id, method, params)| request(&id, &method, &params).into_bytes()),
        prop::collection::vec(json(), 0..4).prop_map(|all| format!("[{}]", all.join(",")).into_bytes()),
        json().prop_map(String::into_bytes),
        (id(), method(), meta(), json()).prop_map(|(id, method, meta, arguments)| {
            let params = format!(r#"{{"_meta":{meta},"name":"majordomus_session_attach","arguments":{arguments}}}"#);
            request(&id, &method, &params).into_bytes()
        }),
    ]
}

fn id() -> impl Strategy<Value = String> {
    prop_oneof![any::<i64>().prop_map(|id| id.to_string()), any::<String>().prop_map(|id| Value::from(id).to_string())]
}

fn method() -> impl Strategy<Value = String> {
    let known = [
        "initialize",
        "ping",
        "tools/list",
        "tools/call",
        "server/discover",
        "notifications/initialized",
        "resources/list",
        "resources/templates/list",
        "resources/read",
        "prompts/list",
        "prompts/get",
        "completion/complete",
    ];
    prop_oneof![prop::sample::select(known.to_vec()).prop_map(str::to_owned), any::<String>()]
}

/// What requests say of themselves that are complete in themselves, and what nearly does.
fn meta() -> impl Strategy<Value = String> {
    let version = prop::sample::select(vec![r#""2026-07-28""#, r#""2025-11-25""#, "7", "null", r#""ü""#]);
    let capabilities = prop::sample::select(vec!["{}", "[]", "null", r#"{"roots":{}}"#]);
    (version, capabilities, json()).prop_map(|(version, capabilities, other)| {
        format!(
            r#"{{"io.modelcontextprotocol/protocolVersion":{version},"io.modelcontextprotocol/clientCapabilities":{capabilities},"io.modelcontextprotocol/clientInfo":{other},"dev.majordomus/episode-handle":{other}}}"#
        )
    })
}

/// Any JSON, with members that matter here.
fn json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f32>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        prop::sample::select(vec![
            "majordomus_episodes",
            "majordomus_session_attach",
            "majordomus_announce",
            "2.0",
            "ping"
        ])
        .prop_map(Value::from),
    ];
    let name = prop_oneof![
        prop::sample::select(vec![
            "id",
            "method",
            "params",
            "jsonrpc",
            "result",
            "error",
            "name",
            "arguments",
            "external_id",
            "cursor",
            "limit"
        ])
        .prop_map(str::to_owned),
        any::<String>(),
    ];
    let value = leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((name.clone(), inner), 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    });
    value.prop_map(|value| value.to_string())
}

fn request(id: &str, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{},"params":{params}}}"#, Value::from(method))
}

fn revision() -> impl Strategy<Value = Option<Revision>> {
    prop::option::of(prop::sample::select(Revision::of(Era::Legacy).collect::<Vec<_>>()))
}

fn client(revision: Option<Revision>) -> Client {
    revision.map_or_else(Client::silent, Client::new)
}

/// Nothing, or one line of JSON that is a response or an array of them.
fn well_formed(answer: &str) -> Result<(), TestCaseError> {
    if answer.is_empty() {
        return Ok(());
    }
    prop_assert!(answer.ends_with('\n') && answer.matches('\n').count() == 1, "{answer:?}");
    let answer: Value = serde_json::from_str(answer).unwrap();
    let one = std::slice::from_ref(&answer);
    for response in answer.as_array().map_or(one, Vec::as_slice) {
        prop_assert_eq!(&response["jsonrpc"], "2.0");
        prop_assert!(response.get("result").is_some() != response.get("error").is_some(), "{response}");
    }
    prop_assert!(answer.as_array().is_none_or(|all| !all.is_empty()));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_answered_with_nothing_or_with_one_well_formed_line(revision in revision(), lines in prop::collection::vec(line(), 1..6)) {
        let mut client = client(revision);
        for line in lines {
            well_formed(&client.raw(&line))?;
        }
        well_formed(&client.raw(super::PING.as_bytes()))?;
        prop_assert!(client.peers.list().len() <= 1);
    }

    #[test]
    fn a_request_with_a_valid_id_gets_exactly_one_answer_under_that_id(revision in revision(), id in id(), method in method(), params in json()) {
        let answer = client(revision).raw(request(&id, &method, &params).as_bytes());
        let start = format!(r#"{{"jsonrpc":"2.0","id":{id},""#);
        prop_assert!(answer.starts_with(&start), "{} does not start with {}", answer, start);
        prop_assert_eq!(answer.matches('\n').count(), 1);
        well_formed(&answer)?;
    }

    #[test]
    fn a_request_that_is_complete_in_itself_gets_exactly_one_answer_and_is_no_evidence_of_its_carrier(id in id(), method in method(), meta in meta(), arguments in json()) {
        let mut client = Client::new(Revision::NEWEST_LEGACY);
        client.attach("a");
        let before = client.board.list();
        let params = format!(r#"{{"_meta":{meta},"name":"majordomus_announce","arguments":{arguments}}}"#);
        let answer = client.raw(request(&id, &method, &params).as_bytes());
        let start = format!(r#"{{"jsonrpc":"2.0","id":{id},""#);
        prop_assert!(answer.starts_with(&start), "{} does not start with {}", answer, start);
        well_formed(&answer)?;
        prop_assert_eq!(client.board.list(), before);
    }
}
