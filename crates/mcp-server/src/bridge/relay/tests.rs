mod properties;

use majordomus_capability::{Effect, catalogue};

use super::asked::may_repeat;
use super::{REPEATABLE_BYTES, REPEATABLE_LINES, Relay, SUBSCRIPTIONS, Told, WAITING, WAITING_ID_BYTES, Why};

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26"}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// A relay, and what it wrote since somebody looked.
#[derive(Default)]
struct Bridge {
    relay: Relay,
    to_server: Vec<u8>,
    to_client: Vec<u8>,
}

impl Bridge {
    /// With a session that has begun.
    fn begun() -> Self {
        let mut bridge = Self::default();
        bridge.says(INITIALIZE);
        bridge.answers("0");
        bridge.says(INITIALIZED);
        bridge.sent();
        bridge.shown();
        bridge
    }

    fn says(&mut self, line: &str) {
        self.relay.client_line(line.as_bytes(), &mut self.to_server, &mut self.to_client);
    }

    fn asks(&mut self, id: &str, method: &str, params: &str) {
        self.says(&request(id, method, params));
    }

    fn calls(&mut self, id: &str, tool: &str, arguments: &str) {
        self.says(&call(id, tool, arguments));
    }

    fn server(&mut self, line: &str) -> Told {
        self.relay.server_line(line.as_bytes(), &mut self.to_client)
    }

    fn answers(&mut self, id: &str) -> Told {
        self.server(&result(id))
    }

    fn refuses(&mut self, id: &str) -> Told {
        self.server(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[],"isError":true}}}}"#))
    }

    fn faults(&mut self, id: &str) -> Told {
        self.server(&format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32602,"message":"no"}}}}"#))
    }

    fn loses(&mut self) {
        self.relay.lost(&mut self.to_client);
    }

    /// Loses its server and gets another one.
    fn moves(&mut self) {
        self.loses();
        self.sent();
        self.relay.replay(&mut self.to_server);
    }

    fn sent(&mut self) -> Vec<String> {
        lines(&mut self.to_server)
    }

    fn shown(&mut self) -> Vec<String> {
        lines(&mut self.to_client)
    }
}

fn lines(bytes: &mut Vec<u8>) -> Vec<String> {
    let text = String::from_utf8(std::mem::take(bytes)).unwrap();
    assert!(text.is_empty() || text.ends_with('\n'), "{text:?}");
    text.lines().map(str::to_owned).collect()
}

fn request(id: &str, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
}

