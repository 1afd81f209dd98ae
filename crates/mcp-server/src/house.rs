//! What a server is beside its connections: recorder, boards, HTTP, the socket for bridges, deadlines and upkeep.
//!
//! ```text
//! open ──► keep, watch_deadlines ──► serve ──► stand for the checkout's server ──► close_doors ──► leave
//! ```
//!
//! A house without [`serve`](House::serve) is a client's own: it records, and nobody else finds it.

use std::collections::HashSet;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::Duration;
use std::{fmt, io};

use majordomus_capability::{Registry, Shared};
use majordomus_episodes_core::board::{BoardOptions, EpisodeBoard, Limits};
use majordomus_episodes_core::clock::SystemClock;
use majordomus_episodes_core::peers::PeerBoard;
use majordomus_episodes_core::{CloseReason, EpisodeDriver};
use majordomus_records::append::holder_id;
use majordomus_records::checkout::NotInGit;
use majordomus_records::recovery::Judges;
use majordomus_records::serving::FORMAT;
use majordomus_records::state::key_hash;
use majordomus_records::store::Silence;
use majordomus_records::{Checkout, Policy, Published, RecordDriver, Serving, Store, StoreError, Unrecorded};

use rustix::process::{Resource, Rlimit};

use crate::http::{Allowed, Bound};
use crate::protocol::Handed;
use crate::sharing::estate::Estate;
use crate::sharing::folder;
use crate::sharing::host::{Host, HostOptions};
use crate::sharing::preamble::{self, Ended, Hello, Why};
use crate::{HttpOptions, HttpServer, Keeper, Threads, serve_http};

/// How often a server says that it lives and finishes what is past its time.
const HOUSEKEEPING: Duration = Duration::from_secs(30);
/// How long after the beginning it looks again: whoever was the server before may have held something until its end.
const SOON: Duration = Duration::from_secs(1);
/// How long finishing what others have left may take each time.
const SWEEP: Duration = Duration::from_secs(20);
/// How long a record that was not composed at once may still take when the clients have gone.
const COMPOSE_AT_END: Duration = Duration::from_secs(1);
/// How long driver calls that run are waited for when everybody has gone.
const SETTLE: Duration = Duration::from_secs(1);
/// How long connections are waited for that answer what they have received.
const PART: Duration = Duration::from_secs(1);

/// How long those whom a predecessor has left get to come.
const ARRIVAL: Duration = Duration::from_secs(2);
/// How often a server that goes on for others looks whether there are any.
const LOOK: Duration = Duration::from_millis(250);
/// After how many looks in turn at nobody it ends.
const LOOKS: u32 = 4;

/// What a house is opened with.
#[non_exhaustive]
pub struct HouseOptions {
    /// What can be called.
    pub registry: Arc<Registry>,
    /// Where it records; or why it cannot, which every attach then says.
    pub checkout: Result<Checkout, NotInGit>,
    /// How long silence may last.
    pub policy: Policy,
    /// Who may call over HTTP beyond loopback.
    pub allowed: Allowed,
    /// Whether it may be the server of its checkout, which others find.
    pub shares: bool,
    /// Takes one line for a person, rarely.
    pub diagnostics: Arc<dyn Fn(&str) + Send + Sync>,
    /// Called once an operator has stopped the server and every episode has ended.
    pub on_stopped: Box<dyn Fn() + Send + Sync>,
}

impl HouseOptions {
    /// Says where to record; everything else by default.
    #[must_use]
    pub fn new(registry: Registry, checkout: Result<Checkout, NotInGit>) -> Self {
        let (policy, allowed) = (Policy::default(), Allowed::default());
        let registry = Arc::new(registry);
        let (diagnostics, on_stopped) = (Arc::new(|_: &str| {}), Box::new(|| {}));
        Self { registry, checkout, policy, allowed, shares: true, diagnostics, on_stopped }
    }
}

/// What a server keeps besides its connections. Clones are the same house.
#[derive(Clone)]
pub struct House {
    inner: Arc<Inner>,
}

