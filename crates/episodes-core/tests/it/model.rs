//! The board against a deliberately naive model, step by step.

mod naive;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use majordomus_episodes_core::board::{Adopted, AttachRequest, BoardOptions, Inline, Limits};
use majordomus_episodes_core::clock::{Clock, ManualClock};
use majordomus_episodes_core::driver::{Closing, EpisodeDriver, Known, Left, Opening, Outcome, Report, Seen};
use majordomus_episodes_core::peers::{Peer, PeerBoard, Transport};
use majordomus_episodes_core::{CloseReason, EpisodeBoard, EpisodeKey};
use proptest::prelude::*;

use crate::support::seconds;
use naive::Naive;

pub(crate) const LIMITS: Limits = Limits {
    grace: seconds(60),
    handle_idle: seconds(200),
    stream_patience: seconds(9),
    driver_time: seconds(60),
    driver_calls: 16,
    seen_every: seconds(7),
    retry_every: seconds(5),
};

/// What can happen; peers and keys by number.
#[derive(Clone, Copy, Debug)]
enum Step {
    Attach(usize, usize),
    AttachWithHandle(usize, usize),
    AttachAgain(usize, usize),
    /// By the carrier of that number.
    Return(usize, usize, usize),
    Touch(usize),
    Hold(usize),
    Release(usize),
    Carry(usize),
    PutDown(usize),
    Detach(usize),
    Finish(usize, Option<usize>),
    Close(usize, CloseReason),
    CloseAll(CloseReason),
    Reap,
    Advance(u64),
    JumpWall(i64),
    Excuse(u64),
    Adopt(usize, u64, u64),
}

const PEERS: usize = 4;
const KEYS: usize = 3;

fn step() -> impl Strategy<Value = Step> {
    let peer = || 0..PEERS;
    let key = || 0..KEYS;
    let reason = || prop::sample::select(vec![CloseReason::Detach, CloseReason::Shutdown, CloseReason::Expired]);
    prop_oneof![
        6 => (peer(), key()).prop_map(|(peer, key)| Step::Attach(peer, key)),
        2 => (peer(), key()).prop_map(|(peer, key)| Step::AttachWithHandle(peer, key)),
        2 => (peer(), key()).prop_map(|(peer, key)| Step::AttachAgain(peer, key)),
        4 => (peer(), key(), peer()).prop_map(|(peer, key, carrier)| Step::Return(peer, key, carrier)),
        6 => peer().prop_map(Step::Touch),
        4 => peer().prop_map(Step::Hold),
        5 => peer().prop_map(Step::Release),
        3 => peer().prop_map(Step::Carry),
        4 => peer().prop_map(Step::PutDown),
        4 => peer().prop_map(Step::Detach),
        4 => (peer(), prop::option::of(key())).prop_map(|(peer, key)| Step::Finish(peer, key)),
        2 => (key(), reason()).prop_map(|(key, reason)| Step::Close(key, reason)),
        1 => reason().prop_map(Step::CloseAll),
        6 => Just(Step::Reap),
        8 => prop::sample::select(vec![1_u64, 3, 5, 7, 8, 9, 30, 51, 59, 60, 61, 140, 199, 200]).prop_map(Step::Advance),
        1 => (-100_000_i64..100_000).prop_map(Step::JumpWall),
        1 => (1_u64..100).prop_map(Step::Excuse),
        2 => (key(), 0_u64..5_000, 0_u64..90).prop_map(|(key, silent, waiting)| Step::Adopt(key, silent, waiting)),
    ]
}

/// What is called for one key, in order, and what it is answered: the same for the board and the model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Repository {
    plan: Vec<u8>,
    calls: BTreeMap<String, Vec<String>>,
}

