//! Callers without a connection and sessions without a process: what holds their episodes, what silence and loss mean.

use majordomus_episodes_core::board::{Adopted, AttachRequest, Attached, BoardError, Touch};
use majordomus_episodes_core::clock::Clock;
use majordomus_episodes_core::driver::Outcome;
use majordomus_episodes_core::peers::{Peer, Transport};
use majordomus_episodes_core::{CloseReason, ConnectionEpisodeState, EpisodeKey, HANDLE_IDLE};

use crate::support::{Stage, seconds};

const GRACE: u64 = 900;
const PATIENCE: u64 = 90;
const IDLE: u64 = 86_400;
const OPEN: ConnectionEpisodeState = ConnectionEpisodeState::Open;
const DETACHED: ConnectionEpisodeState = ConnectionEpisodeState::Detached;

/// A board on which a session has attached, with nothing else asked of the driver yet.
fn attached(transport: Transport) -> (Stage, Peer) {
    let stage = Stage::new();
    let peer = stage.peers.attach(transport);
    attach(&stage, &peer).unwrap();
    stage.script.asked();
    (stage, peer)
}

/// The same, and a stream of it was opened and lost.
fn lost() -> (Stage, Peer) {
    let (stage, peer) = attached(Transport::Http);
    stage.board.hold(&peer);
    stage.wait(5);
    stage.board.release(&peer);
    (stage, peer)
}

fn request(peer: &Peer) -> AttachRequest<'_> {
    AttachRequest {
        peer,
        external_id: "a",
        provider: "generic",
        client: None,
        handle: None,
        again: false,
        carrier: None,
    }
}

fn attach(stage: &Stage, peer: &Peer) -> Result<Attached, BoardError> {
    stage.board.attach_with(request(peer))
}

fn shown(stage: &Stage) -> (ConnectionEpisodeState, Option<String>, u32) {
    let episode = stage.board.list().remove(0);
    (episode.state, episode.peer.map(|peer| peer.to_string()), episode.attachments)
}

fn open_for(peer: &Peer, attachments: u32) -> (ConnectionEpisodeState, Option<String>, u32) {
    (OPEN, Some(peer.id().to_string()), attachments)
}

#[test]
fn silence_is_shown_after_the_grace_and_ends_only_after_the_idle_time() {
    for transport in [Transport::Http, Transport::Handle] {
        let (stage, peer) = attached(transport);
        stage.wait(GRACE - 1);
        assert_eq!(shown(&stage), open_for(&peer, 1));
        stage.wait(1);
        assert_eq!(shown(&stage), (DETACHED, None, 1));
        assert_eq!(stage.board.of_peer(&peer).unwrap().state, DETACHED, "it is still its own");
        stage.wait(IDLE - GRACE - 1);
        assert!(stage.board.reap().is_empty());
        assert!(stage.script.asked().is_empty(), "nobody was seen to go");
        stage.wait(1);
        assert_eq!(stage.board.reap().len(), 1);
        assert_eq!(stage.script.asked(), ["close generic a expired 86400s ago, judged 86400s"]);
        assert_eq!(stage.board.touch(&peer), Touch::Lost { by: None });
    }
    assert_eq!(HANDLE_IDLE, seconds(IDLE));
}

#[test]
fn a_late_message_shows_it_open_again_and_is_no_attachment() {
    let (stage, peer) = attached(Transport::Handle);
    for _ in 0..3 {
        stage.wait(IDLE - 1);
        assert_eq!(shown(&stage).0, DETACHED);
        assert_eq!(stage.board.touch(&peer), Touch::Held);
        assert_eq!(shown(&stage), open_for(&peer, 1));
        stage.board.reap();
    }
    stage.wait(GRACE);
    assert!(!attach(&stage, &peer).unwrap().resumed, "an attach of its own is a message like any other");
    assert_eq!(shown(&stage), open_for(&peer, 1));
    stage.wait(IDLE);
    assert_eq!(stage.board.reap().len(), 1);
}

