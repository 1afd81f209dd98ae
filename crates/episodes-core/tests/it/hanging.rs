//! Drivers that take their time: nobody else waits, and what comes late still counts.

use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use majordomus_episodes_core::board::{AttachRequest, Attached, BoardError, BoardOptions, Limits, Touch};
use majordomus_episodes_core::clock::{Clock, ManualClock};
use majordomus_episodes_core::driver::{Closing, EpisodeDriver, Opening, Outcome, Report};
use majordomus_episodes_core::peers::{Peer, PeerBoard, Transport};
use majordomus_episodes_core::{CloseReason, ConnectionEpisodeState, EpisodeBoard};

use crate::support::{Hanging, Held, LONG, Threads, seconds, start};

struct Scene {
    clock: Arc<ManualClock>,
    peers: PeerBoard,
    board: EpisodeBoard,
    arrived: Receiver<Held>,
}

/// A board whose callers wait `driver_time` of real time for a driver that hangs until it is let go.
fn scene(driver_time: Duration) -> Scene {
    let clock = Arc::new(ManualClock::default());
    let (driver, arrived) = Hanging::new();
    let board = EpisodeBoard::with(BoardOptions {
        driver,
        clock: Arc::clone(&clock) as _,
        limits: Limits { driver_time, ..Limits::default() },
        run: Arc::new(Threads),
    });
    Scene { peers: PeerBoard::new(), clock, board, arrived }
}

impl Scene {
    fn next(&self) -> Held {
        self.arrived.recv_timeout(LONG).expect("a call reaches the driver")
    }

    fn peer(&self) -> Peer {
        self.peers.attach(Transport::Http)
    }

    /// Opens an episode while the driver answers at once.
    fn opened(&self, id: &'static str) -> Peer {
        self.opened_by(self.peer(), id)
    }

    fn opened_by(&self, peer: Peer, id: &'static str) -> Peer {
        let attaching = start({
            let (board, peer) = (self.board.clone(), peer.clone());
            move || attach(&board, &peer, id)
        });
        self.next().answer("opened", Outcome::Recorded);
        // With a short limit the caller may have given up before the answer came; that is as good.
        let _answer = attaching.join().unwrap();
        assert!(self.board.settle(LONG));
        peer
    }

    /// Detaches the peer while the driver answers at once.
    fn left(&self, peer: &Peer) {
        self.board.detach(peer);
        self.next().answer("", Outcome::Recorded);
        assert!(self.board.settle(LONG));
    }
}

fn attach(board: &EpisodeBoard, peer: &Peer, id: &str) -> Result<Attached, BoardError> {
    board.attach_with(AttachRequest {
        peer,
        external_id: id,
        provider: "generic",
        client: None,
        handle: None,
        again: false,
        carrier: None,
    })
}

fn why(error: BoardError) -> String {
    assert!(matches!(error, BoardError::Unavailable { .. }), "expected unavailable, got {error:?}");
    error.to_string()
}

#[test]
fn no_clients_call_waits_for_another_clients_disk() {
    let scene = scene(LONG);
    let (slow, quick) = (scene.peer(), scene.peer());
    let attaching = start({
        let (board, slow) = (scene.board.clone(), slow.clone());
        move || attach(&board, &slow, "slow")
    });
    let held = scene.next();

    // Everything below returns while the first call hangs.
    assert_eq!(scene.board.touch(&slow), Touch::Held);
    assert_eq!(scene.board.list()[0].repository, "the repository has not answered yet");
    assert!(scene.board.reap().is_empty());
    let other = start({
        let (board, quick) = (scene.board.clone(), quick.clone());
        move || attach(&board, &quick, "quick")
    });
    let second = scene.next();
    assert_eq!(second.asked, "open generic quick");
    second.answer("opened quick", Outcome::Recorded);
    assert!(other.join().unwrap().unwrap().recorded);
    assert_eq!(scene.board.detach(&slow).unwrap().state, ConnectionEpisodeState::Detached);

    held.answer("opened slow", Outcome::Recorded);
    let attached = attaching.join().unwrap().unwrap();
    assert_eq!(attached.episode.state, ConnectionEpisodeState::Detached, "it was detached meanwhile");
    assert_eq!(attached.episode.repository, "opened slow");
}