impl Repository {
    pub(crate) fn open(&mut self, opening: &Opening) -> Report {
        let Opening { peer, client, handle, again, carrier, took_over, repeated, ago, asked_ago, .. } = opening;
        let ago = (ago, asked_ago);
        let asked = format!("open for {peer} {client:?} {handle:?} {again} {carrier:?} {took_over} {repeated} {ago:?}");
        let (line, choice) = self.note(&opening.key, asked);
        let known = |attachments| Known { opened_at: "2025-06-01T00:00:00.000Z".into(), attachments, resumed: true };
        let (outcome, known) = match choice {
            0..=3 if *repeated => (Outcome::Unchanged, None),
            0..=5 => (Outcome::Recorded, None),
            6 => (Outcome::Recorded, Some(known(Some(7)))),
            7 => (Outcome::Recorded, Some(known(None))),
            8 => (Outcome::Nothing, None),
            9 => (Outcome::NotOver(seconds(9)), None),
            // Only what is tried again: the other has tests of its own.
            10 if !asked_ago.is_zero() => (Outcome::Gone, None),
            _ => (Outcome::Failed, None),
        };
        Report { line, outcome, known }
    }

    pub(crate) fn close(&mut self, closing: &Closing) -> Report {
        let Closing { reason, by_operator, last_evidence_ago, asked_ago, judged, .. } = closing;
        let asked = format!("close {reason:?} {by_operator} {last_evidence_ago:?} {asked_ago:?} {judged:?}");
        let (line, choice) = self.note(&closing.key, asked);
        let outcome = match choice {
            0..=4 => Outcome::Recorded,
            5 => Outcome::Nothing,
            6 | 7 => Outcome::NotOver(seconds(20)),
            8 => Outcome::NotOver(seconds(0)),
            9 => Outcome::Gone,
            _ => Outcome::Failed,
        };
        Report { line, outcome, known: None }
    }

    pub(crate) fn seen(&mut self, seen: &Seen) -> bool {
        self.note(&seen.key, format!("seen {:?} {:?}", seen.peer, seen.ago)).1 != 11
    }

    pub(crate) fn left(&mut self, left: &Left) -> bool {
        self.note(&left.key, format!("left {} {:?}", left.peer, left.ago)).1 != 12
    }

    fn note(&mut self, key: &EpisodeKey, asked: String) -> (String, u8) {
        let calls = self.calls.entry(key.to_string()).or_default();
        let line = format!("{} {asked}", calls.len());
        calls.push(asked);
        let at = (calls.len() * 7 + key.external_id.as_str().len()) % self.plan.len();
        (line, self.plan[at])
    }
}

struct Driver(Mutex<Repository>);

impl EpisodeDriver for Driver {
    fn open(&self, opening: &Opening) -> Report {
        self.0.lock().unwrap().open(opening)
    }

    fn close(&self, closing: &Closing) -> Report {
        self.0.lock().unwrap().close(closing)
    }

    fn seen(&self, seen: &Seen) -> bool {
        self.0.lock().unwrap().seen(seen)
    }

    fn left(&self, left: &Left) -> bool {
        self.0.lock().unwrap().left(left)
    }
}

fn key(number: usize) -> EpisodeKey {
    let provider = ["generic", "codex"][number % 2];
    EpisodeKey::new(provider, &"x".repeat(number + 1)).unwrap()
}

/// The board, the model, and what both stand on.
struct Pair {
    clock: Arc<ManualClock>,
    driver: Arc<Driver>,
    board: EpisodeBoard,
    naive: Naive,
    peers: Vec<Peer>,
}

impl Pair {
    fn new(plan: Vec<u8>) -> Self {
        let clock = Arc::new(ManualClock::default());
        let repository = Repository { plan, ..Repository::default() };
        let driver = Arc::new(Driver(Mutex::new(repository.clone())));
        let board = EpisodeBoard::with(BoardOptions {
            driver: Arc::clone(&driver) as _,
            clock: Arc::clone(&clock) as _,
            limits: LIMITS,
            run: Arc::new(Inline),
        });
        let peers = PeerBoard::with_clock(Arc::clone(&clock) as _);
        let transports = [Transport::Stdio, Transport::Http, Transport::Handle, Transport::Http];
        let peers = transports.map(|transport| peers.attach(transport)).into();
        Self { clock, driver, board, naive: Naive::new(repository), peers }
    }

