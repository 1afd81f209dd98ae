//! Requests that are complete in themselves, on a connection that may speak the other era too.

use std::sync::Arc;
use std::time::Duration;

use majordomus_capability::project::mcp::{Revision, Tools};
use majordomus_capability::raw::RawTool;
use majordomus_capability::{Registry, Shared, catalogue};
use majordomus_episodes_core::board::{BoardOptions, ConnectionEpisodeState, EpisodeBoard};
use majordomus_episodes_core::clock::ManualClock;
use majordomus_episodes_core::peers::{PeerBoard, Transport};
use serde_json::{Value, json};

use super::{Client, NULL, PING};
use crate::protocol::Session;

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const INFO: &str = "io.modelcontextprotocol/clientInfo";
const HANDLE: &str = "dev.majordomus/episode-handle";

/// Connections of one server whose time stands still.
struct Server {
    shared: Arc<Shared>,
    tools: Arc<Tools>,
    clock: Arc<ManualClock>,
}

impl Server {
    fn new() -> Self {
        Self::of(catalogue())
    }

    fn of(registry: Registry) -> Self {
        let clock = Arc::new(ManualClock::default());
        let board = EpisodeBoard::with(BoardOptions { clock: clock.clone(), ..BoardOptions::default() });
        let registry = Arc::new(registry);
        let tools = Arc::new(Tools::new(registry.clone()));
        let shared = Arc::new(Shared::new(registry, board, PeerBoard::with_clock(clock.clone())));
        Self { shared, tools, clock }
    }

    fn client(&self) -> Client {
        let session = Session::new(self.shared.clone(), self.tools.clone(), Transport::Stdio);
        Client { session, board: self.shared.board.clone(), peers: self.shared.peers.clone() }
    }

    fn wait(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    /// The state of the one episode, and how long its client has been silent.
    fn shown(&self) -> (ConnectionEpisodeState, u64) {
        let all = self.shared.board.list();
        assert_eq!(all.len(), 1, "{all:?}");
        (all[0].state, all[0].last_activity_seconds_ago)
    }
}

const OPEN: ConnectionEpisodeState = ConnectionEpisodeState::Open;
const DETACHED: ConnectionEpisodeState = ConnectionEpisodeState::Detached;

fn meta() -> Value {
    json!({ VERSION: "2026-07-28", CAPABILITIES: {}, INFO: { "name": "later", "version": "3" } })
}

fn modern(method: &str, mut params: Value) -> String {
    if params["_meta"].is_null() {
        params["_meta"] = meta();
    }
    json!({ "jsonrpc": "2.0", "id": "m", "method": method, "params": params }).to_string()
}

impl Client {
    /// The result of a tool, called by a request that is complete in itself.
    fn calls(&mut self, tool: &str, arguments: &Value) -> Value {
        let answer = self.ask(&modern("tools/call", json!({ "name": tool, "arguments": arguments })));
        answer["result"].clone()
    }

    /// Attaches, and returns the handle.
    fn attaches(&mut self, id: &str) -> String {
        let result = self.calls("majordomus_session_attach", &json!({ "external_id": id }));
        let handle = result["structuredContent"]["episode_handle"].as_str();
        handle.unwrap_or_else(|| panic!("no handle in {result}")).to_owned()
    }

