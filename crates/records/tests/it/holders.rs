//! What a process says of its own connections, and how others judge by it.

use std::sync::Arc;
use std::time::Duration;

use majordomus_episodes_core::board::{AttachRequest, BoardOptions, EpisodeBoard};
use majordomus_episodes_core::clock::{Clock as Awake, Moment};
use majordomus_episodes_core::driver::{Closing, Judged, Left, Opening, Outcome, Report, Seen};
use majordomus_episodes_core::peers::{Peer, PeerBoard, Transport};
use majordomus_episodes_core::{CloseReason, EpisodeDriver, EpisodeKey, HANDLE_IDLE, PeerId};
use majordomus_records::RecordDriver;
use majordomus_records::clock::Clock;
use majordomus_records::disk::Disk;
use majordomus_records::ending::EndedAs;
use majordomus_records::line::Kind;
use majordomus_records::store::Silence;

use crate::world::{GRACE, Hand, World, field, key};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

/// The server's process, by what its board would tell its driver.
struct Server {
    world: World,
    driver: RecordDriver,
    peers: Vec<PeerId>,
}

impl Server {
    fn new() -> Self {
        let world = World::new();
        let driver = RecordDriver::new(world.process().store).unwrap();
        let peers = PeerBoard::new();
        Self { world, driver, peers: (0..2).map(|_| peers.attach(Transport::Http).id()).collect() }
    }

    fn open(&self, key: &EpisodeKey, peer: usize) -> Report {
        let (key, peer) = (key.clone(), self.peers[peer]);
        let ago = Duration::ZERO;
        self.driver.open(&Opening {
            key,
            peer,
            client: None,
            handle: None,
            again: false,
            carrier: None,
            took_over: false,
            repeated: false,
            ago,
            asked_ago: Duration::ZERO,
        })
    }

    fn left(&self, key: &EpisodeKey, ago: Duration) {
        self.driver.left(&Left { key: key.clone(), peer: self.peers[0], ago });
    }

    fn seen(&self, key: &EpisodeKey, ago: Duration) {
        self.driver.seen(&Seen { key: key.clone(), peer: Some(self.peers[0]), ago });
    }

    fn expire(&self, ago: Duration, judged: Option<Judged>) -> Report {
        self.driver.close(&Closing {
            key: key(),
            reason: CloseReason::Expired,
            by_operator: false,
            last_evidence_ago: Some(ago),
            asked_ago: Duration::ZERO,
            judged,
        })
    }

    /// How another process sees the episode.
    fn judged(&self) -> Silence {
        self.world.process().store.find(&key()).unwrap().expect("it is open").silence
    }

    fn holders(&self) -> String {
        let files = self.world.disk.below(&self.world.state().join("holders"));
        String::from_utf8(self.world.disk.read(&files[0], u64::MAX).unwrap()).unwrap()
    }

    /// The length that the end of the only log was judged by.
    fn judged_ms(&self) -> Option<u64> {
        let end = self.world.logs().remove(0).end.expect("it has ended");
        end.ended.judged_ms
    }
}

#[test]
fn what_a_living_process_has_let_go_waits_from_the_loss_for_everybody() {
    let server = Server::new();
    server.open(&key(), 0);
    server.world.clock.advance(GRACE * 3);
    assert_eq!(server.judged(), Silence::Held);
    server.left(&key(), MINUTE);
    assert_eq!(server.judged(), Silence::Waiting(GRACE - MINUTE), "not from the last evidence");
    server.driver.beat();
    server.world.clock.advance(GRACE - MINUTE - SECOND);
    assert!(matches!(server.world.process().expire().unwrap(), EndedAs::NotOver(SECOND)));
    server.driver.beat();
    server.world.clock.advance(SECOND);
    assert!(matches!(server.world.process().expire().unwrap(), EndedAs::Ended { .. }));
    assert_eq!(server.judged_ms(), Some(900_000));
}

#[test]
fn a_later_death_of_the_process_is_not_taken_for_the_loss() {
    let server = Server::new();
    server.open(&key(), 0);
    server.left(&key(), Duration::ZERO);
    server.world.clock.advance(GRACE - MINUTE);
    server.driver.beat();
    let Server { world, driver, .. } = server;
    drop(driver);
    assert_eq!(world.process().store.find(&key()).unwrap().unwrap().silence, Silence::Waiting(MINUTE));
}

