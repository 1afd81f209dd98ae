//! The design's invariants, as far as the board can keep them, and its rules one by one.

use majordomus_episodes_core::board::{Adopted, AttachRequest, Attached, BoardError, Touch};
use majordomus_episodes_core::driver::{Known, Outcome};
use majordomus_episodes_core::peers::{Peer, Transport};
use majordomus_episodes_core::{CloseReason, ConnectionEpisodeState, EpisodeKey, REATTACH_GRACE};

use crate::support::{Stage, seconds};

const GRACE: u64 = 900;

impl Stage {
    /// A process, which holds what it attached for.
    fn peer(&self) -> Peer {
        self.peers.attach(Transport::Stdio)
    }

    fn attach(&self, peer: &Peer, external_id: &str) -> Result<Attached, BoardError> {
        let request = AttachRequest {
            peer,
            external_id,
            provider: "generic",
            client: None,
            handle: None,
            again: false,
            carrier: None,
        };
        self.board.attach_with(request)
    }

    fn states(&self) -> Vec<(String, ConnectionEpisodeState)> {
        self.board.list().into_iter().map(|episode| (episode.external_id, episode.state)).collect()
    }
}

fn key(external_id: &str) -> EpisodeKey {
    EpisodeKey::new("generic", external_id).unwrap()
}

#[test]
fn a_peer_holds_zero_or_one_episode() {
    let stage = Stage::new();
    let peer = stage.peer();
    assert_eq!(stage.board.touch(&peer), Touch::None);
    assert!(stage.board.list().is_empty(), "a connection alone opens nothing");
    assert!(stage.script.asked().is_empty());

    stage.attach(&peer, "a").unwrap();
    let second = stage.attach(&peer, "b").unwrap();
    let left = second.left.expect("the first one was left");
    assert_eq!((left.external_id.as_str(), left.state), ("a", ConnectionEpisodeState::Detached));
    assert_eq!(stage.board.of_peer(&peer).unwrap().external_id, "b");
    let (open, detached) = (ConnectionEpisodeState::Open, ConnectionEpisodeState::Detached);
    assert_eq!(stage.states(), [("b".into(), open), ("a".into(), detached)]);

    stage.wait(GRACE);
    let expired = stage.board.reap();
    assert_eq!(expired.len(), 1, "the grace of what was left began when it was left");
    assert_eq!(expired[0].external_id, "a");
}

#[test]
fn a_client_that_comes_back_under_its_external_id_gets_its_own_episode() {
    let stage = Stage::new();
    let first = stage.peer();
    let opened = stage.attach(&first, "a").unwrap();
    assert!(opened.recorded && !opened.resumed);
    stage.wait(10);
    stage.board.detach(&first);
    stage.wait(GRACE - 1);

    let second = stage.peer();
    let again = stage.attach(&second, "a").unwrap();
    assert!(again.recorded && again.resumed);
    assert_eq!(again.episode.opened_at, opened.episode.opened_at);
    assert_eq!((again.episode.attachments, again.episode.peer), (2, Some(second.id())));
    assert_eq!(
        stage.script.asked(),
        ["open generic a for p1", "left generic a by p1 0ns ago", "open generic a for p2"]
    );
    assert_eq!(stage.board.list().len(), 1);
}

#[test]
fn a_client_that_comes_back_after_the_server_died_gets_its_own_episode() {
    let stage = Stage::new();
    let known = Known { opened_at: "2025-12-31T23:00:00.000Z".into(), attachments: Some(4), resumed: true };
    stage.script.answer_known("kept", known);
    let attached = stage.attach(&stage.peer(), "a").unwrap();
    assert!(attached.resumed && attached.recorded);
    assert_eq!(attached.episode.opened_at, "2025-12-31T23:00:00.000Z");
    assert_eq!((attached.episode.attachments, attached.episode.repository.as_str()), (4, "kept"));

    stage.board.adopt(Adopted {
        key: key("b"),
        opened_at: "2025-12-31T22:00:00.000Z".into(),
        attachments: 2,
        silent_for: seconds(30),
        waiting_for: seconds(20),
        line: "found".into(),
    });
    let adopted = stage.attach(&stage.peer(), "b").unwrap();
    assert!(adopted.resumed);
    assert_eq!((adopted.episode.opened_at.as_str(), adopted.episode.attachments), ("2025-12-31T22:00:00.000Z", 3));
}

