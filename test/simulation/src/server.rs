//! One server: what the command's house does, without threads, sockets and a machine's clocks.

use std::collections::BTreeMap;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use majordomus_capability::project::mcp::{Call, Revision, Tools};
use majordomus_capability::registry::Registry;
use majordomus_capability::{Context, Shared, catalogue};
use majordomus_episodes_core::board::{BoardOptions, EpisodeBoard, Inline, Limits};
use majordomus_episodes_core::peers::{Peer, PeerBoard, Transport};
use majordomus_mcp_server::Session;
use majordomus_records::facts::Facts;
use majordomus_records::git::{Answer, Git, Question};
use majordomus_records::recovery::Judges;
use majordomus_records::state::key_hash;
use majordomus_records::state::{State, carrier_of};
use majordomus_records::store::{Parts, Silence};
use majordomus_records::{Checkout, Policy, RecordDriver, Store};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::disk::View;
use crate::machine::Machine;

/// How often a server finishes what is over, adopts, and says that it lives.
pub(crate) const HOUSEKEEPING: Duration = Duration::from_secs(30);

/// How long finishing may take; nothing here takes time.
const SWEEP: Duration = Duration::from_secs(3600);

static REGISTRY: LazyLock<Arc<Registry>> = LazyLock::new(|| Arc::new(catalogue()));
static TOOLS: LazyLock<Arc<Tools>> = LazyLock::new(|| Arc::new(Tools::new(REGISTRY.clone())));

/// A repository without commits, which answers at once.
struct NoCommits;

impl Git for NoCommits {
    fn ask(&self, _question: &Question<'_>, _limit: Duration) -> Answer {
        let facts = Facts { commits: Some(Vec::new()), changed_files: Some(Vec::new()), ..Facts::default() };
        Answer { facts, out_of_time: false }
    }
}

/// Where the checkout of a simulation lies. Only its folder is real; nothing is written into it.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) root: PathBuf,
}

impl Place {
    pub(crate) fn new(root: &Path) -> Self {
        Self { root: root.into() }
    }

    fn git_dir(&self) -> PathBuf {
        self.root.join(".git")
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.git_dir().join("majordomus/main")
    }

    pub(crate) fn records(&self) -> PathBuf {
        self.root.join(majordomus_records::state::RECORDS)
    }

    /// The store as a process with that view of the disk opens it.
    pub(crate) fn store(&self, view: View, machine: &Machine) -> Store {
        let git_dir = self.git_dir();
        let checkout = Checkout {
            worktree: Some(self.root.clone()),
            git_dir: git_dir.clone(),
            common_dir: git_dir.clone(),
            name: "main".into(),
        };
        let parts = Parts { disk: Arc::new(view), clock: Arc::new(machine.clone()), git: Arc::new(NoCommits) };
        Store::with(checkout, State::new(&git_dir, "main", None), Policy::default(), parts)
    }
}

/// What a connection brings along from an earlier server.
#[derive(Clone, Debug, Default)]
pub(crate) struct Before {
    pub(crate) holds: Option<String>,
    pub(crate) ended: Option<String>,
    pub(crate) replays: usize,
}

/// A server in a process.
pub(crate) struct Server {
    pub(crate) shared: Arc<Shared>,
    pub(crate) recorder: Arc<RecordDriver>,
    /// Bridges' sessions, by link.
    pub(crate) sessions: BTreeMap<u64, Session>,
    /// Sessions over HTTP, by caller, and how many streams each has.
    pub(crate) web: BTreeMap<u8, (Session, u32)>,
    /// The ids of those sessions.
    pub(crate) web_ids: BTreeMap<u8, String>,
    /// Whether it is the server of the checkout, rather than its one client's alone.
    pub(crate) is_holder: bool,
    /// When it looks after the house again, in time awake.
    pub(crate) chores_at: Duration,
}

impl Server {
    /// Starts one: adopts what waits for its client.
    pub(crate) fn start(place: &Place, view: View, machine: &Machine, is_holder: bool) -> Self {
        let store = place.store(view, machine).by_promise();
        let recorder = Arc::new(RecordDriver::new(store).expect("the machine has random bytes"));
        let clock = Arc::new(machine.clone());
        let board = EpisodeBoard::with(BoardOptions {
            driver: recorder.clone(),
            clock: clock.clone(),
            limits: Limits { driver_time: Duration::ZERO, ..Limits::default() },
            run: Arc::new(Inline),
        });
        let shared = Shared::new(REGISTRY.clone(), board, PeerBoard::with_clock(clock))
            .with_records(Some(recorder.store().clone()));
        let server = Self {
            shared: Arc::new(shared),
            recorder,
            sessions: BTreeMap::new(),
            web: BTreeMap::new(),
            web_ids: BTreeMap::new(),
            is_holder,
            chores_at: machine.awake(),
        };
        server.adopt();
        server
    }

