//! Callers that race for one key.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};

use majordomus_episodes_core::board::{AttachRequest, BoardError, BoardOptions, Inline, Limits, Run};
use majordomus_episodes_core::driver::{Closing, EpisodeDriver, Opening, Outcome, Report};
use majordomus_episodes_core::peers::{PeerBoard, Transport};
use majordomus_episodes_core::{EpisodeBoard, EpisodeKey};

use crate::support::{LONG, Threads, report, start};

/// Fails the test if two calls meet at one key; counts what it was asked.
#[derive(Default)]
struct OneAtATime {
    inside: Mutex<HashMap<EpisodeKey, Arc<AtomicUsize>>>,
    met: AtomicUsize,
    opened: AtomicUsize,
    closed: AtomicUsize,
}

impl OneAtATime {
    fn enter(&self, key: &EpisodeKey, counted: &AtomicUsize, line: &str) -> Report {
        let inside = Arc::clone(self.inside.lock().unwrap().entry(key.clone()).or_default());
        self.met.fetch_add(inside.fetch_add(1, Ordering::SeqCst), Ordering::SeqCst);
        // Room for another thread to come in, if anything lets it.
        for _ in 0..50 {
            std::thread::yield_now();
        }
        inside.fetch_sub(1, Ordering::SeqCst);
        counted.fetch_add(1, Ordering::SeqCst);
        report(line, Outcome::Recorded)
    }
}

impl EpisodeDriver for OneAtATime {
    fn open(&self, opening: &Opening) -> Report {
        self.enter(&opening.key, &self.opened, "opened")
    }

    fn close(&self, closing: &Closing) -> Report {
        self.enter(&closing.key, &self.closed, "closed")
    }
}

fn board(driver: &Arc<OneAtATime>, run: Arc<dyn Run>) -> EpisodeBoard {
    EpisodeBoard::with(BoardOptions {
        driver: Arc::clone(driver) as _,
        limits: Limits { driver_time: LONG, ..Limits::default() },
        run,
        ..BoardOptions::default()
    })
}

#[test]
fn racing_attaches_make_one_episode() {
    let driver = Arc::new(OneAtATime::default());
    let board = board(&driver, Arc::new(Threads));
    let peers = PeerBoard::new();
    let barrier = Arc::new(Barrier::new(8));
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let (board, barrier, peer) = (board.clone(), Arc::clone(&barrier), peers.attach(Transport::Http));
            start(move || {
                barrier.wait();
                board
                    .attach_with(AttachRequest {
                        peer: &peer,
                        external_id: "a",
                        provider: "generic",
                        client: None,
                        handle: None,
                        again: false,
                        carrier: None,
                    })
                    .unwrap()
            })
        })
        .collect();
    let mut answers: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    answers.sort_by_key(|answer| answer.episode.attachments);
    let attachments: Vec<u32> = answers.iter().map(|answer| answer.episode.attachments).collect();
    assert_eq!(attachments, [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(answers.iter().filter(|answer| answer.resumed).count(), 7);
    for pair in answers.windows(2) {
        assert_eq!(pair[1].taken_over_from, pair[0].episode.peer);
        assert_eq!(pair[1].episode.opened_at, pair[0].episode.opened_at);
    }
    assert_eq!(board.list().len(), 1);
    assert_eq!((driver.met.load(Ordering::SeqCst), driver.opened.load(Ordering::SeqCst)), (0, 8));
}

#[test]
fn racing_callers_of_one_key_meet_one_at_a_time_in_the_driver() {
    for run in [Arc::new(Threads) as Arc<dyn Run>, Arc::new(Inline)] {
        let driver = Arc::new(OneAtATime::default());
        let board = board(&driver, run);
        let peers = PeerBoard::new();
        let barrier = Arc::new(Barrier::new(8));
        let threads: Vec<_> = (0..8)
            .map(|number| {
                let (board, barrier, peer) = (board.clone(), Arc::clone(&barrier), peers.attach(Transport::Http));
                start(move || {
                    let mut ended = 0;
                    barrier.wait();
                    for round in 0..60 {
                        match (number + round) % 4 {
                            0 | 2 => drop(board.attach(&peer, "a", "generic")),
                            1 => match board.finish(&peer, Some("a"), "generic") {
                                Ok(_) => ended += 1,
                                Err(BoardError::NotFound { .. } | BoardError::HeldByOther { .. }) => {}
                                Err(other) => panic!("unexpected: {other}"),
                            },
                            _ => drop(board.detach(&peer)),
                        }
                        board.touch(&peer);
                        assert!(board.list().len() <= 1);
                    }
                    (peer, ended)
                })
            })
            .collect();
        let done: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        assert!(board.settle(LONG));
        assert_eq!(driver.met.load(Ordering::SeqCst), 0);

        let holders = done.iter().filter(|(peer, _)| board.of_peer(peer).is_some()).count();
        let open = board.list().iter().filter(|episode| episode.peer.is_some()).count();
        assert_eq!(holders, open, "who holds it is who the list says");
        let ended: usize = done.iter().map(|(_, ended)| ended).sum();
        assert_eq!(driver.closed.load(Ordering::SeqCst), ended, "each end was one call");
        assert!(driver.opened.load(Ordering::SeqCst) >= ended);
    }
}
