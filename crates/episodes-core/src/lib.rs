//! Rules of peers and episodes: a pure state machine and the thread-safe board around it.
//!
//! An *episode* is one sitting of a client, keyed by its provider and by what the client durably calls itself.
//! A *peer* is this process's name for one connection. The two are separate types because a peer id is handed out
//! again by the next server and a sitting is not over when a socket is.
//!
//! This crate does no IO: no file, socket, JSON or provider is known here, no thread is started, and only [`clock`]
//! reads a clock. What a repository does about an episode is behind [`driver::EpisodeDriver`], which the board calls
//! outside its lock and one call at a time per episode, by whatever [`board::Run`] it is given.
//!
//! A server names its connections with [`peers::PeerBoard`] and tells [`EpisodeBoard`] what they do: `attach`, `touch`
//! for every message, `hold` and `release` for streams, `detach` when one goes, `finish` when a client ends its sitting.
//! It calls `reap` when
//! [`EpisodeBoard::next_due`] says so; nothing happens by itself.
//!
//! What stays true: a peer holds at most one episode; a lost connection detaches and never closes; what is held never
//! expires, and expiry is decided by comparing times in the step that ends it; the wall clock decides nothing; a call
//! of one client waits for no other client's driver; the same calls at the same times give the same answers.

pub mod board;
pub mod clock;
pub mod driver;
pub mod ids;
pub mod peers;

mod machine;

pub use board::{BoardError, ConnectionEpisode, ConnectionEpisodeState, EpisodeBoard};
pub use driver::{CloseReason, EpisodeDriver, NullDriver};
pub use ids::{EpisodeKey, ExternalId, PeerId, Provider};

use std::time::Duration;

/// How long an episode whose connection was seen to go waits for its client before it expires.
pub const REATTACH_GRACE: Duration = Duration::from_secs(15 * 60);

/// How long an episode waits whose caller has no hold and says nothing: silence is not loss.
pub const HANDLE_IDLE: Duration = Duration::from_secs(24 * 60 * 60);
