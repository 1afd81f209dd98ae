//! What a living connection holds is its own to end, and what a killed one held is waited for as promised.

use std::fs::File;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use majordomus_e2e::{Said, World, feed, session_id, state_of, until};
use rustix::fs::{FlockOperation, flock};
use serde_json::{Value, json};

/// Runs `capture session --provider generic --event end`, as a person or a script may.
fn end_by_command(world: &World, id: &str, reason: &str) -> Said {
    feed(&mut world.capture("generic", "end"), json!({ "session_id": id, "reason": reason }).to_string().as_bytes())
}

#[test]
fn a_command_does_not_end_what_a_living_connection_holds() {
    let world = World::new();
    let mut client = world.client();
    let opened = client.attach("h1");
    for reason in ["detach", "expired", "shutdown"] {
        let said = end_by_command(&world, "h1", reason);
        assert_eq!(said.hook(), "no episode was closed: another connection holds it", "{reason}");
        assert_eq!(state_of(&world.episodes(), "h1"), "open", "{reason}");
        client.ping();
    }
    assert!(world.records().is_empty());
    client.detach();
    assert_eq!(client.lose().code, Some(0));
    let record = world.record();
    assert_eq!(record.text("session_id"), session_id(&opened));
    assert_eq!(record.end(), ("closed", "detach", "connection"));
    assert_eq!((&record["attachments"], &record["take_overs"]), (&json!(1), &json!(0)));
}

#[test]
fn a_command_ends_the_episode_of_a_connection_that_is_gone_and_is_named_as_its_witness() {
    let world = World::new();
    let mut client = world.client();
    client.attach("h1");
    client.kill9();
    let said = end_by_command(&world, "h1", "detach");
    assert!(said.hook().starts_with("episode closed (closed, reason detach) into "), "{said:?}");
    assert_eq!(world.record().end(), ("closed", "detach", "operator"));
}

#[test]
fn a_command_that_claims_expiry_does_not_cut_the_grace_of_a_killed_client_short() {
    let world = World::new();
    let mut client = world.client();
    client.attach("h1");
    client.kill9();
    let said = end_by_command(&world, "h1", "expired");
    assert!(said.hook().starts_with("no episode was closed: it is not over for another "), "{said:?}");
    assert_eq!(state_of(&world.episodes(), "h1"), "detached");
    assert!(world.records().is_empty());
}

#[test]
fn the_grace_that_a_client_was_promised_is_kept_by_commands_that_name_none() {
    let world = World::new();
    let mut client = world.server(&["mcp", "--grace-seconds", "3600"]);
    client.initialize();
    let opened = client.attach("patient");
    client.kill9();
    assert!(world.records().is_empty());
    let listed = world.episodes();
    let waits = listed["episodes"][0]["waits_seconds"].as_u64().expect("it waits");
    assert!((901..=3600).contains(&waits), "{listed}");
    let expired = || world.records_with(&["--grace-seconds", "1"]).pop();
    let record = until("the grace ends that was given instead", expired);
    assert_eq!((record.text("session_id"), record.end().1), (session_id(&opened).as_str(), "expired"));
}

/// The locked file of whoever holds the only open episode.
fn holder_file(world: &World) -> File {
    let found: Vec<_> = std::fs::read_dir(world.state().join("holders")).into_iter().flatten().flatten().collect();
    assert_eq!(found.len(), 1, "{found:?}");
    File::open(found[0].path()).expect("a holder's file can be read")
}

#[test]
fn somebody_who_only_looks_whether_a_holder_lives_is_not_taken_for_the_holder() {
    let world = World::new();
    let mut client = world.client();
    client.attach("my-thread");
    client.kill9();
    // Another judge, in the middle of looking.
    let looking = holder_file(&world);
    flock(&looking, FlockOperation::NonBlockingLockShared).unwrap();
    assert_eq!(state_of(&world.episodes(), "my-thread"), "detached");
    let mut client = world.client();
    assert_eq!(client.attach("my-thread")["episode"]["attachments"], 2);
    drop(looking);
    client.detach();
    assert_eq!(client.lose().code, Some(0));
    assert_eq!(world.record()["take_overs"], 0);
}

#[test]
fn clients_that_are_killed_and_come_back_while_others_list_episodes_take_nothing_over() {
    const ROUNDS: u32 = 20;
    let world = World::new();
    let (done, looks) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    let said = world.run(&["episodes", "--json"]);
                    assert_eq!(said.code, Some(0), "{said:?}");
                    looks.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let back_and_forth = || {
            for _ in 0..ROUNDS {
                let mut client = world.client();
                client.attach("my-thread");
                client.kill9();
            }
            let mut client = world.client();
            client.attach("my-thread");
            client.detach();
            client.lose()
        };
        // However it ends, the others end too.
        let left = std::panic::catch_unwind(std::panic::AssertUnwindSafe(back_and_forth));
        done.store(true, Ordering::Relaxed);
        assert_eq!(left.expect("every client was served").code, Some(0));
    });
    assert!(looks.into_inner() > 0);
    let record = world.record();
    assert_eq!((&record["attachments"], &record["take_overs"]), (&json!(ROUNDS + 1), &json!(0)));
}

/// What a server lists under ids that begin so.
fn listed_as<'a>(listed: &'a Value, begins: &str) -> Vec<&'a Value> {
    let named = |episode: &&Value| episode["external_id"].as_str().is_some_and(|id| id.starts_with(begins));
    listed["episodes"].as_array().into_iter().flatten().filter(named).collect()
}

#[test]
fn a_killed_client_whose_id_holds_a_secret_comes_back_to_its_own_session_and_has_no_twin() {
    let world = World::new();
    // Put together here so that nobody's scanner takes this file for a leak.
    let id = format!("thread ghp_{}", "Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4zAb3d");
    let mut client = world.client();
    let opened = client.attach(&id);
    client.kill9();
    // A second one, which shows when a server has looked at what waits.
    let mut client = world.client();
    client.attach("shown");
    client.kill9();

    let mut client = world.client();
    until("the server has looked at what waits", || {
        let listed = client.done("majordomus_episodes", &json!({}));
        (!listed_as(&listed, "shown").is_empty()).then_some(())
    });
    let again = client.attach(&id);
    assert_eq!(session_id(&again), session_id(&opened));
    assert_eq!((&again["resumed"], &again["episode"]["attachments"]), (&json!(true), &json!(2)), "{again}");
    let listed = client.done("majordomus_episodes", &json!({}));
    let found = listed_as(&listed, "thread");
    assert_eq!(found.len(), 1, "{listed}");
    assert_eq!(found[0]["state"], "open", "{listed}");
    client.detach();
    assert_eq!(client.lose().code, Some(0));
    let record = world.record();
    assert_eq!((record.text("external_id"), &record["attachments"]), ("thread [redacted]", &json!(2)));
}
