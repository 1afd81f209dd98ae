//! Seeing the moment at which a file arrives in a folder by a rename.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

/// How long a file may take to arrive.
const LIMIT: Duration = Duration::from_secs(10);

/// Notices renames into a folder.
#[cfg(target_os = "linux")]
pub(crate) struct Arrivals(rustix::fd::OwnedFd);

#[cfg(target_os = "linux")]
impl Arrivals {
    /// Begins to watch. The kernel reports the rename, so nothing is polled and no processor is taken from what is
    /// measured; the report costs a wake-up, some tens of microseconds that count against us.
    pub(crate) fn watch(folder: &Path) -> Result<Self> {
        use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};
        let inotify = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).context("cannot watch a folder")?;
        add_watch(&inotify, folder, WatchFlags::MOVED_TO)
            .with_context(|| format!("cannot watch {}", folder.display()))?;
        Ok(Self(inotify))
    }

    /// Forgets what has arrived so far.
    pub(crate) fn forget(&self) {
        let mut events = [0_u8; 4096];
        while rustix::io::read(&self.0, &mut events).is_ok_and(|read| read > 0) {}
    }

    /// Waits for an arrival, and tells when it was noticed.
    pub(crate) fn wait(&self) -> Result<Instant> {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let limit = Timespec::try_from(LIMIT).context("a limit that no clock has")?;
        let mut waits = [PollFd::new(&self.0, PollFlags::IN)];
        let ready = rustix::io::retry_on_intr(|| poll(&mut waits, Some(&limit))).context("cannot wait for a file")?;
        let noticed = Instant::now();
        ensure!(ready > 0, "no file arrived within {LIMIT:?}");
        Ok(noticed)
    }
}

/// Looks for files in a folder, again and again.
#[cfg(not(target_os = "linux"))]
pub(crate) struct Arrivals(std::path::PathBuf);

#[cfg(not(target_os = "linux"))]
impl Arrivals {
    /// Begins to watch a folder in which nothing stays.
    pub(crate) fn watch(folder: &Path) -> Result<Self> {
        Ok(Self(folder.into()))
    }

    /// Forgets what has arrived so far.
    pub(crate) fn forget(&self) {}

    /// Waits for an arrival, and tells when it was noticed.
    pub(crate) fn wait(&self) -> Result<Instant> {
        let begun = Instant::now();
        while std::fs::read_dir(&self.0).context("cannot watch a folder")?.next().is_none() {
            ensure!(begun.elapsed() < LIMIT, "no file arrived within {LIMIT:?}");
        }
        Ok(Instant::now())
    }
}
