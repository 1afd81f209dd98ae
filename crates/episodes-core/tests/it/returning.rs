//! Connections that outlive a server: the next one gives them back what they held.

use majordomus_episodes_core::board::{
    Adopted, AttachRequest, Attached, BoardError, Closed, ConnectionEpisode, ConnectionEpisodeState, Touch,
};
use majordomus_episodes_core::driver::{CloseReason, Known, Outcome};
use majordomus_episodes_core::peers::{Peer, Transport};
use majordomus_episodes_core::{EpisodeKey, REATTACH_GRACE};

use crate::support::{Stage, seconds};

const OPENED: &str = "2025-12-31T22:00:00.000Z";

fn key() -> EpisodeKey {
    EpisodeKey::new("generic", "a").unwrap()
}

/// As a log tells it: two attachments, silent for 200 s, waiting for 20 s.
fn known() -> Adopted {
    Adopted {
        key: key(),
        opened_at: OPENED.into(),
        attachments: 2,
        silent_for: seconds(200),
        waiting_for: seconds(20),
        line: "found".into(),
    }
}

fn bridge(stage: &Stage) -> Peer {
    stage.peers.attach(Transport::Stdio)
}

fn restore(stage: &Stage, peer: &Peer) -> Result<Attached, BoardError> {
    stage.board.restore(peer, known(), "c")
}

/// One whose seat was given back, and the calls that took are looked at already.
fn restored() -> (Stage, Peer) {
    let stage = Stage::new();
    let peer = bridge(&stage);
    restore(&stage, &peer).unwrap();
    stage.script.asked();
    (stage, peer)
}

fn attach<'a>(peer: &'a Peer, carrier: Option<&'a str>) -> AttachRequest<'a> {
    AttachRequest { peer, external_id: "a", provider: "generic", client: None, handle: None, again: false, carrier }
}

fn only(stage: &Stage) -> ConnectionEpisode {
    let mut all = stage.board.list();
    assert_eq!(all.len(), 1);
    all.remove(0)
}

#[test]
fn a_connection_takes_its_seat_back_and_neither_counts_nor_shows_anything() {
    let stage = Stage::new();
    let peer = bridge(&stage);
    let attached = restore(&stage, &peer).unwrap();
    assert_eq!(stage.script.asked(), ["open generic a for p1 again by c, 200s ago"]);
    assert_eq!((attached.resumed, attached.recorded, attached.taken_over_from), (true, true, None));
    assert_eq!((attached.episode.opened_at.as_str(), attached.episode.attachments), (OPENED, 2));
    let shown = only(&stage);
    assert_eq!((shown.peer, shown.state), (Some(peer.id()), ConnectionEpisodeState::Open));
    assert_eq!((shown.last_activity_seconds_ago, shown.attachments), (200, 2));

    // Asked once more, and by an attach of its client's own.
    restore(&stage, &peer).unwrap();
    stage.wait(10);
    assert_eq!(only(&stage).last_activity_seconds_ago, 210);
    stage.board.attach_with(attach(&peer, Some("c"))).unwrap();
    assert_eq!((only(&stage).last_activity_seconds_ago, only(&stage).attachments), (0, 2));
    assert_eq!(stage.script.asked(), ["open generic a for p1 once more by c, 0ns ago"]);
}

#[test]
fn what_was_given_back_is_held_by_its_process_and_then_waits_a_whole_grace() {
    let (stage, peer) = restored();
    stage.wait(1_000_000);
    assert!(stage.board.reap().is_empty() && stage.script.asked().is_empty());
    assert_eq!(only(&stage).last_activity_seconds_ago, 1_000_200);
    stage.board.detach(&peer);
    assert_eq!(stage.script.asked(), ["left generic a by p1 0ns ago"], "there was no evidence");
    stage.clock.advance(REATTACH_GRACE - seconds(1));
    assert!(stage.board.reap().is_empty());
    stage.wait(1);
    let ended = stage.board.reap().remove(0);
    assert_eq!((ended.last_activity_seconds_ago, ended.attachments), (1_001_100, 2));
    // This process saw none, so the repository's own evidence counts.
    assert_eq!(stage.script.asked(), ["close generic a expired unseen, judged 900s, lost 900s ago"]);
}