#[test]
fn a_later_loss_counts() {
    let server = Server::new();
    server.open(&key(), 0);
    server.left(&key(), Duration::ZERO);
    server.world.clock.advance(MINUTE * 2);
    server.left(&key(), MINUTE);
    assert_eq!(server.judged(), Silence::Waiting(GRACE - MINUTE));
    // What is not this holder's by any log is nothing to anybody.
    server.left(&EpisodeKey::new("generic", "never").unwrap(), Duration::ZERO);
    assert_eq!(server.judged(), Silence::Waiting(GRACE - MINUTE));
}

#[test]
fn who_holds_again_has_let_nothing_go() {
    let server = Server::new();
    server.open(&key(), 0);
    server.world.clock.advance(MINUTE);
    for again in [
        |server: &Server| server.seen(&key(), Duration::ZERO),
        |server: &Server| drop(server.open(&key(), 0)),
        |server: &Server| drop(server.open(&key(), 1)),
    ] {
        server.left(&key(), Duration::ZERO);
        assert_eq!(server.judged(), Silence::Waiting(GRACE));
        again(&server);
        assert_eq!(server.judged(), Silence::Held);
        assert!(!server.holders().contains("left"), "{}", server.holders());
    }
    // The first connection has been taken over from: its messages are no evidence and hold nothing.
    server.left(&key(), Duration::ZERO);
    server.seen(&key(), Duration::ZERO);
    assert_eq!(server.judged(), Silence::Waiting(GRACE));
}

#[test]
fn one_connection_at_another_episode_lets_none_go_by_itself() {
    let server = Server::new();
    server.open(&key(), 0);
    server.open(&EpisodeKey::new("generic", "other").unwrap(), 0);
    server.world.clock.advance(GRACE * 2);
    assert_eq!(server.judged(), Silence::Held, "until the board says so");
}

#[test]
fn what_is_said_of_those_that_were_let_go_is_bounded() {
    let server = Server::new();
    let keys: Vec<_> = (0..1030).map(|nr| EpisodeKey::new("generic", &format!("thread-{nr}")).unwrap()).collect();
    for key in &keys {
        server.open(key, 0);
        server.left(key, Duration::ZERO);
        server.world.clock.advance(Duration::from_millis(1));
    }
    server.open(&key(), 0);
    assert_eq!(server.holders().matches("\"up\"").count(), 1 + 1023, "of the latest 1024, one is held again");
    server.world.clock.advance(GRACE + MINUTE * 61);
    server.left(&key(), Duration::ZERO);
    assert_eq!(server.holders().matches("\"up\"").count(), 1 + 1, "the others are over");
    assert_eq!(server.judged(), Silence::Waiting(GRACE));
}

#[test]
fn holding_more_costs_no_more() {
    let server = Server::new();
    server.open(&key(), 0);
    let one = server.holders().len();
    for nr in 0..100 {
        server.open(&EpisodeKey::new("generic", &format!("thread-{nr}")).unwrap(), 0);
    }
    assert_eq!(server.holders().len(), one);
    assert_eq!(server.judged(), Silence::Held);
}

