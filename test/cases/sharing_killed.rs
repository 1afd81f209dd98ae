//! The server of a checkout is killed: its clients go on with their own episodes, and each request has one answer.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use majordomus_e2e::{
    Client, Dice, Record, Session, World, executable, install, is_stopped, now_ms, published, reported, session_id,
    state_of, until, within,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// How soon a client whose server is gone has to be answered by another one.
const SOON: Duration = Duration::from_secs(2);

const ATTACH: &str = "majordomus_session_attach";
const DETACH: &str = "majordomus_session_detach";

/// What a request may be answered with once its server was killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It is done again where it may not have been done.
    Answered,
    /// It cannot be done again: where it may have been done the client is told so. Where its bridge had not handed it over
    /// yet it is done now.
    AnsweredOrFailed,
}

fn check(answer: &Value, fate: Fate) {
    let failed = answer["error"]["code"] == -32603 && answer.get("result").is_none();
    let done = answer["result"].is_object() && answer["result"]["isError"] != true;
    let good = match fate {
        Fate::Answered => done,
        Fate::AnsweredOrFailed => done || failed,
    };
    assert!(good, "{fate:?}: {answer}");
}

/// Stops it, so that nothing of what is sent to it is answered.
fn stop(holder: &Client) {
    holder.signal(Signal::STOP);
    until("it is stopped", || is_stopped(holder.pid()).then_some(()));
}

/// A client that is served by another process and works on something.
struct Worker {
    client: Client,
    id: String,
    opened: Value,
}

impl Worker {
    fn begin(world: &World, number: usize) -> Self {
        let (mut client, id) = (world.bridge(), format!("worker {number}"));
        let opened = client.attach(&id);
        Self { client, id, opened }
    }

    /// Its own episode, as if nothing had happened.
    fn goes_on(&mut self) {
        let mine = self.client.mine();
        assert_eq!((&mine["external_id"], &mine["state"]), (&json!(self.id), &json!("open")), "{mine}");
        for field in ["opened_at", "attachments"] {
            assert_eq!(mine[field], self.opened["episode"][field], "{}: {mine}", self.id);
        }
    }

    fn ends(mut self) -> Client {
        let closed = self.client.detach();
        assert_eq!((&closed["recorded"], &closed["episode"]["attachments"]), (&json!(true), &json!(1)), "{closed}");
        self.client
    }
}

/// Records by the external id, each of which was attached to once and ended on purpose.
fn by_id(records: Vec<Record>) -> BTreeMap<String, Vec<Record>> {
    let mut found: BTreeMap<String, Vec<Record>> = BTreeMap::new();
    for record in records {
        assert_eq!((&record["attachments"], &record["take_overs"]), (&json!(1), &json!(0)), "{record:?}");
        assert_eq!(record.end(), ("closed", "detach", "connection"), "{record:?}");
        found.entry(record.text("external_id").to_owned()).or_default().push(record);
    }
    found
}

