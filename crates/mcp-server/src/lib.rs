//! Transports: the Model Context Protocol over stdio.
//!
//! A connection *is* an event source here: it speaks, works and goes, and that is an episode. So the protocol is written
//! on bytes, and each layer stands alone:
//!
//! - [`protocol`] is pure: the bytes of one line go in, the bytes to write come out.
//! - [`stdio`] moves the bytes of a process's standard streams, watches for signals and deadlines, and never blocks.
//! - [`threads`] executes a board's driver calls, so that a slow disk costs its caller a bounded time.
//!
//! ```
//! use majordomus_capability::catalogue;
//! use majordomus_capability::project::mcp::Tools;
//! use majordomus_episodes_core::EpisodeBoard;
//! use majordomus_episodes_core::peers::{PeerBoard, Transport};
//! use majordomus_mcp_server::protocol::Session;
//!
//! let tools = Tools::new(catalogue()).into();
//! let mut session = Session::new(EpisodeBoard::new(), PeerBoard::new(), tools, "generic", Transport::Stdio);
//! let mut out = Vec::new();
//! session.handle(br#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#, &mut out);
//! assert_eq!(out, b"{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"result\":{}}\n");
//! ```
//!
//! What stays true: nothing but JSON-RPC is written to the output; ids are echoed byte for byte; a request is answered
//! exactly once and in arrival order; a lost connection detaches its episode and never closes it; memory is bounded
//! whatever the client sends or does not read.

pub mod protocol;
pub mod stdio;
pub mod threads;

pub use protocol::Session;
pub use stdio::{Ended, StdioError, StdioOptions, serve_stdio};
pub use threads::Threads;
