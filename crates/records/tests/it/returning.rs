//! A server dies or is stopped, and the next one gives its clients back what they held.

use std::sync::Arc;
use std::time::Duration;

use majordomus_episodes_core::board::{Attached, BoardError, BoardOptions, Closed, EpisodeBoard};
use majordomus_episodes_core::driver::{CloseReason, Closing, EpisodeDriver, Left, Outcome, Seen};
use majordomus_episodes_core::peers::{Peer, PeerBoard, Transport};
use majordomus_episodes_core::{EpisodeKey, PeerId};
use majordomus_records::clock::{Clock, rfc3339};
use majordomus_records::disk::Disk;
use majordomus_records::joining::{Joined, Joining};
use majordomus_records::line::Witness;
use majordomus_records::log::Log;
use majordomus_records::recovery::Judges;
use majordomus_records::state::carrier_of;
use majordomus_records::store::Silence;
use majordomus_records::{RecordDriver, Returning, StoreError};

use crate::holders::OneClock;
use crate::sim::Fault;
use crate::world::{GRACE, Process, World, field, key};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

/// A server: its board, and what it records by.
pub(crate) struct Server {
    pub(crate) driver: Arc<RecordDriver>,
    pub(crate) board: EpisodeBoard,
    peers: PeerBoard,
}

impl Server {
    pub(crate) fn new(world: &World) -> Self {
        let driver = Arc::new(RecordDriver::new(world.process().store).unwrap());
        let clock = Arc::new(OneClock(world.clock.clone()));
        let options = BoardOptions { driver: driver.clone(), clock, ..BoardOptions::default() };
        Self { driver, board: EpisodeBoard::with(options), peers: PeerBoard::new() }
    }

    pub(crate) fn bridge(&self) -> Peer {
        self.peers.attach(Transport::Stdio)
    }

    pub(crate) fn attach(&self, peer: &Peer, id: &str, carrier: &str) -> Attached {
        self.try_attach(peer, id, carrier).unwrap()
    }

    fn try_attach(&self, peer: &Peer, id: &str, carrier: &str) -> Result<Attached, BoardError> {
        self.board.attach_with(majordomus_episodes_core::board::AttachRequest {
            peer,
            external_id: id,
            provider: "generic",
            client: Some("test 1"),
            handle: None,
            again: false,
            carrier: Some(carrier),
        })
    }

    /// What a bridge that says what it holds is given back.
    fn give_back(&self, peer: &Peer, key: &EpisodeKey, carrier: &str) -> Option<Attached> {
        let Returning::Open(open) = self.driver.store().returning(key, carrier).unwrap() else { return None };
        let adopted = self.driver.store().to_adopt(key, &open);
        Some(self.board.restore(peer, adopted, carrier).unwrap())
    }
}

/// A server with a client that was last heard a minute after its attach, ten seconds ago; and when it began.
fn served(world: &World) -> (Server, Peer, String) {
    let server = Server::new(world);
    let peer = server.bridge();
    let opened_at = server.attach(&peer, "thread-7", "c").episode.opened_at;
    assert_eq!(opened_at, rfc3339(world.clock.now().wall_ms));
    world.clock.advance(MINUTE);
    server.board.touch(&peer);
    world.clock.advance(MINUTE / 2);
    server.board.reap();
    (server, peer, opened_at)
}

pub(crate) fn only(world: &World) -> Log {
    let mut logs = world.logs();
    assert_eq!(logs.len(), 1);
    logs.remove(0)
}

pub(crate) fn silence(world: &World) -> Silence {
    world.process().store.find(&key()).unwrap().expect("it is open").silence
}

fn is_gone(world: &World, carrier: &str) -> bool {
    matches!(world.process().store.returning(&key(), carrier).unwrap(), Returning::Gone)
}

impl Process {
    fn join_as(&self, carrier: Option<&str>, again: bool) -> Result<Joined, StoreError> {
        let joining = Joining { connection: Some((&self.holder, 1)), carrier, again, ..Joining::default() };
        self.store.start(&key(), Witness::Connection, joining)
    }
}

