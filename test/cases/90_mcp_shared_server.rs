//! The clients of one checkout share a server, which changes the repository not at all: its index, its refs and what
//! `git status` says.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::time::{Duration, Instant, SystemTime};

use majordomus_e2e::{Client, Files, Request, Session, World, files, published, session_id, state_of, until, within};
use rustix::process::Signal;
use serde_json::{Value, json};

/// The state folder, in a world.
const STATE: &[&str] = &["work/.git/majordomus"];

/// All that git has, except the state folder and what only says when git last fetched or packed.
fn of_git(world: &World) -> Files {
    files(&world.path(".git"), &["majordomus"])
}

/// A repository in which any `git status` that may take the index's lock would write the index anew: a file was
/// touched, a second one changed, a third one is staged and a fourth is untracked.
fn restless() -> World {
    let world = World::new();
    world.commit("touched.txt", "Touched");
    world.commit("changed.txt", "Changed");
    world.write("changed.txt", "other\n");
    world.write("staged.txt", "staged\n");
    world.git(&["add", "staged.txt"]);
    world.write("untracked.txt", "untracked\n");
    world.git(&["tag", "a-tag"]);
    let long_ago = SystemTime::now() - Duration::from_secs(90_000);
    let touched = File::options().write(true).open(world.path("touched.txt"));
    touched.and_then(|file| file.set_modified(long_ago)).expect("its time can be set");
    world
}

#[test]
fn a_restless_index_is_written_by_an_ordinary_git_status() {
    let world = restless();
    let before = fs::read(world.path(".git/index")).unwrap();
    // The same call as ours, with the locks that ours leaves out.
    assert!(world.program("git").args(["status", "--short"]).output().unwrap().status.success());
    assert_ne!(fs::read(world.path(".git/index")).unwrap(), before, "the tests below could not fail");
}

#[test]
fn a_session_that_only_looks_leaves_status_index_head_and_refs_as_they_were() {
    let world = restless();
    let (status, git, all) = (world.status(), of_git(&world), files(&world.folder(), STATE));
    let mut client = world.client();
    client.ask("tools/list", &json!({}));
    client.ping();
    client.done("majordomus_episodes", &json!({}));
    assert_eq!((world.status(), of_git(&world)), (status.clone(), git.clone()), "while it runs");
    assert_eq!(client.lose().code, Some(0));
    assert_eq!((world.status(), of_git(&world)), (status, git), "afterwards");
    assert_eq!(files(&world.folder(), STATE), all);
    assert!(world.nothing_recorded());
}

#[test]
fn an_attach_and_a_lost_connection_change_the_state_folder_and_nothing_else() {
    let world = restless();
    let (status, git) = (world.status(), of_git(&world));
    let work = files(world.repository(), &[".git"]);
    let mut client = world.client();
    client.attach("my-thread");
    client.ping();
    assert_eq!((world.status(), of_git(&world)), (status.clone(), git.clone()), "while it runs");
    assert_eq!(client.lose().code, Some(0));
    assert_eq!((world.status(), of_git(&world)), (status, git), "afterwards");
    assert_eq!(files(world.repository(), &[".git"]), work);
    assert_eq!(world.logs("open").len(), 1);
}

#[test]
fn a_whole_session_leaves_index_and_refs_alone_and_adds_one_file() {
    let world = restless();
    let (git, work) = (of_git(&world), files(world.repository(), &[".git", ".ai"]));
    let status: Vec<String> = world.status().lines().map(str::to_owned).collect();
    let mut client = world.client();
    client.attach("my-thread");
    client.detach();
    assert_eq!(client.lose().code, Some(0));
    let record = world.record();
    for command in
        [&["episodes"][..], &["capture", "status"], &["doctor"], &["sessions", "show", record.text("session_id")]]
    {
        assert_eq!(world.run(command).code, Some(0), "{command:?}");
    }
    assert_eq!(of_git(&world), git);
    assert_eq!(files(world.repository(), &[".git", ".ai"]), work);
    let now = world.status();
    let new: Vec<&str> = now.lines().filter(|line| !status.iter().any(|before| before == line)).collect();
    assert_eq!(new, [format!("? {}", record.path)]);
}

