//! Two processes at one episode, the second at every step of the first.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use majordomus_records::compose::Composed;
use majordomus_records::ending::EndedAs;

use crate::sim::Fault;
use crate::world::{GRACE, Process, World, field};

/// Runs `first`, and `second` in full before each of its steps in turn and at last after all of them; `check` sees the
/// world after each round.
fn at_every_step(
    prepare: fn(&World) -> Process,
    first: fn(&Process),
    second: fn(&Process) -> bool,
    check: fn(&World, usize),
) {
    for at in 1.. {
        let world = World::new();
        let process = prepare(&world);
        let other = Arc::new(Mutex::new(Some(world.process())));
        // Where it would wait for a lock it fails here, and tries again when the first has given the lock back.
        let run = {
            let other = other.clone();
            move || {
                let process = other.lock().unwrap().take();
                let Some(process) = process else { return false };
                if !second(&process) {
                    *other.lock().unwrap() = Some(process);
                }
                true
            }
        };
        let meanwhile = run.clone();
        world.disk.fail_at(
            at,
            Fault::Meanwhile(Box::new(move || {
                meanwhile();
            })),
        );
        first(&process);
        run();
        check(&world, at);
        if world.disk.is_waiting() {
            return;
        }
    }
}

fn attached(world: &World) -> Process {
    let process = world.process();
    process.attach().unwrap();
    process
}

/// A session whose client is gone and whose time is over.
fn abandoned(world: &World) -> Process {
    drop(attached(world));
    world.clock.advance(GRACE + Duration::from_secs(1));
    world.process()
}

fn ended(world: &World) -> Process {
    let process = attached(world);
    process.detach().unwrap();
    process
}

fn compose_all(process: &Process) -> bool {
    let waiting = process.store.waiting_records().unwrap();
    waiting.iter().all(|session_id| process.store.compose(session_id, Duration::from_secs(1)).is_ok())
}

#[test]
fn two_starts_at_once_make_one_session() {
    at_every_step(
        World::process,
        |process| drop(process.attach()),
        |process| process.attach().is_ok(),
        |world, at| {
            let logs = world.logs();
            assert_eq!(logs.len(), 1, "step {at}");
            assert_eq!(logs[0].attachments, 2, "step {at}");
        },
    );
}

#[test]
fn two_ends_at_once_make_one_record() {
    at_every_step(
        attached,
        |process| drop(process.detach()),
        |process| process.store.end(&crate::world::key(), operator()).is_ok(),
        |world, at| {
            world.recover();
            assert_eq!(world.records().len(), 1, "step {at}");
            assert_eq!(field(&world.records()[0].1, "outcome"), "closed", "step {at}");
        },
    );
}

fn operator() -> majordomus_records::ending::Ending<'static> {
    majordomus_records::ending::Ending::Said {
        outcome: majordomus_records::line::EndOutcome::Closed,
        reason: "detach",
        witness: majordomus_records::line::Witness::Operator,
        holder: None,
        last_evidence_ago: None,
        asked_ago: Duration::ZERO,
        hook: majordomus_records::ending::HookEnd::default(),
    }
}

#[test]
fn two_composers_at_once_publish_one_record() {
    at_every_step(
        ended,
        |process| assert!(compose_all(process)),
        compose_all,
        |world, at| {
            world.recover();
            assert_eq!(world.records().len(), 1, "step {at}");
            assert!(world.logs().is_empty(), "step {at}");
        },
    );
}

#[test]
fn a_comeback_that_crosses_an_expiry_is_either_before_it_or_after_it() {
    at_every_step(
        abandoned,
        |process| drop(process.expire()),
        |process| process.attach().is_ok(),
        |world, at| {
            let open: Vec<_> = world.logs().into_iter().filter(|log| log.end.is_none()).collect();
            assert_eq!(open.len(), 1, "step {at}: the client that came back has {} open sessions", open.len());
            world.recover();
            // Over is over, by the times alone: the old one is interrupted, and the new one says what it continues.
            let records = world.records();
            assert_eq!(records.len(), 2, "step {at}");
            assert_eq!(field(&records[0].1, "end_reason"), "expired", "step {at}");
            assert_eq!(field(&records[1].1, "resumes"), field(&records[0].1, "session_id"), "step {at}");
        },
    );
}

