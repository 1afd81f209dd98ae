//! A server over HTTP that records onto a simulated disk, and whoever calls it.

use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use majordomus_capability::Shared;
use majordomus_episodes_core::board::{Adopted, BoardOptions, Limits};
use majordomus_episodes_core::clock::{Clock, Moment};
use majordomus_mcp_server::Threads;
use majordomus_mcp_server::http::HttpLimits;
use majordomus_records::RecordDriver;
use majordomus_records::clock::{Clock as _, rfc3339};
use majordomus_records::store::Silence;
use serde_json::{Value, json};

use crate::faults_truth::Said;
use crate::served::HANGS;
use crate::sim::{Fault, Restart};
use crate::talk::{Answer, Client, Connection, Over};
use crate::world::{GRACE, Hand, World};

/// The id under which everybody here comes.
pub(crate) const ID: &str = "thread-7";
/// The header that carries a handle.
const HANDLE: &str = "majordomus-episode-handle";

/// The world's clock, as boards read it.
struct BoardClock(Hand);

impl Clock for BoardClock {
    fn now(&self) -> Moment {
        let stamp = self.0.now();
        Moment { awake: Duration::from_millis(stamp.up_ms), wall_ms: stamp.wall_ms }
    }
}

/// A server that records into the world.
pub(crate) struct Site {
    pub(crate) over: Over,
    pub(crate) recorder: Arc<RecordDriver>,
    /// A caller that has nothing to do with the disk.
    other: Client,
}

impl Site {
    pub(crate) fn start(world: &World) -> Self {
        Self::within(world, HttpLimits::default(), Limits::default().driver_time)
    }

    /// Starts one that gives up on a driver call after `driver_time`.
    pub(crate) fn within(world: &World, limits: HttpLimits, driver_time: Duration) -> Self {
        static THREADS: OnceLock<Threads> = OnceLock::new();
        let recorder = Arc::new(RecordDriver::new(world.process().store.by_promise()).unwrap());
        let options = BoardOptions {
            driver: recorder.clone(),
            run: Arc::new(THREADS.get_or_init(Threads::default).clone()),
            limits: Limits { grace: GRACE, driver_time, ..Limits::default() },
            ..BoardOptions::default()
        };
        let over = Over::start(Arc::new(BoardClock(world.clock.clone())), options, limits);
        let other = over.client();
        Self { over, recorder, other }
    }

    /// What a server does for the house beside its clients: it finishes what is over and adopts what waits.
    pub(crate) fn keep_house(&self) {
        let (store, shared) = (self.recorder.store(), &self.over.shared);
        store.sweep(Duration::from_secs(10));
        for (key, open) in store.adoptable().unwrap_or_default() {
            let (Some(start), Silence::Waiting(left)) = (&open.log.start, &open.silence) else { continue };
            shared.handles.restore(&key, &open.log.handles);
            shared.board.adopt(Adopted {
                key,
                opened_at: rfc3339(start.stamp.wall_ms),
                attachments: open.log.attachments,
                silent_for: open.silent_for,
                waiting_for: GRACE.saturating_sub(*left),
                line: "adopted".into(),
            });
        }
    }

    /// Lets all driver calls return.
    pub(crate) fn settle(&self) {
        assert!(self.over.shared.board.settle(HANGS), "a driver call hangs");
    }

    /// Does what is due, as the server's keeper does.
    pub(crate) fn reap(&self) {
        self.over.shared.board.reap();
        self.over.shared.handles.tidy(&self.over.shared.board, &self.over.shared.peers);
        self.settle();
    }

    /// Whatever the disk does, other callers are answered.
    pub(crate) fn other_callers_are_answered(&mut self) {
        let began = Instant::now();
        assert_eq!(self.other.ping(), 200);
        for path in ["/api/v1/ready", "/api/v1/live", "/api/v1/episodes", "/api/v1/peers"] {
            self.other.connection.send("GET", path, &[], "");
            assert_eq!(self.other.connection.read().status, 200, "{path}");
        }
        assert!(began.elapsed() < HANGS / 3, "others wait for a disk that is not theirs");
    }

    /// Ends as a process that is killed does: nothing of it reaches the disk any more.
    pub(crate) fn crash(self, world: &World, how: Restart) {
        world.disk.fail_at(1, Fault::Stop);
        self.end();
        world.disk.restart(how);
    }

    /// Ends the server, and waits until nothing of it is left.
    pub(crate) fn end(self) {
        self.stop().leave();
    }

    /// Stops serving. Driver calls may go on.
    pub(crate) fn stop(self) -> Stopped {
        let Self { over: Over { server, shared }, recorder, other } = self;
        drop(other);
        server.stop();
        Stopped { shared, recorder }
    }
}

