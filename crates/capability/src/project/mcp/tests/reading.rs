//! What can be read, asked for by a name, and filled in.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Client, pretty};
use crate::catalogue::catalogue;
use crate::project::mcp::{Completed, PromptError, ReadError, Reference, Revision, Tools};
use crate::prompt::Arguments;

const NOW: Revision = Revision::NEWEST;

impl Client {
    fn read(&self, uri: &str) -> Result<Value, ReadError> {
        self.tools.read(&self.context, NOW, uri).map(|result| serde_json::from_str(&result).unwrap())
    }

    fn values(&self, reference: Reference<'_>, name: &str, begins: &str) -> Vec<String> {
        let Completed::Result(result) = self.tools.complete(&self.context, NOW, reference, (name, begins)) else {
            panic!("{reference:?} has no {name}");
        };
        let result: Value = serde_json::from_str(&result).unwrap();
        let values = result["completion"]["values"].as_array().unwrap().iter();
        values.map(|value| value.as_str().unwrap().to_owned()).collect()
    }
}

#[test]
fn what_is_offered_beside_the_tools_is_the_committed_one() {
    let tools = Tools::new(Arc::new(catalogue()));
    let parsed = |raw: &str| serde_json::from_str::<Value>(raw).unwrap();
    let of = |revision| {
        [tools.resources(revision), tools.templates(revision), tools.prompts(revision)].map(|list| parsed(list.get()))
    };
    let newest = of(NOW);
    insta::assert_snapshot!("resources_2026_07_28", pretty(&json!(newest)));
    for (at, name) in ["resources", "resourceTemplates", "prompts"].into_iter().enumerate() {
        assert_eq!(of(Revision::V2025_11_25)[at], json!({ name: newest[at][name] }));
        let oldest = &of(Revision::V2024_11_05)[at][name];
        assert!(oldest.as_array().unwrap().iter().all(|entry| entry["title"].is_null()), "{oldest}");
    }
}

#[test]
fn a_live_resource_says_what_its_query_says_and_is_not_kept() {
    let client = Client::new();
    client.call("majordomus_session_attach", &json!({ "external_id": "thread-7" }));
    for (uri, tool) in [("majordomus://episodes", "majordomus_episodes"), ("majordomus://peers", "majordomus_peers")] {
        let result = client.read(uri).unwrap();
        assert_eq!((&result["ttlMs"], &result["cacheScope"]), (&json!(0), &json!("private")), "{uri}");
        let content = &result["contents"][0];
        assert_eq!((&content["uri"], &content["mimeType"]), (&json!(uri), &json!("application/json")));
        let text: Value = serde_json::from_str(content["text"].as_str().unwrap()).unwrap();
        assert_eq!(text, client.call(tool, &json!({})), "{uri}");
    }
}

#[test]
fn the_pages_are_text_that_may_be_kept() {
    let client = Client::new();
    for (uri, word) in [("majordomus://guide", "majordomus_session_attach"), ("majordomus://reference", "external_id")]
    {
        let result = client.read(uri).unwrap();
        assert_eq!((&result["ttlMs"], &result["cacheScope"]), (&json!(3_600_000), &json!("public")), "{uri}");
        assert!(result["contents"][0]["text"].as_str().unwrap().contains(word), "{uri}");
    }
}

#[test]
fn what_is_not_there_is_said_to_be_not_there() {
    let client = Client::new();
    for uri in [
        "",
        "majordomus://",
        "majordomus://nothing",
        "majordomus://sessions/",
        "majordomus://sessions/s-20260101000000-00000000",
        "majordomus://sessions/..%2F..%2Fetc%2Fpasswd",
        "majordomus://episode/s-20260101000000-00000000",
        "majordomus://episode/x",
        "file:///etc/passwd",
    ] {
        assert!(matches!(client.read(uri), Err(ReadError::NotFound(_))), "{uri}");
    }
}

