//! The board alone: touch, reap and list at 1,000 and at 1,000,000 episodes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Result, ensure};
use majordomus_episodes_core::board::{BoardOptions, Touch};
use majordomus_episodes_core::clock::{Clock, Moment, SystemClock};
use majordomus_episodes_core::driver::{Closing, Opening, Outcome, Report as Answer};
use majordomus_episodes_core::peers::{Peer, PeerBoard, Transport};
use majordomus_episodes_core::{EpisodeBoard, EpisodeDriver, REATTACH_GRACE};

use crate::bed::Bed;
use crate::pairs::{Effort, in_turns, seconds};
use crate::table::Report;

const FEW: u32 = 1_000;
const MANY: u32 = 1_000_000;
/// How many touches are timed together.
const BATCH: u32 = 10_000;

pub(super) fn measure(_bed: &Bed, effort: Effort, report: &mut Report) -> Result<()> {
    let (mut many, mut few) = (Crowd::seat(MANY)?, Crowd::seat(FEW)?);
    // The first touch since the driver was told does a little more; without this it were the rule among many only.
    many.touch_all()?;
    few.touch_all()?;
    // A server's connections at work are a few of many; anybody at random is a cache miss for each touch.
    let paired = in_turns(effort.rounds(120), || many.touch(FEW), || few.touch(FEW))?;
    report.row("touch by 1,000 peers, 1,000,000 episodes", "touch by 1,000 peers, 1,000 episodes", paired, 1.5);
    let paired = in_turns(effort.rounds(120), || many.touch(MANY), || few.touch(FEW))?;
    report.row("touch by anybody, 1,000,000 episodes", "touch by anybody, 1,000 episodes", paired, 1.5);
    let paired = in_turns(effort.rounds(120), || many.reap(), || few.reap())?;
    report.row("reap one expired among 1,000,000", "reap one expired among 1,000", paired, None);
    let small = few.board.clone();
    let paired = in_turns(effort.rounds(9), || many.list(&small), || few.list(&small))?;
    report.row("list per episode, 1,000,000", "list per episode, 1,000", paired, None);
    Ok(())
}

/// A board on which everybody holds an episode.
struct Crowd {
    board: EpisodeBoard,
    everybody: PeerBoard,
    peers: Vec<Peer>,
    clock: Arc<Moved>,
    random: u64,
    next: u32,
}

impl Crowd {
    fn seat(count: u32) -> Result<Self> {
        let clock = Arc::new(Moved::default());
        let options = BoardOptions { driver: Arc::new(Willing), clock: clock.clone(), ..BoardOptions::default() };
        let board = EpisodeBoard::with(options);
        let everybody = PeerBoard::new();
        let mut crowd = Self { board, everybody, peers: Vec::new(), clock, random: 0x9e37_79b9_7f4a_7c15, next: 0 };
        for _ in 0..count {
            let peer = crowd.newcomer()?;
            crowd.peers.push(peer);
        }
        Ok(crowd)
    }

    fn newcomer(&mut self) -> Result<Peer> {
        self.next += 1;
        // Held by its process: over a day passes here, after which one that is silent otherwise would be over too.
        let peer = self.everybody.attach(Transport::Stdio);
        let (episode, resumed) = self.board.attach(&peer, &format!("thread-{}", self.next), "generic");
        ensure!(episode.peer == Some(peer.id()) && !resumed, "an attach gave no episode: {}", episode.repository);
        Ok(peer)
    }

    fn touch_all(&self) -> Result<()> {
        let held = self.peers.iter().filter(|peer| self.board.touch(peer) == Touch::Held).count();
        ensure!(held == self.peers.len(), "somebody held nothing");
        Ok(())
    }

    /// Seconds of one touch by somebody random of the first `among`. Who it is was picked before, so that what is timed is the board and
    /// not this list.
    fn touch(&mut self, among: u32) -> Result<f64> {
        let chosen: Vec<Peer> = (0..BATCH)
            .map(|_| {
                let index = self.random_index() % among as usize;
                self.peers[index].clone()
            })
            .collect();
        let (seconds, held) = seconds(|| chosen.iter().filter(|peer| self.board.touch(peer) == Touch::Held).count());
        ensure!(held == chosen.len(), "somebody held nothing");
        Ok(seconds / f64::from(BATCH))
    }

    /// Seconds of a reap with one episode past its grace and nothing else to do.
    fn reap(&mut self) -> Result<f64> {
        let lost = self.newcomer()?;
        self.board.detach(&lost);
        self.everybody.detach(&lost);
        self.clock.forward(REATTACH_GRACE - Duration::from_secs(1));
        // Tells of what was touched before, so that only the one episode is left to do.
        ensure!(self.board.reap().is_empty(), "something expired too early");
        self.clock.forward(Duration::from_secs(1));
        let (seconds, reaped) = seconds(|| self.board.reap());
        ensure!(reaped.len() == 1, "{} expired instead of one", reaped.len());
        Ok(seconds)
    }

    /// Seconds of a list, per episode. A small list comes first: it pays what the allocator still owes for a large one
    /// that was dropped before.
    fn list(&self, small: &EpisodeBoard) -> Result<f64> {
        drop(small.list());
        let (seconds, listed) = seconds(|| self.board.list());
        let count = u32::try_from(listed.len())?;
        ensure!(listed.len() == self.peers.len(), "{count} episodes instead of {}", self.peers.len());
        Ok(seconds / f64::from(count))
    }

    fn random_index(&mut self) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        usize::try_from(self.random % self.peers.len() as u64).unwrap_or(0)
    }
}

/// The machine's clock, which can be moved forward: what a reading costs stays in the measurement.
#[derive(Debug, Default)]
struct Moved(AtomicU64);

impl Moved {
    fn forward(&self, by: Duration) {
        self.0.fetch_add(u64::try_from(by.as_nanos()).unwrap_or(0), Ordering::Relaxed);
    }
}

impl Clock for Moved {
    fn now(&self) -> Moment {
        let moment = SystemClock.now();
        let by = Duration::from_nanos(self.0.load(Ordering::Relaxed));
        let by_ms = i64::try_from(by.as_millis()).unwrap_or(0);
        Moment { awake: moment.awake + by, wall_ms: moment.wall_ms + by_ms }
    }
}

/// A driver that has everything recorded at once, so that evidence is kept and told as it is with a repository.
struct Willing;

impl EpisodeDriver for Willing {
    fn open(&self, _opening: &Opening) -> Answer {
        Answer {
            line: "session s-20260102030405-0a1b2c3d opened at 2026-01-02T03:04:05.000Z (head 1234567)".into(),
            outcome: Outcome::Recorded,
            known: None,
        }
    }

    fn close(&self, _closing: &Closing) -> Answer {
        Answer { line: "episode closed (interrupted, reason expired)".into(), outcome: Outcome::Recorded, known: None }
    }
}
