//! What the servers have in common: the recorder, the boards, HTTP, and the house that is kept beside the clients.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use majordomus_capability::{Shared, catalogue};
use majordomus_episodes_core::EpisodeDriver;
use majordomus_episodes_core::board::{Adopted, BoardOptions, EpisodeBoard, Limits};
use majordomus_episodes_core::clock::SystemClock;
use majordomus_episodes_core::peers::PeerBoard;
use majordomus_mcp_server::http::{Allowed, Bound};
use majordomus_mcp_server::{HttpOptions, HttpServer, Keeper, Threads, serve_http};
use majordomus_records::append::holder_id;
use majordomus_records::clock::rfc3339;
use majordomus_records::serving::FORMAT;
use majordomus_records::store::Silence;
use majordomus_records::{Checkout, Policy, Published, RecordDriver, Serving, Store, Unrecorded};

use crate::output;

/// How often a server says that it lives and finishes what is past its time.
const HOUSEKEEPING: Duration = Duration::from_secs(30);
/// How long the rest lets the first client's first answer go ahead: on a small machine each thread that starts beside it
/// makes it later.
pub(super) const HEAD_START: Duration = Duration::from_millis(10);
/// How long finishing what others have left may take each time.
const SWEEP: Duration = Duration::from_secs(20);
/// How long a record that was not composed at once may still take when the clients have gone.
const COMPOSE_AT_END: Duration = Duration::from_secs(1);

/// How long driver calls that run are waited for when everybody has gone.
const SETTLE: Duration = Duration::from_secs(1);

/// What a server keeps besides its connections. Clones are the same house.
#[derive(Clone)]
pub(super) struct House {
    pub(super) shared: Arc<Shared>,
    recorder: Option<Arc<RecordDriver>>,
    http: Arc<Mutex<Http>>,
}

#[derive(Default)]
struct Http {
    server: Option<HttpServer>,
    keeper: Option<Keeper>,
    /// This process's being the server of its checkout, once it is.
    serving: Option<Serving>,
    /// What the server of the checkout tells.
    published: Option<Published>,
    /// Everybody has left, and nothing more is begun.
    left: bool,
}

