//! Clients whose every request is complete in itself, over the standard streams: a handle is who they are, and the process
//! only carries it.

use majordomus_e2e::{Client, World, attach_line, files, holds, meta, modern, reported, session_id, state_of, until};
use rustix::process::Signal;
use serde_json::{Value, json};

/// Starts a server that nobody has said anything to.
fn silent(world: &World) -> Client {
    world.server(&["mcp"])
}

#[test]
fn a_whole_sitting_without_a_session_leaves_the_record_that_it_names() {
    let world = World::new();
    let mut client = silent(&world);
    let found = client.modern("server/discover", &json!({}))["result"].clone();
    assert_eq!(found["supportedVersions"], json!(["2026-07-28"]));
    client.modern("tools/list", &json!({}));
    assert!(world.nothing_recorded(), "looking around opens nothing");
    let (opened, handle) = client.modern_attach("my-thread");
    assert_eq!((&opened["resumed"], &opened["recorded"]), (&json!(false), &json!(true)), "{opened}");
    assert!(opened["next"].as_str().is_some_and(|next| next.contains("episode_handle")), "{opened}");
    let commit = world.commit("during.txt", "During the session");
    let closed = client.modern_detach(&handle);
    let path = reported(&closed).strip_prefix("episode closed (closed, reason detach) into ").expect("it says where");
    assert_eq!(client.modern_detach(&handle), closed, "repeated, it gives the first answer");
    let record = world.record();
    assert_eq!((record.path.as_str(), record.text("session_id")), (path, session_id(&opened).as_str()));
    assert_eq!(record.end(), ("closed", "detach", "connection"));
    assert_eq!((record.text("client"), record.text("external_id")), ("anything 0", "my-thread"));
    assert_eq!(record["commits"][0]["sha"], commit);
    assert_eq!((&record["attachments"], &record["take_overs"]), (&json!(1), &json!(0)));
    assert_eq!(client.lose().code, Some(0));
    assert!(holds(&files(world.repository(), &[]), &handle).is_empty(), "a handle stands nowhere");
}

/// How a process goes.
type Going = fn(Client);

#[test]
fn however_its_process_goes_the_episode_waits_and_its_handle_works_from_another() {
    let goings: [(&str, Going); 5] = [
        ("closed input", |client| assert_eq!(client.lose().code, Some(0))),
        ("TERM", |client| signalled(client, Signal::TERM)),
        ("INT", |client| signalled(client, Signal::INT)),
        ("HUP", |client| signalled(client, Signal::HUP)),
        ("KILL", Client::kill9),
    ];
    for (how, go) in goings {
        let world = World::new();
        let mut first = silent(&world);
        let (opened, handle) = first.modern_attach("my-thread");
        assert_eq!(state_of(&world.episodes(), "my-thread"), "open", "{how}");
        go(first);
        world.until_detached("my-thread");
        assert!(world.records().is_empty(), "{how}: a loss closes nothing");
        let mut second = silent(&world);
        let mine = second.modern_done("majordomus_episodes", &json!({ "episode_handle": handle }));
        assert_eq!((&mine["mine"]["external_id"], &mine["mine"]["attachments"]), (&json!("my-thread"), &json!(1)));
        assert_eq!(state_of(&world.episodes(), "my-thread"), "open", "{how}: who is heard is there");
        let closed = second.modern_detach(&handle);
        assert_eq!(closed["recorded"], true, "{how}: {closed}");
        let record = world.record();
        assert_eq!((record.text("session_id"), record.end().0), (session_id(&opened).as_str(), "closed"), "{how}");
        assert_eq!(record["attachments"], 1, "{how}: no attach was asked for");
        assert_eq!(second.lose().code, Some(0));
    }
}

fn signalled(client: Client, signal: Signal) {
    client.signal(signal);
    let left = client.wait();
    assert_eq!((left.code, left.signal, left.err.as_str()), (Some(0), None, ""), "{signal:?}");
}

#[test]
fn nobody_who_comes_back_within_the_grace_is_an_interruption() {
    let world = World::new();
    let mut client = world.server(&["mcp", "--grace-seconds", "1"]);
    client.modern_attach("my-thread");
    assert_eq!(client.lose().code, Some(0));
    let record = until("its record", || world.records().pop());
    assert_eq!((record.end().0, record.end().1), ("interrupted", "expired"));
    assert_eq!(record.text("closed_at"), record.text("last_activity_at"), "it ends where it was seen last");
}

#[test]
fn a_client_that_lost_its_handle_attaches_again_and_is_given_another() {
    let world = World::new();
    let mut client = silent(&world);
    let (opened, first) = client.modern_attach("my-thread");
    let (again, second) = client.modern_attach("my-thread");
    assert_ne!(first, second);
    assert_eq!((&again["resumed"], &again["episode"]["attachments"]), (&json!(true), &json!(2)), "{again}");
    assert_eq!(session_id(&again), session_id(&opened));
    for handle in [&first, &second] {
        let mine = client.modern_done("majordomus_episodes", &json!({ "episode_handle": handle }));
        assert_eq!(mine["mine"]["external_id"], "my-thread", "an earlier one stays good");
    }
    client.modern_detach(&second);
    assert_eq!(world.record()["take_overs"], 0, "it took over from nobody");
}

