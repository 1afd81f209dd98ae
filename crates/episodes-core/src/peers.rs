//! The connections of one process.
//!
//! A peer is a name that this process gives to one connection; it is never an identity, because the next server hands
//! the same names out again. What a client durably is called belongs to its episode.
//!
//! ```
//! use majordomus_episodes_core::peers::{PeerBoard, Transport};
//!
//! let peers = PeerBoard::new();
//! let first = peers.attach(Transport::Stdio);
//! peers.identify(&first, "a client 1.0".into());
//! assert_eq!(first.id().to_string(), "p1");
//! assert_eq!(peers.list()[0].client.as_deref(), Some("a client 1.0"));
//!
//! peers.detach(&first);
//! assert!(peers.list().is_empty());
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::clock::{Clock, SystemClock, rfc3339};
use crate::ids::PeerId;

#[cfg(test)]
mod tests;

/// How a peer is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transport {
    /// One stdio process.
    Stdio,
    /// One HTTP session.
    Http,
    /// A caller whose protocol has no connection; for it the handle is the connection.
    Handle,
}

impl Transport {
    /// The word that surfaces show.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Http => "http",
            Self::Handle => "handle",
        }
    }
}

/// One connection, as its transport holds it. Clones are the same connection.
#[derive(Clone)]
pub struct Peer {
    id: PeerId,
    transport: Transport,
    last_activity: Arc<LastActivity>,
}

impl Peer {
    /// This process's name for the connection.
    #[must_use]
    pub fn id(&self) -> PeerId {
        self.id
    }

    /// How it is connected.
    #[must_use]
    pub fn transport(&self) -> Transport {
        self.transport
    }
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peer").field("id", &self.id).field("transport", &self.transport).finish_non_exhaustive()
    }
}

/// Nanoseconds awake at a peer's last message: shared with the board, so that a touch takes no lock.
struct LastActivity(AtomicU64);

impl LastActivity {
    fn at(moment: Duration) -> Self {
        Self(AtomicU64::new(nanoseconds(moment)))
    }

    /// Moves it to `moment`, never back.
    fn advance(&self, moment: Duration) {
        self.0.fetch_max(nanoseconds(moment), Ordering::Relaxed);
    }

    fn moment(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::Relaxed))
    }
}

fn nanoseconds(moment: Duration) -> u64 {
    u64::try_from(moment.as_nanos()).unwrap_or(u64::MAX)
}

/// What a peer says it is about to do, for the others to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announcement {
    /// One sentence.
    pub intent: String,
    /// Paths that it is about to change, as the peer wrote them.
    pub scope: Vec<String>,
}

/// One connection, as the board shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerInfo {
    /// This process's name for it.
    pub id: PeerId,
    /// How it is connected.
    pub transport: Transport,
    /// What its client says it is, for display only.
    pub client: Option<String>,
    /// What it last announced.
    pub announcement: Option<Announcement>,
    /// When it came: RFC 3339, UTC, milliseconds, `Z`.
    pub attached_at: String,
    /// Whole seconds awake since its last message.
    pub last_activity_seconds_ago: u64,
}

/// The connections of one process. Clones are the same board.
#[derive(Clone)]
pub struct PeerBoard {
    clock: Arc<dyn Clock>,
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    /// The number that was handed out last.
    last: u64,
    rows: BTreeMap<PeerId, Row>,
}

struct Row {
    transport: Transport,
    client: Option<String>,
    announcement: Option<Announcement>,
    attached_wall_ms: i64,
    last_activity: Arc<LastActivity>,
    hidden: bool,
}

impl PeerBoard {
    /// Makes an empty board on the machine's clock.
    #[must_use]
    pub fn new() -> Self {
        Self::with_clock(Arc::new(SystemClock))
    }

    /// Makes an empty board on `clock`.
    #[must_use]
    pub fn with_clock(clock: Arc<dyn Clock>) -> Self {
        Self { clock, inner: Arc::default() }
    }

    /// Names a new connection: `p1`, `p2`, … in this order, never twice on one board.
    #[must_use = "the peer is what later calls name the connection by"]
    pub fn attach(&self, transport: Transport) -> Peer {
        let now = self.clock.now();
        let last_activity = Arc::new(LastActivity::at(now.awake));
        let mut inner = self.lock();
        inner.last += 1;
        let id = PeerId(inner.last);
        let row = Row {
            transport,
            client: None,
            announcement: None,
            attached_wall_ms: now.wall_ms,
            last_activity: Arc::clone(&last_activity),
            hidden: false,
        };
        inner.rows.insert(id, row);
        Peer { id, transport, last_activity }
    }

    /// Notes a message of the peer. Takes no lock.
    pub fn touch(&self, peer: &Peer) {
        peer.last_activity.advance(self.clock.awake());
    }

    /// Takes the peer off the board; its name is not handed out again.
    pub fn detach(&self, peer: &Peer) {
        self.lock().rows.remove(&peer.id);
    }

    /// Leaves the peer out of the list, or shows it again: a connection that only carries what others say is nobody there.
    /// No-op for a peer that has left.
    pub fn set_hidden(&self, peer: &Peer, hidden: bool) {
        if let Some(row) = self.lock().rows.get_mut(&peer.id) {
            row.hidden = hidden;
        }
    }

    /// Notes what the peer's client says it is. No-op for a peer that has left.
    pub fn identify(&self, peer: &Peer, client: String) {
        if let Some(row) = self.lock().rows.get_mut(&peer.id) {
            row.client = Some(client);
        }
    }

    /// Replaces what the peer announces. No-op for a peer that has left.
    pub fn announce(&self, peer: &Peer, announcement: Announcement) {
        if let Some(row) = self.lock().rows.get_mut(&peer.id) {
            row.announcement = Some(announcement);
        }
    }

    /// Lists the connections in attachment order.
    #[must_use]
    pub fn list(&self) -> Vec<PeerInfo> {
        let now = self.clock.now();
        let show = |(id, row): (&PeerId, &Row)| PeerInfo {
            id: *id,
            transport: row.transport,
            client: row.client.clone(),
            announcement: row.announcement.clone(),
            attached_at: rfc3339(row.attached_wall_ms),
            last_activity_seconds_ago: now.since(row.last_activity.moment()).as_secs(),
        };
        self.lock().rows.iter().filter(|(_, row)| !row.hidden).map(show).collect()
    }

    /// Locks the rows. Every change to them is one step, so a panic elsewhere leaves them whole.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for PeerBoard {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for PeerBoard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PeerBoard").field("peers", &self.lock().rows.len()).finish_non_exhaustive()
    }
}
