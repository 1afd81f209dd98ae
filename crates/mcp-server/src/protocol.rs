//! One session of the Model Context Protocol: the bytes of a line in, the bytes to write out.
//!
//! JSON-RPC 2.0 and the four revisions that begin with `initialize`. Nothing here reads or writes a stream, so a session
//! can be run in a test, and `capture status` runs one to see whether attaching works.

mod frame;
mod initialize;
mod reply;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use majordomus_capability::Context;
use majordomus_capability::project::mcp::{Call, Revision, Tools};
use majordomus_episodes_core::board::{EpisodeBoard, Touch};
use majordomus_episodes_core::peers::{Peer, PeerBoard, Transport};
use majordomus_records::Store;
use serde::Deserialize;
use serde_json::value::RawValue;

use frame::{Frame, Line, Request};
use reply::{Failure, Fault};

/// The most messages of one batch: a short line must not cost a long answer without end.
pub const BATCH_MAX: usize = 100;

/// What a line was, for whoever counts or reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handled {
    /// Nothing but space; it is no evidence and has no answer.
    Blank,
    /// JSON, whatever it said.
    Message,
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
    revision: Option<Revision>,
    notice: Option<String>,
    ended: bool,
}

impl Session {
    /// Begins a session as a new peer of `peers`; `provider` is who draws the boundary of what it attaches.
    #[must_use]
    pub fn new(board: EpisodeBoard, peers: PeerBoard, tools: Arc<Tools>, provider: &str, transport: Transport) -> Self {
        let peer = peers.attach(transport);
        let context = Context::new(board, peers, peer, provider);
        Self { tools, context, revision: None, notice: None, ended: false }
    }

    /// Says how long the board lets a detached episode wait, where that is not the usual grace.
    #[must_use]
    pub fn with_grace(mut self, grace: Duration) -> Self {
        self.context.grace = grace;
        self
    }

    /// Gives the session the records of its checkout to read.
    #[must_use]
    pub fn with_records(mut self, records: Option<Store>) -> Self {
        self.context.records = records;
        self
    }

    /// This session's name on the boards.
    #[must_use]
    pub fn peer(&self) -> &Peer {
        &self.context.peer
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
        let batches = self.revision.is_some_and(Revision::has_batches);
        let line = frame::read(line, batches);
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
                self.answer(frame, true, out);
                Handled::Message
            }
            Line::Batch(frames) => {
                self.batch(frames, batches, out);
                Handled::Message
            }
        };
        if out.len() > before {
            out.push(b'\n');
        }
        handled
    }

    /// Answers a line of which nothing was kept because it was longer than `limit` bytes.
    pub fn too_long(&mut self, limit: usize, out: &mut Vec<u8>) {
        self.touch();
        self.complain(Fault::InvalidRequest, format!("the message is longer than {limit} bytes"), out);
        out.push(b'\n');
    }

    /// Ends the session: its peer leaves, and the episode that it held waits for its client. Repeated, it does nothing.
    pub fn end(&mut self) {
        if !std::mem::replace(&mut self.ended, true) {
            self.context.peers.detach(&self.context.peer);
            self.context.board.detach(&self.context.peer);
        }
    }

    fn touch(&mut self) {
        self.context.peers.touch(&self.context.peer);
        match self.context.board.touch(&self.context.peer) {
            Touch::None | Touch::Held => {}
            Touch::Lost { by: Some(peer) } => {
                self.notice = Some(format!(
                    "Connection {peer} attached under this session's external_id and took its episode over; what happens \
                     here no longer counts as its activity. If that was not you, attach again with an external_id that \
                     belongs to this conversation alone."
                ));
            }
            Touch::Lost { by: None } => {
                self.notice = Some(
                    "This session's episode was ended from elsewhere; call majordomus_session_attach again to go on with \
                     a new one."
                        .into(),
                );
            }
        }
    }

    fn batch(&mut self, frames: Vec<Frame<'_>>, supported: bool, out: &mut Vec<u8>) {
        let refused = match frames.len() {
            _ if !supported => {
                Cow::Borrowed("batches are not part of this protocol revision; send one message per line")
            }
            0 => "the batch is empty".into(),
            1..=BATCH_MAX => return self.each(frames, out),
            more => format!("the batch has {more} messages; at most {BATCH_MAX} are allowed").into(),
        };
        self.complain(Fault::InvalidRequest, refused, out);
    }

    fn each(&mut self, frames: Vec<Frame<'_>>, out: &mut Vec<u8>) {
        let before = out.len();
        for frame in frames {
            // An array without answers is never written, so each answer brings the byte in front of it.
            let mark = out.len();
            out.push(if mark == before { b'[' } else { b',' });
            self.answer(frame, false, out);
            if out.len() == mark + 1 {
                out.truncate(mark);
            }
        }
        if out.len() > before {
            out.push(b']');
        }
    }

    fn answer(&mut self, frame: Frame<'_>, alone: bool, out: &mut Vec<u8>) {
        match frame {
            Frame::Notification | Frame::Response => {}
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

    fn request(&mut self, request: &Request<'_>, alone: bool) -> Result<Cow<'_, str>, Failure> {
        match (request.method.as_ref(), self.revision) {
            ("initialize", _) if alone => initialize::initialize(self, request.params).map(Cow::Owned),
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
            ("tools/call", Some(revision)) => self.call(revision, request.params).map(Cow::Owned),
            (_, Some(_)) => Err(unknown_method()),
        }
    }

    fn call(&mut self, revision: Revision, raw: Option<&RawValue>) -> Result<String, Failure> {
        let params: CallParams<'_> = params(raw)?;
        let Some(name) = params.name.and_then(frame::string) else {
            return Err(Failure::new(Fault::InvalidParams, "tools/call needs the name of a tool"));
        };
        let call = Call { name: &name, arguments: params.arguments, notice: self.notice.as_deref() };
        match self.tools.call(&self.context, revision, call) {
            Ok(result) => {
                self.notice = None;
                Ok(Box::<str>::from(result).into_string())
            }
            Err(unknown) => {
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

#[derive(Default, Deserialize)]
struct ListParams<'a> {
    #[serde(borrow)]
    cursor: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
struct CallParams<'a> {
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

/// Reads parameters: an object, or nothing at all.
fn params<'a, P: Default + Deserialize<'a>>(raw: Option<&'a RawValue>) -> Result<P, Failure> {
    let Some(raw) = raw else {
        return Ok(P::default());
    };
    // serde would also take an array for a struct, member by member.
    let read = raw.get().starts_with('{').then(|| serde_json::from_str(raw.get()).ok()).flatten();
    read.ok_or_else(|| Failure::new(Fault::InvalidParams, "params is not an object with each member once"))
}

fn unknown_method() -> Failure {
    Failure::new(Fault::UnknownMethod, "this server has no such method")
}

#[cfg(test)]
mod tests;
