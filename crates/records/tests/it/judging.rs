//! Who judges silence: one process at a time, and a hook nothing but its own key.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use majordomus_episodes_core::EpisodeKey;
use majordomus_providers::EventKind;
use majordomus_records::capture::{self, Event};
use majordomus_records::disk::Disk;
use majordomus_records::joining::Joining;
use majordomus_records::line::Witness;
use majordomus_records::recovery::{AT_MOST, Judges};
use majordomus_records::{Policy, StoreError};

use crate::world::{GRACE, Process, World, key};
use crate::wrapped::Wrapped;

const LIMIT: Duration = Duration::from_secs(10);

/// So many episodes whose connections are gone and whose time is over, beside one that has ended.
fn abandoned(count: usize) -> World {
    let world = World::new();
    let server = world.process();
    for nr in 0..count {
        let key = EpisodeKey::new("generic", &format!("old-{nr}")).unwrap();
        let joining = Joining { connection: Some((&server.holder, nr as u64)), ..Joining::default() };
        server.store.start(&key, Witness::Connection, joining).unwrap();
    }
    let other = world.process();
    other.attach().unwrap();
    other.detach().unwrap();
    world.clock.advance(GRACE * 100);
    world
}

#[test]
fn a_command_ends_nothing_while_somebody_else_is_the_server_and_composes_all_the_same() {
    let world = abandoned(15);
    let server = world.process();
    let serving = server.store.serve().unwrap().expect("nobody else is");
    let swept = world.process().store.sweep(LIMIT);
    assert_eq!((swept.expired.len(), swept.published.len(), swept.troubles.len()), (0, 1, 0));
    // The server itself does, and knows that it is.
    assert_eq!(server.store.sweep_as(Judges::All, LIMIT).expired.len(), AT_MOST);
    assert_eq!(world.process().store.sweep(LIMIT).expired.len(), 0);
    serving.leave(&server.store);
    assert_eq!(world.process().store.sweep(LIMIT).expired.len(), 5);
}

#[test]
fn without_a_server_a_command_ends_ten_at_most_and_those_that_have_waited_longest_first() {
    let world = abandoned(25);
    for (round, ended) in [10, 10, 5, 0].into_iter().enumerate() {
        let swept = world.process().store.sweep(LIMIT);
        assert_eq!((swept.expired.len(), swept.troubles.len()), (ended, 0), "round {round}");
    }
}

#[test]
fn a_server_that_is_stopped_for_twenty_minutes_keeps_what_its_clients_hold() {
    let world = World::new();
    let server = world.process();
    let _serving = server.store.serve().unwrap().unwrap();
    server.attach().unwrap();
    // Not a beat, not a line: but its locks are held.
    world.clock.advance(Duration::from_secs(20 * 60));
    for judges in [Judges::Nothing, Judges::All] {
        assert!(world.process().store.sweep_as(judges, LIMIT).expired.is_empty());
    }
    assert_eq!(server.store.sweep_as(Judges::All, LIMIT).expired, Vec::<String>::new());
    assert!(server.seen().unwrap());
}

/// What one event of a hook reads of the disk, and which files it leaves changed.
fn one_hook(world: &World, kind: EventKind) -> (u64, Vec<PathBuf>) {
    let provider = majordomus_providers::find("claude-code").unwrap();
    let key = EpisodeKey::new(provider.id, "own").unwrap();
    let disk = Wrapped::new(&world.disk);
    let process: Process = world.process_on(Arc::new(disk.clone()), None, Policy::default());
    let reason = (kind == EventKind::End).then_some("clear");
    let event = Event { reason, ..Event::new(provider, kind, &key) };
    let all = |world: &World| -> Vec<(PathBuf, Vec<u8>)> {
        let paths = world.disk.below(world.root());
        paths.into_iter().map(|path| (path.clone(), world.disk.read(&path, u64::MAX).unwrap())).collect()
    };
    let before = all(world);
    let read = disk.bytes_read(|| drop(capture::record(&process.store, &event).unwrap()));
    let after = all(world);
    let unchanged = |file: &(PathBuf, Vec<u8>)| after.contains(file);
    let changed = before.iter().filter(|file| !unchanged(file)).map(|(path, _)| path.clone());
    (read, changed.collect())
}

#[test]
fn a_hook_touches_its_own_key_and_reads_no_more_for_what_others_have_left() {
    let (alone, crowded) = (abandoned(0), abandoned(200));
    for kind in [EventKind::Start, EventKind::Activity, EventKind::Compact, EventKind::End] {
        let ((read, _), (among, changed)) = (one_hook(&alone, kind), one_hook(&crowded, kind));
        assert!(among <= read + 64, "{kind:?} reads {among} bytes instead of {read}");
        let others: Vec<_> = changed
            .into_iter()
            .filter(|path| path.to_string_lossy().contains("old-") || path.to_string_lossy().contains("holders"))
            .collect();
        assert!(others.is_empty(), "{kind:?} changed {others:?}");
    }
    assert_eq!(crowded.process().store.open_episodes().unwrap().len(), 200);
}

#[test]
fn whoever_comes_back_is_judged_by_its_own_time_also_while_somebody_else_is_the_server() {
    // An attach is of its own key: it does not wait for the server to notice that the one before is over.
    let world = World::new();
    drop({
        let process = world.process();
        process.attach().unwrap();
        process
    });
    let server = world.process();
    let _serving = server.store.serve().unwrap().unwrap();
    world.clock.advance(GRACE);
    assert!(!world.process().attach().unwrap().kept);
    let returning = Joining { again: true, carrier: Some("c"), ..Joining::default() };
    let refused = world.process().store.start(&key(), Witness::Connection, returning);
    assert!(matches!(refused, Err(StoreError::Gone)));
}
