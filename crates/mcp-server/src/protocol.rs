//! One session of the Model Context Protocol: the bytes of a line in, the bytes to write out.
//!
//! JSON-RPC 2.0, the four revisions that begin with `initialize`, and the one in which every request is complete in itself,
//! mixed as a client likes. To the latter a session is only what carries it. Nothing here reads or writes a stream, so a session
//! can be run in a test, and `capture status` runs one to see whether attaching works.

pub(crate) mod answers;
mod frame;
mod initialize;
mod method;
pub(crate) mod modern;
mod reply;
mod returning;
pub(crate) mod watching;

use std::borrow::Cow;
use std::mem;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use majordomus_capability::handles::Carried;
use majordomus_capability::project::mcp::{Era, Revision, Tools};
use majordomus_capability::{Context, Refusal, Shared};
use majordomus_episodes_core::board::Touch;
use majordomus_episodes_core::peers::{Peer, Transport};
use majordomus_records::caller::Caller;
use serde::Deserialize;
use serde_json::value::RawValue;

pub(crate) use modern::Modern;
pub use returning::Handed;
use watching::Watching;

pub use frame::BATCH_MAX;
pub(crate) use frame::{Frame, Line, Request, params, read, string};
pub(crate) use method::Method;
pub(crate) use reply::{Failure, Fault, error, error_without_id, result};

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
    /// Whose requests, complete in themselves, came over it; made with the first of them.
    carried: OnceLock<Arc<Carried>>,
    /// What the client wants to be told; made with the first wish.
    watching: OnceLock<Box<Watching>>,
}

impl Session {
    /// Begins a session as a new peer.
    #[must_use]
    pub fn new(shared: Arc<Shared>, tools: Arc<Tools>, transport: Transport) -> Self {
        let peer = shared.peers.attach(transport);
        let context = Context::of_peer(shared, peer.clone());
        let (notice, given_up, replays) = (Mutex::default(), AtomicBool::new(false), AtomicUsize::new(0));
        Self {
            tools,
            context,
            peer,
            revision: None,
            notice,
            given_up,
            replays,
            carried: OnceLock::new(),
            watching: OnceLock::new(),
        }
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
    /// is evidence of the client at work, valid or not, but for requests that are complete in themselves: those say whose
    /// evidence they are.
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
        match &line {
            Line::Blank => return Handled::Blank,
            Line::One(Frame::Request(request)) if request.era() == Era::Modern => {}
            Line::Broken | Line::One(_) | Line::Batch(_) | Line::TooMany(_) => self.touch(),
        }
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
        if let Some(watching) = self.watching.get() {
            watching.end();
        }
        if let Some(carried) = self.carried.get() {
            carried.end();
        }
    }

    /// What carries the requests that are complete in themselves. A connection over which nothing else comes is nobody.
    fn carried(&self) -> &Arc<Carried> {
        self.carried.get_or_init(|| {
            if self.revision.is_none() {
                self.context.shared.peers.set_hidden(&self.peer, true);
            }
            Arc::default()
        })
    }

    /// Is somebody, by its opening.
    fn come_forward(&self) {
        if self.carried.get().is_some() {
            self.context.shared.peers.set_hidden(&self.peer, false);
        }
    }

    /// Whether several messages may come as one array.
    pub(crate) fn has_batches(&self) -> bool {
        self.revision.is_some_and(Revision::has_batches)
    }

    /// Whether answering may take a disk, so that it must not be done where others would wait for it.
    pub(crate) fn may_wait(&self, line: &Line<'_>) -> bool {
        let waits = |frame: &Frame<'_>| match frame {
            Frame::Request(request) => answers::may_wait(&self.tools, request),
            Frame::Notification { .. } | Frame::Response | Frame::Invalid { .. } => false,
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
            Some(revision) => reply::result(out, request.id, &self.tools.refuse(revision, refusal)),
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
            Frame::Notification { cancels: Some(id) } => {
                if let Some(watching) = self.watching.get() {
                    watching.cancel(id);
                }
            }
            Frame::Notification { cancels: None } | Frame::Response => {}
            // It is answered once its stream has ended.
            Frame::Request(request) if alone && is_listen(&request) => match self.listen(&request) {
                Ok(acknowledgement) => out.extend_from_slice(acknowledgement.as_bytes()),
                Err(failure) => reply::error(out, request.id, &failure),
            },
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
        if request.era() == Era::Modern {
            return if alone { self.modern(request) } else { Err(not_in_a_batch()) };
        }
        let method = Method::named(Era::Legacy, &request.method);
        match (method, self.revision) {
            (Some(Method::Initialize), _) if alone => {
                Err(Failure::new(Fault::InvalidRequest, "this session has begun; initialize begins another one"))
            }
            (Some(Method::Initialize), _) => Err(not_in_a_batch()),
            (Some(Method::Ping), _) => Ok(Cow::Borrowed("{}")),
            // A client of the later era that probes without saying which is no such client.
            (None, None) if request.method == "server/discover" => Err(unknown_method()),
            (_, None) => {
                Err(Failure::new(Fault::InvalidParams, "send initialize first; until then only ping is answered"))
            }
            (Some(Method::Subscribe), Some(revision)) => self.subscribe(revision, request),
            (Some(Method::Unsubscribe), Some(_)) => {
                let uri = answers::uri_of(request).ok_or_else(|| no_uri(request))?;
                if let Some(watching) = self.watching.get() {
                    watching.unsubscribe(&uri);
                }
                Ok(Cow::Borrowed("{}"))
            }
            (Some(Method::CallTool), Some(revision)) => self.with_notice(|notice| {
                answers::answer(&self.tools, &self.context, revision, (Method::CallTool, request), notice)
            }),
            (Some(method), Some(revision)) => {
                answers::answer(&self.tools, &self.context, revision, (method, request), None)
            }
            (None, Some(_)) => Err(unknown_method()),
        }
    }

