//! Callers without a connection: the handle that attach mints for them is their connection.

use majordomus_e2e::{Reply, Request, Server, World, files, holds, milliseconds, now_ms, published, session_id, until};
use rustix::process::Signal;
use serde_json::{Value, json};

const ATTACH: &str = "/api/v1/episodes/attach";
const DETACH: &str = "/api/v1/episodes/detach";
const ANNOUNCE: &str = "/api/v1/peers/announce";
const HANDLE: &str = "Majordomus-Episode-Handle";

fn post(server: &Server, target: &str, body: &Value) -> Reply {
    server.ask(&Request::post(target, body))
}

/// Attaches under an id and returns the answer and its handle.
fn attach(server: &Server, id: &str) -> (Value, String) {
    let answer = post(server, ATTACH, &json!({ "external_id": id })).done();
    let handle = answer["episode_handle"].as_str().unwrap_or_else(|| panic!("no handle in {answer}")).to_owned();
    (answer, handle)
}

/// The refusal's status, code and hint.
fn refusal(reply: &Reply) -> (u16, String, String) {
    let error = reply.json()["error"].clone();
    let text = |field: &str| error[field].as_str().unwrap_or_default().to_owned();
    (reply.status, text("code"), text("hint"))
}

#[test]
fn attach_mints_a_handle_that_nobody_can_guess() {
    let world = World::new();
    let server = world.serve(&[]);
    let mut handles: Vec<String> = (0..20).map(|number| attach(&server, &format!("thread-{number}")).1).collect();
    for handle in &handles {
        let token = handle.strip_prefix("ep_").unwrap_or_else(|| panic!("{handle}"));
        assert!(token.len() == 22 && token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)));
    }
    handles.sort();
    handles.dedup();
    assert_eq!(handles.len(), 20);
}

#[test]
fn attach_with_the_handle_changes_nothing_and_without_it_mints_another_that_is_good_too() {
    let world = World::new();
    let server = world.serve(&[]);
    let (opened, first) = attach(&server, "my-thread");
    assert_eq!((&opened["resumed"], &opened["recorded"]), (&json!(false), &json!(true)), "{opened}");
    let in_body = post(&server, ATTACH, &json!({ "external_id": "my-thread", "episode_handle": first })).done();
    let by_header = Request::post(ATTACH, &json!({ "external_id": "my-thread" })).header(HANDLE, &first);
    for again in [in_body, server.ask(&by_header).done()] {
        assert_eq!(again["episode"]["attachments"], 1, "{again}");
        assert_eq!(again["episode_handle"], first.as_str(), "{again}");
        assert_eq!(session_id(&again), session_id(&opened));
    }
    let (again, second) = attach(&server, "my-thread");
    assert_ne!(first, second);
    assert_eq!(session_id(&again), session_id(&opened));
    for handle in [&first, &second] {
        let mine = server.ask(&Request::get("/api/v1/episodes").header(HANDLE, handle)).done();
        assert_eq!(mine["mine"]["external_id"], "my-thread", "{mine}");
    }
    assert_eq!(world.logs("open").len(), 1);
    assert_eq!(post(&server, DETACH, &json!({ "episode_handle": first })).status, 200);
    let record = world.record();
    assert_eq!((record.end(), &record["take_overs"]), (("closed", "detach", "connection"), &json!(0)));
}

#[test]
fn an_attach_that_finds_its_episode_there_says_so() {
    let world = World::new();
    let server = world.serve(&[]);
    assert_eq!(attach(&server, "my-thread").0["resumed"], false);
    assert_eq!(attach(&server, "my-thread").0["resumed"], true, "its caller may have lost everything but the id");
}

#[test]
fn detach_with_the_handle_closes_and_repeated_gives_the_first_answer() {
    let world = World::new();
    let server = world.serve(&[]);
    let (opened, handle) = attach(&server, "my-thread");
    let closed = post(&server, DETACH, &json!({ "episode_handle": handle })).done();
    assert_eq!((&closed["recorded"], closed["episode"].get("state")), (&json!(true), None), "{closed}");
    for again in [
        post(&server, DETACH, &json!({ "episode_handle": handle })),
        post(&server, DETACH, &json!({ "episode_handle": handle, "external_id": "my-thread" })),
        server.ask(&Request::post(DETACH, &json!({})).header(HANDLE, &handle)),
    ] {
        assert_eq!(again.done(), closed);
    }
    let record = world.record();
    assert_eq!(
        (record.text("session_id"), record.end()),
        (session_id(&opened).as_str(), ("closed", "detach", "connection"))
    );
    assert_eq!(record["attachments"], 1);
    let (status, code, hint) =
        refusal(&post(&server, ATTACH, &json!({ "external_id": "my-thread", "episode_handle": handle })));
    assert_eq!((status, code.as_str()), (404, "not_found"));
    assert!(hint.contains("attach"), "{hint}");
}