#[test]
fn ten_clients_with_requests_in_flight_go_on_within_two_seconds_with_their_own_episodes() {
    let world = World::new();
    let holder = world.holder();
    let mut workers: Vec<Worker> = (0..10).map(|number| Worker::begin(&world, number)).collect();
    // Stopped, so that nothing of what follows is answered before it is killed.
    stop(&holder);
    let mut asked = Vec::new();
    for (number, Worker { client, id, .. }) in workers.iter_mut().enumerate() {
        let mut fates = vec![(client.begin("tools/list", &json!({})), Fate::Answered)];
        match number % 5 {
            0 => fates.push((client.begin_tool(ATTACH, &json!({ "external_id": id.as_str() })), Fate::Answered)),
            1 => fates.push((client.begin_tool(DETACH, &json!({})), Fate::Answered)),
            2 => fates
                .push((client.begin_tool("majordomus_announce", &json!({ "intent": "x" })), Fate::AnsweredOrFailed)),
            3 => {
                *id = format!("other {number}");
                fates.push((client.begin_tool(ATTACH, &json!({ "external_id": id.as_str() })), Fate::Answered));
            }
            _ => {
                fates.push((client.begin_tool(DETACH, &json!({})), Fate::Answered));
                fates.push((client.begin_tool(ATTACH, &json!({ "external_id": id.as_str() })), Fate::Answered));
            }
        }
        fates.push((client.begin_tool("majordomus_episodes", &json!({})), Fate::Answered));
        asked.push(fates);
    }
    let since = Instant::now();
    holder.kill9();
    for (number, (worker, fates)) in workers.iter_mut().zip(&asked).enumerate() {
        let ids: Vec<u64> = fates.iter().map(|(id, _)| *id).collect();
        let answers = worker.client.answers(&ids, since + SOON);
        for (id, fate) in fates {
            check(&answers[id], *fate);
        }
        // What it was answered is what it goes on with.
        let [_, .., last, _] = ids[..] else { panic!("{ids:?}") };
        let answer = &answers[&last]["result"]["structuredContent"];
        if number % 5 == 3 || number % 5 == 4 {
            assert_eq!((&answer["resumed"], &answer["episode"]["attachments"]), (&json!(false), &json!(1)), "{answer}");
            assert_eq!(answer["recorded"], true, "{answer}");
            assert_ne!(session_id(answer), session_id(&worker.opened), "{answers:?}");
            worker.opened = answer.clone();
        }
    }
    // Nothing else comes: the next message is the answer to the next request.
    for (number, worker) in workers.iter_mut().enumerate() {
        worker.client.ping();
        if number % 5 == 1 {
            assert_eq!(worker.client.mine(), Value::Null);
        } else {
            worker.goes_on();
        }
    }
    assert_eq!(world.listening().processes.len(), 1);
    assert_eq!(workers[0].client.peers().len(), 10);
    for (number, worker) in workers.into_iter().enumerate() {
        let client = if number % 5 == 1 { worker.client } else { worker.ends() };
        let left = client.lose();
        assert_eq!((left.code, left.rest.len()), (Some(0), 0), "{left:?}");
    }
    let records = by_id(world.records());
    let counts: BTreeMap<&str, usize> = records.iter().map(|(id, records)| (id.as_str(), records.len())).collect();
    let expected = [0, 1, 2, 5, 6, 7].map(|number| (format!("worker {number}"), 1));
    let twice = [4, 9].map(|number| (format!("worker {number}"), 2));
    let others = [3, 8].map(|number| (format!("other {number}"), 1));
    let expected: BTreeMap<String, usize> = expected.into_iter().chain(twice).chain(others).collect();
    assert_eq!(counts, expected.iter().map(|(id, count)| (id.as_str(), *count)).collect());
    // What the two left for another one waits for them.
    assert_eq!(world.logs("open").len(), 2);
    assert_eq!(world.episodes()["detached"], 2);
}

#[test]
fn one_server_after_another_is_killed_at_any_moment_and_the_others_go_on() {
    const WORKERS: usize = 8;
    let (world, mut dice) = (World::new(), Dice::new(48));
    let holder = world.holder();
    let mut workers: Vec<Worker> = (0..WORKERS).map(|number| Worker::begin(&world, number)).collect();
    let mut victim = Some(holder);
    while workers.len() > 2 {
        let mut asked: Vec<Vec<(u64, Fate)>> = Vec::new();
        let killer = victim.take().map(|client| {
            let life = Duration::from_micros(dice.below(15_000));
            thread::spawn(move || {
                thread::park_timeout(life);
                client.kill9();
                Instant::now()
            })
        });
        for Worker { client, id, .. } in &mut workers {
            let mut fates = Vec::new();
            for _ in 0..dice.below(12) {
                fates.push(match dice.below(4) {
                    0 => (client.begin_tool(ATTACH, &json!({ "external_id": id.as_str() })), Fate::Answered),
                    1 => (client.begin_tool("majordomus_announce", &json!({ "intent": "x" })), Fate::AnsweredOrFailed),
                    2 => (client.begin_tool("majordomus_episodes", &json!({})), Fate::Answered),
                    _ => (client.begin("tools/list", &json!({})), Fate::Answered),
                });
            }
            asked.push(fates);
        }
        let killed = killer.map_or_else(Instant::now, |killer| killer.join().expect("it is killed"));
        for (worker, fates) in workers.iter_mut().zip(&asked) {
            let ids: Vec<u64> = fates.iter().map(|(id, _)| *id).collect();
            let answers = worker.client.answers(&ids, killed + SOON);
            for (id, fate) in fates {
                check(&answers[id], *fate);
            }
            worker.client.ping();
            worker.goes_on();
        }
        let told = until("another one serves", || {
            let serves = |told: &majordomus_e2e::Told| workers.iter().any(|worker| worker.client.pid() == told.pid);
            world.told().filter(serves)
        });
        let at = workers.iter().position(|worker| worker.client.pid() == told.pid).expect("it is one of them");
        if workers.len() > 3 {
            victim = Some(workers.remove(at).client);
        } else {
            break;
        }
    }
    let left = workers.len();
    for worker in workers {
        assert_eq!(worker.ends().lose().code, Some(0));
    }
    assert_eq!(by_id(world.records()).len(), left, "one record each");
    let listed = world.episodes();
    assert_eq!((&listed["open"], &listed["detached"]), (&json!(0), &json!(WORKERS - left)), "{listed}");
    let mut client = world.client();
    for number in 0..WORKERS {
        // The ids of those that went with their process: each is still the one that it was.
        let id = format!("worker {number}");
        if listed["episodes"].as_array().is_some_and(|episodes| episodes.iter().any(|one| one["external_id"] == id)) {
            assert_eq!(client.attach(&id)["episode"]["attachments"], 2, "{id}");
            client.detach();
        }
    }
    assert_eq!(world.records().len(), WORKERS);
}

