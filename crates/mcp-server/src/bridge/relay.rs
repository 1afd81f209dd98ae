//! One client's side of a bridge, across servers: whole lines in, whole lines out, unchanged.
//!
//! A server can die while its clients live. What its client waits for then is either asked again, where asking twice does
//! what asking once does, or answered with an error. No id is answered twice, whatever the servers do: an answer passes
//! only while a request with its id waits for one.
//!
//! Nothing here reads or writes a stream or a clock. The caller moves the bytes, in this order: [`Relay::client_line`] and
//! [`Relay::server_line`] while there is a server; each whole line that a dead server left behind; [`Relay::lost`];
//! [`Relay::holds`] for the preamble to the next server; [`Relay::replay`] once that one has replied.

mod asked;
mod flight;

use std::collections::VecDeque;

use serde_json::value::RawValue;

use crate::protocol::{Failure, Fault, Frame, Line, error, read};
use crate::sharing::preamble::{TO_BRIDGE, Why};
use asked::{Asked, Said, Saying, says_initialized};
use flight::{Ask, Flight, Unit};

/// How many bytes of lines are kept to be repeated. What is sent beyond it is answered with an error if its server dies.
pub const REPEATABLE_BYTES: usize = 1 << 20;
/// How many lines are kept to be repeated; the same is true beyond it.
pub const REPEATABLE_LINES: usize = 1024;
/// How many requests can wait at once. More are answered with an error without having been sent: a server reads no
/// faster than it answers, so who comes here waits for nothing that ends.
pub const WAITING: usize = 16_384;
/// How many bytes the ids of the waiting requests can have in all; the same is true beyond it.
pub const WAITING_ID_BYTES: usize = 1 << 20;
/// How many resources a client's subscriptions follow it to the next server.
pub const SUBSCRIPTIONS: usize = 1000;

/// What a request is answered with whose server died under it.
const GONE: &str = "the server of this checkout went away while this call was running; it may or may not have been \
                    done: look before you repeat it";
/// What a request is answered with that is one too many.
const FULL: &str = "too many requests wait for their answers; this one was not sent, send it again when some have come";

/// What a request is answered with that nobody is left to do.
const UNSERVED: &str =
    "the server of this checkout went away and no other one could be started; this was perhaps not done";

const INITIALIZED: &[u8] = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// What became of a server's line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// It was passed on.
    Passed,
    /// It is nothing for the client: an answer to what was replayed, or to what nobody waits for.
    Swallowed,
    /// The server leaves, and nothing more will come from it.
    Farewell(Why),
}

/// One client's side of a bridge, across servers.
#[derive(Debug)]
pub struct Relay {
    served: bool,
    /// The last `initialize` that a server agreed to.
    opening: Option<Opening>,
    subscriptions: Vec<Subscription>,
    flight: Flight,
    /// The ids of what was replayed for the server's sake, in order; their answers are nobody's.
    swallowed: VecDeque<Box<str>>,
    held: Option<Box<str>>,
    /// An operator has ended what the client held, and it has not been told.
    stopped: bool,
    /// What was detached last, until there is another attach.
    ended: Option<Box<str>>,
}

#[derive(Debug)]
struct Opening {
    id: Box<str>,
    line: Box<[u8]>,
    /// Whether the client has said that it is ready.
    initialized: bool,
}

#[derive(Debug)]
struct Subscription {
    id: Box<str>,
    uri: Box<str>,
}

impl Relay {
    /// Begins with a client that has said nothing, and a server.
    #[must_use]
    pub fn new() -> Self {
        Self {
            served: true,
            opening: None,
            subscriptions: Vec::new(),
            flight: Flight::default(),
            swallowed: VecDeque::new(),
            held: None,
            stopped: false,
            ended: None,
        }
    }

    /// Passes a client's line on, given without its newline.
    ///
    /// Nothing but a request that is one too many is answered here, to `to_client`. A line that is no message is passed
    /// on like any other: its refusal is the server's. Not to be called between [`lost`](Self::lost) and
    /// [`replay`](Self::replay): a line that comes then waits at the caller.
    pub fn client_line(&mut self, line: &[u8], to_server: &mut Vec<u8>, to_client: &mut Vec<u8>) {
        debug_assert!(self.served, "a line is passed on only while there is a server");
        let message = read(line, true);
        let unit = Unit::of(&message, line);
        if let Some(unit) = unit {
            if !self.flight.has_room_for(&unit) {
                unit.answer(FULL, to_client);
                return;
            }
            self.flight.push(unit);
        }
        pass(line, to_server);
        self.note(&message, line);
    }