#[test]
fn what_a_stream_holds_is_never_expired() {
    let stage = Stage::new();
    let peer = stage.peers.attach(Transport::Http);
    // Streams are counted, and may be there before anything was attached.
    stage.board.hold(&peer);
    stage.board.hold(&peer);
    attach(&stage, &peer).unwrap();
    stage.wait(100 * IDLE);
    assert!(stage.board.reap().is_empty());
    assert_eq!(stage.board.next_due(), None);
    stage.board.release(&peer);
    stage.wait(IDLE);
    assert!(stage.board.reap().is_empty());
    assert_eq!(shown(&stage), open_for(&peer, 1));
}

#[test]
fn a_process_holds_whatever_becomes_of_its_streams() {
    let (stage, peer) = attached(Transport::Stdio);
    stage.board.hold(&peer);
    stage.board.release(&peer);
    stage.board.release(&peer);
    stage.wait(100 * IDLE);
    assert!(stage.board.reap().is_empty());
    assert_eq!(shown(&stage), open_for(&peer, 1));
}

#[test]
fn after_a_loss_the_grace_runs_from_the_loss_and_not_from_the_last_evidence() {
    let (stage, peer) = lost();
    stage.wait(PATIENCE - 1);
    assert_eq!(shown(&stage), open_for(&peer, 1));
    stage.wait(1);
    assert_eq!(shown(&stage), (DETACHED, None, 1));
    stage.board.reap();
    assert_eq!(stage.script.asked(), ["left generic a by p1 90s ago"]);
    stage.wait(GRACE - PATIENCE - 1);
    assert!(stage.board.reap().is_empty());
    stage.wait(1);
    assert_eq!(stage.board.reap().len(), 1);
    assert_eq!(stage.script.asked(), ["close generic a expired 905s ago, judged 900s, lost 900s ago"]);
}

#[test]
fn evidence_that_is_not_told_yet_is_told_before_the_loss() {
    let (stage, peer) = attached(Transport::Http);
    stage.board.hold(&peer);
    stage.wait(5);
    stage.board.touch(&peer);
    stage.wait(1);
    stage.board.release(&peer);
    stage.wait(PATIENCE);
    stage.board.reap();
    assert_eq!(stage.script.asked(), ["seen generic a 91s ago", "left generic a by p1 90s ago"]);
    stage.wait(100);
    stage.board.reap();
    assert!(stage.script.asked().is_empty());
}

#[test]
fn evidence_after_a_loss_voids_it() {
    let (stage, peer) = lost();
    // The last thing that was seen counts, also at the same moment.
    stage.board.touch(&peer);
    stage.wait(GRACE - 1);
    stage.board.reap();
    assert_eq!(stage.script.asked(), ["seen generic a 899s ago"]);
    assert_eq!(shown(&stage), open_for(&peer, 1));
    stage.wait(IDLE - GRACE);
    assert!(stage.board.reap().is_empty());
    stage.wait(1);
    assert_eq!(stage.board.reap().len(), 1);
    assert_eq!(stage.script.asked(), ["close generic a expired 86400s ago, judged 86400s"]);
}

#[test]
fn a_new_stream_voids_a_loss_and_its_end_is_another_one() {
    let (stage, peer) = lost();
    stage.wait(PATIENCE - 1);
    stage.board.hold(&peer);
    stage.wait(IDLE);
    assert!(stage.board.reap().is_empty());
    assert!(stage.script.asked().is_empty(), "a stream is no evidence");
    assert_eq!(shown(&stage), open_for(&peer, 1));
    stage.board.release(&peer);
    stage.wait(GRACE - 1);
    assert!(stage.board.reap().is_empty());
    stage.wait(1);
    assert_eq!(stage.board.reap().len(), 1);
}