    /// Answers a request that is complete in itself: this session only carries it.
    fn modern(&self, request: &Request<'_>) -> Result<Cow<'_, str>, Failure> {
        let modern = Modern::read(request)?;
        let revision = modern.revision()?;
        let mut context = modern.context(self.context.shared.clone(), self.context.caller.as_ref());
        context.carried = Some(self.carried().clone());
        modern::answer(&self.tools, &context, revision, request)
    }

    fn subscribe(&self, revision: Revision, request: &Request<'_>) -> Result<Cow<'_, str>, Failure> {
        let uri = answers::uri_of(request).ok_or_else(|| no_uri(request))?;
        let unknown = || answers::nothing_at(revision, &uri, "there is nothing to read at this URI");
        let mark = self.mark(&uri).ok_or_else(unknown)?;
        self.watching.get_or_init(Box::default).subscribe(&uri, mark)?;
        Ok(Cow::Borrowed("{}"))
    }

    /// Goes on with a subscription that another process has left.
    fn watch(&self, uri: &str) {
        if let Some(mark) = self.mark(uri) {
            // One that is one too many was so there too.
            let _ = self.watching.get_or_init(Box::default).subscribe(uri, mark);
        }
    }

    /// Opens a stream, and returns what it is told first.
    fn listen(&self, request: &Request<'_>) -> Result<String, Failure> {
        let modern = Modern::read(request)?;
        let revision = modern.revision()?;
        let mut context = modern.context(self.context.shared.clone(), None);
        context.carried = Some(self.carried().clone());
        let stream = modern::listen(&self.tools, &context, revision, request)?;
        self.watching.get_or_init(Box::default).listen(stream)
    }

    /// What the session is told of changes since it was told last, a line each, by the marks as they are now; to be asked at
    /// most once per [`watching::LOOK`].
    pub(crate) fn news(&self, mark: &dyn Fn(&str) -> Option<u64>, out: &mut Vec<u8>) {
        let news = self.watching.get().map(|watching| watching.news(mark));
        for line in news.into_iter().flatten() {
            out.extend_from_slice(line.as_bytes());
            out.push(b'\n');
        }
    }

    /// Whether there is anything that the session wants to be told of.
    pub(crate) fn is_watching(&self) -> bool {
        self.watching.get().is_some_and(|watching| watching.is_active())
    }

    /// Ends the streams, and appends the answers to what opened them.
    pub(crate) fn end_streams(&self, out: &mut Vec<u8>) {
        for line in self.watching.get().map(|watching| watching.end()).into_iter().flatten() {
            out.extend_from_slice(line.as_bytes());
            out.push(b'\n');
        }
    }

    /// What is watched is looked at by nobody: that is no evidence.
    pub(crate) fn mark(&self, uri: &str) -> Option<u64> {
        self.tools.mark(&Context::without_peer(self.context.shared.clone(), None), uri)
    }

    /// Answers with what the client has to be told, with this result, or with the next one where there is none.
    fn with_notice<'a>(
        &'a self,
        answer: impl FnOnce(Option<&str>) -> Result<Cow<'a, str>, Failure>,
    ) -> Result<Cow<'a, str>, Failure> {
        let notice = mem::take(&mut *self.notice());
        let result = answer(notice.as_deref());
        if result.is_err() && notice.is_some() {
            *self.notice() = notice;
        }
        result
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.end();
    }
}

/// Reads parameters, or says what they should be.
fn params_of<'a, P: Default + Deserialize<'a>>(raw: Option<&'a RawValue>) -> Result<P, Failure> {
    frame::params(raw).ok_or_else(bad_params)
}

fn bad_params() -> Failure {
    Failure::new(Fault::InvalidParams, "params is not an object with each member once")
}

fn is_listen(request: &Request<'_>) -> bool {
    request.era() == Era::Modern && Method::named(Era::Modern, &request.method) == Some(Method::Listen)
}

fn no_uri(request: &Request<'_>) -> Failure {
    Failure::new(Fault::InvalidParams, format!("{} needs a uri", request.method))
}

fn not_in_a_batch() -> Failure {
    Failure::new(Fault::InvalidRequest, "this cannot be part of a batch; send it alone")
}

pub(crate) fn unknown_method() -> Failure {
    Failure::new(Fault::UnknownMethod, "this server has no such method")
}

#[cfg(test)]
mod tests;
