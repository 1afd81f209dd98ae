//! A shared server at the edges: nobody answers where one should, nothing more can be opened, several stop it at once.

use std::fs::{self, File};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use majordomus_e2e::{Client, Said, World, is_stopped, until};
use rustix::fs::{FlockOperation, flock};
use rustix::process::Signal;
use serde_json::json;

fn stopped(world: &World) -> Client {
    let holder = world.holder();
    holder.signal(Signal::STOP);
    until("it is stopped", || is_stopped(holder.pid()).then_some(()));
    holder
}

#[test]
fn a_client_whose_input_is_at_its_end_waits_for_no_server_that_does_not_answer() {
    let world = World::new();
    let holder = stopped(&world);
    let since = Instant::now();
    let status = world.majordomus(&["mcp"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    assert!(status.expect("it runs").success());
    assert!(since.elapsed() < Duration::from_secs(1), "it took {:?}", since.elapsed());
    holder.signal(Signal::CONT);
    assert_eq!(holder.lose().code, Some(0));
}

#[test]
fn where_somebody_has_the_lock_and_nobody_answers_at_the_socket_a_client_is_served_by_itself() {
    let world = World::new();
    let holder = world.holder();
    let told = fs::read(world.state().join("server.json")).expect("it is there");
    let mut bridge = world.bridge();
    bridge.attach("mine");
    // A server that has the lock and never gets to publish, where an earlier one was killed.
    holder.signal(Signal::STOP);
    until("it is stopped", || is_stopped(holder.pid()).then_some(()));
    let lock = File::open(world.path(".git")).expect("a git directory");
    let gets_it = thread::spawn(move || flock(&lock, FlockOperation::LockExclusive).map(|()| lock));
    holder.kill9();
    let lock = gets_it.join().expect("it ends");
    let by_us = lock.is_ok();
    fs::write(world.state().join("server.json"), told).expect("it can be written");
    let mine = bridge.mine();
    assert_eq!((&mine["external_id"], &mine["attachments"]), (&json!("mine"), &json!(1)), "{mine}");
    let mut late = Client::start(&mut world.majordomus(&["mcp"]));
    late.initialize();
    assert!(by_us);
    for client in [bridge, late] {
        assert_eq!(client.lose().code, Some(0));
    }
}

#[test]
fn a_bridge_that_cannot_become_a_server_answers_what_it_was_asked_and_ends() {
    let world = World::new();
    let holder = world.holder();
    let mut command = world.program("sh");
    command.args(["-c", "ulimit -n 16; exec \"$0\" mcp"]).arg(majordomus_e2e::majordomus());
    let mut bridge = Client::start(&mut command);
    bridge.initialize();
    holder.signal(Signal::STOP);
    until("it is stopped", || is_stopped(holder.pid()).then_some(()));
    let asked = bridge.begin("tools/list", &json!({}));
    holder.kill9();
    let answer = bridge.receive();
    assert_eq!(answer["id"], asked, "{answer}");
    // Whether it could be served after all, or not: it is answered, and it ends.
    assert!(answer["result"].is_object() || answer["error"]["code"] == -32603, "{answer}");
    let left = bridge.lose();
    assert!(matches!(left.code, Some(0 | 1)), "{left:?}");
}

#[test]
fn several_who_stop_a_server_at_once_all_hear_that_it_is_stopped() {
    let world = World::new();
    let mut holder = world.holder();
    holder.attach("of the holder");
    let mut bridge = world.bridge();
    bridge.attach("of the bridge");
    let said: Vec<Said> = thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| world.run(&["serve", "stop"]))).collect();
        threads.into_iter().map(|thread| thread.join().expect("it ends")).collect()
    });
    assert!(said.iter().all(|said| said.code == Some(0)), "{said:?}");
    assert_eq!(
        said.iter().filter(|said| said.out.starts_with("stopped; 2 episodes were closed")).count(),
        1,
        "{said:?}"
    );
    assert_eq!(world.run(&["serve", "status"]).code, Some(3), "no server comes before somebody needs one");
    for client in [&mut holder, &mut bridge] {
        let result = client.tool("majordomus_episodes", &json!({}));
        assert!(result.to_string().contains("attach"), "it is told that its episode has ended: {result}");
    }
    for client in [bridge, holder] {
        assert_eq!(client.lose().code, Some(0));
    }
    let ends: Vec<_> = world.records().iter().map(|record| record.text("end_reason").to_owned()).collect();
    assert_eq!(ends, ["shutdown", "shutdown"]);
}

#[test]
fn a_server_lets_in_no_more_bridges_than_it_has_descriptors_for_and_records_for_those_that_it_has() {
    let world = World::new();
    let mut command = world.program("sh");
    command.args(["-c", "ulimit -n 160; exec \"$0\" mcp --http-port 0"]).arg(majordomus_e2e::majordomus());
    let mut holder = Client::start(&mut command);
    holder.initialize();
    until("it serves", || world.told());
    let mut clients: Vec<Client> = Vec::new();
    for _ in 0..12 {
        let mut client = Client::start(&mut world.majordomus(&["mcp"]));
        client.initialize();
        clients.push(client);
    }
    for (number, client) in clients.iter_mut().chain([&mut holder]).enumerate() {
        let attached = client.attach(&format!("thread-{number}"));
        assert_eq!(attached["recorded"], true, "{attached}");
    }
    assert!(holder.peers().len() < 13, "some are served by themselves");
    for client in clients.into_iter().chain([holder]) {
        assert_eq!(client.lose().code, Some(0));
    }
}
