//! Who serves the clients of a checkout: an election without a pid, a lease or a heartbeat.
//!
//! Whoever has the lock is the server, and the kernel gives it back in every kind of death. What the server publishes
//! is only believed once it answers there. One that has the lock and does not answer, because it is stopped or hangs, is
//! passed by: its clients are served alone until there is a server again.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use majordomus_records::text::visible;
use majordomus_records::{Serving, Store};

use crate::sharing::folder;
use crate::sharing::preamble::{self, Hello, Refused, Reply};

/// How long one looks for a server that has the lock.
pub const PATIENCE: Duration = Duration::from_secs(2);
/// How long between two looks.
const PAUSE: Duration = Duration::from_millis(3);

/// How long it may take to answer at first; each time twice as long.
const SLICE: Duration = Duration::from_millis(100);
/// How long a server may take from the lock to what it publishes; what is there until then may be an earlier one's.
const START: Duration = Duration::from_millis(250);

/// What is said of a server that has the lock and nothing else.
const MUTE: &str = "the server of this checkout does not answer";

/// Who serves.
#[derive(Debug)]
pub enum Place {
    /// Another process, over this connection.
    Theirs {
        /// What it is reached by; the preamble is over.
        stream: UnixStream,
        /// Where that connects to.
        socket: PathBuf,
        /// Which server it is: 32 hexadecimal digits.
        instance: String,
    },
    /// This process, by right.
    Ours(Serving),
    /// This process, for its own client alone.
    Alone {
        /// Why, for a person.
        why: String,
    },
}

/// How one looks.
#[derive(Clone, Copy)]
pub struct Search<'a> {
    /// How long a server that has the lock is waited for.
    pub patience: Duration,
    /// The socket of one that is known not to answer: nobody waits for it once more.
    pub mute: Option<&'a Path>,
    /// Whether to look no longer.
    pub given_up: &'a dyn Fn() -> bool,
}

impl Default for Search<'_> {
    fn default() -> Self {
        Self { patience: PATIENCE, mute: None, given_up: &|| false }
    }
}

/// Finds out who serves.
#[must_use]
pub fn find(store: &Store, hello: &Hello, search: Search<'_>) -> Place {
    let begun = Instant::now();
    let until = begun + search.patience;
    let mut slice = SLICE;
    let mut why = "the server of this checkout does not say where it answers".to_owned();
    loop {
        match store.try_serve() {
            Ok(Some(serving)) => return Place::Ours(serving),
            Ok(None) => {}
            Err(error) => return Place::Alone { why: format!("the git directory cannot be locked: {error}") },
        }
        let published = store.left_behind();
        let shares_nothing = published.as_ref().is_some_and(|published| published.socket.is_none());
        if shares_nothing && Instant::now() >= begun + START {
            // It could not make one, and said so.
            return Place::Alone { why: "the server of this checkout has no socket".into() };
        }
        if let Some(version) = store.other_version().filter(|_| published.is_none() && Instant::now() >= begun + START)
        {
            let why = format!("majordomus {version} serves this checkout, which this version does not understand");
            return Place::Alone { why };
        }
        if let Some(socket) = published.and_then(|published| published.socket) {
            if search.mute == Some(&*socket) {
                return Place::Alone { why: MUTE.into() };
            }
            // Not all the time for one question: the lock may be given back meanwhile.
            let left = until.saturating_duration_since(Instant::now()).max(PAUSE).min(slice);
            match ask(&socket, hello, left) {
                Ok(Answer::Served(stream, instance)) => return Place::Theirs { stream, socket, instance },
                Ok(Answer::Refused(Refused::Format, message)) => return Place::Alone { why: message },
                // The one that is about to end gives the lock back, and a copied file is soon written anew.
                Ok(Answer::Refused(Refused::Stopping | Refused::Checkout, message)) => why = message,
                Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                    slice = slice.saturating_mul(2);
                    why = MUTE.into();
                }
                // It has just gone, or has not published yet.
                Err(error) => why = format!("the server of this checkout cannot be reached: {error}"),
            }
        }
        let late = Instant::now() >= begun + START && (search.given_up)();
        if Instant::now() >= until || late {
            return Place::Alone { why };
        }
        thread::sleep(PAUSE);
    }
}

/// Whether a server answers at `socket` within `patience`.
#[must_use]
pub fn answers(socket: &Path, probe: &Hello, patience: Duration) -> bool {
    matches!(ask(socket, probe, patience), Ok(Answer::Served(..)))
}

enum Answer {
    Served(UnixStream, String),
    Refused(Refused, String),
}

fn ask(socket: &Path, hello: &Hello, patience: Duration) -> io::Result<Answer> {
    let stream = folder::connect(socket).map_err(io::Error::other)?;
    preamble::send(&stream, hello, patience)?;
    Ok(match preamble::receive::<Reply>(&stream, patience)? {
        Reply::Served { instance, .. } => Answer::Served(stream, instance),
        Reply::Refused { why, message } => Answer::Refused(why, visible(&message)),
    })
}