#[test]
fn a_lost_connection_detaches_and_never_closes() {
    let stage = Stage::new();
    let peer = stage.peer();
    stage.attach(&peer, "a").unwrap();
    stage.script.asked();
    let left = stage.board.detach(&peer).expect("it held one");
    assert_eq!((left.state, left.peer), (ConnectionEpisodeState::Detached, None));
    assert_eq!(stage.script.asked(), ["left generic a by p1 0ns ago"], "nothing else happened since it was opened");
    assert_eq!(stage.board.detach(&peer), None);
    assert_eq!(stage.board.touch(&peer), Touch::None);
    stage.wait(GRACE - 1);
    assert!(stage.board.reap().is_empty());
    assert_eq!(stage.board.list().len(), 1);
}

#[test]
fn an_episode_that_is_held_is_never_expired() {
    let stage = Stage::new();
    let peer = stage.peer();
    stage.attach(&peer, "a").unwrap();
    stage.wait(100 * GRACE);
    assert!(stage.board.reap().is_empty());
    assert_eq!(stage.board.next_due(), None);

    // Nor one that was taken again after its deadline had been noted.
    stage.board.detach(&peer);
    let due = stage.board.next_due();
    assert!(due.is_some());
    stage.wait(GRACE - 1);
    stage.attach(&peer, "a").unwrap();
    stage.wait(1);
    assert!(stage.board.reap().is_empty());
    assert_eq!(stage.board.of_peer(&peer).unwrap().attachments, 2);
}

#[test]
fn an_interrupted_episode_ends_at_its_last_evidence() {
    let stage = Stage::new();
    let peer = stage.peer();
    stage.attach(&peer, "a").unwrap();
    stage.wait(50);
    stage.board.touch(&peer);
    stage.wait(5);
    stage.board.detach(&peer);
    assert_eq!(stage.script.asked()[1..], ["seen generic a 5s ago", "left generic a by p1 0ns ago"]);
    stage.wait(3 * GRACE);
    assert_eq!(stage.board.reap().len(), 1);
    assert_eq!(stage.script.asked(), ["close generic a expired 2705s ago, judged 900s, lost 2700s ago"]);
}

#[test]
fn no_duration_is_negative_whatever_the_wall_clock_does() {
    let stage = Stage::new();
    let peer = stage.peer();
    let opened = stage.attach(&peer, "a").unwrap();
    stage.wait(7);
    for jump in [8 * 3_600_000, -20 * 3_600_000, i64::MIN, i64::MAX] {
        stage.clock.jump_wall(jump);
        let episode = stage.board.of_peer(&peer).unwrap();
        assert_eq!(episode.last_activity_seconds_ago, 7);
        assert_eq!(episode.opened_at, opened.episode.opened_at);
        assert!(stage.board.reap().is_empty());
    }
    stage.board.detach(&peer);
    stage.clock.jump_wall(i64::MAX);
    assert!(stage.board.reap().is_empty(), "a wall clock expires nothing");
}

#[test]
fn attaching_again_to_what_one_holds_changes_nothing() {
    let stage = Stage::new();
    let peer = stage.peer();
    let first = stage.attach(&peer, "a").unwrap();
    stage.wait(3);
    let again = stage.attach(&peer, "a").unwrap();
    assert_eq!(again, first, "the answer to a repeated call is the first one");
    assert_eq!(stage.script.asked(), ["open generic a for p1", "open generic a for p1 once more"]);
    stage.wait(30);
    stage.board.reap();
    assert_eq!(stage.script.asked(), ["seen generic a 30s ago"], "it is evidence like any message");

    stage.script.answer("disk full", Outcome::Failed);
    let failed = stage.attach(&peer, "b").unwrap();
    assert!(!failed.recorded);
    assert_eq!(failed.episode.repository, "disk full");
    let retried = stage.attach(&peer, "b").unwrap();
    assert!(retried.recorded && retried.left.is_none());
    assert_eq!(retried.episode.attachments, 1);
}