/// Attaches, lets some time pass, makes one call, and lets the server go; returns the times around the call, and that at
/// which the record ends.
fn last_evidence(call: impl FnOnce(&Server, &str) -> Reply) -> (i64, i64, i64) {
    let world = World::new();
    let server = world.serve(&[]);
    let (opened, handle) = attach(&server, "my-thread");
    let opened = milliseconds(opened["episode"]["opened_at"].as_str().expect("a time"));
    until("time passes", || (now_ms() > opened + 50).then_some(()));
    let before = now_ms();
    let reply = call(&server, &handle);
    assert_eq!(reply.status, 200, "{reply:?}");
    let after = now_ms();
    assert_eq!(server.end(Signal::TERM).code, Some(0));
    let record = until("the grace ends", || world.records_with(&["--grace-seconds", "1"]).pop());
    assert_eq!(record.end(), ("interrupted", "expired", "reaper"));
    assert_eq!(record["closed_at"], record["last_activity_at"]);
    (before, record.time("last_activity_at"), after)
}

#[test]
fn a_call_that_carries_the_handle_in_a_header_is_evidence() {
    let (before, last, after) =
        last_evidence(|server, handle| server.ask(&Request::get("/api/v1/episodes").header(HANDLE, handle)));
    assert!((before - 2..=after + 2).contains(&last), "{before} <= {last} <= {after}");
}

#[test]
fn a_call_that_carries_the_handle_as_an_argument_is_evidence() {
    let (before, last, after) =
        last_evidence(|server, handle| post(server, ANNOUNCE, &json!({ "intent": "work", "episode_handle": handle })));
    assert!((before - 2..=after + 2).contains(&last), "{before} <= {last} <= {after}");
}

#[test]
fn a_call_without_the_handle_is_no_evidence() {
    let (before, last, _) = last_evidence(|server, _| server.ask(&Request::get("/api/v1/episodes")));
    assert!(last < before, "{last} < {before}");
}

#[test]
fn announce_without_a_handle_is_refused_with_a_hint_and_with_one_others_see_it() {
    let world = World::new();
    let server = world.serve(&[]);
    let (status, code, hint) = refusal(&post(&server, ANNOUNCE, &json!({ "intent": "work" })));
    let as_declared = [(400, "invalid_input"), (403, "forbidden")];
    assert!(as_declared.contains(&(status, code.as_str())), "{status} {code}");
    assert!(hint.contains("attach") && hint.contains("episode_handle"), "{hint}");
    let (_, handle) = attach(&server, "my-thread");
    let said = post(&server, ANNOUNCE, &json!({ "intent": "work", "scope": ["src"], "episode_handle": handle })).done();
    assert_eq!(
        (&said["peer"]["intent"], &said["peer"]["external_id"]),
        (&json!("work"), &json!("my-thread")),
        "{said}"
    );
    let seen = server.session().done("majordomus_peers", &json!({}));
    assert_eq!(seen["peers"][0]["intent"], "work", "{seen}");
}

#[test]
fn a_handle_that_is_malformed_unknown_or_of_another_id_is_refused_and_says_what_to_do() {
    let world = World::new();
    let server = world.serve(&[]);
    let (_, handle) = attach(&server, "my-thread");
    let unknown = format!("ep_{}", "A".repeat(22));
    let long = "x".repeat(5000);
    for (given, status) in [(unknown.as_str(), 404), ("", 400), ("ep_", 400), ("../../x", 400), (&long, 400)] {
        let reply = post(&server, DETACH, &json!({ "episode_handle": given }));
        assert!(reply.status == status || reply.status == 404, "{given}: {reply:?}");
        let reply = server.ask(&Request::get("/api/v1/episodes").header(HANDLE, given));
        let (status, code, _) = refusal(&reply);
        assert!(
            (status, code.as_str()) == (404, "not_found") || (status, code.as_str()) == (400, "invalid_input"),
            "{reply:?}"
        );
    }
    let (_, _, hint) = refusal(&post(&server, DETACH, &json!({ "episode_handle": unknown })));
    assert!(hint.contains("attach"), "{hint}");
    let (status, code, _) =
        refusal(&post(&server, ATTACH, &json!({ "external_id": "other", "episode_handle": handle })));
    assert_eq!((status, code.as_str()), (400, "invalid_input"));
    assert_eq!(server.episodes()["open"], 1);
}

