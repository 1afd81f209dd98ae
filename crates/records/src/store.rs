//! The episodes of one checkout, as their logs on the disk say.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use majordomus_episodes_core::ids::IdError;
use majordomus_episodes_core::{EpisodeKey, REATTACH_GRACE};

use crate::append::READ_MOST;
use crate::checkout::Checkout;
use crate::clock::{Clock, Stamp, SystemClock};
use crate::disk::{Disk, Open, RealDisk};
use crate::git::{Git, RealGit};
use crate::holder::{self, Presence};
use crate::inside::LeadsOut;
use crate::line::{Head, Witness};
use crate::log::Log;
use crate::state::{self, State};

/// How long silence may last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// After a connection was lost; `None` for what its client was promised, or the usual grace.
    pub grace: Option<Duration>,
    /// What connections of this process are promised, where that is not what it judges others by.
    pub promise: Option<Duration>,
    /// For an episode that its hooks drew, or that nobody was seen to leave; `None` for what the provider declares.
    pub idle: Option<Duration>,
}

impl Policy {
    /// How long a connection of this process is waited for once it is lost.
    #[must_use]
    pub fn own_grace(&self) -> Duration {
        self.promise.or(self.grace).unwrap_or(REATTACH_GRACE)
    }

    /// How long the connection that a log names is waited for.
    fn grace_for(&self, log: &Log) -> Duration {
        self.grace.or(log.grace_ms.map(Duration::from_millis)).unwrap_or(REATTACH_GRACE)
    }
}

/// Says what kept a log from being written or read.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The state folder or a file in it refused.
    #[error("{what} {}", .path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The log changed under every attempt.
    #[error("the log of this episode changed {0} times while it was being written")]
    Contended(u32),
    /// Whom an earlier server knew has nothing to come back to.
    #[error("that episode is over, or was attached by somebody else since")]
    Gone,
    /// The machine gave no random bytes.
    #[error("no random bytes for a new id")]
    Random,
    /// A part of the path of the records leads out of the repository.
    #[error(transparent)]
    LeadsOut(#[from] LeadsOut),
    /// The id cannot be an episode's.
    #[error(transparent)]
    Id(#[from] IdError),
}

impl StoreError {
    /// What is wrong, in words that name no place on this machine: for whoever asks over the network.
    #[must_use]
    pub fn without_place(&self) -> String {
        match self {
            Self::Io { what, path, source } => {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                format!("{what} {name}: {source}")
            }
            Self::LeadsOut(_) => "the folder of the records leads out of the repository".into(),
            Self::Contended(_) | Self::Gone | Self::Random | Self::Id(_) => self.to_string(),
        }
    }

    pub(crate) fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { what, path, source }
    }
}

/// Whether an episode may still be waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Silence {
    /// A living connection holds it.
    Held,
    /// Nobody holds it, and there is this much time left.
    Waiting(Duration),
    /// Its time is over; this length was judged.
    Over(Duration),
}

/// One open episode, as it stands on the disk.
#[derive(Clone, Debug)]
pub struct OpenEpisode {
    /// What its log says.
    pub log: Log,
    /// Whether it may still be waited for.
    pub silence: Silence,
    /// When its client was last seen at work, counted from now.
    pub silent_for: Duration,
    /// Where the log lies.
    pub path: PathBuf,
}

/// The episodes of one checkout.
#[derive(Clone)]
pub struct Store {
    pub(crate) checkout: Checkout,
    pub(crate) state: State,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) git: Arc<dyn Git>,
    pub(crate) policy: Policy,
}

/// What a store is made of, so that faults can be put in its way.
pub struct Parts {
    /// The files.
    pub disk: Arc<dyn Disk>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The facts.
    pub git: Arc<dyn Git>,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("checkout", &self.checkout).field("policy", &self.policy).finish_non_exhaustive()
    }
}

impl Store {
    /// Opens the episodes of a checkout on the machine's own disk, clock and git. Touches nothing yet.
    #[must_use]
    pub fn open(checkout: Checkout, policy: Policy) -> Self {
        let user_state = user_state_folder();
        let parts =
            Parts { disk: Arc::new(RealDisk), clock: Arc::new(SystemClock::new()), git: Arc::new(RealGit::default()) };
        let state = State::new(&checkout.common_dir, &checkout.name, user_state.as_deref());
        Self::with(checkout, state, policy, parts)
    }

    /// Opens the episodes of a checkout on the given parts.
    #[must_use]
    pub fn with(checkout: Checkout, state: State, policy: Policy, parts: Parts) -> Self {
        Self { checkout, state, disk: parts.disk, clock: parts.clock, git: parts.git, policy }
    }

