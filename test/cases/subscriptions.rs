//! Being told of what has changed: by subscriptions of a session, and by streams of requests that are complete in themselves.

use std::time::{Duration, Instant};

use majordomus_e2e::{
    Client, Events, HANDLE_META, Request, Session, Stateless, World, meta, modern, payload_of, until, within,
};
use rustix::process::Signal;
use serde_json::{Value, json};

const EPISODES: &str = "majordomus://episodes";
const SESSIONS: &str = "majordomus://sessions";
/// How long a change may take to be told: looked for each second, on a machine that has other things to do.
const SOON: Duration = Duration::from_secs(10);

fn updated(uri: &str) -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/resources/updated", "params": { "uri": uri } })
}

fn tagged(uri: &str, id: &Value) -> Value {
    let mut told = updated(uri);
    told["params"]["_meta"] = json!({ "io.modelcontextprotocol/subscriptionId": id });
    told
}

/// The next message, which must come soon.
fn told(client: &mut Client) -> Value {
    let line = client.line_within(SOON).expect("the server is there");
    serde_json::from_str(&line).expect("a message is JSON")
}

fn said(events: &mut Events, time: Duration) -> Option<Value> {
    let until = Instant::now() + time;
    while let Some(Some(event)) = events.next_before(until) {
        if let Some(data) = event.lines().find_map(|line| line.strip_prefix("data: ")) {
            return Some(serde_json::from_str(data).expect("an event is a message"));
        }
    }
    None
}

fn wanted(uris: &[&str]) -> Value {
    json!({ "notifications": { "resourceSubscriptions": uris } })
}

#[test]
fn a_session_is_told_of_what_another_process_changes_until_it_unsubscribes() {
    let world = World::new();
    let mut watcher = world.holder();
    assert_eq!(watcher.ask("resources/subscribe", &json!({ "uri": EPISODES }))["result"], json!({}));
    let mut other = world.bridge();
    other.attach("my-thread");
    assert_eq!(told(&mut watcher), updated(EPISODES));
    let read = watcher.ask("resources/read", &json!({ "uri": EPISODES }))["result"].clone();
    assert!(read["contents"][0]["text"].as_str().is_some_and(|text| text.contains("my-thread")), "{read}");
    // A message of somebody is no change of what is shown of them but an age.
    other.ping();
    other.detach();
    assert_eq!(told(&mut watcher), updated(EPISODES));
    until("its record", || (world.record_files().len() == 1).then_some(()));
    watcher.ask("resources/subscribe", &json!({ "uri": SESSIONS }));
    assert_eq!(watcher.ask("resources/unsubscribe", &json!({ "uri": EPISODES }))["result"], json!({}));
    other.attach("another");
    other.detach();
    // Both have changed by now, and both would have been told of by then.
    assert_eq!(told(&mut watcher), updated(SESSIONS));
    watcher.ping();
}

#[test]
fn a_record_that_a_hook_leaves_is_told_too() {
    let world = World::new();
    let mut watcher = world.holder();
    watcher.ask("resources/subscribe", &json!({ "uri": SESSIONS }));
    world.hook("start", &payload_of("SessionStart.startup", "a"));
    world.hook("end", &payload_of("SessionEnd.prompt_input_exit", "a"));
    assert_eq!(told(&mut watcher), updated(SESSIONS));
    let read = watcher.ask("resources/read", &json!({ "uri": SESSIONS }))["result"].clone();
    let text = read["contents"][0]["text"].as_str().expect("it has text");
    let id = world.record().text("session_id").to_owned();
    assert!(text.contains(&id), "{text}");
    let record =
        watcher.ask("resources/read", &json!({ "uri": format!("majordomus://sessions/{id}") }))["result"].clone();
    let text = record["contents"][0]["text"].as_str().expect("it has text");
    assert!(text.starts_with("---\n") && text.contains(&id), "{text}");
    let open = watcher.ask("resources/read", &json!({ "uri": format!("majordomus://episode/{id}") }));
    assert_eq!(open["error"]["code"], -32002, "it has ended: {open}");
}

