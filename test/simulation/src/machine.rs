//! The one machine: its wall clock, the time it has been awake, and which boot that is.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use majordomus_episodes_core::clock::{Clock as BoardClock, Moment};
use majordomus_records::clock::{Clock as StampClock, Stamp};

/// How long a machine has been awake when something of ours runs first.
const BOOTING: u64 = 20_000;

/// The machine's clocks. Clones are the same machine.
#[derive(Clone)]
pub(crate) struct Machine(Arc<Mutex<Time>>);

struct Time {
    /// Milliseconds since the beginning, whatever clocks say.
    truly: i64,
    /// When that was at the last boot.
    booted: i64,
    wall_ms: i64,
    boot: u64,
    up_ms: u64,
    asleep_ms: u64,
}

impl Machine {
    pub(crate) fn new() -> Self {
        let time =
            Time { truly: 0, booted: -1_000_000, wall_ms: 1_800_000_000_000, boot: 1, up_ms: 1_000_000, asleep_ms: 0 };
        Self(Arc::new(Mutex::new(time)))
    }

    fn time(&self) -> MutexGuard<'_, Time> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Time passes, and the machine is awake.
    pub(crate) fn advance(&self, by: Duration) {
        let mut time = self.time();
        time.truly += signed(by);
        time.wall_ms += signed(by);
        time.up_ms += unsigned(by);
    }

    /// Time passes, and the machine sleeps: only the wall clock goes on.
    pub(crate) fn sleep(&self, by: Duration) {
        let mut time = self.time();
        time.truly += signed(by);
        time.wall_ms += signed(by);
        time.asleep_ms += unsigned(by);
    }

    /// Somebody sets the wall clock.
    pub(crate) fn jump(&self, by_ms: i64) {
        self.time().wall_ms += by_ms;
    }

    /// The machine was off for a while, its wall clock may have been set meanwhile, and boots.
    pub(crate) fn boot(&self, off: Duration, jump_ms: i64) {
        let mut time = self.time();
        time.truly += signed(off);
        time.booted = time.truly - i64::try_from(BOOTING).unwrap_or(0);
        time.wall_ms += signed(off) + jump_ms;
        time.boot += 1;
        (time.up_ms, time.asleep_ms) = (BOOTING, 0);
    }

    /// Which boot this is, and when it was by a clock that nobody has.
    pub(crate) fn booted(&self) -> (u64, i64) {
        let time = self.time();
        (time.boot, time.booted)
    }

    pub(crate) fn awake(&self) -> Duration {
        Duration::from_millis(self.time().up_ms)
    }

    pub(crate) fn stamp(&self) -> Stamp {
        StampClock::now(self)
    }
}

impl StampClock for Machine {
    fn now(&self) -> Stamp {
        let time = self.time();
        Stamp {
            wall_ms: time.wall_ms,
            boot: format!("{:016x}", time.boot),
            up_ms: time.up_ms,
            asleep_ms: time.asleep_ms,
        }
    }
}

impl BoardClock for Machine {
    fn now(&self) -> Moment {
        let time = self.time();
        Moment { awake: Duration::from_millis(time.up_ms), wall_ms: time.wall_ms }
    }
}

fn signed(by: Duration) -> i64 {
    i64::try_from(by.as_millis()).unwrap_or(i64::MAX)
}

fn unsigned(by: Duration) -> u64 {
    u64::try_from(by.as_millis()).unwrap_or(u64::MAX)
}