    /// The checkout.
    #[must_use]
    pub fn checkout(&self) -> &Checkout {
        &self.checkout
    }

    /// The state folders.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The same store for a server: its own grace is a promise to its own clients, and everybody is judged by theirs.
    #[must_use]
    pub fn by_promise(&self) -> Self {
        let promise = Some(self.policy.own_grace());
        Self { policy: Policy { grace: None, promise, ..self.policy }, ..self.clone() }
    }

    /// How long silence may last.
    #[must_use]
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// The disk that the store writes to.
    #[must_use]
    pub fn disk(&self) -> &dyn Disk {
        &*self.disk
    }

    /// The present moment, by the store's clock.
    #[must_use]
    pub fn now(&self) -> Stamp {
        self.clock.now()
    }

    pub(crate) fn head(&self) -> Head {
        self.checkout.head()
    }

    /// Whether there is a log of a key in `open/`, whatever it says.
    #[must_use]
    pub fn has_log(&self, key: &EpisodeKey) -> bool {
        let there = |root: &PathBuf| matches!(self.disk.identity(&state::open_log(root, key)), Ok(Some(_)));
        self.state.roots().iter().any(there)
    }

    /// Reads the open episode of a key. `None` where there is none, or only what is left of one that ended.
    ///
    /// # Errors
    /// [`StoreError::Io`] where the log is there and cannot be read.
    pub fn find(&self, key: &EpisodeKey) -> Result<Option<OpenEpisode>, StoreError> {
        for root in self.state.roots() {
            let path = state::open_log(root, key);
            if let Some(found) = self.read_open(&path)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Tells the keys of the open episodes with that external id, one per provider at most, in the order of the
    /// providers' declaration. They are found by the id as it is given, although a log keeps no credential in it.
    ///
    /// # Errors
    /// [`StoreError::Id`] where it cannot be an external id; [`StoreError::Io`] where a log is there and cannot be read.
    pub fn open_keys(&self, external_id: &str) -> Result<Vec<EpisodeKey>, StoreError> {
        let mut keys = Vec::new();
        for provider in majordomus_providers::all() {
            let key = EpisodeKey::new(provider.id, external_id)?;
            if self.find(&key)?.is_some() {
                keys.push(key);
            }
        }
        Ok(keys)
    }

    /// Reads all open episodes, in no order.
    ///
    /// # Errors
    /// [`StoreError::Io`] where a folder is there and cannot be read; a single unreadable log is left out.
    pub fn open_episodes(&self) -> Result<Vec<OpenEpisode>, StoreError> {
        Ok(self.open_logs()?.0)
    }

    /// Reads `open/` once: the open episodes, and the paths of logs that have ended and were not put aside.
    pub(crate) fn open_logs(&self) -> Result<(Vec<OpenEpisode>, Vec<PathBuf>), StoreError> {
        let (mut open, mut ended) = (Vec::new(), Vec::new());
        for path in self.logs("open")? {
            let Ok(bytes) = self.disk.read(&path, READ_MOST) else { continue };
            let log = Log::parse(&bytes);
            match (&log.start, &log.end) {
                (Some(_), None) => open.push(self.open_episode(log, path)),
                (Some(_), Some(_)) => ended.push(path),
                (None, _) => {}
            }
        }
        Ok((open, ended))
    }

    /// Lists the logs in `open/`, `ended/` or `bad/` of both state folders, in no order.
    pub(crate) fn logs(&self, folder: &str) -> Result<Vec<PathBuf>, StoreError> {
        let mut logs = Vec::new();
        for root in self.state.roots() {
            let folder = root.join(folder);
            let names = match self.disk.names(&folder) {
                Ok(names) => names,
                Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                    continue;
                }
                // A folder that may not be looked into is another user's, and so is what is in it; `doctor` says so.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => continue,
                Err(source) => return Err(StoreError::Io { what: "cannot list", path: folder, source }),
            };
            logs.extend(names.into_iter().filter(|name| is_log(name)).map(|name| folder.join(name)));
        }
        Ok(logs)
    }

    fn read_open(&self, path: &Path) -> Result<Option<OpenEpisode>, StoreError> {
        let bytes = match self.disk.read(path, READ_MOST) {
            Ok(bytes) => bytes,
            Err(error) if is_absent(&error) => return Ok(None),
            Err(error) => return Err(StoreError::io("cannot read", path)(error)),
        };
        let log = Log::parse(&bytes);
        let is_open = log.start.is_some() && log.end.is_none();
        Ok(is_open.then(|| self.open_episode(log, path.into())))
    }

    fn open_episode(&self, log: Log, path: PathBuf) -> OpenEpisode {
        let now = self.now();
        let silent_for = log.silent_for(&now).unwrap_or_default();
        OpenEpisode { silence: self.judge(&log, &now), silent_for, log, path }
    }

    /// Decides by comparing times whether an open episode may still be waited for.
    pub(crate) fn judge(&self, log: &Log, now: &Stamp) -> Silence {
        let Some(start) = &log.start else { return Silence::Waiting(self.policy.own_grace()) };
        let silent_for = log.silent_for(now).unwrap_or_default();
        let (limit, waited) = match (start.witness, &log.connection) {
            (Witness::Connection, Some(connection)) => {
                match holder::presence(&*self.disk, self.state.roots(), connection, &start.opened.key) {
                    Presence::Alive => return Silence::Held,
                    // The grace runs from the loss: when the holder let it go, or its last beat, if that is younger
                    // than the last evidence.
                    Presence::Gone(beat) => {
                        let since_beat = beat.map(|beat| now.age_of(&beat));
                        (self.policy.grace_for(log), since_beat.map_or(silent_for, |since| since.min(silent_for)))
                    }
                }
            }
            // Nobody was seen to leave: silence is not loss.
            _ => (self.idle_of(&start.opened.provider), silent_for),
        };
        if waited < limit { Silence::Waiting(limit - waited) } else { Silence::Over(limit) }
    }

    fn idle_of(&self, provider: &str) -> Duration {
        let declared = || majordomus_providers::find(provider).map_or(86_400, |provider| provider.idle_seconds);
        self.policy.idle.unwrap_or_else(|| Duration::from_secs(declared()))
    }

    /// Opens the log at a path for appending, if it is there.
    pub(crate) fn appender_at(&self, path: &Path) -> Result<Option<Appender>, StoreError> {
        let root = path.parent().and_then(Path::parent).unwrap_or(path).to_path_buf();
        match self.disk.open(path, Open::Existing) {
            Ok(file) => Ok(Some(Appender { file, path: path.into(), root })),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(StoreError::io("cannot open", path)(error)),
        }
    }

    /// Opens the log of a key for appending: the one that exists, or a new one in the first folder that can be written.
    pub(crate) fn open_for_append(&self, key: &EpisodeKey, create: bool) -> Result<Option<Appender>, StoreError> {
        self.open_in(self.state.roots(), key, create)
    }

    pub(crate) fn demand_checkout(&self) -> Result<(), StoreError> {
        let git = &self.checkout.common_dir;
        std::fs::metadata(git).map(drop).map_err(StoreError::io("cannot find", git))
    }

    /// The same in some of the state folders.
    pub(crate) fn open_in(
        &self,
        roots: &[PathBuf],
        key: &EpisodeKey,
        create: bool,
    ) -> Result<Option<Appender>, StoreError> {
        let mut refused = None;
        for root in roots {
            let path = state::open_log(root, key);
            match self.disk.open(&path, Open::Existing) {
                Ok(file) => return Ok(Some(Appender { file, path, root: root.clone() })),
                Err(error) if is_absent(&error) => {}
                Err(error) => refused = Some(StoreError::io("cannot open", &path)(error)),
            }
        }
        if !create {
            return refused.map_or(Ok(None), Err);
        }
        // A checkout that was moved or removed under a server is not begun anew where it was.
        self.demand_checkout()?;
        for root in roots {
            let path = state::open_log(root, key);
            let made =
                self.disk.make_folders(&root.join("open"), true).and_then(|()| self.disk.open(&path, Open::Create));
            match made {
                Ok(file) => return Ok(Some(Appender { file, path, root: root.clone() })),
                Err(error) => refused = refused.or(Some(StoreError::io("cannot write", &path)(error))),
            }
        }
        refused.map_or(Ok(None), Err)
    }
}

/// A log that is open for appending.
pub(crate) struct Appender {
    pub(crate) file: Box<dyn crate::disk::File>,
    pub(crate) path: PathBuf,
    pub(crate) root: PathBuf,
}

pub(crate) fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn is_log(name: &std::ffi::OsStr) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "jsonl")
}

fn user_state_folder() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).map(PathBuf::from).filter(|path: &PathBuf| path.is_absolute());
    set("XDG_STATE_HOME").or_else(|| Some(set("HOME")?.join(".local/state")))
}