    /// Asks for the tools, showing a handle.
    fn shows(&mut self, handle: &str) {
        let mut meta = meta();
        meta[HANDLE] = handle.into();
        assert!(self.ask(&modern("tools/list", json!({ "_meta": meta })))["result"].is_object());
    }
}

#[test]
fn discover_says_what_is_offered_opens_nothing_and_is_nobody() {
    let mut client = Client::silent();
    let result = client.ask(&modern("server/discover", json!({})))["result"].clone();
    assert_eq!(result["supportedVersions"], json!(["2026-07-28"]));
    assert!(result["capabilities"]["tools"].is_object() && result["instructions"].is_string(), "{result}");
    assert_eq!((&result["resultType"], &result["cacheScope"]), (&json!("complete"), &json!("public")));
    assert!(result["ttlMs"].is_u64());
    let server = &result["_meta"]["io.modelcontextprotocol/serverInfo"];
    assert_eq!(*server, json!({ "name": "majordomus", "version": env!("CARGO_PKG_VERSION") }));
    assert!(client.board.list().is_empty() && client.peers.list().is_empty());
}

#[test]
fn a_client_that_discovers_and_falls_back_is_a_session_like_any_other() {
    let mut client = Client::silent();
    client.ask(&modern("server/discover", json!({})));
    client.initialize(Revision::V2025_11_25);
    client.attach("a");
    let peers = client.peers.list();
    assert_eq!((peers.len(), peers[0].client.as_deref()), (1, Some("t 1")));
    client.ask(&modern("server/discover", json!({})));
    assert_eq!(client.peers.list().len(), 1, "a session that has begun stays");
}

#[test]
fn a_tool_that_needs_something_of_its_client_is_only_called_where_that_is_declared() {
    let mut registry = catalogue();
    let tool = RawTool {
        name: "asks",
        description: "Needs a client that can be asked.",
        input: json!({ "type": "object" }),
        needs: &["sampling", "elicitation"],
        call: |_, _| Ok(json!({ "content": [] })),
    };
    registry.add_raw(tool).unwrap();
    let mut client = Server::of(registry).client();
    let mut asks = |capabilities: Value| {
        let mut meta = meta();
        meta[CAPABILITIES] = capabilities;
        client.ask(&modern("tools/call", json!({ "name": "asks", "_meta": meta })))
    };
    for (declared, missing) in [
        (json!({}), json!({ "sampling": {}, "elicitation": {} })),
        (json!({ "elicitation": {}, "sampling": true }), json!({ "sampling": {} })),
    ] {
        let error = &asks(declared)["error"];
        assert_eq!((&error["code"], &error["data"]), (&json!(-32021), &json!({ "requiredCapabilities": missing })));
    }
    assert_eq!(asks(json!({ "elicitation": {}, "sampling": {}, "roots": {} }))["result"]["content"], json!([]));

    client.initialize(Revision::V2025_11_25);
    assert_eq!(client.call("asks", &json!({}))["content"], json!([]), "a session's client is not asked");
}

#[test]
fn what_such_a_request_must_say_of_itself_is_demanded() {
    let mut client = Client::silent();
    for missing in [VERSION, CAPABILITIES] {
        let mut meta = meta();
        meta.as_object_mut().unwrap().remove(missing);
        let line = modern("tools/list", json!({ "_meta": meta }));
        assert_eq!(client.error(&line), (-32602, json!("m")), "{missing}");
    }
    for (member, value) in [(CAPABILITIES, json!([])), (CAPABILITIES, NULL), (VERSION, json!(5))] {
        let mut meta = meta();
        meta[member] = value;
        assert_eq!(client.error(&modern("tools/list", json!({ "_meta": meta }))), (-32602, json!("m")), "{member}");
    }
    // Who it is, it may keep to itself.
    let meta = json!({ VERSION: "2026-07-28", CAPABILITIES: {} });
    assert!(client.ask(&modern("tools/list", json!({ "_meta": meta })))["result"].is_object());
}

#[test]
fn a_version_that_is_not_spoken_is_refused_with_those_that_are() {
    let mut client = Client::silent();
    for version in ["2025-11-25", "2099-01-01", "", "DRAFT-2026"] {
        for method in ["tools/list", "server/discover", "initialize", "no/such"] {
            let meta = json!({ VERSION: version, CAPABILITIES: {} });
            let error = client.ask(&modern(method, json!({ "_meta": meta })))["error"].clone();
            assert_eq!(error["code"], -32022, "{version} {method}");
            assert_eq!(error["data"], json!({ "supported": ["2026-07-28"], "requested": version }));
        }
    }
}

#[test]
fn methods_of_sessions_are_unknown_to_it() {
    let mut client = Client::new(Revision::NEWEST_LEGACY);
    for method in ["initialize", "ping", "logging/setLevel", "resources/subscribe", "tasks/list", "no/such"] {
        assert_eq!(client.error(&modern(method, json!({}))), (-32601, json!("m")), "{method}");
    }
    assert_eq!(client.ask(PING)["result"], json!({}), "of the session it still is one");
}

#[test]
fn results_say_that_they_are_whole_and_who_answers() {
    let mut client = Client::silent();
    let list = client.ask(&modern("tools/list", json!({})))["result"].clone();
    assert_eq!((&list["resultType"], &list["cacheScope"]), (&json!("complete"), &json!("public")));
    let mut legacy = Client::new(Revision::NEWEST_LEGACY);
    assert_eq!(list["tools"], legacy.ask(&super::request("1", "tools/list"))["result"]["tools"]);
    for (arguments, refused) in [(json!({}), false), (json!({ "nope": 1 }), true)] {
        let result = client.calls("majordomus_episodes", &arguments);
        assert_eq!(result["resultType"], "complete", "{result}");
        assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "majordomus");
        assert_eq!((result["isError"] == true, result["structuredContent"].is_object()), (refused, !refused));
        assert!(result.get("ttlMs").is_none());
    }
    assert_eq!(client.error(&modern("tools/list", json!({ "cursor": "x" }))), (-32602, json!("m")));
    assert_eq!(client.error(&modern("tools/call", json!({ "name": "nope" }))), (-32602, json!("m")));
}

