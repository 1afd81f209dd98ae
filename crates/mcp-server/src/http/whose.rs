//! Whose connection it is that comes over TCP.
//!
//! Every user of a machine reaches its loopback, so that whoever listens there has to ask who it is. Linux tells which
//! socket is at the other end, and whose it is. Served is only this server's own user, as long as that socket is open:
//! of one that was closed already the system says that it is root's, or nothing.

#[cfg(target_os = "linux")]
mod diag;

use std::io;
use std::net::TcpListener as StdListener;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;

use majordomus_capability::{Code, Refusal};

/// How it is known that a caller over TCP is the server's own user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Callers {
    /// The system tells, and nobody else is served. Where it cannot, as [`Self::Shown`].
    #[default]
    Told,
    /// Calls that change something show a token that lies in a file which only that user reads.
    Shown,
}

/// Somebody who is not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stranger {
    /// Another user.
    User { theirs: u32, ours: u32 },
    /// Whose connection it is cannot be told, or not any more.
    Unknown,
}

impl Stranger {
    /// What such a caller is told.
    pub(super) fn refusal(self) -> Refusal {
        match self {
            Self::User { theirs, ours } => {
                let what = format!("this server is for user {ours} alone, and this is a connection of user {theirs}");
                Refusal::new(Code::Forbidden, what).hint("start a server of your own: majordomus serve")
            }
            Self::Unknown => Refusal::new(
                Code::Forbidden,
                "this server is for its own user alone, and whose connection this is cannot be told",
            )
            .hint("connect without a proxy, and keep the connection open until the answer has come"),
        }
    }
}

/// The socket at the other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Found {
    /// Whether some process has it open.
    open: bool,
    user: u32,
}

/// Tells whose connections are, for one listener.
#[derive(Debug)]
pub(super) struct Teller {
    #[cfg(target_os = "linux")]
    diag: diag::Diag,
    own: u32,
    /// What stands for users that have no number here, where there can be such.
    unmapped: Option<u32>,
}

/// One for each listener; `None` where the system cannot tell for all of them.
pub(super) fn tellers(listeners: &[StdListener]) -> Option<Vec<Teller>> {
    listeners.iter().map(|listener| Teller::start(listener.local_addr().ok()?.ip()).ok()).collect()
}

impl Teller {
    /// Judges one connection that was accepted from `client`.
    ///
    /// # Errors
    /// Who it is, if it is not the server's own user.
    pub(super) fn judge(&mut self, stream: impl AsFd, client: SocketAddr) -> Result<(), Stranger> {
        let unknown = |_| Stranger::Unknown;
        let ours = rustix::net::getsockname(&stream).map_err(unknown)?.try_into().map_err(unknown)?;
        let found = self.find(client, ours).map_err(|_| Stranger::Unknown)?;
        // Where the client has reset the connection its address is free again, and it may be another one's that was found.
        rustix::net::getpeername(&stream).map_err(unknown)?;
        self.weigh(found)
    }

    fn weigh(&self, found: Option<Found>) -> Result<(), Stranger> {
        match found {
            Some(Found { open: true, user }) if Some(user) != self.unmapped => {
                let (theirs, ours) = (user, self.own);
                if theirs == ours { Ok(()) } else { Err(Stranger::User { theirs, ours }) }
            }
            Some(_) | None => Err(Stranger::Unknown),
        }
    }
}

#[cfg(target_os = "linux")]
impl Teller {
    /// Begins, and tries it on a connection of its own.
    ///
    /// # Errors
    /// The operating system's, where it does not tell.
    fn start(address: IpAddr) -> io::Result<Self> {
        use std::net::TcpStream;
        use std::time::Duration;

        let own = rustix::process::geteuid().as_raw();
        let mut teller = Self { diag: diag::Diag::open()?, own, unmapped: unmapped() };
        let listener = StdListener::bind((address, 0))?;
        let client = TcpStream::connect_timeout(&listener.local_addr()?, Duration::from_secs(1))?;
        let found = teller.find(client.local_addr()?, client.peer_addr()?)?;
        teller.weigh(found).map_err(|_| io::Error::from(io::ErrorKind::Unsupported))?;
        Ok(teller)
    }

    fn find(&mut self, client: SocketAddr, ours: SocketAddr) -> io::Result<Option<Found>> {
        self.diag.find(client, ours)
    }
}

#[cfg(target_os = "linux")]
fn unmapped() -> Option<u32> {
    const USUAL: u32 = 65_534;

    // Outside of user namespaces everybody has a number, and that one is a user like any other: `nobody`.
    if std::fs::read_to_string("/proc/self/uid_map").is_ok_and(|map| has_everybody(&map)) {
        return None;
    }
    let told = std::fs::read_to_string("/proc/sys/kernel/overflowuid");
    Some(told.ok().and_then(|told| told.trim().parse().ok()).unwrap_or(USUAL))
}

/// Whether a map of users is the one of a system without namespaces: all of them, each by its own number.
#[cfg(target_os = "linux")]
fn has_everybody(map: &str) -> bool {
    map.split_ascii_whitespace().eq(["0", "0", "4294967295"])
}

#[cfg(not(target_os = "linux"))]
impl Teller {
    fn start(_: IpAddr) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn find(&mut self, _: SocketAddr, _: SocketAddr) -> io::Result<Option<Found>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests;
