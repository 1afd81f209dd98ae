//! One driver call under way: made outside the lock, waited for within limits, folded in whenever it returns.

use std::sync::{Arc, MutexGuard, OnceLock};
use std::time::Duration;

use crate::driver::{Outcome, Report};
use crate::ids::EpisodeKey;
use crate::machine::{Call, Completion, Machine, Ticket, Work};

use super::{BoardError, EpisodeBoard, Shared};

/// Where the answer of one call appears; it is set under the board's lock.
pub(super) type Flight = Arc<OnceLock<Completion>>;

/// How long a caller still waits for its turn at a key.
pub(super) struct Patience {
    until: Duration,
}

/// Sees to it that a call that has begun is folded in exactly once, whether it returns, panics or is never made.
struct Underway {
    shared: Arc<Shared>,
    ticket: Option<Ticket>,
    flight: Flight,
    asked: bool,
}

impl Underway {
    fn make(mut self, work: &Work) {
        self.asked = true;
        let report = work.ask(self.shared.options.driver.as_ref());
        self.fold(report);
    }

    fn fold(&mut self, report: Report) {
        let Some(ticket) = self.ticket.take() else { return };
        let now = self.shared.now();
        let mut machine = self.shared.lock();
        let completion = machine.complete(ticket, report, now);
        self.flight.set(completion).expect("a call is folded in once");
        drop(machine);
        self.shared.answered.notify_all();
    }
}

impl Drop for Underway {
    fn drop(&mut self) {
        let why = if self.asked { "the driver panicked" } else { "the call could not be made" };
        self.fold(Report { line: format!("no episode was recorded: {why}"), outcome: Outcome::Failed, known: None });
    }
}

impl EpisodeBoard {
    /// Makes the call without waiting for it.
    pub(super) fn launch(&self, call: Call) -> Flight {
        // A refusal drops the call, which folds a failure in.
        self.hand_over(call).unwrap_or_else(|(flight, _)| flight)
    }

    /// Makes the call and waits for its answer.
    pub(super) fn ask(&self, call: Call) -> Result<Completion, BoardError> {
        let flight = self.hand_over(call).map_err(|(_, why)| BoardError::Unavailable { why })?;
        let limit = self.shared.options.limits.driver_time;
        self.shared.wait(self.shared.lock(), limit, |_| flight.get().is_none());
        flight.get().cloned().ok_or_else(|| BoardError::Unavailable {
            why: format!("the repository has not answered within {limit:?}; its answer will be shown once it comes"),
        })
    }

    fn hand_over(&self, call: Call) -> Result<Flight, (Flight, String)> {
        let flight = Flight::default();
        let underway = Underway {
            shared: Arc::clone(&self.shared),
            ticket: Some(call.ticket),
            flight: Arc::clone(&flight),
            asked: false,
        };
        let work = call.work;
        match self.shared.options.run.run(Box::new(move || underway.make(&work))) {
            Ok(()) => Ok(flight),
            Err(refused) => Err((flight, refused.0)),
        }
    }

    /// How long a caller waits for its turn, all in all.
    pub(super) fn patience(&self) -> Patience {
        Patience { until: self.shared.now().awake.saturating_add(self.shared.options.limits.driver_time) }
    }

    /// Waits for the call that runs for `key`.
    pub(super) fn wait_for_key(
        &self,
        machine: MutexGuard<'_, Machine>,
        key: &EpisodeKey,
        patience: &Patience,
    ) -> Result<(), BoardError> {
        let left = patience.until.saturating_sub(self.shared.now().awake);
        if self.shared.wait(machine, left, |machine| machine.is_busy(key)) {
            let why = format!("another call for {key} is still waiting for the repository; try again shortly");
            return Err(BoardError::Unavailable { why });
        }
        Ok(())
    }
}
