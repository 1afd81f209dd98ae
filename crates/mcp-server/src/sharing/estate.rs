//! What a server leaves to its successor: the right to serve, the sockets that listen, and who called over HTTP.
//!
//! It goes through a socket that is the successor's standard input. Descriptors that are under way stay open when the
//! one who sent them exits, so the right to serve is never free in between, nobody who connects is refused, and the one
//! that leaves waits for nothing.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read, Seek};
use std::mem::MaybeUninit;
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
};
use serde::{Deserialize, Serialize};

use crate::protocol::Handed;

/// The most descriptors: the lock, what is written, the socket, and one listener for each family.
const DESCRIPTORS: usize = 8;

/// What is left.
#[derive(Debug)]
pub struct Estate {
    /// The lock that makes its holder the server.
    pub lock: File,
    /// Where bridges connect.
    pub socket: Option<(UnixListener, PathBuf)>,
    /// Where programs connect.
    pub listeners: Vec<TcpListener>,
    /// Those who have a session over HTTP.
    pub sessions: Vec<Handed>,
}

/// What of it is written.
#[derive(Serialize, Deserialize)]
struct Inventory {
    socket: Option<PathBuf>,
    sessions: Vec<Handed>,
}

impl Estate {
    /// Leaves it to whoever has the other end. Does not wait for it.
    ///
    /// # Errors
    /// The operating system's; then it is still ours.
    pub fn leave(&self, to: &UnixStream) -> io::Result<()> {
        let inventory =
            Inventory { socket: self.socket.as_ref().map(|(_, path)| path.clone()), sessions: self.sessions.clone() };
        let mut written = scratch()?;
        serde_json::to_writer(io::BufWriter::new(&written), &inventory)?;
        written.rewind()?;
        let mut fds = vec![self.lock.as_fd(), written.as_fd()];
        fds.extend(self.socket.iter().map(|(listener, _)| listener.as_fd()));
        fds.extend(self.listeners.iter().map(AsFd::as_fd));
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !ancillary.push(SendAncillaryMessage::ScmRights(&fds)) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        rustix::net::sendmsg(to, &[IoSlice::new(b"estate\n")], &mut ancillary, SendFlags::empty())?;
        Ok(())
    }

    /// Takes over what is left.
    ///
    /// # Errors
    /// The operating system's; [`io::ErrorKind::InvalidData`] where nothing is left that could be taken over.
    pub fn take(from: &UnixStream) -> io::Result<Self> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut word = [0; 16];
        rustix::net::recvmsg(from, &mut [IoSliceMut::new(&mut word)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
        let mut fds: Vec<OwnedFd> = Vec::new();
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(received) = message {
                fds.extend(received);
            }
        }
        let mut fds = fds.into_iter();
        let nothing = || io::Error::from(io::ErrorKind::InvalidData);
        let lock = File::from(fds.next().ok_or_else(nothing)?);
        let mut bytes = Vec::new();
        File::from(fds.next().ok_or_else(nothing)?).read_to_end(&mut bytes)?;
        let inventory: Inventory = serde_json::from_slice(&bytes)?;
        let socket = match inventory.socket {
            Some(path) => Some((UnixListener::from(fds.next().ok_or_else(nothing)?), path)),
            None => None,
        };
        Ok(Self { lock, socket, listeners: fds.map(TcpListener::from).collect(), sessions: inventory.sessions })
    }
}

/// A file without a name.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn scratch() -> io::Result<File> {
    Ok(rustix::fs::memfd_create("majordomus", rustix::fs::MemfdFlags::CLOEXEC)?.into())
}

/// A file whose name is gone at once.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn scratch() -> io::Result<File> {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits).map_err(io::Error::other)?;
    let path = std::env::temp_dir().join(format!("majordomus-{:032x}", u128::from_be_bytes(bits)));
    let file = File::options().read(true).write(true).create_new(true).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}
