//! The server of a checkout is stopped and goes on later: its clients do not wait for it, and it takes nothing back.

use std::time::{Duration, Instant};

use majordomus_e2e::{Client, World, is_stopped, now_ms, session_id, state_of, until, within};
use rustix::process::Signal;
use serde_json::{Value, json};

/// How long a client may have to wait until it is sure that its server is stopped.
const PASSED_BY: Duration = Duration::from_secs(8);

fn stop(holder: &Client) {
    holder.signal(Signal::STOP);
    until("it is stopped", || is_stopped(holder.pid()).then_some(()));
}

#[test]
fn clients_of_a_stopped_server_go_on_with_their_own_episodes_and_it_takes_nothing_back() {
    let world = World::new();
    let mut holder = world.holder();
    let of_holder = holder.attach("of the holder");
    let mut clients: Vec<Client> = (0..3).map(|_| world.bridge()).collect();
    let ids = ["a", "b", "c"];
    let opened: Vec<Value> = clients.iter_mut().zip(ids).map(|(client, id)| client.attach(id)).collect();
    stop(&holder);
    let since = Instant::now();
    let asked: Vec<[u64; 2]> = clients
        .iter_mut()
        .map(|client| [client.begin("tools/list", &json!({})), client.begin_tool("majordomus_peers", &json!({}))])
        .collect();
    for (client, asked) in clients.iter_mut().zip(&asked) {
        for answer in client.answers(asked, since + PASSED_BY).values() {
            assert!(answer["result"].is_object(), "{answer}");
        }
    }
    let goes_on = |client: &mut Client, opened: &Value, when: &str| {
        let mine = client.mine();
        for field in ["external_id", "opened_at", "attachments"] {
            assert_eq!(mine[field], opened["episode"][field], "{when}: {mine}");
        }
        assert_eq!(mine["state"], "open", "{when}: {mine}");
    };
    for (client, opened) in clients.iter_mut().zip(&opened) {
        goes_on(client, opened, "while it is stopped");
    }
    // One of them ends its episode and begins another one while the server knows nothing of it.
    clients[0].detach();
    let later = clients[0].attach("later");

    holder.signal(Signal::CONT);
    let listed = holder.done("majordomus_episodes", &json!({}));
    assert_eq!(listed["mine"]["external_id"], "of the holder", "{listed}");
    for _ in 0..20 {
        holder.ping();
        goes_on(&mut clients[0], &later, "once it goes on");
        for (client, opened) in clients[1..].iter_mut().zip(&opened[1..]) {
            goes_on(client, opened, "once it goes on");
        }
        assert_eq!(world.records().len(), 1);
    }
    let listed = world.episodes();
    for id in ["of the holder", "later", "b", "c"] {
        assert_eq!(state_of(&listed, id), "open", "{id}: {listed}");
    }
    // Its own client still works, and somebody new is served by it.
    let mut comes = world.bridge();
    comes.attach("new");
    comes.detach();
    assert_eq!(comes.lose().code, Some(0));
    goes_on(&mut holder, &of_holder, "in the end");
    holder.detach();
    for mut client in clients {
        client.detach();
        let left = client.lose();
        assert_eq!((left.code, left.rest.len()), (Some(0), 0), "{left:?}");
        assert_eq!(left.err.lines().count(), 1, "{left:?}");
    }
    assert_eq!(holder.lose().code, Some(0));
    let records = world.records();
    let mut found: Vec<&str> = records.iter().map(|record| record.text("external_id")).collect();
    found.sort_unstable();
    assert_eq!(found, ["a", "b", "c", "later", "new", "of the holder"]);
    for record in &records {
        assert_eq!((&record["attachments"], &record["take_overs"]), (&json!(1), &json!(0)), "{record:?}");
        assert_eq!(record.end(), ("closed", "detach", "connection"), "{record:?}");
    }
    assert_eq!(world.logs("open").len(), 0);
    until("all have gone", || world.processes().is_empty().then_some(()));
}

