//! What majordomus can do, declared once and projected onto every surface.
//!
//! A *capability* is a typed function with a [`Descriptor`]: an id, texts that people and models read, an effect, an
//! input and an output type, and where it appears (a tool of the Model Context Protocol, an HTTP route, a command).
//! [`catalogue`] lists them in one fixed order; a [`Registry`] refuses a bad declaration; [`project`] turns the registry
//! into what one surface shows.
//!
//! ```
//! use majordomus_capability::{Context, catalogue};
//! use majordomus_episodes_core::board::EpisodeBoard;
//! use majordomus_episodes_core::peers::{PeerBoard, Transport};
//!
//! let (board, peers) = (EpisodeBoard::new(), PeerBoard::new());
//! let peer = peers.attach(Transport::Stdio);
//! let context = Context::new(board, peers, peer, "generic");
//! let registry = catalogue();
//! let attach = registry.capability("episodes.attach").expect("it is in the catalogue");
//! let answer = attach.call(&context, r#"{"external_id":"thread-7"}"#, None).expect("the id is a good one");
//! assert!(answer.get().contains(r#""resumed":false"#));
//! ```
//!
//! What stays true: one declaration serves all surfaces, and every surface is a pure function of the registry; a query
//! changes nothing; unknown fields are refused by name and absent ones are left out; a refusal never quotes more of the
//! caller's text than a line. This crate does no IO of its own.

pub mod context;
pub mod descriptor;
pub mod page;
pub mod project;
pub mod refusal;
pub mod registry;
pub mod views;

mod arguments;
mod catalogue;
mod schema;

pub use catalogue::catalogue;
pub use context::Context;
pub use descriptor::{Descriptor, Effect, Method, Route};
pub use refusal::{Code, Refusal};
pub use registry::{Capability, RegistrationError, Registry};