/// What must hold of the log however the first server went.
fn is_as_if_nothing_had_happened(world: &World, opened_at: &str, evidence: &Log) {
    let log = only(world);
    assert_eq!((log.attachments, log.take_overs), (1, 0));
    assert_eq!(rfc3339(log.start.as_ref().unwrap().stamp.wall_ms), opened_at);
    assert_eq!(log.last_evidence, evidence.last_evidence);
    assert_eq!((log.client.as_deref(), log.carrier.as_deref(), log.clock_adjusted), (Some("test 1"), Some("c"), false));
}

#[test]
fn what_a_killed_server_held_is_given_back_as_if_nothing_had_happened() {
    let world = World::new();
    let (first, _, opened_at) = served(&world);
    drop(first);
    let before = only(&world);
    let second = Server::new(&world);
    second.bridge();
    let peer = second.bridge();
    let given = second.give_back(&peer, &key(), "c").unwrap();
    assert_eq!((given.episode.opened_at.as_str(), given.episode.attachments), (&*opened_at, 1));
    assert_eq!((given.episode.last_activity_seconds_ago, given.recorded), (30, true));
    assert_eq!(
        given.episode.repository,
        format!("session {} kept, open since {opened_at}", before.session_id().unwrap())
    );
    is_as_if_nothing_had_happened(&world, &opened_at, &before);
    assert_eq!(silence(&world), Silence::Held);

    // It dies too, and nobody comes back: the session ends where its client was last heard.
    drop(second);
    world.recover();
    let (_, record) = &world.records()[0];
    assert_eq!(field(record, "closed_at"), rfc3339(before.last_evidence.unwrap().0.wall_ms));
    assert_eq!((field(record, "attachments"), field(record, "take_overs")), ("1", "0"));
    assert_eq!((field(record, "outcome"), field(record, "end_reason")), ("interrupted", "expired"));
}

#[test]
fn a_stopped_server_that_still_has_its_lock_is_not_taken_over_from() {
    let world = World::new();
    let (stopped, _, opened_at) = served(&world);
    let before = only(&world);
    assert_eq!(silence(&world), Silence::Held);
    let second = Server::new(&world);
    let store = second.driver.store();
    let adopted = store.to_adopt(&key(), &store.find(&key()).unwrap().unwrap());
    assert_eq!((adopted.waiting_for, adopted.silent_for), (Duration::ZERO, MINUTE / 2), "it has not begun to wait");
    second.give_back(&second.bridge(), &key(), "c").unwrap();
    is_as_if_nothing_had_happened(&world, &opened_at, &before);
    drop(second);
    drop(stopped);

    // Nor where its client asked once more because it was not answered: that is one connection.
    let world = World::new();
    let (_stopped, _, _) = served(&world);
    let second = Server::new(&world);
    assert_eq!(second.attach(&second.bridge(), "thread-7", "c").episode.attachments, 1);
    assert_eq!((only(&world).attachments, only(&world).take_overs), (1, 0));
    assert!(!log_lines(&world).iter().any(|line| line.took_over));
    // Another one's is another matter.
    let third = Server::new(&world);
    assert_eq!(third.attach(&third.bridge(), "thread-7", "d").episode.attachments, 2);
    assert_eq!((only(&world).attachments, only(&world).take_overs), (2, 1));
}

