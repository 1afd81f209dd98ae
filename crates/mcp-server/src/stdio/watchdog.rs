//! TERM, INT and HUP: they end the loop, and where something hangs they end the process.
//!
//! The loop cannot watch over itself: it may be the one that hangs, in a driver or in a terminal that takes no output. So a
//! thread of its own receives the signals, tells the loop, and waits for it to be done, but not for ever.

use std::io::{self, PipeReader, PipeWriter, Write, pipe};
use std::os::fd::{AsFd, BorrowedFd};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use signal_hook::SigId;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level;

/// With what the process ends where something hangs.
const STUCK: i32 = 1;

/// Watches until it is dropped.
#[derive(Debug)]
pub(crate) struct Watchdog {
    stop: Option<PipeReader>,
    signals: Vec<SigId>,
    /// Closed on drop, which is how the thread learns that all is done.
    _done: PipeWriter,
}

impl Watchdog {
    /// Begins to receive signals; `patience` is how long the loop may take once one came.
    ///
    /// # Errors
    /// The operating system's, for want of descriptors or threads.
    pub(crate) fn install(patience: Duration) -> io::Result<Self> {
        let (receive, signal) = pipe()?;
        let mut watchdog = Self::start(receive, patience, exit)?;
        for number in [SIGTERM, SIGINT, SIGHUP] {
            watchdog.signals.push(low_level::pipe::register(number, signal.try_clone()?)?);
        }
        Ok(watchdog)
    }

    /// Waits on a thread for a byte from `signal`.
    fn start(signal: PipeReader, patience: Duration, exit: impl FnOnce(i32) + Send + 'static) -> io::Result<Self> {
        let ((stop, mut tell), (done, hold)) = (pipe()?, pipe()?);
        thread::Builder::new().name("watchdog".into()).spawn(move || {
            // Ready is either end: a byte, or nobody left who could send one.
            if ready(&[done.as_fd(), signal.as_fd()], None) == Some(1) {
                // Nobody may be listening any more; then there is nobody to tell.
                let _ = tell.write_all(b"!");
                if ready(&[done.as_fd()], Some(patience)).is_none() {
                    exit(STUCK);
                }
            }
        })?;
        Ok(Self { stop: Some(stop), signals: Vec::new(), _done: hold })
    }

    /// Becomes readable when the loop shall end; to be taken once.
    pub(crate) fn stop(&mut self) -> Option<PipeReader> {
        self.stop.take()
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        for id in self.signals.drain(..) {
            low_level::unregister(id);
        }
    }
}

/// Waits until one of `fds` is readable or closed and says which; `None` when the time is over.
fn ready(fds: &[BorrowedFd<'_>], patience: Option<Duration>) -> Option<usize> {
    let patience = patience.and_then(|time| time.try_into().ok());
    let mut polled: Vec<_> = fds.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
    while rustix::event::poll(&mut polled, patience.as_ref()) == Err(rustix::io::Errno::INTR) {}
    polled.iter().position(|fd| !fd.revents().is_empty())
}

/// Ends this process with that code once the time is over, whatever hangs in it then.
pub fn exit_within(patience: Duration, code: i32) {
    if patience.is_zero() {
        exit(code);
    }
    // Without the thread only what hangs is not ended.
    let _ = thread::Builder::new().name("patience".into()).spawn(move || {
        thread::sleep(patience);
        exit(code);
    });
}

#[expect(clippy::exit, reason = "the loop hangs and cannot return; a process that ignores signals would be an orphan")]
fn exit(code: i32) {
    std::process::exit(code);
}

#[cfg(test)]
mod tests;