#[test]
fn who_was_said_to_be_gone_and_is_active_is_told_at_once() {
    let (stage, peer) = lost();
    stage.board.touch(&peer);
    stage.wait(30);
    stage.board.reap();
    stage.board.hold(&peer);
    stage.board.release(&peer);
    stage.wait(PATIENCE);
    stage.board.reap();
    assert_eq!(stage.script.asked(), ["seen generic a 30s ago", "left generic a by p1 90s ago"]);

    stage.wait(1);
    assert_eq!(stage.board.touch(&peer), Touch::Held);
    assert_eq!(stage.script.asked(), ["seen generic a 0ns ago"]);
    assert_eq!(shown(&stage), open_for(&peer, 1));
    stage.wait(1);
    stage.board.touch(&peer);
    stage.board.reap();
    assert!(stage.script.asked().is_empty(), "and then as often as any other");
    stage.wait(30);
    stage.board.reap();
    assert_eq!(stage.script.asked(), ["seen generic a 30s ago"]);
    stage.wait(GRACE);
    assert!(stage.board.reap().is_empty(), "the loss is void");

    // By an attach of its own, and by a stream, likewise.
    for by_stream in [false, true] {
        stage.board.hold(&peer);
        stage.board.release(&peer);
        stage.wait(PATIENCE);
        stage.board.reap();
        assert_eq!(stage.script.asked().last().unwrap(), "left generic a by p1 90s ago");
        let ago = stage.board.list()[0].last_activity_seconds_ago;
        if by_stream {
            stage.board.hold(&peer);
        } else {
            attach(&stage, &peer).unwrap();
        }
        let told =
            if by_stream { format!("seen generic a {ago}s ago") } else { "open generic a for p1 once more".into() };
        assert_eq!(stage.script.asked(), [told]);
        assert_eq!(shown(&stage), open_for(&peer, 1));
    }
}

#[test]
fn another_client_resumes_what_nobody_holds_and_the_first_is_told() {
    for lose in [false, true] {
        let (stage, first) = if lose { lost() } else { attached(Transport::Http) };
        stage.wait(if lose { PATIENCE } else { GRACE });
        let second = stage.peers.attach(Transport::Handle);
        let resumed = attach(&stage, &second).unwrap();
        assert_eq!((resumed.resumed, resumed.taken_over_from, resumed.episode.attachments), (true, None, 2));
        assert_eq!(stage.script.asked(), ["open generic a for p2"]);
        assert_eq!(stage.board.of_peer(&first), None);
        assert_eq!(stage.board.touch(&first), Touch::Lost { by: Some(second.id()) });
        assert_eq!(stage.board.touch(&first), Touch::None);
    }
    // A moment earlier it is a take-over.
    let (stage, first) = attached(Transport::Http);
    stage.wait(GRACE - 1);
    let second = stage.peers.attach(Transport::Handle);
    assert_eq!(attach(&stage, &second).unwrap().taken_over_from, Some(first.id()));
    assert_eq!(stage.script.asked(), ["open generic a for p2 taken over"]);
}

#[test]
fn another_client_may_finish_what_nobody_holds_and_the_first_is_told() {
    let (stage, first) = attached(Transport::Handle);
    let second = stage.peers.attach(Transport::Handle);
    stage.wait(GRACE - 1);
    let held = BoardError::HeldByOther { key: EpisodeKey::new("generic", "a").unwrap(), peer: first.id() };
    assert_eq!(stage.board.finish(&second, Some("a"), "generic"), Err(held));
    stage.wait(1);
    assert!(stage.board.finish(&second, Some("a"), "generic").unwrap().recorded);
    assert_eq!(stage.board.touch(&first), Touch::Lost { by: None });
}

#[test]
fn a_detach_starts_the_grace_whatever_was_before() {
    let (stage, peer) = attached(Transport::Http);
    stage.wait(2 * GRACE);
    assert_eq!(stage.board.detach(&peer).unwrap().state, DETACHED);
    assert_eq!(stage.script.asked(), ["left generic a by p1 0ns ago"]);
    assert_eq!(stage.board.touch(&peer), Touch::None);
    stage.wait(GRACE - 1);
    assert!(stage.board.reap().is_empty());
    stage.wait(1);
    assert_eq!(stage.board.reap().len(), 1);
}