#[test]
fn a_server_that_wakes_up_later_neither_closes_nor_takes_back_what_it_held() {
    let world = World::new();
    let (stopped, old, _) = served(&world);
    let second = Server::new(&world);
    let peer = second.bridge();
    second.give_back(&peer, &key(), "c").unwrap();
    let before = only(&world);
    world.clock.advance(GRACE * 2);

    // Its driver, whatever it is told.
    let (key, peer_id): (_, PeerId) = (key(), old.id());
    stopped.driver.seen(&Seen { key: key.clone(), peer: Some(peer_id), ago: Duration::ZERO });
    stopped.driver.left(&Left { key: key.clone(), peer: peer_id, ago: GRACE * 2 });
    stopped.driver.beat();
    for reason in [CloseReason::Expired, CloseReason::Shutdown, CloseReason::Detach] {
        let (key, last_evidence_ago, asked_ago) = (key.clone(), Some(GRACE * 2), Duration::ZERO);
        let closing = Closing { key, reason, by_operator: false, last_evidence_ago, asked_ago, judged: None };
        let outcome = stopped.driver.close(&closing).outcome;
        assert!(matches!(outcome, Outcome::Gone | Outcome::Nothing), "{reason:?}: {outcome:?}");
    }
    assert!(stopped.driver.store().sweep_as(Judges::All, SECOND).expired.is_empty());
    stopped.driver.leave();

    // Its board: the connection is gone, the deadline has passed, its operator stops it.
    stopped.board.touch(&old);
    stopped.board.detach(&old);
    assert!(stopped.board.list().is_empty(), "it does not list what is not its own");
    world.clock.advance(GRACE);
    assert!(stopped.board.reap().is_empty());
    stopped.board.close_all(CloseReason::Shutdown);
    drop(stopped);

    let after = only(&world);
    assert!(after.end.is_none());
    assert_eq!((&after.connection, &after.last_evidence), (&before.connection, &before.last_evidence));
    assert_eq!(silence(&world), Silence::Held);
    // And the one that holds it ends it as ever.
    assert_eq!(second.board.finish(&peer, None, "generic").unwrap().episode.attachments, 1);
    assert_eq!(field(&world.records()[0].1, "outcome"), "closed");
}

#[test]
fn what_somebody_else_has_attached_to_meanwhile_is_gone() {
    for carrier in [None, Some("d")] {
        let world = World::new();
        let (first, _, _) = served(&world);
        drop(first);
        let other = world.process();
        other.join_as(carrier, false).unwrap();
        assert!(is_gone(&world, "c"));
        assert!(matches!(world.process().join_as(Some("c"), true), Err(StoreError::Gone)));
        // Also once that one is gone.
        drop(other);
        assert!(is_gone(&world, "c"));
        assert_eq!(only(&world).attachments, 2);
    }
    let world = World::new();
    assert!(is_gone(&world, "c") && matches!(world.process().join_as(Some("c"), true), Err(StoreError::Gone)));
    assert!(world.logs().is_empty(), "nothing is opened for it");
}

#[test]
fn what_is_past_its_time_is_gone() {
    let world = World::new();
    let (first, _, _) = served(&world);
    drop(first);
    world.clock.advance(GRACE - MINUTE / 2 - SECOND);
    assert!(!is_gone(&world, "c"));
    world.clock.advance(SECOND);
    assert!(is_gone(&world, "c"));
    assert!(matches!(world.process().join_as(Some("c"), true), Err(StoreError::Gone)));
    world.recover();
    assert!(is_gone(&world, "c"), "also when its record is there");
    assert_eq!(field(&world.records()[0].1, "end_reason"), "expired");
}

/// Asks a new server to end what an earlier one may have ended.
fn asked_again(world: &World) -> Closed {
    let Returning::Ended(ended) = world.process().store.returning(&key(), "c").unwrap() else {
        panic!("it was this carrier that ended it")
    };
    let server = Server::new(world);
    let peer = server.bridge();
    server.board.recall(&peer, ended.closed(&key()));
    server.board.finish(&peer, Some("thread-7"), "generic").unwrap()
}

#[test]
fn a_detach_that_nobody_could_answer_any_more_is_answered_as_it_would_have_been() {
    let world = World::new();
    let (first, peer, _) = served(&world);
    let answer = first.board.finish(&peer, None, "generic").unwrap();
    assert!(
        answer.recorded && answer.episode.repository.starts_with("episode closed (closed, reason detach) into .ai/")
    );
    drop(first);
    assert_eq!(world.records().len(), 1);
    assert_eq!(asked_again(&world), answer, "its record is there");
    // Others have had that id since, and the bridge has not.
    world.process().join_as(Some("d"), false).unwrap();
    assert_eq!(asked_again(&world), answer);
    assert!(is_gone(&world, "d") || world.logs().len() == 1);
}