#[test]
fn one_sitting_that_has_not_ended_can_be_read_and_watched_whoever_drew_it() {
    let world = World::new();
    let mut watcher = world.holder();
    let line = world.hook("start", &payload_of("SessionStart.startup", "a"));
    let id = line.split(' ').nth(1).expect("a session").to_owned();
    let uri = format!("majordomus://episode/{id}");
    let read = watcher.ask("resources/read", &json!({ "uri": uri }))["result"].clone();
    let text = read["contents"][0]["text"].as_str().expect("it has text");
    let episode: Value = serde_json::from_str(text).expect("it is JSON");
    assert_eq!((&episode["provider"], &episode["external_id"]), (&json!("claude-code"), &json!("a")));
    let ids = json!({ "ref": { "type": "ref/resource", "uri": "majordomus://episode/{session_id}" }, "argument": { "name": "session_id", "value": "s-" } });
    let completed = watcher.ask("completion/complete", &ids)["result"]["completion"]["values"].clone();
    assert_eq!(completed, json!([id]));
    watcher.ask("resources/subscribe", &json!({ "uri": uri }));
    world.hook("end", &payload_of("SessionEnd.prompt_input_exit", "a"));
    assert_eq!(told(&mut watcher), updated(&uri));
}

#[test]
fn what_there_is_not_cannot_be_subscribed_to() {
    let world = World::new();
    let mut client = world.client();
    for uri in ["majordomus://nothing", "", "file:///etc/passwd"] {
        let error = client.ask("resources/subscribe", &json!({ "uri": uri }))["error"].clone();
        assert_eq!((&error["code"], &error["data"]["uri"]), (&json!(-32002), &json!(uri)));
    }
    assert_eq!(client.ask("resources/subscribe", &json!({}))["error"]["code"], -32602);
    assert_eq!(client.ask("resources/unsubscribe", &json!({ "uri": "majordomus://never" }))["result"], json!({}));
}

#[test]
fn over_http_a_change_is_told_on_one_of_a_sessions_streams() {
    let world = World::new();
    let server = world.serve(&[]);
    let mut session = server.session();
    let (mut one, mut other) = (session.stream(), session.stream());
    assert_eq!(session.ask("resources/subscribe", &json!({ "uri": EPISODES }))["result"], json!({}));
    let mut second = Session::begin(server.address(), "2025-11-25");
    second.attach("my-thread");
    let until = Instant::now() + SOON;
    let mut got = Vec::new();
    while got.is_empty() && Instant::now() < until {
        got.extend([&mut one, &mut other].into_iter().filter_map(|events| said(events, Duration::from_millis(200))));
    }
    got.extend([&mut one, &mut other].into_iter().filter_map(|events| said(events, Duration::from_millis(1500))));
    assert_eq!(got, [updated(EPISODES)], "once, and not on each of them");
}

#[test]
fn a_stream_over_stdio_is_acknowledged_first_tagged_and_ended_by_its_client() {
    let world = World::new();
    let mut client = world.server(&["mcp"]);
    let id = json!("listen \u{fc}");
    let uris = [EPISODES, "majordomus://nothing"];
    client.send(&modern(id.clone(), "subscriptions/listen", &wanted(&uris)));
    let first = client.receive();
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    let honoured = json!({ "resourceSubscriptions": [EPISODES] });
    assert_eq!((&first["params"]["notifications"], first.get("id")), (&honoured, None));
    let other = json!("another stream");
    client.send(&modern(other.clone(), "subscriptions/listen", &wanted(&[EPISODES])));
    assert_eq!(client.receive()["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], other);
    let (_, handle) = client.modern_attach("my-thread");
    assert_eq!([told(&mut client), told(&mut client)], [tagged(EPISODES, &id), tagged(EPISODES, &other)]);
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } }));
    client.modern_detach(&handle);
    assert_eq!(told(&mut client), tagged(EPISODES, &other), "the one that was cancelled is told nothing more");
    client.show(&handle);
    assert_eq!(client.lose().code, Some(0));
}

