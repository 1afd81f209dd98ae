//! Running git: which program that is, and children whose time and output are bounded.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::checkout::Checkout;

/// The most that one command may say.
const OUTPUT_MOST: usize = 64 << 20;

/// How long a child that was killed is waited for; what is stuck in the kernel is waited for another time.
const REAP_WITHIN: Duration = Duration::from_millis(200);

/// Why something is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unsaid {
    /// Git said no, with this exit code, or is not there.
    Refused(Option<i32>),
    /// The time was over.
    OutOfTime,
    /// It said more than [`OUTPUT_MOST`].
    TooMuch,
    /// Git was not asked.
    Because(&'static str),
}

/// What git said, or why it did not.
pub(super) type Said<T> = Result<T, Unsaid>;

/// Children that were killed and had not ended when they were last looked at.
#[derive(Debug, Default)]
pub(super) struct Unreaped(Mutex<Vec<Child>>);

impl Unreaped {
    /// Forgets those that have ended since.
    pub(super) fn reap(&self) {
        let mut children = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        children.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    fn keep(&self, child: Child) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(child);
    }
}

/// Finds git in the folders that a search path names absolutely. A relative one, or an empty one, would be a folder of
/// the repository that is asked about.
pub(super) fn find_git(path: &OsStr) -> Option<PathBuf> {
    let runs = |file: &PathBuf| file.is_file() && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok();
    absolute(path).map(|folder| folder.join("git")).find(runs)
}

/// The search path where none is set.
pub(super) const PATH_UNSET: &str = "/usr/local/bin:/usr/bin:/bin";

fn absolute(path: &OsStr) -> impl Iterator<Item = PathBuf> + '_ {
    std::env::split_paths(path).filter(|folder| folder.is_absolute())
}

/// Whether a part of the repository that git would trust belongs to somebody else. With the git directory named on the
/// command line git itself does not look (`safe.directory`).
pub(super) fn belongs_to_another(checkout: &Checkout, user: u32) -> bool {
    let link = checkout.worktree.as_ref().map(|root| root.join(".git"));
    let parts =
        [Some(checkout.asked_git_dir()), Some(&checkout.common_dir), checkout.worktree.as_deref(), link.as_deref()];
    parts.into_iter().flatten().any(|part| fs::symlink_metadata(part).is_ok_and(|data| data.uid() != user))
}

/// Asks one checkout's git until a moment.
pub(super) struct Runner<'a> {
    pub(super) program: &'a Path,
    pub(super) path: &'a OsStr,
    pub(super) checkout: &'a Checkout,
    pub(super) until: Instant,
    pub(super) unreaped: &'a Unreaped,
}