    /// A session of a connection of that id, which goes on where an earlier server was.
    pub(crate) fn session(&self, transport: Transport, connection: &str, from: &Before) -> Session {
        let session = Session::new(self.shared.clone(), TOOLS.clone(), transport).carried_by(&carrier_of(connection));
        session.come_back(from.holds.as_deref(), from.ended.as_deref(), from.replays);
        session
    }

    /// Finishes what is over, adopts what waits.
    pub(crate) fn look_after_the_house(&mut self, now: Duration, judging: bool) {
        let on_board: HashSet<String> = self.shared.board.keys().iter().map(key_hash).collect();
        let on_board = |key: &str| on_board.contains(key);
        sweep(self.recorder.store(), if judging { Judges::AllBut(&on_board) } else { Judges::Nothing });
        self.adopt();
        self.chores_at = now + HOUSEKEEPING;
    }

    fn adopt(&self) {
        let store = self.recorder.store();
        for (key, open) in store.adoptable().unwrap_or_default() {
            if matches!(open.silence, Silence::Waiting(_)) {
                self.shared.handles.restore(&key, &open.log.handles);
                self.shared.board.adopt(store.to_adopt(&key, &open));
            }
        }
    }

    /// Acts on what is due.
    pub(crate) fn reap(&self) {
        self.shared.board.reap();
        self.shared.handles.tidy(&self.shared.board, &self.shared.peers);
    }

    /// Lets every connection go; what they held waits for its clients, or moves with them.
    pub(crate) fn close_doors(&mut self, moves: bool) {
        for session in self.sessions.values() {
            if moves {
                session.give_up();
            }
            session.end();
        }
        self.sessions.clear();
        self.web.values().for_each(|(session, _)| session.end());
        self.web.clear();
        self.shared.handles.end_all();
    }

    /// The callers over HTTP, whom another process goes on with: how many streams each had, and what it held.
    pub(crate) fn hand_over(&mut self) -> Vec<(u8, u32, Option<String>)> {
        let web = std::mem::take(&mut self.web);
        let handed = web.into_iter().map(|(n, (session, streams))| {
            session.give_up();
            (n, streams, self.seat_of(session.peer()))
        });
        handed.collect()
    }

    /// Leaves.
    pub(crate) fn leave(mut self) {
        self.close_doors(true);
        self.recorder.compose_waiting(SWEEP);
        self.recorder.leave();
    }

    /// The external id of what the peer of a link has a seat at.
    pub(crate) fn seat_of(&self, peer: &Peer) -> Option<String> {
        self.shared.board.of_peer(peer).map(|episode| episode.external_id)
    }

    /// Whether somebody has a seat at the episode of that id.
    pub(crate) fn has_seat(&self, id: char) -> bool {
        let is = |name: &str| name.chars().eq([id]);
        self.shared.board.list().iter().any(|episode| episode.peer.is_some() && is(&episode.external_id))
    }

    /// A call by somebody with a handle, or without one yet.
    pub(crate) fn call_by_handle(&self, tool: &str, arguments: &Value) -> Value {
        let context = Context::without_peer(self.shared.clone(), None);
        let arguments = RawValue::from_string(arguments.to_string()).expect("JSON was written");
        let call = Call { name: tool, arguments: Some(&arguments), notice: None };
        let result = TOOLS.call(&context, Revision::ALL[Revision::ALL.len() - 1], call).expect("a tool of that name");
        serde_json::from_str(&result).expect("a result is JSON")
    }
}

/// Finishes what nobody is left to finish.
pub(crate) fn sweep(store: &Store, judges: Judges<'_>) {
    store.sweep_as(judges, SWEEP);
}

/// What a person's command asks of a server, or of the logs where there is none.
pub(crate) fn close_by_operator(shared: Arc<Shared>, external_id: &str, provider: &str) -> bool {
    let context = Context::without_peer(shared, None);
    let arguments = serde_json::json!({ "external_id": external_id, "provider": provider }).to_string();
    let capability = REGISTRY.capability("episodes.close").expect("it is in the catalogue");
    capability.call(&context, &arguments, None).is_ok()
}

/// What a command has where no server answers.
pub(crate) fn without_server(store: Store) -> Arc<Shared> {
    Arc::new(Shared::new(REGISTRY.clone(), EpisodeBoard::new(), PeerBoard::new()).with_records(Some(store)))
}