#[test]
fn a_detach_whose_server_is_killed_before_it_answers_succeeds_once_and_leaves_one_record() {
    const TRIES: usize = 40;
    let (world, mut dice) = (World::new(), Dice::new(51));
    let mut sessions = Vec::new();
    for number in 0..TRIES {
        let holder = world.holder();
        let mut client = world.bridge();
        let opened = client.attach(&format!("thread {number}"));
        let life = Duration::from_micros(dice.below(6_000));
        let killer = thread::spawn(move || {
            thread::park_timeout(life);
            holder.kill9();
        });
        let id = client.begin_tool(DETACH, &json!({}));
        let answer = client.answers(&[id], Instant::now() + life + SOON).remove(&id).expect("it is answered");
        check(&answer, Fate::Answered);
        let closed = &answer["result"]["structuredContent"];
        assert_eq!((&closed["recorded"], &closed["episode"]["attachments"]), (&json!(true), &json!(1)), "{closed}");
        assert!(reported(closed).starts_with("episode closed (closed, reason detach) into "), "{closed}");
        assert!(reported(closed).contains(&session_id(&opened)), "try {number}: {closed}");
        killer.join().expect("it is killed");
        // Nothing else comes: the next message is the answer to the next request.
        assert_eq!(client.mine(), Value::Null, "try {number}");
        let left = client.lose();
        assert_eq!((left.code, left.rest.len()), (Some(0), 0), "{left:?}");
        sessions.push(session_id(&opened));
    }
    let records = world.records();
    assert_eq!(records.len(), TRIES);
    for id in sessions {
        let found: Vec<_> = records.iter().filter(|record| record.text("session_id") == id).collect();
        assert_eq!(found.len(), 1, "{id}");
        assert_eq!(found[0].end(), ("closed", "detach", "connection"));
        assert_eq!((&found[0]["attachments"], &found[0]["take_overs"]), (&json!(1), &json!(0)));
    }
    assert_eq!(world.logs("open").len(), 0);
}

#[test]
fn a_detach_and_an_attach_that_were_done_in_part_when_the_server_was_killed_are_two_sittings() {
    const TRIES: usize = 40;
    let (world, mut dice) = (World::new(), Dice::new(62));
    let mut expected = Vec::new();
    for number in 0..TRIES {
        let id = format!("thread {number}");
        let (holder, mut client) = (world.holder(), world.bridge());
        let first = client.attach(&id);
        let life = Duration::from_micros(dice.below(6_000));
        let killer = thread::spawn(move || {
            thread::park_timeout(life);
            holder.kill9();
        });
        let ids = [client.begin_tool(DETACH, &json!({})), client.begin_tool(ATTACH, &json!({ "external_id": id }))];
        let answers = client.answers(&ids, Instant::now() + life + SOON);
        let [closed, opened] = ids.map(|id| answers[&id]["result"]["structuredContent"].clone());
        killer.join().expect("it is killed");
        assert_eq!(closed["recorded"], true, "try {number}: {closed}");
        assert!(reported(&closed).contains(&session_id(&first)), "try {number}: {closed}");
        assert_eq!(
            (&opened["recorded"], &opened["episode"]["attachments"]),
            (&json!(true), &json!(1)),
            "try {number}: {opened}"
        );
        assert_ne!(session_id(&opened), session_id(&first), "try {number}");
        assert_eq!(client.mine()["opened_at"], opened["episode"]["opened_at"], "try {number}");
        let ended = client.detach();
        assert_eq!(ended["recorded"], true, "try {number}: {ended}");
        assert_eq!(client.lose().code, Some(0));
        expected.extend([session_id(&first), session_id(&opened)]);
    }
    let mut found: Vec<String> = world.records().iter().map(|record| record.text("session_id").to_owned()).collect();
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected);
    assert!(world.logs("open").is_empty());
}