#[test]
fn a_detach_is_known_at_every_step_from_which_on_it_is_durable() {
    let mut known = 0;
    for at in 1.. {
        let world = World::new();
        let (first, peer, opened_at) = served(&world);
        world.disk.fail_at(at, Fault::Stop);
        let answer = first.board.finish(&peer, None, "generic");
        drop(first);
        let finished = world.disk.is_waiting();
        world.disk.restart(crate::sim::Restart::Killed);
        match world.process().store.returning(&key(), "c").unwrap() {
            Returning::Open(_) => assert!(!answer.is_ok_and(|closed| closed.recorded), "step {at}"),
            Returning::Ended(_) => {
                known += 1;
                let again = asked_again(&world);
                assert_eq!((again.episode.opened_at, again.episode.attachments), (opened_at, 1), "step {at}");
                world.recover();
                let (path, _) = &world.records()[0];
                let path = path.strip_prefix(world.root()).unwrap().to_string_lossy().into_owned();
                assert!(again.episode.repository.ends_with(&path), "step {at}");
                assert_eq!(asked_again(&world).episode.repository, again.episode.repository, "step {at}");
            }
            Returning::Gone => panic!("step {at}: neither open nor ended"),
        }
        if finished {
            break;
        }
    }
    assert!(known > 3);
}

#[test]
fn what_others_have_ended_is_not_taken_for_an_own_detach() {
    let ends: [fn(&Server, &Peer); 3] = [
        |server, _| drop(server.board.close("thread-7", CloseReason::Detach)),
        |server, _| drop(server.board.close_all(CloseReason::Shutdown)),
        |server, peer| {
            server.board.detach(peer);
            server.board.finish(&server.bridge(), Some("thread-7"), "generic").unwrap();
        },
    ];
    for end in ends {
        let world = World::new();
        let (first, peer, _) = served(&world);
        end(&first, &peer);
        drop(first);
        assert!(is_gone(&world, "c"));
        assert_eq!(world.records().len(), 1);
    }
    // Nor an own one for that of a session it has had since.
    let world = World::new();
    let (first, peer, _) = served(&world);
    first.board.finish(&peer, None, "generic").unwrap();
    first.attach(&peer, "thread-7", "c");
    first.board.close("thread-7", CloseReason::Detach).unwrap();
    assert!(is_gone(&world, "c"));
}

#[test]
fn what_a_connection_had_left_for_another_id_waits_and_is_held_by_nobody() {
    let world = World::new();
    let (first, peer, _) = served(&world);
    first.attach(&peer, "thread-8", "c");
    drop(first);
    let later = EpisodeKey::new("generic", "thread-8").unwrap();
    let second = Server::new(&world);
    let peer = second.bridge();
    second.give_back(&peer, &later, "c").unwrap();
    for (key, open) in second.driver.store().adoptable().unwrap() {
        second.board.adopt(second.driver.store().to_adopt(&key, &open));
    }
    let shown: Vec<_> = second.board.list().into_iter().map(|episode| (episode.external_id, episode.peer)).collect();
    assert_eq!(shown, [("thread-8".to_owned(), Some(peer.id())), ("thread-7".to_owned(), None)]);
    world.clock.advance(GRACE);
    let ended: Vec<_> = second.board.reap().into_iter().map(|episode| episode.external_id).collect();
    assert_eq!(ended, ["thread-7"]);
    assert_eq!(world.process().store.find(&later).unwrap().unwrap().silence, Silence::Held);
}

#[test]
fn many_servers_one_after_the_other_count_nothing() {
    let world = World::new();
    let (first, _, opened_at) = served(&world);
    drop(first);
    let before = only(&world);
    for round in 0..20 {
        let server = Server::new(&world);
        server.give_back(&server.bridge(), &key(), "c").unwrap_or_else(|| panic!("round {round}"));
        // Silent clients are held, too: what runs from the death is the grace.
        world.clock.advance(GRACE * 2);
        server.driver.beat();
    }
    is_as_if_nothing_had_happened(&world, &opened_at, &before);
}

