//! The folder of this user's sockets, which nobody else may enter.
//!
//! It is chosen without the environment, which a client's configuration can change, and only read from what a server
//! publishes, never computed a second time. Permissions keep others out; where somebody has widened them, both ends of a
//! connection still ask the system who the other one is.

use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketType};
use rustix::process::geteuid;

/// How the name of a socket ends that can be connected to.
const SOCKET: &str = "sock";
/// How it ends before anybody listens on it.
const ASIDE: &str = "new";
/// How often a socket is made anew that somebody took for a left-over one.
const ATTEMPTS: u32 = 5;
/// The most characters of an instance's name.
const NAME_MOST: usize = 64;
/// Its owner's alone.
const PRIVATE: u32 = 0o700;
/// The permissions of a mode.
const PERMISSIONS: u32 = 0o777;

/// Says why a socket was not connected to.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// No server of ours puts its socket there.
    #[error("{} is in no folder of this user's sockets", .0.display())]
    Elsewhere(PathBuf),
    /// Others may have been in the folder.
    #[error("the folder of the sockets is not this user's alone")]
    Unsafe(#[source] io::Error),
    /// There is no socket, or nobody listens on it any more.
    #[error("nobody listens at {}", .0.display())]
    Nobody(PathBuf),
    /// Somebody listens and takes nobody in.
    #[error("too many wait at {} already", .0.display())]
    Busy(PathBuf),
    /// It is another user who listens.
    #[error("another user listens at {}", .0.display())]
    Stranger(PathBuf),
    /// The operating system refused.
    #[error("cannot connect to {}", path.display())]
    Refused {
        /// The socket.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// Returns the folder of this user's sockets, made where it is missing: `/run/user/<uid>/majordomus`, or else
/// `/tmp/majordomus-<uid>`.
///
/// # Errors
/// What is wrong with it, where it is not a folder of this user's alone; the operating system's, where it cannot be made.
pub fn socket_folder() -> io::Result<PathBuf> {
    let uid = geteuid().as_raw();
    let [run, temporary] = folders(uid);
    let usable = run.parent().is_some_and(|parent| is_folder_of(parent, uid));
    make(if usable { run } else { temporary }, uid)
}

/// Listens under the name of an instance, and clears up what others have left behind.
///
/// Whoever sees the socket can connect: it gets its name when somebody listens. The listener blocks.
///
/// # Errors
/// As [`socket_folder`]; [`ErrorKind::InvalidInput`] where the instance is no name; the operating system's.
pub fn listen(instance: &str) -> io::Result<(UnixListener, PathBuf)> {
    listen_in(&socket_folder()?, instance)
}

/// Connects to a server's socket, without waiting for anybody. The stream blocks.
///
/// # Errors
/// [`ConnectError`].
pub fn connect(path: &Path) -> Result<UnixStream, ConnectError> {
    let uid = geteuid().as_raw();
    connect_in(&folders(uid), path, uid)
}

/// Whether the other end of a connection is this user's: who has connected, or who has begun to listen.
///
/// # Errors
/// The operating system's, and then nobody knows.
pub fn is_same_user(stream: impl AsFd) -> io::Result<bool> {
    Ok(other_user(stream)? == geteuid().as_raw())
}

/// Removes a socket of this user's on which nobody listens any more, and nothing else.
///
/// A server that lives may see a connection that says nothing.
pub fn clear_up(path: &Path) {
    let ours = |data: fs::Metadata| data.file_type().is_socket() && data.uid() == geteuid().as_raw();
    if fs::symlink_metadata(path).is_ok_and(ours) && reach(path).err() == Some(Errno::CONNREFUSED) {
        // Somebody else may have done so already.
        let _ = fs::remove_file(path);
    }
}

/// Where this user's sockets may be: which of the two, is for the server to choose.
fn folders(uid: u32) -> [PathBuf; 2] {
    [format!("/run/user/{uid}/majordomus").into(), format!("/tmp/majordomus-{uid}").into()]
}

fn is_folder_of(path: &Path, uid: u32) -> bool {
    fs::symlink_metadata(path).is_ok_and(|data| data.is_dir() && data.uid() == uid)
}

/// Makes a folder unless it is there, and makes sure that it is `uid`'s alone.
fn make(folder: PathBuf, uid: u32) -> io::Result<PathBuf> {
    match DirBuilder::new().mode(PRIVATE).create(&folder) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        Err(error) => return Err(io::Error::new(error.kind(), format!("cannot make {}: {error}", folder.display()))),
    }
    check(&folder, uid)?;
    Ok(folder)
}

/// # Errors
/// What is wrong with a folder that is not `uid`'s alone.
fn check(folder: &Path, uid: u32) -> io::Result<()> {
    let data = fs::symlink_metadata(folder)
        .map_err(|error| io::Error::new(error.kind(), format!("cannot look at {}: {error}", folder.display())))?;
    let mode = data.mode() & PERMISSIONS;
    let wrong = if data.file_type().is_symlink() {
        "is a symbolic link; remove it".into()
    } else if !data.is_dir() {
        "is no folder; remove it".into()
    } else if data.uid() != uid {
        format!("belongs to user {}, not to user {uid}; whoever may has to remove it", data.uid())
    } else if mode != PRIVATE {
        format!("has the mode {mode:03o} and must have {PRIVATE:o}; set it with chmod")
    } else {
        return Ok(());
    };
    Err(io::Error::new(ErrorKind::PermissionDenied, format!("{} {wrong}", folder.display())))
}

fn listen_in(folder: &Path, instance: &str) -> io::Result<(UnixListener, PathBuf)> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    if !(1..=NAME_MOST).contains(&instance.len()) || !instance.bytes().all(fits) {
        return Err(io::Error::new(ErrorKind::InvalidInput, format!("{instance:?} names no instance")));
    }
    clear_all(folder);
    let (path, aside) = (folder.join(format!("{instance}.{SOCKET}")), folder.join(format!("{instance}.{ASIDE}")));
    for _ in 0..ATTEMPTS {
        let listener = UnixListener::bind(&aside)?;
        let named = fs::set_permissions(&aside, Permissions::from_mode(0o600)).and_then(|()| fs::rename(&aside, &path));
        match named {
            Ok(()) => return Ok((listener, path)),
            // Somebody who clears up saw it in the moment when it was there and nobody listened yet.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => {
                let _ = fs::remove_file(&aside);
                return Err(error);
            }
        }
    }
    Err(io::Error::other(format!("{} is taken away again and again", aside.display())))
}

