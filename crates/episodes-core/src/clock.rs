//! The only module of this crate that reads a clock.

use std::fmt;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// One reading of both clocks.
///
/// Ages and deadlines use `awake`, which stands still while the machine sleeps and never jumps; `wall_ms` is only
/// ever shown to people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    /// Time awake since an arbitrary origin that is fixed for the life of the process.
    pub awake: Duration,
    /// Milliseconds since the Unix epoch, as the machine's wall clock says.
    pub wall_ms: i64,
}

impl Moment {
    /// Returns how long before `self` the moment `earlier` was, or zero if it was not before.
    #[must_use]
    pub fn since(self, earlier: Duration) -> Duration {
        self.awake.saturating_sub(earlier)
    }
}

/// Tells what time it is.
pub trait Clock: Send + Sync {
    /// Reads both clocks.
    fn now(&self) -> Moment;

    /// Reads only the time awake: for what nobody is shown the wall clock of, such as every message.
    fn awake(&self) -> Duration {
        self.now().awake
    }
}

/// The machine's own clocks: `CLOCK_MONOTONIC` on Linux, `CLOCK_UPTIME_RAW` on macOS, both through [`Instant`].
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[allow(clippy::disallowed_methods, reason = "the one place that reads a clock")]
    fn now(&self) -> Moment {
        let wall = match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(after) => i64::try_from(after.as_millis()).unwrap_or(i64::MAX),
            Err(before) => i64::try_from(before.duration().as_millis()).map_or(i64::MIN, |ms| -ms),
        };
        Moment { awake: self.awake(), wall_ms: wall }
    }

    #[allow(clippy::disallowed_methods, reason = "the one place that reads a clock")]
    fn awake(&self) -> Duration {
        static ORIGIN: OnceLock<Instant> = OnceLock::new();
        ORIGIN.get_or_init(Instant::now).elapsed()
    }
}

/// A clock that stands still until it is moved: time for tests and simulations.
///
/// ```
/// use std::time::Duration;
/// use majordomus_episodes_core::clock::{Clock, ManualClock};
///
/// let clock = ManualClock::default();
/// let before = clock.now();
/// clock.advance(Duration::from_secs(90));
/// assert_eq!(clock.now().since(before.awake), Duration::from_secs(90));
/// ```
pub struct ManualClock(Mutex<Moment>);

impl ManualClock {
    /// Starts at `moment`.
    #[must_use]
    pub fn at(moment: Moment) -> Self {
        Self(Mutex::new(moment))
    }

    /// Moves both clocks forward.
    pub fn advance(&self, by: Duration) {
        self.change(|moment| {
            moment.awake += by;
            moment.wall_ms = moment.wall_ms.saturating_add(i64::try_from(by.as_millis()).unwrap_or(i64::MAX));
        });
    }

    /// Moves only the wall clock, as a suspended machine or somebody's hand does; `awake` stands still.
    pub fn jump_wall(&self, by_ms: i64) {
        self.change(|moment| moment.wall_ms = moment.wall_ms.saturating_add(by_ms));
    }

    fn change(&self, change: impl FnOnce(&mut Moment)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Default for ManualClock {
    /// Starts at 2026-01-01T00:00:00Z, an hour awake.
    fn default() -> Self {
        Self::at(Moment { awake: Duration::from_secs(3600), wall_ms: 1_767_225_600_000 })
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Moment {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for ManualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ManualClock").field(&self.now()).finish()
    }
}

/// Writes a wall time for people: RFC 3339, UTC, milliseconds, `Z`. A time that no calendar has becomes the nearest.
pub(crate) fn rfc3339(wall_ms: i64) -> String {
    let nearest = if wall_ms < 0 { jiff::Timestamp::MIN } else { jiff::Timestamp::MAX };
    let time = jiff::Timestamp::from_millisecond(wall_ms).unwrap_or(nearest);
    format!("{time:.3}")
}
