//! Handles: which are good stands in the log, so that the next server still knows them.

use std::time::Duration;

use majordomus_episodes_core::EpisodeKey;
use majordomus_records::clock::Clock;
use majordomus_records::ending::EndedAs;
use majordomus_records::joining::{Joined, Joining, Whose};
use majordomus_records::line::Witness;

use crate::sim::Fault;
use crate::world::{GRACE, Process, World, field, key};

impl Process {
    fn join(&self, number: u64, handle: Option<&str>, again: bool) -> Joined {
        self.try_join(number, handle, again).unwrap()
    }

    fn try_join(
        &self,
        number: u64,
        handle: Option<&str>,
        again: bool,
    ) -> Result<Joined, majordomus_records::StoreError> {
        let joining = Joining { connection: Some((&self.holder, number)), handle, again, ..Joining::default() };
        self.store.start(&key(), Witness::Connection, joining)
    }

    /// What a new server finds: which handles are good, and how often somebody attached.
    fn adopts(&self) -> (Vec<String>, u32) {
        let (found, open) = self.store.adoptable().unwrap().remove(0);
        assert_eq!(found, EpisodeKey::new("generic", "thread-7").unwrap());
        (open.log.handles, open.log.attachments)
    }
}

/// Where a server has minted handles and died.
fn died(handles: &[&str]) -> World {
    let world = World::new();
    let server = world.process();
    for handle in handles {
        server.join(1, Some(handle), false);
    }
    drop(server);
    world
}

#[test]
fn a_new_server_knows_all_handles_that_were_minted_for_one_caller() {
    let world = died(&["h1", "h2", "h3"]);
    assert_eq!(world.process().adopts(), (vec!["h1".into(), "h2".into(), "h3".into()], 3));
}

#[test]
fn a_handle_that_is_written_once_more_after_evidence_is_no_further_attachment() {
    let world = World::new();
    let server = world.process();
    server.join(1, Some("h1"), false);
    world.clock.advance(Duration::from_secs(60));
    assert_eq!(server.join(1, Some("h1"), false).attachments, 1);
    assert_eq!(world.logs()[0].last_evidence.as_ref().map(|(stamp, _)| stamp.clone()), Some(world.clock.now()));
    assert_eq!(server.join(1, Some("h2"), false).attachments, 2);
}

#[test]
fn whom_an_earlier_server_knew_is_another_connection_and_no_further_attachment() {
    let world = died(&["h1"]);
    world.clock.advance(Duration::from_secs(60));
    let server = world.process();
    let joined = server.join(7, Some("h1"), true);
    assert!(joined.kept);
    assert_eq!(joined.attachments, 1);
    // Its messages are evidence now, and it holds the episode.
    world.clock.advance(GRACE * 2);
    let seen = |connection| server.store.seen(&key(), (server.holder.id(), connection), Duration::ZERO).unwrap();
    assert_eq!((seen(7), seen(1)), (Whose::Its, Whose::Beside));
    assert!(matches!(world.process().expire().unwrap(), EndedAs::NotOver(_)));
    drop(server);
    assert_eq!(world.process().adopts(), (vec!["h1".into()], 1), "and its handle stays good");
    world.recover();
    let (_, record) = &world.records()[0];
    assert_eq!((field(record, "attachments"), field(record, "take_overs")), ("1", "0"));
}

#[test]
fn whom_an_earlier_server_knew_takes_nothing_over_even_if_that_one_still_lives() {
    let world = World::new();
    let hanging = world.process();
    hanging.join(1, Some("h1"), false);
    world.process().join(1, Some("h1"), true);
    let log = world.logs().remove(0);
    assert_eq!((log.attachments, log.take_overs), (1, 0));
}

#[test]
fn another_client_without_a_handle_ends_the_earlier_ones() {
    for in_grace in [false, true] {
        let world = died(&["h1", "h2"]);
        let server = world.process();
        if in_grace {
            world.clock.advance(GRACE / 2);
        }
        assert_eq!(server.join(1, None, false).attachments, 3);
        drop(server);
        assert_eq!(world.process().adopts(), (vec![], 3));
        let server = world.process();
        server.join(1, Some("h3"), false);
        drop(server);
        assert_eq!(world.process().adopts(), (vec!["h3".into()], 4));
    }
}