#[test]
fn a_detach_that_is_repeated_after_its_server_died_gives_the_first_answer_again() {
    let world = World::new();
    let (holder, mut client) = (world.holder(), world.bridge());
    client.attach("my-thread");
    let first = client.detach();
    holder.kill9();
    assert_eq!(reported(&client.detach()), reported(&first));
    assert_eq!(world.records().len(), 1);
}

#[test]
fn an_attach_whose_server_is_killed_before_it_answers_opens_one_episode_with_one_attachment() {
    const TRIES: usize = 30;
    let (world, mut dice) = (World::new(), Dice::new(52));
    for number in 0..TRIES {
        let holder = world.holder();
        let mut client = world.bridge();
        let life = Duration::from_micros(dice.below(6_000));
        let killer = thread::spawn(move || {
            thread::park_timeout(life);
            holder.kill9();
        });
        let id = client.begin_tool(ATTACH, &json!({ "external_id": format!("thread {number}") }));
        let answer = client.answers(&[id], Instant::now() + life + SOON).remove(&id).expect("it is answered");
        check(&answer, Fate::Answered);
        let opened = &answer["result"]["structuredContent"];
        assert_eq!((&opened["recorded"], &opened["episode"]["attachments"]), (&json!(true), &json!(1)), "{opened}");
        assert_eq!(opened.get("taken_over_from"), None, "from nobody but itself: {opened}");
        killer.join().expect("it is killed");
        client.ping();
        let mine = client.mine();
        assert_eq!((&mine["attachments"], &mine["state"]), (&json!(1), &json!("open")), "try {number}: {mine}");
        client.detach();
        assert_eq!(client.lose().code, Some(0));
    }
    let records = by_id(world.records());
    assert_eq!((records.len(), records.values().flatten().count()), (TRIES, TRIES));
}

#[test]
fn a_client_that_says_nothing_keeps_its_episode_and_its_last_evidence_when_its_server_is_killed() {
    let world = World::new();
    let (holder, mut client) = (world.holder(), world.bridge());
    let opened = client.attach("my-thread");
    let last = now_ms();
    until("time passes", || (now_ms() > last + 300).then_some(()));
    let before = world.told().expect("it serves");
    holder.kill9();
    // It is served again although it asks for nothing.
    within(SOON, "another one serves", || world.told().filter(|told| told.pid != before.pid));
    within(SOON, "it shows as held", || (state_of(&world.episodes(), "my-thread") == "open").then_some(()));
    for _ in 0..50 {
        assert_eq!(state_of(&world.episodes(), "my-thread"), "open", "and stays so");
    }
    let mut other = world.bridge();
    let listed = other.done("majordomus_episodes", &json!({}));
    assert_eq!((&listed["open"], &listed["episodes"][0]["attachments"]), (&json!(1), &json!(1)), "{listed}");
    assert_eq!(listed["episodes"][0]["opened_at"], opened["episode"]["opened_at"]);
    assert_eq!(other.lose().code, Some(0));
    client.kill9();
    let record = until("the grace ends", || world.records_with(&["--grace-seconds", "1"]).pop());
    assert!(record.time("last_activity_at") <= last, "{} is after {last}", record["last_activity_at"]);
    assert_eq!((&record["attachments"], &record["take_overs"]), (&json!(1), &json!(0)));
    assert_eq!(record.end(), ("interrupted", "expired", "reaper"));
    assert_eq!(record["closed_at"], record["last_activity_at"]);
}

