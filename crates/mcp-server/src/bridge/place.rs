//! Who serves the clients of a checkout: an election without a pid, a lease or a heartbeat.
//!
//! Whoever has the lock is the server, and the kernel gives it back in every kind of death. What the server publishes
//! is only believed once it answers there. One that has the lock and does not answer, because it is stopped or hangs, is
//! passed by: its clients are served alone until there is a server again.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use majordomus_records::{Serving, Store};

use crate::sharing::folder;
use crate::sharing::preamble::{self, Hello, Refused, Reply};

/// How long one looks for a server that has the lock.
pub const PATIENCE: Duration = Duration::from_secs(2);
/// How long between two looks.
const PAUSE: Duration = Duration::from_millis(3);

/// Who serves.
#[derive(Debug)]
pub enum Place {
    /// Another process, over this connection.
    Theirs {
        /// What it is reached by; the preamble is over.
        stream: UnixStream,
        /// Where that connects to.
        socket: PathBuf,
    },
    /// This process, by right.
    Ours(Serving),
    /// This process, for its own client alone.
    Alone {
        /// Why, for a person.
        why: String,
    },
}

/// Finds out who serves, waiting at most `patience` for a server that has the lock; `given_up` ends the search early.
#[must_use]
pub fn find(store: &Store, hello: &Hello, patience: Duration, given_up: &dyn Fn() -> bool) -> Place {
    let until = Instant::now() + patience;
    let mut why = "the server of this checkout does not say where it answers".to_owned();
    loop {
        match store.serve() {
            Ok(Some(serving)) => return Place::Ours(serving),
            Ok(None) => {}
            Err(error) => return Place::Alone { why: format!("the git directory cannot be locked: {error}") },
        }
        if let Some(socket) = store.left_behind().and_then(|published| published.socket) {
            let left = until.saturating_duration_since(Instant::now()).max(PAUSE);
            match ask(&socket, hello, left) {
                Ok(Answer::Served(stream)) => return Place::Theirs { stream, socket },
                Ok(Answer::Refused(Refused::Format, message)) => return Place::Alone { why: message },
                // The one that is about to end gives the lock back, and a copied file is soon written anew.
                Ok(Answer::Refused(Refused::Stopping | Refused::Checkout, message)) => why = message,
                Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                    why = "the server of this checkout does not answer".into();
                }
                // It has just gone, or has not published yet.
                Err(error) => why = format!("the server of this checkout cannot be reached: {error}"),
            }
        }
        if Instant::now() >= until || given_up() {
            return Place::Alone { why };
        }
        thread::sleep(PAUSE);
    }
}

/// Whether a server answers at `socket` within `patience`.
#[must_use]
pub fn answers(socket: &std::path::Path, probe: &Hello, patience: Duration) -> bool {
    matches!(ask(socket, probe, patience), Ok(Answer::Served(_)))
}

enum Answer {
    Served(UnixStream),
    Refused(Refused, String),
}

fn ask(socket: &std::path::Path, hello: &Hello, patience: Duration) -> io::Result<Answer> {
    let stream = folder::connect(socket).map_err(io::Error::other)?;
    preamble::send(&stream, hello, patience)?;
    Ok(match preamble::receive::<Reply>(&stream, patience)? {
        Reply::Served { .. } => Answer::Served(stream),
        Reply::Refused { why, message } => Answer::Refused(why, message),
    })
}