#[test]
fn what_is_left_behind_for_another_id_is_told_to_be_left() {
    let (stage, peer) = attached(Transport::Stdio);
    stage.wait(3);
    stage.board.touch(&peer);
    stage.board.attach_with(AttachRequest { external_id: "b", ..request(&peer) }).unwrap();
    let told = ["seen generic a 0ns ago", "left generic a by p1 0ns ago", "open generic b for p1"];
    assert_eq!(stage.script.asked(), told);
    // Back at the first one, which is thereby held again; nothing more is told of it.
    attach(&stage, &peer).unwrap();
    assert_eq!(stage.script.asked(), ["left generic b by p1 0ns ago", "open generic a for p1"]);
}

#[test]
fn a_departure_that_could_not_be_told_is_told_once_the_opening_is_recorded() {
    let stage = Stage::new();
    let peer = stage.peers.attach(Transport::Http);
    stage.script.answer("disk full", Outcome::Failed);
    attach(&stage, &peer).unwrap();
    stage.board.detach(&peer);
    stage.wait(10);
    stage.board.reap();
    let told = ["open generic a for p1", "open generic a for p1", "left generic a by p1 10s ago"];
    assert_eq!(stage.script.asked(), told);
}

#[test]
fn a_loss_that_could_not_be_told_and_was_answered_is_told_no_more() {
    let stage = Stage::new();
    let peer = stage.peers.attach(Transport::Http);
    stage.script.answer("disk full", Outcome::Failed);
    stage.script.answer("still full", Outcome::Failed);
    attach(&stage, &peer).unwrap();
    stage.board.hold(&peer);
    stage.board.release(&peer);
    stage.wait(PATIENCE - 1);
    stage.board.reap();
    stage.wait(1);
    stage.board.reap();
    stage.board.touch(&peer);
    stage.script.asked();
    stage.wait(10);
    stage.board.reap();
    assert_eq!(stage.script.asked(), ["open generic a for p1"]);
    assert_eq!(shown(&stage), open_for(&peer, 1));
}

#[test]
fn a_departure_that_could_not_be_told_is_told_where_the_repository_turns_out_to_have_the_episode() {
    let stage = Stage::new();
    let peer = stage.peers.attach(Transport::Http);
    stage.script.answer("disk full", Outcome::Failed);
    attach(&stage, &peer).unwrap();
    stage.board.detach(&peer);
    stage.wait(GRACE);
    stage.script.asked();
    stage.script.answer("seen elsewhere", Outcome::NotOver(seconds(60)));
    stage.board.reap();
    let told = ["close generic a expired 900s ago, judged 900s, lost 900s ago", "left generic a by p1 900s ago"];
    assert_eq!(stage.script.asked(), told);
}

#[test]
fn a_handle_is_one_more_attachment_and_made_durable() {
    let (stage, peer) = attached(Transport::Handle);
    let minted = |handle| AttachRequest { handle: Some(handle), ..request(&peer) };
    let second = stage.board.attach_with(minted("h2")).unwrap();
    assert_eq!((second.resumed, second.taken_over_from, second.episode.attachments), (true, None, 2));
    stage.wait(7);
    stage.script.answer("disk full", Outcome::Failed);
    let third = stage.board.attach_with(minted("h3")).unwrap();
    assert_eq!((third.recorded, third.episode.attachments, third.episode.last_activity_seconds_ago), (false, 3, 0));
    let handles = ["open generic a for p1 with h2", "open generic a for p1 with h3"];
    assert_eq!(stage.script.asked(), handles);
    // It stays owed until it is durable, whoever asks, and is told once.
    stage.wait(10);
    stage.board.reap();
    attach(&stage, &peer).unwrap();
    assert_eq!(stage.script.asked(), ["open generic a for p1 with h3", "open generic a for p1 once more"]);
    assert_eq!(shown(&stage), open_for(&peer, 3));
    stage.board.detach(&peer);
    attach(&stage, &peer).unwrap();
    let told = ["seen generic a 0ns ago", "left generic a by p1 0ns ago", "open generic a for p1"];
    assert_eq!(stage.script.asked(), told);
}

fn adopted(stage: &Stage) {
    stage.board.adopt(Adopted {
        key: EpisodeKey::new("generic", "a").unwrap(),
        opened_at: "2025-12-31T22:00:00.000Z".into(),
        attachments: 2,
        silent_for: seconds(30),
        waiting_for: seconds(20),
        line: "found".into(),
    });
}