#[test]
fn a_failed_opening_is_tried_again_and_one_with_nothing_to_record_is_not() {
    let stage = Stage::new();
    let (first, second) = (stage.peer(), stage.peer());
    stage.script.answer("disk full", Outcome::Failed);
    stage.script.answer("no repository", Outcome::Nothing);
    stage.attach(&first, "a").unwrap();
    let nothing = stage.attach(&second, "b").unwrap();
    assert!(!nothing.recorded);
    stage.attach(&second, "b").unwrap();
    assert_eq!(stage.script.asked().len(), 2);

    stage.wait(9);
    stage.board.reap();
    assert!(stage.script.asked().is_empty());
    stage.wait(1);
    stage.script.answer("still full", Outcome::Failed);
    stage.board.reap();
    assert_eq!(stage.script.asked(), ["open generic a for p1"]);
    assert_eq!(stage.board.list()[0].repository, "still full");

    // Also after its connection went.
    stage.board.detach(&first);
    stage.wait(10);
    stage.board.reap();
    assert_eq!(
        stage.script.asked(),
        ["open generic a for p1", "left generic a by p1 10s ago"],
        "once it is recorded the repository takes it for held"
    );
    stage.wait(100);
    stage.board.reap();
    assert!(stage.script.asked().is_empty());
}

#[test]
fn a_second_connection_takes_the_episode_over_and_the_first_is_told_once() {
    let stage = Stage::new();
    let (first, second) = (stage.peer(), stage.peer());
    stage.attach(&first, "a").unwrap();
    let taken = stage.attach(&second, "a").unwrap();
    assert_eq!((taken.taken_over_from, taken.resumed), (Some(first.id()), true));
    assert_eq!(taken.episode.attachments, 2);

    stage.wait(20);
    assert_eq!(stage.board.touch(&first), Touch::Lost { by: Some(second.id()) });
    assert_eq!(stage.board.touch(&first), Touch::None);
    assert_eq!(stage.board.list()[0].last_activity_seconds_ago, 20, "the loser's messages are no evidence");
    assert_eq!(stage.board.detach(&first), None);
    assert_eq!(stage.board.of_peer(&second).unwrap().state, ConnectionEpisodeState::Open);
}

#[test]
fn two_holders_that_keep_taking_it_back_get_a_conflict() {
    let stage = Stage::new();
    let (first, second) = (stage.peer(), stage.peer());
    stage.attach(&first, "a").unwrap();
    stage.attach(&second, "a").unwrap();
    stage.attach(&first, "a").unwrap();
    let conflict = BoardError::Conflict { key: key("a"), peer: first.id() };
    assert_eq!(stage.attach(&second, "a"), Err(conflict));
    assert_eq!(stage.board.of_peer(&first).unwrap().attachments, 3);
    let (episode, resumed) = stage.board.attach(&second, "a", "generic");
    assert_eq!((episode.peer, resumed), (Some(first.id()), false));
    assert!(episode.repository.starts_with("no episode was recorded: the episode for generic a is held by p1"));

    // A third one is no part of that quarrel, and after a grace it is forgotten.
    stage.wait(GRACE);
    stage.attach(&second, "a").unwrap();
    stage.attach(&stage.peer(), "a").unwrap();
}

#[test]
fn a_caller_ends_what_it_holds_or_what_nobody_holds() {
    let stage = Stage::new();
    let (first, second) = (stage.peer(), stage.peer());
    stage.attach(&first, "a").unwrap();
    stage.attach(&second, "b").unwrap();
    let held = BoardError::HeldByOther { key: key("a"), peer: first.id() };
    assert_eq!(stage.board.finish(&second, Some("a"), "generic"), Err(held));
    let unknown = EpisodeKey::new("codex", "b").unwrap();
    assert_eq!(stage.board.finish(&second, Some("b"), "codex"), Err(BoardError::NotFound { key: unknown }));

    stage.wait(4);
    let own = stage.board.finish(&second, None, "generic").unwrap();
    assert!(own.recorded);
    assert_eq!(own.episode.external_id, "b");
    assert_eq!(stage.board.touch(&second), Touch::None);
    stage.board.detach(&first);
    let left = stage.board.finish(&second, Some("a"), "generic").unwrap();
    assert_eq!(left.episode.external_id, "a");
    let closes = stage.script.asked().split_off(2);
    assert_eq!(
        closes,
        // Who ends what another one held is not its client, and no evidence of it.
        ["close generic b detach 0ns ago", "left generic a by p1 0ns ago", "close generic a detach by operator 4s ago"]
    );
    assert!(stage.board.list().is_empty());
    assert_eq!(stage.board.finish(&stage.peer(), None, "generic"), Err(BoardError::NotHeld));
}

