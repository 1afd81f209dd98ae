//! The board of episodes: who holds which sitting, shared by all connections of a process.
//!
//! The rules stand in a pure machine behind a short lock. The driver is called outside that lock, one call at a time
//! per episode: two racing attaches make one episode, and nobody waits for another episode's disk.
//!
//! ```
//! use majordomus_episodes_core::peers::{PeerBoard, Transport};
//! use majordomus_episodes_core::{CloseReason, ConnectionEpisodeState, EpisodeBoard};
//!
//! let peers = PeerBoard::new();
//! let board = EpisodeBoard::new(); // records nothing in a repository
//! let first = peers.attach(Transport::Http);
//! let (opened, resumed) = board.attach(&first, "thread-7", "generic");
//! assert!(!resumed);
//!
//! board.detach(&first); // the socket went; the work did not
//! assert_eq!(board.list()[0].state, ConnectionEpisodeState::Detached);
//!
//! let second = peers.attach(Transport::Http); // a new peer id, the same worker
//! let (again, resumed) = board.attach(&second, "thread-7", "generic");
//! assert!(resumed);
//! assert_eq!((again.opened_at.as_str(), again.attachments), (opened.opened_at.as_str(), 2));
//!
//! let closed = board.close("thread-7", CloseReason::Detach).unwrap();
//! assert_eq!(closed.external_id, "thread-7");
//! assert!(board.list().is_empty());
//! ```

mod answers;
mod flight;
mod options;
mod sweep;

use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::clock::{Moment, rfc3339};
use crate::driver::CloseReason;
use crate::ids::EpisodeKey;
use crate::machine::{Attach, Call, Completion, End, Machine, Seated, Wish, Work};
use crate::peers::{Peer, Transport};

pub use answers::{
    Adopted, AttachRequest, Attached, BoardError, Closed, ConnectionEpisode, ConnectionEpisodeState, IntoKey, Touch,
};
pub use options::{BoardOptions, Inline, Limits, Refused, Run};

#[cfg(test)]
mod tests;

/// The board of episodes. Clones are the same board.
#[derive(Clone)]
pub struct EpisodeBoard {
    shared: Arc<Shared>,
}

/// What became of an end.
enum Ended {
    /// The episode has left the board, or its end was answered before.
    Gone(Closed),
    /// The end is not durable, and the episode waits for that.
    Kept(ConnectionEpisode),
}

struct Shared {
    machine: Mutex<Machine>,
    /// A driver call has been answered.
    answered: Condvar,
    options: BoardOptions,
}

impl Shared {
    /// Locks the machine. It asks nobody while it is locked, and what could panic in it would be a broken invariant of
    /// one episode; the others are still served.
    fn lock(&self) -> MutexGuard<'_, Machine> {
        self.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits while `waiting` holds, at most `limit` of real time; returns whether it still holds.
    fn wait(
        &self,
        machine: MutexGuard<'_, Machine>,
        limit: Duration,
        mut waiting: impl FnMut(&Machine) -> bool,
    ) -> bool {
        let (machine, _) = self
            .answered
            .wait_timeout_while(machine, limit, |machine| waiting(machine))
            .unwrap_or_else(PoisonError::into_inner);
        waiting(&machine)
    }

    fn now(&self) -> Moment {
        self.options.clock.now()
    }

    fn awake(&self) -> Duration {
        self.options.clock.awake()
    }
}

impl EpisodeBoard {
    /// Makes an empty board that records nothing in a repository.
    #[must_use]
    pub fn new() -> Self {
        Self::with(BoardOptions::default())
    }

    /// Makes an empty board.
    #[must_use]
    pub fn with(options: BoardOptions) -> Self {
        let machine = Mutex::new(Machine::new(options.limits));
        Self { shared: Arc::new(Shared { machine, answered: Condvar::new(), options }) }
    }

    /// Gives `peer` the episode under that id, opening or resuming it; returns it and whether it was resumed.
    ///
    /// This is the short form of [`attach_with`](Self::attach_with): what went wrong stands in `repository`. An
    /// episode that is not on the board afterwards, because the id is none or an earlier one under it will not close,
    /// is returned detached and without a peer.
    pub fn attach(&self, peer: &Peer, external_id: &str, provider: &str) -> (ConnectionEpisode, bool) {
        let request =
            AttachRequest { peer, external_id, provider, client: None, handle: None, again: false, carrier: None };
        match self.attach_with(request) {
            Ok(attached) => (attached.episode, attached.resumed),
            Err(error) => self.refused(&request, &error),
        }
    }