fn call(id: &str, tool: &str, arguments: &str) -> String {
    request(id, "tools/call", &format!(r#"{{"name":"{tool}","arguments":{arguments}}}"#))
}

fn cancel(id: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#)
}

fn result(id: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)
}

fn attach(id: &str, external_id: &str) -> String {
    call(id, "majordomus_session_attach", &format!(r#"{{"external_id":"{external_id}"}}"#))
}

fn detach(id: &str) -> String {
    call(id, "majordomus_session_detach", "{}")
}

fn is_gone(line: &str, id: &str) -> bool {
    line.starts_with(&format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32603,"#))
        && line.contains("look before you repeat it")
}

#[test]
fn lines_pass_byte_for_byte_in_both_directions() {
    let mut bridge = Bridge::default();
    for line in [r#" {"id" : 1, "jsonrpc":"2.0","method":"p\u0069ng"}"#, "{ not json", "", "\u{feff}{}", "[1,2]", "7"] {
        bridge.says(line);
        assert_eq!(bridge.sent(), [line]);
    }
    let answer = r#" {"result" : {"a":1.50} , "id" : 1 }"#;
    assert_eq!(bridge.server(answer), Told::Passed);
    for line in [
        r#"{"jsonrpc":"2.0","method":"notifications/resources/updated"}"#,
        "what is this",
        "",
        r#"{"id":null,"error":{}}"#,
    ] {
        assert_eq!(bridge.server(line), Told::Passed);
    }
    assert_eq!(bridge.shown().len(), 5);
}

#[test]
fn what_is_no_request_is_not_in_flight() {
    let mut bridge = Bridge::default();
    for line in
        ["{", "", "[]", "{}", INITIALIZED, r#"{"id":4,"result":{}}"#, r#"{"jsonrpc":"2.0","id":null,"method":"a"}"#]
    {
        bridge.says(line);
    }
    assert_eq!(bridge.relay.in_flight(), 0);
    bridge.moves();
    assert!(bridge.shown().is_empty());
    assert!(bridge.sent().is_empty());
}

#[test]
fn two_ids_are_the_same_only_if_they_are_written_alike() {
    let mut bridge = Bridge::default();
    bridge.asks("1", "ping", "{}");
    for other in [r#""1""#, "10", "1.0", "-1"] {
        assert_eq!(bridge.answers(other), Told::Swallowed, "{other}");
    }
    assert_eq!(bridge.relay.in_flight(), 1);
    assert_eq!(bridge.answers("1"), Told::Passed);
    assert_eq!(bridge.relay.in_flight(), 0);
}

#[test]
fn an_answer_that_nobody_waits_for_is_never_passed() {
    let mut bridge = Bridge::default();
    bridge.asks("1", "ping", "{}");
    assert_eq!(
        (bridge.answers("1"), bridge.answers("1"), bridge.faults("1")),
        (Told::Passed, Told::Swallowed, Told::Swallowed)
    );
    assert_eq!(bridge.shown(), [result("1")]);
}

#[test]
fn what_only_reads_is_asked_again_and_the_rest_is_answered_with_an_error() {
    let mut bridge = Bridge::begun();
    let reads = [
        "ping",
        "tools/list",
        "prompts/list",
        "prompts/get",
        "resources/list",
        "resources/templates/list",
        "resources/read",
        "completion/complete",
        "server/discover",
        "subscriptions/listen",
    ];
    let mut kept: Vec<String> = reads.iter().map(|method| request(&format!("\"{method}\""), method, "{}")).collect();
    kept.extend([call("1", "majordomus_peers", "{}"), attach("2", "a"), detach("3")]);
    for line in &kept {
        bridge.says(line);
    }
    bridge.calls("4", "majordomus_announce", r#"{"intent":"x"}"#);
    bridge.calls("5", "no_such_tool", "{}");
    bridge.asks("6", "logging/setLevel", "{}");
    bridge.moves();
    assert_eq!(bridge.sent()[2..], kept);
    let shown = bridge.shown();
    assert!(shown.len() == 3 && shown.iter().zip(["4", "5", "6"]).all(|(line, id)| is_gone(line, id)), "{shown:?}");
    assert_eq!(bridge.relay.in_flight(), kept.len());
}

#[test]
fn which_tools_may_be_called_twice_is_what_the_registry_declares() {
    let registry = catalogue();
    for declared in registry.capabilities().iter().map(|capability| capability.descriptor()) {
        let Some(tool) = declared.tool else { continue };
        let expected = declared.effect == Effect::Read || ["episodes.attach", "episodes.detach"].contains(&declared.id);
        assert_eq!(may_repeat(tool), expected, "{tool}");
    }
}

#[test]
fn where_nobody_is_left_to_serve_everything_is_answered_once() {
    let mut bridge = Bridge::begun();
    bridge.calls("1", "majordomus_announce", "{}");
    bridge.calls("2", "majordomus_episodes", "{}");
    let mut out = Vec::new();
    bridge.relay.abandon(&mut out);
    let said = String::from_utf8(out).unwrap();
    let ids: Vec<&str> = said.lines().map(|line| &line[line.find("\"id\":").unwrap() + 5..][..1]).collect();
    assert_eq!((ids, said.matches("-32603").count()), (vec!["1", "2"], 2), "{said}");
    assert_eq!(bridge.relay.in_flight(), 0);
}

#[test]
fn losing_the_server_twice_answers_once() {
    let mut bridge = Bridge::begun();
    bridge.calls("1", "majordomus_announce", "{}");
    bridge.loses();
    bridge.loses();
    assert_eq!(bridge.shown().len(), 1);
    assert_eq!(bridge.answers("1"), Told::Swallowed);
    bridge.moves();
    assert_eq!(bridge.answers("1"), Told::Swallowed);
    assert!(bridge.shown().is_empty());
}

#[test]
fn the_opening_is_sent_again_and_its_answer_swallowed() {
    let mut bridge = Bridge::begun();
    for _ in 0..2 {
        bridge.moves();
        assert_eq!(bridge.sent(), [INITIALIZE, INITIALIZED]);
    }
    assert_eq!(bridge.answers("0"), Told::Swallowed);
    bridge.asks("0", "ping", "{}");
    assert_eq!(bridge.answers("0"), Told::Passed);
}

#[test]
fn a_request_under_the_openings_id_gets_its_own_answer() {
    let mut bridge = Bridge::begun();
    bridge.asks("0", "tools/list", "{}");
    bridge.moves();
    assert_eq!(bridge.answers("0"), Told::Swallowed);
    assert_eq!(bridge.server(r#"{"jsonrpc":"2.0","id":0,"result":{"tools":[]}}"#), Told::Passed);
    assert_eq!(bridge.answers("0"), Told::Swallowed);
}

#[test]
fn an_opening_in_flight_is_asked_again_for_the_client() {
    let mut bridge = Bridge::default();
    bridge.says(INITIALIZE);
    bridge.says(INITIALIZED);
    bridge.asks("1", "tools/list", "{}");
    bridge.moves();
    assert_eq!(bridge.sent(), [INITIALIZE, INITIALIZED, &request("1", "tools/list", "{}")]);
    assert_eq!(bridge.answers("0"), Told::Passed);
    bridge.moves();
    assert_eq!(bridge.sent(), [INITIALIZE, INITIALIZED, &request("1", "tools/list", "{}")]);
    assert_eq!((bridge.answers("0"), bridge.answers("1")), (Told::Swallowed, Told::Passed));
}

#[test]
fn a_refused_opening_is_not_sent_again() {
    let mut bridge = Bridge::default();
    bridge.says(INITIALIZE);
    bridge.faults("0");
    bridge.moves();
    assert!(bridge.sent().is_empty());
    let mut bridge = Bridge::begun();
    bridge.asks("1", "initialize", "{}");
    bridge.faults("1");
    bridge.says(&format!("[{}]", request("2", "initialize", "{}")));
    bridge.answers("2");
    bridge.moves();
    assert_eq!(bridge.sent(), [INITIALIZE, INITIALIZED]);
}

#[test]
fn that_the_client_is_ready_is_said_only_if_it_said_so() {
    let mut bridge = Bridge::default();
    bridge.says(INITIALIZE);
    bridge.answers("0");
    bridge.says(r#"{"jsonrpc":"2.0","method":"a","params":"notifications/initialized"}"#);
    bridge.moves();
    assert_eq!(bridge.sent(), [INITIALIZE]);
    bridge.says(r#"[{"jsonrpc":"2.0","method":"notifications/initialized"}]"#);
    bridge.moves();
    assert_eq!(bridge.sent(), [INITIALIZE, INITIALIZED]);
    // Said behind an opening that is refused, it was said of the first one.
    let mut bridge = Bridge::default();
    bridge.says(INITIALIZE);
    bridge.answers("0");
    bridge.asks("1", "initialize", "{}");
    bridge.says(INITIALIZED);
    bridge.faults("1");
    bridge.moves();
    assert_eq!(bridge.sent(), [INITIALIZE, INITIALIZED]);
}

#[test]
fn live_subscriptions_follow_the_client_and_their_answers_are_swallowed() {
    let mut bridge = Bridge::begun();
    for (id, uri) in [("1", "a:b"), ("2", "c\\\""), ("3", "d"), ("4", "d"), ("5", "e")] {
        bridge.asks(id, "resources/subscribe", &format!(r#"{{"uri":"{uri}"}}"#));
    }
    assert_eq!(["1", "2", "3", "4"].map(|id| bridge.answers(id)), [Told::Passed; 4]);
    bridge.faults("5");
    bridge.asks("6", "resources/unsubscribe", r#"{"uri":"\u0061:b"}"#);
    bridge.answers("6");
    bridge.shown();
    bridge.moves();
    let live = [("2", r#"{"uri":"c\""}"#), ("3", r#"{"uri":"d"}"#)];
    assert_eq!(bridge.sent()[2..], live.map(|(id, params)| request(id, "resources/subscribe", params)));
    bridge.asks("2", "ping", "{}");
    assert_eq!(["0", "2", "3"].map(|id| bridge.answers(id)), [Told::Swallowed; 3]);
    assert_eq!(bridge.relay.in_flight(), 1);
    assert!(bridge.shown().is_empty());
}

#[test]
fn a_stream_is_opened_again_and_acknowledged_once() {
    let acknowledged = r#"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"s"},"notifications":{}}}"#;
    let mut bridge = Bridge::default();
    bridge.asks(r#""s""#, "subscriptions/listen", "{}");
    bridge.sent();
    assert_eq!(bridge.server(acknowledged), Told::Passed);
    bridge.moves();
    assert_eq!(bridge.sent(), [request(r#""s""#, "subscriptions/listen", "{}")]);
    assert_eq!(bridge.server(acknowledged), Told::Swallowed);
    assert_eq!(bridge.server(&cancel(r#""s""#)), Told::Passed);
    bridge.moves();
    assert!(bridge.sent().is_empty());
}

#[test]
fn the_episode_is_held_from_a_successful_attach_to_a_successful_detach() {
    let mut bridge = Bridge::begun();
    bridge.says(&attach("1", "a"));
    bridge.refuses("1");
    assert_eq!(bridge.relay.holds(), None);
    bridge.says(&attach("2", "b"));
    bridge.answers("2");
    bridge.says(&attach("3", "c"));
    assert_eq!(bridge.relay.holds(), Some("b"));
    bridge.faults("3");
    assert_eq!(bridge.relay.holds(), Some("b"));
    bridge.says(&detach("4"));
    assert_eq!(bridge.relay.holds(), Some("b"));
    bridge.moves();
    assert_eq!(bridge.relay.holds(), Some("b"));
    bridge.refuses("4");
    assert_eq!(bridge.relay.holds(), Some("b"));
    bridge.calls("5", "majordomus_session_detach", r#"{"external_id":"other"}"#);
    bridge.answers("5");
    assert_eq!(bridge.relay.holds(), Some("b"));
    bridge.calls("6", "majordomus_session_detach", r#"{"external_id":"\u0062"}"#);
    bridge.answers("6");
    assert_eq!(bridge.relay.holds(), None);
}

#[test]
fn an_attach_that_may_have_been_done_counts_as_held() {
    let mut bridge = Bridge::begun();
    bridge.says(&attach("1", "a"));
    bridge.loses();
    assert_eq!(bridge.relay.holds(), Some("a"));
    bridge.relay.replay(&mut Vec::new());
    bridge.refuses("1");
    assert_eq!(bridge.relay.holds(), None);
}

#[test]
fn an_episode_of_a_handle_is_not_held_by_the_connection() {
    let mut bridge = Bridge::default();
    let meta = r#"{"name":"majordomus_session_attach","arguments":{"external_id":"a"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#;
    bridge.asks("1", "tools/call", meta);
    bridge.moves();
    assert_eq!(bridge.sent(), [request("1", "tools/call", meta)]);
    bridge.answers("1");
    assert_eq!(bridge.relay.holds(), None);
}

#[test]
fn a_cancelled_request_is_neither_asked_again_nor_answered() {
    let mut bridge = Bridge::default();
    bridge.asks("1", "ping", "{}");
    bridge.calls("2", "majordomus_announce", "{}");
    bridge.asks("3", "ping", "{}");
    bridge.sent();
    bridge.says(&cancel("1"));
    bridge.says(&cancel("2"));
    assert_eq!(bridge.sent(), [cancel("1"), cancel("2")]);
    assert_eq!(bridge.relay.in_flight(), 1);
    bridge.moves();
    assert_eq!(bridge.sent(), [request("3", "ping", "{}")]);
    assert!(bridge.shown().is_empty());
}

#[test]
fn a_batch_is_asked_again_as_a_whole_or_not_at_all() {
    let (read, write) = (request("1", "ping", "{}"), call("2", "majordomus_announce", "{}"));
    let mut bridge = Bridge::default();
    bridge.says(&format!("[{read},{INITIALIZED}]"));
    bridge.moves();
    assert_eq!(bridge.sent(), [format!("[{read},{INITIALIZED}]")]);
    assert_eq!(bridge.server(&format!("[{}]", result("1"))), Told::Passed);
    assert_eq!(bridge.relay.in_flight(), 0);
    bridge.shown();
    bridge.says(&format!("[{read},{write}]"));
    bridge.moves();
    assert!(bridge.sent().is_empty());
    let shown = bridge.shown();
    let errors: Vec<serde_json::Value> = serde_json::from_str(&shown[0]).unwrap();
    assert_eq!((shown.len(), errors.len()), (1, 2));
    assert!(errors.iter().zip([1, 2]).all(|(error, id)| error["id"] == id && error["error"]["code"] == -32603));
}

#[test]
fn a_batch_that_was_answered_in_part_is_not_asked_again() {
    let mut bridge = Bridge::default();
    bridge.says(&format!("[{},{}]", request("1", "ping", "{}"), request("2", "ping", "{}")));
    bridge.answers("1");
    bridge.moves();
    assert!(bridge.sent().is_empty());
    let shown = bridge.shown();
    assert!(shown[1].contains(r#""id":2"#) && !shown[1].contains(r#""id":1"#), "{shown:?}");
}

#[test]
fn an_error_without_an_id_ends_the_line_that_it_is_about() {
    let refused = r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"no"}}"#;
    let mut bridge = Bridge::default();
    bridge.says("{ broken");
    bridge.says(&format!("[{}]", request("1", "ping", "{}")));
    bridge.asks("2", "ping", "{}");
    assert_eq!((bridge.server(refused), bridge.relay.in_flight()), (Told::Passed, 2));
    assert_eq!((bridge.server(refused), bridge.relay.in_flight()), (Told::Passed, 1));
    assert_eq!((bridge.server(refused), bridge.relay.in_flight()), (Told::Passed, 1));
    bridge.moves();
    assert_eq!(bridge.sent(), [request("2", "ping", "{}")]);
}

#[test]
fn a_line_that_nothing_answered_is_forgotten_with_the_next_answer() {
    let mut bridge = Bridge::default();
    bridge.says(&format!("[{INITIALIZED}]"));
    bridge.asks("1", "ping", "{}");
    bridge.answers("1");
    bridge.says(&format!("[{}]", request("2", "ping", "{}")));
    bridge.server(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no"}}"#);
    assert_eq!(bridge.relay.in_flight(), 0);
}

#[test]
fn a_message_that_is_none_is_answered_under_its_id() {
    let mut bridge = Bridge::default();
    let line = r#"{"jsonrpc":"2.0","id":9}"#;
    bridge.says(line);
    bridge.moves();
    assert_eq!(bridge.sent(), [line]);
    assert_eq!(bridge.faults("9"), Told::Passed);
}

#[test]
fn a_farewell_is_never_passed_on() {
    let mut bridge = Bridge::default();
    for (line, told) in [
        (r#"{"majordomus":"farewell","why":"moved"}"#, Told::Farewell(Why::Moved)),
        (r#"{"majordomus":"farewell","why":"stopped"}"#, Told::Farewell(Why::Stopped)),
        (r#"{"majordomus":"farewell","why":"tired"}"#, Told::Farewell(Why::Moved)),
        (r#"{"majordomus":"farewell"}"#, Told::Farewell(Why::Moved)),
        (r#"{"majordomus":"news"}"#, Told::Swallowed),
        (r#"{"majordomus":"farew"#, Told::Swallowed),
    ] {
        assert_eq!(bridge.server(line), told, "{line}");
    }
    assert!(bridge.shown().is_empty());
}

#[test]
fn what_is_too_much_to_keep_is_answered_instead_of_asked_again() {
    let mut bridge = Bridge::default();
    let large = request("1", "ping", &format!(r#"{{"a":"{}"}}"#, "a".repeat(REPEATABLE_BYTES)));
    bridge.says(&large);
    assert_eq!(bridge.sent(), [large]);
    for id in 2..REPEATABLE_LINES + 3 {
        bridge.asks(&id.to_string(), "ping", "{}");
    }
    bridge.moves();
    assert_eq!(bridge.sent().len(), REPEATABLE_LINES);
    let shown = bridge.shown();
    assert!(is_gone(&shown[0], "1") && is_gone(&shown[1], &(REPEATABLE_LINES + 2).to_string()) && shown.len() == 2);
    bridge.answers("2");
    bridge.asks("1", "ping", "{}");
    bridge.moves();
    assert_eq!(bridge.sent().len(), REPEATABLE_LINES);
}

#[test]
fn a_request_too_many_is_answered_without_being_sent() {
    let mut bridge = Bridge::default();
    for id in 0..WAITING {
        bridge.asks(&id.to_string(), "logging/setLevel", "{}");
    }
    bridge.sent();
    bridge.asks("-1", "ping", "{}");
    assert!(bridge.sent().is_empty());
    assert!(bridge.shown()[0].starts_with(r#"{"jsonrpc":"2.0","id":-1,"error":{"code":-32603,"#));
    bridge.says(&cancel("7"));
    assert_eq!(bridge.sent(), [cancel("7")]);
    bridge.answers("0");
    bridge.asks("-1", "ping", "{}");
    assert_eq!(bridge.sent().len(), 1);
    bridge.moves();
    bridge.sent();
    bridge.asks("-2", "ping", "{}");
    assert_eq!(bridge.sent().len(), 1);
    let mut bridge = Bridge::default();
    bridge.asks(&format!("\"{}\"", "a".repeat(WAITING_ID_BYTES)), "ping", "{}");
    assert_eq!((bridge.sent().len(), bridge.shown().len(), bridge.relay.in_flight()), (0, 1, 0));
}

#[test]
fn subscriptions_are_bounded() {
    let mut bridge = Bridge::default();
    for id in 0..SUBSCRIPTIONS + 2 {
        bridge.asks(&id.to_string(), "resources/subscribe", &format!(r#"{{"uri":"a:{id}"}}"#));
        bridge.answers(&id.to_string());
    }
    bridge.moves();
    assert_eq!(bridge.sent().len(), SUBSCRIPTIONS);
}

#[test]
fn what_no_server_will_be_asked_is_answered_as_undone() {
    let relay = super::Relay::new();
    for (line, answered) in [
        (r#"{"jsonrpc":"2.0","id":"a","method":"tools/list"}"#, Some("a")),
        (r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, None),
        (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, None),
        ("", None),
    ] {
        let mut out = Vec::new();
        relay.refuse(line.as_bytes(), &mut out);
        let answer: Option<serde_json::Value> = serde_json::from_slice(&out).ok();
        assert_eq!(answer.as_ref().and_then(|answer| answer["id"].as_str()), answered, "{line}");
        assert!(answer.is_none_or(|answer| answer["error"]["code"] == -32603), "{line}");
    }
}