#[test]
fn a_driver_beyond_its_limit_answers_its_caller_and_its_late_result_counts() {
    let scene = scene(Duration::from_millis(1));
    let peer = scene.peer();
    let (episode, resumed) = scene.board.attach(&peer, "a", "generic");
    assert_eq!((episode.peer, episode.attachments, resumed), (Some(peer.id()), 1, false));
    assert!(episode.repository.contains("has not answered within 1ms"), "{}", episode.repository);

    // The key keeps its place: the same call waits its turn, in vain.
    assert!(why(attach(&scene.board, &peer, "a").unwrap_err()).contains("another call for generic a"));
    assert!(why(scene.board.finish(&peer, None, "generic").unwrap_err()).contains("another call"));
    assert!(why(scene.board.close("a", CloseReason::Detach).unwrap_err()).contains("another call"));
    let other = scene.peer();
    assert!(why(attach(&scene.board, &other, "a").unwrap_err()).contains("another call"));
    assert_eq!(scene.board.of_peer(&other), None);

    scene.next().answer("opened late", Outcome::Recorded);
    assert!(scene.board.settle(LONG));
    let shown = scene.board.list().remove(0);
    assert_eq!((shown.repository.as_str(), shown.attachments), ("opened late", 1));
    // Nor is it said to be recorded as ever where the repository does not say so.
    assert!(why(attach(&scene.board, &peer, "a").unwrap_err()).contains("has not answered"));
    scene.next().answer("", Outcome::Unchanged);
    assert!(scene.board.settle(LONG));
    let shown = scene.board.list().remove(0);
    assert_eq!((shown.repository.as_str(), shown.attachments), ("opened late", 1));

    // The same for an end.
    assert!(why(scene.board.finish(&peer, None, "generic").unwrap_err()).contains("has not answered"));
    assert_eq!(scene.board.list()[0].state, ConnectionEpisodeState::Detached);
    scene.next().answer("closed late", Outcome::Recorded);
    assert!(scene.board.settle(LONG));
    assert!(scene.board.list().is_empty());
    assert_eq!(scene.board.finish(&peer, None, "generic").unwrap().episode.repository, "closed late");
}

#[test]
fn the_seventeenth_call_is_refused_at_once() {
    let scene = scene(LONG);
    let callers: Vec<_> = (0..16)
        .map(|number| {
            let (board, peer) = (scene.board.clone(), scene.peer());
            start(move || attach(&board, &peer, &format!("thread-{number}")))
        })
        .collect();
    let held: Vec<Held> = (0..16).map(|_| scene.next()).collect();

    // Were it to wait, this test would wait in vain and fail.
    let peer = scene.peer();
    assert!(why(attach(&scene.board, &peer, "late").unwrap_err()).contains("too many calls"));
    assert_eq!(scene.board.of_peer(&peer), None, "it is recorded for nobody later");
    assert!(!scene.board.settle(Duration::ZERO));

    for call in held {
        call.answer("opened", Outcome::Recorded);
    }
    for caller in callers {
        assert!(caller.join().unwrap().unwrap().recorded);
    }
    scene.clock.advance(seconds(10));
    assert!(scene.board.reap().is_empty());
    assert_eq!(scene.board.list().len(), 16);
}

#[test]
fn a_detach_waits_for_nobody_even_if_it_has_something_to_tell() {
    let scene = scene(LONG);
    let peer = scene.opened("a");
    scene.clock.advance(seconds(5));
    scene.board.touch(&peer);
    assert!(scene.board.detach(&peer).is_some());
    for asked in ["seen generic a", "left generic a"] {
        let told = scene.next();
        assert_eq!(told.asked, asked);
        assert!(!scene.board.settle(Duration::ZERO));
        told.answer("", Outcome::Recorded);
    }
    assert!(scene.board.settle(LONG));
}

#[test]
fn a_client_that_comes_back_waits_until_its_departure_is_told() {
    let scene = scene(LONG);
    let peer = scene.opened("a");
    scene.board.detach(&peer);
    let leaving = scene.next();
    let attaching = start({
        let (board, peer) = (scene.board.clone(), scene.peer());
        move || attach(&board, &peer, "a")
    });
    // One call at a time runs for a key: were the opening told before the departure, the repository would take the
    // episode for one that nobody holds.
    assert!(scene.arrived.recv_timeout(Duration::from_millis(20)).is_err());
    leaving.answer("", Outcome::Recorded);
    let opening = scene.next();
    assert_eq!(opening.asked, "open generic a");
    opening.answer("opened", Outcome::Recorded);
    assert_eq!(attaching.join().unwrap().unwrap().episode.attachments, 2);
}