#[test]
fn what_is_held_outlives_a_grace_of_a_second_while_servers_die() {
    let world = World::new();
    let start = || world.impatient();
    let mut holder = start();
    until("it serves", || world.told());
    let (mut first, mut second) = (start(), start());
    let began = now_ms();
    holder.attach("gone with its process");
    let opened = [first.attach("a"), second.attach("b")];
    let killed = now_ms();
    holder.kill9();
    // Its own episode is not held by anybody, and ends.
    let record = until("the grace ends", || world.records().pop());
    assert_eq!((record.text("external_id"), record.end().1), ("gone with its process", "expired"));
    assert!(now_ms() - began >= 1000);
    until("the grace has passed twice", || (now_ms() - killed > 2500).then_some(()));
    for (client, opened) in [&mut first, &mut second].into_iter().zip(&opened) {
        let mine = client.mine();
        assert_eq!((&mine["state"], &mine["attachments"]), (&json!("open"), &json!(1)), "{mine}");
        assert_eq!(mine["opened_at"], opened["episode"]["opened_at"]);
    }
    assert_eq!(world.records().len(), 1);
}

#[test]
fn a_person_sees_one_line_for_each_client_whose_server_was_killed() {
    let world = World::new();
    let holder = world.holder();
    let mut clients: Vec<Client> = (0..5).map(|_| world.bridge()).collect();
    // Some have something to ask, and others only wait.
    for client in &mut clients[..3] {
        client.attach("my-thread");
    }
    holder.kill9();
    for client in &mut clients {
        client.ping();
    }
    let serves = until("one of them serves", || {
        let told = world.told()?;
        clients.iter().position(|client| client.pid() == told.pid)
    });
    // The one that serves leaves last, so that nobody has another one to get used to.
    let last = clients.remove(serves);
    for client in clients.into_iter().chain([last]) {
        let left = client.lose();
        assert_eq!(left.code, Some(0));
        assert_eq!(left.err.lines().count(), 1, "{left:?}");
        assert!(left.err.starts_with("majordomus: ") && left.err.ends_with('\n'), "{left:?}");
    }
}