struct Inner {
    shared: Arc<Shared>,
    recorder: Option<Arc<RecordDriver>>,
    allowed: Allowed,
    shares: bool,
    diagnostics: Arc<dyn Fn(&str) + Send + Sync>,
    on_stopped: Box<dyn Fn() + Send + Sync>,
    instance: String,
    host: Host,
    doors: Mutex<Doors>,
    /// Held by whoever ends this house: one way of ending waits for the other.
    ending: Mutex<()>,
}

/// By which others come in.
#[derive(Default)]
struct Doors {
    http: Option<HttpServer>,
    keeper: Option<Keeper>,
    /// This process's being the server of its checkout, once it is.
    serving: Option<Serving>,
    /// What the server of the checkout tells.
    published: Option<Published>,
    /// The socket that bridges connect to, for a successor.
    socket: Option<UnixListener>,
    /// The socket that a predecessor has left, until it is used.
    inherited: Option<(UnixListener, PathBuf)>,
    /// Everybody has left, and nothing more is begun.
    closed: bool,
}

impl House {
    /// Opens this checkout for recording. Outside a repository a server serves all the same and says that it records
    /// nothing.
    ///
    /// # Errors
    /// Where the machine has no random bytes.
    pub fn open(options: HouseOptions) -> Result<Self, StoreError> {
        let HouseOptions { registry, checkout, policy, allowed, shares, diagnostics, on_stopped } = options;
        let id = checkout.as_ref().map(Checkout::id).unwrap_or_default();
        let (driver, recorder): (Arc<dyn EpisodeDriver>, _) = match checkout {
            Ok(checkout) => {
                let recorder = Arc::new(RecordDriver::new(Store::open(checkout, policy).by_promise())?);
                (recorder.clone(), Some(recorder))
            }
            Err(error) => (Arc::new(Unrecorded::because(error.into())), None),
        };
        let board = EpisodeBoard::with(BoardOptions {
            driver,
            limits: Limits { grace: policy.own_grace(), ..Limits::default() },
            run: Arc::new(Threads::default()),
            ..BoardOptions::default()
        });
        let shared = Shared::new(registry, board, PeerBoard::new())
            .with_grace(policy.own_grace())
            .with_records(recorder.as_ref().map(|recorder| recorder.store().clone()));
        // One id for all that others know it by: whoever sees it die says so of what it held.
        let instance = recorder.as_ref().map_or_else(holder_id, |recorder| Ok(recorder.holder_id().to_owned()))?;
        let (shared, doors, ending) = (Arc::new(shared), Mutex::default(), Mutex::default());
        let host = Host::new(HostOptions::new(shared.clone(), instance.clone(), id));
        let inner = Inner { shared, recorder, allowed, shares, diagnostics, on_stopped, instance, host, doors, ending };
        let house = Self { inner: Arc::new(inner) };
        let shared = Arc::downgrade(house.shared());
        house.shared().on_inherit(Box::new(move || {
            if let Some(shared) = shared.upgrade() {
                Self::adopt(&shared);
            }
        }));
        let weak = Arc::downgrade(&house.inner);
        house.inner.host.on_stop(move |stream| Self::stop(&weak, &stream));
        Ok(house)
    }

    /// The boards, and what calls to them have in common.
    #[must_use]
    pub fn shared(&self) -> &Arc<Shared> {
        &self.inner.shared
    }

    /// Answers over HTTP from now on, beside whatever else this process serves, and is the server of its checkout: at
    /// once with the right to it, else as soon as nobody else is.
    ///
    /// # Errors
    /// The operating system's, for want of threads or descriptors.
    pub fn serve(&self, bound: Bound, serving: Option<Serving>) -> io::Result<()> {
        self.answer(bound, serving, Vec::new())
    }

