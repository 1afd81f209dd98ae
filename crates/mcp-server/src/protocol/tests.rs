mod frames;
mod modern;
mod properties;

use std::sync::Arc;

use majordomus_capability::project::mcp::{Revision, Tools};
use majordomus_capability::{Shared, catalogue};
use majordomus_episodes_core::CloseReason;
use majordomus_episodes_core::board::{ConnectionEpisodeState, EpisodeBoard};
use majordomus_episodes_core::peers::{PeerBoard, Transport};
use serde_json::{Value, json};

use super::Session;

/// One session and the boards behind it.
struct Client {
    session: Session,
    board: EpisodeBoard,
    peers: PeerBoard,
}

impl Client {
    /// Connects, and says nothing yet.
    fn silent() -> Self {
        Self::on(&EpisodeBoard::new(), &PeerBoard::new())
    }

    fn on(board: &EpisodeBoard, peers: &PeerBoard) -> Self {
        let registry = Arc::new(catalogue());
        let tools = Arc::new(Tools::new(registry.clone()));
        let shared = Arc::new(Shared::new(registry, board.clone(), peers.clone()));
        let session = Session::new(shared, tools, Transport::Stdio);
        Self { session, board: board.clone(), peers: peers.clone() }
    }

    /// Connects and initializes.
    fn new(revision: Revision) -> Self {
        let mut client = Self::silent();
        client.initialize(revision);
        client
    }

    fn initialize(&mut self, revision: Revision) {
        let params = json!({"protocolVersion": revision.as_str(), "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        let answer =
            self.ask(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}).to_string());
        assert_eq!(answer["result"]["protocolVersion"], revision.as_str());
    }

    /// What a line is answered with, as it is written.
    fn raw(&mut self, line: &[u8]) -> String {
        let mut out = Vec::new();
        self.session.handle(line, &mut out);
        String::from_utf8(out).unwrap()
    }

    /// The one answer to a line.
    fn ask(&mut self, line: &str) -> Value {
        let answer = self.raw(line.as_bytes());
        assert_eq!(answer.matches('\n').count(), 1, "{line}: {answer:?}");
        serde_json::from_str(&answer).unwrap()
    }

    /// The code of the one error that a line is answered with, and its id.
    fn error(&mut self, line: &str) -> (i64, Value) {
        let answer = self.ask(line);
        assert_eq!(answer["jsonrpc"], "2.0");
        assert!(answer.get("result").is_none(), "{answer}");
        (answer["error"]["code"].as_i64().unwrap(), answer["id"].clone())
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        let line = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        self.ask(&line.to_string())["result"].clone()
    }

    fn attach(&mut self, id: &str) {
        let result = self.call("majordomus_session_attach", &json!({"external_id": id}));
        assert_eq!(result["isError"], Value::Null, "{result}");
    }
}

fn request(id: &str, method: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}"}}"#)
}

fn initialize(version: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{{version}"capabilities":{{}}}}}}"#)
}

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
const NULL: Value = Value::Null;

