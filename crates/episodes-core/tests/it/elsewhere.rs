//! An episode that has come to be another process's: the driver finds that, and the board says no more of it.

use std::sync::Arc;

use majordomus_episodes_core::board::{Adopted, AttachRequest, Attached, BoardError, BoardOptions, Limits, Touch};
use majordomus_episodes_core::driver::{Known, Outcome};
use majordomus_episodes_core::peers::{Peer, PeerBoard, Transport};
use majordomus_episodes_core::{CloseReason, ConnectionEpisodeState, EpisodeBoard, EpisodeKey};

use crate::support::{Hanging, LONG, Stage, Threads, seconds, start};

const GRACE: u64 = 900;

fn key(external_id: &str) -> EpisodeKey {
    EpisodeKey::new("generic", external_id).unwrap()
}

fn attach(board: &EpisodeBoard, peer: &Peer, external_id: &str) -> Result<Attached, BoardError> {
    let (client, handle, carrier) = (None, None, None);
    board.attach_with(AttachRequest { peer, external_id, provider: "generic", client, handle, again: false, carrier })
}

/// A board with one that `a` was attached for, and the calls that took are looked at already.
fn attached(transport: Transport) -> (Stage, Peer) {
    let stage = Stage::new();
    let peer = stage.peers.attach(transport);
    attach(&stage.board, &peer, "a").unwrap();
    stage.script.asked();
    (stage, peer)
}

#[test]
fn who_lost_its_episode_to_another_process_is_told_and_may_attach_again() {
    let (stage, peer) = attached(Transport::Stdio);
    stage.script.take_away(key("a"));
    assert_eq!(stage.board.touch(&peer), Touch::Held, "nobody has asked yet");
    stage.wait(30);
    assert!(stage.board.reap().is_empty(), "it has not ended");
    assert_eq!(stage.script.asked(), ["seen generic a 30s ago"]);
    assert!(stage.board.list().is_empty());
    assert_eq!(stage.board.of_peer(&peer), None);
    assert_eq!(stage.board.next_due(), None);
    assert_eq!(stage.board.touch(&peer), Touch::Lost { by: None });
    assert_eq!(stage.board.touch(&peer), Touch::None, "said once");
    assert_eq!(stage.board.finish(&peer, None, "generic"), Err(BoardError::NotHeld));

    let known = Known { opened_at: "2025-12-31T23:00:00.000Z".into(), attachments: Some(3), resumed: true };
    stage.script.answer_known("taken back", known);
    let again = attach(&stage.board, &peer, "a").unwrap();
    assert_eq!((again.resumed, again.episode.attachments, again.ended), (true, 3, None));
    assert_eq!(stage.script.asked(), ["open generic a for p1"]);
}

#[test]
fn what_nobody_sits_at_leaves_the_board_once_another_process_has_it() {
    let (stage, peer) = attached(Transport::Http);
    stage.script.take_away(key("a"));
    stage.board.touch(&peer);
    assert!(stage.board.detach(&peer).is_some());
    assert_eq!(stage.script.asked(), ["seen generic a 0ns ago"], "that it has left is nobody's concern");
    assert!(stage.board.list().is_empty());

    // Also what is left for another one, which stays.
    let (stage, peer) = attached(Transport::Http);
    stage.script.take_away(key("a"));
    let second = attach(&stage.board, &peer, "b").unwrap();
    assert_eq!(second.left.map(|left| left.external_id).as_deref(), Some("a"));
    assert_eq!(stage.script.asked(), ["left generic a by p1 0ns ago", "open generic b for p1"]);
    let all = stage.board.list();
    assert_eq!((all.len(), all[0].external_id.as_str(), all[0].peer), (1, "b", Some(peer.id())));
    assert_eq!(stage.board.touch(&peer), Touch::Held);
    stage.wait(GRACE * 2);
    assert!(stage.board.reap().is_empty(), "nor is it judged");
}

