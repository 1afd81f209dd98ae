//! Whose settings: a project's or a person's; where they and the ledger of what was put into them lie.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use majordomus_providers::ConfigFile;
use majordomus_records::disk::{Disk, File, Open, RealDisk};
use majordomus_records::{Checkout, Policy, Store};

use super::ledger::Ledger;
use crate::variables;

/// The ledger's file in a state folder.
const LEDGER: &str = "connected.json";
/// What is locked while settings are changed.
const LOCK: &str = "connect.lock";
/// The most bytes of a ledger that are read.
const MOST: u64 = 1 << 20;
/// How long another process that changes the same settings is waited for.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long between two looks.
const PAUSE: Duration = Duration::from_millis(20);

/// A project's settings, or a person's.
#[derive(Clone, Debug)]
pub(crate) struct Scope {
    /// The root of the project, or the home folder.
    pub(super) base: PathBuf,
    /// Whether they are a person's.
    pub(super) is_persons: bool,
    /// The folder that `.config` of a person's home stands for, where their environment names another.
    config: Option<PathBuf>,
    /// The state folders, the preferred one first.
    state: Vec<PathBuf>,
}

impl Scope {
    /// The settings of the project in a checkout; `None` where it has no worktree.
    pub(crate) fn project(checkout: Checkout) -> Option<Self> {
        let base = checkout.worktree.clone()?;
        let state = Store::open(checkout, Policy::default()).state().roots().to_vec();
        Some(Self { base, is_persons: false, config: None, state })
    }

    /// The settings of the person whose environment this is; `None` where it names no home.
    pub(crate) fn person() -> Option<Self> {
        let folder = |name| variables::value(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = folder("HOME")?;
        // The canonical form, so that what lies below it is seen to.
        let base = fs::canonicalize(&home).unwrap_or(home);
        // As for state that has no place in a repository.
        let state = folder("XDG_STATE_HOME").unwrap_or_else(|| base.join(".local/state")).join("majordomus");
        Some(Self { base, is_persons: true, config: folder("XDG_CONFIG_HOME"), state: vec![state] })
    }

    /// The settings of a project at `base`.
    #[cfg(test)]
    pub(super) fn at(base: PathBuf, state: PathBuf) -> Self {
        Self { base, is_persons: false, config: None, state: vec![state] }
    }

    /// Whether they are a person's.
    pub(crate) fn is_persons(&self) -> bool {
        self.is_persons
    }

    /// Where a file of settings lies, if it is of this scope.
    pub(super) fn path(&self, file: &ConfigFile) -> Option<PathBuf> {
        let below = file.path.strip_prefix("~/");
        (below.is_some() == self.is_persons).then(|| self.below(below.unwrap_or(file.path)))
    }

    /// A place in the project or the home folder.
    fn below(&self, path: &str) -> PathBuf {
        match (&self.config, path.strip_prefix(".config/")) {
            (Some(config), Some(path)) => config.join(path),
            _ => self.base.join(path),
        }
    }

    /// What was put in. A ledger that cannot be read says as little as none.
    pub(super) fn ledger(&self) -> Ledger {
        let read = |root: &PathBuf| Ledger::read(&RealDisk.read(&root.join(LEDGER), MOST).ok()?);
        self.state.iter().find_map(read).unwrap_or_default()
    }

    /// Writes down what was put in, for its owner alone.
    ///
    /// # Errors
    /// The operating system's, where no state folder can be written.
    pub(super) fn keep(&self, ledger: &Ledger) -> io::Result<()> {
        self.in_state(|root| {
            let path = root.join(LEDGER);
            if ledger.is_empty() {
                return match RealDisk.remove(&path) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                    removed => removed,
                };
            }
            // Only whoever has the lock writes this.
            let aside = root.join("connected.aside");
            let _ = RealDisk.remove(&aside);
            let mut file = RealDisk.open(&aside, Open::Create)?;
            file.append(&ledger.bytes())?;
            file.sync()?;
            RealDisk.rename(&aside, &path)?;
            RealDisk.sync_folder(root)
        })
    }

    /// Keeps other processes from changing these settings, as long as the answer lives.
    ///
    /// # Errors
    /// The operating system's; `TimedOut` where another process does not get done.
    pub(super) fn lock(&self) -> io::Result<Box<dyn File>> {
        let file = self.in_state(|root| RealDisk.open(&root.join(LOCK), Open::Create))?;
        let until = Instant::now() + PATIENCE;
        while !file.try_lock()? {
            if Instant::now() > until {
                return Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    "another majordomus changes settings and does not get done",
                ));
            }
            std::thread::sleep(PAUSE);
        }
        Ok(file)
    }

    fn in_state<T>(&self, what: impl Fn(&Path) -> io::Result<T>) -> io::Result<T> {
        let mut refused = None;
        for root in &self.state {
            match RealDisk.make_folders(root, true).and_then(|()| what(root)) {
                Ok(done) => return Ok(done),
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        Err(refused.unwrap_or_else(|| io::ErrorKind::NotFound.into()))
    }

    /// Whether one of these folders is there.
    pub(super) fn has_folder(&self, folders: &[&str]) -> bool {
        folders.iter().any(|folder| fs::metadata(self.below(folder)).is_ok_and(|data| data.is_dir()))
    }
}