#[test]
fn a_repeated_end_gives_the_first_answer_until_the_peer_goes_on() {
    let stage = Stage::new();
    let peer = stage.peer();
    stage.attach(&peer, "a").unwrap();
    let first = stage.board.finish(&peer, None, "generic").unwrap();
    stage.wait(5);
    assert_eq!(stage.board.finish(&peer, None, "generic"), Ok(first.clone()));
    assert_eq!(stage.board.finish(&peer, Some("a"), "generic"), Ok(first));
    assert!(stage.board.finish(&peer, Some("b"), "generic").is_err());
    assert!(stage.board.finish(&stage.peer(), Some("a"), "generic").is_err());
    assert_eq!(stage.script.asked().len(), 2);

    stage.board.detach(&peer);
    assert_eq!(stage.board.finish(&peer, None, "generic"), Err(BoardError::NotHeld));
}

#[test]
fn an_end_that_could_not_be_recorded_is_tried_again_and_keeps_its_reason() {
    let stage = Stage::new();
    let peer = stage.peer();
    stage.attach(&peer, "a").unwrap();
    stage.script.asked();
    stage.script.answer("disk full", Outcome::Failed);
    let kept = stage.board.finish(&peer, None, "generic").unwrap();
    assert!(!kept.recorded);
    assert_eq!(kept.episode.repository, "disk full");
    assert_eq!(stage.board.list()[0].state, ConnectionEpisodeState::Detached);
    assert_eq!(stage.board.of_peer(&peer), None);

    stage.script.answer("still full", Outcome::Failed);
    let line = "still full".into();
    assert_eq!(stage.board.close("a", CloseReason::Shutdown), Err(BoardError::NotRecorded { line }));
    stage.wait(10);
    let closed = stage.board.reap();
    assert_eq!(closed.len(), 1);
    let asked = stage.script.asked();
    assert!(asked.iter().all(|call| call.starts_with("close generic a detach")), "{asked:?}");
    assert_eq!(asked.len(), 3);
    assert!(stage.board.finish(&peer, None, "generic").unwrap().recorded, "brought up to date");
}

#[test]
fn an_attach_completes_an_end_that_is_owed_before_it_opens_anew() {
    let stage = Stage::new();
    let peer = stage.peer();
    stage.attach(&peer, "a").unwrap();
    stage.script.answer("disk full", Outcome::Failed);
    stage.board.finish(&peer, None, "generic").unwrap();
    stage.script.asked();

    stage.script.answer("still full", Outcome::Failed);
    assert_eq!(stage.attach(&peer, "a"), Err(BoardError::NotRecorded { line: "still full".into() }));
    let anew = stage.attach(&peer, "a").unwrap();
    assert_eq!((anew.episode.attachments, anew.resumed), (1, false));
    assert_eq!(anew.ended.expect("the earlier one").external_id, "a");
    let asked = stage.script.asked();
    assert_eq!(asked.last().unwrap(), "open generic a for p1");
    assert_eq!(asked.len(), 3);
}

#[test]
fn what_is_overdue_has_expired_whichever_call_notices() {
    let stage = Stage::new();
    let peer = stage.peer();
    for id in ["a", "b", "c", "d"] {
        stage.attach(&peer, id).unwrap();
    }
    stage.board.detach(&peer);
    stage.wait(GRACE);
    stage.script.asked();

    let anew = stage.attach(&peer, "a").unwrap();
    assert!(!anew.resumed && anew.ended.is_some());
    stage.board.finish(&peer, Some("b"), "generic").unwrap();
    stage.board.close("c", CloseReason::Detach).unwrap();
    assert_eq!(stage.board.close_all(CloseReason::Shutdown).len(), 2);
    assert_eq!(
        stage.script.asked(),
        [
            "close generic a expired 900s ago, judged 900s, lost 900s ago",
            "open generic a for p1",
            "close generic b expired 900s ago, judged 900s, lost 900s ago",
            "close generic c expired 900s ago, judged 900s, lost 900s ago",
            "close generic a shutdown 0ns ago",
            "close generic d expired 900s ago, judged 900s, lost 900s ago",
        ]
    );
}