    /// Goes on where a predecessor has left; returns where that answers over HTTP.
    ///
    /// # Errors
    /// The operating system's, for want of threads or descriptors.
    pub fn take_over(&self, estate: Estate) -> io::Result<String> {
        let Estate { lock, socket, listeners, sessions } = estate;
        self.doors().inherited = socket;
        let bound = Bound::of(listeners).map_err(io::Error::other)?;
        let url = bound.url();
        self.answer(bound, Some(Serving::with_lock(lock)), sessions)?;
        Ok(url)
    }

    /// Returns once nobody has been here for a while: whom a predecessor has left gets time to come.
    pub fn until_alone(&self) {
        thread::sleep(ARRIVAL);
        let mut empty = 0;
        while empty < LOOKS {
            thread::sleep(LOOK);
            empty = if self.has_company() { 0 } else { empty + 1 };
        }
    }

    fn answer(&self, bound: Bound, serving: Option<Serving>, sessions: Vec<Handed>) -> io::Result<()> {
        let Inner { shared, allowed, diagnostics, instance, .. } = &*self.inner;
        let published = Published {
            format: FORMAT,
            url: bound.url(),
            instance: instance.clone(),
            version: env!("CARGO_PKG_VERSION").into(),
            pid: std::process::id(),
            socket: None,
        };
        let mut options = HttpOptions::new(shared.clone(), instance.clone());
        options.allowed = allowed.clone();
        options.diagnostics = diagnostics.clone();
        options.sessions = sessions;
        let mut doors = self.doors();
        if doors.closed {
            return Ok(());
        }
        doors.http = Some(serve_http(bound, options)?);
        doors.published = Some(published);
        drop(doors);
        self.stand(serving);
        Ok(())
    }

    /// Acts on the board's deadlines from now on.
    ///
    /// # Errors
    /// The operating system's, for want of a thread.
    pub fn watch_deadlines(&self) -> io::Result<()> {
        let weak = Arc::downgrade(&self.inner);
        let chores = move || {
            if let Some(house) = weak.upgrade()
                && let Ok(doors) = house.doors.try_lock()
                && let Some(http) = &doors.http
            {
                http.expire_sessions();
            }
        };
        self.doors().keeper = Some(Keeper::start(self.shared().clone(), Arc::new(SystemClock), chores)?);
        Ok(())
    }

    /// Beside the clients, never in their way: ends what is past its time, adopts what waits for its client, and says now
    /// and then that this process lives.
    pub fn keep(&self) {
        let Some(recorder) = self.inner.recorder.clone() else { return };
        let weak = Arc::downgrade(&self.inner);
        let work = move || {
            let mut said = HashSet::new();
            let store = recorder.store();
            let mut pause = SOON;
            while let Some(inner) = weak.upgrade() {
                let house = Self { inner };
                for trouble in house.sweep(store) {
                    // Said once and not every half minute: nobody can mend it from here.
                    if said.insert(trouble.clone()) {
                        (house.inner.diagnostics)(&trouble);
                    }
                }
                Self::adopt(house.shared());
                drop(house);
                thread::sleep(std::mem::replace(&mut pause, HOUSEKEEPING));
                let Some(inner) = weak.upgrade() else { return };
                recorder.beat();
                Self { inner }.stand(None);
            }
        };
        // Without the thread the clients are served; what is past its time is left to the next command.
        let _ = thread::Builder::new().name("housekeeping".into()).spawn(work);
    }

    /// Finishes what others have left. Silence is judged by one process at a time: the checkout's server, where there is
    /// one; and what is on its board by that.
    fn sweep(&self, store: &Store) -> Vec<String> {
        let judges = self.is_found() || !store.is_served();
        let on_board: HashSet<String> = self.shared().board.keys().iter().map(key_hash).collect();
        let on_board = |key: &str| on_board.contains(key);
        let judges = if judges { Judges::AllBut(&on_board) } else { Judges::Nothing };
        store.sweep_as(judges, SWEEP).troubles
    }