#[test]
fn several_conversations_on_one_process_are_several_episodes() {
    let world = World::new();
    let mut client = silent(&world);
    let handles: Vec<String> = (0..5).map(|at| client.modern_attach(&format!("thread-{at}")).1).collect();
    let listed = client.modern_done("majordomus_episodes", &json!({}));
    assert_eq!((&listed["open"], &listed["mine"]), (&json!(5), &Value::Null), "{listed}");
    client.modern_detach(&handles[2]);
    for (at, handle) in handles.iter().enumerate() {
        let mine = client.modern_tool("majordomus_episodes", &json!({ "episode_handle": handle }));
        if at == 2 {
            assert_eq!(mine["isError"], true, "{mine}");
        } else {
            assert_eq!(mine["structuredContent"]["mine"]["external_id"], format!("thread-{at}"));
        }
    }
    assert_eq!(client.lose().code, Some(0));
    assert_eq!((world.logs("open").len(), world.records().len()), (4, 1));
}

#[test]
fn both_eras_on_one_process_are_two_episodes_that_do_not_touch_each_other() {
    let world = World::new();
    let mut client = silent(&world);
    client.modern("server/discover", &json!({}));
    client.initialize();
    let by_session = client.attach("by-session");
    let (by_handle, handle) = client.modern_attach("by-handle");
    assert_ne!(session_id(&by_session), session_id(&by_handle));
    assert_eq!(client.mine()["external_id"], "by-session");
    client.detach();
    assert_eq!(state_of(&world.episodes(), "by-handle"), "open");
    client.modern_detach(&handle);
    let mut ends: Vec<_> = world.records().iter().map(|record| record.text("external_id").to_owned()).collect();
    ends.sort();
    assert_eq!(ends, ["by-handle", "by-session"]);
}

#[test]
fn what_such_a_request_lacks_is_refused_and_the_next_one_is_answered() {
    let world = World::new();
    let mut client = silent(&world);
    let without = |member: &str| {
        let mut meta = meta();
        meta.as_object_mut().expect("an object").remove(member);
        json!({ "_meta": meta })
    };
    let version = "io.modelcontextprotocol/protocolVersion";
    let mut older = meta();
    older[version] = json!("2025-11-25");
    for (method, params, code) in [
        ("tools/list", without("io.modelcontextprotocol/clientCapabilities"), -32602),
        ("tools/list", without(version), -32602),
        ("tools/list", json!({ "_meta": older }), -32022),
        ("initialize", json!({}), -32601),
        ("ping", json!({}), -32601),
        ("resources/subscribe", json!({ "uri": "majordomus://episodes" }), -32601),
        ("tools/call", json!({ "name": "no_such_tool" }), -32602),
        ("tools/list", json!({ "cursor": "x" }), -32602),
    ] {
        let answer = client.modern(method, &params);
        assert_eq!(answer["error"]["code"], code, "{method} {params}: {answer}");
    }
    assert!(client.modern("tools/list", &without("io.modelcontextprotocol/clientInfo"))["result"].is_object());
    // Without a word of itself it is of a session, and there is none.
    assert_eq!(client.ask("tools/list", &json!({}))["error"]["code"], -32602);
    assert_eq!(client.ask("server/discover", &json!({}))["error"]["code"], -32601);
    client.ping();
    assert!(world.nothing_recorded());
}

#[test]
fn ids_come_back_as_they_were_sent() {
    let world = World::new();
    let mut client = silent(&world);
    for id in [json!("a \u{fc}"), json!(9_007_199_254_740_993_u64), json!(-1), json!("")] {
        client.send(&modern(id.clone(), "tools/list", &json!({})));
        assert_eq!(client.receive()["id"], id);
    }
}

#[test]
fn a_session_on_the_same_process_takes_over_and_the_handle_says_so() {
    let world = World::new();
    let mut client = silent(&world);
    let (_, handle) = client.modern_attach("my-thread");
    client.initialize();
    client.write(attach_line("my-thread").as_bytes());
    let taken = client.receive()["result"]["structuredContent"].clone();
    assert!(taken["taken_over_from"].is_string(), "{taken}");
    let refused = client.modern_tool("majordomus_announce", &json!({ "intent": "go on", "episode_handle": handle }));
    let text = refused["content"][0]["text"].as_str().expect("it has text");
    assert!(refused["isError"] == true && text.contains("taken over") && text.contains("attach again"), "{text}");
    assert_eq!(client.mine()["external_id"], "my-thread");
}