    /// Gives the peer the episode under that id.
    ///
    /// A new id opens an episode; a detached one is resumed; one that another peer holds is taken over; attaching again
    /// to what the peer holds changes nothing, unless the driver finds that it is another process's by now, but with a new
    /// handle it is one more attachment. What the peer held under
    /// another id is detached. Whom an earlier server knew ([`AttachRequest::again`]) goes on where it was: that is no
    /// attachment, opens nothing and takes nothing over. By its carrier alone it comes back without a word of its client's,
    /// so that this is no evidence either.
    ///
    /// What holds the episode from then on is a [`Transport::Stdio`] process itself, and
    /// for any other peer its streams: see [`hold`](Self::hold).
    ///
    /// # Errors
    /// [`BoardError::InvalidId`]; [`BoardError::Conflict`] where two peers keep taking it from each other; for whom an
    /// earlier server knew [`BoardError::NotFound`], and [`BoardError::HeldByOther`] where somebody came since;
    /// [`BoardError::NotRecorded`] where an earlier episode under the id is over and cannot be closed;
    /// [`BoardError::Unavailable`] where too many calls run (nothing has changed) or the driver takes too long: that
    /// leaves the peer with the episode, unless a call for the id was already running, and the answer is shown once it
    /// comes.
    pub fn attach_with(&self, request: AttachRequest<'_>) -> Result<Attached, BoardError> {
        let key = EpisodeKey::new(request.provider, request.external_id)?;
        let wish = Wish {
            peer: request.peer.id(),
            by_process: request.peer.transport() == Transport::Stdio,
            key,
            client: request.client.map(Into::into),
            handle: request.handle.map(Into::into),
            again: request.again,
            carrier: request.carrier.map(Into::into),
        };
        let patience = self.patience();
        let mut ended = None;
        loop {
            let mut machine = self.shared.lock();
            match machine.attach(&wish, self.shared.now())? {
                Attach::Held(attached) => {
                    self.tell_returned(machine);
                    return Ok(Attached { ended, ..*attached });
                }
                Attach::Wait => self.wait_for_key(machine, &wish.key, &patience)?,
                Attach::CloseFirst(call) => {
                    drop(machine);
                    match self.ask(call)? {
                        Completion::Ended(closed) => ended = Some(closed.episode),
                        Completion::Kept(episode) => return Err(BoardError::NotRecorded { line: episode.repository }),
                        Completion::NotOver(..)
                        | Completion::Gone(_)
                        | Completion::Opened { .. }
                        | Completion::Told => {}
                    }
                }
                Attach::Seated(seated) => {
                    drop(machine);
                    return self.open(*seated, ended);
                }
            }
        }
    }

    /// Notes a message of the peer, which is evidence for the episode it holds.
    pub fn touch(&self, peer: &Peer) -> Touch {
        let now = self.shared.awake();
        let mut machine = self.shared.lock();
        let touch = machine.touch(peer.id(), now);
        self.tell_returned(machine);
        touch
    }

    /// Notes that a stream of the peer has opened: while one is open, what the peer holds or comes to hold does not
    /// expire, and a loss is void. No evidence by itself. Each is to be ended by a [`release`](Self::release).
    pub fn hold(&self, peer: &Peer) {
        let tell = {
            let mut machine = self.shared.lock();
            machine.hold(peer.id(), self.shared.now())
        };
        if let Some(tell) = tell {
            self.launch(tell);
        }
    }

    /// Notes that a stream of the peer has ended. The last one is a loss: the grace runs from now unless the peer is
    /// heard of again, and after [`Limits::stream_patience`] nobody holds the episode any more. Without a stream that was
    /// opened, and for a process, nothing changes.
    pub fn release(&self, peer: &Peer) {
        let mut machine = self.shared.lock();
        machine.release(peer.id(), self.shared.now());
    }

    /// Notes that a process or socket is open on which the peer, which is none of its own, was just heard: as long as one is
    /// open the peer is there, however silent. It moves no time. Each is to be ended by a [`put_down`](Self::put_down).
    pub fn carry(&self, peer: &Peer) {
        self.shared.lock().carry(peer.id());
    }

    /// Notes that one of those has ended. Where nothing else is left of the peer the grace of what it holds runs from now,
    /// unless it is heard of again from elsewhere.
    pub fn put_down(&self, peer: &Peer) {
        let tell = {
            let mut machine = self.shared.lock();
            machine.put_down(peer.id(), self.shared.now())
        };
        if let Some(tell) = tell {
            self.launch(tell);
        }
    }