#[test]
fn who_attaches_while_the_driver_looks_is_not_put_out_by_what_it_finds() {
    let (driver, calls) = Hanging::new();
    let options =
        BoardOptions { driver, limits: Limits { driver_time: LONG, ..Limits::default() }, ..BoardOptions::default() };
    let board = EpisodeBoard::with(BoardOptions { run: Arc::new(Threads), ..options });
    let peers = PeerBoard::new();
    let next = || calls.recv_timeout(LONG).expect("the driver is asked");
    let attaching = |peer: &Peer| {
        let (board, peer) = (board.clone(), peer.clone());
        start(move || attach(&board, &peer, "a").unwrap())
    };
    let first = peers.attach(Transport::Stdio);
    let opened = attaching(&first);
    next().answer("opened", Outcome::Recorded);
    opened.join().unwrap();

    board.detach(&first);
    let left = next();
    assert_eq!(left.asked, "left generic a");
    let second = peers.attach(Transport::Stdio);
    let opened = attaching(&second);
    left.answer("", Outcome::Gone);
    let open = next();
    assert_eq!(open.asked, "open generic a");
    open.answer("taken over", Outcome::Recorded);
    let attached = opened.join().unwrap();
    assert!(board.settle(LONG));
    assert_eq!((attached.episode.peer, attached.episode.repository.as_str()), (Some(second.id()), "taken over"));
    assert_eq!(board.touch(&second), Touch::Held);
    assert_eq!(board.list().len(), 1);
}

#[test]
fn who_asks_once_more_takes_back_what_another_process_took_meanwhile() {
    let (stage, peer) = attached(Transport::Stdio);
    let known = |attachments| Known { opened_at: "2025-12-31T23:00:00.000Z".into(), attachments, resumed: true };
    stage.script.answer_known("taken over", known(Some(3)));
    let again = attach(&stage.board, &peer, "a").unwrap();
    assert_eq!((again.resumed, again.recorded, again.taken_over_from), (true, true, None));
    assert_eq!((again.episode.attachments, again.episode.repository.as_str()), (3, "taken over"));
    // That is what a further one is answered by.
    assert_eq!(attach(&stage.board, &peer, "a").unwrap(), again);
    let asked = stage.script.asked();
    assert_eq!(asked, ["open generic a for p1 once more", "open generic a for p1 once more"]);

    // What could not be looked at is not said to be recorded, and tried again.
    stage.script.answer("cannot read it", Outcome::Failed);
    let failed = attach(&stage.board, &peer, "a").unwrap();
    assert_eq!((failed.recorded, failed.episode.repository.as_str()), (false, "cannot read it"));
    stage.wait(10);
    stage.board.reap();
    assert!(attach(&stage.board, &peer, "a").unwrap().recorded);
}

#[test]
fn what_has_expired_here_and_is_held_elsewhere_leaves_without_an_end() {
    let expired = || {
        let (stage, peer) = attached(Transport::Http);
        stage.board.detach(&peer);
        stage.wait(GRACE);
        stage.script.asked();
        stage.script.answer("another connection holds it", Outcome::Gone);
        (stage, peer)
    };
    let (stage, _) = expired();
    assert!(stage.board.reap().is_empty());
    assert!(stage.board.list().is_empty());

    let (stage, _) = expired();
    let not_found = BoardError::NotFound { key: key("a") };
    assert_eq!(stage.board.close("a", CloseReason::Detach), Err(not_found.clone()));

    let (stage, peer) = expired();
    assert_eq!(stage.board.finish(&peer, Some("a"), "generic"), Err(not_found.clone()));
    assert_eq!(stage.board.finish(&peer, Some("a"), "generic"), Err(not_found), "and no answer is kept for it");

    let (stage, peer) = expired();
    let again = attach(&stage.board, &peer, "a").unwrap();
    assert_eq!((again.ended, again.recorded), (None, true));
    assert_eq!(stage.script.asked().last().unwrap(), "open generic a for p1");

    let (stage, _) = expired();
    assert!(stage.board.close_all(CloseReason::Shutdown).is_empty());
    assert!(stage.board.list().is_empty());
}

fn adopted(external_id: &str) -> Adopted {
    Adopted {
        key: key(external_id),
        opened_at: "2025-12-31T22:00:00.000Z".into(),
        attachments: 2,
        silent_for: seconds(200),
        waiting_for: seconds(100),
        line: "found".into(),
    }
}