#[test]
fn an_end_and_a_comeback_at_once_lose_neither() {
    at_every_step(
        attached,
        |process| drop(process.detach()),
        |process| process.attach().is_ok(),
        |world, at| {
            world.recover();
            let sessions = world.records();
            assert!((1..=2).contains(&sessions.len()), "step {at}: {}", sessions.len());
            assert!(world.logs().is_empty(), "step {at}");
        },
    );
}

#[test]
fn silence_is_void_where_evidence_came_before_it() {
    // The reaper has decided when the client comes back, and writes its end after the client's line.
    let world = World::new();
    let reaper = abandoned(&world);
    world.clock.advance(Duration::from_secs(5));
    let seen = Arc::new(Mutex::new(None));
    let (back, note) = (world.process(), seen.clone());
    world.disk.fail_at(1, Fault::Meanwhile(Box::new(move || *note.lock().unwrap() = back.attach().ok())));
    let answer = reaper.expire().unwrap();
    let joined = seen.lock().unwrap().clone().unwrap();
    assert!(!matches!(answer, EndedAs::Ended { ref session_id, .. } if *session_id == joined.session_id), "{answer:?}");
}

#[test]
fn a_held_episode_is_never_expired_however_silent() {
    let world = World::new();
    let holder = attached(&world);
    world.clock.advance(GRACE * 100);
    assert!(matches!(world.process().expire().unwrap(), EndedAs::NotOver(_)));
    assert_eq!(world.process().store.sweep(Duration::from_secs(10)).expired, Vec::<String>::new());
    drop(holder);
    assert!(matches!(world.process().expire().unwrap(), EndedAs::Ended { .. }));
}

#[test]
fn the_grace_of_a_silent_but_held_episode_runs_from_the_last_beat() {
    let world = World::new();
    let process = attached(&world);
    world.clock.advance(GRACE * 2);
    process.holder.beat(&process.store.now()).unwrap();
    drop(process);
    world.clock.advance(GRACE - Duration::from_secs(1));
    assert!(matches!(world.process().expire().unwrap(), EndedAs::NotOver(_)));
    world.clock.advance(Duration::from_secs(1));
    let EndedAs::Ended { session_id, .. } = world.process().expire().unwrap() else { panic!("its time is over") };
    world.process().store.compose(&session_id, Duration::from_secs(1)).unwrap();
    let (_, record) = &world.records()[0];
    assert_eq!(
        field(record, "closed_at"),
        field(record, "started_at"),
        "it ends at the last evidence, not at the beat"
    );
}

#[test]
fn a_file_that_the_user_has_put_there_is_never_replaced() {
    let world = World::new();
    let process = attached(&world);
    let EndedAs::Ended { session_id, record, .. } = process.detach().unwrap() else { panic!("it was attached") };
    world.disk.put(&world.root().join(&record), b"somebody's own notes");
    for _ in 0..2 {
        process.store.compose(&session_id, Duration::from_secs(1)).unwrap_err();
    }
    assert_eq!(process.store.compose(&session_id, Duration::from_secs(1)).unwrap(), Composed::Bad);
    assert_eq!(world.records()[0].1, "somebody's own notes");
    assert_eq!(process.store.bad_logs().unwrap().len(), 1);
}

#[test]
fn a_record_that_is_there_already_counts_as_done_even_if_its_user_has_written_into_it() {
    let world = World::new();
    let process = attached(&world);
    let EndedAs::Ended { session_id, record, .. } = process.detach().unwrap() else { panic!("it was attached") };
    let log = world.disk.below(&world.state().join("ended")).pop().unwrap();
    use majordomus_records::disk::Disk;
    let bytes = world.disk.read(&log, u64::MAX).unwrap();
    process.store.compose(&session_id, Duration::from_secs(1)).unwrap();
    let path = world.root().join(&record);
    let edited = String::from_utf8(world.disk.read(&path, u64::MAX).unwrap()).unwrap() + "\nMy own remark.\n";
    world.disk.put(&path, edited.as_bytes());
    world.disk.put(&log, &bytes); // as if the composer had been killed before it could remove the log
    assert_eq!(process.store.compose(&session_id, Duration::from_secs(1)).unwrap(), Composed::Published(record));
    assert_eq!(world.records(), vec![(path, edited)]);
    assert!(world.logs().is_empty());
}