#[test]
fn what_is_not_there_to_be_read_is_a_wrong_parameter() {
    let mut client = Client::silent();
    let error = client.ask(&modern("resources/read", json!({ "uri": "majordomus://nothing" })))["error"].clone();
    assert_eq!((&error["code"], &error["data"]), (&json!(-32602), &json!({ "uri": "majordomus://nothing" })));
    let read = client.ask(&modern("resources/read", json!({ "uri": "majordomus://episodes" })))["result"].clone();
    assert_eq!((&read["resultType"], &read["cacheScope"]), (&json!("complete"), &json!("private")));
}

#[test]
fn a_handle_stands_for_its_episode_and_nothing_else_does() {
    let server = Server::new();
    let mut client = server.client();
    let handle = client.attaches("thread-7");
    assert_eq!(server.shared.peers.list().len(), 1, "the handle is somebody, what carries it is not");
    assert_eq!(server.shared.peers.list()[0].client.as_deref(), Some("later 3"));
    server.wait(10);
    client.calls("majordomus_episodes", &json!({}));
    client.raw(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    assert_eq!(server.shown(), (OPEN, 10), "who says nothing of itself is no evidence");
    let mine = client.calls("majordomus_episodes", &json!({ "episode_handle": handle }));
    assert_eq!(mine["structuredContent"]["mine"]["external_id"], "thread-7");
    assert_eq!(server.shown(), (OPEN, 0));
    server.wait(10);
    client.shows(&handle);
    assert_eq!(server.shown(), (OPEN, 0), "shown beside the arguments it is evidence too");
    let closed = client.calls("majordomus_session_detach", &json!({ "episode_handle": handle }));
    assert_eq!(closed["structuredContent"]["episode"]["external_id"], "thread-7");
    assert!(server.shared.board.list().is_empty());
    assert_eq!(client.calls("majordomus_episodes", &json!({ "episode_handle": handle }))["isError"], true);
}

#[test]
fn the_two_eras_on_one_connection_are_strangers() {
    let server = Server::new();
    let mut client = server.client();
    client.initialize(Revision::NEWEST_LEGACY);
    client.attach("by-session");
    let handle = client.attaches("by-handle");
    let ages = || {
        let all = server.shared.board.list();
        ["by-session", "by-handle"]
            .map(|id| all.iter().find(|episode| episode.external_id == id).unwrap().last_activity_seconds_ago)
    };
    server.wait(5);
    client.shows(&handle);
    assert_eq!(ages(), [5, 0]);
    client.ask(PING);
    assert_eq!(ages(), [0, 0]);
    server.wait(5);
    client.ask(PING);
    assert_eq!(ages(), [0, 5]);
    let closed = client.call("majordomus_session_detach", &json!({}));
    assert_eq!(closed["structuredContent"]["episode"]["external_id"], "by-session");
    assert_eq!(server.shown().0, OPEN);
}

#[test]
fn the_end_of_a_carrier_is_the_loss_of_those_who_were_heard_on_it_alone() {
    let server = Server::new();
    let (mut first, mut second) = (server.client(), server.client());
    let (alone, shared) = (first.attaches("alone"), first.attaches("shared"));
    second.shows(&shared);
    server.wait(3600);
    server.shared.board.reap();
    let states = || {
        let mut all: Vec<_> = server.shared.board.list().into_iter().map(|one| (one.external_id, one.state)).collect();
        all.sort();
        all
    };
    assert_eq!(states(), [("alone".into(), OPEN), ("shared".into(), OPEN)], "their process is there");
    drop(first);
    assert_eq!(states(), [("alone".into(), DETACHED), ("shared".into(), OPEN)]);
    second.shows(&alone);
    assert_eq!(states(), [("alone".into(), OPEN), ("shared".into(), OPEN)], "a handle works from anywhere");
    second.session.end();
    assert_eq!(states(), [("alone".into(), DETACHED), ("shared".into(), DETACHED)]);
    server.wait(899);
    assert!(server.shared.board.reap().is_empty());
    server.wait(1);
    assert_eq!(server.shared.board.reap().len(), 2);
}

#[test]
fn a_process_that_says_nothing_for_a_day_holds_nothing() {
    let server = Server::new();
    let mut client = server.client();
    client.attaches("a");
    server.wait(24 * 3600 - 1);
    assert!(server.shared.board.reap().is_empty());
    server.wait(1);
    assert_eq!(server.shared.board.reap().len(), 1);
}

#[test]
fn it_is_no_part_of_a_batch() {
    let mut client = Client::new(Revision::V2025_03_26);
    let answer = client.ask(&format!("[{},{PING}]", modern("tools/list", json!({}))));
    assert_eq!((&answer[0]["error"]["code"], &answer[1]["result"]), (&json!(-32600), &json!({})));
}

#[test]
fn a_handle_that_is_not_good_says_which_and_what_to_do() {
    let server = Server::new();
    let mut client = server.client();
    let handle = client.attaches("a");
    let refused = |result: Value| {
        assert_eq!(result["isError"], true, "{result}");
        result["content"][0]["text"].as_str().unwrap().to_owned()
    };
    let unknown = format!("{}{}", &handle[..24], if handle.ends_with('A') { 'Q' } else { 'A' });
    let unknown = refused(client.calls("majordomus_session_detach", &json!({ "episode_handle": unknown })));
    assert!(unknown.contains("does not know") && unknown.contains("attach again"), "{unknown}");
    let mut legacy = server.client();
    legacy.initialize(Revision::NEWEST_LEGACY);
    legacy.attach("a");
    let taken = refused(client.calls("majordomus_episodes", &json!({ "episode_handle": handle })));
    assert!(taken.contains("taken over") && taken.contains("attach again"), "{taken}");
    legacy.call("majordomus_session_detach", &json!({}));
    let other = client.attaches("b");
    server.shared.board.close("b", majordomus_episodes_core::CloseReason::Detach).unwrap();
    let ended = refused(client.calls("majordomus_episodes", &json!({ "episode_handle": other })));
    assert!(ended.contains("has ended") && ended.contains("attach again"), "{ended}");
}

#[test]
fn a_stream_of_a_handle_holds_its_episode_and_one_of_nobody_holds_nothing() {
    let server = Server::new();
    let mut client = server.client();
    let handle = client.attaches("a");
    client.attaches("b");
    let mut said = meta();
    said[HANDLE] = handle.into();
    let wanted = json!({ "resourceSubscriptions": ["majordomus://episodes"] });
    let listen = modern("subscriptions/listen", json!({ "notifications": wanted, "_meta": said }));
    let told = client.ask(&listen);
    assert_eq!(told["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(told["params"]["notifications"], wanted);
    let nobody = modern("subscriptions/listen", json!({ "notifications": wanted })).replace("\"m\"", "\"n\"");
    client.ask(&nobody);
    server.wait(30 * 24 * 3600);
    assert_eq!(server.shared.board.reap().len(), 1, "the one that nobody listens for");
    assert_eq!(server.shown(), (OPEN, 30 * 24 * 3600), "and it is no evidence");
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": "m" } });
    assert_eq!(client.raw(cancel.to_string().as_bytes()), "");
    server.wait(899);
    assert!(server.shared.board.reap().is_empty());
    drop(client);
    server.wait(901);
    assert_eq!(server.shared.board.reap().len(), 1);
}

#[test]
fn a_stream_that_the_end_of_its_connection_ends_holds_nothing_any_more() {
    let server = Server::new();
    let mut client = server.client();
    let handle = client.attaches("a");
    let mut said = meta();
    said[HANDLE] = handle.into();
    client.ask(&modern("subscriptions/listen", json!({ "notifications": {}, "_meta": said })));
    client.session.end();
    server.wait(900);
    assert_eq!(server.shared.board.reap().len(), 1);
}
