use std::cell::Cell;

use majordomus_capability::project::mcp::Revision;
use serde_json::{Value, json};

use super::{STREAMS_MAX, Stream, URI_BYTES, URIS_MAX, Watching};
use crate::protocol::{Frame, Line, read};

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// Opens a stream as the request of that id asks for it, with every URI known that begins with `a`.
fn open(id: &str, params: &Value) -> Result<Stream, i64> {
    let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"subscriptions/listen","params":{params}}}"#);
    let Line::One(Frame::Request(request)) = read(line.as_bytes(), false) else { panic!("{line}") };
    let known = |uri: &str| uri.starts_with('a').then_some(0);
    Stream::open(&request, Revision::NEWEST, None, &known).map_err(|_| -32602)
}

fn wanted(uris: &[&str]) -> Value {
    json!({ "notifications": { "resourceSubscriptions": uris } })
}

#[test]
fn a_change_is_told_once_for_each_who_wants_to_know() {
    let watching = Watching::default();
    let now = Cell::new(0);
    let mark = |uri: &str| Some(if uri == "a1" { now.get() } else { 0 });
    watching.subscribe("a1", 0).unwrap();
    watching.subscribe("a2", 0).unwrap();
    watching.listen(open("\"s\"", &wanted(&["a1"])).unwrap()).unwrap();
    assert!(watching.is_active() && watching.news(&mark).is_empty());
    now.set(1);
    let news = watching.news(&mark);
    let tagged = json!({ "uri": "a1", "_meta": { "io.modelcontextprotocol/subscriptionId": "s" } });
    let told: Vec<Value> = news.iter().map(|news| parsed(news)["params"].clone()).collect();
    assert_eq!(told, [json!({ "uri": "a1" }), tagged]);
    assert!(news.iter().all(|news| parsed(news)["method"] == "notifications/resources/updated"));
    assert!(watching.news(&mark).is_empty(), "it is told once");
    watching.unsubscribe("a1");
    now.set(2);
    assert_eq!(watching.news(&mark).len(), 1);
    assert!(watching.cancel("\"s\"") && !watching.cancel("\"s\""));
    watching.unsubscribe("a2");
    now.set(3);
    assert!(watching.news(&mark).is_empty() && !watching.is_active());
}

#[test]
fn a_stream_says_first_what_it_will_tell_and_last_that_it_is_over() {
    for id in ["\"a\\u00fc\"", "7", "18446744073709551616"] {
        let stream = open(id, &wanted(&["a1", "b", "a1", "a2"])).unwrap();
        let first = stream.acknowledgement();
        assert_eq!(parsed(&first)["params"]["notifications"], json!({ "resourceSubscriptions": ["a1", "a2"] }));
        let tag = format!(r#"{{"io.modelcontextprotocol/subscriptionId":{id}"#);
        assert!(first.contains(&tag), "{first}");
        let last = stream.end();
        assert!(
            last.starts_with(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"#)) && last.contains(&tag),
            "{last}"
        );
        assert_eq!(parsed(&last)["result"]["resultType"], "complete");
    }
    let quiet = open("1", &json!({ "notifications": { "toolsListChanged": true } })).unwrap();
    assert_eq!(parsed(&quiet.acknowledgement())["params"]["notifications"], json!({}), "lists never change");
    assert!(quiet.is_quiet());
    for wrong in [json!({}), json!({ "notifications": [] }), json!({ "notifications": { "resourceSubscriptions": 5 } })]
    {
        assert_eq!(open("1", &wrong).unwrap_err(), -32602, "{wrong}");
    }
}

#[test]
fn what_one_connection_can_watch_has_bounds() {
    let watching = Watching::default();
    for at in 0..URIS_MAX {
        watching.subscribe(&format!("a{at}"), 0).unwrap();
    }
    assert!(watching.subscribe("one-more", 0).is_err());
    watching.subscribe("a0", 0).unwrap();
    watching.unsubscribe("a0");
    assert!(watching.subscribe(&"a".repeat(URI_BYTES + 1), 0).is_err());
    watching.subscribe("one-more", 0).unwrap();
    let many: Vec<String> = (0..=URIS_MAX).map(|at| format!("a{at}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let told = parsed(&open("1", &wanted(&many)).unwrap().acknowledgement());
    let told = told["params"]["notifications"]["resourceSubscriptions"].as_array().unwrap().len();
    assert_eq!(told, URIS_MAX);
    for id in 0..STREAMS_MAX {
        watching.listen(open(&id.to_string(), &wanted(&["a"])).unwrap()).unwrap();
    }
    assert!(watching.listen(open("\"more\"", &wanted(&["a"])).unwrap()).is_err());
    assert!(watching.cancel("0"));
    assert!(watching.listen(open("1", &wanted(&["a"])).unwrap()).is_err(), "an id is open once");
    watching.listen(open("0", &wanted(&["a"])).unwrap()).unwrap();
    assert_eq!(watching.end().len(), STREAMS_MAX);
    assert!(watching.end().is_empty());
}