    /// Notes what a client says without asking.
    fn note(&mut self, message: &Line<'_>, line: &[u8]) {
        let frames = match message {
            Line::One(frame) => std::slice::from_ref(frame),
            Line::Batch(frames) => frames,
            Line::Blank | Line::Broken | Line::TooMany(_) => return,
        };
        for frame in frames {
            if let Frame::Notification { cancels: Some(id) } = frame {
                self.flight.cancel(id);
            }
        }
        if frames.iter().any(|frame| matches!(frame, Frame::Notification { .. })) && says_initialized(line) {
            match (self.flight.opening(), &mut self.opening) {
                (Some(initialized), _) => *initialized = true,
                (None, Some(opening)) => opening.initialized = true,
                (None, None) => {}
            }
        }
    }

    /// Passes a server's line on, given without its newline, unless the client must not see it.
    ///
    /// Only whole lines: what a dead server began to write is dropped by the caller.
    pub fn server_line(&mut self, line: &[u8], to_client: &mut Vec<u8>) -> Told {
        if line.starts_with(TO_BRIDGE) {
            let Some(why) = asked::farewell(line) else { return Told::Swallowed };
            if why == Why::Stopped {
                self.stopped |= self.held.take().is_some();
            }
            return Told::Farewell(why);
        }
        let passes = self.served
            && match Saying::read(line) {
                Saying::One(said) => self.hear(&said),
                // None of what is replayed is a batch, so an array is passed or dropped as a whole.
                Saying::Batch(all) => all.iter().filter(|said| self.hear(said)).count() > 0,
                Saying::Unknown => true,
            };
        if passes {
            pass(line, to_client);
            Told::Passed
        } else {
            Told::Swallowed
        }
    }

    /// Takes in one message of the server; whether the client may see it.
    fn hear(&mut self, said: &Said<'_>) -> bool {
        match (said.method, said.id.map(RawValue::get)) {
            (Some(_), Some(_)) => true,
            (Some(_), None) => self.hear_notification(said),
            (None, Some(id)) => self.hear_answer(id, said),
            (None, None) => {
                self.flight.refused();
                true
            }
        }
    }

    fn hear_notification(&mut self, said: &Said<'_>) -> bool {
        if let Some(id) = said.acknowledges() {
            // The first one is the client's; later ones come from servers to which the request was repeated.
            return self.flight.listen(id).is_none_or(|acknowledged| !std::mem::replace(acknowledged, true));
        }
        if let Some(id) = said.cancels()
            && self.flight.listen(id).is_some()
        {
            self.flight.take(id);
        }
        true
    }

    fn hear_answer(&mut self, id: &str, said: &Said<'_>) -> bool {
        // What was replayed was sent first, so its answer is the first with that id, should the client use it again.
        if let Some(at) = self.swallowed.iter().position(|expected| **expected == *id) {
            self.swallowed.remove(at);
            return false;
        }
        let Some((ask, line)) = self.flight.take(id) else { return false };
        self.settle(ask, line, said);
        true
    }

    /// Learns what an answer makes true.
    fn settle(&mut self, ask: Ask, line: Option<Box<[u8]>>, said: &Said<'_>) {
        let done = said.error.is_none();
        match ask.asked {
            Asked::Other | Asked::Listen { .. } => {}
            Asked::Initialize { initialized } => match (line, &mut self.opening) {
                (Some(line), opening) if done => *opening = Some(Opening { id: ask.id, line, initialized }),
                // It was refused because the session has begun; being ready is then said of that one.
                (_, Some(opening)) => opening.initialized |= initialized,
                (_, None) => {}
            },
            Asked::Attach(external_id) if !said.is_refusal() => (self.held, self.ended) = (Some(external_id), None),
            Asked::Detach(external_id) if !said.is_refusal() => {
                if external_id.is_none() || external_id == self.held {
                    // Asked again, also of the next server, it is to be answered as it was.
                    self.ended = self.held.take().or(self.ended.take());
                }
            }
            Asked::Attach(_) | Asked::Detach(_) => {}
            Asked::Subscribe(uri) if done => {
                let known = self.subscriptions.iter().any(|live| live.uri == uri);
                if !known && self.subscriptions.len() < SUBSCRIPTIONS {
                    self.subscriptions.push(Subscription { id: ask.id, uri });
                }
            }
            Asked::Unsubscribe(uri) if done => self.subscriptions.retain(|live| live.uri != uri),
            Asked::Subscribe(_) | Asked::Unsubscribe(_) => {}
        }
    }

