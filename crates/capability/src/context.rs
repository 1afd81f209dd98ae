//! What a handler works with.

use std::time::Duration;

use majordomus_episodes_core::REATTACH_GRACE;
use majordomus_episodes_core::board::EpisodeBoard;
use majordomus_episodes_core::peers::{Peer, PeerBoard};
use majordomus_records::Store;

/// The boards, and who calls.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Context {
    /// The episodes of this process.
    pub board: EpisodeBoard,
    /// The connections of this process.
    pub peers: PeerBoard,
    /// The connection that calls.
    pub peer: Peer,
    /// Who draws the boundary of the caller's episodes: `generic` unless declared data knows better.
    pub provider: String,
    /// What the caller says it is, for display only.
    pub client: Option<String>,
    /// How long the board lets a detached episode wait; what callers are told.
    pub grace: Duration,
    /// The records of the checkout; `None` outside a repository.
    pub records: Option<Store>,
}

impl Context {
    /// Makes the context of calls by `peer`.
    #[must_use]
    pub fn new(board: EpisodeBoard, peers: PeerBoard, peer: Peer, provider: &str) -> Self {
        Self { board, peers, peer, provider: provider.into(), client: None, grace: REATTACH_GRACE, records: None }
    }
}
