//! One session of the Model Context Protocol: the bytes of a line in, the bytes to write out.
//!
//! JSON-RPC 2.0 and the four revisions that begin with `initialize`. Nothing here reads or writes a stream, so a session
//! can be run in a test, and `capture status` runs one to see whether attaching works.

mod frame;
mod initialize;
mod reply;
mod returning;

use std::borrow::Cow;
use std::mem;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use majordomus_capability::project::mcp::{Call, Revision, Tools};
use majordomus_capability::{Context, Refusal, Shared};
use majordomus_episodes_core::board::Touch;
use majordomus_episodes_core::peers::{Peer, Transport};
use majordomus_records::caller::Caller;
use serde::Deserialize;
use serde_json::value::RawValue;

pub use returning::Handed;

pub use frame::BATCH_MAX;
pub(crate) use frame::{Called, Era, Frame, Line, Request, read};
pub(crate) use reply::{Failure, Fault, error, error_without_id};

/// What a line was, for whoever counts or reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handled {
    /// Nothing but space; it is no evidence and has no answer.
    Blank,
    /// JSON that is a message, or a batch of such, whatever it said.
    Message,
    /// JSON that is no message here; it was answered with an error.
    Invalid,
    /// Not JSON in UTF-8; it was answered with a parse error.
    Malformed,
}

/// One connection of a client, from its first byte to its end.
///
/// It is a peer from the start; only a client's own attach opens an episode. When it ends, or is dropped, the episode that
/// it held is detached, never closed.
#[derive(Debug)]
pub struct Session {
    tools: Arc<Tools>,
    context: Context,
    peer: Peer,
    revision: Option<Revision>,
    notice: Mutex<Option<Box<str>>>,
    /// Whoever serves this client next goes on with its episode.
    given_up: AtomicBool,
    /// How many of the next messages an earlier server has had already: they are no evidence.
    replays: AtomicUsize,
}

impl Session {
    /// Begins a session as a new peer.
    #[must_use]
    pub fn new(shared: Arc<Shared>, tools: Arc<Tools>, transport: Transport) -> Self {
        let peer = shared.peers.attach(transport);
        let context = Context::of_peer(shared, peer.clone());
        let (notice, given_up, replays) = (Mutex::default(), AtomicBool::new(false), AtomicUsize::new(0));
        Self { tools, context, peer, revision: None, notice, given_up, replays }
    }

    /// Makes the session one whose connection a later server would know again: by what is kept of its id.
    #[must_use]
    pub fn carried_by(mut self, carrier: &str) -> Self {
        self.context.carrier = Some(carrier.into());
        self
    }

    /// Says who is at the other end, as far as the process that the client started can tell.
    #[must_use]
    pub fn called_by(mut self, caller: Caller) -> Self {
        self.context = self.context.clone().called_by(caller);
        self
    }

    /// This session's name on the boards.
    #[must_use]
    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// The revision that was negotiated, once it was.
    #[must_use]
    pub fn revision(&self) -> Option<Revision> {
        self.revision
    }

    /// Handles one line, with or without its newline, and appends what there is to answer, a newline included.
    ///
    /// A request is answered once. Notifications and responses are not answered, whatever is wrong with them. Every message
    /// is evidence of the client at work, valid or not.
    pub fn handle(&mut self, line: &[u8], out: &mut Vec<u8>) -> Handled {
        let read = frame::read(line, self.has_batches());
        let Line::One(Frame::Request(request)) = &read else { return self.answer(read, out) };
        if request.era() == Era::Modern || request.method != "initialize" {
            return self.answer(read, out);
        }
        self.touch();
        self.initialize(request, out);
        out.push(b'\n');
        Handled::Message
    }

    /// Negotiates, and appends the answer without a newline. It is no evidence: a client that only begins does no work.
    pub(crate) fn initialize(&mut self, request: &Request<'_>, out: &mut Vec<u8>) {
        match initialize::initialize(self, request.params) {
            Ok(result) => reply::result(out, request.id, &result),
            Err(failure) => reply::error(out, request.id, &failure),
        }
    }