#[test]
fn a_record_is_read_as_its_file_has_it_and_a_very_long_one_says_that_it_was_cut() {
    let folder = tempfile::tempdir().unwrap();
    let month = folder.path().join(".ai/repo/sessions/2027/01");
    std::fs::create_dir_all(&month).unwrap();
    let client = Client::in_repository(folder.path());
    for (id, size) in [("s-20270102030405-0000000a", 100), ("s-20270102030405-0000000b", 300 * 1024)] {
        let text = format!("---\nsession_id: \"{id}\"\n---\n{}", "\u{fc}".repeat(size / 2));
        std::fs::write(month.join(format!("{id}--main.md")), &text).unwrap();
        let result = client.read(&format!("majordomus://sessions/{id}")).unwrap();
        let read = result["contents"][0]["text"].as_str().unwrap();
        assert_eq!((&result["ttlMs"], &result["cacheScope"]), (&json!(86_400_000), &json!("private")));
        if size == 100 {
            assert_eq!(read, text);
        } else {
            assert!(read.len() < 257 * 1024 && read.ends_with("(cut here: the file has more than 262144 bytes)\n"));
        }
    }
}

#[test]
fn a_prompt_quotes_what_it_was_given_and_takes_nothing_else() {
    let client = Client::new();
    let get = |name: &str, arguments: &[(&str, &str)]| {
        let arguments: Arguments = arguments.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        client.tools.prompt(NOW, name, &arguments).map(|result| serde_json::from_str::<Value>(&result).unwrap())
    };
    let text = |result: &Value| result["messages"][0]["content"]["text"].as_str().unwrap().to_owned();
    assert!(text(&get("attach", &[]).unwrap()).contains("durably has"));
    let resumed = get("resume", &[("external_id", "a \"quoted\" id")]).unwrap();
    assert!(text(&resumed).contains(r#""a \"quoted\" id""#), "{resumed}");
    assert_eq!(resumed["messages"][0]["role"], "user");
    assert!(text(&get("detach", &[]).unwrap()).contains("majordomus_session_detach"));
    assert!(matches!(get("nothing", &[]), Err(PromptError::Unknown(_))));
    assert_eq!(get("resume", &[]), Err(PromptError::Missing("external_id")));
    assert_eq!(get("detach", &[("external_id", "a")]), Err(PromptError::Excess("external_id".into())));
    let long = "x".repeat(257);
    for id in ["", "two\nlines", "two\u{2028}lines", &long] {
        assert!(matches!(get("resume", &[("external_id", id)]), Err(PromptError::Refused(_))), "{id}");
    }
}

#[test]
fn ids_of_sittings_that_have_not_ended_can_be_filled_in_those_that_wait_first() {
    let (board, peers) = (super::EpisodeBoard::new(), super::PeerBoard::new());
    let clients: Vec<_> = (0..3).map(|_| Client::on(&board, &peers)).collect();
    for (client, id) in clients.iter().zip(["thread-1", "thread-2", "other"]) {
        client.call("majordomus_session_attach", &json!({ "external_id": id }));
    }
    board.detach(clients[1].context.peer.as_ref().unwrap());
    let resume = Reference::Prompt("resume");
    assert_eq!(clients[0].values(resume, "external_id", "thread"), ["thread-2", "thread-1"]);
    assert_eq!(clients[0].values(resume, "external_id", "nobody"), [""; 0]);
    let template = Reference::Resource("majordomus://sessions/{session_id}");
    assert_eq!(clients[0].values(template, "session_id", ""), [""; 0]);
    let complete = |reference, name| clients[0].tools.complete(&clients[0].context, NOW, reference, (name, ""));
    assert_eq!(complete(Reference::Prompt("nothing"), "a"), Completed::UnknownReference);
    assert_eq!(complete(Reference::Resource("majordomus://episodes"), "a"), Completed::UnknownReference);
    assert_eq!(complete(resume, "a"), Completed::UnknownArgument);
    assert_eq!(complete(template, "a"), Completed::UnknownArgument);
}