    /// Lets it happen to both and compares what they answer.
    fn take(&mut self, step: Step) -> Result<(), TestCaseError> {
        let now = self.clock.now();
        let (board, naive, peers) = (&self.board, &mut self.naive, &self.peers);
        match step {
            Step::Attach(peer, number)
            | Step::AttachWithHandle(peer, number)
            | Step::AttachAgain(peer, number)
            | Step::Return(peer, number, _) => {
                // Two of the peers have none.
                let own = [Some("c0"), Some("c1"), None, None][peer];
                let carrier = if let Step::Return(_, _, carrier) = step {
                    Some(["c0", "c1", "c2", "c3"][carrier])
                } else {
                    own.filter(|_| !matches!(step, Step::AttachAgain(..)))
                };
                let key = key(number);
                let client = (number == 1).then_some("client 1.0");
                let handle = now.awake.as_secs().to_string();
                let request = AttachRequest {
                    peer: &peers[peer],
                    external_id: key.external_id.as_str(),
                    provider: key.provider.as_str(),
                    client,
                    handle: matches!(step, Step::AttachWithHandle(..)).then_some(&*handle),
                    again: matches!(step, Step::AttachAgain(..) | Step::Return(..)),
                    carrier,
                };
                let expected = naive.attach(&request, &key, now);
                prop_assert_eq!(board.attach_with(request), expected);
            }
            Step::Hold(peer) => {
                board.hold(&peers[peer]);
                naive.hold(peers[peer].id(), now);
            }
            Step::Release(peer) => {
                board.release(&peers[peer]);
                naive.release(peers[peer].id(), now);
            }
            Step::Carry(peer) => {
                board.carry(&peers[peer]);
                naive.carry(peers[peer].id());
            }
            Step::PutDown(peer) => {
                board.put_down(&peers[peer]);
                naive.put_down(peers[peer].id(), now);
            }
            Step::Touch(peer) => prop_assert_eq!(board.touch(&peers[peer]), naive.touch(peers[peer].id(), now)),
            Step::Detach(peer) => prop_assert_eq!(board.detach(&peers[peer]), naive.detach(peers[peer].id(), now)),
            Step::Finish(peer, number) => {
                let key = number.map(key);
                let external_id = key.as_ref().map(|key| key.external_id.as_str());
                let provider = key.as_ref().map_or("generic", |key| key.provider.as_str());
                let expected = naive.finish(peers[peer].id(), key.as_ref(), now);
                prop_assert_eq!(board.finish(&peers[peer], external_id, provider), expected);
            }
            Step::Close(number, reason) => {
                let expected = naive.close(&key(number), reason, true, now);
                prop_assert_eq!(board.close(key(number), reason), expected);
            }
            Step::CloseAll(reason) => {
                prop_assert_eq!(sorted(board.close_all(reason)), sorted(naive.close_all(reason, now)));
            }
            Step::Reap => prop_assert_eq!(sorted(board.reap()), sorted(naive.reap(now))),
            Step::Advance(by) => self.clock.advance(seconds(by)),
            Step::JumpWall(by) => self.clock.jump_wall(by),
            Step::Excuse(gap) => {
                board.excuse(seconds(gap));
                naive.excuse(seconds(gap), now);
            }
            Step::Adopt(number, silent, waiting) => {
                let adopted = Adopted {
                    key: key(number),
                    opened_at: "2024-01-01T00:00:00.000Z".into(),
                    attachments: 2,
                    silent_for: seconds(silent),
                    waiting_for: seconds(waiting),
                    line: "adopted".into(),
                };
                naive.adopt(adopted.clone(), now);
                board.adopt(adopted);
            }
        }
        Ok(())
    }

    /// Compares all that can be seen of both.
    fn compare(&self) -> Result<(), TestCaseError> {
        let now = self.clock.now();
        prop_assert_eq!(self.board.list(), self.naive.list(now));
        for peer in &self.peers {
            prop_assert_eq!(self.board.of_peer(peer), self.naive.of_peer(peer.id(), now));
        }
        prop_assert_eq!(self.board.next_due(), self.naive.next_due());
        prop_assert_eq!(&*self.driver.0.lock().unwrap(), self.naive.repository());
        prop_assert!(self.board.settle(seconds(0)));
        Ok(())
    }
}

fn sorted<T: std::fmt::Debug>(mut all: Vec<T>) -> Vec<T> {
    all.sort_by_key(|one| format!("{one:?}"));
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_board_answers_as_the_naive_model_does(
        plan in prop::collection::vec(0_u8..13, 1..12),
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let mut pair = Pair::new(plan);
        for step in steps {
            pair.take(step)?;
            pair.compare()?;
        }
    }
}