    /// Notes that the connection went: what it held waits for its client. Nothing is closed and nobody is waited for.
    ///
    /// Returns the episode, if it held one.
    pub fn detach(&self, peer: &Peer) -> Option<ConnectionEpisode> {
        let departure = {
            let mut machine = self.shared.lock();
            machine.detach(peer.id(), self.shared.now())?
        };
        if let Some(tell) = departure.tell {
            self.launch(tell);
        }
        Some(departure.episode)
    }

    /// Ends, on purpose, what the peer holds, or what nobody holds.
    ///
    /// Without an id it is what the peer holds. Asked again by the same peer, it gives the first answer, brought up to
    /// date where an end that could not be recorded has been since.
    ///
    /// # Errors
    /// [`BoardError::InvalidId`]; [`BoardError::NotHeld`] without an id from a peer that holds nothing;
    /// [`BoardError::NotFound`]; [`BoardError::HeldByOther`]; [`BoardError::Unavailable`] where the driver takes too
    /// long (it goes on, and the answer is kept) or too many calls run (nothing has changed).
    pub fn finish(&self, peer: &Peer, external_id: Option<&str>, provider: &str) -> Result<Closed, BoardError> {
        let mut key = external_id.map(|id| EpisodeKey::new(provider, id)).transpose()?;
        let step = |machine: &mut Machine, now| {
            let end = machine.finish(peer.id(), key.as_ref(), now)?;
            if let End::Call(Call { work: Work::Close(closing), .. }) = &end {
                // Where that had seemed to have expired and has not, it is the same one that is meant.
                key = Some(closing.key.clone());
            }
            Ok(end)
        };
        match self.end(CloseReason::Detach, step)? {
            Ended::Gone(closed) => Ok(closed),
            Ended::Kept(episode) => Ok(Closed { episode, recorded: false }),
        }
    }

    /// Ends an episode, whoever holds it: the operator's way, and recorded as such. What is overdue ends as expired.
    ///
    /// # Errors
    /// [`BoardError::InvalidId`]; [`BoardError::NotFound`]; [`BoardError::NotRecorded`] where the end is not durable
    /// yet, or where the reason is `Expired` and the repository knows better; [`BoardError::Unavailable`] as for [`finish`](Self::finish).
    pub fn close(&self, key: impl IntoKey, reason: CloseReason) -> Result<ConnectionEpisode, BoardError> {
        self.close_with(key, reason).map(|closed| closed.episode)
    }

    /// The same, and tells whether there was something to record.
    ///
    /// # Errors
    /// Those of [`close`](Self::close).
    pub fn close_with(&self, key: impl IntoKey, reason: CloseReason) -> Result<Closed, BoardError> {
        let key = key.into_key()?;
        match self.end(reason, |machine, now| machine.close(&key, reason, true, now))? {
            Ended::Gone(closed) => Ok(closed),
            Ended::Kept(episode) => Err(BoardError::NotRecorded { line: episode.repository }),
        }
    }

    /// Puts a detached episode on the board that is known from an earlier server. No-op if its key is there.
    pub fn adopt(&self, adopted: Adopted) {
        let mut machine = self.shared.lock();
        machine.adopt(adopted, self.shared.now());
    }

    /// Gives an episode back to the connection that held it when an earlier server died: no attachment, no evidence, and
    /// nothing is opened. It is put on the board as `adopted` says, unless it is there.
    ///
    /// # Errors
    /// [`BoardError::HeldByOther`] where another peer holds it; [`BoardError::NotFound`] where somebody else has attached
    /// since, or it is over; [`BoardError::Unavailable`] as for [`attach_with`](Self::attach_with).
    pub fn restore(&self, peer: &Peer, adopted: Adopted, carrier: &str) -> Result<Attached, BoardError> {
        let key = adopted.key.clone();
        self.adopt(adopted);
        self.attach_with(AttachRequest {
            peer,
            external_id: key.external_id.as_str(),
            provider: key.provider.as_str(),
            client: None,
            handle: None,
            again: true,
            carrier: Some(carrier),
        })
    }

    /// Notes that `peer` ended an episode at an earlier server, so that asking again gives that answer again.
    pub fn recall(&self, peer: &Peer, closed: Closed) {
        self.shared.lock().recall(peer.id(), closed);
    }

    /// Lists the episodes: held ones first, then those that wait, each by when they were opened, then by key.
    #[must_use]
    pub fn list(&self) -> Vec<ConnectionEpisode> {
        let mut episodes = {
            let mut machine = self.shared.lock();
            machine.list(self.shared.awake())
        };
        sweep::sort(&mut episodes);
        episodes
    }

