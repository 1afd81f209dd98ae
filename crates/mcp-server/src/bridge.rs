//! A client whose server is another process: what it says goes there, what is answered comes back, and when that server
//! is gone the next one goes on where it was.
//!
//! - [`relay`] is pure: it watches the messages that pass, and says what a new server has to be told.
//! - [`place`] finds out who serves: somebody else, this process by right, or this process alone.
//! - [`run`] moves the bytes.

pub mod place;
pub mod relay;
pub mod run;

pub use run::{BridgeOptions, run_bridge};
