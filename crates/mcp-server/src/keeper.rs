//! Whoever acts on a board's deadlines where no loop of a single connection does.

use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{cmp, io};

use majordomus_capability::Shared;
use majordomus_episodes_core::clock::Clock;

/// The longest time between two looks: a call can bring a deadline forward to ten seconds from then.
const LOOK: Duration = Duration::from_secs(5);
/// The least time between two looks at a deadline that stays due, such as one whose driver call still runs.
const BREATH: Duration = Duration::from_millis(20);
/// How much later than asked a wake-up means that the process itself was stopped.
const LATE: Duration = Duration::from_secs(60);

/// Acts on the deadlines of a board, on a thread of its own, until it is dropped.
pub struct Keeper {
    leave: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    /// Begins; `chores` is done about every five seconds besides.
    ///
    /// # Errors
    /// The operating system's, for want of a thread.
    pub fn start(shared: Arc<Shared>, clock: Arc<dyn Clock>, chores: impl Fn() + Send + 'static) -> io::Result<Self> {
        let (leave, left) = channel::<()>();
        let thread = thread::Builder::new().name("keeper".into()).spawn(move || {
            let mut tidied = Duration::ZERO;
            loop {
                let before = clock.now().awake;
                let due = shared.board.next_due().map_or(LOOK, |due| cmp::min(due.saturating_sub(before), LOOK));
                let asked = cmp::max(due, BREATH);
                if left.recv_timeout(asked) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
                let gap = clock.now().awake.saturating_sub(before).saturating_sub(asked);
                if gap > LATE {
                    // This process could not hear its clients; that is no silence of theirs.
                    shared.board.excuse(gap);
                }
                shared.board.reap();
                // These look at all that there is, so a deadline that stays due must not bring them about.
                if before.saturating_sub(tidied) >= LOOK {
                    tidied = before;
                    shared.handles.tidy(&shared.board, &shared.peers);
                    chores();
                }
            }
        })?;
        Ok(Self { leave: Some(leave), thread: Some(thread) })
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.leave.take();
        if let Some(thread) = self.thread.take() {
            // It may be waiting for a driver; the board's own limit ends that.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Keeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keeper").finish_non_exhaustive()
    }
}
