//! What the cases share: a world of its own for each of them, the released binary in it, and a client at its other end.
//!
//! A [`World`] is a folder with a git repository, a home and a state folder, gone afterwards; nothing of the person who
//! runs the tests reaches what is tested. A [`Client`] is a real `majordomus mcp` over real pipes, a [`Server`] a real
//! `majordomus serve` over real sockets. Nothing here sleeps: what takes time is waited for by reading, or by [`until`]
//! with a deadline, and everything that waits has one.

mod agent;
mod child;
mod client;
mod crowd;
mod flood;
mod http;
mod modern;
mod place;
mod program;
mod record;
mod running;
mod schema;
mod server;
mod snapshot;
mod time;
mod vendors;
mod world;

use std::time::{Duration, Instant};

pub use agent::Agent;
pub use client::{Client, INITIALIZE, Left, attach_line, detach_line, reported, session_id, state_of};
pub use crowd::{Listening, Told, is_stopped, told_in, worked};
pub use flood::Flood;
pub use http::{Connection, Events, Reply, Request};
pub use modern::{HANDLE_META, Stateless, handle_of, meta, modern};
pub use place::{executable, named_pipe};
pub use program::{built, cargo_environment, install, majordomus, root};
pub use record::Record;
pub use running::{Running, Said, run_at_once};
pub use schema::Schema;
pub use server::{REVISION, Server, Session, address, initialize, negotiated, published};
pub use snapshot::{Files, files, holds};
pub use time::{milliseconds, now_ms};
pub use vendors::{CLAUDE_CODE, CODEX, COPILOT_CLI, CURSOR, GEMINI_CLI, Vendor, answered, sample, sample_of, session};
pub use world::{World, feed, payload_of, provider_payload, record_files};

/// How long anything may take before the test fails. Far above what it takes.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// Asks again and again until there is an answer.
///
/// # Panics
/// Where there is none after [`DEADLINE`].
pub fn until<T>(what: &str, ask: impl FnMut() -> Option<T>) -> T {
    within(DEADLINE, what, ask)
}

/// [`until`] with a bound that was promised.
///
/// # Panics
/// Where there is no answer within `bound`.
pub fn within<T>(bound: Duration, what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let since = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(since.elapsed() < bound, "{what}: not within {bound:?}");
        std::thread::park_timeout(Duration::from_millis(2));
    }
}

/// A source of numbers that look random and are the same in every run.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// Starts at `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Throws a number below `most`.
    pub fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % most
    }
}