impl House {
    /// Opens this checkout for recording. Outside a repository a server serves all the same and says that it records
    /// nothing.
    pub(super) fn open(policy: Policy) -> anyhow::Result<Self> {
        let folder = std::env::current_dir().unwrap_or_default();
        let (driver, recorder): (Arc<dyn EpisodeDriver>, _) = match Checkout::find(&folder) {
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
        let shared = Shared::new(Arc::new(catalogue()), board, PeerBoard::new())
            .with_grace(policy.own_grace())
            .with_records(recorder.as_ref().map(|recorder| recorder.store().clone()));
        Ok(Self { shared: Arc::new(shared), recorder, http: Arc::default() })
    }

    /// Answers over HTTP from now on, beside whatever else this process serves, and acts on the board's deadlines.
    pub(super) fn serve(&self, bound: Bound, allowed: Allowed) -> anyhow::Result<()> {
        let instance = holder_id()?;
        let published = Published {
            format: FORMAT,
            url: bound.url(),
            instance: instance.clone(),
            version: env!("CARGO_PKG_VERSION").into(),
        };
        let mut options = HttpOptions::new(self.shared.clone(), instance);
        options.allowed = allowed;
        options.diagnostics = Arc::new(output::note);
        let mut http = self.http();
        if http.left {
            return Ok(());
        }
        http.server = Some(serve_http(bound, options)?);
        http.published = Some(published);
        drop(http);
        self.stand_for_server();
        Ok(())
    }

    /// Acts on the board's deadlines from now on.
    pub(super) fn watch_deadlines(&self) -> anyhow::Result<()> {
        let weak = Arc::downgrade(&self.http);
        let chores = move || {
            if let Some(http) = weak.upgrade()
                && let Ok(http) = http.try_lock()
                && let Some(server) = &http.server
            {
                server.expire_sessions();
            }
        };
        self.http().keeper = Some(Keeper::start(self.shared.clone(), Arc::new(SystemClock), chores)?);
        Ok(())
    }

    /// Beside the clients, never in their way: ends what is past its time, adopts what waits for its client, and says now
    /// and then that this process lives.
    pub(super) fn keep(&self) {
        let Some(recorder) = self.recorder.clone() else { return };
        let house = self.clone();
        let work = move || {
            let mut said = HashSet::new();
            let store = recorder.store();
            thread::sleep(HEAD_START);
            loop {
                for trouble in store.sweep(SWEEP).troubles {
                    // Said once and not every half minute: nobody can mend it from here.
                    if said.insert(trouble.clone()) {
                        output::note(&format!("majordomus: {trouble}"));
                    }
                }
                house.adopt(store);
                thread::sleep(HOUSEKEEPING);
                recorder.beat();
                house.stand_for_server();
            }
        };
        // Without the thread the clients are served; what is past its time is left to the next command.
        let _ = thread::Builder::new().name("housekeeping".into()).spawn(work);
    }

    /// Becomes the server of this checkout, if there is none, and says where it answers.
    fn stand_for_server(&self) {
        let Some(recorder) = &self.recorder else { return };
        let wanted = {
            let http = self.http();
            http.published.clone().filter(|_| http.serving.is_none() && !http.left)
        };
        // Nothing is locked here while the disk is waited for: whoever leaves meanwhile does not wait for it.
        let Some(published) = wanted else { return };
        if let Ok(Some(mut serving)) = recorder.store().serve() {
            // Where it cannot be published, commands do not find this server; its clients do.
            let _ = recorder.store().advertise(&mut serving, &published);
            let mut http = self.http();
            if http.left {
                drop(http);
                serving.leave(recorder.store());
            } else {
                http.serving = Some(serving);
            }
        }
    }

    /// Whether this process is the one that commands find.
    pub(super) fn is_found(&self) -> bool {
        self.http().serving.is_some()
    }

    /// Takes over what waits for its client, so that whoever comes back finds it: before anybody is answered.
    pub(super) fn adopt_all(&self) {
        if let Some(recorder) = &self.recorder {
            self.adopt(recorder.store());
        }
    }

    fn adopt(&self, store: &Store) {
        let grace = store.policy().own_grace();
        for (key, open) in store.adoptable().unwrap_or_default() {
            let Some(start) = &open.log.start else { continue };
            let waiting_for = match open.silence {
                // The board's own grace is what is left of the one that was promised.
                Silence::Waiting(left) => grace.saturating_sub(left),
                Silence::Held | Silence::Over(_) => continue,
            };
            self.shared.handles.restore(&key, &open.log.handles);
            self.shared.board.adopt(Adopted {
                key,
                opened_at: rfc3339(start.stamp.wall_ms),
                attachments: open.log.attachments,
                silent_for: open.silent_for,
                waiting_for,
                line: format!("session {} kept, open since {}", start.opened.session_id, rfc3339(start.stamp.wall_ms)),
            });
        }
    }

    /// Lets every connection go: nothing new is accepted, and what they held waits for its clients.
    pub(super) fn close_doors(&self) {
        let (server, keeper) = {
            let mut http = self.http();
            http.left = true;
            (http.server.take(), http.keeper.take())
        };
        if let Some(server) = server {
            server.stop();
        }
        drop(keeper);
        // What the last of them did is still being written.
        if !self.shared.board.settle(SETTLE) {
            output::note("majordomus: left while the repository was still being written to");
        }
    }

    /// Leaves: finishes what is left to do within bounds.
    pub(super) fn leave(&self) {
        self.close_doors();
        let Some(recorder) = &self.recorder else { return };
        if let Some(serving) = self.http().serving.take() {
            serving.leave(recorder.store());
        }
        recorder.compose_waiting(COMPOSE_AT_END);
        recorder.leave();
    }

    fn http(&self) -> MutexGuard<'_, Http> {
        self.http.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