/// A server that answers nobody any more and has not left.
pub(crate) struct Stopped {
    shared: Arc<Shared>,
    recorder: Arc<RecordDriver>,
}

impl Stopped {
    /// Leaves as servers do, and waits until nothing of it is left.
    pub(crate) fn leave(self) {
        let Self { shared, recorder } = self;
        let (board, of_all) = (shared.board.clone(), Arc::downgrade(&shared));
        drop(shared);
        gone(&of_all);
        assert!(board.settle(HANGS), "a driver call hangs");
        recorder.compose_waiting(Duration::from_secs(1));
        recorder.leave();
        let of_disk = Arc::downgrade(&recorder);
        drop((board, recorder));
        gone(&of_disk);
    }
}

/// Waits until nobody has it.
fn gone<T>(what: &Weak<T>) {
    let until = Instant::now() + HANGS;
    while what.strong_count() > 0 {
        assert!(Instant::now() < until, "somebody has it still");
        std::thread::park_timeout(Duration::from_micros(200));
    }
}

/// Whoever calls: a session, or somebody with a handle.
pub(crate) enum Caller {
    Session(Client),
    Handle { connection: Connection, handle: Option<String> },
}

impl Caller {
    pub(crate) fn session(site: &Site) -> Self {
        Self::Session(site.over.client())
    }

    /// Somebody with a handle, or without one yet.
    pub(crate) fn handle(site: &Site, handle: Option<String>) -> Self {
        Self::Handle { connection: site.over.connect(), handle }
    }

    /// Whether an attach of this caller, now, is one more attachment wherever the caller holds the episode already.
    pub(crate) fn counts_again(&self) -> bool {
        matches!(self, Self::Handle { handle: None, .. })
    }

    pub(crate) fn shows(&self) -> Option<String> {
        match self {
            Self::Session(_) => None,
            Self::Handle { handle, .. } => handle.clone(),
        }
    }

    pub(crate) fn attach(&mut self) -> Said {
        match self {
            Self::Session(client) => {
                Said::of_tool(&client.call("majordomus_session_attach", &json!({ "external_id": ID })))
            }
            Self::Handle { connection, handle } => {
                let mut input = json!({ "external_id": ID });
                if let Some(handle) = handle {
                    input["episode_handle"] = handle.as_str().into();
                }
                let answer = connection.post("/api/v1/episodes/attach", &[], &input);
                if answer.status == 200 {
                    *handle = Some(answer.json()["episode_handle"].as_str().unwrap().to_owned());
                }
                Said::of_rest(&answer)
            }
        }
    }

    /// A message that is evidence; whether the server knows the caller still.
    pub(crate) fn works(&mut self) -> bool {
        match self {
            Self::Session(client) => client.ping() == 200,
            Self::Handle { connection, handle: None } => {
                connection.send("GET", "/api/v1/episodes", &[], "");
                connection.read().status == 200
            }
            Self::Handle { connection, handle: Some(shown) } => {
                connection.send("GET", "/api/v1/episodes", &[(HANDLE, shown)], "");
                let answer = connection.read();
                assert!(answer.status == 200 || answer.status == 404, "{}", answer.json());
                answer.status == 200
            }
        }
    }

    pub(crate) fn detach(&mut self) -> Said {
        match self {
            Self::Session(client) => Said::of_tool(&client.call("majordomus_session_detach", &json!({}))),
            Self::Handle { connection, handle } => {
                let input = handle.as_ref().map_or_else(|| json!({}), |handle| json!({ "episode_handle": handle }));
                Said::of_rest(&connection.post("/api/v1/episodes/detach", &[], &input))
            }
        }
    }

    /// Ends its session, if it has one, by its own word.
    pub(crate) fn goes(&mut self) {
        if let Self::Session(client) = self {
            let session = client.session.clone();
            client.connection.send("DELETE", "/mcp", &[("mcp-session-id", &session)], "");
            assert_eq!(client.connection.read().status, 204);
        }
    }
}

impl Said {
    fn of_tool(result: &Value) -> Self {
        if result["isError"] == true {
            let refusal = &result["_meta"]["dev.majordomus/error"];
            return Self::refused(&refusal["code"], &result["content"][0]["text"]);
        }
        Self::of(&result["structuredContent"])
    }

    fn of_rest(answer: &Answer) -> Self {
        let body = answer.json();
        match answer.status {
            200 => Self::of(&body),
            _ => Self::refused(&body["error"]["code"], &body["error"]["message"]),
        }
    }
}
