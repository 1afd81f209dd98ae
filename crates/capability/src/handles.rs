//! Callers without a connection: each is known by a handle, an unguessable token that was minted when it attached.
//!
//! A handle is `ep_` and 22 characters of base64url: 128 random bits. Only its hash is kept, here and in the event log,
//! so that a new server still knows it. A handle is no authentication: it says which episode a call belongs to.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use lru::LruCache;
use majordomus_episodes_core::EpisodeKey;
use majordomus_episodes_core::board::{AttachRequest, BoardError, EpisodeBoard, Touch};
use majordomus_episodes_core::ids::PeerId;
use majordomus_episodes_core::peers::{Peer, PeerBoard, Transport};
use majordomus_records::log;
use sha2::{Digest, Sha256};

use crate::refusal::{Code, Refusal};

/// The most handles that are known at once; beyond that the least recently used one is forgotten.
pub const HANDLES_MAX: NonZeroUsize = NonZeroUsize::new(10_000).expect("it is not zero");

/// What a handle begins with.
const PREFIX: &str = "ep_";
/// How many characters follow: 128 bits at six bits each.
const CHARS: usize = 22;

/// The argument that carries a handle.
pub(crate) const ARGUMENT: &str = "episode_handle";

/// The JSON Schema pattern of a handle.
pub(crate) const PATTERN: &str = "^ep_[A-Za-z0-9_-]{22}$";

/// The handles that one server knows.
pub struct Handles {
    inner: Mutex<Inner>,
}

struct Inner {
    /// By hash.
    seats: LruCache<String, Arc<Seat>>,
    /// The seat of each episode that was attached by a handle, so that its later handles share it.
    by_key: HashMap<EpisodeKey, Weak<Seat>>,
    /// Good handles of an earlier server whose callers have not been heard since, by hash.
    restored: HashMap<String, EpisodeKey>,
}

/// What the handles of one episode stand for.
///
/// It lasts as long as a handle or a running call stands for it; then nobody can speak for its peer any more, which
/// goes like a connection that is lost. So it must not be dropped under a lock that others wait for.
#[derive(Debug)]
pub(crate) struct Seat {
    peer: Peer,
    key: EpisodeKey,
    board: EpisodeBoard,
    peers: PeerBoard,
    /// The hashes that stand for it, oldest first.
    hashes: Mutex<VecDeque<String>>,
    /// Whether it has held the episode; before, its first attach is under way.
    seated: AtomicBool,
    /// Why its handles are good no more, once they are not.
    lost: Mutex<Option<Refusal>>,
}

/// A caller that showed a handle.
#[derive(Debug)]
pub(crate) struct Known {
    /// Kept for the length of the call, so that no other call can evict who is calling.
    seat: Arc<Seat>,
    /// Whether it holds the episode still; not once that has ended.
    pub(crate) holds: bool,
}

/// The callers that were heard on one process or socket, which carries their messages and is none of them: as long as it is
/// open they are there.
#[derive(Debug, Default)]
pub struct Carried {
    seats: Mutex<Vec<Arc<Seat>>>,
}

/// The most callers that one of those shows as there; any more are only as present as what was heard of them last.
const CARRIED_MAX: usize = 256;

impl Carried {
    /// Notes that the caller was heard on it just now.
    pub(crate) fn heard(&self, seat: &Arc<Seat>) {
        let mut seats = self.lock();
        if seats.len() < CARRIED_MAX && !seats.iter().any(|known| Arc::ptr_eq(known, seat)) {
            seat.board.carry(&seat.peer);
            seats.push(Arc::clone(seat));
        }
    }