#[test]
fn the_branch_of_an_end_for_silence_is_the_one_on_which_its_client_was_last_heard() {
    let world = World::new();
    let git = world.root().join(".git");
    std::fs::create_dir_all(git.join("refs/heads")).unwrap();
    let on = |branch: &str| std::fs::write(git.join("HEAD"), format!("ref: refs/heads/{branch}\n")).unwrap();
    on("one");
    let (first, _, _) = served(&world);
    drop(first);
    on("two");
    let second = Server::new(&world);
    second.give_back(&second.bridge(), &key(), "c").unwrap();
    let lines = log_lines(&world);
    let [.., heard, given] = &*lines else { panic!("{lines:?}") };
    assert_eq!((&given.stamp, &given.at), (&heard.stamp, &heard.at), "as its line says, too");
    drop(second);
    world.recover();
    assert_eq!(field(&world.records()[0].1, "branch"), "one");
}

/// Runs `first`, and `second` in full before each of its steps in turn.
fn at_every_step(first: impl Fn(&World, &Process), second: fn(&Process) -> bool, check: impl Fn(&World, bool, usize)) {
    for at in 1.. {
        let world = World::new();
        let (stopped, _, _) = served(&world);
        let (one, other) = (world.process(), world.process());
        let kept = Arc::new(std::sync::Mutex::new(None));
        let keep = kept.clone();
        let run = move || *keep.lock().unwrap() = Some((second(&other), other));
        world.disk.fail_at(at, Fault::Meanwhile(Box::new(run)));
        first(&world, &one);
        if world.disk.is_waiting() {
            return;
        }
        let done = kept.lock().unwrap().as_ref().is_some_and(|(done, _)| *done);
        check(&world, done, at);
        drop(stopped);
    }
}

#[test]
fn a_return_that_crosses_anothers_attach_is_before_it_or_does_not_happen() {
    at_every_step(
        |_, returning| drop(returning.join_as(Some("c"), true)),
        |other| other.join_as(Some("d"), false).is_ok(),
        |world, attached, at| {
            assert!(attached, "step {at}");
            let log = only(world);
            assert_eq!((log.attachments, log.carrier.as_deref()), (2, Some("d")), "step {at}");
            assert!(is_gone(world, "c"), "step {at}");
        },
    );
}

#[test]
fn a_server_that_was_stopped_while_it_wrote_an_attach_takes_nothing_back_from_the_next() {
    at_every_step(
        |world, stopped| {
            let joined = stopped.join_as(Some("c"), false);
            if let (Err(error), Some(log)) = (&joined, world.logs().first()) {
                assert!(matches!(error, StoreError::Gone), "{error} {log:?}");
            }
        },
        |next| next.join_as(Some("c"), true).is_ok(),
        |world, given_back, at| {
            assert!(given_back, "step {at}");
            let log = only(world);
            let lines = log_lines(world);
            assert_eq!(log.connection, last_silent(&lines), "step {at}: {lines:?}");
            assert_eq!((log.attachments, log.take_overs), (1, 0), "step {at}");
        },
    );
}

fn log_lines(world: &World) -> Vec<majordomus_records::line::Line> {
    let path = world.disk.below(&world.state().join("open")).remove(0);
    let bytes = world.disk.read(&path, u64::MAX).unwrap();
    bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
}

fn last_silent(lines: &[majordomus_records::line::Line]) -> Option<String> {
    lines.iter().rfind(|line| line.is_silent())?.connection.clone()
}