/// Removes what servers that were killed have left in the folder.
fn clear_all(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        clear_up(&entry.path());
    }
}

fn connect_in(folders: &[PathBuf], path: &Path, uid: u32) -> Result<UnixStream, ConnectError> {
    let folder = path.parent().filter(|parent| folders.iter().any(|folder| folder == parent));
    let folder = folder.ok_or_else(|| ConnectError::Elsewhere(path.into()))?;
    match check(folder, uid) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(ConnectError::Nobody(path.into())),
        checked => checked.map_err(ConnectError::Unsafe)?,
    }
    let refused = |source| ConnectError::Refused { path: path.into(), source };
    let stream = reach(path).map_err(|error| match error {
        Errno::NOENT | Errno::CONNREFUSED => ConnectError::Nobody(path.into()),
        Errno::AGAIN => ConnectError::Busy(path.into()),
        error => refused(error.into()),
    })?;
    if other_user(&stream).map_err(refused)? != uid {
        return Err(ConnectError::Stranger(path.into()));
    }
    stream.set_nonblocking(false).map_err(refused)?;
    Ok(stream)
}

/// Connects, or says at once why not: whoever listens may be stopped, with too many waiting already.
fn reach(path: &Path) -> Result<UnixStream, Errno> {
    let address = SocketAddrUnix::new(path)?;
    let stream = UnixStream::from(nonblocking()?);
    net::connect(&stream, &address)?;
    Ok(stream)
}

#[cfg(target_os = "linux")]
fn nonblocking() -> Result<rustix::fd::OwnedFd, Errno> {
    let flags = net::SocketFlags::NONBLOCK | net::SocketFlags::CLOEXEC;
    net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
}

#[cfg(not(target_os = "linux"))]
fn nonblocking() -> Result<rustix::fd::OwnedFd, Errno> {
    let socket = net::socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
    rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&socket, true)?;
    Ok(socket)
}

#[cfg(target_os = "linux")]
fn other_user(stream: impl AsFd) -> io::Result<u32> {
    Ok(net::sockopt::socket_peercred(stream)?.uid.as_raw())
}

#[cfg(not(target_os = "linux"))]
fn other_user(stream: impl AsFd) -> io::Result<u32> {
    Ok(nix::unistd::getpeereid(stream)?.0.as_raw())
}

#[cfg(test)]
mod tests;
