//! A server that belongs to no terminal and to nobody who waits: how it is started, and what it does about that first.

use std::ffi::OsStr;
use std::fs::{self, OpenOptions, Permissions};
use std::io;
use std::os::fd::RawFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;

use anyhow::Context;
use majordomus_records::Store;
use majordomus_records::disk::Open;
use majordomus_records::text::visible;
use rustix::fs::OFlags;
use signal_hook::consts::SIGHUP;

use crate::variables::EPISODE_HANDLE;

/// The flag that tells a server that it was started by [`start`].
pub(crate) const FLAG: &str = "--detached";

/// A log that is longer when a server starts begins anew.
const LOG_MOST: u64 = 1 << 20;
/// The most bytes of what a server said that are read.
const SAID_MOST: u64 = 64 * 1024;
/// This very program, also where its file was replaced or removed meanwhile.
const SELF: &str = "/proc/self/exe";
/// What it is called where processes are listed.
const NAME: &str = "majordomus";

/// A server that was started, as long as whoever started it looks.
#[derive(Debug)]
pub(crate) struct Detached {
    child: Child,
    log: PathBuf,
    /// Where in the log its own words begin.
    from: u64,
}

/// Starts this program with `arguments` and [`FLAG`] in the checkout of `store`, with a log instead of a terminal.
///
/// # Errors
/// Where no state folder takes the log, or the program cannot be run.
pub(crate) fn start(store: &Store, arguments: &[impl AsRef<OsStr>], stdin: Stdio) -> anyhow::Result<Detached> {
    let (log, path) = log(store).context("no state folder takes the server's log")?;
    let from = log.metadata().context("the server's log cannot be looked at")?.len();
    let checkout = store.checkout();
    let mut command = Command::new(program().context("cannot tell where this program is")?);
    command.arg0(NAME).args(arguments).arg(FLAG);
    // It outlives whoever this secret belongs to.
    command.env_remove(EPISODE_HANDLE);
    command.current_dir(checkout.worktree.as_ref().unwrap_or(&checkout.git_dir));
    command.stdin(stdin).stdout(Stdio::null()).stderr(log);
    let child = command.spawn().context("cannot start a server")?;
    Ok(Detached { child, log: path, from })
}

fn program() -> io::Result<PathBuf> {
    if Path::new(SELF).exists() { Ok(SELF.into()) } else { std::env::current_exe() }
}

/// Opens the log in the first state folder that takes it, for its owner alone.
fn log(store: &Store) -> io::Result<(fs::File, PathBuf)> {
    let mut refused = None;
    for root in store.state().roots() {
        let path = root.join("server.log");
        match store.disk().make_folders(root, true).and_then(|()| open(&path)) {
            Ok(file) => return Ok((file, path)),
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    Err(refused.unwrap_or_else(|| io::ErrorKind::NotFound.into()))
}

fn open(path: &Path) -> io::Result<fs::File> {
    // No link is followed, and a pipe or device that stands where the log should is not waited for.
    let careful = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).custom_flags(careful).open(path)?;
    let data = file.metadata()?;
    if !data.is_file() {
        return Err(io::Error::other("not an ordinary file"));
    }
    file.set_permissions(Permissions::from_mode(0o600))?;
    if data.len() > LOG_MOST {
        file.set_len(0)?;
    }
    Ok(file)
}

impl Detached {
    /// The number of its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its log.
    pub(crate) fn log(&self) -> &Path {
        &self.log
    }

    /// How it ended, once it has.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Why it ended, in its own words, and what to do about it.
    pub(crate) fn last_words(&self, store: &Store) -> (Option<String>, Option<String>) {
        let mut log = store.disk().open(&self.log, Open::Existing).ok();
        let said = log.as_mut().and_then(|log| log.read_at(self.from, SAID_MOST).ok()).unwrap_or_default();
        words(&String::from_utf8_lossy(&said))
    }
}

/// The last error and its hint; without one the last line.
fn words(said: &str) -> (Option<String>, Option<String>) {
    let last = |start: &str| said.lines().rev().find_map(|line| line.strip_prefix(start)).map(visible);
    let reason = last("error: ").or_else(|| last(""));
    (reason, last("hint: "))
}

/// What a process does first that was started by [`start`]: nothing of whoever started it is kept open or listened to.
pub(crate) fn settle() {
    // Whoever leads a session already needs no other one.
    let _ = rustix::process::setsid();
    close_inherited();
    // Ignored as by `nohup`, but not by the programs that this one runs. Without the handler it ends this process.
    let _ = signal_hook::flag::register(SIGHUP, Arc::default());
    // It was run by a path that says nothing; where there is none such it has its name.
    let _ = fs::write("/proc/self/comm", NAME);
}

/// Closes what came with the process besides its standard streams. To be called before anything is opened here.
fn close_inherited() {
    let Ok(entries) = fs::read_dir("/dev/fd") else { return };
    let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<RawFd>().ok());
    let inherited: Vec<RawFd> = numbers.filter(|number| *number > 2).collect();
    for number in inherited {
        // One of them was the listing's own, which is closed already.
        let _ = nix::unistd::close(number);
    }
}

#[cfg(test)]
mod tests {
    use super::words;

    fn of(said: &str) -> (Option<String>, Option<String>) {
        words(said)
    }

    #[test]
    fn a_server_that_failed_says_why_and_what_to_do() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(of("note: a\nerror: b\nhint: c\n"), (some("b"), some("c")));
        assert_eq!(of("error: a\nerror: b\u{1b}[31m\nnote: c\n"), (some("b\\u{1b}[31m"), None));
        assert_eq!(of("one\nanother\n"), (some("another"), None));
        assert_eq!(of(""), (None, None));
    }
}
