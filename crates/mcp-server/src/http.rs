//! The same capabilities over HTTP: `/mcp` for clients, `/api/v1` for programs, `/docs` for people.
//!
//! ```text
//! bind -> accept (whose?) -> guard -> router -> mcp | rest | docs
//!                                                 \    |
//!                                              sessions, handles -> board
//! ```
//!
//! A session or a handle is a peer like a stdio process, only without a process that holds it: silence is not loss, so
//! what such a peer attached waits long for it, and only a stream that is open, or was lost, says more.

mod accept;
mod bind;
mod docs;
mod events;
mod guard;
mod marks;
mod mcp;
mod modern;
mod pace;
mod rest;
mod router;
mod sessions;
mod socket;
mod whose;

use std::fmt;
use std::io;
use std::net::TcpListener;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use majordomus_capability::context::Standing;
use majordomus_capability::project::mcp::Tools;
use majordomus_capability::{Context, Shared, project};
use majordomus_episodes_core::HANDLE_IDLE;
use majordomus_episodes_core::clock::{Clock, SystemClock};
use majordomus_episodes_core::peers::{PeerInfo, Transport};
use majordomus_records::clock::rfc3339;
use tokio::sync::{Semaphore, watch};

pub use bind::{BindError, Bound, DEFAULT_PORT, Listen, Port};
pub use guard::{Allowed, TOKEN_HEADER};
pub use pace::PaceLimits;
pub use whose::Callers;

use crate::protocol::{Handed, Session};
use guard::Proof;
use marks::Marks;
use pace::Pace;
use sessions::{Live, Sessions};

/// What a server answers with.
#[non_exhaustive]
pub struct HttpOptions {
    /// The boards, and what calls to them have in common.
    pub shared: Arc<Shared>,
    /// What can be called.
    pub tools: Arc<Tools>,
    /// 32 hexadecimal digits that no other server has.
    pub instance: String,
    /// What the user allowed beyond loopback.
    pub allowed: Allowed,
    /// How it is known that callers are this process's own user.
    pub callers: Callers,
    /// The clock of both boards.
    pub clock: Arc<dyn Clock>,
    /// Takes one line for a person, rarely; nothing by default.
    pub diagnostics: Arc<dyn Fn(&str) + Send + Sync>,
    /// How much and how long.
    pub limits: HttpLimits,
    /// The sessions that another process has left.
    pub sessions: Vec<Handed>,
}

impl HttpOptions {
    /// Serves what is shared, everything else by default.
    #[must_use]
    pub fn new(shared: Arc<Shared>, instance: String) -> Self {
        Self {
            tools: Arc::new(Tools::new(shared.registry.clone())),
            shared,
            instance,
            allowed: Allowed::default(),
            callers: Callers::default(),
            clock: Arc::new(SystemClock),
            diagnostics: Arc::new(|_| {}),
            limits: HttpLimits::default(),
            sessions: Vec::new(),
        }
    }
}

impl fmt::Debug for HttpOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpOptions")
            .field("shared", &self.shared)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// How much and how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpLimits {
    /// The most bytes of one request's body.
    pub body_bytes: usize,
    /// How long a body may take to arrive.
    pub body_time: Duration,
    /// How long a connection may take to say what it wants, from its first byte or its last answer.
    pub head_time: Duration,
    /// How long the system tries to hand an answer to a client that does not read.
    pub write_time: Duration,
    /// The most connections at once.
    pub connections: usize,
    /// The most connections at once of whoever is not served, while they are told so.
    pub strangers: usize,
    /// How long each of those may take.
    pub stranger_time: Duration,
    /// The most sessions at once.
    pub sessions: NonZeroUsize,
    /// How long a session is kept that says nothing and has no stream.
    pub session_idle: Duration,
    /// The most streams of one session.
    pub streams: u32,
    /// How often a stream that says nothing shows that it is there.
    pub stream_beat: Duration,
    /// The most calls that wait for a disk at once, of all peers together.
    pub waiting_calls: usize,
    /// How much one peer may ask for.
    pub pace: PaceLimits,
    /// How long running calls are waited for at the end.
    pub settle: Duration,
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            body_bytes: 4 * 1024 * 1024,
            body_time: Duration::from_secs(30),
            head_time: Duration::from_secs(75),
            write_time: Duration::from_secs(60),
            connections: 1_024,
            strangers: 32,
            stranger_time: Duration::from_secs(2),
            sessions: NonZeroUsize::new(10_000).expect("it is not zero"),
            session_idle: HANDLE_IDLE,
            streams: 4,
            stream_beat: Duration::from_secs(15),
            waiting_calls: 256,
            pace: PaceLimits::default(),
            settle: Duration::from_secs(1),
        }
    }
}

/// What all requests have in common.
struct Server {
    shared: Arc<Shared>,
    tools: Arc<Tools>,
    sessions: Sessions,
    allowed: Allowed,
    /// What a call that changes something has to show.
    proof: Proof,
    /// The checkout that it serves, and where that is.
    checkout: Option<(String, PathBuf)>,
    clock: Arc<dyn Clock>,
    limits: HttpLimits,
    instance: String,
    port: u16,
    openapi: OnceLock<String>,
    /// Room for calls that wait for a disk.
    waiting: Arc<Semaphore>,
    /// What is watched, for all who do.
    marks: Marks,
    /// How many requests are being answered.
    running: AtomicUsize,
    /// Becomes true when the server is to end.
    stopping: watch::Sender<bool>,
}

impl Server {
    /// The mark of what a URI names, as of a moment ago.
    fn mark(&self, uri: &str) -> Option<u64> {
        let look = || self.tools.mark(&Context::without_peer(self.shared.clone(), None), uri);
        self.marks.get(uri, self.now(), look)
    }

