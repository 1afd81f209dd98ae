//! Transports: the Model Context Protocol over stdio and HTTP, and the API for programs.
//!
//! A connection *is* an event source here: it speaks, works and goes, and that is an episode. So the protocol is written
//! on bytes, and each layer stands alone:
//!
//! - [`protocol`] is pure: the bytes of one line go in, the bytes to write come out.
//! - [`stdio`] moves the bytes of a process's standard streams, watches for signals and deadlines, and never blocks.
//! - [`http`] serves many callers at once: sessions, handles, and whoever only asks.
//! - [`sharing`] serves the clients of other processes over a socket; [`bridge`] is the other end of it.
//! - [`house`] is all that a server has besides its connections.
//! - [`threads`] executes a board's driver calls, so that a slow disk costs its caller a bounded time.
//!
//! ```
//! use std::sync::Arc;
//!
//! use majordomus_capability::project::mcp::Tools;
//! use majordomus_capability::{Shared, catalogue};
//! use majordomus_episodes_core::EpisodeBoard;
//! use majordomus_episodes_core::peers::{PeerBoard, Transport};
//! use majordomus_mcp_server::protocol::Session;
//!
//! let registry = Arc::new(catalogue());
//! let shared = Arc::new(Shared::new(registry.clone(), EpisodeBoard::new(), PeerBoard::new()));
//! let mut session = Session::new(shared, Arc::new(Tools::new(registry)), Transport::Stdio);
//! let mut out = Vec::new();
//! session.handle(br#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#, &mut out);
//! assert_eq!(out, b"{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"result\":{}}\n");
//! ```
//!
//! What stays true: nothing but JSON-RPC is written to the output; ids are echoed byte for byte; a request is answered
//! exactly once and in arrival order; a lost connection detaches its episode and never closes it; memory is bounded
//! whatever the client sends or does not read.

pub mod bridge;
pub mod house;
pub mod http;
mod keeper;
pub mod protocol;
pub mod sharing;
pub mod stdio;
#[cfg(test)]
mod testing;
pub mod threads;

pub use bridge::{BridgeOptions, run_bridge};
pub use house::{House, HouseOptions};
pub use http::{HttpOptions, HttpServer, serve_http};
pub use keeper::Keeper;
pub use protocol::Session;
pub use stdio::{Ended, StdioError, StdioOptions, exit_within, on_standard_streams, serve_streams};
pub use threads::Threads;