#[test]
fn whom_an_earlier_server_knew_goes_on_without_another_attachment() {
    let stage = Stage::new();
    adopted(&stage);
    let peer = stage.peers.attach(Transport::Handle);
    let again = AttachRequest { again: true, ..request(&peer) };
    stage.script.answer("disk full", Outcome::Failed);
    let attached = stage.board.attach_with(again).unwrap();
    assert_eq!((attached.resumed, attached.taken_over_from), (true, None));
    assert_eq!(attached.episode.opened_at, "2025-12-31T22:00:00.000Z");
    assert_eq!(shown(&stage), open_for(&peer, 2));
    assert!(stage.board.attach_with(again).unwrap().recorded, "tried again");
    assert!(stage.board.attach_with(again).unwrap().recorded);
    assert_eq!(stage.script.asked(), ["open generic a for p1 again"; 2]);
    assert_eq!(shown(&stage), open_for(&peer, 2));
}

#[test]
fn whom_an_earlier_server_knew_finds_nothing_where_the_repository_knows_that_it_is_over() {
    let stage = Stage::new();
    adopted(&stage);
    let peer = stage.peers.attach(Transport::Handle);
    stage.script.answer("it is over", Outcome::Gone);
    let key = EpisodeKey::new("generic", "a").unwrap();
    let again = AttachRequest { again: true, ..request(&peer) };
    assert_eq!(stage.board.attach_with(again), Err(BoardError::NotFound { key }));
    assert!(stage.board.list().is_empty());
    assert_eq!(stage.board.touch(&peer), Touch::None);

    // Also where that only comes out when it is tried again.
    adopted(&stage);
    stage.script.answer("disk full", Outcome::Failed);
    stage.board.attach_with(again).unwrap();
    stage.script.answer("it is over", Outcome::Gone);
    stage.wait(10);
    assert!(stage.board.reap().is_empty(), "it is not this board that has ended it");
    assert!(stage.board.list().is_empty() && stage.board.of_peer(&peer).is_none());
    assert_eq!(stage.board.touch(&peer), Touch::Lost { by: None }, "it was told that it has it");
}

#[test]
fn whom_an_earlier_server_knew_is_refused_where_nothing_waits_or_somebody_came() {
    let stage = Stage::new();
    let key = EpisodeKey::new("generic", "a").unwrap();
    let (peer, other) = (stage.peers.attach(Transport::Handle), stage.peers.attach(Transport::Http));
    let again = AttachRequest { again: true, ..request(&peer) };
    assert_eq!(stage.board.attach_with(again), Err(BoardError::NotFound { key: key.clone() }));
    assert!(stage.board.list().is_empty() && stage.script.asked().is_empty());

    adopted(&stage);
    attach(&stage, &other).unwrap();
    let held = BoardError::HeldByOther { key: key.clone(), peer: other.id() };
    assert_eq!(stage.board.attach_with(again), Err(held));
    assert_eq!(stage.board.touch(&other), Touch::Held);

    // What is over is over, also for whom an earlier server knew.
    stage.board.detach(&other);
    stage.wait(GRACE);
    assert_eq!(stage.board.attach_with(again), Err(BoardError::NotFound { key }));
    assert!(stage.board.list().is_empty());
}

#[test]
fn an_operators_end_says_so_and_a_servers_does_not() {
    let (stage, peer) = attached(Transport::Http);
    stage.script.answer("disk full", Outcome::Failed);
    stage.board.close("a", CloseReason::Detach).unwrap_err();
    assert_eq!(stage.board.touch(&peer), Touch::Lost { by: None });
    stage.wait(10);
    assert_eq!(stage.board.close_all(CloseReason::Shutdown).len(), 1);
    let by_operator = ["close generic a detach by operator 0ns ago", "close generic a detach by operator 10s ago"];
    assert_eq!(stage.script.asked(), by_operator, "the first one to say why is who counts");

    attach(&stage, &peer).unwrap();
    stage.board.close_all(CloseReason::Shutdown);
    assert_eq!(stage.script.asked()[1..], ["close generic a shutdown 0ns ago"]);
    attach(&stage, &peer).unwrap();
    stage.wait(IDLE);
    stage.board.close("a", CloseReason::Detach).unwrap();
    let expired = ["close generic a expired 86400s ago, judged 86400s"];
    assert_eq!(stage.script.asked()[1..], expired, "what is overdue has expired, whichever call notices");
}