#[test]
fn an_episode_that_the_repository_knows_to_be_alive_does_not_expire() {
    let stage = Stage::new();
    let peer = stage.peer();
    stage.attach(&peer, "a").unwrap();
    stage.board.detach(&peer);
    stage.wait(GRACE);
    stage.script.answer("seen elsewhere", Outcome::NotOver(seconds(60)));
    assert!(stage.board.reap().is_empty());
    assert_eq!(stage.board.list()[0].repository, "seen elsewhere");
    stage.wait(59);
    assert!(stage.board.reap().is_empty());

    stage.wait(1);
    stage.script.answer("seen elsewhere", Outcome::NotOver(seconds(0)));
    let resumed = stage.attach(&peer, "a").unwrap();
    assert!(resumed.resumed && resumed.ended.is_none());

    stage.board.detach(&peer);
    stage.wait(GRACE);
    stage.script.asked();
    stage.script.answer("seen elsewhere", Outcome::NotOver(seconds(60)));
    assert_eq!(stage.board.close_all(CloseReason::Shutdown).len(), 1);
    let asked = stage.script.asked();
    assert_eq!(
        asked,
        ["close generic a expired 900s ago, judged 900s, lost 900s ago", "close generic a shutdown 900s ago"]
    );
}

#[test]
fn an_operator_who_takes_an_episode_for_expired_is_contradicted_once_and_not_asked_for_ever() {
    let stage = Stage::new();
    stage.attach(&stage.peer(), "a").unwrap();
    for _ in 0..3 {
        stage.script.answer("seen elsewhere", Outcome::NotOver(seconds(60)));
    }
    let line = "seen elsewhere".into();
    assert_eq!(stage.board.close("a", CloseReason::Expired), Err(BoardError::NotRecorded { line }));
    assert!(stage.board.close_all(CloseReason::Expired).is_empty());
    assert_eq!(stage.script.asked().len(), 3);
}

#[test]
fn evidence_is_told_at_most_once_per_interval_and_only_if_there_was_some() {
    let stage = Stage::new();
    let peer = stage.peer();
    stage.attach(&peer, "a").unwrap();
    stage.script.asked();
    for _ in 0..120 {
        stage.board.touch(&peer);
        stage.board.reap();
        stage.wait(1);
    }
    stage.board.reap();
    assert_eq!(stage.script.asked(), ["seen generic a 0ns ago"; 3], "after 30, 61 and 92 seconds");
    stage.wait(600);
    stage.board.reap();
    assert_eq!(stage.script.asked(), ["seen generic a 601s ago"]);
    stage.wait(600);
    stage.board.reap();
    assert!(stage.script.asked().is_empty());
}

#[test]
fn an_operator_ends_what_anybody_holds_and_its_holder_is_told() {
    let stage = Stage::new();
    let peer = stage.peer();
    stage.attach(&peer, "a").unwrap();
    stage.wait(6);
    stage.board.close(("generic", "a"), CloseReason::Detach).unwrap();
    assert_eq!(stage.script.asked()[1..], ["close generic a detach by operator 6s ago"]);
    assert_eq!(stage.board.touch(&peer), Touch::Lost { by: None });
    assert_eq!(stage.board.touch(&peer), Touch::None);
    assert_eq!(stage.board.close("a", CloseReason::Detach), Err(BoardError::NotFound { key: key("a") }));
}

#[test]
fn shutdown_ends_all_and_says_what_it_could_not() {
    let stage = Stage::new();
    for id in ["a", "b", "c"] {
        stage.attach(&stage.peer(), id).unwrap();
    }
    stage.script.answer("done", Outcome::Recorded);
    stage.script.answer("disk full", Outcome::Failed);
    let closed = stage.board.close_all(CloseReason::Shutdown);
    let closed: Vec<&str> = closed.iter().map(|episode| episode.external_id.as_str()).collect();
    assert_eq!(closed, ["a", "c"]);
    assert_eq!(stage.board.list()[0].repository, "disk full");
}

#[test]
fn the_list_shows_held_ones_first_then_by_opening_and_key() {
    let stage = Stage::new();
    let peers: Vec<Peer> = (0..5).map(|_| stage.peer()).collect();
    for (peer, id) in peers.iter().zip(["d", "b"]) {
        stage.attach(peer, id).unwrap();
    }
    stage.wait(1);
    for (peer, id) in peers[2..].iter().zip(["c", "a", "e"]) {
        stage.attach(peer, id).unwrap();
    }
    stage.board.detach(&peers[1]);
    stage.board.detach(&peers[2]);
    let ids: Vec<String> = stage.board.list().into_iter().map(|episode| episode.external_id).collect();
    assert_eq!(ids, ["d", "a", "e", "b", "c"]);
}

#[test]
fn the_grace_is_a_quarter_of_an_hour() {
    assert_eq!(REATTACH_GRACE, seconds(GRACE));
}
