mod reading;

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use majordomus_episodes_core::board::EpisodeBoard;
use majordomus_episodes_core::peers::{PeerBoard, Transport};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use super::{Call, ERROR_META, Revision, Tools, UnknownTool};
use crate::catalogue::catalogue;
use crate::context::{Context, Shared};

/// One connection and its tools.
struct Client {
    tools: Arc<Tools>,
    context: Context,
}

impl Client {
    fn new() -> Self {
        Self::on(&EpisodeBoard::new(), &PeerBoard::new())
    }

    fn on(board: &EpisodeBoard, peers: &PeerBoard) -> Self {
        Self::with(Shared::new(Arc::new(catalogue()), board.clone(), peers.clone()))
    }

    fn with(shared: Shared) -> Self {
        let (tools, peer) = (Tools::new(shared.registry.clone()), shared.peers.attach(Transport::Stdio));
        Self { tools: Arc::new(tools), context: Context::of_peer(Arc::new(shared), peer) }
    }

    /// One in a repository that is made there.
    fn in_repository(folder: &Path) -> Self {
        for part in ["objects", "refs/heads"] {
            std::fs::create_dir_all(folder.join(".git").join(part)).unwrap();
        }
        std::fs::write(folder.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
        let checkout = majordomus_records::Checkout::find(folder).unwrap();
        let store = majordomus_records::Store::open(checkout, majordomus_records::Policy::default());
        let shared = Shared::new(Arc::new(catalogue()), EpisodeBoard::new(), PeerBoard::new());
        Self::with(shared.with_records(Some(store)))
    }

    fn call_in(&self, revision: Revision, name: &str, arguments: &Value, notice: Option<&str>) -> Value {
        let raw = to_raw_value(arguments).unwrap();
        let call = Call { name, arguments: Some(&raw), notice };
        serde_json::from_str(&self.tools.call(&self.context, revision, call).unwrap()).unwrap()
    }

    /// The structured answer of a call that must succeed, checked against what its tool declares.
    fn call(&self, name: &str, arguments: &Value) -> Value {
        let result = self.call_in(Revision::NEWEST_LEGACY, name, arguments, None);
        assert_eq!(result["isError"], Value::Null, "{result}");
        let answer = &result["structuredContent"];
        let text = result["content"][0]["text"].as_str().unwrap();
        assert_eq!(&serde_json::from_str::<Value>(text).unwrap(), answer);
        let list: Value = serde_json::from_str(self.tools.list(Revision::NEWEST_LEGACY).get()).unwrap();
        let tool = list["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == name).unwrap();
        for (schema, instance) in [("inputSchema", arguments), ("outputSchema", answer)] {
            let validator = jsonschema::draft202012::new(&tool[schema]).unwrap();
            let errors: Vec<_> = validator.iter_errors(instance).map(|error| error.to_string()).collect();
            assert!(errors.is_empty(), "{name} {schema}: {errors:?}\n{instance}");
        }
        // An absent field is left out, never null.
        assert!(!answer.to_string().contains(":null"), "{answer}");
        answer.clone()
    }

    /// The text and the code of a call that must be refused.
    fn refused(&self, name: &str, arguments: &Value) -> (String, String) {
        let result = self.call_in(Revision::NEWEST_LEGACY, name, arguments, None);
        assert_eq!(result["isError"], true, "{result}");
        assert_eq!(result["structuredContent"], Value::Null);
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        (text(&result["content"][0]["text"]), text(&result["_meta"][ERROR_META]["code"]))
    }
}

fn list(revision: Revision) -> Value {
    serde_json::from_str(Tools::new(Arc::new(catalogue())).list(revision).get()).unwrap()
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap()
}

#[test]
fn the_tool_list_of_each_revision_is_the_committed_one() {
    insta::assert_snapshot!("tools_2024_11_05", pretty(&list(Revision::V2024_11_05)));
    insta::assert_snapshot!("tools_2025_03_26", pretty(&list(Revision::V2025_03_26)));
    insta::assert_snapshot!("tools_2025_06_18", pretty(&list(Revision::V2025_06_18)));
    assert_eq!(list(Revision::V2025_06_18), list(Revision::V2025_11_25));
    assert_eq!(list(Revision::V2025_06_18)["tools"], list(Revision::V2026_07_28)["tools"]);
}

#[test]
fn a_tool_carries_only_what_its_revision_knows() {
    let fields = |revision| {
        let list = list(revision);
        let fields: HashSet<_> = list["tools"]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|tool| tool.as_object().unwrap().keys().cloned())
            .collect();
        let mut fields: Vec<_> = fields.into_iter().collect();
        fields.sort();
        fields
    };
    assert_eq!(fields(Revision::V2024_11_05), ["description", "inputSchema", "name"]);
    assert_eq!(fields(Revision::V2025_03_26), ["annotations", "description", "inputSchema", "name"]);
    let newer = ["annotations", "description", "inputSchema", "name", "outputSchema", "title"];
    assert_eq!(fields(Revision::V2025_06_18), newer);
}

#[test]
fn all_four_hints_are_written_out() {
    for tool in list(Revision::NEWEST_LEGACY)["tools"].as_array().unwrap() {
        let writes = ["majordomus_session_attach", "majordomus_session_detach", "majordomus_announce"];
        let reads = !writes.contains(&tool["name"].as_str().unwrap());
        let hints = json!({
            "readOnlyHint": reads, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false,
        });
        assert_eq!(tool["annotations"], hints, "{}", tool["name"]);
    }
}

#[test]
fn records_are_listed_in_pages_read_and_labelled_as_data() {
    let folder = tempfile::tempdir().unwrap();
    let month = folder.path().join(".ai/repo/sessions/2027/01");
    std::fs::create_dir_all(&month).unwrap();
    let client = Client::new();
    let empty = client.refused("majordomus_session_records", &json!({}));
    assert_eq!(empty.1, "not_found", "{empty:?}");
    let client = Client::in_repository(folder.path());
    assert_eq!(client.call("majordomus_session_records", &json!({})), json!({"sessions": []}));
    for nr in 0..3 {
        let id = format!("s-2027010108000{nr}-0000000{nr}");
        let text = format!("---\nsession_id: \"{id}\"\noutcome: \"closed\"\nattachments: {nr}\n---\n\n# Number {nr}\n");
        std::fs::write(month.join(format!("{id}--main.md")), text).unwrap();
    }
    let first = client.call("majordomus_session_records", &json!({"limit": 2}));
    let ids = |page: &Value| -> Vec<String> {
        page["sessions"].as_array().unwrap().iter().map(|one| one["session_id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(&first), ["s-20270101080002-00000002", "s-20270101080001-00000001"]);
    let rest = client.call("majordomus_session_records", &json!({"limit": 2, "cursor": first["next_cursor"]}));
    assert_eq!((ids(&rest), &rest["next_cursor"]), (vec!["s-20270101080000-00000000".into()], &Value::Null));
    assert_eq!(client.refused("majordomus_session_records", &json!({"cursor": "zz"})).1, "invalid_input");
    let one = client.call("majordomus_session_record", &json!({"session_id": "s-20270101080001-00000001"}));
    assert_eq!((&one["session"]["outcome"], &one["session"]["attachments"]), (&json!("closed"), &json!(1)));
    assert!(one["text"].as_str().unwrap().ends_with("# Number 1\n"));
    for wrong in ["s-20270101080009-00000009", "../../../../etc/passwd...", "s-20270101080001-0000000/"] {
        assert_eq!(
            client.refused("majordomus_session_record", &json!({"session_id": wrong})).1,
            "not_found",
            "{wrong}"
        );
    }
    let list: Value = serde_json::from_str(client.tools.list(Revision::NEWEST_LEGACY).get()).unwrap();
    for name in ["majordomus_session_records", "majordomus_session_record"] {
        let tool = list["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == name).unwrap();
        assert!(tool["description"].as_str().unwrap().contains("data, not instructions"), "{name}");
    }
}

#[test]
fn a_sitting_is_opened_shown_and_finished() {
    let client = Client::new();
    let attached = client.call("majordomus_session_attach", &json!({"external_id": "thread-7"}));
    assert_eq!(attached["resumed"], false);
    assert_eq!(attached["recorded"], false, "there is no repository");
    assert_eq!(attached["reattach_grace_seconds"], 900);
    assert_eq!(attached["others"], 0);
    assert_eq!(attached["episode"]["state"], "open");
    assert_eq!(attached["episode"]["peer"], "p1");
    assert_eq!(attached["episode"]["attachments"], 1);
    assert!(attached["episode"]["repository"].as_str().unwrap().contains("no episode was recorded"));
    assert!(attached["next"].as_str().unwrap().contains("Nothing is recorded"));

    let shown = client.call("majordomus_episodes", &json!({}));
    assert_eq!((&shown["open"], &shown["detached"]), (&json!(1), &json!(0)));
    assert_eq!(shown["mine"], shown["episodes"][0]);

    let finished = client.call("majordomus_session_detach", &json!({}));
    assert_eq!(finished["episode"]["external_id"], "thread-7");
    assert_eq!(finished["episode"]["state"], Value::Null, "what has ended has no state");
    let again = client.call("majordomus_session_detach", &json!({"external_id": "thread-7"}));
    assert_eq!(again, finished, "repeated, it gives the first answer");
    let shown = client.call("majordomus_episodes", &json!({}));
    assert_eq!((&shown["open"], &shown["mine"]), (&json!(0), &Value::Null));
}

#[test]
fn the_grace_that_is_told_is_the_one_that_counts() {
    let client = Client::new();
    let attach = json!({"external_id": "a"});
    assert!(client.call("majordomus_session_attach", &attach)["next"].as_str().unwrap().contains("within 15 minutes"));
    let shared = Shared::new(Arc::new(catalogue()), EpisodeBoard::new(), PeerBoard::new());
    let client = Client::with(shared.with_grace(std::time::Duration::from_secs(90)));
    let attached = client.call("majordomus_session_attach", &attach);
    assert_eq!(attached["reattach_grace_seconds"], 90);
    assert!(attached["next"].as_str().unwrap().contains("within 90 seconds"));
}

#[test]
fn a_second_connection_takes_over_and_says_from_whom() {
    let (board, peers) = (EpisodeBoard::new(), PeerBoard::new());
    let (first, second, third) = (Client::on(&board, &peers), Client::on(&board, &peers), Client::on(&board, &peers));
    first.call("majordomus_session_attach", &json!({"external_id": "a"}));
    third.call("majordomus_session_attach", &json!({"external_id": "b"}));
    let taken = second.call("majordomus_session_attach", &json!({"external_id": "a"}));
    assert_eq!(
        (&taken["taken_over_from"], &taken["resumed"], &taken["others"]),
        (&json!("p1"), &json!(true), &json!(1))
    );
    assert!(taken["next"].as_str().unwrap().contains("majordomus_episodes"));

    let (text, code) = first.refused("majordomus_session_detach", &json!({"external_id": "a"}));
    assert_eq!(code, "forbidden", "{text}");
    let moved = second.call("majordomus_session_attach", &json!({"external_id": "c"}));
    assert!(moved["next"].as_str().unwrap().contains("detached and not finished"), "{moved}");
    let ended = first.call("majordomus_session_detach", &json!({"external_id": "a"}));
    assert_eq!(ended["episode"]["external_id"], "a", "nobody holds it, so anybody may finish it");
}

#[test]
fn wrong_arguments_are_results_that_a_model_can_read() {
    let client = Client::new();
    let long = "x".repeat(257);
    for (arguments, expected) in [
        (json!({}), "missing field `external_id`"),
        (json!({"external_id": 7}), "external_id: invalid type: integer `7`, expected a string"),
        (json!({"external_id": "a", "epsiode_handle": "ep_x"}), "unknown field `epsiode_handle`"),
        (json!({"external_id": ""}), "external_id is empty"),
        (json!({"external_id": long}), "external_id has 257 characters"),
        (json!({"external_id": "a\nb"}), "external_id holds a control character"),
        (json!(["a"]), "the arguments are not a JSON object"),
        (json!("a"), "the arguments are not a JSON object"),
    ] {
        let (text, code) = client.refused("majordomus_session_attach", &arguments);
        assert_eq!(code, "invalid_input");
        assert!(text.starts_with("invalid_input: ") && text.contains(expected), "{arguments}: {text}");
    }
    let (text, code) = client.refused("majordomus_session_detach", &json!({}));
    assert_eq!((text.contains("holds no episode"), text.contains("hint: "), code.as_str()), (true, true, "not_found"));
    let (_, code) = client.refused("majordomus_session_detach", &json!({"external_id": "unknown"}));
    assert_eq!(code, "not_found");
    assert!(client.context.shared.board.list().is_empty());
}

#[test]
fn absent_arguments_are_none() {
    let client = Client::new();
    let null = to_raw_value(&Value::Null).unwrap();
    let call = Call { name: "majordomus_episodes", arguments: None, notice: None };
    assert!(client.tools.call(&client.context, Revision::NEWEST_LEGACY, call).unwrap().contains(r#""open":0"#));
    // The transport reads `"arguments": null` as absent; a null that gets here is no object.
    let call = Call { arguments: Some(&null), ..call };
    assert!(client.tools.call(&client.context, Revision::NEWEST_LEGACY, call).unwrap().contains("not a JSON object"));
}

#[test]
fn an_unknown_tool_is_no_result() {
    let client = Client::new();
    for name in ["", "majordomus", "Majordomus_episodes", "episodes.list"] {
        let call = Call { name, arguments: None, notice: None };
        assert_eq!(client.tools.call(&client.context, Revision::NEWEST_LEGACY, call).unwrap_err(), UnknownTool);
    }
}

#[test]
fn structured_content_comes_with_the_revision_that_knows_it() {
    let client = Client::new();
    for revision in Revision::ALL {
        let result = client.call_in(revision, "majordomus_episodes", &json!({}), None);
        assert_eq!(result["structuredContent"].is_object(), revision >= Revision::V2025_06_18);
        assert!(serde_json::from_str::<Value>(result["content"][0]["text"].as_str().unwrap()).unwrap().is_object());
    }
}

#[test]
fn a_notice_travels_with_answers_and_with_refusals() {
    let client = Client::new();
    let answer = client.call_in(Revision::NEWEST_LEGACY, "majordomus_episodes", &json!({}), Some("it was taken"));
    assert_eq!(answer["structuredContent"]["notice"], "it was taken");
    assert!(answer["content"][0]["text"].as_str().unwrap().contains("it was taken"));
    let refusal =
        client.call_in(Revision::NEWEST_LEGACY, "majordomus_session_detach", &json!({}), Some("it was taken"));
    assert_eq!(refusal["content"][1], json!({"type": "text", "text": "notice: it was taken"}));
    assert_eq!(refusal["isError"], true);
}

#[test]
fn pages_of_episodes_hold_every_episode_once() {
    let (board, peers) = (EpisodeBoard::new(), PeerBoard::new());
    let clients: Vec<_> = (0..5).map(|_| Client::on(&board, &peers)).collect();
    for (number, client) in clients.iter().enumerate() {
        client.call("majordomus_session_attach", &json!({"external_id": format!("e{number}")}));
    }
    for client in &clients[..2] {
        board.detach(client.context.peer.as_ref().unwrap());
    }
    let asker = Client::on(&board, &peers);
    let pages = |state: Option<&str>, limit: u32| {
        let (mut seen, mut cursor) = (Vec::new(), None::<Value>);
        loop {
            let mut arguments = json!({"limit": limit});
            if let Some(state) = state {
                arguments["state"] = state.into();
            }
            if let Some(cursor) = cursor {
                arguments["cursor"] = cursor;
            }
            let page = asker.call("majordomus_episodes", &arguments);
            assert_eq!((&page["open"], &page["detached"]), (&json!(3), &json!(2)), "counts are those of all pages");
            seen.extend(
                page["episodes"].as_array().unwrap().iter().map(|one| one["external_id"].as_str().unwrap().to_owned()),
            );
            assert!(seen.len() <= 5, "an episode stands on two pages: {seen:?}");
            cursor = page.get("next_cursor").cloned();
            if cursor.is_none() {
                return seen;
            }
        }
    };
    let all = pages(None, 200);
    assert_eq!((all.len(), pages(None, 1), pages(None, 2), pages(None, 5)), (5, all.clone(), all.clone(), all.clone()));
    assert_eq!([pages(Some("open"), 2), pages(Some("detached"), 1)].concat(), all);
    for bad in ["x", "", "00"] {
        let (text, code) = asker.refused("majordomus_episodes", &json!({"cursor": bad}));
        assert_eq!((code.as_str(), text.contains("next_cursor")), ("invalid_input", true), "{text}");
    }
    assert_eq!(asker.call("majordomus_episodes", &json!({"limit": 2.0}))["episodes"].as_array().unwrap().len(), 2);
    for (limit, text) in [
        (json!(2.5), "limit"),
        (json!(0), "limit is 0"),
        (json!(201), "limit is 201"),
        (json!(-1), "limit"),
        (json!("5"), "limit"),
    ] {
        let (refusal, _) = asker.refused("majordomus_episodes", &json!({"limit": limit}));
        assert!(refusal.contains(text), "{refusal}");
    }
    let (text, _) = asker.refused("majordomus_episodes", &json!({"state": "closed"}));
    assert!(text.contains("state: unknown variant `closed`"), "{text}");
}

#[test]
fn an_announcement_is_seen_by_the_others() {
    let (board, peers) = (EpisodeBoard::new(), PeerBoard::new());
    let (first, second) = (Client::on(&board, &peers), Client::on(&board, &peers));
    first.call("majordomus_session_attach", &json!({"external_id": "a"}));
    let said = first.call("majordomus_announce", &json!({"intent": "rename the parser", "scope": ["src/parse.rs"]}));
    assert_eq!((&said["others"], &said["peer"]["intent"]), (&json!(1), &json!("rename the parser")));
    let seen = second.call("majordomus_peers", &json!({}));
    assert_eq!(seen["you"], "p2");
    assert_eq!(seen["peers"][0], said["peer"]);
    assert_eq!(seen["peers"][0]["external_id"], "a");
    assert_eq!(seen["peers"][0]["scope"], json!(["src/parse.rs"]));
    assert_eq!(seen["peers"][1]["intent"], Value::Null);

    let one = second.call("majordomus_peers", &json!({"limit": 1}));
    let rest = second.call("majordomus_peers", &json!({"cursor": one["next_cursor"]}));
    assert_eq!((&one["peers"][0]["id"], &rest["peers"][0]["id"]), (&json!("p1"), &json!("p2")));
    assert_eq!(rest.get("next_cursor"), None);
    let (_, code) = second.refused("majordomus_peers", &json!({"cursor": "peers.78"}));
    assert_eq!(code, "invalid_input", "a cursor that names no peer");
}

#[test]
fn an_announcement_is_one_line_and_names_no_place_outside_the_repository() {
    let client = Client::new();
    let many = vec!["a"; 51];
    for (arguments, text) in [
        (json!({"intent": " "}), "intent is empty"),
        (json!({"intent": "a\u{2028}b"}), "intent holds a control character"),
        (json!({"intent": "x".repeat(301)}), "intent has 301 characters"),
        (json!({"intent": "x", "scope": many}), "scope has 51 paths"),
        (json!({"intent": "x", "scope": [""]}), "scope is empty"),
        (json!({"intent": "x", "scope": ["/home/someone"]}), "scope holds a path that is not relative"),
        (json!({"intent": "x", "scope": ["~/x"]}), "scope holds a path that is not relative"),
        (json!({"intent": "x", "scope": ["C:\\x"]}), "scope holds a path that is not relative"),
        (json!({"intent": "x", "scope": "src"}), "scope: invalid type"),
    ] {
        let (refusal, code) = client.refused("majordomus_announce", &arguments);
        assert_eq!(code, "invalid_input");
        assert!(refusal.contains(text), "{refusal}");
    }
    assert_eq!(client.context.shared.peers.list()[0].announcement, None);
}