    /// Becomes the server of this checkout, with the right to it or if there is none, and says where it answers.
    fn stand(&self, serving: Option<Serving>) {
        let Some(recorder) = &self.inner.recorder else { return };
        let wanted = {
            let doors = self.doors();
            let stands = self.inner.shares && doors.serving.is_none() && !doors.closed;
            doors.published.clone().filter(|_| stands)
        };
        // Nothing is locked here while the disk is waited for: whoever leaves meanwhile does not wait for it.
        let (Some(mut published), store) = (wanted, recorder.store()) else { return };
        let Some(mut serving) = serving.or_else(|| store.serve().ok().flatten()) else { return };
        allow_descriptors();
        if let Some(earlier) = store.left_behind().and_then(|earlier| earlier.socket) {
            // One that a predecessor has left to us is listened at.
            folder::clear_up(&earlier);
        }
        let mut socket = None;
        match self.inherited_or_new() {
            Ok((listener, path)) => {
                let again = listener.try_clone().ok();
                match self.inner.host.listen(listener) {
                    Ok(()) => (published.socket, socket) = (Some(path), again),
                    Err(error) => self.say(&format!("other clients are served apart: {error}")),
                }
            }
            Err(error) => self.say(&format!("other clients are served apart: {error}")),
        }
        if let Err(error) = store.advertise(&mut serving, &published) {
            // Others would only wait for it; without it each is served by its own process.
            self.say(&format!("this server cannot be found by others: {error}"));
            self.inner.host.close();
            published.socket.iter().for_each(|path| take_away(path));
            return;
        }
        let mut doors = self.doors();
        if doors.closed {
            drop(doors);
            serving.leave(store);
            published.socket.iter().for_each(|path| take_away(path));
        } else {
            doors.published = Some(published);
            doors.serving = Some(serving);
            doors.socket = socket;
        }
    }

    /// The socket that a predecessor has left, or a new one.
    fn inherited_or_new(&self) -> io::Result<(UnixListener, PathBuf)> {
        let inherited = self.doors().inherited.take();
        inherited.map_or_else(|| folder::listen(&self.inner.instance), Ok)
    }

    /// Serves a client whose bridge is in this process, over what is returned.
    ///
    /// # Errors
    /// The operating system's, for want of threads or descriptors.
    pub fn take_in(&self, hello: Hello) -> io::Result<UnixStream> {
        let (own, theirs) = UnixStream::pair()?;
        self.inner.host.take_in(own, hello)?;
        Ok(theirs)
    }

    /// Whether this process is the one that others find.
    #[must_use]
    pub fn is_found(&self) -> bool {
        self.doors().serving.is_some()
    }

    /// Whether somebody calls over HTTP still: by a stream, or heard without one within the grace.
    #[must_use]
    pub fn has_callers(&self) -> bool {
        self.doors().http.as_ref().is_some_and(|http| http.has_callers(self.shared().grace))
    }

    /// Whether anybody is here besides a client over this process's own standard streams.
    #[must_use]
    pub fn has_company(&self) -> bool {
        !self.inner.host.is_empty() || self.has_callers()
    }

    /// Takes over what waits for its client, so that whoever comes back finds it: before anybody is answered who needs it.
    pub fn adopt_all(&self) {
        self.shared().inherit();
    }

    fn adopt(shared: &Shared) {
        let Some(store) = &shared.records else { return };
        for (key, open) in store.adoptable().unwrap_or_default() {
            if matches!(open.silence, Silence::Waiting(_)) {
                shared.handles.restore(&key, &open.log.handles);
                shared.board.adopt(store.to_adopt(&key, &open));
            }
        }
    }

    /// Ends everything by an operator's word, tells whoever gave it, and lets another process be the server.
    fn stop(house: &Weak<Inner>, stream: &UnixStream) {
        let Some(inner) = house.upgrade() else { return };
        let house = Self { inner };
        let closed = house.end();
        // Whoever does not hear it sees that the server is gone.
        let _ = preamble::send(stream, &Ended { closed: closed as u64 }, PART);
        (house.inner.on_stopped)();
    }

    /// Ends everything by an operator's word: every episode is interrupted. Returns how many were.
    pub fn end(&self) -> usize {
        let _ending = self.ending();
        self.close_doors(Why::Stopped);
        let closed = self.shared().board.close_all(CloseReason::Shutdown).len();
        self.let_others_serve();
        closed
    }

