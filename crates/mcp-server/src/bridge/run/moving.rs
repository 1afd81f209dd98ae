//! From one server to the next: who serves once the last one has gone, and how the client's work goes on there.

use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use majordomus_episodes_core::clock::Clock;
use majordomus_records::Serving;

use super::{Bridge, Server, has_hung_up, is_ready};
use crate::bridge::place::{self, Place, Search};
use crate::sharing::preamble::{Hello, Wants, Why};
use crate::stdio::ends::End;
use crate::stdio::lines::{Line, Lines};
use crate::stdio::queue::Queue;

/// How often a client that is served alone looks for a server to share.
const LOOK: Duration = Duration::from_secs(30);
/// How long it looks.
const GLANCE: Duration = Duration::from_millis(50);

impl Bridge {
    /// The server is gone: what cannot be repeated is answered, and somebody else serves from now on, but not the one at
    /// `mute`.
    pub(super) fn lost(&mut self, mute: Option<&Path>) {
        let Some(server) = self.server.take() else { return };
        self.relay.lost(self.to_client.bytes());
        let waits = self.relay.in_flight() > 0 || self.from_client.waiting() > 0;
        if self.input_ended && !waits {
            return;
        }
        if server.why == Some(Why::Stopped) {
            (self.options.diagnostics)("the server of this checkout was stopped; the next call starts another one");
            self.close_house();
            self.quiet = true;
            return;
        }
        // One that goes on purpose has handed over what it had, and that is nobody's trouble.
        self.quiet = server.why.is_some();
        if server.theirs.is_none() && server.why.is_none() {
            self.give_up("this process could not, for want of descriptors or threads");
            self.close_house();
            return;
        }
        // Whoever is waited for is gone: the client's answers so far first.
        let _ = self.to_client.flush(&self.output);
        self.close_house();
        let died = server.theirs.filter(|_| server.why.is_none() && mute.is_none()).map(|(_, instance)| instance);
        self.connect(mute, died.as_deref());
    }

    /// A house of this process that has let its own client go is over.
    pub(super) fn close_house(&mut self) {
        self.look_at = None;
        if let Some(house) = self.house.take() {
            house.leave();
        }
    }

    /// Finds somebody who serves; whether there is one.
    pub(super) fn connect(&mut self, mute: Option<&Path>, died: Option<&str>) -> bool {
        let given_up = || is_ready(&self.stop) || self.hung_up || has_hung_up(self.input.as_fd());
        let search = Search { mute, given_up: &given_up, ..Search::default() };
        let place = place::find(&self.options.store, &self.hello(), search);
        if let (Some(instance), Some(_)) = (died, self.relay.holds()) {
            // Its last beat may be old, if it had been stopped for long before; the loss is now. Where that cannot be
            // noted, the beat counts.
            let _ = self.options.store.note_death(instance);
        }
        if !std::mem::take(&mut self.quiet) {
            self.say_who_serves(&place);
        }
        self.settle_at(place)
    }

    pub(super) fn say_who_serves(&self, place: &Place) {
        let line = match place {
            Place::Theirs { .. } => {
                "the server of this checkout went away; another one goes on with this client's work"
            }
            Place::Ours(_) => "the server of this checkout went away; this process is the server from now on",
            Place::Alone { .. } => return,
        };
        (self.options.diagnostics)(line);
    }

    pub(super) fn hello(&self) -> Hello {
        let (holds, ended) = (self.relay.holds().map(Into::into), self.relay.ended().map(Into::into));
        let (stopped, replays) = (self.relay.is_stopped(), self.relay.replays());
        Hello { holds, ended, stopped, replays, ..self.options.hello.clone() }
    }

    /// Is served there from now on; whether that is possible at all.
    pub(super) fn settle_at(&mut self, place: Place) -> bool {
        let (stream, theirs) = match place {
            // It was told then who comes.
            Place::Theirs { stream, socket, instance } => {
                self.relay.take_stopped();
                (stream, Some((socket, instance)))
            }
            Place::Ours(serving) => match self.open_house(Some(serving)) {
                Some(stream) => (stream, None),
                None => return false,
            },
            Place::Alone { why } => {
                (self.options.diagnostics)(&format!("{why}; this client is served by itself"));
                self.look_at = Some(self.clock.awake() + LOOK);
                match self.open_house(None) {
                    Some(stream) => (stream, None),
                    None => return false,
                }
            }
        };
        let _ = stream.set_read_timeout(None);
        let mut server = Server {
            end: End::reader(stream.into()),
            lines: Lines::new(usize::MAX),
            queue: Queue::default(),
            theirs,
            shut: None,
            why: None,
            heard: self.clock.awake(),
            probe: None,
        };
        self.relay.replay(server.queue.bytes());
        self.server = Some(server);
        true
    }

    pub(super) fn open_house(&mut self, serving: Option<Serving>) -> Option<UnixStream> {
        let hello = self.hello();
        let opened = (self.options.open)(serving).and_then(|house| {
            let stream = house.take_in(hello)?;
            Ok((house, stream))
        });
        self.relay.take_stopped();
        match opened {
            Ok((house, stream)) => {
                self.house = Some(house);
                Some(stream)
            }
            Err(error) => {
                self.give_up(&error.to_string());
                None
            }
        }
    }

    /// Nobody can serve, not even this process: what the client has asked by now is answered, and nothing more is read.
    pub(super) fn give_up(&mut self, why: &str) {
        (self.options.diagnostics)(&format!("this client cannot be served: {why}"));
        self.relay.abandon(self.to_client.bytes());
        self.read_client();
        while let Some(line) = self.from_client.next() {
            if let Line::Whole(line) = line {
                self.relay.refuse(line, self.to_client.bytes());
            }
        }
        self.from_client.clear();
        self.input_ends();
        self.unserved = true;
    }

    /// Shares a server again, if there is one by now.
    pub(super) fn look_around(&mut self) {
        let now = self.clock.awake();
        if self.look_at.is_none_or(|at| at > now) || self.relay.in_flight() > 0 {
            return;
        }
        self.look_at = Some(now + LOOK);
        let probe = Hello { wants: Wants::Probe, connection: None, holds: None, ..self.options.hello.clone() };
        let found = place::find(&self.options.store, &probe, Search { patience: GLANCE, ..Search::default() });
        if !matches!(found, Place::Alone { .. })
            && let Some(house) = &self.house
        {
            // Given back at once, so that whoever is told to connect again can have it.
            drop(found);
            house.close_doors(Why::Moved);
        }
    }
}