#[test]
fn the_id_of_a_request_is_the_one_that_is_answered_whatever_it_is() {
    let world = World::new();
    let (holder, mut client) = (world.holder(), world.bridge());
    stop(&holder);
    let ids = [r#""abc""#, r#""2""#, "2", "9007199254740993", "-1", r#""""#, r#""ü\" }""#];
    for id in ids {
        client.write(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n").as_bytes());
    }
    let announce = json!({ "name": "majordomus_announce", "arguments": { "intent": "x" } });
    client.write(
        format!("{{\"jsonrpc\":\"2.0\",\"id\":\"last\",\"method\":\"tools/call\",\"params\":{announce}}}\n").as_bytes(),
    );
    let since = Instant::now();
    holder.kill9();
    let mut answered = Vec::new();
    for _ in 0..=ids.len() {
        answered.push(client.line_within(SOON.saturating_sub(since.elapsed())).expect("an answer"));
    }
    for id in ids {
        let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
        let like = |line: &&String| serde_json::from_str::<Value>(line).ok() == serde_json::from_str(&answer).ok();
        assert_eq!(answered.iter().filter(like).count(), 1, "{id}: {answered:?}");
    }
    let last: Vec<&String> = answered.iter().filter(|line| line.contains(r#""id":"last""#)).collect();
    assert_eq!(last.len(), 1, "{answered:?}");
    let others = answered.iter().filter(|line| line.contains("-32603") && !line.contains(r#""id":"last""#));
    assert_eq!(others.count(), 0, "{answered:?}");
}

/// A copy of the binary under test, as an installation is one.
fn installed(world: &World) -> PathBuf {
    let binary = world.folder().join("bin/majordomus");
    fs::create_dir_all(binary.parent().expect("it is in a folder")).expect("a folder can be made");
    install(&binary);
    binary
}

fn start(world: &World, binary: &PathBuf) -> Client {
    let mut client = Client::start(world.program(binary).args(["mcp", "--http-port", "0"]));
    client.initialize();
    client
}

#[test]
fn clients_go_on_when_their_binary_was_replaced_or_deleted_and_their_server_goes() {
    for deleted in [true, false] {
        for killed in [true, false] {
            let world = World::new();
            let binary = installed(&world);
            let mut holder = start(&world, &binary);
            until("it serves", || world.told());
            let mut others = [start(&world, &binary), start(&world, &binary)];
            holder.attach("of the first one");
            let opened = [others[0].attach("a"), others[1].attach("b")];
            fs::remove_file(&binary).expect("it can be deleted");
            let ran = world.folder().join("ran");
            if !deleted {
                executable(&binary, &format!("#!/bin/sh\necho \"$@\" >>'{}'\nexit 3\n", ran.display()));
            }
            let which = format!("deleted: {deleted}, killed: {killed}");
            let since = Instant::now();
            if killed {
                holder.kill9();
            } else {
                assert_eq!(holder.lose().code, Some(0), "{which}");
            }
            for (client, opened) in others.iter_mut().zip(&opened) {
                client.ping();
                assert!(since.elapsed() < SOON, "{which}: {:?}", since.elapsed());
                let mine = client.mine();
                assert_eq!((&mine["state"], &mine["attachments"]), (&json!("open"), &json!(1)), "{which}: {mine}");
                assert_eq!(mine["opened_at"], opened["episode"]["opened_at"], "{which}");
            }
            until("both have one server", || (others[0].peers().len() == 2).then_some(()));
            for mut client in others {
                client.detach();
                assert_eq!(client.lose().code, Some(0), "{which}");
            }
            until("all have gone", || world.processes().is_empty().then_some(()));
            assert_eq!(by_id(world.records()).len(), 2, "{which}");
            assert!(!ran.exists(), "{which}: another program was run: {:?}", fs::read_to_string(&ran));
        }
    }
}

#[test]
fn whoever_calls_over_http_is_served_on_by_the_same_program_when_the_binary_was_replaced() {
    let world = World::new();
    let binary = installed(&world);
    let first = start(&world, &binary);
    let mut session = Session::begin(published(&world), "2025-11-25");
    let opened = session.attach("over http");
    let before = until("it serves", || world.told());
    fs::remove_file(&binary).expect("it can be deleted");
    let ran = world.folder().join("ran");
    executable(&binary, &format!("#!/bin/sh\necho \"$@\" >>'{}'\nexit 3\n", ran.display()));
    assert_eq!(first.lose().code, Some(0));
    let after = until("another process serves on", || world.told().filter(|told| told.pid != before.pid));
    session.reconnect();
    session.ping();
    let mine = session.done("majordomus_episodes", &json!({}))["mine"].clone();
    assert_eq!((&mine["state"], &mine["attachments"]), (&json!("open"), &json!(1)), "{mine}");
    assert_eq!(mine["opened_at"], opened["episode"]["opened_at"]);
    assert!(!ran.exists(), "another program was run: {:?}", fs::read_to_string(&ran));
    session.detach();
    assert_eq!(session.delete().status, 204);
    world.is_quiet_after(&after);
    assert_eq!(by_id(world.records()).len(), 1);
}

#[test]
fn a_server_that_is_killed_while_clients_leave_keeps_nobody() {
    let (world, mut dice) = (World::new(), Dice::new(6));
    for _ in 0..20 {
        let holder = world.holder();
        let mut clients: Vec<Client> = (0..3).map(|_| world.bridge()).collect();
        clients[0].attach("my-thread");
        let pid = i32::try_from(holder.pid()).ok().and_then(Pid::from_raw).expect("a process has a number");
        let life = Duration::from_micros(dice.below(3_000));
        let killer = thread::spawn(move || {
            thread::park_timeout(life);
            // The client is dropped below, which waits for it.
            kill_process(pid, Signal::KILL).expect("it lives or waits to be looked at");
        });
        for client in &mut clients {
            client.close_input();
        }
        for client in clients {
            let since = Instant::now();
            let left = client.wait();
            assert!(since.elapsed() < SOON, "{:?}", since.elapsed());
            assert_eq!((left.code, left.rest.len()), (Some(0), 0), "{left:?}");
        }
        killer.join().expect("it is killed");
        drop(holder);
        within(SOON, "all have gone", || world.processes().is_empty().then_some(()));
        assert_eq!(world.episodes()["detached"], 1);
    }
    assert!(world.records().is_empty());
}