    /// Goes on with sessions that another process has left.
    fn go_on(&self, sessions: &[Handed]) {
        for handed in sessions {
            let session = Session::new(self.shared.clone(), self.tools.clone(), Transport::Http);
            if let (Some(id), Some(session)) = (sessions::read_id(handed.id.as_bytes()), session.go_on(handed)) {
                let now = self.now();
                self.sessions.add(id, Live::new(session, Pace::new(self.limits.pace, now)), now);
            }
        }
    }

    fn new(options: HttpOptions, bound: &Bound, proof: Proof) -> Self {
        let HttpOptions { shared, tools, instance, allowed, callers: _, clock, diagnostics: _, limits, sessions: _ } =
            options;
        let checkout = shared.records.as_ref().map(|store| {
            let checkout = store.checkout();
            (checkout.id(), checkout.worktree.as_ref().unwrap_or(&checkout.git_dir).clone())
        });
        let started_at = rfc3339(clock.now().wall_ms);
        // A second server of one process would tell of the first one's standing; nobody starts one.
        let _ = shared.standing.set(Standing { instance: instance.clone(), url: bound.url(), started_at });
        Self {
            sessions: Sessions::new(limits.sessions),
            waiting: Arc::new(Semaphore::new(limits.waiting_calls)),
            port: bound.port(),
            openapi: OnceLock::new(),
            running: AtomicUsize::new(0),
            marks: Marks::default(),
            stopping: watch::Sender::new(false),
            shared,
            tools,
            allowed,
            proof,
            checkout,
            clock,
            limits,
            instance,
        }
    }

    /// `/openapi.json`, as it is served; made when it is first asked for.
    fn openapi(&self) -> &str {
        self.openapi.get_or_init(|| project::openapi::json(&self.shared.registry))
    }

    /// Now, in time awake.
    fn now(&self) -> Duration {
        self.clock.awake()
    }
}

/// A server that answers, on threads of its own. Dropped, it stops.
pub struct HttpServer {
    server: Arc<Server>,
    url: String,
    listeners: Vec<TcpListener>,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for HttpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpServer").field("url", &self.url).finish_non_exhaustive()
    }
}

/// Serves on sockets that listen already; requests are answered from the moment that this returns.
///
/// # Errors
/// The operating system's, for want of threads or descriptors.
pub fn serve_http(bound: Bound, options: HttpOptions) -> io::Result<HttpServer> {
    let (url, diagnostics, listeners) = (bound.url(), options.diagnostics.clone(), bound.again()?);
    let left = options.sessions.clone();
    let tellers = match options.callers {
        Callers::Told => bound.tellers(),
        Callers::Shown => None,
    };
    let proof = match tellers {
        Some(_) => Proof::Nothing,
        None => Proof::token(options.shared.records.as_ref(), &options.instance, &*diagnostics),
    };
    let server = Arc::new(Server::new(options, &bound, proof));
    server.go_on(&left);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(thread::available_parallelism().map_or(2, |cores| cores.get().min(4)))
        .thread_name("http")
        .enable_all()
        .build()?;
    let serves = Arc::clone(&server);
    let thread = thread::Builder::new().name("http".into()).spawn(move || {
        runtime.block_on(accept::run(serves, bound.into_listeners(), tellers, diagnostics));
        // What still hangs in a driver is not waited for any longer.
        runtime.shutdown_background();
    })?;
    Ok(HttpServer { server, url, listeners, thread: Some(thread) })
}

impl HttpServer {
    /// Where it is reached: `http://127.0.0.1:8741`.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// How many sessions there are.
    #[must_use]
    pub fn sessions(&self) -> usize {
        self.server.sessions.len()
    }

    /// How many streams are open, of all sessions together.
    #[must_use]
    pub fn streams(&self) -> usize {
        self.server.sessions.streams()
    }

    /// Whether somebody calls still: a session with a stream, or one or a handle that was heard within `grace`.
    #[must_use]
    pub fn has_callers(&self, grace: Duration) -> bool {
        let Server { shared, sessions, .. } = &*self.server;
        let heard =
            |peer: &PeerInfo| peer.transport == Transport::Handle && peer.last_activity_seconds_ago < grace.as_secs();
        sessions.streams() > 0 || sessions.was_heard(grace, self.server.now()) || shared.peers.list().iter().any(heard)
    }

    /// Ends sessions that have said nothing for too long; to be called now and then.
    pub fn expire_sessions(&self) {
        self.server.sessions.expire(self.server.limits.session_idle, self.server.now());
    }

    /// Stops: nothing new is accepted, streams end, what runs is answered within a bounded time, and every session
    /// and handle goes, which detaches what it held.
    pub fn stop(mut self) {
        self.end();
    }

    /// Stops in the same way, but for the sockets, which go on listening, and the sessions: both are for another process.
    /// Handles stand in the event logs.
    pub fn hand_over(mut self) -> (Vec<TcpListener>, Vec<Handed>) {
        self.stop_answering();
        let sessions = self.server.sessions.hand_over();
        (std::mem::take(&mut self.listeners), sessions)
    }

    fn stop_answering(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        self.server.shared.stop();
        self.server.stopping.send_replace(true);
        // Where it panicked there is nothing left to wait for.
        let _ = thread.join();
    }

    fn end(&mut self) {
        self.listeners.clear();
        if self.thread.is_none() {
            return;
        }
        self.stop_answering();
        self.server.sessions.end_all();
        self.server.shared.handles.end_all();
        self.server.proof.forget(self.server.shared.records.as_ref());
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.end();
    }
}
