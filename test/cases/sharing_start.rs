//! Clients of one checkout that come and go: how many servers there are, how soon, and what is left of them.

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use majordomus_e2e::{
    Client, INITIALIZE, World, feed, is_stopped, majordomus, payload_of, state_of, until, within, worked,
};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};

const PING: &str = r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#;

/// Starts that many clients without waiting for any, each with its first messages, and returns when the last one began.
fn all_at_once(world: &World, count: usize) -> (Vec<Client>, Instant) {
    let mut commands: Vec<_> = (0..count).map(|_| world.majordomus(&["mcp"])).collect();
    let clients = commands.iter_mut().map(|command| {
        let mut client = Client::start(command);
        client.write(format!("{INITIALIZE}\n{PING}\n").as_bytes());
        client
    });
    (clients.collect(), Instant::now())
}

#[test]
fn twenty_clients_that_start_at_the_same_moment_have_one_server_and_leave_nothing_ten_times_over() {
    const CLIENTS: usize = 20;
    const SECOND: Duration = Duration::from_secs(1);
    let world = World::new();
    for round in 0..10 {
        let (mut clients, last) = all_at_once(&world, CLIENTS);
        for client in &mut clients {
            for id in [1, 2] {
                let line = client.line_within(SECOND.saturating_sub(last.elapsed())).expect("it is answered");
                let answer: Value = serde_json::from_str(&line).expect("an answer is JSON");
                assert!(answer["id"] == id && answer["result"].is_object(), "round {round}: {answer}");
            }
        }
        let left = SECOND.saturating_sub(last.elapsed());
        let told = within(left, "one of them serves the others", || world.told());
        let listening = world.listening();
        assert_eq!(listening.processes, BTreeSet::from([told.pid]), "round {round}: {listening:?}");
        assert_eq!((listening.ports.len(), listening.sockets.len()), (1, 1), "round {round}: {listening:?}");
        assert!(clients.iter().any(|client| client.pid() == told.pid), "round {round}");
        // Each of them is served by that one.
        for client in &mut clients {
            let listed = client.done("majordomus_peers", &json!({ "limit": 200 }));
            assert_eq!(listed["peers"].as_array().map(Vec::len), Some(CLIENTS), "round {round}");
        }
        assert_eq!(world.told().as_ref(), Some(&told), "round {round}: it stays the same one");
        assert_eq!(world.processes().len(), CLIENTS);
        for client in &mut clients {
            client.close_input();
        }
        let earlier: Vec<u32> = clients.iter().map(Client::pid).collect();
        for client in clients {
            let left = client.wait();
            assert_eq!((left.code, left.rest.len()), (Some(0), 0), "round {round} of {earlier:?}: {left:?}");
        }
        world.is_quiet_after(&told);
    }
}

#[test]
fn clients_that_come_while_the_server_dies_again_and_again_are_all_answered() {
    let world = World::new();
    for round in 0..10 {
        let mut holder = Some(world.holder());
        let mut clients = Vec::new();
        for number in 0..6 {
            let (mut more, _) = all_at_once(&world, 1);
            clients.append(&mut more);
            if number == round % 6
                && let Some(holder) = holder.take()
            {
                holder.kill9();
            }
        }
        let until = Instant::now() + Duration::from_secs(3);
        for client in &mut clients {
            for _ in 0..2 {
                let left = until.saturating_duration_since(Instant::now());
                assert!(client.line_within(left).is_some(), "round {round}");
            }
        }
        for client in &mut clients {
            assert_eq!(client.peers().len(), 6, "round {round}");
        }
        assert_eq!(world.listening().processes.len(), 1, "round {round}");
        for client in clients {
            assert_eq!(client.lose().code, Some(0));
        }
        within(Duration::from_secs(5), "all have gone", || world.processes().is_empty().then_some(()));
    }
}

#[test]
fn a_hundred_clients_that_come_and_go_beside_a_living_one_leave_no_process() {
    let world = World::new();
    let mut holder = world.holder();
    let (told, before) = (world.told(), world.processes());
    for round in 0..100 {
        let mut client = world.client();
        if round % 10 == 0 {
            client.attach("my-thread");
        }
        assert_eq!(client.lose().code, Some(0));
    }
    assert_eq!(until("their processes have gone", || Some(world.processes()).filter(|now| now.len() <= 1)), before);
    assert_eq!((world.told(), world.listening().sockets.len()), (told, 1), "it is still the same server");
    until("nobody of them is a peer", || (holder.peers().len() == 1).then_some(()));
    assert_eq!(state_of(&holder.done("majordomus_episodes", &json!({})), "my-thread"), "detached");
    assert_eq!(holder.lose().code, Some(0));
}

