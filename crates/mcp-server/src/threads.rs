//! Driver calls on threads of their own.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use majordomus_episodes_core::board::{Refused, Run};

/// How long a thread waits for another call before it ends.
const IDLE: Duration = Duration::from_secs(10);

type Call = Box<dyn FnOnce() + Send>;

/// Executes a board's driver calls on threads of their own; the board bounds how many run at once.
///
/// A thread that has done its call takes the next one: starting one costs about a sixth of the durable write that it is
/// for. A call that hangs keeps nobody else's thread. Clones share their threads.
#[derive(Clone, Default)]
pub struct Threads {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    work: Mutex<Work>,
    come: Condvar,
}

#[derive(Default)]
struct Work {
    calls: VecDeque<Call>,
    /// Threads that wait for a call; some may have been promised one that is in `calls`.
    idle: usize,
}

impl std::fmt::Debug for Threads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Threads").finish_non_exhaustive()
    }
}

impl Run for Threads {
    fn run(&self, call: Call) -> Result<(), Refused> {
        let mut work = self.shared.lock();
        if work.idle > work.calls.len() {
            work.calls.push_back(call);
            self.shared.come.notify_one();
            return Ok(());
        }
        drop(work);
        let shared = self.shared.clone();
        let spawned = thread::Builder::new().name("driver".into()).spawn(move || shared.serve(call));
        spawned.map(drop).map_err(|error| Refused(format!("no thread could be started: {error}")))
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Work> {
        // Nothing that could panic runs while it is locked.
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self, first: Call) {
        let mut next = Some(first);
        while let Some(call) = next {
            call();
            next = self.wait();
        }
    }

    fn wait(&self) -> Option<Call> {
        let mut work = self.lock();
        work.idle += 1;
        let waited = self.come.wait_timeout_while(work, IDLE, |work| work.calls.is_empty());
        let (mut work, _) = waited.unwrap_or_else(PoisonError::into_inner);
        work.idle -= 1;
        work.calls.pop_front()
    }
}

#[cfg(test)]
mod tests;
