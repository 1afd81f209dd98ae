//! `majordomus serve stop`: the server of this checkout is asked to end, by its operator's word.
//!
//! No process is signalled: a number in a file may be another's by now.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use majordomus_mcp_server::sharing::folder::{self, ConnectError};
use majordomus_mcp_server::sharing::preamble::{self, Ended, Hello, Refused, Reply, Wants};
use majordomus_records::text::visible;
use majordomus_records::{Policy, Published, Store};
use serde::Serialize;

use super::status::{MUTE, PAUSE, mute, mute_hint};
use crate::args::Answering;
use crate::output::{self, Hint};

/// How long a server may take to end every episode.
const END: Duration = Duration::from_secs(10);

/// What became of it.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Stopped {
    stopped: bool,
    /// How many episodes were closed.
    #[serde(skip_serializing_if = "Option::is_none")]
    closed: Option<u64>,
    /// The process that was the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
}

/// What one attempt came to.
enum Attempt {
    Done(Stopped),
    /// There is a server, and it does not answer, or not yet.
    Again,
    /// It does not answer, and would not the next time.
    Mute,
}

pub(super) fn run(answering: Answering) -> anyhow::Result<ExitCode> {
    let store = Store::open(crate::commands::here()?, Policy::default());
    let stopped = stop(&store)?;
    if answering.json {
        output::json(&stopped)?;
    } else {
        output::print(&stopped.line())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn stop(store: &Store) -> anyhow::Result<Stopped> {
    let until = Instant::now() + MUTE;
    loop {
        if !store.is_served() {
            return Ok(Stopped { stopped: false, closed: None, pid: None });
        }
        // A server that starts publishes a moment after it has the lock, and what is there until then is another's.
        let attempt = match store.published() {
            Some(published) => attempt(store, &published)?,
            None => Attempt::Again,
        };
        match attempt {
            Attempt::Done(stopped) => return Ok(stopped),
            Attempt::Again if Instant::now() < until => thread::sleep(PAUSE),
            Attempt::Again | Attempt::Mute => return Err(mute()).hint(mute_hint(store)),
        }
    }
}

fn attempt(store: &Store, published: &Published) -> anyhow::Result<Attempt> {
    let Some(socket) = &published.socket else {
        return Err(anyhow!("the server of this checkout has no socket by which it can be stopped"))
            .hint("end it where it was started: Ctrl-C");
    };
    let Some(stream) = connect(socket)? else { return Ok(Attempt::Again) };
    let since = Instant::now();
    let hello = Hello::new(Wants::Stop, store.checkout().id());
    // Whoever has hung up meanwhile was about to end.
    let said = preamble::send(&stream, &hello, MUTE).and_then(|()| preamble::receive::<Reply>(&stream, MUTE));
    match said {
        Ok(Reply::Served { instance, .. }) if instance != published.instance => Ok(Attempt::Again),
        Ok(Reply::Served { pid, .. }) => ended(&stream, pid, since).map(Attempt::Done),
        // What was published may be another's, where a checkout was copied, until its own server publishes.
        Ok(Reply::Refused { why: Refused::Stopping | Refused::Checkout, .. }) => Ok(Attempt::Again),
        Ok(Reply::Refused { why: Refused::Format, message }) => {
            bail!("the server of this checkout refused: {}", visible(&message))
        }
        Err(error) if error.kind() == io::ErrorKind::TimedOut => Ok(Attempt::Mute),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            Err(error).context("the server of this checkout does not say what was expected")
        }
        Err(_) => Ok(Attempt::Again),
    }
}

/// Connects; nothing where nobody listens, or not yet.
fn connect(socket: &Path) -> anyhow::Result<Option<UnixStream>> {
    match folder::connect(socket) {
        Ok(stream) => Ok(Some(stream)),
        Err(ConnectError::Nobody(_) | ConnectError::Busy(_)) => Ok(None),
        Err(error) => Err(error).context("cannot reach the server of this checkout"),
    }
}

/// Waits until everything has ended: the server's word, and then the end of the connection, which comes however it ends.
fn ended(stream: &UnixStream, pid: u32, since: Instant) -> anyhow::Result<Stopped> {
    let left = || END.saturating_sub(since.elapsed());
    let closed = match preamble::receive::<Ended>(stream, left()) {
        Ok(Ended { closed }) => Some(closed),
        Err(error) if error.kind() == io::ErrorKind::TimedOut => return late(pid),
        Err(_) => None,
    };
    let mut rest = [0; 64];
    loop {
        let left = left();
        if left.is_zero() {
            return late(pid);
        }
        stream.set_read_timeout(Some(left)).context("cannot wait for the server")?;
        let mut stream = stream;
        match stream.read(&mut rest) {
            Ok(0) => return Ok(Stopped { stopped: true, closed, pid: Some(pid) }),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return late(pid),
            // The connection ends with the process, in whatever way.
            Err(_) => return Ok(Stopped { stopped: true, closed, pid: Some(pid) }),
        }
    }
}

fn late(pid: u32) -> anyhow::Result<Stopped> {
    let late = anyhow!("the server, process {pid}, was asked to end and has not within {} s", END.as_secs());
    Err(late).hint("it may wait for a disk or for git; `majordomus serve status` tells whether it is still there")
}

impl Stopped {
    fn line(&self) -> String {
        let ended = match self.closed {
            _ if !self.stopped => return "no server runs for this checkout\n".into(),
            None => "how many episodes it closed it has not said".into(),
            Some(0) => "no episode was open".into(),
            Some(1) => "1 episode was closed (interrupted, reason shutdown)".into(),
            Some(closed) => format!("{closed} episodes were closed (interrupted, reason shutdown)"),
        };
        format!("stopped; {ended}\n")
    }
}