#[test]
fn what_a_stopped_server_had_not_read_is_not_done_a_second_time_once_it_goes_on() {
    let world = World::new();
    let mut holder = world.holder();
    let mut clients = [world.bridge(), world.bridge(), world.bridge()];
    let opened = clients[0].attach("ended meanwhile");
    clients[2].attach("held all the time");
    stop(&holder);
    let since = Instant::now();
    let asked = [
        clients[0].begin_tool("majordomus_session_detach", &json!({})),
        clients[1].begin_tool("majordomus_session_attach", &json!({ "external_id": "begun meanwhile" })),
        clients[2].begin_tool("majordomus_announce", &json!({ "intent": "said once" })),
    ];
    let [closed, begun, announced] = [0, 1, 2].map(|number| {
        clients[number].answers(&[asked[number]], since + PASSED_BY).remove(&asked[number]).expect("an answer")
    });
    assert_eq!(closed["result"]["structuredContent"]["recorded"], true, "{closed}");
    let begun = &begun["result"]["structuredContent"];
    assert_eq!((&begun["recorded"], &begun["episode"]["attachments"]), (&json!(true), &json!(1)), "{begun}");
    assert_eq!(announced["error"]["code"], -32603, "it may have been done: {announced}");
    // All is over before the server goes on with what lies in its sockets.
    clients[1].detach();
    assert_eq!(world.records().len(), 2);
    holder.signal(Signal::CONT);
    for _ in 0..20 {
        holder.ping();
        let listed = world.episodes();
        assert_eq!(listed["episodes"].as_array().map(Vec::len), Some(1), "nothing is opened again: {listed}");
    }
    until("the server sees that its clients have left it", || (holder.peers().len() == 1).then_some(()));
    let listed = holder.done("majordomus_episodes", &json!({}));
    let mut episodes = listed["episodes"].as_array().expect("a list").iter();
    assert!(!episodes.any(|episode| episode["external_id"] == "begun meanwhile"), "{listed}");
    assert_eq!(listed["open"], 0, "{listed}");
    assert_eq!(world.logs("open").len(), 1);
    for mut client in clients {
        client.ping();
        assert_eq!(client.lose().code, Some(0));
    }
    assert_eq!(holder.lose().code, Some(0));
    let records = world.records();
    assert_eq!(records.len(), 2, "{records:#?}");
    assert!(records.iter().any(|record| record.text("session_id") == session_id(&opened)));
    for record in records {
        assert_eq!((&record["attachments"], &record["take_overs"]), (&json!(1), &json!(0)), "{record:?}");
    }
    assert_eq!(world.episodes()["detached"], 1);
}

#[test]
fn a_server_that_goes_on_ends_nothing_for_silence_that_others_hold_by_now() {
    let world = World::new();
    let start = || world.impatient();
    let mut holder = start();
    until("it serves", || world.told());
    let mut clients = [start(), start()];
    let opened = [clients[0].attach("a"), clients[1].attach("b")];
    stop(&holder);
    for client in &mut clients {
        client.ping();
    }
    holder.signal(Signal::CONT);
    holder.ping();
    let since = now_ms();
    until("the grace has passed twice", || (now_ms() - since > 2500).then_some(()));
    assert!(world.records().is_empty());
    for (client, opened) in clients.iter_mut().zip(&opened) {
        let mine = client.mine();
        assert_eq!((&mine["state"], &mine["opened_at"]), (&json!("open"), &opened["episode"]["opened_at"]), "{mine}");
    }
    for mut client in clients {
        client.detach();
        assert_eq!(client.lose().code, Some(0));
    }
    assert_eq!(holder.lose().code, Some(0));
    let records = world.records();
    assert_eq!(records.len(), 2);
    for record in records {
        assert_eq!(record.end(), ("closed", "detach", "connection"), "{record:?}");
        assert_eq!((&record["attachments"], &record["take_overs"]), (&json!(1), &json!(0)), "{record:?}");
    }
}

#[test]
fn a_server_that_is_stopped_and_goes_on_before_anybody_doubts_it_stays_the_server() {
    let world = World::new();
    let holder = world.holder();
    let mut clients = [world.bridge(), world.bridge()];
    let told = world.told();
    for (number, client) in clients.iter_mut().enumerate() {
        client.attach(&format!("worker {number}"));
    }
    for _ in 0..20 {
        stop(&holder);
        let asked: Vec<u64> = clients.iter_mut().map(|client| client.begin("ping", &json!({}))).collect();
        holder.signal(Signal::CONT);
        for (client, id) in clients.iter_mut().zip(asked) {
            client.answers(&[id], Instant::now() + Duration::from_secs(2));
        }
    }
    assert_eq!((world.told(), clients[0].peers().len()), (told, 3));
    for mut client in clients {
        assert_eq!(client.mine()["attachments"], 1);
        let left = client.lose();
        assert_eq!((left.code, left.err.as_str()), (Some(0), ""));
    }
}