#[test]
fn a_hundred_clients_that_come_and_go_one_after_another_leave_no_process() {
    let world = World::new();
    for _ in 0..100 {
        let client = world.client();
        assert_eq!(client.lose().code, Some(0));
    }
    until("their processes have gone", || world.processes().is_empty().then_some(()));
    assert!(world.nothing_recorded());
    assert_eq!(world.told(), None);
}

#[test]
fn a_hundred_clients_that_overlap_leave_no_process() {
    let world = World::new();
    let mut earlier: Option<Client> = None;
    for _ in 0..100 {
        // The one that serves leaves each time, and the next one has only just come.
        let client = world.client();
        if let Some(earlier) = earlier.replace(client) {
            assert_eq!(earlier.lose().code, Some(0));
        }
        assert!(world.processes().len() <= 4, "{:?}", world.processes());
    }
    let mut last = earlier.expect("one is left");
    assert_eq!(last.peers().len(), 1);
    assert_eq!(last.lose().code, Some(0));
    until("their processes have gone", || world.processes().is_empty().then_some(()));
    assert_eq!(world.told(), None);
}

#[test]
fn at_the_end_of_input_a_client_of_either_role_leaves_within_a_second() {
    let world = World::new();
    let leaves = |role: &str| {
        let since = Instant::now();
        let said = world.run(&["mcp"]);
        assert!(since.elapsed() < Duration::from_secs(1), "{role}: {:?}", since.elapsed());
        assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (Some(0), "", ""), "{role}");
        let since = Instant::now();
        let said = feed(&mut world.majordomus(&["mcp"]), format!("{INITIALIZE}\n").as_bytes());
        assert!(since.elapsed() < Duration::from_secs(1), "{role}: {:?}", since.elapsed());
        assert_eq!((said.code, said.out.lines().count(), said.err.as_str()), (Some(0), 1, ""), "{role}");
    };
    leaves("the only one");
    until("it has gone", || world.processes().is_empty().then_some(()));
    let mut holder = world.holder();
    leaves("a bridge");
    until("it has gone", || (world.processes().len() == 1).then_some(()));
    holder.ping();
}

#[test]
fn term_int_and_hup_with_the_input_still_open_end_a_client_of_either_role_within_two_seconds() {
    let world = World::new();
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let mut holder = world.holder();
        let mut bridge = world.bridge();
        holder.attach("of the holder");
        bridge.attach("of the bridge");
        for client in [bridge, holder] {
            let since = Instant::now();
            client.signal(signal);
            let left = client.wait();
            assert!(since.elapsed() < Duration::from_secs(2), "{signal:?}: {:?}", since.elapsed());
            assert_eq!((left.code, left.signal, left.err.as_str()), (Some(0), None, ""), "{signal:?}");
        }
        until("both have gone", || world.processes().is_empty().then_some(()));
        let listed = world.episodes();
        assert_eq!((&listed["open"], &listed["detached"]), (&json!(0), &json!(2)), "{signal:?}: {listed}");
    }
    assert!(world.records().is_empty());
}

/// A client under an agent in a process group of its own, as a terminal has them. What the shell does with Ctrl-C is what
/// the agent does.
fn in_a_terminal(world: &World, trap: &str) -> Client {
    use std::os::unix::process::CommandExt;
    let mut agent = world.program("sh");
    // No `exec`: the agent stays, and is not what it has started.
    agent
        .args(["-c", &format!("{trap}\n\"$0\" mcp --http-port 0; echo \"$?\" >&2")])
        .arg(majordomus())
        .process_group(0);
    let mut client = Client::start(&mut agent);
    client.initialize();
    client
}

fn ctrl_c(terminal: &Client) {
    let group = i32::try_from(terminal.pid()).ok().and_then(Pid::from_raw).expect("a process has a number");
    kill_process_group(group, Signal::INT).expect("the group is there");
}

#[test]
fn ctrl_c_that_the_agent_of_a_terminal_survives_ends_no_client() {
    let world = World::new();
    let mut terminal = in_a_terminal(&world, "trap : INT");
    let told = until("it serves", || world.told());
    let (mut in_another, mut other) = (in_a_terminal(&world, "trap : INT"), world.bridge());
    terminal.attach("a");
    in_another.attach("b");
    other.attach("c");
    for pressed in [&terminal, &in_another] {
        ctrl_c(pressed);
    }
    for client in [&mut terminal, &mut in_another, &mut other] {
        client.ping();
        assert_eq!(client.mine()["state"], "open");
        assert_eq!(client.peers().len(), 3);
    }
    assert_eq!(world.told(), Some(told));
}

