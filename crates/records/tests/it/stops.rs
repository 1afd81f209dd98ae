//! The writer stops at every step, the disk forgets or is full: afterwards there is one record or one open log.

use majordomus_records::ending::EndedAs;
use majordomus_records::line::{Kind, Witness};
use std::time::Duration;

use crate::sim::{Fault, Restart};
use crate::world::{Process, World, field, key};

/// One whole session, as far as its disk lets it; tells what was acknowledged.
fn session(process: &Process, clock: &crate::world::Hand) -> Acknowledged {
    let started = process.attach().map(|joined| joined.session_id).ok();
    let mut done = Acknowledged { started, ended: false };
    clock.advance(Duration::from_secs(60));
    let _ = process.seen();
    if let Ok(EndedAs::Ended { session_id, .. }) = process.detach() {
        done.ended = true;
        let _ = process.store.compose(&session_id, Duration::from_secs(1));
    }
    done
}

#[derive(Debug)]
struct Acknowledged {
    started: Option<String>,
    ended: bool,
}

fn steps_of_a_session() -> usize {
    let world = World::new();
    session(&world.process(), &world.clock);
    world.disk.steps()
}

fn check(world: &World, done: &Acknowledged, at: usize) {
    // A log that has ended may outlive its record by a step; what is open has no record.
    let open = world.logs().iter().filter(|log| log.end.is_none()).count();
    assert!(open + world.records().len() <= 1, "step {at}: two of one session: {done:?}");
    world.recover();
    let records = world.records();
    assert!(world.logs().is_empty(), "step {at}: a log is left over");
    match &done.started {
        Some(session_id) => {
            assert_eq!(records.len(), 1, "step {at}: {done:?} left {} records", records.len());
            let (path, record) = &records[0];
            assert_eq!(field(record, "session_id"), session_id, "step {at}");
            assert!(path.to_string_lossy().contains(session_id.as_str()));
            let outcome = field(record, "outcome");
            if done.ended {
                assert_eq!(outcome, "closed", "step {at}: an acknowledged end was forgotten");
            }
            assert!(field(record, "closed_at") >= field(record, "started_at"));
        }
        None => assert!(records.len() <= 1, "step {at}: {} records", records.len()),
    }
}

#[test]
fn what_was_acknowledged_survives_a_stop_at_every_step() {
    for (how, strict) in [(Restart::Killed, false), (Restart::PowerLost, false), (Restart::PowerLost, true)] {
        for at in 1..=steps_of_a_session() {
            let world = World::new();
            if strict {
                world.disk.be_strict();
            }
            world.disk.fail_at(at, Fault::Stop);
            let done = session(&world.process(), &world.clock);
            world.disk.restart(how);
            check(&world, &done, at);
        }
    }
}

#[test]
fn a_mark_and_an_end_in_a_log_whose_creator_was_killed_survive_a_loss_of_power() {
    let mut joined = 0;
    for (at, ends) in (1..=12).flat_map(|at| [(at, false), (at, true)]) {
        let world = World::new();
        world.disk.fail_at(at, Fault::Stop);
        let creator = world.process();
        let _ = creator.attach();
        let began = world.logs().len() == 1;
        world.disk.restart(Restart::Killed);
        let other = world.process();
        let done = if ends {
            other.store.close_by_operator(&key()).map(drop)
        } else {
            other.store.mark(&key(), Kind::Activity, Witness::Hook, None, None).map(drop)
        };
        done.unwrap();
        drop(creator);
        world.disk.restart(Restart::PowerLost);
        world.recover();
        assert_eq!(world.records().len(), usize::from(began || !ends), "step {at}");
        joined += usize::from(began);
    }
    assert!(joined > 0, "some were killed between their line and their folder's sync");
}

#[test]
fn a_comeback_after_a_stop_at_any_step_is_the_same_session_or_the_first() {
    for how in [Restart::Killed, Restart::PowerLost] {
        for at in 1..=steps_of_a_session() {
            let world = World::new();
            world.disk.fail_at(at, Fault::Stop);
            let done = session(&world.process(), &world.clock);
            world.disk.restart(how);
            let back = world.process().attach().unwrap();
            if let (Some(session_id), false) = (&done.started, done.ended) {
                // The end may have become durable without being acknowledged; then this is a session of its own.
                let ended = world.logs().iter().any(|log| log.session_id() == Some(session_id) && log.end.is_some());
                let recorded = world.records().iter().any(|(_, record)| field(record, "session_id") == session_id);
                assert!(
                    back.session_id == *session_id || ended || recorded,
                    "step {at}: {done:?} came back as {back:?}"
                );
            }
            assert_eq!(world.logs().iter().filter(|log| log.end.is_none()).count(), 1, "step {at}");
        }
    }
}

#[test]
fn a_full_or_failing_disk_loses_nothing_and_is_caught_up_with_when_it_is_well() {
    for at in 1..=2 * steps_of_a_session() {
        let world = World::new();
        let (at, fault) = (at.div_ceil(2), if at % 2 == 0 { Fault::Full } else { Fault::Failing });
        world.disk.fail_at(at, fault);
        let process = world.process();
        let mut done = session(&process, &world.clock);
        world.disk.make_room();
        if !done.ended && done.started.is_some() {
            // The board asks again, and the torn line that stands before swallows nothing.
            if let Ok(EndedAs::Ended { .. }) = process.detach() {
                done.ended = true;
            }
        }
        drop(process);
        check(&world, &done, at);
    }
}

#[test]
fn a_single_error_at_any_step_costs_at_most_its_own_answer() {
    for at in 1..=steps_of_a_session() {
        let world = World::new();
        world.disk.fail_at(at, Fault::Once);
        let process = world.process();
        let done = session(&process, &world.clock);
        drop(process);
        check(&world, &done, at);
    }
}

#[test]
fn a_torn_tail_does_not_swallow_the_line_after_it() {
    let world = World::new();
    let process = world.process();
    let first = process.attach().unwrap();
    let path = world.disk.below(&world.state().join("open")).pop().unwrap();
    use majordomus_records::disk::{Disk, Open};
    world.disk.open(&path, Open::Existing).unwrap().append(br#"{"v":1,"id":"torn","ki"#).unwrap();
    assert!(matches!(process.detach().unwrap(), EndedAs::Ended { session_id, .. } if session_id == first.session_id));
    world.recover();
    assert_eq!(world.records().len(), 1);
}