#[test]
fn a_holder_of_the_earlier_version_holds_what_it_lists_and_nothing_else() {
    let server = Server::new();
    server.open(&key(), 0);
    let state = server.world.state();
    let path = server.world.disk.below(&state.join("holders")).remove(0);
    let hash = majordomus_records::state::key_hash(&key());
    for (holds, left, judged) in [
        (format!(r#","holds":["{hash}"]"#), "", Silence::Held),
        (r#","holds":[]"#.to_owned(), "", Silence::Waiting(GRACE)),
    ] {
        let now = r#""time":"2027-01-15T08:00:00.000Z","boot":"first","up":1000000"#;
        let mut file = server.world.disk.open(&path, majordomus_records::disk::Open::Existing).unwrap();
        file.overwrite(format!(r#"{{"v":1,{now}{holds}{left}}}"#).as_bytes()).unwrap();
        assert_eq!(server.judged(), judged, "{holds}");
    }
}

#[test]
fn what_has_ended_is_not_said_to_be_held_or_waited_for() {
    let server = Server::new();
    for left in [false, true] {
        server.open(&key(), 0);
        if left {
            server.left(&key(), Duration::ZERO);
        }
        // Somebody else ends it, and this process hears of that by its own end.
        server.world.process().store.close_by_operator(&key()).unwrap();
        assert_eq!(server.expire(GRACE, None).outcome, Outcome::Nothing);
        assert!(!server.holders().contains("left"), "{}", server.holders());
    }
}

#[test]
fn its_owner_ends_a_silent_episode_by_the_length_that_it_judged_although_it_lives() {
    let server = Server::new();
    server.open(&key(), 0);
    let silence = Judged { limit: HANDLE_IDLE, since_loss: None };
    server.world.clock.advance(HANDLE_IDLE - SECOND);
    let early = server.expire(HANDLE_IDLE - SECOND, Some(silence));
    assert_eq!(early.outcome, Outcome::NotOver(SECOND));
    assert_eq!(server.judged(), Silence::Held);
    server.world.clock.advance(SECOND);
    assert_eq!(server.expire(HANDLE_IDLE, Some(silence)).outcome, Outcome::Recorded);
    let (_, record) = &server.world.records()[0];
    assert_eq!(field(record, "end_witness"), "reaper");
    assert_eq!(field(record, "closed_at"), field(record, "started_at"), "at its last evidence");
}

#[test]
fn its_owner_ends_a_lost_episode_by_the_grace_since_the_loss() {
    let server = Server::new();
    server.open(&key(), 0);
    server.world.clock.advance(GRACE * 2);
    let lost = |ago| Judged { limit: GRACE, since_loss: Some(ago) };
    let early = server.expire(GRACE * 2, Some(lost(GRACE - SECOND)));
    assert_eq!(early.outcome, Outcome::NotOver(SECOND));
    server.world.clock.advance(SECOND);
    let report = server.expire(GRACE * 2 + SECOND, Some(lost(GRACE)));
    assert_eq!(report.outcome, Outcome::Recorded);
    assert_eq!(field(&server.world.records()[0].1, "end_reason"), "expired");
}

#[test]
fn evidence_that_others_saw_keeps_its_owner_from_ending_it() {
    let server = Server::new();
    server.open(&key(), 0);
    server.world.clock.advance(HANDLE_IDLE - MINUTE);
    let hook = server.world.process();
    hook.store.mark(&key(), Kind::Activity, majordomus_records::line::Witness::Hook, None, None).unwrap();
    server.world.clock.advance(MINUTE);
    let silence = Judged { limit: HANDLE_IDLE, since_loss: None };
    assert_eq!(server.expire(HANDLE_IDLE, Some(silence)).outcome, Outcome::NotOver(HANDLE_IDLE - MINUTE));
}

#[test]
fn a_quiet_episode_of_a_server_that_was_killed_waits_from_its_last_beat() {
    let server = Server::new();
    server.open(&key(), 0);
    server.world.clock.advance(HANDLE_IDLE - MINUTE);
    server.driver.beat();
    let Server { world, driver, .. } = server;
    drop(driver);
    world.clock.advance(GRACE - SECOND);
    let adoptable = world.process().store.adoptable().unwrap();
    assert_eq!(adoptable[0].1.silence, Silence::Waiting(SECOND));
    world.clock.advance(SECOND);
    assert!(matches!(world.process().expire().unwrap(), EndedAs::Ended { .. }));
    assert_eq!(world.logs().remove(0).end.unwrap().ended.judged_ms, Some(900_000));
}

/// One clock for the board and for the disk.
pub(crate) struct OneClock(pub(crate) Hand);

impl Awake for OneClock {
    fn now(&self) -> Moment {
        let stamp = self.0.now();
        Moment { awake: Duration::from_millis(stamp.up_ms), wall_ms: stamp.wall_ms }
    }
}

/// A board that records through the driver.
struct Whole {
    world: World,
    driver: Arc<RecordDriver>,
    board: EpisodeBoard,
    peers: PeerBoard,
}

impl Whole {
    fn new() -> Self {
        let world = World::new();
        let driver = Arc::new(RecordDriver::new(world.process().store).unwrap());
        let clock = Arc::new(OneClock(world.clock.clone()));
        let options = BoardOptions { driver: driver.clone(), clock, ..BoardOptions::default() };
        Self { world, driver, board: EpisodeBoard::with(options), peers: PeerBoard::new() }
    }

    fn attach(&self, transport: Transport) -> Peer {
        let peer = self.peers.attach(transport);
        let request = AttachRequest {
            peer: &peer,
            external_id: "thread-7",
            provider: "generic",
            client: None,
            handle: None,
            again: false,
            carrier: None,
        };
        assert!(self.board.attach_with(request).unwrap().recorded);
        peer
    }

    fn judged(&self) -> Silence {
        self.world.process().store.find(&key()).unwrap().expect("it is open").silence
    }
}

#[test]
fn only_what_was_still_held_is_counted_as_taken_over() {
    let whole = Whole::new();
    whole.attach(Transport::Http);
    whole.world.clock.advance(GRACE);
    whole.attach(Transport::Http);
    let log = whole.world.logs().remove(0);
    assert_eq!((log.attachments, log.take_overs), (2, 0), "nothing was heard for a while");
    let gone = whole.attach(Transport::Stdio);
    assert_eq!(whole.world.logs()[0].take_overs, 1);
    whole.board.detach(&gone);
    whole.attach(Transport::Http);
    let log = whole.world.logs().remove(0);
    assert_eq!((log.attachments, log.take_overs), (4, 1), "one that has left holds nothing");
    // Another process is judged by what it says, and it lives.
    whole.world.process().attach().unwrap();
    assert_eq!(whole.world.logs()[0].take_overs, 2);
}

#[test]
fn others_know_of_a_detach_of_a_loss_and_of_a_late_message() {
    let whole = Whole::new();
    let peer = whole.attach(Transport::Http);
    whole.board.hold(&peer);
    whole.world.clock.advance(GRACE * 2);
    whole.board.release(&peer);
    whole.world.clock.advance(MINUTE + SECOND * 29);
    whole.board.reap();
    assert_eq!(whole.judged(), Silence::Held, "one is patient with it");
    whole.world.clock.advance(SECOND);
    whole.board.reap();
    assert_eq!(whole.judged(), Silence::Waiting(GRACE - SECOND * 90));
    whole.board.touch(&peer);
    assert_eq!(whole.judged(), Silence::Held);
    whole.board.detach(&peer);
    whole.world.clock.advance(MINUTE);
    assert_eq!(whole.judged(), Silence::Waiting(GRACE - MINUTE));
    whole.world.clock.advance(GRACE - MINUTE);
    assert_eq!(whole.board.reap().len(), 1);
    let (_, record) = &whole.world.records()[0];
    assert_eq!((field(record, "end_reason"), field(record, "attachments")), ("expired", "1"));
}

#[test]
fn a_silent_caller_is_recorded_as_interrupted_after_a_day_and_not_before() {
    let whole = Whole::new();
    whole.attach(Transport::Handle);
    whole.world.clock.advance(HANDLE_IDLE - SECOND);
    assert!(whole.board.reap().is_empty());
    assert_eq!(whole.judged(), Silence::Held);
    whole.world.clock.advance(SECOND);
    assert_eq!(whole.board.reap().len(), 1);
    assert_eq!(field(&whole.world.records()[0].1, "outcome"), "interrupted");
}

#[test]
fn a_person_who_closes_an_episode_of_a_board_is_who_witnesses_it_and_a_shutdown_is_not_one() {
    let whole = Whole::new();
    whole.attach(Transport::Http);
    whole.board.close("thread-7", CloseReason::Detach).unwrap();
    let ended = |whole: &Whole, at: usize| {
        let (_, record) = &whole.world.records()[at];
        ["outcome", "end_reason", "end_witness"].map(|name| field(record, name).to_owned())
    };
    assert_eq!(ended(&whole, 0), ["closed", "detach", "operator"]);
    whole.world.clock.advance(MINUTE);
    whole.attach(Transport::Http);
    assert_eq!(whole.board.close_all(CloseReason::Shutdown).len(), 1);
    assert_eq!(ended(&whole, 1), ["interrupted", "shutdown", "shutdown"]);
    whole.world.clock.advance(MINUTE);
    let peer = whole.attach(Transport::Http);
    whole.board.finish(&peer, None, "generic").unwrap();
    assert_eq!(ended(&whole, 2), ["closed", "detach", "connection"]);
    whole.driver.leave();
}