#[test]
fn a_stream_over_stdio_that_the_server_ends_is_answered() {
    let world = World::new();
    for close in [true, false] {
        let mut client = world.server(&["mcp"]);
        client.send(&modern(5, "subscriptions/listen", &wanted(&[EPISODES])));
        assert_eq!(client.receive()["method"], "notifications/subscriptions/acknowledged");
        if close {
            client.close_input();
        } else {
            client.signal(Signal::TERM);
        }
        let last = client.receive();
        assert_eq!((&last["id"], &last["result"]["resultType"]), (&json!(5), &json!("complete")), "{last}");
        assert_eq!(last["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 5);
        assert_eq!(client.wait().code, Some(0));
    }
}

#[test]
fn a_stream_over_http_tells_what_was_asked_for_and_ends_with_an_answer() {
    let world = World::new();
    let server = world.serve(&[]);
    let listen = modern(7, "subscriptions/listen", &wanted(&[EPISODES]));
    let mut events = server.connect().stream(&Request::modern(&listen));
    let first = said(&mut events, SOON).expect("it is acknowledged");
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(first["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 7);
    server.session().attach("my-thread");
    assert_eq!(said(&mut events, SOON), Some(tagged(EPISODES, &json!(7))));
    server.signal(Signal::TERM);
    let last = until_answer(&mut events);
    assert_eq!((&last["id"], &last["result"]["resultType"]), (&json!(7), &json!("complete")), "{last}");
    assert_eq!(server.wait().code, Some(0));
}

/// The answer that ends a stream, whatever is told before.
fn until_answer(events: &mut Events) -> Value {
    loop {
        let message = said(events, SOON).expect("the stream ends with an answer");
        if !message["id"].is_null() {
            return message;
        }
    }
}

#[test]
fn a_stream_whose_client_hangs_up_holds_nothing_from_then_on() {
    let world = World::new();
    let server = world.serve(&["--grace-seconds", "1"]);
    let (_, handle) = Stateless::connect(server.address()).attach("my-thread");
    let mut said_of_itself = meta();
    said_of_itself[HANDLE_META] = handle.into();
    let mut params = wanted(&[EPISODES]);
    params["_meta"] = said_of_itself;
    let mut events = server.connect().stream(&Request::modern(&modern(7, "subscriptions/listen", &params)));
    assert!(said(&mut events, SOON).is_some(), "it is acknowledged");
    drop(events);
    // Well before the next word on the stream, which its client would not hear.
    let record = within(Duration::from_secs(8), "its record", || world.records_with(&["--grace-seconds", "1"]).pop());
    assert_eq!((record.end().0, record.end().1), ("interrupted", "expired"));
}

#[test]
fn a_stream_of_a_handle_that_is_not_good_is_refused() {
    let world = World::new();
    let server = world.serve(&[]);
    let mut said = meta();
    said[HANDLE_META] = "ep_AAAAAAAAAAAAAAAAAAAAAA".into();
    let mut params = wanted(&[EPISODES]);
    params["_meta"] = said;
    let reply = server.ask(&Request::modern(&modern(7, "subscriptions/listen", &params)));
    assert_eq!((reply.status, reply.code()), (200, json!(-32602)), "{reply:?}");
}

#[test]
fn subscriptions_and_streams_follow_their_client_to_the_next_server() {
    let world = World::new();
    let holder = world.holder();
    let mut session = world.bridge();
    session.ask("resources/subscribe", &json!({ "uri": EPISODES }));
    let mut stateless = world.server(&["mcp"]);
    stateless.send(&modern(5, "subscriptions/listen", &wanted(&[EPISODES])));
    assert_eq!(stateless.receive()["method"], "notifications/subscriptions/acknowledged");
    holder.kill9();
    let mut other = world.client();
    other.attach("my-thread");
    assert_eq!(told(&mut session), updated(EPISODES));
    assert_eq!(told(&mut stateless), tagged(EPISODES, &json!(5)), "the second acknowledgement is nobody's");
}
