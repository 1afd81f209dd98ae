//! Whether a server that does not answer is there at all.

use std::io::{PipeReader, Read, Write, pipe};
use std::thread;
use std::time::Duration;

use majordomus_episodes_core::clock::Clock;

use super::Bridge;
use crate::bridge::place::{self, PATIENCE};
use crate::sharing::preamble::{Hello, Wants};

/// How long a call may go unanswered before the server is asked whether it is there at all.
const DOUBT: Duration = Duration::from_millis(500);
/// How long a server that has just shown to be there is not asked again.
const TRUST: Duration = Duration::from_secs(5);

/// A question whether a server is there, asked on a thread of its own.
pub(super) struct Probe {
    /// A byte for yes; closed without one for no.
    pub(super) answer: PipeReader,
}

impl Bridge {
    /// When to ask whether the server is there at all.
    pub(super) fn doubt_at(&self) -> Option<Duration> {
        let server = self.server.as_ref()?;
        let doubts = self.relay.in_flight() > 0 && server.probe.is_none() && server.theirs.is_some();
        doubts.then(|| server.heard + DOUBT)
    }

    pub(super) fn doubt(&mut self) {
        let now = self.clock.awake();
        if self.doubt_at().is_none_or(|at| at > now) {
            return;
        }
        let Some(server) = &mut self.server else { return };
        let (Some((socket, _)), Ok((answer, mut tell))) = (server.theirs.clone(), pipe()) else { return };
        let hello = Hello { wants: Wants::Probe, connection: None, holds: None, ..self.options.hello.clone() };
        let ask = move || {
            if place::answers(&socket, &hello, PATIENCE) {
                // Nobody may be waiting for it any more.
                let _ = tell.write_all(b"y");
            }
        };
        if thread::Builder::new().name("probe".into()).spawn(ask).is_ok() {
            server.probe = Some(Probe { answer });
        }
    }

    pub(super) fn hear_probe(&mut self) {
        let now = self.clock.awake();
        let Some(server) = &mut self.server else { return };
        let Some(mut probe) = server.probe.take() else { return };
        if probe.answer.read(&mut [0]).is_ok_and(|count| count > 0) {
            server.heard = now + TRUST;
        } else if server.heard + DOUBT <= now {
            // It holds the right to serve and does not: it is passed by.
            let mute = server.theirs.as_ref().map(|(socket, _)| socket.clone());
            self.lost(mute.as_deref());
        }
    }
}