    /// Leaves to a successor, a process that `start` starts with what it is given as its standard input: it goes on with
    /// the right to serve, the sockets, and everybody who calls. Where it cannot be started this is [`leave`](Self::leave).
    pub fn hand_over(&self, start: impl FnOnce(UnixStream) -> io::Result<()>) {
        let _ending = self.ending();
        let (http, keeper, serving, published, socket) = {
            let mut doors = self.doors();
            doors.closed = true;
            (doors.http.take(), doors.keeper.take(), doors.serving.take(), doors.published.take(), doors.socket.take())
        };
        self.inner.host.part(Why::Moved, PART);
        let (listeners, sessions) = http.map(HttpServer::hand_over).unwrap_or_default();
        drop(keeper);
        let settled = self.shared().board.settle(SETTLE);
        self.let_go();
        let path = published.and_then(|published| published.socket);
        if let (Some(serving), true) = (serving, settled) {
            let socket = socket.zip(path.clone());
            let estate = Estate { lock: serving.into_lock(), socket, listeners, sessions };
            let done = UnixStream::pair().and_then(|(ours, theirs)| {
                estate.leave(&ours)?;
                // It ends with this process, which is how the successor learns that nobody else is at the logs.
                std::mem::forget(ours);
                start(theirs)
            });
            match done {
                Ok(()) => return self.finish(),
                Err(error) => self.say(&format!("no successor could be started: {error}")),
            }
        }
        path.iter().for_each(|path| take_away(path));
        self.finish();
    }

    /// Lets every connection go: nothing new is accepted. What they held waits for its clients, or moves with them.
    pub fn close_doors(&self, why: Why) {
        let (http, keeper) = {
            let mut doors = self.doors();
            doors.closed = true;
            // Whoever connects from now on is told at once that nobody is there.
            doors.socket = None;
            (doors.http.take(), doors.keeper.take())
        };
        self.inner.host.part(why, PART);
        if let Some(http) = http {
            http.stop();
        }
        drop(keeper);
        // What the last of them did is still being written.
        if !self.shared().board.settle(SETTLE) {
            self.say("left while the repository was still being written to");
        }
    }

    fn let_others_serve(&self) {
        let (serving, published) = {
            let mut doors = self.doors();
            (doors.serving.take(), doors.published.take())
        };
        if let Some(path) = published.and_then(|published| published.socket) {
            take_away(&path);
        }
        if let (Some(serving), Some(recorder)) = (serving, &self.inner.recorder) {
            serving.leave(recorder.store());
        }
    }

    /// Leaves: finishes what is left to do within bounds.
    pub fn leave(&self) {
        let _ending = self.ending();
        self.close_doors(Why::Moved);
        // Whoever is the server next finds what waits, and nobody who still holds it.
        self.let_go();
        self.let_others_serve();
        self.finish();
    }

    fn let_go(&self) {
        if let Some(recorder) = &self.inner.recorder {
            recorder.leave();
        }
    }

    fn finish(&self) {
        if let Some(recorder) = &self.inner.recorder {
            recorder.compose_waiting(COMPOSE_AT_END);
        }
    }

    fn ending(&self) -> MutexGuard<'_, ()> {
        self.inner.ending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn say(&self, line: &str) {
        (self.inner.diagnostics)(line);
    }

    fn doors(&self) -> MutexGuard<'_, Doors> {
        self.inner.doors.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Allows this process as many descriptors as it may have: each client takes a few, and a log that cannot be opened is an
/// episode that is not recorded.
fn allow_descriptors() {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    // Where it stays as it was, fewer bridges are let in.
    let _ = rustix::process::setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// Takes the name of a socket away at which nobody listens any more.
fn take_away(socket: &Path) {
    // Where it stays, whoever is the next server takes it away.
    let _ = std::fs::remove_file(socket);
}

impl fmt::Debug for House {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("House").field("instance", &self.inner.instance).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