    /// Answers what was read of one line, like [`handle`](Self::handle), in a session that has begun already.
    pub(crate) fn answer(&self, line: Line<'_>, out: &mut Vec<u8>) -> Handled {
        if matches!(line, Line::Blank) {
            return Handled::Blank;
        }
        self.touch();
        let before = out.len();
        let handled = match line {
            Line::Blank => Handled::Blank,
            Line::Broken => {
                self.complain(Fault::Parse, "the line is not JSON in UTF-8", out);
                Handled::Malformed
            }
            Line::One(frame) => {
                let handled = if matches!(frame, Frame::Invalid { .. }) { Handled::Invalid } else { Handled::Message };
                self.frame(frame, true, out);
                handled
            }
            Line::Batch(frames) => self.batch(frames, out),
            Line::TooMany(count) => {
                let message = format!("the batch has {count} messages; at most {BATCH_MAX} are allowed");
                self.complain(Fault::InvalidRequest, message, out);
                Handled::Invalid
            }
        };
        if out.len() > before {
            out.push(b'\n');
        }
        handled
    }

    /// Answers a line of which nothing was kept because it was longer than `limit` bytes.
    pub fn too_long(&self, limit: usize, out: &mut Vec<u8>) {
        self.touch();
        self.complain(Fault::InvalidRequest, format!("the message is longer than {limit} bytes"), out);
        out.push(b'\n');
    }

    /// Leaves the session to whoever serves this client next, with the episode that it holds: it is neither detached nor
    /// said to have been let go.
    pub fn give_up(&self) {
        self.given_up.store(true, Ordering::Release);
    }

    /// Ends the session: its peer leaves, and the episode that it held waits for its client. Repeated, it does nothing.
    pub fn end(&self) {
        if self.given_up.load(Ordering::Acquire) {
            return;
        }
        self.context.shared.peers.detach(&self.peer);
        self.context.shared.board.detach(&self.peer);
    }

    /// Whether several messages may come as one array.
    pub(crate) fn has_batches(&self) -> bool {
        self.revision.is_some_and(Revision::has_batches)
    }