#[test]
fn a_late_message_waits_for_no_driver_and_is_told_once_the_departure_has_been() {
    let scene = scene(LONG);
    let peer = scene.opened("a");
    scene.board.hold(&peer);
    scene.board.touch(&peer);
    scene.board.release(&peer);
    scene.clock.advance(seconds(90));
    // Nobody waits for what is told.
    assert!(scene.board.reap().is_empty());
    scene.next().answer("", Outcome::Recorded);
    assert!(scene.board.settle(LONG));
    assert!(scene.board.reap().is_empty());
    let leaving = scene.next();
    assert_eq!(leaving.asked, "left generic a");
    assert_eq!(scene.board.of_peer(&peer).unwrap().state, ConnectionEpisodeState::Detached);

    assert_eq!(scene.board.touch(&peer), Touch::Held);
    assert_eq!(scene.board.of_peer(&peer).unwrap().state, ConnectionEpisodeState::Open);
    leaving.answer("", Outcome::Recorded);
    assert!(scene.board.settle(LONG));
    assert!(scene.board.next_due().unwrap() <= scene.clock.now().awake, "at once");
    assert!(scene.board.reap().is_empty());
    let seen = scene.next();
    assert_eq!(seen.asked, "seen generic a");
    seen.answer("", Outcome::Recorded);
}

#[test]
fn many_expiries_run_side_by_side_and_leave_room_for_clients() {
    let scene = scene(LONG);
    let ids = ["a", "b", "c", "d", "e", "f"];
    for id in ids {
        let peer = scene.opened(id);
        scene.left(&peer);
    }
    scene.clock.advance(seconds(900));
    let reaping = start({
        let board = scene.board.clone();
        move || board.reap()
    });
    let mut held: Vec<Held> = (0..4).map(|_| scene.next()).collect();
    let peer = scene.peer();
    let attaching = start({
        let (board, peer) = (scene.board.clone(), peer.clone());
        move || attach(&board, &peer, "client")
    });
    let client = scene.next();
    assert_eq!(client.asked, "open generic client");
    client.answer("opened", Outcome::Recorded);
    assert!(attaching.join().unwrap().unwrap().recorded);

    held.pop().unwrap().answer("closed", Outcome::Recorded);
    held.push(scene.next());
    held.pop().unwrap().answer("closed", Outcome::Recorded);
    held.push(scene.next());
    for call in held {
        call.answer("closed", Outcome::Recorded);
    }
    let mut ended: Vec<String> = reaping.join().unwrap().into_iter().map(|episode| episode.external_id).collect();
    ended.sort();
    assert_eq!(ended, ids);
}

#[test]
fn a_sweep_does_not_wait_for_a_driver_beyond_its_limit() {
    let scene = scene(Duration::from_millis(1));
    let peer = scene.opened("a");
    scene.left(&peer);
    scene.clock.advance(seconds(900));
    assert!(scene.board.reap().is_empty());
    assert!(scene.board.close_all(CloseReason::Shutdown).is_empty());
    let held = scene.next();
    assert_eq!(held.asked, "close generic a expired");
    held.answer("closed", Outcome::Recorded);
    assert!(scene.board.settle(LONG));
    assert!(scene.board.list().is_empty());
}

#[test]
fn a_driver_that_panics_frees_its_key() {
    let scene = scene(LONG);
    let peer = scene.peer();
    let attaching = start({
        let (board, peer) = (scene.board.clone(), peer.clone());
        move || attach(&board, &peer, "a")
    });
    scene.next().panic();
    let attached = attaching.join().unwrap().unwrap();
    assert!(!attached.recorded);
    assert_eq!(attached.episode.repository, "no episode was recorded: the driver panicked");
    assert!(scene.board.settle(Duration::ZERO));
}

#[test]
fn a_driver_that_panics_on_its_callers_thread_frees_its_key() {
    struct Panics;
    impl EpisodeDriver for Panics {
        fn open(&self, _: &Opening) -> Report {
            panic!("the test lets this driver panic")
        }
        fn close(&self, _: &Closing) -> Report {
            crate::support::report("closed", Outcome::Recorded)
        }
    }
    let peers = PeerBoard::new();
    let peer = peers.attach(Transport::Stdio);
    let board = EpisodeBoard::with(BoardOptions { driver: Arc::new(Panics), ..BoardOptions::default() });
    let attaching = start({
        let (board, peer) = (board.clone(), peer.clone());
        move || attach(&board, &peer, "a")
    });
    assert!(attaching.join().is_err());
    assert_eq!(board.list()[0].repository, "no episode was recorded: the driver panicked");
    assert!(board.finish(&peer, None, "generic").unwrap().recorded);
}
