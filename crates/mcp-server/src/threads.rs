//! Driver calls on threads of their own.

use std::thread;

use majordomus_episodes_core::board::{Refused, Run};

/// Executes each of a board's driver calls on a thread of its own; the board bounds how many run at once.
///
/// A call takes at least a durable write, beside which starting a thread costs little, and a call that hangs keeps nobody
/// else's thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Threads;

impl Run for Threads {
    fn run(&self, call: Box<dyn FnOnce() + Send>) -> Result<(), Refused> {
        let spawned = thread::Builder::new().name("driver".into()).spawn(call);
        spawned.map(drop).map_err(|error| Refused(format!("no thread could be started: {error}")))
    }
}

#[cfg(test)]
mod tests;
