use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use majordomus_capability::project::mcp::Tools;
use majordomus_capability::{Shared, catalogue};
use majordomus_episodes_core::EpisodeBoard;
use majordomus_episodes_core::board::ConnectionEpisodeState;
use majordomus_episodes_core::peers::{PeerBoard, Transport};

use super::super::pace::{Pace, PaceLimits};
use super::{Id, Live, Sessions, new_id, read_id, write_id};
use crate::protocol::Session;

struct Table {
    shared: Arc<Shared>,
    tools: Arc<Tools>,
    sessions: Sessions,
}

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

impl Table {
    fn new(most: usize) -> Self {
        let registry = Arc::new(catalogue());
        let shared = Arc::new(Shared::new(registry.clone(), EpisodeBoard::new(), PeerBoard::new()));
        let sessions = Sessions::new(NonZeroUsize::new(most).unwrap());
        Self { shared, tools: Arc::new(Tools::new(registry)), sessions }
    }

    fn add(&self, number: u8, at: u64) -> Arc<Live> {
        let session = Session::new(self.shared.clone(), self.tools.clone(), Transport::Http);
        let live = Live::new(session, Pace::new(PaceLimits::default(), seconds(at)));
        self.sessions.add([number; 16], live.clone(), seconds(at));
        live
    }

    fn has(&self, number: u8) -> bool {
        self.sessions.lock().contains(&[number; 16])
    }

    fn peers(&self) -> usize {
        self.shared.peers.list().len()
    }
}

#[test]
fn an_id_is_thirty_two_digits_that_differ_each_time_and_nothing_else_is_one() {
    let (one, other) = (new_id().unwrap(), new_id().unwrap());
    assert_ne!(one, other);
    assert_eq!(read_id(write_id(&one).as_bytes()), Some(one));
    let good = write_id(&[0xab; 16]);
    assert_eq!(good, "ab".repeat(16));
    for bad in ["", "nope", &good[1..], &format!("{good}0"), &good.to_uppercase(), &good.replace('a', "g")] {
        assert_eq!(read_id(bad.as_bytes()), None::<Id>, "{bad}");
    }
}

#[test]
fn beyond_the_bound_the_one_that_was_not_heard_for_longest_goes_and_its_peer_with_it() {
    let table = Table::new(2);
    table.add(1, 0);
    table.add(2, 1);
    assert!(table.sessions.heard(&[1; 16], seconds(2)).is_some());
    table.add(3, 3);
    assert!(table.has(1) && !table.has(2) && table.has(3));
    assert_eq!((table.sessions.len(), table.peers()), (2, 2));
}

#[test]
fn one_with_an_open_stream_is_neither_evicted_nor_expired() {
    let table = Table::new(2);
    table.add(1, 0).streams.fetch_add(1, Ordering::AcqRel);
    table.add(2, 1);
    table.add(3, 2);
    assert!(table.has(1) && !table.has(2));
    table.sessions.expire(seconds(10), seconds(100));
    assert!(table.has(1) && !table.has(3));
}

#[test]
fn silence_ends_a_session_and_what_it_held_is_detached() {
    let table = Table::new(9);
    let live = table.add(1, 0);
    table.shared.board.attach(live.session.peer(), "a", "generic");
    table.add(2, 5);
    table.sessions.expire(seconds(10), seconds(10));
    assert!(!table.has(1) && table.has(2));
    assert_eq!(table.shared.board.list()[0].state, ConnectionEpisodeState::Detached);
}

#[test]
fn a_deleted_session_is_dead_at_once_and_only_once() {
    let table = Table::new(9);
    table.add(1, 0);
    assert!(table.sessions.delete(&[1; 16]));
    assert!(!table.sessions.delete(&[1; 16]));
    assert!(table.sessions.heard(&[1; 16], seconds(1)).is_none());
    assert_eq!(table.peers(), 0);
}

#[test]
fn what_a_call_attached_after_its_session_ended_is_held_by_nobody() {
    let table = Table::new(9);
    let live = table.add(1, 0);
    table.sessions.delete(&[1; 16]);
    table.shared.board.attach(live.session.peer(), "late", "generic");
    live.settle();
    assert_eq!(table.shared.board.list()[0].peer, None);
}

#[test]
fn a_request_is_called_off_only_while_it_runs_and_only_by_its_id() {
    let table = Table::new(9);
    let live = table.add(1, 0);
    let running = live.run("7");
    live.cancel("\"7\"");
    live.cancel("8");
    let called_off = running.called_off.clone();
    let ready = || std::pin::pin!(called_off.notified()).enable();
    assert!(!ready());
    live.cancel("7");
    assert!(ready());
    drop(running);
    assert!(live.cancels().is_empty());
}

#[test]
fn all_of_them_end_when_the_server_does() {
    let table = Table::new(9);
    let live = table.add(1, 0);
    table.add(2, 0);
    table.sessions.end_all();
    assert_eq!((table.sessions.len(), table.peers()), (0, 0));
    assert!(live.is_over());
}