#[test]
fn a_server_that_was_stopped_while_it_wrote_an_end_ends_nothing_that_the_next_one_holds() {
    for reason in [CloseReason::Shutdown, CloseReason::Expired] {
        for at in 1.. {
            let world = World::new();
            let (stopped, old, _) = served(&world);
            stopped.board.detach(&old);
            world.clock.advance(GRACE - SECOND);
            let next = Arc::new(Server::new(&world));
            let given = next.clone();
            world.disk.fail_at(
                at,
                Fault::Meanwhile(Box::new(move || {
                    given.give_back(&given.bridge(), &key(), "c");
                })),
            );
            let (last_evidence_ago, asked_ago, judged) = (None, Duration::ZERO, None);
            let closing = Closing { key: key(), reason, by_operator: false, last_evidence_ago, asked_ago, judged };
            stopped.driver.close(&closing);
            if world.disk.is_waiting() {
                break;
            }
            let held = next.board.list().iter().any(|episode| episode.peer.is_some());
            let log = world.process().store.find(&key()).unwrap();
            assert_eq!(held, log.is_some(), "{reason:?}, step {at}");
        }
    }
}

#[test]
fn a_carrier_is_a_hash_of_its_own() {
    let carrier = carrier_of("0123456789abcdef0123456789abcdef");
    assert_eq!(carrier, "3eb1bd439947eb762998e566ccc2e099c791118b2f40579cc4f7da2b5061b7f9");
    let world = World::new();
    let server = Server::new(&world);
    server.attach(&server.bridge(), "thread-7", &carrier);
    assert_eq!(only(&world).carrier.as_deref(), Some(&*carrier));
}

#[test]
fn a_server_that_was_stopped_for_long_and_is_killed_then_is_lost_when_it_was_killed() {
    let world = World::new();
    let (stopped, _, opened_at) = served(&world);
    let other = stopped.bridge();
    stopped.attach(&other, "thread-8", "d");
    stopped.board.detach(&other);
    world.clock.advance(GRACE * 2);
    let id = stopped.driver.holder_id().to_owned();
    world.process().store.note_death(&id).unwrap();
    assert_eq!(silence(&world), Silence::Held, "it lives");
    drop(stopped);
    assert!(is_gone(&world, "c"), "as far as anybody could know");

    let before = world.process().store.find(&key()).unwrap().unwrap().log;
    let store = world.process().store;
    store.note_death(&id).unwrap();
    assert_eq!(silence(&world), Silence::Waiting(GRACE));
    let left = store.find(&EpisodeKey::new("generic", "thread-8").unwrap()).unwrap().unwrap();
    assert!(matches!(left.silence, Silence::Over(_)), "that one had been let go before");
    assert_eq!(store.sweep_as(Judges::All, SECOND).expired.len(), 1);
    let second = Server::new(&world);
    second.give_back(&second.bridge(), &key(), "c").unwrap();
    is_as_if_nothing_had_happened(&world, &opened_at, &before);
    for nobody in ["", "../../config", "0123456789abcdef0123456789abcdef"] {
        store.note_death(nobody).unwrap();
    }
}

#[test]
fn a_return_that_is_stopped_at_any_step_can_be_made_once_more() {
    for how in [crate::sim::Restart::Killed, crate::sim::Restart::PowerLost] {
        for at in 1.. {
            let world = World::new();
            let (first, _, opened_at) = served(&world);
            drop(first);
            world.disk.restart(how);
            let before = only(&world);
            world.disk.fail_at(at, Fault::Stop);
            let second = Server::new(&world);
            let Returning::Open(open) = second.driver.store().returning(&key(), "c").unwrap() else {
                panic!("it is open")
            };
            let adopted = second.driver.store().to_adopt(&key(), &open);
            let recorded = second.board.restore(&second.bridge(), adopted, "c").is_ok_and(|given| given.recorded);
            drop(second);
            let finished = world.disk.is_waiting();
            world.disk.restart(how);
            let third = Server::new(&world);
            third.give_back(&third.bridge(), &key(), "c").unwrap_or_else(|| panic!("step {at}"));
            is_as_if_nothing_had_happened(&world, &opened_at, &before);
            if finished {
                assert!(recorded && at > 3);
                break;
            }
        }
    }
}