    /// Whether answering may take a disk, so that it must not be done where others would wait for it.
    pub(crate) fn may_wait(&self, line: &Line<'_>) -> bool {
        let waits = |frame: &Frame<'_>| {
            let Frame::Request(request) = frame else { return false };
            let Some(Called { name: Some(name), arguments, .. }) = request.called() else { return false };
            self.tools.may_wait(name, arguments.map_or("", RawValue::get))
        };
        match line {
            Line::Blank | Line::Broken | Line::TooMany(_) => false,
            Line::One(frame) => waits(frame),
            Line::Batch(frames) => frames.iter().any(waits),
        }
    }

    /// Appends the refusal of a request that is not even tried: a result that the model can read where it calls a
    /// tool, else an error.
    pub(crate) fn refuse(&self, request: &Request<'_>, refusal: &Refusal, out: &mut Vec<u8>) {
        match self.revision.filter(|_| request.method == "tools/call") {
            Some(_) => reply::result(out, request.id, &self.tools.refuse(refusal)),
            None => reply::error(out, request.id, &Failure::new(Fault::Internal, refusal.to_string())),
        }
    }

    /// Notes a message of the client.
    pub(crate) fn touch(&self) {
        if self.replays.load(Ordering::Relaxed) > 0 {
            // One connection's messages are handled one after the other.
            self.replays.fetch_sub(1, Ordering::Relaxed);
            return;
        }
        self.context.shared.peers.touch(&self.peer);
        let notice = match self.context.shared.board.touch(&self.peer) {
            Touch::None | Touch::Held => return,
            Touch::Lost { by: Some(peer) } => format!(
                "Connection {peer} attached under this session's external_id and took its episode over; what happens \
                 here no longer counts as its activity. If that was not you, attach again with an external_id that \
                 belongs to this conversation alone."
            ),
            Touch::Lost { by: None } => "This session's episode has ended, or a client at another server took it over; \
                 what happens here no longer counts as its activity. Call majordomus_session_attach again to go on, with \
                 an external_id that belongs to this conversation alone."
                .into(),
        };
        self.note(notice);
    }

    /// What the client's next result is to say besides.
    fn note(&self, notice: String) {
        *self.notice() = Some(notice.into());
    }

    fn notice(&self) -> MutexGuard<'_, Option<Box<str>>> {
        self.notice.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn batch(&self, frames: Vec<Frame<'_>>, out: &mut Vec<u8>) -> Handled {
        let refused = match frames.len() {
            _ if !self.has_batches() => "batches are not part of this protocol revision; send one message at a time",
            0 => "the batch is empty",
            _ => {
                self.each(frames, out);
                return Handled::Message;
            }
        };
        self.complain(Fault::InvalidRequest, refused, out);
        Handled::Invalid
    }

    fn each(&self, frames: Vec<Frame<'_>>, out: &mut Vec<u8>) {
        let before = out.len();
        for frame in frames {
            // An array without answers is never written, so each answer brings the byte in front of it.
            let mark = out.len();
            out.push(if mark == before { b'[' } else { b',' });
            self.frame(frame, false, out);
            if out.len() == mark + 1 {
                out.truncate(mark);
            }
        }
        if out.len() > before {
            out.push(b']');
        }
    }

    fn frame(&self, frame: Frame<'_>, alone: bool, out: &mut Vec<u8>) {
        match frame {
            Frame::Notification { .. } | Frame::Response => {}
            Frame::Invalid { id: Some(id), why } => reply::error(out, id, &Failure::new(Fault::InvalidRequest, why)),
            Frame::Invalid { id: None, why } => self.complain(Fault::InvalidRequest, why, out),
            Frame::Request(request) => match self.request(&request, alone) {
                Ok(result) => reply::result(out, request.id, &result),
                Err(failure) => reply::error(out, request.id, &failure),
            },
        }
    }

    /// Answers what has no id that could be read.
    fn complain(&self, fault: Fault, message: impl Into<Cow<'static, str>>, out: &mut Vec<u8>) {
        reply::error_without_id(out, self.revision, &Failure::new(fault, message));
    }

    fn request(&self, request: &Request<'_>, alone: bool) -> Result<Cow<'_, str>, Failure> {
        if request.era() == Era::Modern && request.method != "server/discover" {
            return Err(Failure::new(Fault::InvalidRequest, LEGACY_ONLY));
        }
        match (request.method.as_ref(), self.revision) {
            ("initialize", _) if alone => {
                Err(Failure::new(Fault::InvalidRequest, "this session has begun; initialize begins another one"))
            }
            ("initialize", _) => Err(Failure::new(Fault::InvalidRequest, "initialize cannot be part of a batch")),
            ("ping", _) => Ok(Cow::Borrowed("{}")),
            // A client of a later era probes with it and falls back to initialize on the same process.
            ("server/discover", _) => Err(unknown_method()),
            (_, None) => {
                Err(Failure::new(Fault::InvalidParams, "send initialize first; until then only ping is answered"))
            }
            ("tools/list", Some(revision)) => {
                let params: ListParams<'_> = params(request.params)?;
                if params.cursor.is_some() {
                    let message = "tools/list has one page and gives no cursor; leave it out";
                    return Err(Failure::new(Fault::InvalidParams, message));
                }
                Ok(Cow::Borrowed(self.tools.list(revision).get()))
            }
            ("tools/call", Some(revision)) => self.call(revision, request).map(Cow::Owned),
            (_, Some(_)) => Err(unknown_method()),
        }
    }

    fn call(&self, revision: Revision, request: &Request<'_>) -> Result<String, Failure> {
        let called = request.called().ok_or_else(bad_params)?;
        let Some(name) = &called.name else {
            return Err(Failure::new(Fault::InvalidParams, "tools/call needs the name of a tool"));
        };
        // Told with this result, or with the next one where there is no tool of that name.
        let notice = mem::take(&mut *self.notice());
        let call = Call { name, arguments: called.arguments, notice: notice.as_deref() };
        let named = called.meta.and_then(|meta| Caller::named_by(self.context.client.as_deref(), meta));
        let context = match named {
            // One process of such a client has several conversations, and says with each call in which it is.
            Some(caller) => Cow::Owned(self.context.clone().called_by(caller)),
            None => Cow::Borrowed(&self.context),
        };
        match self.tools.call(&context, revision, call) {
            Ok(result) => Ok(result),
            Err(unknown) => {
                if notice.is_some() {
                    *self.notice() = notice;
                }
                let names = self.tools.names().collect::<Vec<_>>().join(", ");
                Err(Failure::new(Fault::InvalidParams, format!("{unknown}; the tools are {names}")))
            }
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.end();
    }
}

/// What a client of a later era is told: as a server would that has never heard of it, so that it begins with
/// `initialize`.
pub(crate) const LEGACY_ONLY: &str =
    "this server speaks the revisions that begin with initialize; send initialize first";

#[derive(Default, Deserialize)]
struct ListParams<'a> {
    #[serde(borrow)]
    cursor: Option<&'a RawValue>,
}

/// Reads parameters, or says what they should be.
fn params<'a, P: Default + Deserialize<'a>>(raw: Option<&'a RawValue>) -> Result<P, Failure> {
    frame::params(raw).ok_or_else(bad_params)
}

fn bad_params() -> Failure {
    Failure::new(Fault::InvalidParams, "params is not an object with each member once")
}

fn unknown_method() -> Failure {
    Failure::new(Fault::UnknownMethod, "this server has no such method")
}

#[cfg(test)]
mod tests;
