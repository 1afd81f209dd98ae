//! What a board is built from.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::{Clock, SystemClock};
use crate::driver::{EpisodeDriver, NullDriver};
use crate::{HANDLE_IDLE, REATTACH_GRACE};

/// How long and how much the board waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long a detached episode waits for its client, and how long one without a hold is shown as open.
    pub grace: Duration,
    /// How long an episode without a hold may be silent, where nothing was seen to go; never less than the grace.
    pub handle_idle: Duration,
    /// How long after the loss of its last stream a silent episode is still shown as open, of its grace.
    pub stream_patience: Duration,
    /// How long a caller waits for one driver call, or for its turn at an episode's key.
    pub driver_time: Duration,
    /// How many driver calls may run at once.
    pub driver_calls: usize,
    /// The least time between two reports of evidence for one episode.
    pub seen_every: Duration,
    /// How long after a failed driver call it is tried again.
    pub retry_every: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            grace: REATTACH_GRACE,
            handle_idle: HANDLE_IDLE,
            stream_patience: Duration::from_secs(90),
            driver_time: Duration::from_secs(5),
            driver_calls: 16,
            seen_every: Duration::from_secs(30),
            retry_every: Duration::from_secs(10),
        }
    }
}

/// Executes driver calls: at once, on a thread, on a pool.
///
/// The board never calls it under its lock. A server supplies one that spawns a thread, so that a driver that hangs
/// costs its caller no more than [`Limits::driver_time`].
pub trait Run: Send + Sync {
    /// Executes `call`, now or soon.
    ///
    /// # Errors
    /// [`Refused`] where it will never be executed; `call` is dropped, and the board counts that as a failed call.
    fn run(&self, call: Box<dyn FnOnce() + Send>) -> Result<(), Refused>;
}

/// Says that a call will not be executed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refused(pub String);

/// Executes every call at once on the caller's thread, so that a slow driver is waited for without a limit.
#[derive(Clone, Copy, Debug, Default)]
pub struct Inline;

impl Run for Inline {
    fn run(&self, call: Box<dyn FnOnce() + Send>) -> Result<(), Refused> {
        call();
        Ok(())
    }
}

/// What a board is built from; the default records nothing, reads the machine's clock and calls inline.
#[derive(Clone)]
pub struct BoardOptions {
    /// What opens and closes the repository's own episode.
    pub driver: Arc<dyn EpisodeDriver>,
    /// What tells the time.
    pub clock: Arc<dyn Clock>,
    /// How long and how much the board waits.
    pub limits: Limits,
    /// What executes driver calls.
    pub run: Arc<dyn Run>,
}

impl Default for BoardOptions {
    fn default() -> Self {
        Self {
            driver: Arc::new(NullDriver),
            clock: Arc::new(SystemClock),
            limits: Limits::default(),
            run: Arc::new(Inline),
        }
    }
}

impl fmt::Debug for BoardOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoardOptions").field("limits", &self.limits).finish_non_exhaustive()
    }
}