#[test]
fn a_client_that_is_stopped_keeps_its_episode_and_nobody_waits_for_it() {
    let world = World::new();
    let mut holder = world.holder();
    let (mut stopped, mut other) = (world.bridge(), world.bridge());
    let opened = stopped.attach("stopped");
    stop(&stopped);
    let asked: Vec<u64> = (0..100).map(|_| stopped.begin("tools/list", &json!({}))).collect();
    let since = Instant::now();
    for client in [&mut holder, &mut other] {
        client.attach("another");
        client.detach();
        assert_eq!(state_of(&client.done("majordomus_episodes", &json!({})), "stopped"), "open");
    }
    assert!(since.elapsed() < Duration::from_secs(2), "{:?}", since.elapsed());
    // Also when the server dies meanwhile.
    holder.kill9();
    other.ping();
    stopped.signal(Signal::CONT);
    stopped.answers(&asked, Instant::now() + Duration::from_secs(4));
    let mine = stopped.mine();
    assert_eq!((&mine["attachments"], &mine["state"]), (&json!(1), &json!("open")), "{mine}");
    assert_eq!(mine["opened_at"], opened["episode"]["opened_at"]);
    stopped.detach();
    let records = world.records();
    let own = records.iter().find(|record| record["external_id"] == "stopped").expect("it has a record");
    assert_eq!((&own["attachments"], &own["take_overs"]), (&json!(1), &json!(0)), "{own:?}");
}

#[test]
fn a_server_that_is_stopped_at_its_clients_word_of_going_lets_them_go() {
    let world = World::new();
    let holder = world.holder();
    let mut clients = [world.bridge(), world.bridge()];
    for (number, client) in clients.iter_mut().enumerate() {
        client.attach(&format!("worker {number}"));
    }
    stop(&holder);
    let [first, second] = clients;
    let since = Instant::now();
    second.signal(Signal::TERM);
    assert_eq!(second.wait().code, Some(0));
    assert!(since.elapsed() < Duration::from_secs(2), "TERM: {:?}", since.elapsed());
    let since = Instant::now();
    assert_eq!(first.lose().code, Some(0));
    assert!(since.elapsed() < Duration::from_secs(2), "the end of input: {:?}", since.elapsed());
    holder.signal(Signal::CONT);
    assert_eq!(holder.lose().code, Some(0));
    let listed = world.episodes();
    assert_eq!((&listed["open"], &listed["detached"]), (&json!(0), &json!(2)), "{listed}");
    assert!(world.records().is_empty());
}

#[test]
fn clients_that_were_served_by_themselves_share_the_server_again_once_it_goes_on() {
    let world = World::new();
    let mut holder = world.holder();
    let mut clients = [world.bridge(), world.bridge()];
    let opened = [clients[0].attach("a"), clients[1].attach("b")];
    stop(&holder);
    for client in &mut clients {
        client.ping();
        assert_eq!(client.peers().len(), 1, "it is alone");
    }
    holder.signal(Signal::CONT);
    // They look every half minute.
    within(Duration::from_secs(60), "all are together", || {
        let peers = [holder.peers(), clients[0].peers(), clients[1].peers()];
        peers.iter().all(|peers| peers.len() == 3).then_some(())
    });
    for (client, opened) in clients.iter_mut().zip(&opened) {
        let mine = client.mine();
        assert_eq!((&mine["state"], &mine["attachments"]), (&json!("open"), &json!(1)), "{mine}");
        assert_eq!(mine["opened_at"], opened["episode"]["opened_at"]);
        client.detach();
    }
    for client in clients.into_iter().chain([holder]) {
        assert_eq!(client.lose().code, Some(0));
    }
    let records = world.records();
    assert_eq!(records.len(), 2);
    assert!(records.iter().all(|record| record["attachments"] == 1 && record["take_overs"] == 0), "{records:#?}");
}
