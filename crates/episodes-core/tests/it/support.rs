//! Drivers that do as they are told, and calls on threads of their own.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use majordomus_episodes_core::board::{BoardOptions, Inline, Limits, Refused, Run};
use majordomus_episodes_core::clock::ManualClock;
use majordomus_episodes_core::driver::{Closing, EpisodeDriver, Known, Left, Opening, Outcome, Report, Seen};
use majordomus_episodes_core::peers::PeerBoard;
use majordomus_episodes_core::{EpisodeBoard, EpisodeKey};

/// Longer than any test takes; only a failing one waits for it.
pub(crate) const LONG: Duration = Duration::from_secs(20);

pub(crate) const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(crate) fn report(line: &str, outcome: Outcome) -> Report {
    Report { line: line.into(), outcome, known: None }
}

/// Answers in the order in which it was told to, then `Recorded`; keeps what it was asked.
#[derive(Default)]
pub(crate) struct Script {
    answers: Mutex<VecDeque<Report>>,
    asked: Mutex<Vec<String>>,
    /// How long ago each opening and each end was first asked for.
    asked_ago: Mutex<Vec<Duration>>,
    /// What is another process's.
    taken: Mutex<Vec<EpisodeKey>>,
}

impl Script {
    pub(crate) fn answer(&self, line: &str, outcome: Outcome) {
        self.answers.lock().unwrap().push_back(report(line, outcome));
    }

    pub(crate) fn answer_known(&self, line: &str, known: Known) {
        let report = Report { known: Some(known), ..report(line, Outcome::Recorded) };
        self.answers.lock().unwrap().push_back(report);
    }

    /// What it was asked since the last time.
    pub(crate) fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }

    /// How long before each opening and each end since the last time it was first asked for, in seconds.
    pub(crate) fn asked_ago(&self) -> Vec<u64> {
        let ago = std::mem::take(&mut *self.asked_ago.lock().unwrap());
        ago.iter().map(Duration::as_secs).collect()
    }

    /// Says from now on of what it is told of that episode that it is another process's.
    pub(crate) fn take_away(&self, key: EpisodeKey) {
        self.taken.lock().unwrap().push(key);
    }

    fn told(&self, key: &EpisodeKey, asked: String) -> bool {
        self.asked.lock().unwrap().push(asked);
        !self.taken.lock().unwrap().contains(key)
    }

    fn next(&self, asked: String) -> Report {
        let line = format!("{asked}: done");
        self.asked.lock().unwrap().push(asked);
        self.answers.lock().unwrap().pop_front().unwrap_or_else(|| report(&line, Outcome::Recorded))
    }
}

impl EpisodeDriver for Script {
    fn open(&self, opening: &Opening) -> Report {
        let handle = opening.handle.as_ref().map_or(String::new(), |handle| format!(" with {handle}"));
        let again = if opening.again { " again" } else { "" };
        let took_over = if opening.took_over { " taken over" } else { "" };
        let repeated = if opening.repeated { " once more" } else { "" };
        let carrier =
            opening.carrier.as_ref().map_or(String::new(), |carrier| format!(" by {carrier}, {:?} ago", opening.ago));
        let asked = format!("open {} for {}{handle}{again}{took_over}{repeated}{carrier}", opening.key, opening.peer);
        self.asked_ago.lock().unwrap().push(opening.asked_ago);
        if opening.repeated && self.answers.lock().unwrap().is_empty() {
            self.asked.lock().unwrap().push(asked);
            return report("it has not changed", Outcome::Unchanged);
        }
        self.next(asked)
    }

    fn close(&self, closing: &Closing) -> Report {
        let ago = closing.last_evidence_ago.map_or("unseen".into(), |ago| format!("{ago:?} ago"));
        let operator = if closing.by_operator { " by operator" } else { "" };
        let judged = closing.judged.map_or(String::new(), |judged| {
            let since = judged.since_loss.map_or(String::new(), |since| format!(", lost {since:?} ago"));
            format!(", judged {:?}{since}", judged.limit)
        });
        self.asked_ago.lock().unwrap().push(closing.asked_ago);
        self.next(format!("close {} {}{operator} {ago}{judged}", closing.key, closing.reason.as_str()))
    }

    fn seen(&self, seen: &Seen) -> bool {
        let for_nobody = if seen.peer.is_none() { " for nobody" } else { "" };
        self.told(&seen.key, format!("seen {} {:?} ago{for_nobody}", seen.key, seen.ago))
    }

    fn left(&self, left: &Left) -> bool {
        self.told(&left.key, format!("left {} by {} {:?} ago", left.key, left.peer, left.ago))
    }
}

/// A board on a clock that stands still, with a driver that does as it is told.
pub(crate) struct Stage {
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) script: Arc<Script>,
    pub(crate) peers: PeerBoard,
    pub(crate) board: EpisodeBoard,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let clock = Arc::new(ManualClock::default());
        let script = Arc::new(Script::default());
        let board = EpisodeBoard::with(BoardOptions {
            driver: Arc::clone(&script) as Arc<dyn EpisodeDriver>,
            clock: Arc::clone(&clock) as _,
            limits: Limits::default(),
            run: Arc::new(Inline),
        });
        Self { peers: PeerBoard::with_clock(Arc::clone(&clock) as _), clock, script, board }
    }

    pub(crate) fn wait(&self, by: u64) {
        self.clock.advance(seconds(by));
    }
}

/// One call that has reached the driver and waits there.
pub(crate) struct Held {
    pub(crate) asked: String,
    answer: Sender<Option<Report>>,
}

impl Held {
    /// Lets the call return.
    pub(crate) fn answer(self, line: &str, outcome: Outcome) {
        self.answer.send(Some(report(line, outcome))).unwrap();
    }

    /// Lets the call panic.
    pub(crate) fn panic(self) {
        self.answer.send(None).unwrap();
    }
}

/// Holds every call until the test lets it go.
pub(crate) struct Hanging(Mutex<Sender<Held>>);

impl Hanging {
    pub(crate) fn new() -> (Arc<Self>, Receiver<Held>) {
        let (calls, arrived) = channel();
        (Arc::new(Self(Mutex::new(calls))), arrived)
    }

    fn hang(&self, asked: String) -> Report {
        let (answer, wait) = channel();
        self.0.lock().unwrap().send(Held { asked, answer }).unwrap();
        wait.recv().unwrap().expect("the test lets this driver panic")
    }
}

impl EpisodeDriver for Hanging {
    fn open(&self, opening: &Opening) -> Report {
        self.hang(format!("open {}", opening.key))
    }

    fn close(&self, closing: &Closing) -> Report {
        self.hang(format!("close {} {}", closing.key, closing.reason.as_str()))
    }

    fn seen(&self, seen: &Seen) -> bool {
        self.hang(format!("seen {}", seen.key)).outcome != Outcome::Gone
    }

    fn left(&self, left: &Left) -> bool {
        self.hang(format!("left {}", left.key)).outcome != Outcome::Gone
    }
}

/// Gives each call a thread.
#[derive(Default)]
pub(crate) struct Threads;

impl Run for Threads {
    fn run(&self, call: Box<dyn FnOnce() + Send>) -> Result<(), Refused> {
        start(call);
        Ok(())
    }
}

#[allow(clippy::disallowed_methods, reason = "callers of the board are threads, and a hanging call needs its own")]
pub(crate) fn start<T: Send + 'static>(call: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    std::thread::spawn(call)
}
