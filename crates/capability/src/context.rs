//! What a handler works with: what a server's handlers share, and who calls.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once, OnceLock};
use std::time::Duration;

use majordomus_episodes_core::board::{BoardError, ConnectionEpisode, EpisodeBoard};
use majordomus_episodes_core::ids::Provider;
use majordomus_episodes_core::peers::{Peer, PeerBoard};
use majordomus_episodes_core::{EpisodeKey, REATTACH_GRACE};
use majordomus_records::Store;
use majordomus_records::caller::Caller;

use crate::handles::{self, Carried, Handles, Holding, Known, Seat};
use crate::refusal::Refusal;
use crate::registry::Registry;

/// What all calls to one server have in common.
#[non_exhaustive]
pub struct Shared {
    /// What can be called.
    pub registry: Arc<Registry>,
    /// The episodes of this process.
    pub board: EpisodeBoard,
    /// The connections of this process.
    pub peers: PeerBoard,
    /// The callers that have no connection.
    pub handles: Handles,
    /// Who draws the boundary of the callers' episodes: `generic` unless declared data knows better.
    pub provider: String,
    /// How long the board lets a detached episode wait; what callers are told.
    pub grace: Duration,
    /// The records of the checkout; `None` outside a repository.
    pub records: Option<Store>,
    /// What the server says of itself, once it answers over HTTP.
    pub standing: OnceLock<Standing>,
    stopping: AtomicBool,
    inheritance: OnceLock<Box<dyn Fn() + Send + Sync>>,
    inherited: Once,
}

/// A server that answers over HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// 32 hexadecimal digits that no other server has.
    pub instance: String,
    /// Where it answers: `http://127.0.0.1:8741`.
    pub url: String,
    /// When it began to, RFC 3339 UTC.
    pub started_at: String,
}

impl Shared {
    /// Joins the boards of a server; everything else by default.
    #[must_use]
    pub fn new(registry: Arc<Registry>, board: EpisodeBoard, peers: PeerBoard) -> Self {
        Self {
            registry,
            board,
            peers,
            handles: Handles::default(),
            provider: Provider::GENERIC.into(),
            grace: REATTACH_GRACE,
            records: None,
            standing: OnceLock::new(),
            stopping: AtomicBool::new(false),
            inheritance: OnceLock::new(),
            inherited: Once::new(),
        }
    }

    /// Says how long the board lets a detached episode wait, where that is not the usual grace.
    #[must_use]
    pub fn with_grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Gives the callers the records of the checkout to read.
    #[must_use]
    pub fn with_records(mut self, records: Option<Store>) -> Self {
        self.records = records;
        self
    }

    /// Says how what an earlier server has left is taken over; the first one that is said counts.
    pub fn on_inherit(&self, take_over: Box<dyn Fn() + Send + Sync>) {
        let _ = self.inheritance.set(take_over);
    }

    /// Takes over what an earlier server has left, once: by whoever needs it first, while the others who do wait.
    pub fn inherit(&self) {
        self.inherited.call_once(|| {
            if let Some(take_over) = self.inheritance.get() {
                take_over();
            }
        });
    }

    /// Notes that the server is about to end: it is not ready for new callers any more.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// Whether the server is about to end.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("provider", &self.provider)
            .field("standing", &self.standing)
            .finish_non_exhaustive()
    }
}

/// What the server is, and who calls.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Context {
    /// What all calls have in common.
    pub shared: Arc<Shared>,
    /// The connection that calls; `None` for a caller that has none.
    pub peer: Option<Peer>,
    /// What the caller says it is, for display only.
    pub client: Option<Box<str>>,
    /// The handle that came beside the arguments.
    pub handle: Option<Box<str>>,
    /// The SHA-256 of the connection's own id, in hexadecimal, where its transport outlives a server; for the transport to
    /// set.
    pub carrier: Option<Box<str>>,
    /// Who is at the other end, where its process can tell; for the transport to set.
    pub caller: Option<Arc<Caller>>,
    /// The process or socket that carries the calls of callers without a connection; for the transport to set.
    pub carried: Option<Arc<Carried>>,
}