    /// Notes that it has ended: whoever has nothing else is gone, and what they hold waits for them. Their handles stay
    /// good elsewhere. Repeated, it does nothing.
    pub fn end(&self) {
        let seats = std::mem::take(&mut *self.lock());
        for seat in seats {
            seat.board.put_down(&seat.peer);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Seat>>> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A stream that is open for a caller: as long as it is kept, what the caller holds does not expire.
#[derive(Debug)]
pub struct Holding {
    seat: Arc<Seat>,
}

impl Holding {
    pub(crate) fn of(seat: &Arc<Seat>) -> Self {
        seat.board.hold(&seat.peer);
        Self { seat: Arc::clone(seat) }
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        self.seat.board.release(&self.seat.peer);
    }
}

/// A fresh handle.
pub(crate) struct Minted {
    /// What the caller is given.
    pub(crate) token: String,
    /// What is kept of it.
    pub(crate) hash: String,
}

impl Seat {
    pub(crate) fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Whether it held the episode, and that has ended. One that was taken over may come back, and does so as the same
    /// peer: only so does the board notice two that keep taking it from each other.
    fn is_over(&self) -> bool {
        self.seated.load(Ordering::Acquire) && self.board.of_peer(&self.peer).is_none() && !self.is_taken()
    }

    /// Whether its episode was taken over.
    fn is_taken(&self) -> bool {
        let mut lost = self.lost();
        // Asked of one that holds its episode, this would be evidence.
        if lost.is_none()
            && self.board.of_peer(&self.peer).is_none()
            && let Touch::Lost { by } = self.board.touch(&self.peer)
        {
            *lost = Some(gone(by));
        }
        lost.as_ref().is_some_and(|refusal| refusal.code == Code::Conflict)
    }

    fn lost(&self) -> MutexGuard<'_, Option<Refusal>> {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.peers.detach(&self.peer);
        self.board.detach(&self.peer);
    }
}

impl Known {
    pub(crate) fn peer(&self) -> &Peer {
        &self.seat.peer
    }

    pub(crate) fn key(&self) -> &EpisodeKey {
        &self.seat.key
    }

    pub(crate) fn seat(&self) -> &Arc<Seat> {
        &self.seat
    }
}

impl Default for Handles {
    fn default() -> Self {
        Self::at_most(HANDLES_MAX)
    }
}

impl Handles {
    /// Makes a table of at most `most` handles.
    #[must_use]
    pub fn at_most(most: NonZeroUsize) -> Self {
        let inner = Inner { seats: LruCache::new(most), by_key: HashMap::new(), restored: HashMap::new() };
        Self { inner: Mutex::new(inner) }
    }

    /// How many handles are known, those of an earlier server included.
    #[must_use]
    pub fn len(&self) -> usize {
        let inner = self.lock();
        inner.seats.len() + inner.restored.len()
    }

    /// Whether none is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes over the good handles of an episode that an earlier server opened, as the event log has their hashes.
    pub fn restore(&self, key: &EpisodeKey, hashes: &[String]) {
        let mut inner = self.lock();
        let most = inner.seats.cap().get();
        for hash in hashes {
            if !inner.seats.contains(hash) && inner.restored.len() < most {
                inner.restored.insert(hash.clone(), key.clone());
            }
        }
    }

    /// Forgets the handles of an earlier server whose episode somebody else has attached since.
    pub(crate) fn supersede(&self, key: &EpisodeKey) {
        self.lock().restored.retain(|_, known| known != key);
    }

    /// Lets the callers go whose episode has ended: nobody is there any more. Their handles are kept, to say so, but
    /// not those of an earlier server that were never shown here.
    pub fn tidy(&self, board: &EpisodeBoard, peers: &PeerBoard) {
        let seats: Vec<Arc<Seat>> = {
            let mut inner = self.lock();
            inner.by_key.retain(|_, seat| seat.strong_count() > 0);
            let mut seats: Vec<Arc<Seat>> = inner.by_key.values().filter_map(Weak::upgrade).collect();
            // Also those whose place by key another one has taken.
            seats.extend(inner.seats.iter().map(|(_, seat)| Arc::clone(seat)));
            seats.sort_by_key(Arc::as_ptr);
            seats.dedup_by_key(|seat| Arc::as_ptr(seat));
            seats
        };
        let there: HashSet<(String, String)> =
            board.list().into_iter().map(|episode| (episode.provider, episode.external_id)).collect();
        let is_there =
            |key: &EpisodeKey| there.contains(&(key.provider.as_str().to_owned(), key.external_id.as_str().to_owned()));
        for seat in seats.iter().filter(|seat| seat.is_over() || (seat.is_taken() && !is_there(&seat.key))) {
            peers.detach(&seat.peer);
            let mut inner = self.lock();
            if inner.by_key.get(&seat.key).is_some_and(|known| known.as_ptr() == Arc::as_ptr(seat)) {
                inner.by_key.remove(&seat.key);
            }
        }
        // A later episode under the same key is not the one that these were minted for.
        self.lock().restored.retain(|_, key| is_there(key));
    }

    /// Lets all callers go, as their server ends: what they attached waits for them.
    pub fn end_all(&self) {
        let mut inner = self.lock();
        let seats: Vec<_> = std::iter::from_fn(|| inner.seats.pop_lru()).collect();
        inner.by_key.clear();
        drop(inner);
        // A seat lets its peer go once no call needs it any more.
        drop(seats);
    }

    /// Whether finding out who shows this handle may take the disk: not for one that this server has seen.
    #[must_use]
    pub fn is_seen(&self, token: &str) -> bool {
        self.lock().seats.contains(&hash(token))
    }

    /// Mints a handle that nobody knows yet.
    pub(crate) fn mint() -> Result<Minted, Refusal> {
        let mut bits = [0; 16];
        getrandom::fill(&mut bits).map_err(|error| {
            Refusal::new(Code::Unavailable, format!("the machine gave no random bytes for a handle: {error}"))
        })?;
        let token = PREFIX.to_owned() + &base64url(u128::from_be_bytes(bits));
        Ok(Minted { hash: hash(&token), token })
    }

    /// The seat that an episode's next handle shares: that of its earlier handles, while that holds the episode or is
    /// about to, or a new one. Says whether it is new.
    ///
    /// Two calls at once get the same one, so that one client that asks twice does not take over from itself.
    pub(crate) fn seat_for(&self, key: &EpisodeKey, board: &EpisodeBoard, peers: &PeerBoard) -> (Arc<Seat>, bool) {
        let mut inner = self.lock();
        let known = inner.by_key.get(key).and_then(Weak::upgrade);
        let over = match known {
            Some(seat) if !seat.is_over() => return (seat, false),
            over => over,
        };
        let seat = Arc::new(Seat {
            peer: peers.attach(Transport::Handle),
            key: key.clone(),
            board: board.clone(),
            peers: peers.clone(),
            hashes: Mutex::default(),
            seated: AtomicBool::new(false),
            lost: Mutex::default(),
        });
        inner.by_key.insert(key.clone(), Arc::downgrade(&seat));
        drop(inner);
        if let Some(over) = over {
            peers.detach(&over.peer);
        }
        (seat, true)
    }

    /// Makes a handle good for the episode that its seat has just attached.
    pub(crate) fn bind(&self, hash: String, seat: &Arc<Seat>) {
        seat.seated.store(true, Ordering::Release);
        // Whoever attaches again has the episode again, although it was taken over.
        *seat.lost() = None;
        self.keep(hash, seat);
    }

    fn keep(&self, hash: String, seat: &Arc<Seat>) {
        let mut inner = self.lock();
        inner.restored.remove(&hash);
        inner.by_key.insert(seat.key.clone(), Arc::downgrade(seat));
        // A client that attaches again and again has no use for all that it was given, and takes no room from others.
        let mut forgotten = Vec::new();
        let mut hashes = seat.hashes.lock().unwrap_or_else(PoisonError::into_inner);
        if !hashes.contains(&hash) {
            hashes.push_back(hash.clone());
        }
        if hashes.len() > log::HANDLES_MAX
            && let Some(oldest) = hashes.pop_front()
        {
            forgotten.extend(inner.seats.pop(&oldest));
        }
        drop(hashes);
        forgotten.extend(inner.seats.push(hash, Arc::clone(seat)).map(|(_, seat)| seat));
        drop(inner);
        drop(forgotten);
    }

    /// Finds out who shows a handle; that is evidence of its client at work.
    ///
    /// # Errors
    /// [`Code::NotFound`] for a handle that is not known or whose episode was ended from elsewhere; [`Code::Conflict`]
    /// for one whose episode was taken over; those of [`EpisodeBoard::attach_with`] for one of an earlier server.
    pub(crate) fn show(&self, token: &str, board: &EpisodeBoard, peers: &PeerBoard) -> Result<Known, Refusal> {
        let hash = hash(token);
        let (seat, restored) = {
            let mut inner = self.lock();
            (inner.seats.get(&hash).cloned(), inner.restored.get(&hash).cloned())
        };
        let seat = match (seat, restored) {
            (Some(seat), _) => seat,
            (None, Some(key)) => self.come_back(hash, &key, board, peers)?,
            (None, None) => return Err(unknown()),
        };
        peers.touch(&seat.peer);
        let mut lost = seat.lost();
        if let Some(refusal) = lost.as_ref() {
            return Err(refusal.clone());
        }
        let holds = match board.touch(&seat.peer) {
            Touch::Held => true,
            Touch::None => false,
            Touch::Lost { by } => return Err(lost.insert(gone(by)).clone()),
        };
        drop(lost);
        Ok(Known { seat, holds })
    }

    /// Seats the caller of a handle that an earlier server minted.
    ///
    /// Calls that come at once share the seat, and the board lets a peer attach again to what it holds.
    fn come_back(
        &self,
        hash: String,
        key: &EpisodeKey,
        board: &EpisodeBoard,
        peers: &PeerBoard,
    ) -> Result<Arc<Seat>, Refusal> {
        let (seat, _) = self.seat_for(key, board, peers);
        if seat.seated.load(Ordering::Acquire) {
            self.keep(hash, &seat);
        } else {
            let request = AttachRequest {
                peer: &seat.peer,
                external_id: key.external_id.as_str(),
                provider: key.provider.as_str(),
                client: None,
                handle: Some(&hash),
                again: true,
                carrier: None,
            };
            if let Err(error) = board.attach_with(request) {
                if let BoardError::HeldByOther { peer, .. } = error {
                    // As on the server that had minted it: somebody has attached since.
                    return Err(gone(Some(peer)));
                }
                // Its hash is kept: who takes the episode over may be about to put it on the board.
                return Err(if matches!(error, BoardError::NotFound { .. }) { ended() } else { error.into() });
            }
            self.bind(hash, &seat);
        }
        Ok(seat)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Every change is one step, so a panic elsewhere leaves the table whole.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Handles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handles").field("known", &self.len()).finish_non_exhaustive()
    }
}

/// A text in which no handle can be read any more, wherever somebody has put one.
pub(crate) fn masked(text: &str) -> Cow<'_, str> {
    let of_token = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let mut shown = Cow::Borrowed(text);
    let mut at = 0;
    while let Some(found) = shown[at..].find(PREFIX) {
        let from = at + found + PREFIX.len();
        let length = shown[from..].bytes().take_while(|byte| of_token(*byte)).count();
        if length >= CHARS {
            shown.to_mut().replace_range(from..from + length, "…");
        }
        at = from;
    }
    shown
}

/// Says that a handle is none of this server's.
fn unknown() -> Refusal {
    Refusal::new(Code::NotFound, "this server does not know that episode_handle")
        .hint("attach again under the same external_id, without episode_handle; that resumes the episode")
}

/// Says that a handle's episode is over, as far as this server can tell: another one may have it.
pub(crate) fn ended() -> Refusal {
    Refusal::new(Code::NotFound, "the episode of this episode_handle has ended")
        .hint("attach again without episode_handle to go on; if a client at another server has it, that takes it over")
}

fn gone(by: Option<PeerId>) -> Refusal {
    match by {
        Some(peer) => {
            Refusal::new(Code::Conflict, format!("the episode of this episode_handle was taken over by {peer}"))
                .hint("if that was not you, attach again with an external_id that belongs to this conversation alone")
        }
        None => ended(),
    }
}

/// The SHA-256 of a handle, in hexadecimal.
fn hash(token: &str) -> String {
    Sha256::digest(token).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn base64url(bits: u128) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    // The last character has the two lowest bits, padded on the right.
    let six = |at: usize| if at + 1 == CHARS { bits << 4 } else { bits >> (122 - 6 * at) } & 63;
    (0..CHARS).map(|at| char::from(ALPHABET[usize::try_from(six(at)).unwrap_or(0)])).collect()
}

#[cfg(test)]
mod tests;