#[test]
fn silence_that_the_repository_knows_better_about_leaves_it_detached() {
    let (stage, peer) = attached(Transport::Http);
    stage.wait(IDLE);
    stage.script.answer("seen elsewhere", Outcome::NotOver(seconds(60)));
    assert!(stage.board.reap().is_empty());
    assert_eq!(shown(&stage), (DETACHED, None, 1));
    assert_eq!(stage.board.touch(&peer), Touch::Lost { by: None });
    assert!(attach(&stage, &peer).unwrap().resumed);
}

#[test]
fn a_carrier_shows_its_peer_as_there_and_moves_no_time() {
    let (stage, peer) = attached(Transport::Handle);
    stage.board.carry(&peer);
    stage.wait(IDLE - 1);
    stage.board.reap();
    assert_eq!(shown(&stage), open_for(&peer, 1), "its process is there");
    assert_eq!(stage.board.list()[0].last_activity_seconds_ago, IDLE - 1);
    stage.wait(1);
    assert_eq!(stage.board.reap().len(), 1, "a process that says nothing for that long holds nothing");
}

#[test]
fn the_end_of_the_last_carrier_is_a_loss_at_once() {
    let (stage, peer) = attached(Transport::Handle);
    stage.board.carry(&peer);
    stage.board.carry(&peer);
    stage.wait(GRACE);
    stage.board.put_down(&peer);
    assert_eq!(shown(&stage), open_for(&peer, 1), "another one is open");
    assert!(stage.script.asked().is_empty());
    stage.board.put_down(&peer);
    assert_eq!(shown(&stage), (DETACHED, None, 1));
    assert_eq!(stage.script.asked(), ["left generic a by p1 0ns ago"]);
    stage.wait(GRACE - 1);
    assert!(stage.board.reap().is_empty());
    stage.wait(1);
    assert_eq!(stage.board.reap().len(), 1);
    // Whatever comes late is nobody's.
    stage.board.put_down(&peer);
    assert_eq!(stage.board.touch(&peer), Touch::Lost { by: None });
}

#[test]
fn evidence_from_elsewhere_voids_the_end_of_a_carrier() {
    let (stage, peer) = attached(Transport::Handle);
    stage.board.carry(&peer);
    stage.board.put_down(&peer);
    stage.wait(GRACE - 1);
    assert_eq!(stage.board.touch(&peer), Touch::Held);
    stage.wait(GRACE - 1);
    assert!(stage.board.reap().is_empty());
    assert_eq!(shown(&stage), open_for(&peer, 1));
}

#[test]
fn a_stream_holds_beyond_a_carrier_and_a_carrier_beyond_a_stream() {
    let (stage, peer) = attached(Transport::Handle);
    stage.board.carry(&peer);
    stage.board.hold(&peer);
    stage.board.put_down(&peer);
    stage.wait(100 * IDLE);
    assert!(stage.board.reap().is_empty());
    stage.board.carry(&peer);
    stage.board.release(&peer);
    stage.wait(GRACE);
    assert_eq!(shown(&stage), open_for(&peer, 1), "no loss while its process is there");
    stage.wait(IDLE - GRACE);
    assert_eq!(stage.board.reap().len(), 1);
}

#[test]
fn an_attach_after_a_loss_leaves_nothing_to_be_told() {
    let (stage, peer) = attached(Transport::Handle);
    stage.board.carry(&peer);
    stage.board.put_down(&peer);
    stage.script.asked();
    attach(&stage, &peer).unwrap();
    assert_eq!(stage.script.asked().len(), 1, "the attachment itself says that it is back");
    assert_eq!(stage.board.next_due(), Some(stage.clock.awake() + seconds(30)), "its evidence waits as ever");
}
