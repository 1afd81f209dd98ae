//! One checkout on a simulated disk, and what can be asked of it afterwards.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use majordomus_episodes_core::EpisodeKey;
use majordomus_records::append::holder_id;
use majordomus_records::clock::{Clock, Stamp};
use majordomus_records::disk::{Disk, RealDisk};
use majordomus_records::ending::{EndedAs, Ending, HookEnd};
use majordomus_records::facts::Facts;
use majordomus_records::git::{Answer, Git, Question};
use majordomus_records::holder::Holder;
use majordomus_records::joining::{Joined, Joining, Whose};
use majordomus_records::line::{EndOutcome, Witness};
use majordomus_records::log::Log;
use majordomus_records::state::{RECORDS, State};
use majordomus_records::store::Parts;
use majordomus_records::{Checkout, Policy, Store, StoreError};

use crate::sim::SimDisk;

/// The grace in these tests.
pub(crate) const GRACE: Duration = Duration::from_secs(900);

/// A clock that is moved by hand.
#[derive(Clone)]
pub(crate) struct Hand(Arc<Mutex<Stamp>>);

impl Hand {
    pub(crate) fn advance(&self, by: Duration) {
        let mut stamp = self.0.lock().unwrap();
        stamp.wall_ms += i64::try_from(by.as_millis()).unwrap();
        stamp.up_ms += u64::try_from(by.as_millis()).unwrap();
    }

    /// Moves only the wall clock, as a person or a time server does.
    pub(crate) fn jump(&self, ms: i64) {
        self.0.lock().unwrap().wall_ms += ms;
    }

    /// Lets the machine sleep: the wall clock goes on, the time awake stands still.
    pub(crate) fn sleep(&self, by: Duration) {
        let mut stamp = self.0.lock().unwrap();
        stamp.wall_ms += i64::try_from(by.as_millis()).unwrap();
        stamp.asleep_ms += u64::try_from(by.as_millis()).unwrap();
    }

    /// Boots the machine anew: the time awake begins at 0.
    pub(crate) fn boot(&self, name: &str) {
        let mut stamp = self.0.lock().unwrap();
        (stamp.boot, stamp.up_ms) = (name.into(), 0);
    }
}

impl Clock for Hand {
    fn now(&self) -> Stamp {
        self.0.lock().unwrap().clone()
    }
}

/// A repository without commits, which answers at once.
struct NoCommits;

impl Git for NoCommits {
    fn ask(&self, _question: &Question<'_>, _limit: Duration) -> Answer {
        let facts = Facts { commits: Some(Vec::new()), changed_files: Some(Vec::new()), ..Facts::default() };
        Answer { facts, out_of_time: false }
    }
}

/// One checkout.
pub(crate) struct World {
    pub(crate) disk: SimDisk,
    pub(crate) clock: Hand,
    folder: tempfile::TempDir,
}

/// One process that works in the checkout.
pub(crate) struct Process {
    pub(crate) store: Store,
    pub(crate) holder: Holder,
}

impl World {
    pub(crate) fn new() -> Self {
        let start = Stamp { wall_ms: 1_800_000_000_000, boot: "first".into(), up_ms: 1_000_000, asleep_ms: 0 };
        let clock = Hand(Arc::new(Mutex::new(start)));
        let folder = tempfile::tempdir().unwrap();
        // What only locks or looks at the git directory does so on the real one.
        std::fs::create_dir(folder.path().join(".git")).unwrap();
        Self { disk: SimDisk::default(), clock, folder }
    }

    pub(crate) fn root(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.root().join(".git/majordomus/main")
    }

    /// Starts another process.
    pub(crate) fn process(&self) -> Process {
        self.process_on(Arc::new(self.disk.clone()), None, Policy { grace: Some(GRACE), idle: None, promise: None })
    }