#[test]
fn after_a_gap_the_driver_is_asked_of_all_that_waits_and_told_how_long_it_has_waited() {
    let stage = Stage::new();
    let [first, silent, lost] = [Transport::Stdio, Transport::Http, Transport::Http].map(|by| stage.peers.attach(by));
    attach(&stage.board, &first, "a").unwrap();
    stage.board.detach(&first);
    attach(&stage.board, &first, "held").unwrap();
    attach(&stage.board, &silent, "silent").unwrap();
    stage.board.hold(&lost);
    attach(&stage.board, &lost, "lost").unwrap();
    stage.board.release(&lost);
    stage.board.adopt(adopted("b"));
    stage.board.adopt(adopted("c"));
    stage.wait(90);
    stage.board.reap();
    stage.script.asked();

    // Stopped for twenty minutes.
    stage.wait(1200);
    stage.board.excuse(seconds(1200));
    for external_id in ["a", "c"] {
        stage.script.take_away(key(external_id));
    }
    assert!(stage.board.reap().is_empty());
    let mut asked = stage.script.asked();
    asked.sort();
    assert_eq!(
        asked,
        [
            "left generic a by p1 90s ago",
            "left generic lost by p3 90s ago",
            "seen generic b 1490s ago for nobody",
            "seen generic c 1490s ago for nobody",
        ],
    );
    let mut names: Vec<_> = stage.board.list().into_iter().map(|episode| episode.external_id).collect();
    names.sort();
    assert_eq!(names, ["b", "held", "lost", "silent"]);
    // Each has its whole rest yet.
    stage.wait(GRACE - 100 - 90 - 1);
    assert!(stage.board.reap().is_empty());
    stage.wait(1);
    assert_eq!(stage.board.reap()[0].external_id, "b");
    stage.wait(99);
    assert!(stage.board.reap().is_empty());
    stage.wait(1);
    assert_eq!(stage.board.reap()[0].external_id, "lost");
    let asked = stage.script.asked();
    assert_eq!(asked.last().unwrap(), "close generic lost expired 2100s ago, judged 900s, lost 900s ago");
    assert_eq!(stage.board.list()[0].state, ConnectionEpisodeState::Open);
}

#[test]
fn what_is_tried_again_says_how_long_ago_it_was_first_asked_for() {
    let stage = Stage::new();
    let peer = stage.peers.attach(Transport::Stdio);
    stage.script.answer("disk full", Outcome::Failed);
    assert!(!attach(&stage.board, &peer, "a").unwrap().recorded);
    stage.wait(4);
    stage.board.touch(&peer);
    stage.wait(6);
    stage.script.answer("disk full", Outcome::Failed);
    stage.board.reap();
    // Its client asks itself: that is another time.
    stage.wait(3);
    stage.script.answer("disk full", Outcome::Failed);
    attach(&stage.board, &peer, "a").unwrap();
    stage.wait(10);
    stage.board.reap();
    assert_eq!(stage.script.asked(), ["open generic a for p1"; 4]);
    assert_eq!(stage.script.asked_ago(), [0, 10, 0, 10]);

    // An end is that of what there was when it was first asked for, whoever asks for it again.
    for _ in 0..3 {
        stage.script.answer("disk full", Outcome::Failed);
    }
    assert!(stage.board.close("a", CloseReason::Detach).is_err());
    stage.wait(10);
    stage.board.reap();
    stage.wait(5);
    assert!(stage.board.close("a", CloseReason::Detach).is_err());
    stage.wait(10);
    stage.board.reap();
    assert_eq!(stage.script.asked_ago(), [0, 10, 15, 25]);
}

#[test]
fn who_loses_its_seat_when_its_opening_is_tried_again_is_told_and_may_attach_anew() {
    let stage = Stage::new();
    let peer = stage.peers.attach(Transport::Stdio);
    stage.script.answer("disk full", Outcome::Failed);
    assert!(!attach(&stage.board, &peer, "a").unwrap().recorded);
    stage.wait(10);
    stage.script.answer("somebody else has attached since", Outcome::Gone);
    assert!(stage.board.reap().is_empty(), "it has not ended");
    assert!(stage.board.list().is_empty());
    assert_eq!((stage.board.of_peer(&peer), stage.board.next_due()), (None, None));
    assert_eq!(stage.board.touch(&peer), Touch::Lost { by: None });
    assert_eq!(stage.board.touch(&peer), Touch::None, "said once");
    stage.script.asked();
    assert!(attach(&stage.board, &peer, "a").unwrap().recorded);
    assert_eq!(stage.script.asked(), ["open generic a for p1"]);
}