#[test]
fn hooks_leave_index_and_refs_alone() {
    let world = restless();
    let (status, git) = (world.status(), of_git(&world));
    let about = json!({ "session_id": "a", "hook_event_name": "SessionStart", "source": "startup" });
    world.hook("start", &about);
    assert_eq!((world.status(), of_git(&world)), (status, git.clone()));
    world.hook("end", &json!({ "session_id": "a", "hook_event_name": "SessionEnd", "reason": "clear" }));
    assert_eq!(world.records().len(), 1);
    assert_eq!(of_git(&world), git);
}

#[test]
fn serving_over_http_changes_nothing_in_the_repository() {
    let world = restless();
    let (status, git) = (world.status(), of_git(&world));
    let work = files(world.repository(), &[".git"]);
    for signal in [Signal::TERM, Signal::HUP, Signal::INT] {
        let server = world.serve(&[]);
        let mut session = server.session();
        session.ask("tools/list", &json!({}));
        session.done("majordomus_announce", &json!({ "intent": "look around" }));
        for path in ["/", "/docs/", "/openapi.json", "/api/v1/episodes", "/api/v1/sessions", "/api/v1/server"] {
            assert_eq!(server.ask(&Request::get(path)).status, 200, "{path}");
        }
        assert_eq!((world.status(), of_git(&world)), (status.clone(), git.clone()), "while it runs");
        assert_eq!(session.delete().status, 204);
        assert_eq!(server.end(signal).code, Some(0), "{signal:?}");
        assert_eq!((world.status(), of_git(&world)), (status.clone(), git.clone()), "after {signal:?}");
    }
    assert_eq!(files(world.repository(), &[".git"]), work);
}

#[test]
fn an_attach_over_http_and_a_server_that_is_told_to_go_change_the_state_folder_and_nothing_else() {
    let world = restless();
    let (status, git) = (world.status(), of_git(&world));
    let work = files(world.repository(), &[".git"]);
    let server = world.serve(&[]);
    let (mut deleted, mut left) = (server.session(), server.session());
    deleted.attach("deleted");
    assert_eq!(deleted.delete().status, 204);
    left.attach("left");
    let attached = server.ask(&Request::post("/api/v1/episodes/attach", &json!({ "external_id": "by-handle" })));
    assert_eq!(attached.status, 200, "{attached:?}");
    assert_eq!((world.status(), of_git(&world)), (status.clone(), git.clone()), "while it runs");
    assert_eq!(server.end(Signal::TERM).code, Some(0));
    assert_eq!((world.status(), of_git(&world)), (status, git), "afterwards");
    assert_eq!(files(world.repository(), &[".git"]), work);
    assert_eq!(world.logs("open").len(), 3);
}

#[test]
fn serving_http_beside_stdio_changes_nothing_in_the_repository() {
    let world = restless();
    let (status, git) = (world.status(), of_git(&world));
    let work = files(world.repository(), &[".git"]);
    let mut client = world.server(&["mcp", "--http-port", "0"]);
    client.initialize();
    let mut session = Session::begin(published(&world), "2025-11-25");
    session.ping();
    client.ping();
    assert_eq!(session.done("majordomus_peers", &json!({}))["peers"].as_array().map(Vec::len), Some(2));
    assert_eq!((world.status(), of_git(&world)), (status.clone(), git.clone()), "while it runs");
    session.attach("my-thread");
    // Whoever calls over HTTP is served on; here nobody is left.
    assert_eq!(session.delete().status, 204);
    assert_eq!(client.lose().code, Some(0));
    assert_eq!((world.status(), of_git(&world)), (status, git), "afterwards");
    assert_eq!(files(world.repository(), &[".git"]), work);
    assert_eq!(world.episodes()["detached"], 1);
}

#[test]
fn serving_on_for_those_who_call_over_http_changes_nothing_in_the_repository() {
    let world = restless();
    let (status, git) = (world.status(), of_git(&world));
    let work = files(world.repository(), &[".git"]);
    let client = world.holder();
    let mut session = Session::begin(published(&world), "2025-11-25");
    session.attach("my-thread");
    let before = world.told();
    assert_eq!(client.lose().code, Some(0));
    let after = until("another process serves on", || world.told().filter(|told| Some(told) != before.as_ref()));
    session.reconnect();
    session.ping();
    assert_eq!((world.status(), of_git(&world)), (status.clone(), git.clone()), "while it serves on");
    assert_eq!(world.episodes()["open"], 1);
    assert_eq!(session.delete().status, 204);
    world.is_quiet_after(&after);
    assert_eq!((world.status(), of_git(&world)), (status, git), "afterwards");
    assert_eq!(files(world.repository(), &[".git"]), work);
    assert_eq!(world.episodes()["detached"], 1);
}