#[test]
fn initialize_is_answered_with_the_asked_revision_or_the_newest() {
    for (asked, answered) in [
        (r#""protocolVersion":"2024-11-05","#, "2024-11-05"),
        (r#""protocolVersion":"2025-03-26","#, "2025-03-26"),
        (r#""protocolVersion":"2025-06-18","#, "2025-06-18"),
        (r#""protocolVersion":"2025-11-25","#, "2025-11-25"),
        (r#""protocolVersion":"2026-07-28","#, "2025-11-25"),
        (r#""protocolVersion":"1999-01-01","#, "2025-11-25"),
        (r#""protocolVersion":"","#, "2025-11-25"),
        (r#""protocolVersion":20250618,"#, "2025-11-25"),
        (r#""protocolVersion":null,"#, "2025-11-25"),
        ("", "2025-11-25"),
    ] {
        let mut client = Client::silent();
        let answer = client.ask(&initialize(asked));
        let result = &answer["result"];
        assert_eq!((&answer["id"], &result["protocolVersion"]), (&json!(1), &json!(answered)), "{asked}");
        let offers = |name: &str| result["capabilities"][name].is_object();
        assert!(offers("tools") && offers("prompts") && offers("resources"), "{result}");
        assert_eq!(offers("completions"), answered >= "2025-03-26");
        assert_eq!(result["serverInfo"]["name"], "majordomus");
        assert_eq!(result["serverInfo"]["version"], env!("CARGO_PKG_VERSION"));
        assert_eq!(result["serverInfo"]["title"].is_string(), answered >= "2025-06-18");
        assert!(result["instructions"].as_str().unwrap().contains("majordomus_session_attach"));
        assert_eq!(client.session.revision().unwrap().as_str(), answered);
    }
    let mut client = Client::silent();
    assert_eq!(client.ask(&request("1", "initialize"))["result"]["protocolVersion"], "2025-11-25");
    assert_eq!(client.error(r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":[]}"#), (-32602, json!(1)));
}

#[test]
fn initialize_alone_opens_nothing() {
    let client = Client::new(Revision::NEWEST_LEGACY);
    assert!(client.board.list().is_empty());
    assert_eq!(client.peers.list().len(), 1);
}

#[test]
fn a_second_initialize_is_answered_and_keeps_the_episode() {
    let mut client = Client::new(Revision::V2025_06_18);
    client.attach("a");
    client.initialize(Revision::V2024_11_05);
    assert_eq!(client.board.list()[0].attachments, 1);
    assert_eq!(client.call("majordomus_episodes", &json!({}))["structuredContent"], NULL);
}

#[test]
fn before_initialize_only_ping_is_answered_and_everything_else_at_once_refused() {
    let mut client = Client::silent();
    assert_eq!(client.raw(PING.as_bytes()), "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n");
    for method in ["tools/list", "tools/call", "resources/list", "no/such"] {
        let answer = client.ask(&request("2", method));
        assert_eq!(answer["error"]["code"], -32602, "{method}");
        assert!(answer["error"]["message"].as_str().unwrap().contains("initialize first"));
    }
    assert_eq!(client.raw(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#), "");
    assert_eq!(client.error(&format!("[{PING}]")), (-32600, NULL));
}

#[test]
fn lists_are_answered_after_initialize_without_the_notification() {
    let mut client = Client::new(Revision::NEWEST_LEGACY);
    assert_eq!(client.ask(&request("2", "tools/list"))["result"]["tools"].as_array().unwrap().len(), 7);
    assert_eq!(client.raw(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#), "");
    client.ask(&request("3", "tools/list"));
}

#[test]
fn methods_that_this_server_does_not_have_are_unknown() {
    let mut client = Client::new(Revision::NEWEST_LEGACY);
    for method in ["logging/setLevel", "subscriptions/listen", "server/discover", "tasks/list", "", "Ping"] {
        assert_eq!(client.error(&request("2", method)), (-32601, json!(2)), "{method}");
    }
    assert_eq!(client.ask(r#"{"jsonrpc":"2.0","id":2,"method":"p\u0069ng"}"#)["result"], json!({}));
}

#[test]
fn what_is_not_there_to_be_read_has_a_code_of_its_own_in_a_session() {
    let mut client = Client::new(Revision::NEWEST_LEGACY);
    let ask = |method: &str, params: Value| json!({"jsonrpc": "2.0", "id": 2, "method": method, "params": params});
    let answer = client.ask(&ask("resources/read", json!({"uri": "majordomus://nothing"})).to_string());
    assert_eq!(answer["error"]["code"], -32002);
    assert_eq!(answer["error"]["data"], json!({"uri": "majordomus://nothing"}));
    for (method, params) in [
        ("resources/read", json!({})),
        ("resources/read", json!({"uri": 5})),
        ("prompts/get", json!({})),
        ("prompts/get", json!({"name": "nothing"})),
        ("prompts/get", json!({"name": "resume"})),
        ("prompts/get", json!({"name": "resume", "arguments": {"external_id": 5}})),
        ("completion/complete", json!({})),
        ("completion/complete", json!({"ref": {"type": "ref/tool"}, "argument": {"name": "a", "value": ""}})),
        ("completion/complete", json!({"ref": {"type": "ref/prompt", "name": "resume"}})),
        (
            "completion/complete",
            json!({"ref": ["ref/prompt", "resume"], "argument": {"name": "external_id", "value": ""}}),
        ),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/prompt", "name": "resume"}, "argument": ["external_id", ""]}),
        ),
        ("resources/list", json!({"cursor": "x"})),
    ] {
        let answer = client.ask(&ask(method, params.clone()).to_string());
        assert_eq!(answer["error"]["code"], -32602, "{method} {params}: {answer}");
    }
    let read = client.ask(&ask("resources/read", json!({"uri": "majordomus://guide"})).to_string());
    assert_eq!(read["result"]["contents"][0]["mimeType"], "text/markdown");
    assert_eq!(read["result"]["ttlMs"], NULL);
}

#[test]
fn wrong_parameters_are_faults_of_the_protocol_and_wrong_arguments_are_not() {
    let mut client = Client::new(Revision::NEWEST_LEGACY);
    for params in [
        "",
        r#","params":[]"#,
        r#","params":{"name":5}"#,
        r#","params":{"name":"nope"}"#,
        r#","params":{"name":"a","name":"b"}"#,
    ] {
        let line = format!(r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call"{params}}}"#);
        assert_eq!(client.error(&line), (-32602, json!(2)), "{params}");
    }
    for params in [r#"{"cursor":"x"}"#, r#"{"cursor":5}"#, "[]", "5"] {
        let line = format!(r#"{{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{params}}}"#);
        assert_eq!(client.error(&line), (-32602, json!(2)), "{params}");
    }
    for arguments in [json!([]), json!("x"), json!({"external_id": 5}), json!({"nope": 1})] {
        assert_eq!(client.call("majordomus_session_attach", &arguments)["isError"], true, "{arguments}");
    }
    for arguments in [json!({}), NULL] {
        assert_eq!(client.call("majordomus_episodes", &arguments)["isError"], NULL, "{arguments}");
    }
    let line = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"cursor":null,"_meta":{"progressToken":1}}}"#;
    assert!(client.ask(line)["result"]["tools"].is_array());
}

#[test]
fn a_call_may_carry_what_other_clients_send_along() {
    let mut client = Client::new(Revision::NEWEST_LEGACY);
    let line = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"majordomus_session_attach","arguments":{"external_id":"a"},"task":{"ttl":5},"_meta":{"threadId":"t","progressToken":3}},"extra":1}"#;
    assert_eq!(client.ask(line)["result"]["structuredContent"]["resumed"], false);
}

#[test]
fn an_argument_of_a_mebibyte_is_answered() {
    let mut client = Client::new(Revision::NEWEST_LEGACY);
    let result = client.call("majordomus_session_attach", &json!({"external_id": "x".repeat(1 << 20)}));
    assert_eq!(result["isError"], true);
    assert!(result.to_string().len() < 1000, "the refusal does not repeat it");
    assert_eq!(client.ask(PING)["result"], json!({}));
}

#[test]
fn the_client_says_what_it_is_and_only_printable_parts_are_shown() {
    let shown = |info: &str| {
        let mut client = Client::silent();
        client.ask(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"clientInfo":{info}}}}}"#));
        client.peers.list()[0].client.clone()
    };
    assert_eq!(shown(r#"{"name":"claude-code","version":"2.1"}"#).unwrap(), "claude-code 2.1");
    assert_eq!(shown(r#"{"name":"a\u001b[31m\nb","version":"\u202e1"}"#).unwrap(), "a[31mb 1");
    assert_eq!(shown(&json!({"name": "x".repeat(5000)}).to_string()).unwrap(), "x".repeat(64));
    for nothing in ["null", "5", "[]", "{}", r#"{"name":5,"version":{}}"#, r#"{"name":"\n"}"#] {
        assert_eq!(shown(nothing), None, "{nothing}");
    }
}

#[test]
fn a_lost_connection_detaches_and_never_closes() {
    let mut client = Client::new(Revision::NEWEST_LEGACY);
    client.attach("a");
    client.session.end();
    client.session.end();
    assert!(client.peers.list().is_empty());
    let episode = &client.board.list()[0];
    assert_eq!((episode.state, episode.external_id.as_str()), (ConnectionEpisodeState::Detached, "a"));

    let (board, peers) = (client.board.clone(), client.peers.clone());
    let mut second = Client::on(&board, &peers);
    second.initialize(Revision::NEWEST_LEGACY);
    second.attach("a");
    drop(second);
    assert!(peers.list().is_empty(), "a session that is dropped has ended");
    assert_eq!((board.list()[0].attachments, board.list()[0].state), (2, ConnectionEpisodeState::Detached));
}

#[test]
fn every_message_is_evidence_valid_or_not() {
    use majordomus_episodes_core::board::BoardOptions;
    use majordomus_episodes_core::clock::{Clock, ManualClock};
    use std::time::Duration;

    let clock = Arc::new(ManualClock::default());
    let as_clock: Arc<dyn Clock> = clock.clone();
    let board = EpisodeBoard::with(BoardOptions { clock: as_clock.clone(), ..BoardOptions::default() });
    let mut client = Client::on(&board, &PeerBoard::with_clock(as_clock));
    client.initialize(Revision::V2025_03_26);
    client.attach("a");
    let mut ago = |line: Option<&str>| {
        clock.advance(Duration::from_secs(60));
        match line {
            Some(line) => drop(client.raw(line.as_bytes())),
            None => client.session.too_long(5, &mut Vec::new()),
        }
        (board.list()[0].last_activity_seconds_ago, client.peers.list()[0].last_activity_seconds_ago)
    };
    for line in [
        PING,
        "not json",
        "5",
        "[]",
        "[1]",
        r#"{"result":1}"#,
        r#"{"method":"notifications/x"}"#,
        r#"{"id":null,"method":"x"}"#,
    ] {
        assert_eq!(ago(Some(line)), (0, 0), "{line}");
    }
    assert_eq!(ago(None), (0, 0), "a message that is too long is a message");
    assert_eq!(ago(Some(" \r\n")), (60, 60), "a blank line is none");
}

#[test]
fn who_lost_an_episode_learns_it_with_the_next_result_and_only_once() {
    let (board, peers) = (EpisodeBoard::new(), PeerBoard::new());
    let (mut first, mut second) = (Client::on(&board, &peers), Client::on(&board, &peers));
    first.initialize(Revision::NEWEST_LEGACY);
    second.initialize(Revision::NEWEST_LEGACY);
    first.attach("a");
    second.attach("a");
    assert_eq!(first.ask(PING)["result"], json!({}), "only a tool's result is read by a model");
    assert_eq!(first.error(r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"nope"}}"#).0, -32602);
    let result = first.call("majordomus_episodes", &json!({}));
    let notice = result["structuredContent"]["notice"].as_str().unwrap();
    assert!(notice.contains("p2") && notice.contains("took its episode over"), "{notice}");
    let result = first.call("majordomus_episodes", &json!({}));
    assert_eq!(result["structuredContent"]["notice"], NULL);

    board.close("a", CloseReason::Detach).unwrap();
    let result = second.call("majordomus_session_detach", &json!({"external_id": "other"}));
    let notice = result["content"][1]["text"].as_str().unwrap();
    assert!(notice.contains("has ended, or a client at another server took it over"), "{notice}");
}