#[test]
fn the_first_message_after_that_is_evidence_again() {
    let (stage, peer) = restored();
    stage.wait(5);
    assert_eq!(stage.board.touch(&peer), Touch::Held);
    assert_eq!(only(&stage).last_activity_seconds_ago, 0);
    stage.wait(60);
    stage.board.detach(&peer);
    assert_eq!(stage.script.asked(), ["seen generic a 60s ago", "left generic a by p1 0ns ago"]);
    stage.clock.advance(REATTACH_GRACE);
    stage.board.reap();
    assert_eq!(stage.script.asked(), ["close generic a expired 960s ago, judged 900s, lost 900s ago"]);

    let (stage, peer) = restored();
    stage.wait(5);
    stage.board.finish(&peer, None, "generic").unwrap();
    assert_eq!(stage.script.asked(), ["close generic a detach 0ns ago"]);

    let (stage, _) = restored();
    stage.board.close("a", CloseReason::Shutdown).unwrap();
    assert_eq!(stage.script.asked(), ["close generic a shutdown by operator unseen"]);
}

#[test]
fn a_seat_is_given_back_at_the_second_try_as_silently_as_at_the_first() {
    let stage = Stage::new();
    let peer = bridge(&stage);
    stage.script.answer("disk full", Outcome::Failed);
    assert!(!restore(&stage, &peer).unwrap().recorded);
    stage.wait(3);
    assert!(restore(&stage, &peer).unwrap().recorded);
    stage.script.answer("disk full", Outcome::Failed);
    let other = bridge(&stage);
    stage.board.restore(&other, Adopted { key: EpisodeKey::new("generic", "b").unwrap(), ..known() }, "d").unwrap();
    stage.wait(10);
    stage.board.reap();
    assert_eq!(
        stage.script.asked(),
        [
            "open generic a for p1 again by c, 200s ago",
            "open generic a for p1 again by c, 203s ago",
            "open generic b for p2 again by d, 200s ago",
            "open generic b for p2 again by d, 210s ago",
        ]
    );
    assert!(stage.board.list().iter().all(|episode| episode.attachments == 2));
}

#[test]
fn nobody_is_put_out_for_whom_comes_back() {
    // Somebody holds it; by a process, or heard not long ago.
    for transport in [Transport::Stdio, Transport::Http] {
        let stage = Stage::new();
        let (other, peer) = (stage.peers.attach(transport), bridge(&stage));
        stage.board.attach_with(attach(&other, None)).unwrap();
        let held = BoardError::HeldByOther { key: key(), peer: other.id() };
        assert_eq!(restore(&stage, &peer), Err(held));
        assert_eq!(stage.board.touch(&other), Touch::Held);
        assert_eq!(stage.script.asked(), ["open generic a for p1"]);
    }
    // Somebody else was here since, and is silent, or waits to come back.
    for leaves in [false, true] {
        let stage = Stage::new();
        let (other, peer) = (stage.peers.attach(Transport::Http), bridge(&stage));
        stage.board.attach_with(attach(&other, Some("d"))).unwrap();
        stage.clock.advance(if leaves { seconds(60) } else { REATTACH_GRACE });
        if leaves {
            stage.board.detach(&other);
        }
        assert_eq!(only(&stage).peer, None);
        stage.script.asked();
        assert_eq!(restore(&stage, &peer), Err(BoardError::NotFound { key: key() }));
        assert!(stage.script.asked().is_empty());
        assert_eq!(stage.board.touch(&other), if leaves { Touch::None } else { Touch::Held });
    }
}