#[test]
fn clients_of_one_checkout_have_one_server_and_each_is_a_peer_of_its_own() {
    let world = World::new();
    let mut clients = vec![world.holder(), world.bridge(), world.bridge()];
    let told = world.told().expect("one serves");
    let own: BTreeSet<String> = clients
        .iter_mut()
        .map(|client| client.done("majordomus_peers", &json!({}))["you"].as_str().expect("a peer").to_owned())
        .collect();
    assert_eq!(own.len(), 3, "{own:?}");
    for client in &mut clients {
        let listed: BTreeSet<String> =
            client.peers().iter().map(|peer| peer["id"].as_str().expect("a peer has a name").to_owned()).collect();
        assert_eq!(listed, own);
    }
    let listening = world.listening();
    assert_eq!(listening.processes, BTreeSet::from([clients[0].pid()]));
    assert_eq!((listening.ports.len(), listening.sockets.len()), (1, 1), "{listening:?}");
    assert_eq!(world.processes().len(), 3);
    assert_eq!(world.told(), Some(told.clone()), "it stays the same one");
    for client in clients.into_iter().rev() {
        let left = client.lose();
        assert_eq!((left.code, left.err.as_str()), (Some(0), ""));
    }
    world.is_quiet_after(&told);
}

#[test]
fn what_one_client_announces_each_of_the_others_is_told() {
    let world = World::new();
    let mut clients = vec![world.holder(), world.bridge(), world.bridge()];
    let mut session = Session::begin(published(&world), "2025-11-25");
    for (number, client) in clients.iter_mut().enumerate() {
        client.attach(&format!("worker {number}"));
        let scope = format!("src/{number}");
        client.done("majordomus_announce", &json!({ "intent": format!("part {number}"), "scope": [scope] }));
    }
    let announced = |peers: &[Value]| -> Vec<String> {
        let told = |peer: &Value| peer["intent"].is_string();
        let line = |peer: &Value| format!("{} {} {}", peer["external_id"], peer["intent"], peer["scope"]);
        peers.iter().filter(|peer| told(peer)).map(line).collect()
    };
    let expected: Vec<String> =
        (0..3).map(|number| format!(r#""worker {number}" "part {number}" ["src/{number}"]"#)).collect();
    for client in &mut clients {
        assert_eq!(announced(&client.peers()), expected);
    }
    let over_http = session.done("majordomus_peers", &json!({}));
    assert_eq!(announced(over_http["peers"].as_array().expect("a list")), expected);
    // What is announced anew stands in the place of what was.
    clients[2].done("majordomus_announce", &json!({ "intent": "part 2", "scope": ["src/3"] }));
    assert!(announced(&clients[0].peers())[2].ends_with(r#"["src/3"]"#));
    assert_eq!(session.delete().status, 204);
}

#[test]
fn peers_are_counted_while_others_leave_and_come() {
    const ROUNDS: usize = 10;
    let world = World::new();
    let (mut holder, mut stays) = (world.holder(), world.bridge());
    for round in 0..ROUNDS {
        let mut comes = world.bridge();
        assert_eq!((holder.peers().len(), stays.peers().len(), comes.peers().len()), (3, 3, 3), "round {round}");
        match round % 3 {
            0 => assert_eq!(comes.lose().code, Some(0)),
            1 => comes.kill9(),
            _ => {
                comes.signal(Signal::TERM);
                assert_eq!(comes.wait().code, Some(0));
            }
        }
        for client in [&mut holder, &mut stays] {
            until("whoever has gone is no peer", || (client.peers().len() == 2).then_some(()));
        }
    }
    let mut session = Session::begin(published(&world), "2025-11-25");
    assert_eq!(stays.peers().len(), 3, "whoever comes over HTTP is one too");
    assert_eq!(session.delete().status, 204);
    assert_eq!(stays.peers().len(), 2);
    assert_eq!(holder.lose().code, Some(0));
}

/// How the first client leaves.
#[derive(Clone, Copy, Debug)]
enum Leaving {
    EndOfInput,
    Told(Signal),
    Killed,
}

fn leaves(first: Client, how: Leaving) {
    let left = match how {
        Leaving::Killed => return first.kill9(),
        Leaving::EndOfInput => {
            let since = Instant::now();
            let left = first.lose();
            assert!(since.elapsed() < Duration::from_secs(1), "{how:?}: {:?}", since.elapsed());
            left
        }
        Leaving::Told(signal) => {
            let since = Instant::now();
            first.signal(signal);
            let left = first.wait();
            assert!(since.elapsed() < Duration::from_secs(2), "{how:?}: {:?}", since.elapsed());
            left
        }
    };
    assert_eq!((left.code, left.signal, left.err.as_str()), (Some(0), None, ""), "{how:?}");
}

/// The first one leaves, the others go on with their own episodes, and whoever comes later finds theirs and its own.
fn the_others_go_on_when_the_first_one_leaves(how: Leaving) {
    let world = World::new();
    let mut first = world.holder();
    let before = world.told().expect("it serves");
    let mut others = [world.bridge(), world.bridge()];
    let left_behind = first.attach("the first one's");
    let opened = [others[0].attach("a"), others[1].attach("b")];
    leaves(first, how);
    let since = Instant::now();
    for (client, opened) in others.iter_mut().zip(&opened) {
        client.ping();
        assert!(since.elapsed() < Duration::from_secs(2), "{how:?}: {:?}", since.elapsed());
        let mine = client.mine();
        for field in ["external_id", "opened_at", "attachments"] {
            assert_eq!(mine[field], opened["episode"][field], "{how:?}: {mine}");
        }
        assert_eq!(mine["state"], "open", "{how:?}");
    }
    let after = until("another one serves", || {
        world.told().filter(|told| told.instance != before.instance || told.pid != before.pid)
    });
    assert_ne!(after.pid, before.pid);
    for client in &mut others {
        until("both have the same server", || (client.peers().len() == 2).then_some(()));
    }
    let listening = world.listening();
    assert_eq!((listening.processes.len(), listening.ports.len()), (1, 1), "{how:?}: {listening:?}");
    let listed = others[0].done("majordomus_episodes", &json!({}));
    assert_eq!(state_of(&listed, "the first one's"), "detached", "{how:?}");

    let mut comes = world.bridge();
    let again = comes.attach("the first one's");
    assert_eq!(
        (session_id(&again), &again["episode"]["attachments"]),
        (session_id(&left_behind), &json!(2)),
        "{how:?}"
    );
    comes.detach();
    for mut client in others {
        client.detach();
        assert_eq!(client.lose().code, Some(0), "{how:?}");
    }
    assert_eq!(comes.lose().code, Some(0), "{how:?}");
    world.is_quiet_after(&after);
    let records = world.records();
    assert_eq!(records.len(), 3, "{how:?}: {records:#?}");
    for record in records {
        let attachments = if record["external_id"] == "the first one's" { 2 } else { 1 };
        assert_eq!((&record["attachments"], &record["take_overs"]), (&json!(attachments), &json!(0)), "{how:?}");
        assert_eq!(record.end(), ("closed", "detach", "connection"), "{how:?}");
    }
}

#[test]
fn the_others_go_on_with_their_own_episodes_when_the_first_ones_input_ends() {
    the_others_go_on_when_the_first_one_leaves(Leaving::EndOfInput);
}

#[test]
fn the_others_go_on_with_their_own_episodes_when_the_first_one_is_told_to_go() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        the_others_go_on_when_the_first_one_leaves(Leaving::Told(signal));
    }
}

#[test]
fn the_others_go_on_with_their_own_episodes_when_the_first_one_is_killed() {
    the_others_go_on_when_the_first_one_leaves(Leaving::Killed);
}

#[test]
fn a_server_whose_own_client_has_left_ends_with_the_last_of_the_others() {
    let world = World::new();
    let first = world.holder();
    let mut others = [world.bridge(), world.bridge()];
    leaves(first, Leaving::EndOfInput);
    for client in &mut others {
        client.ping();
    }
    let told = until("somebody serves", || world.told());
    let [last, other] = others;
    assert_eq!(other.lose().code, Some(0));
    let mut last = last;
    last.ping();
    assert_eq!(last.lose().code, Some(0));
    world.is_quiet_after(&told);
}

/// The words that a result tells its client besides what it asked for.
fn notice(result: &Value) -> String {
    let content = result["content"].as_array().into_iter().flatten();
    let texts = content.filter_map(|part| part["text"].as_str());
    texts.chain(result["structuredContent"]["notice"].as_str()).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_loser_of_a_take_over_between_two_clients_of_one_server_is_told_so_once() {
    let world = World::new();
    let (holder, mut first, mut second) = (world.holder(), world.bridge(), world.bridge());
    let opened = first.attach("my-thread");
    let taken = second.attach("my-thread");
    assert_eq!(taken["taken_over_from"], opened["episode"]["peer"], "{taken}");
    assert_eq!((&taken["resumed"], &taken["episode"]["attachments"]), (&json!(true), &json!(2)), "{taken}");
    assert_eq!(session_id(&taken), session_id(&opened));
    let told = first.tool("majordomus_peers", &json!({}));
    assert!(notice(&told).contains("took its episode over"), "{told}");
    let again = first.tool("majordomus_peers", &json!({}));
    assert!(!notice(&again).contains("took its episode over"), "{again}");
    assert_eq!(first.mine(), Value::Null);
    first.tool("majordomus_session_detach", &json!({}));
    assert_eq!(second.mine()["state"], "open", "the loser's detach is not the holder's");
    // Nor does the loser get it back when the server is another one.
    holder.kill9();
    first.ping();
    assert_eq!(second.mine()["attachments"], 2);
    assert_eq!(first.mine(), Value::Null);
    assert_eq!(first.lose().code, Some(0));
    assert_eq!(second.mine()["state"], "open", "nor is its going");
    second.detach();
    let record = world.record();
    assert_eq!((&record["attachments"], &record["take_overs"]), (&json!(2), &json!(1)));
}

#[test]
fn two_clients_that_keep_taking_one_episode_from_each_other_are_told_of_the_conflict() {
    const TIMES: usize = 20;
    let world = World::new();
    let (holder, mut first, mut second) = (world.holder(), world.bridge(), world.bridge());
    let mut takes = 0;
    let refused = (0..TIMES).find_map(|time| {
        let client = if time % 2 == 0 { &mut first } else { &mut second };
        let result = client.tool("majordomus_session_attach", &json!({ "external_id": "my-thread" }));
        takes += u64::from(result["structuredContent"]["taken_over_from"].is_string());
        (result["isError"] == true).then_some(result)
    });
    let refused = refused.unwrap_or_else(|| panic!("they go on for ever: {takes}"));
    assert_eq!(refused["_meta"]["dev.majordomus/error"]["code"], "conflict", "{refused}");
    assert!(takes >= 1, "the first one to come back gets it");
    // One of them has it, and the record counts what happened.
    let held = [first.mine(), second.mine()].iter().filter(|mine| mine["state"] == "open").count();
    assert_eq!(held, 1);
    for client in [first, second] {
        assert_eq!(client.lose().code, Some(0));
    }
    assert_eq!(holder.lose().code, Some(0));
    let mut client = world.client();
    client.attach("my-thread");
    client.detach();
    assert_eq!(world.record()["take_overs"], takes);
}

#[test]
fn serving_bridges_changes_nothing_in_the_repository_also_when_the_server_dies() {
    let world = restless();
    let (status, git) = (world.status(), of_git(&world));
    let work = files(world.repository(), &[".git"]);
    let (holder, mut first, mut second) = (world.holder(), world.bridge(), world.bridge());
    first.ask("tools/list", &json!({}));
    first.done("majordomus_announce", &json!({ "intent": "look around" }));
    second.attach("my-thread");
    assert_eq!((world.status(), of_git(&world)), (status.clone(), git.clone()), "while it runs");
    holder.kill9();
    first.ping();
    second.ping();
    assert_eq!((world.status(), of_git(&world)), (status.clone(), git.clone()), "while another one serves");
    assert_eq!(first.lose().code, Some(0));
    assert_eq!(second.lose().code, Some(0));
    within(Duration::from_secs(5), "all have gone", || world.processes().is_empty().then_some(()));
    assert_eq!((world.status(), of_git(&world)), (status, git), "afterwards");
    assert_eq!(files(world.repository(), &[".git"]), work);
    assert_eq!(world.episodes()["detached"], 1);
}