#[test]
fn ctrl_c_in_one_terminal_ends_only_that_client() {
    let world = World::new();
    // The first one serves, and the shell ends as an agent without a handler does.
    let mut terminal = in_a_terminal(&world, "");
    until("it serves", || world.told());
    let (mut in_another, mut other) = (in_a_terminal(&world, ""), world.bridge());
    terminal.attach("a");
    let opened = [in_another.attach("b"), other.attach("c")];
    ctrl_c(&terminal);
    // Its agent is gone, and with it the other end of its pipes.
    let _ = terminal.lose();
    let since = Instant::now();
    for (client, opened) in [&mut in_another, &mut other].into_iter().zip(&opened) {
        client.ping();
        let mine = client.mine();
        assert_eq!((&mine["state"], &mine["attachments"]), (&json!("open"), &json!(1)), "{mine}");
        assert_eq!(mine["opened_at"], opened["episode"]["opened_at"]);
    }
    assert!(since.elapsed() < Duration::from_secs(2), "{:?}", since.elapsed());
    assert_eq!(state_of(&other.done("majordomus_episodes", &json!({})), "a"), "detached");
    // And the same with one that serves nobody.
    ctrl_c(&in_another);
    let _ = in_another.lose();
    until("it is gone", || {
        let listed = other.done("majordomus_episodes", &json!({}));
        (state_of(&listed, "b") == "detached").then_some(())
    });
    assert_eq!(other.mine()["state"], "open");
    let told = until("somebody serves", || world.told());
    assert_eq!(other.lose().code, Some(0));
    world.is_quiet_after(&told);
    assert!(world.records().is_empty());
}

#[test]
fn a_client_that_finds_a_server_that_is_stopped_is_answered_alone_within_four_seconds() {
    let world = World::new();
    let mut holder = world.holder();
    holder.attach("of the holder");
    holder.signal(Signal::STOP);
    until("it is stopped", || is_stopped(holder.pid()).then_some(()));

    let since = Instant::now();
    let mut client = world.client();
    assert!(since.elapsed() < Duration::from_secs(4), "{:?}", since.elapsed());
    let opened = client.attach("alone");
    assert_eq!((&opened["recorded"], client.peers().len()), (&json!(true), 1), "{opened}");
    client.detach();
    let left = client.lose();
    assert_eq!((left.code, left.err.lines().count()), (Some(0), 1), "{left:?}");
    assert!(left.err.starts_with("majordomus: "), "{left:?}");
    assert_eq!(world.record().text("external_id"), "alone");

    holder.signal(Signal::CONT);
    holder.ping();
    assert_eq!(holder.mine()["state"], "open");
    world.bridge().ping();
    holder.detach();
    assert_eq!(holder.lose().code, Some(0));
    assert_eq!(world.records().len(), 2);
}

#[test]
fn a_hook_starts_no_server_and_does_not_wait_for_one_that_is_stopped() {
    let world = World::new();
    for number in 0..20 {
        world.hook("start", &payload_of("SessionStart.startup", &format!("s{number}")));
        assert!(world.processes().is_empty());
    }
    let holder = world.holder();
    holder.signal(Signal::STOP);
    until("it is stopped", || is_stopped(holder.pid()).then_some(()));
    let since = Instant::now();
    world.hook("end", &payload_of("SessionEnd.prompt_input_exit", "s0"));
    assert!(since.elapsed() < Duration::from_secs(2), "{:?}", since.elapsed());
    holder.signal(Signal::CONT);
    assert_eq!(world.records().len(), 1);
    assert_eq!(world.processes().len(), 1);
}

#[test]
fn whoever_waits_does_no_work() {
    let world = World::new();
    let holder = world.holder();
    let mut bridges = [world.bridge(), world.bridge()];
    let idle = |pids: &[u32], what: &str| {
        let (since, before) = (Instant::now(), pids.iter().map(|pid| worked(*pid)).collect::<Vec<_>>());
        until("a second passes", || (since.elapsed() > Duration::from_secs(1)).then_some(()));
        for (pid, before) in pids.iter().zip(before) {
            assert!(worked(*pid) - before < 20, "{what}: {} hundredths of a second", worked(*pid) - before);
        }
    };
    let pids: Vec<u32> = bridges.iter().map(Client::pid).collect();
    idle(&[holder.pid(), pids[0], pids[1]], "a server and its bridges");
    holder.signal(Signal::STOP);
    until("it is stopped", || is_stopped(holder.pid()).then_some(()));
    idle(&pids, "bridges of a server that is stopped");
    for bridge in &mut bridges {
        bridge.ping();
    }
    idle(&pids, "clients that are served alone");
    holder.kill9();
    idle(&pids, "clients whose server is dead");
    // Whoever started it is killed, and its pipes close.
    thread::scope(|scope| {
        for bridge in bridges {
            scope.spawn(|| assert_eq!(bridge.lose().code, Some(0)));
        }
    });
    until("all have gone", || world.processes().is_empty().then_some(()));
}