#[test]
fn a_connection_that_was_here_itself_takes_its_seat_back_here_too() {
    let stage = Stage::new();
    let (before, peer) = (bridge(&stage), bridge(&stage));
    stage.board.attach_with(attach(&before, Some("c"))).unwrap();
    stage.wait(60);
    stage.board.detach(&before);
    stage.wait(60);
    let attached = restore(&stage, &peer).unwrap();
    assert_eq!((attached.episode.attachments, attached.episode.last_activity_seconds_ago), (1, 120));
    stage.board.detach(&peer);
    stage.clock.advance(REATTACH_GRACE);
    stage.board.reap();
    let close = "close generic a expired 1020s ago, judged 900s, lost 900s ago";
    assert_eq!(stage.script.asked().last().unwrap(), close, "of the first one this process did see something");

    // Also where the first one is only silent, and shown as gone.
    let stage = Stage::new();
    let (before, peer) = (stage.peers.attach(Transport::Http), bridge(&stage));
    stage.board.attach_with(attach(&before, Some("c"))).unwrap();
    stage.wait(60);
    stage.board.touch(&before);
    stage.clock.advance(REATTACH_GRACE);
    assert_eq!(restore(&stage, &peer).unwrap().episode.last_activity_seconds_ago, 900);
    assert_eq!(stage.board.touch(&before), Touch::Lost { by: Some(peer.id()) });
}

#[test]
fn what_the_repository_calls_gone_is_not_left_on_the_board() {
    let stage = Stage::new();
    let peer = bridge(&stage);
    stage.script.answer("somebody else has attached", Outcome::Gone);
    assert_eq!(restore(&stage, &peer), Err(BoardError::NotFound { key: key() }));
    assert!(stage.board.list().is_empty() && stage.board.of_peer(&peer).is_none());
    assert_eq!(stage.board.touch(&peer), Touch::None);
}

#[test]
fn what_is_over_by_the_boards_own_time_is_not_given_back() {
    let stage = Stage::new();
    let peer = bridge(&stage);
    let over = Adopted { waiting_for: REATTACH_GRACE, ..known() };
    assert_eq!(stage.board.restore(&peer, over, "c"), Err(BoardError::NotFound { key: key() }));
    assert_eq!(stage.script.asked(), ["close generic a expired unseen, judged 900s"]);
}

#[test]
fn what_the_repository_knows_of_it_is_what_is_shown() {
    let stage = Stage::new();
    let peer = bridge(&stage);
    let told = Known { opened_at: "2025-12-31T21:00:00.000Z".into(), attachments: Some(4), resumed: true };
    stage.script.answer_known("kept", told);
    let episode = restore(&stage, &peer).unwrap().episode;
    assert_eq!((episode.opened_at.as_str(), episode.attachments), ("2025-12-31T21:00:00.000Z", 4));
}

fn ended() -> Closed {
    let episode = ConnectionEpisode {
        external_id: "a".into(),
        provider: "generic".into(),
        peer: None,
        opened_at: OPENED.into(),
        last_activity_seconds_ago: 0,
        attachments: 2,
        state: ConnectionEpisodeState::Detached,
        repository: "episode closed (closed, reason detach) into a.md".into(),
    };
    Closed { episode, recorded: true }
}

#[test]
fn a_detach_that_an_earlier_server_could_not_answer_is_answered_by_the_next() {
    let stage = Stage::new();
    let (peer, other) = (bridge(&stage), bridge(&stage));
    stage.board.recall(&peer, ended());
    for id in [None, Some("a")] {
        assert_eq!(stage.board.finish(&peer, id, "generic"), Ok(ended()));
    }
    assert_eq!(stage.board.finish(&other, Some("a"), "generic"), Err(BoardError::NotFound { key: key() }));
    let b = EpisodeKey::new("generic", "b").unwrap();
    assert_eq!(stage.board.finish(&peer, Some("b"), "generic"), Err(BoardError::NotFound { key: b }));
    assert!(stage.script.asked().is_empty());

    // Until it attaches again: then that is what a detach is about.
    stage.board.attach_with(attach(&peer, Some("c"))).unwrap();
    assert_ne!(stage.board.finish(&peer, None, "generic").unwrap(), ended());
    stage.board.recall(&peer, ended());
    stage.board.detach(&peer);
    assert_eq!(stage.board.finish(&peer, None, "generic"), Err(BoardError::NotHeld));
}