impl Runner<'_> {
    pub(super) fn run(&self, arguments: &[&str], input: &[u8]) -> Said<Vec<u8>> {
        self.run_with(&[], arguments, input)
    }

    /// Runs git with more settings than those that keep it from running what the repository names.
    pub(super) fn run_with(&self, settings: &[OsString], arguments: &[&str], input: &[u8]) -> Said<Vec<u8>> {
        self.is_time()?;
        let mut git = self.command(settings);
        git.args(arguments);
        let mut child = git.spawn().map_err(|_| Unsaid::Refused(None))?;
        let said = self.talk(&mut child, input).and_then(|out| Ok((out, self.ended(&mut child)?)));
        match said {
            Ok((out, status)) if status.success() => Ok(out),
            Ok((_, status)) => Err(Unsaid::Refused(status.code())),
            Err(why) => {
                self.kill(child);
                Err(why)
            }
        }
    }

    /// Fails when the time is over.
    pub(super) fn is_time(&self) -> Said<Duration> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(Unsaid::OutOfTime) } else { Ok(left) }
    }

    fn command(&self, settings: &[OsString]) -> Command {
        let mut git = Command::new(self.program);
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_bytes().starts_with(b"GIT_")) {
            git.env_remove(name);
        }
        // A transport that the repository allows would still be a program that it names: only this outranks it.
        git.env("GIT_ALLOW_PROTOCOL", "none").env("GIT_NO_LAZY_FETCH", "1");
        git.env("GIT_TERMINAL_PROMPT", "0").env("LC_ALL", "C");
        // What git starts by name comes from where git comes from.
        if let Ok(path) = std::env::join_paths(absolute(self.path)) {
            git.env("PATH", path);
        }
        git.args(["--no-optional-locks", "--no-pager", "--no-replace-objects"]);
        for setting in [
            "core.fsmonitor=false",
            "core.untrackedCache=false",
            "core.quotePath=false",
            "core.bigFileThreshold=512m",
            "diff.suppressBlankEmpty=false",
            "log.showSignature=false",
        ] {
            git.arg("-c").arg(setting);
        }
        for setting in settings {
            git.arg("-c").arg(setting);
        }
        git.arg("--git-dir").arg(self.checkout.asked_git_dir());
        let folder = match self.checkout.worktree.as_ref().filter(|root| root.is_dir()) {
            Some(worktree) => {
                git.arg("--work-tree").arg(worktree);
                worktree.as_path()
            }
            None => Path::new("/"),
        };
        git.current_dir(folder).process_group(0);
        git.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        git
    }

    /// Writes and reads in turn, until the child has closed its output.
    fn talk(&self, child: &mut Child, input: &[u8]) -> Said<Vec<u8>> {
        let refused = |_| Unsaid::Refused(None);
        let (mut stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let mut stdout = stdout.ok_or(Unsaid::Refused(None))?;
        rustix::io::ioctl_fionbio(&stdout, true).map_err(refused)?;
        if let Some(stdin) = &stdin {
            rustix::io::ioctl_fionbio(stdin, true).map_err(refused)?;
        }
        let (mut left, mut out, mut buffer) = (input, Vec::new(), vec![0; 64 << 10]);
        loop {
            let time = Timespec::try_from(self.is_time()?).unwrap_or(Timespec { tv_sec: 3600, tv_nsec: 0 });
            if left.is_empty() {
                stdin = None;
            }
            let mut ends = vec![PollFd::new(&stdout, PollFlags::IN)];
            ends.extend(stdin.as_ref().map(|stdin| PollFd::new(stdin, PollFlags::OUT)));
            match poll(&mut ends, Some(&time)) {
                Err(rustix::io::Errno::INTR) => continue,
                other => other.map_err(refused)?,
            };
            let ready = |end: Option<&PollFd<'_>>| end.is_some_and(|end| !end.revents().is_empty());
            let (readable, writable) = (ready(ends.first()), ready(ends.get(1)));
            if let Some(pipe) = stdin.as_mut().filter(|_| writable) {
                match pipe.write(left) {
                    Ok(written) => left = &left[written..],
                    Err(error) if is_later(&error) => {}
                    Err(_) => left = &[],
                }
            }
            if readable {
                match stdout.read(&mut buffer) {
                    Ok(0) => return Ok(out),
                    Ok(length) if out.len() + length > OUTPUT_MOST => return Err(Unsaid::TooMuch),
                    Ok(length) => out.extend_from_slice(&buffer[..length]),
                    Err(error) if is_later(&error) => {}
                    Err(_) => return Err(Unsaid::Refused(None)),
                }
            }
        }
    }

    /// Waits for the child's end, which need not come with the end of its output.
    fn ended(&self, child: &mut Child) -> Said<ExitStatus> {
        match wait_until(child, self.until) {
            Ok(Some(status)) => Ok(status),
            Ok(None) => Err(Unsaid::OutOfTime),
            Err(_) => Err(Unsaid::Refused(None)),
        }
    }

    /// Ends a child and all that it started.
    fn kill(&self, mut child: Child) {
        if let Some(pid) = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
        }
        if matches!(wait_until(&mut child, Instant::now() + REAP_WITHIN), Ok(None)) {
            self.unreaped.keep(child);
        }
    }
}

fn wait_until(child: &mut Child, until: Instant) -> io::Result<Option<ExitStatus>> {
    let mut pause = Duration::from_micros(100);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(None);
        }
        thread::sleep(pause.min(left));
        pause = (pause * 2).min(Duration::from_millis(10));
    }
}

fn is_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