    /// The keys of all episodes on the board, in no order.
    #[must_use]
    pub fn keys(&self) -> Vec<EpisodeKey> {
        self.shared.lock().keys()
    }

    /// The episode that the peer holds, or that is its own and shown as detached since it was silent.
    #[must_use]
    pub fn of_peer(&self, peer: &Peer) -> Option<ConnectionEpisode> {
        let mut machine = self.shared.lock();
        machine.of_peer(peer.id(), self.shared.awake())
    }

    /// Asks the driver to open what the peer now holds.
    fn open(&self, seated: Seated, ended: Option<ConnectionEpisode>) -> Result<Attached, BoardError> {
        let Seated { open, taken_over_from, left } = seated;
        let left = left.map(|departure| {
            if let Some(tell) = departure.tell {
                self.launch(tell);
            }
            departure.episode
        });
        match self.ask(open)? {
            Completion::Opened { episode, resumed, recorded } => {
                Ok(Attached { episode, resumed, recorded, taken_over_from, left, ended })
            }
            Completion::Ended(Closed { episode, .. }) => {
                Err(BoardError::NotFound { key: EpisodeKey::new(&episode.provider, &episode.external_id)? })
            }
            Completion::Kept(_) | Completion::NotOver(..) | Completion::Gone(_) | Completion::Told => {
                unreachable!("an opening is answered as one")
            }
        }
    }

    /// Has the driver told at once who was told to be gone and is not.
    fn tell_returned<'a>(&'a self, mut machine: MutexGuard<'a, Machine>) {
        while machine.has_returned() {
            let Some(call) = machine.tell_returned() else { break };
            drop(machine);
            self.launch(call);
            machine = self.shared.lock();
        }
    }

    /// Ends an episode for `reason`, by whatever `step` decides under the lock.
    fn end(
        &self,
        reason: CloseReason,
        mut step: impl FnMut(&mut Machine, Moment) -> Result<End, BoardError>,
    ) -> Result<Ended, BoardError> {
        let patience = self.patience();
        loop {
            let mut machine = self.shared.lock();
            match step(&mut machine, self.shared.now())? {
                End::Again(closed) => return Ok(Ended::Gone(closed)),
                End::Wait(key) => self.wait_for_key(machine, &key, &patience)?,
                End::Call(call) => {
                    drop(machine);
                    match self.ask(call)? {
                        Completion::Ended(closed) => return Ok(Ended::Gone(closed)),
                        Completion::Kept(episode) => return Ok(Ended::Kept(episode)),
                        Completion::NotOver(_, episode) if reason == CloseReason::Expired => {
                            return Ok(Ended::Kept(episode));
                        }
                        // It had seemed to have expired; now the reason that was asked for counts, or it is not here.
                        Completion::NotOver(..)
                        | Completion::Gone(_)
                        | Completion::Opened { .. }
                        | Completion::Told => {}
                    }
                }
            }
        }
    }

    /// What the short attach answers when the long one refuses.
    fn refused(&self, request: &AttachRequest<'_>, error: &BoardError) -> (ConnectionEpisode, bool) {
        let now = self.shared.now();
        let repository = match error {
            BoardError::Unavailable { .. } | BoardError::NotRecorded { .. } => error.to_string(),
            BoardError::InvalidId(_)
            | BoardError::NotFound { .. }
            | BoardError::NotHeld
            | BoardError::HeldByOther { .. }
            | BoardError::Conflict { .. } => format!("no episode was recorded: {error}"),
        };
        let key = EpisodeKey::new(request.provider, request.external_id).ok();
        match key.and_then(|key| self.shared.lock().of_key(&key, now)) {
            Some(episode) => {
                let resumed = episode.peer == Some(request.peer.id()) && episode.attachments > 1;
                (ConnectionEpisode { repository, ..episode }, resumed)
            }
            None => (
                ConnectionEpisode {
                    external_id: request.external_id.into(),
                    provider: request.provider.into(),
                    peer: None,
                    opened_at: rfc3339(now.wall_ms),
                    last_activity_seconds_ago: 0,
                    attachments: 0,
                    state: ConnectionEpisodeState::Detached,
                    repository,
                },
                false,
            ),
        }
    }
}

impl Default for EpisodeBoard {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for EpisodeBoard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let machine = self.shared.lock();
        f.debug_struct("EpisodeBoard")
            .field("episodes", &machine.len())
            .field("running", &machine.running())
            .finish_non_exhaustive()
    }
}
