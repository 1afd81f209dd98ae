use std::sync::Arc;
use std::time::Duration;

use super::{Announcement, PeerBoard, Transport};
use crate::clock::{Clock, ManualClock, Moment};

fn board() -> (Arc<ManualClock>, PeerBoard) {
    let clock = Arc::new(ManualClock::default());
    (Arc::clone(&clock), PeerBoard::with_clock(clock))
}

#[test]
fn peers_are_numbered_in_attachment_order_and_no_number_is_used_twice() {
    let (_, peers) = board();
    let first = peers.attach(Transport::Stdio);
    let second = peers.attach(Transport::Http);
    peers.detach(&first);
    let third = peers.attach(Transport::Http);
    let names: Vec<String> = [&first, &second, &third].iter().map(|peer| peer.id().to_string()).collect();
    assert_eq!(names, ["p1", "p2", "p3"]);
    let listed: Vec<_> = peers.list().into_iter().map(|info| (info.id, info.transport)).collect();
    assert_eq!(listed, [(second.id(), Transport::Http), (third.id(), Transport::Http)]);
}

#[test]
fn each_transport_has_its_word() {
    let words = [Transport::Stdio, Transport::Http, Transport::Handle].map(Transport::as_str);
    assert_eq!(words, ["stdio", "http", "handle"]);
}

#[test]
fn a_message_of_any_clone_is_the_peers_and_moves_its_last_activity() {
    let (clock, peers) = board();
    let peer = peers.attach(Transport::Stdio);
    clock.advance(Duration::from_millis(2_999));
    assert_eq!(peers.list()[0].last_activity_seconds_ago, 2);
    peers.touch(&peer.clone());
    assert_eq!(peers.list()[0].last_activity_seconds_ago, 0);
    assert_eq!(peers.list()[0].attached_at, "2026-01-01T00:00:00.000Z");
}

#[test]
fn what_a_peer_says_of_itself_is_shown_until_it_says_otherwise_or_leaves() {
    let (_, peers) = board();
    let peer = peers.attach(Transport::Stdio);
    let said = |intent: &str| Announcement { intent: intent.into(), scope: vec!["src/a b.rs".into()] };
    peers.identify(&peer, "client 1.0".into());
    peers.announce(&peer, said("first"));
    peers.announce(&peer, said("second"));
    let info = peers.list().remove(0);
    assert_eq!((info.client.as_deref(), info.announcement), (Some("client 1.0"), Some(said("second"))));

    peers.detach(&peer);
    peers.announce(&peer, said("third"));
    peers.identify(&peer, "client 2.0".into());
    peers.touch(&peer);
    assert!(peers.list().is_empty());
}

#[test]
fn a_wall_clock_that_no_calendar_has_is_shown_as_the_nearest_time() {
    for (wall_ms, shown) in [
        (i64::MIN, "-009999-01-02T01:59:59.000Z"),
        (i64::MAX, "9999-12-30T22:00:00.999Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
    ] {
        let clock = ManualClock::at(Moment { awake: Duration::ZERO, wall_ms });
        assert_eq!(clock.now().wall_ms, wall_ms);
        let peers = PeerBoard::with_clock(Arc::new(clock));
        let _peer = peers.attach(Transport::Stdio);
        assert_eq!(peers.list()[0].attached_at, shown);
    }
}
