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
//! use majordomus_capability::Shared;
//! use std::sync::Arc;
//!
//! let registry = Arc::new(catalogue());
//! let shared = Arc::new(Shared::new(registry.clone(), EpisodeBoard::new(), PeerBoard::new()));
//! let peer = shared.peers.attach(Transport::Stdio);
//! let context = Context::of_peer(shared, peer);
//! let attach = registry.capability("episodes.attach").expect("it is in the catalogue");
//! let answer = attach.call(&context, r#"{"external_id":"thread-7"}"#, None).expect("the id is a good one");
//! assert!(answer.contains(r#""resumed":false"#));
//! ```
//!
//! What stays true: one declaration serves all surfaces, and every surface is a pure function of the registry; a query
//! changes nothing; unknown fields are refused by name and absent ones are left out; a refusal never quotes more of the
//! caller's text than a line. This crate does no IO of its own.

pub mod context;
pub mod descriptor;
pub mod handles;
pub mod page;
pub mod project;
pub mod prompt;
pub mod raw;
pub mod refusal;
pub mod registry;
pub mod resource;
pub mod views;

mod arguments;
mod catalogue;
mod schema;

#[cfg(test)]
mod testing;

pub use catalogue::{DECLARED, catalogue};
pub use context::{Context, Shared};
pub use descriptor::{Descriptor, Effect, Method, Reach, Route};
pub use handles::Handles;
pub use refusal::{Code, Refusal};
pub use registry::{Capability, RegistrationError, Registry};
