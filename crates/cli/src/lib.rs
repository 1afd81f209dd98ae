//! The public API of majordomus, and the command of that name.
//!
//! A client attaches under its own name, its connection drops, it comes back as another peer under the same name and
//! gets the same episode, and then it says that it is done:
//!
//! ```
//! use majordomus_cli::episodes::{CloseReason, ConnectionEpisodeState, EpisodeBoard};
//! use majordomus_cli::peers::{PeerBoard, Transport};
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

pub mod episodes {
    //! Episodes: the sittings of clients, and what records them.

    pub use majordomus_episodes_core::REATTACH_GRACE;
    pub use majordomus_episodes_core::board::*;
    pub use majordomus_episodes_core::driver::*;
    pub use majordomus_records::{RecordDriver, ToolDriver};
}

pub mod peers {
    //! Peers: the connections of one process.

    pub use majordomus_episodes_core::peers::*;
}

mod args;
mod commands;
mod connect;
mod detached;
mod input;
mod output;
mod reference;
mod registered;
mod variables;

pub use commands::run;
