//! A session over the standard streams of a process, from its first byte to its end.
//!
//! One loop and no runtime: it waits in `poll` for input, room for output, a signal or the board's next deadline, and for
//! nothing else. How real clients end a server is measured: some close the input, some send a signal with the input open
//! and kill within milliseconds. So whatever was answered is durable by then, all three ways do the same, and leaving
//! takes no write.

pub(crate) mod ends;
pub(crate) mod lines;
pub(crate) mod queue;
mod serve;
pub(crate) mod watchdog;

use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use majordomus_capability::Shared;
use majordomus_capability::project::mcp::Tools;
use majordomus_episodes_core::clock::{Clock, SystemClock};
use majordomus_records::caller::Caller;

use crate::protocol::Session;
use crate::sharing::host::Parting;

use watchdog::Watchdog;

pub use watchdog::exit_within;

/// What a session is served with.
#[non_exhaustive]
pub struct StdioOptions {
    /// The boards, and what calls to them have in common.
    pub shared: Arc<Shared>,
    /// What can be called.
    pub tools: Arc<Tools>,
    /// Whether the loop acts on the board's deadlines; not where a [`Keeper`](crate::Keeper) does.
    pub judges: bool,
    /// The clock of both boards.
    pub clock: Arc<dyn Clock>,
    /// Takes one line for a person, rarely; nothing by default.
    pub diagnostics: Box<dyn Fn(&str) + Send + Sync>,
    /// How much and how long.
    pub limits: Limits,
    /// Who is at the other end.
    pub caller: Option<Caller>,
    /// The session, where it has begun already.
    pub session: Option<Session>,
    /// Where it stands why `stop` ends the session, if not because its client is to go.
    pub parting: Option<Arc<Parting>>,
}

impl StdioOptions {
    /// Serves what is shared, everything else by default.
    #[must_use]
    pub fn new(shared: Arc<Shared>) -> Self {
        Self {
            tools: Arc::new(Tools::new(shared.registry.clone())),
            shared,
            judges: true,
            clock: Arc::new(SystemClock),
            diagnostics: Box::new(|_| {}),
            limits: Limits::default(),
            caller: None,
            session: None,
            parting: None,
        }
    }
}

impl fmt::Debug for StdioOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StdioOptions")
            .field("shared", &self.shared)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// How much and how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most bytes of one message; a longer one is skipped and answered with an error.
    pub line_bytes: usize,
    /// How many bytes of answers may wait before nothing more is read.
    pub queue_bytes: usize,
    /// How long a client that has closed its side may take nothing before the rest of the answers is given up.
    pub stall: Duration,
    /// How long after a signal answers are still written.
    pub leave: Duration,
    /// How long the board's running driver calls are waited for at the end.
    pub settle: Duration,
    /// How long after a signal the process ends whatever hangs.
    pub patience: Duration,
    /// How much later than asked a wake-up means that the process itself was stopped.
    pub late: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            line_bytes: 4 * 1024 * 1024,
            queue_bytes: 1024 * 1024,
            stall: Duration::from_secs(5),
            leave: Duration::from_millis(300),
            settle: Duration::from_secs(1),
            patience: Duration::from_millis(1800),
            late: Duration::from_secs(60),
        }
    }
}

/// How a session came to its end. Whichever it was, its peer has left and its episode is detached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The client closed its side; all that was read is answered.
    InputClosed,
    /// Nobody reads the answers any more.
    OutputClosed,
    /// TERM, INT or HUP came, or whatever else made `stop` readable.
    Stopped,
    /// Only of a bridge: its server is gone, and this process cannot be one either.
    Unserved,
}

/// Says why a session could not begin.
#[derive(Debug, thiserror::Error)]
pub enum StdioError {
    /// The standard streams could not be taken.
    #[error("the standard streams cannot be used")]
    Streams(#[source] io::Error),
    /// The signals could not be received.
    #[error("signals cannot be received")]
    Signals(#[source] io::Error),
}

/// The descriptors of one session.
#[derive(Debug)]
pub struct Streams {
    /// What is read.
    pub input: OwnedFd,
    /// What is written.
    pub output: OwnedFd,
    /// What ends the session as soon as it is readable or closed.
    pub stop: OwnedFd,
}

/// Has `serve` serve one session on the standard streams, until the client closes them or TERM, INT or HUP comes.
///
/// Takes those signals over for the rest of the process's life. When it returns, the process should end; whatever it
/// still does or hangs in, it ends by itself within `patience` of the first signal, before or after the return.
///
/// # Errors
/// [`StdioError`], before anything is read or written.
pub fn on_standard_streams<T>(patience: Duration, serve: impl FnOnce(Streams) -> T) -> Result<T, StdioError> {
    let mut watchdog = Watchdog::install(patience).map_err(StdioError::Signals)?;
    let stop = watchdog.stop().ok_or_else(|| StdioError::Signals(io::ErrorKind::NotFound.into()))?.into();
    let own = |fd: &dyn AsFd| fd.as_fd().try_clone_to_owned().map_err(StdioError::Streams);
    let streams = Streams { input: own(&io::stdin())?, output: own(&io::stdout())?, stop };
    let served = serve(streams);
    // What the caller does before it exits is watched over too.
    std::mem::forget(watchdog);
    Ok(served)
}

/// Serves one session on any descriptors: pipes, sockets, files or terminals. It never waits on one of them alone.
#[must_use = "how it ended is for the caller to report"]
pub fn serve_streams(options: StdioOptions, streams: Streams) -> Ended {
    serve::Server::new(options, streams).run()
}
