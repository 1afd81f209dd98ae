//! A client without hooks over HTTP: its session draws the boundary of its episode.

use majordomus_e2e::{Request, World, files, now_ms, session_id, state_of};
use serde_json::{Value, json};

#[test]
fn initialize_list_and_ping_open_nothing_and_write_nothing() {
    let world = World::new();
    let server = world.serve(&[]);
    let _ = majordomus_e2e::published(&world);
    let (before, status) = (files(&world.folder(), &[]), world.status());
    let mut session = server.session();
    session.ask("tools/list", &json!({}));
    session.ping();
    assert_eq!(session.done("majordomus_episodes", &json!({}))["episodes"], json!([]));
    session.done("majordomus_peers", &json!({}));
    session.done("majordomus_announce", &json!({ "intent": "look around" }));
    assert_eq!(files(&world.folder(), &[]), before, "while it is connected");
    assert_eq!(session.delete().status, 204);
    assert_eq!((files(&world.folder(), &[]), world.status()), (before, status), "after it has gone");
}

#[test]
fn delete_detaches_and_leaves_worktree_index_and_records_as_they_were() {
    let world = World::new();
    let server = world.serve(&[]);
    let (status, work) = (world.status(), files(world.repository(), &[".git"]));
    let git = files(&world.path(".git"), &["majordomus"]);
    let mut session = server.session();
    session.attach("my-thread");
    assert_eq!(state_of(&server.episodes(), "my-thread"), "open");
    let log = std::fs::read(&world.logs("open")[0]).expect("a log can be read");
    assert_eq!(session.delete().status, 204);
    let listed = server.episodes();
    assert_eq!((&listed["open"], &listed["detached"]), (&json!(0), &json!(1)), "{listed}");
    assert_eq!(state_of(&listed, "my-thread"), "detached");
    assert_eq!((world.status(), files(world.repository(), &[".git"])), (status, work));
    assert_eq!(files(&world.path(".git"), &["majordomus"]), git);
    assert_eq!(world.records().len(), 0);
    assert_eq!(std::fs::read(&world.logs("open")[0]).expect("it is still open"), log, "nobody ended anything");
}

#[test]
fn a_new_session_resumes_the_episode_and_its_detach_leaves_the_only_record() {
    let world = World::new();
    let server = world.serve(&[]);
    let head = world.git(&["rev-parse", "HEAD"]);
    let before = now_ms();
    let mut first = server.session();
    let opened = first.attach("my-thread");
    assert_eq!((&opened["resumed"], &opened["recorded"]), (&json!(false), &json!(true)), "{opened}");
    assert_eq!((&opened["episode"]["attachments"], &opened["episode"]["state"]), (&json!(1), &json!("open")));
    assert!(opened.get("episode_handle").is_none(), "the session is its connection: {opened}");
    assert_eq!(first.delete().status, 204);

    let mut second = server.session();
    assert_ne!(second.id, first.id);
    let again = second.attach("my-thread");
    assert_eq!((&again["resumed"], &again["episode"]["attachments"]), (&json!(true), &json!(2)), "{again}");
    assert_eq!(again["episode"]["opened_at"], opened["episode"]["opened_at"]);
    assert_eq!(session_id(&again), session_id(&opened));
    assert!(again.get("taken_over_from").is_none(), "nobody held it: {again}");
    let during = world.commit("during.txt", "During the session");
    let closed = second.detach();
    assert_eq!((&closed["recorded"], &closed["episode"]["attachments"]), (&json!(true), &json!(2)), "{closed}");
    assert!(closed["episode"].get("state").is_none(), "{closed}");
    assert_eq!(second.detach(), closed, "repeated, it gives the first answer");

    let record = world.record();
    assert_eq!(record.text("session_id"), session_id(&opened));
    assert_eq!(record.end(), ("closed", "detach", "connection"));
    assert_eq!(record["attachments"], 2);
    assert_eq!((record.text("provider"), record.text("external_id")), ("generic", "my-thread"));
    assert_eq!((record.text("client"), record.text("start_head")), ("anything 0", head.as_str()));
    assert_eq!((record.text("head"), record.subjects()), (during.as_str(), vec!["During the session"]));
    assert!(before <= record.time("started_at") && record.time("closed_at") <= now_ms());
    assert!(world.logs("open").is_empty());
    assert_eq!(server.episodes(), json!({ "open": 0, "detached": 0, "episodes": [] }));
    assert!(server.end(rustix::process::Signal::TERM).err.is_empty());
    assert_eq!(world.records().len(), 1);
}