    /// Starts another process that sees the disk through `disk`, may use a state folder of the user's, and waits as
    /// `policy` says.
    pub(crate) fn process_on(&self, disk: Arc<dyn Disk>, user_state: Option<&Path>, policy: Policy) -> Process {
        let git_dir = self.root().join(".git");
        let worktree = Some(self.root().to_path_buf());
        let checkout =
            Checkout { worktree, git_dir: git_dir.clone(), common_dir: git_dir.clone(), name: "main".into() };
        let parts = Parts { disk, clock: Arc::new(self.clock.clone()), git: Arc::new(NoCommits) };
        let store = Store::with(checkout, State::new(&git_dir, "main", user_state), policy, parts);
        Process { store, holder: Holder::new(holder_id().unwrap()) }
    }

    /// Starts another process in a checkout on the machine's own disk, by this world's clock.
    pub(crate) fn process_in(&self, checkout: Checkout, user_state: Option<&Path>) -> Process {
        let parts = Parts { disk: Arc::new(RealDisk), clock: Arc::new(self.clock.clone()), git: Arc::new(NoCommits) };
        let state = State::new(&checkout.common_dir, &checkout.name, user_state);
        let policy = Policy { grace: Some(GRACE), idle: None, promise: None };
        Process { store: Store::with(checkout, state, policy, parts), holder: Holder::new(holder_id().unwrap()) }
    }

    /// The published records, by path.
    pub(crate) fn records(&self) -> Vec<(PathBuf, String)> {
        let paths = self.disk.below(&self.root().join(RECORDS));
        let read = |path: PathBuf| {
            let text = String::from_utf8(self.disk.read(&path, u64::MAX).unwrap()).unwrap();
            (path, text)
        };
        paths.into_iter().map(read).collect()
    }

    /// The logs in `open/` and `ended/` that hold a session.
    pub(crate) fn logs(&self) -> Vec<Log> {
        let logs = self
            .disk
            .below(&self.state())
            .into_iter()
            .filter(|path| path.extension().is_some_and(|end| end == "jsonl"));
        logs.map(|path| Log::parse(&self.disk.read(&path, u64::MAX).unwrap()))
            .filter(|log| log.start.is_some())
            .collect()
    }

    /// Finishes what is left, as the commands of the following days do.
    pub(crate) fn recover(&self) {
        self.clock.advance(GRACE * 200);
        for _ in 0..3 {
            self.process().store.sweep(Duration::from_secs(10));
        }
    }
}

pub(crate) fn key() -> EpisodeKey {
    EpisodeKey::new("generic", "thread-7").unwrap()
}

impl Process {
    pub(crate) fn attach(&self) -> Result<Joined, StoreError> {
        let joining = Joining { connection: Some((&self.holder, 1)), client: Some("test 1"), ..Joining::default() };
        self.store.start(&key(), Witness::Connection, joining)
    }

    /// Whether its client was seen at work in an episode of its own.
    pub(crate) fn seen(&self) -> Result<bool, StoreError> {
        Ok(self.store.seen(&key(), (self.holder.id(), 1), Duration::ZERO)? == Whose::Its)
    }

    pub(crate) fn detach(&self) -> Result<EndedAs, StoreError> {
        let holder = Some(self.holder.id());
        let (outcome, witness) = (EndOutcome::Closed, Witness::Connection);
        let (reason, last_evidence_ago, asked_ago) = ("detach", None, Duration::ZERO);
        self.store.end(
            &key(),
            Ending::Said { outcome, reason, witness, holder, last_evidence_ago, asked_ago, hook: HookEnd::default() },
        )
    }

    pub(crate) fn expire(&self) -> Result<EndedAs, StoreError> {
        self.store.end(&key(), Ending::Silence { own: None })
    }
}

/// Reads one field of a record's front matter.
pub(crate) fn field<'a>(record: &'a str, name: &str) -> &'a str {
    let line = record.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    line.unwrap_or_else(|| panic!("the record has no {name}:\n{record}")).trim_matches('"')
}