#[test]
fn the_same_connection_without_a_handle_ends_none_and_is_not_counted() {
    let world = World::new();
    let server = world.process();
    server.join(1, Some("h1"), false);
    assert_eq!(server.join(1, None, false).attachments, 1);
    drop(server);
    assert_eq!(world.process().adopts(), (vec!["h1".into()], 1));
}

#[test]
fn a_handle_whose_line_could_not_be_acknowledged_is_counted_once() {
    let steps = {
        let world = died(&["h1"]);
        let (server, before) = (world.process(), world.disk.steps());
        server.join(1, Some("h1"), true);
        let held = world.disk.steps();
        assert!(held > before);
        server.join(1, Some("h2"), false);
        world.disk.steps() - held
    };
    for at in 1..=steps {
        let world = died(&["h1"]);
        let server = world.process();
        server.join(1, Some("h1"), true);
        world.disk.fail_at(at, Fault::Once);
        if server.try_join(1, Some("h2"), false).is_err() {
            server.join(1, Some("h2"), false);
        }
        drop(server);
        assert_eq!(world.process().adopts(), (vec!["h1".into(), "h2".into()], 2), "step {at}");
    }
}

#[test]
fn a_handle_is_as_durable_as_its_attachment() {
    let world = World::new();
    let server = world.process();
    server.join(1, Some("h1"), false);
    server.join(1, Some("h2"), false);
    drop(server);
    world.disk.restart(crate::sim::Restart::PowerLost);
    assert_eq!(world.process().adopts().0, ["h1", "h2"]);
}

/// Whether whom an earlier server knew by that handle is told that it has nothing to come back to.
fn is_gone(world: &World, handle: Option<&str>) -> bool {
    matches!(world.process().try_join(9, handle, true), Err(majordomus_records::StoreError::Gone))
}

#[test]
fn who_comes_back_to_what_is_over_or_somebody_elses_opens_and_takes_nothing() {
    // Ended from elsewhere, and its record published.
    let world = died(&["h1"]);
    world.process().store.close_by_operator(&key()).unwrap();
    assert!(is_gone(&world, Some("h1")) && world.logs().iter().all(|log| log.end.is_some()));
    world.recover();
    assert!(is_gone(&world, Some("h1")));
    assert_eq!((world.logs().len(), world.records().len()), (0, 1));

    // Attached by somebody else since, who goes on holding it.
    let world = died(&["h1"]);
    let other = world.process();
    other.join(1, None, false);
    assert!(is_gone(&world, Some("h1")) && is_gone(&world, None));
    let log = world.logs().remove(0);
    assert_eq!((log.attachments, log.connection), (2, Some(format!("{}-1", other.holder.id()))));

    // And a later episode of the same id is not the one that it was minted for.
    let world = died(&["h1"]);
    world.process().store.close_by_operator(&key()).unwrap();
    world.process().join(1, Some("h2"), false);
    assert!(is_gone(&world, Some("h1")) && !is_gone(&world, Some("h2")));
}

#[test]
fn of_many_handles_the_latest_are_good() {
    let world = World::new();
    let server = world.process();
    for number in 0..40 {
        server.join(1, Some(&format!("h{number}")), false);
    }
    let good = world.logs().remove(0).handles;
    assert_eq!((good.len(), good[0].as_str(), good[15].as_str()), (16, "h24", "h39"));
}

#[test]
fn who_comes_back_by_a_good_handle_does_so_at_the_second_try_too() {
    let world = died(&["h1"]);
    world.clock.advance(Duration::from_secs(30));
    world.process().join(1, Some("h2"), false);
    world.clock.advance(Duration::from_secs(30));
    let (server, ago) = (world.process(), Duration::from_secs(60));
    let connection = Some((&server.holder, 1));
    let again = Joining { connection, handle: Some("h1"), again: true, ago, asked_ago: ago, ..Joining::default() };
    assert!(server.store.start(&key(), Witness::Connection, again).unwrap().kept);
}