#[test]
fn a_session_and_a_process_over_stdio_are_two_holders_of_the_same_episode() {
    let world = World::new();
    let server = world.serve(&[]);
    let mut session = server.session();
    let opened = session.attach("my-thread");
    assert_eq!(session.delete().status, 204);
    let mut client = world.client();
    let again = client.attach("my-thread");
    assert_eq!((session_id(&again), &again["episode"]["attachments"]), (session_id(&opened), &json!(2)), "{again}");
    client.detach();
    assert_eq!(client.lose().code, Some(0));
    let record = world.record();
    assert_eq!((&record["attachments"], record.text("session_id")), (&json!(2), session_id(&opened).as_str()));
}

/// The words that a result tells its client besides what it asked for.
fn notice(result: &Value) -> String {
    let content = result["content"].as_array().into_iter().flatten();
    let texts = content.filter_map(|part| part["text"].as_str());
    texts.chain(result["structuredContent"]["notice"].as_str()).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_loser_of_a_take_over_is_told_so_once_and_its_going_is_nobody_elses() {
    let world = World::new();
    let server = world.serve(&[]);
    let (mut first, mut second) = (server.session(), server.session());
    let opened = first.attach("my-thread");
    let taken = second.attach("my-thread");
    assert_eq!(taken["taken_over_from"], opened["episode"]["peer"], "{taken}");
    assert_eq!((&taken["episode"]["attachments"], &taken["resumed"]), (&json!(2), &json!(true)), "{taken}");
    let told = first.tool("majordomus_peers", &json!({}));
    assert!(notice(&told).contains("took its episode over"), "{told}");
    let again = first.tool("majordomus_peers", &json!({}));
    assert!(!notice(&again).contains("took its episode over"), "{again}");
    first.tool("majordomus_session_detach", &json!({}));
    assert_eq!(state_of(&server.episodes(), "my-thread"), "open", "the loser's detach is not the holder's");
    assert_eq!(first.delete().status, 204);
    assert_eq!(state_of(&server.episodes(), "my-thread"), "open", "nor is its going");
    second.detach();
    let record = world.record();
    assert_eq!((&record["attachments"], &record["take_overs"]), (&json!(2), &json!(1)));
}

#[test]
fn a_message_after_an_operators_close_is_served_and_told_to_attach_again() {
    let world = World::new();
    let server = world.serve(&[]);
    let mut session = server.session();
    let opened = session.attach("my-thread");
    let closed = server.ask(&Request::post("/api/v1/episodes/close", &json!({ "external_id": "my-thread" })));
    assert_eq!(closed.status, 200, "{closed:?}");
    session.ping();
    let told = session.tool("majordomus_episodes", &json!({}));
    assert!(notice(&told).contains("attach"), "{told}");
    assert_eq!(world.record().end().0, "closed");
    let again = session.attach("my-thread");
    assert_eq!((&again["resumed"], &again["episode"]["attachments"]), (&json!(false), &json!(1)), "{again}");
    session.detach();
    let records = world.records();
    let later = records.iter().find(|record| record["session_id"] == session_id(&again)).expect("it has a record");
    assert_eq!((records.len(), &later["resumes"]), (2, &json!(session_id(&opened))));
}

#[test]
fn a_return_after_delete_takes_nothing_over() {
    let world = World::new();
    let server = world.serve(&[]);
    let mut first = server.session();
    first.attach("my-thread");
    assert_eq!(first.delete().status, 204);
    let mut second = server.session();
    second.attach("my-thread");
    second.detach();
    assert_eq!(world.record()["take_overs"], 0, "nobody held it");
}

#[test]
fn a_record_says_that_an_operator_ended_it_or_somebody_else_than_its_client() {
    for held in [true, false] {
        for target in ["/api/v1/episodes/close", "/api/v1/episodes/detach"] {
            let world = World::new();
            let server = world.serve(&[]);
            let mut session = server.session();
            session.attach("my-thread");
            if !held {
                assert_eq!(session.delete().status, 204);
            } else if target.ends_with("detach") {
                continue;
            }
            let ended = server.ask(&Request::post(target, &json!({ "external_id": "my-thread" })));
            assert_eq!(ended.status, 200, "{ended:?}");
            let record = world.record();
            assert_eq!(record.end(), ("closed", "detach", "operator"), "{target}, held: {held}");
            assert!(!record.body.contains("over its own connection"), "{target}, held: {held}: {}", record.body);
        }
    }
}
