//! The two ends of a connection, read and written without ever waiting and without changing what others see of them.
//!
//! `O_NONBLOCK` belongs to the open file, which a standard stream shares with the process that started us and with whoever
//! else inherited it; setting it there has broken shells and their other children. So a pipe is opened once more, a socket
//! is told call by call, and anything else (a file, a terminal) is used only when `poll` says that it is ready.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{FileType, OFlags};
use rustix::net::{RecvFlags, SendFlags};

/// How much is written at once where a write could wait: what `poll` promises to fit into a pipe.
const CHUNK: usize = 4096;

/// One end.
#[derive(Debug)]
pub(crate) struct End {
    fd: OwnedFd,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// An open file of our own with `O_NONBLOCK`.
    Own,
    /// A socket.
    Socket,
    /// Whatever else; only to be used when it is ready.
    Other,
}

impl End {
    /// Takes the end that is read.
    pub(crate) fn reader(fd: OwnedFd) -> Self {
        Self::new(fd, OFlags::RDONLY)
    }

    /// Takes the end that is written.
    pub(crate) fn writer(fd: OwnedFd) -> Self {
        Self::new(fd, OFlags::WRONLY)
    }

    fn new(fd: OwnedFd, access: OFlags) -> Self {
        match rustix::fs::fstat(&fd).map(|stat| FileType::from_raw_mode(stat.st_mode)) {
            Ok(FileType::Fifo) => match reopen(&fd, access) {
                Some(own) => Self { fd: own, kind: Kind::Own },
                None => Self { fd, kind: Kind::Other },
            },
            Ok(FileType::Socket) => Self { fd, kind: Kind::Socket },
            Ok(_) | Err(_) => Self { fd, kind: Kind::Other },
        }
    }

    /// Reads what is there; 0 is the end, `WouldBlock` that nothing is there now.
    pub(crate) fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(match self.kind {
            Kind::Own => rustix::io::read(&self.fd, buffer)?,
            Kind::Socket => rustix::net::recv(&self.fd, buffer, RecvFlags::DONTWAIT)?.0,
            Kind::Other => {
                self.when(PollFlags::IN)?;
                rustix::io::read(&self.fd, buffer)?
            }
        })
    }

    /// Whether a read of `count` bytes into a buffer of `room` has left nothing that was there. Only a socket tells: a named
    /// pipe whose writers went before it was opened is known to have ended by nothing but another read.
    pub(crate) fn is_drained(&self, count: usize, room: usize) -> bool {
        self.kind == Kind::Socket && count < room
    }

    /// Writes what fits; `WouldBlock` when nothing does.
    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        Ok(match self.kind {
            Kind::Own => rustix::io::write(&self.fd, bytes)?,
            Kind::Socket => rustix::net::send(&self.fd, bytes, SendFlags::DONTWAIT)?,
            Kind::Other => {
                self.when(PollFlags::OUT)?;
                rustix::io::write(&self.fd, &bytes[..bytes.len().min(CHUNK)])?
            }
        })
    }

    /// Returns at once: an error unless it is ready, or broken, which the call that follows finds out.
    fn when(&self, ready: PollFlags) -> io::Result<()> {
        let mut polled = [PollFd::new(&self.fd, ready)];
        match rustix::event::poll(&mut polled, Some(&Timespec::default()))? {
            0 => Err(io::ErrorKind::WouldBlock.into()),
            _ => Ok(()),
        }
    }
}

impl AsFd for End {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Opens the pipe behind `fd` once more, as an open file of our own.
#[cfg(target_os = "linux")]
fn reopen(fd: &OwnedFd, access: OFlags) -> Option<OwnedFd> {
    use std::os::fd::AsRawFd;

    let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
    let flags = access | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    rustix::fs::open(path, flags, rustix::fs::Mode::empty()).ok()
}

#[cfg(not(target_os = "linux"))]
fn reopen(_fd: &OwnedFd, _access: OFlags) -> Option<OwnedFd> {
    None
}

#[cfg(test)]
mod tests;
