//! What the two ends of the socket say to each other before, between and after a client's own messages.
//!
//! One line of JSON in each direction opens a connection: who asks for what, and whether it is served. From then on a
//! bridge's connection carries the client's messages and nothing else, but for the one line by which a server says that
//! it goes on purpose.

use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use majordomus_records::caller::Caller;
use rustix::net::RecvFlags;
use serde::{Deserialize, Serialize};

/// The version of these lines.
pub const FORMAT: u32 = 1;

/// The most bytes of one of them: an external id is at most 256 characters.
const LINE_MOST: usize = 8 * 1024;

/// Who connects, and for what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// What is wanted.
    #[serde(rename = "majordomus")]
    pub wants: Wants,
    /// [`FORMAT`].
    pub format: u32,
    /// The program's version.
    pub version: String,
    /// Which checkout is meant: the path of a socket can be a copied one.
    pub checkout: String,
    /// 32 hexadecimal digits that this connection has for its whole life, whichever server it is connected to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<String>,
    /// The number of the process, for people.
    pub pid: u32,
    /// The external id of the episode that the client holds, as far as its bridge has seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holds: Option<String>,
    /// The external id of the episode that it has detached last, where it holds none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// Whether the operator's word that ended the last server ended an episode of its client's with it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stopped: bool,
    /// Who is at the other end of the bridge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<Caller>,
    /// How many lines follow first that an earlier server has had already, and that are no sign of life.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub replays: usize,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// What a connection to the socket is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wants {
    /// To carry one client's messages.
    Bridge,
    /// To see whether the server answers.
    Probe,
    /// To end the server and every episode, by its operator's word.
    Stop,
}

impl Hello {
    /// Says who this process is; a connection and what it holds are for a bridge to add.
    #[must_use]
    pub fn new(wants: Wants, checkout: String) -> Self {
        let version = env!("CARGO_PKG_VERSION").into();
        let (pid, connection) = (std::process::id(), None);
        Self {
            wants,
            format: FORMAT,
            version,
            checkout,
            connection,
            pid,
            holds: None,
            ended: None,
            stopped: false,
            caller: None,
            replays: 0,
        }
    }
}

/// The answer to a [`Hello`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "majordomus", rename_all = "snake_case")]
pub enum Reply {
    /// It is served from now on.
    Served {
        /// Which server: 32 hexadecimal digits.
        instance: String,
        /// The number of its process.
        pid: u32,
        /// Its version.
        version: String,
    },
    /// It is not.
    Refused {
        /// For programs.
        why: Refused,
        /// For people.
        message: String,
    },
}

/// Why a connection is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refused {
    /// This server is another checkout's: what named its socket was copied.
    Checkout,
    /// The two are of versions that do not understand each other, or the line is none.
    Format,
    /// It is about to end.
    Stopping,
}

/// Why a server goes on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// It goes, and its episodes are not its own to end: whoever comes next serves them.
    Moved,
    /// Its operator stopped it, and every episode has ended.
    Stopped,
}

/// How every line begins that a server says to a bridge and not to its client; no message of the protocol does.
pub const TO_BRIDGE: &[u8] = br#"{"majordomus":"#;

/// The line by which a server goes on purpose, its newline included.
#[must_use]
pub fn farewell(why: Why) -> &'static [u8] {
    match why {
        Why::Moved => b"{\"majordomus\":\"farewell\",\"why\":\"moved\"}\n",
        Why::Stopped => b"{\"majordomus\":\"farewell\",\"why\":\"stopped\"}\n",
    }
}

/// The last line to whoever stopped a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "majordomus", rename = "ended")]
pub struct Ended {
    /// How many episodes were closed.
    pub closed: u64,
}

/// Sends one line.
///
/// # Errors
/// The operating system's.
pub fn send(mut stream: &UnixStream, line: &impl Serialize, patience: Duration) -> io::Result<()> {
    let mut bytes = serde_json::to_vec(line)?;
    bytes.push(b'\n');
    stream.set_write_timeout(Some(patience))?;
    stream.write_all(&bytes)
}

/// Receives one line, and leaves what follows it to be read.
///
/// # Errors
/// [`io::ErrorKind::TimedOut`] where it has not come within `patience`, [`io::ErrorKind::UnexpectedEof`] where the other
/// side has gone, [`io::ErrorKind::InvalidData`] where it is not what was expected.
pub fn receive<L: for<'a> Deserialize<'a>>(stream: &UnixStream, patience: Duration) -> io::Result<L> {
    let until = Instant::now() + patience;
    let mut line = Vec::new();
    let mut chunk = [0; 512];
    while line.last() != Some(&b'\n') {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        let there = match rustix::net::recv(stream, &mut chunk, RecvFlags::PEEK) {
            Ok((0, _)) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok((count, _)) => &chunk[..count],
            Err(rustix::io::Errno::AGAIN) => return Err(io::ErrorKind::TimedOut.into()),
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        };
        let end = there.iter().position(|byte| *byte == b'\n').map_or(there.len(), |at| at + 1);
        let (count, _) = rustix::net::recv(stream, &mut chunk[..end], RecvFlags::empty())?;
        line.extend_from_slice(&chunk[..count]);
        if line.len() > LINE_MOST {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
    serde_json::from_slice(&line).map_err(|_| io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOMENT: Duration = Duration::from_millis(50);

    #[test]
    fn what_one_end_says_the_other_one_hears() {
        let (here, there) = UnixStream::pair().unwrap();
        let hello = Hello { holds: Some("thread 7".into()), ..Hello::new(Wants::Bridge, "0a".into()) };
        send(&here, &hello, MOMENT).unwrap();
        assert_eq!(receive::<Hello>(&there, MOMENT).unwrap(), hello);
        let reply = Reply::Refused { why: Refused::Checkout, message: "another".into() };
        send(&there, &reply, MOMENT).unwrap();
        (&there).write_all(farewell(Why::Moved)).unwrap();
        assert_eq!(receive::<Reply>(&here, MOMENT).unwrap(), reply);
    }

    #[test]
    fn whoever_says_nothing_half_a_line_or_too_much_is_not_waited_for() {
        let (here, there) = UnixStream::pair().unwrap();
        assert_eq!(receive::<Hello>(&there, MOMENT).unwrap_err().kind(), io::ErrorKind::TimedOut);
        (&here).write_all(b"{\"majordomus\":").unwrap();
        assert_eq!(receive::<Hello>(&there, MOMENT).unwrap_err().kind(), io::ErrorKind::TimedOut);
        (&here).write_all(&vec![b'x'; LINE_MOST + 1]).unwrap();
        assert_eq!(receive::<Hello>(&there, MOMENT).unwrap_err().kind(), io::ErrorKind::InvalidData);
        drop(here);
        assert_eq!(receive::<Hello>(&there, MOMENT).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_farewell_is_told_from_messages_by_how_it_begins() {
        for why in [Why::Moved, Why::Stopped] {
            assert!(farewell(why).starts_with(TO_BRIDGE));
        }
    }
}