    /// Answers what the server took with it, in order; what may be asked again goes on waiting. Repeated, it does nothing.
    ///
    /// What the client has cancelled is forgotten.
    pub fn lost(&mut self, to_client: &mut Vec<u8>) {
        self.served = false;
        self.swallowed.clear();
        for unit in self.flight.give_up() {
            unit.answer(GONE, to_client);
        }
    }

    /// Answers all that the client waits for: there is no server, and there will be none.
    pub fn abandon(&mut self, to_client: &mut Vec<u8>) {
        self.lost(to_client);
        for unit in self.flight.take_all() {
            unit.answer(UNSERVED, to_client);
        }
    }

    /// Answers a line, given without its newline, that no server will ever be asked.
    pub fn refuse(&self, line: &[u8], to_client: &mut Vec<u8>) {
        if let Some(unit) = Unit::of(&read(line, true), line) {
            unit.answer(UNSERVED, to_client);
        }
    }

    /// Opens the session at a new server and asks it what the client still waits for, in order.
    ///
    /// To be called once for each server, after its reply to the preamble and before any other line; for the first one it
    /// writes nothing.
    pub fn replay(&mut self, to_server: &mut Vec<u8>) {
        self.served = true;
        if let Some(opening) = &self.opening {
            pass(&opening.line, to_server);
            self.swallowed.push_back(opening.id.clone());
            if opening.initialized {
                pass(INITIALIZED, to_server);
            }
        }
        for live in &self.subscriptions {
            pass(asked::subscribe(&live.id, &live.uri).as_bytes(), to_server);
            self.swallowed.push_back(live.id.clone());
        }
        for unit in self.flight.iter() {
            if let Some(line) = &unit.line {
                pass(line, to_server);
            }
            if unit.is_initialized() {
                pass(INITIALIZED, to_server);
            }
        }
    }

    /// The external id of the episode that the next server should give back.
    ///
    /// That of the last successful attach that no successful detach has followed; without one, the id named by the first
    /// attach or detach that waits for its answer, since the lost server may have done it. Whether that is so is the
    /// server's to tell. An episode that is held by a handle is not held by the connection.
    #[must_use]
    pub fn holds(&self) -> Option<&str> {
        self.held.as_deref().or_else(|| self.flight.names())
    }

    /// Whether an operator has ended what the client held, and it has not been told.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// Notes that the next server will tell it.
    pub fn take_stopped(&mut self) {
        self.stopped = false;
    }

    /// The external id of the episode that the client has detached last and has attached nothing since.
    #[must_use]
    pub fn ended(&self) -> Option<&str> {
        self.ended.as_deref()
    }

    /// How many lines the next [`replay`](Self::replay) begins with that say nothing new of the client.
    #[must_use]
    pub fn replays(&self) -> usize {
        let opening = self.opening.as_ref().map_or(0, |opening| 1 + usize::from(opening.initialized));
        opening + self.subscriptions.len()
    }

    /// How many requests wait for their answers, without those that the client has cancelled.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.flight.waiting()
    }
}

impl Default for Relay {
    fn default() -> Self {
        Self::new()
    }
}

/// Appends a line and its newline.
fn pass(line: &[u8], out: &mut Vec<u8>) {
    out.reserve(line.len() + 1);
    out.extend_from_slice(line);
    out.push(b'\n');
}

/// Appends an error about that request, without a newline.
fn fail(id: &str, message: &'static str, out: &mut Vec<u8>) {
    error(out, id, &Failure::new(Fault::Internal, message));
}

#[cfg(test)]
mod tests;