#[test]
fn a_handle_is_never_taken_from_a_url() {
    let world = World::new();
    let server = world.serve(&[]);
    let (_, handle) = attach(&server, "my-thread");
    let reply = server.ask(&Request::get(&format!("/api/v1/episodes?episode_handle={handle}")));
    assert_eq!(reply.status, 400, "a URL is in histories and logs: {reply:?}");
    assert!(!reply.text().contains(&handle), "nor is it said again: {reply:?}");
}

#[test]
fn a_handle_whose_episode_was_taken_over_says_so_and_can_no_longer_end_it() {
    let world = World::new();
    let server = world.serve(&[]);
    let (opened, handle) = attach(&server, "my-thread");
    let mut session = server.session();
    let taken = session.attach("my-thread");
    assert_eq!((session_id(&taken), &taken["taken_over_from"]), (session_id(&opened), &opened["episode"]["peer"]));
    for _ in 0..2 {
        let (status, code, hint) = refusal(&post(&server, DETACH, &json!({ "episode_handle": handle })));
        assert_eq!((status, code.as_str()), (409, "conflict"));
        assert!(!hint.is_empty());
    }
    assert_eq!(server.episodes()["open"], 1);
    let refused = post(&server, DETACH, &json!({ "external_id": "my-thread" }));
    assert_eq!(refusal(&refused).1, "forbidden", "somebody holds it: {refused:?}");
    session.detach();
    assert_eq!(world.record()["take_overs"], 1);
}

#[test]
fn a_handle_is_good_at_the_next_server_after_kill_9() {
    let world = World::new();
    let server = world.serve(&[]);
    let (opened, handle) = attach(&server, "my-thread");
    server.kill9();
    let server = world.serve(&[]);
    until("the new server knows of the episode", || (server.episodes()["detached"] == 1).then_some(()));
    let mine = server.ask(&Request::get("/api/v1/episodes").header(HANDLE, &handle)).done();
    assert_eq!((&mine["mine"]["external_id"], &mine["open"]), (&json!("my-thread"), &json!(1)), "{mine}");
    assert_eq!(session_id(&json!({ "episode": mine["mine"] })), session_id(&opened));
    assert_eq!(post(&server, DETACH, &json!({ "episode_handle": handle })).status, 200);
    let record = world.record();
    assert_eq!((record.text("session_id"), record.end().0), (session_id(&opened).as_str(), "closed"));
    assert_eq!(record["take_overs"], 0);
}

#[test]
fn a_handle_is_in_no_file_no_list_and_no_log() {
    let world = World::new();
    let server = world.serve(&[]);
    let _ = published(&world);
    let (_, handle) = attach(&server, "my-thread");
    let (_, other) = attach(&server, "other");
    assert_eq!(post(&server, ANNOUNCE, &json!({ "intent": "work", "episode_handle": handle })).status, 200);
    let open = files(&world.folder(), &[]);
    let token = &handle["ep_".len()..];
    assert_eq!(holds(&open, token), Vec::<std::path::PathBuf>::new());
    let wrong = post(&server, ANNOUNCE, &json!({ "intent": "", "episode_handle": handle }));
    let mut said = vec![wrong.text()];
    for target in ["/api/v1/episodes", "/api/v1/peers", "/api/v1/server", "/api/v1/sessions", "/"] {
        said.push(server.ask(&Request::get(target)).text());
        said.push(server.ask(&Request::get(target).header(HANDLE, &other)).text());
    }
    said.push(server.session().done("majordomus_episodes", &json!({})).to_string());
    assert_eq!(post(&server, DETACH, &json!({ "episode_handle": handle })).status, 200);
    said.push(world.run(&["episodes", "--json"]).out);
    said.push(world.run(&["sessions", "list", "--json"]).out);
    let left = server.end(Signal::TERM);
    said.push(left.err);
    assert_eq!(said.iter().find(|text| text.contains(token)), None);
    let ended = files(&world.folder(), &[]);
    for handle in [&handle, &other] {
        assert_eq!(holds(&ended, &handle["ep_".len()..]), Vec::<std::path::PathBuf>::new());
    }
    assert_eq!(world.record_files().len(), 1);
}
