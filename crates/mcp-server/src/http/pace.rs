//! How much one peer may ask for at once and per second, so that none takes the server from the others.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use majordomus_capability::{Code, Refusal};

/// How much one peer may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PaceLimits {
    /// Calls that run at the same time.
    pub at_once: u32,
    /// Calls per second, in the long run.
    pub per_second: u32,
    /// Calls that may come at once after a quiet time.
    pub burst: u32,
}

impl Default for PaceLimits {
    fn default() -> Self {
        Self { at_once: 32, per_second: 1_000, burst: 2_000 }
    }
}

/// What one peer has asked for lately.
#[derive(Debug)]
pub(super) struct Pace {
    running: AtomicU32,
    allowance: Mutex<Allowance>,
}

#[derive(Debug)]
struct Allowance {
    /// In thousandths of a call.
    left: u64,
    /// Until when it has grown, in time awake.
    at: Duration,
}

/// A call that runs, until it is dropped.
#[derive(Debug)]
pub(super) struct Running(Arc<Pace>);

impl Pace {
    pub(super) fn new(limits: PaceLimits, now: Duration) -> Arc<Self> {
        let allowance = Allowance { left: u64::from(limits.burst) * 1_000, at: now };
        Arc::new(Self { running: AtomicU32::new(0), allowance: Mutex::new(allowance) })
    }

    /// Begins what counts as that many calls.
    ///
    /// # Errors
    /// [`Code::Unavailable`] where too many run already, or too many came within a second.
    pub(super) fn begin(self: &Arc<Self>, limits: PaceLimits, now: Duration, calls: u32) -> Result<Running, Refusal> {
        let running = Running(Arc::clone(self));
        if self.running.fetch_add(1, Ordering::AcqRel) >= limits.at_once {
            return Err(too_much(format!("this caller has {} calls running already", limits.at_once)));
        }
        let mut allowance = self.allowance.lock().unwrap_or_else(PoisonError::into_inner);
        let grown = now.saturating_sub(allowance.at).as_millis().saturating_mul(u128::from(limits.per_second));
        let most = u64::from(limits.burst) * 1_000;
        allowance.left = allowance.left.saturating_add(u64::try_from(grown).unwrap_or(most)).min(most);
        // A part of a millisecond is kept for the next time.
        if grown > 0 {
            allowance.at = now;
        }
        // One that is larger than any burst still has its turn after a quiet time.
        let cost = (u64::from(calls) * 1_000).min(most);
        if allowance.left < cost {
            return Err(too_much(format!("this caller has made more than {} calls per second", limits.per_second)));
        }
        allowance.left -= cost;
        drop(allowance);
        Ok(running)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::AcqRel);
    }
}

fn too_much(what: String) -> Refusal {
    Refusal::new(Code::Unavailable, what).hint("wait for answers, and call again in a second")
}

#[cfg(test)]
mod tests;