impl Context {
    /// Makes the context of calls by a connection.
    #[must_use]
    pub fn of_peer(shared: Arc<Shared>, peer: Peer) -> Self {
        Self { shared, peer: Some(peer), client: None, handle: None, carrier: None, caller: None, carried: None }
    }

    /// Makes the context of a call without a connection; `handle` is what came beside its arguments.
    #[must_use]
    pub fn without_peer(shared: Arc<Shared>, handle: Option<&str>) -> Self {
        Self {
            shared,
            peer: None,
            client: None,
            handle: handle.map(Into::into),
            carrier: None,
            caller: None,
            carried: None,
        }
    }
}

impl Context {
    /// Says who is at the other end.
    #[must_use]
    pub fn called_by(mut self, caller: Caller) -> Self {
        self.caller = Some(Arc::new(caller));
        self
    }

    /// Tells which episode a caller means by `external_id`: the one that its client's hooks drew, where they did, so that one
    /// conversation is one episode; else its own under that id. An id that is open already is what it says.
    ///
    /// # Errors
    /// [`BoardError::InvalidId`] where it cannot be an id.
    pub fn episode_key(&self, external_id: &str) -> Result<EpisodeKey, BoardError> {
        let own = EpisodeKey::new(&self.shared.provider, external_id)?;
        let (Some(caller), Some(records)) = (&self.caller, &self.shared.records) else { return Ok(own) };
        let is_own = |episode: &ConnectionEpisode| {
            (&*episode.provider, &*episode.external_id) == (own.provider.as_str(), external_id)
        };
        if records.has_log(&own) || self.shared.board.list().iter().any(is_own) {
            return Ok(own);
        }
        // Where the logs cannot be read, its own episode says so.
        let drawn = records.conversation_of(caller, self.client.as_deref()).ok().flatten();
        Ok(drawn.unwrap_or(own))
    }

    /// Finds out who calls by the handle among the arguments, or beside them; `None` where there is neither.
    pub(crate) fn caller(&self, argument: Option<&str>) -> Result<Option<Known>, Refusal> {
        let Shared { handles, board, peers, .. } = &*self.shared;
        let token = argument.or(self.handle.as_deref());
        let known = token.map(|token| {
            if !handles.is_seen(token) {
                // It may be an earlier server's, whose episodes are all here after that.
                self.shared.inherit();
            }
            handles.show(token, board, peers)
        });
        let known = known.transpose()?;
        if let Some(known) = &known {
            self.heard(known.seat());
        }
        Ok(known)
    }

    /// Notes that a caller was heard on what carries this call.
    pub(crate) fn heard(&self, seat: &Arc<Seat>) {
        if let Some(carried) = &self.carried {
            carried.heard(seat);
        }
    }

    /// Notes that whoever shows the handle beside the arguments is at work; where its episode is over, the error says so.
    ///
    /// # Errors
    /// As of a call that needs it.
    pub fn show_handle(&self) -> Result<(), Refusal> {
        self.caller(None).map(|_| ())
    }

    /// Holds what the caller holds who shows a handle beside the arguments, until what is returned is dropped; `None` where
    /// nobody shows one.
    ///
    /// # Errors
    /// As of a call that needs it.
    pub fn hold(&self) -> Result<Option<Holding>, Refusal> {
        let known = self.caller(None)?;
        known.map(|known| if known.holds { Ok(Holding::of(known.seat())) } else { Err(handles::ended()) }).transpose()
    }

    /// The connection or handle that calls, if there is either; a handle whose episode has ended is refused.
    pub(crate) fn calling_peer(&self, argument: Option<&str>) -> Result<Option<Peer>, Refusal> {
        match self.caller(argument)? {
            Some(known) if !known.holds => Err(handles::ended()),
            Some(known) => Ok(Some(known.peer().clone())),
            None => Ok(self.peer.clone()),
        }
    }
}
