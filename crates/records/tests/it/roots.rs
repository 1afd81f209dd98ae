//! A state folder that takes names but no bytes: a session begins in the user's own folder, and nothing of it stays here.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use majordomus_records::disk::Disk;
use majordomus_records::ending::{EndedAs, Ending};
use majordomus_records::joining::{Joining, Marked};
use majordomus_records::line::{EndOutcome, Kind, Witness};
use majordomus_records::log::Log;
use majordomus_records::{Policy, StoreError};

use crate::sim::Fault;
use crate::world::{Process, World, field, key};
use crate::wrapped::Wrapped;

fn user_state(world: &World) -> PathBuf {
    world.root().join("user")
}

/// A process for which the repository's own state folder is full.
fn process(world: &World) -> Process {
    let disk = Wrapped::full_below(&world.disk, world.state());
    world.process_on(Arc::new(disk), Some(&user_state(world)), Policy::default())
}

/// The logs in `open/` here, whatever they end with, and those in the user's folder.
fn open_logs(world: &World) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let below = |folder: PathBuf| {
        let mut found = world.disk.below(&folder);
        found.retain(|path| path.parent().is_some_and(|parent| parent.ends_with("open")));
        found
    };
    (below(world.state()), below(user_state(world)))
}

fn end_by_hook(process: &Process) -> Result<EndedAs, StoreError> {
    let (outcome, witness) = (EndOutcome::Closed, Witness::Hook);
    let (last_evidence_ago, asked_ago) = (None, Duration::ZERO);
    let reason = "clear";
    process.store.end(
        &key(),
        Ending::Said {
            outcome,
            reason,
            witness,
            holder: None,
            last_evidence_ago,
            asked_ago,
            hook: majordomus_records::ending::HookEnd::default(),
        },
    )
}

#[test]
fn a_start_whose_first_write_fails_is_taken_back_and_made_in_the_users_folder() {
    let world = World::new();
    let process = process(&world);
    let joined = process.store.start(&key(), Witness::Hook, Joining::default()).unwrap();
    assert!(!joined.kept);
    let (here, there) = open_logs(&world);
    assert_eq!((here, there.len()), (Vec::new(), 1));
    let marked = process.store.mark(&key(), Kind::Compact, Witness::Hook, None, None);
    assert!(matches!(marked, Ok(Marked::In(of)) if of.kept && of.session_id == joined.session_id));
    let again = process.store.start(&key(), Witness::Hook, Joining::default()).unwrap();
    assert_eq!((&again.session_id, again.kept), (&joined.session_id, true));
    assert!(matches!(end_by_hook(&process), Ok(EndedAs::Ended { session_id, .. }) if session_id == joined.session_id));
    process.store.sweep(Duration::from_secs(1));
    let records = world.records();
    assert_eq!((records.len(), field(&records[0].1, "session_id")), (1, &*joined.session_id));
    assert_eq!(open_logs(&world), (Vec::new(), Vec::new()));
}

#[test]
fn a_mark_that_begins_a_session_goes_to_the_users_folder_too() {
    let world = World::new();
    let marked = process(&world).store.mark(&key(), Kind::Activity, Witness::Hook, None, None);
    assert!(matches!(marked, Ok(Marked::In(joined)) if !joined.kept));
    let (here, there) = open_logs(&world);
    assert_eq!((here, there.len()), (Vec::new(), 1));
}

#[test]
fn a_connection_that_cannot_stand_up_here_does_so_in_the_users_folder() {
    let world = World::new();
    let process = process(&world);
    let joined = process.attach();
    let (here, there) = open_logs(&world);
    assert_eq!((here, there.len()), (Vec::new(), 1), "{joined:?}");
    let joined = joined.unwrap();
    // While it lives nobody else may end it, wherever its file is.
    world.clock.advance(Duration::from_secs(86_400));
    assert!(matches!(self::process(&world).expire().unwrap(), EndedAs::NotOver(_)));
    assert!(matches!(process.detach(), Ok(EndedAs::Ended { session_id, .. }) if session_id == joined.session_id));
}

#[test]
fn where_no_folder_takes_a_byte_nothing_is_left_of_a_start_that_failed() {
    let world = World::new();
    let disk = Wrapped::full_below(&world.disk, world.root().to_path_buf());
    let process = world.process_on(Arc::new(disk), Some(&user_state(&world)), Policy::default());
    assert!(process.store.start(&key(), Witness::Hook, Joining::default()).is_err());
    assert_eq!(open_logs(&world), (Vec::new(), Vec::new()), "a hook's");
    assert!(process.attach().is_err());
    assert_eq!(open_logs(&world), (Vec::new(), Vec::new()), "a connection's");
}

#[test]
fn a_log_that_somebody_else_has_begun_meanwhile_is_not_taken_back() {
    // Wherever the other one comes in between, its session is the one that goes on.
    for at in 1..12 {
        let world = World::new();
        let other = world.process_on(Arc::new(world.disk.clone()), Some(&user_state(&world)), Policy::default());
        let begun = Arc::new(std::sync::Mutex::new(None));
        let note = begun.clone();
        let start = move || {
            let joined = other.store.start(&key(), Witness::Hook, Joining::default()).unwrap();
            *note.lock().unwrap() = Some(joined.session_id);
        };
        world.disk.fail_at(at, Fault::Meanwhile(Box::new(start)));
        let ours = process(&world).store.start(&key(), Witness::Hook, Joining::default());
        let Some(session_id) = begun.lock().unwrap().take() else { continue };
        let (here, user) = open_logs(&world);
        let logs: Vec<Log> =
            here.iter().chain(&user).map(|path| Log::parse(&world.disk.read(path, u64::MAX).unwrap())).collect();
        let there = |id: &str| logs.iter().any(|log| log.session_id() == Some(id));
        assert!(there(&session_id), "step {at}: what somebody else was promised is gone");
        if let Ok(joined) = ours {
            assert!(there(&joined.session_id), "step {at}: what this one was promised is gone");
        }
    }
}
