//! A request over HTTP that is complete in itself. It has no session: what it says of itself stands in the message, and once
//! more in headers, for whoever passes it on without reading it. Where the two differ it is refused.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use majordomus_capability::Refusal;
use majordomus_capability::project::mcp::{Era, Revision};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::watch;

use super::Server;
use super::accept::Wire;
use super::events;
use super::mcp::{PROTOCOL_VERSION, Refused, json, unavailable};
use super::rest;
use super::socket::Socket;
use crate::protocol::watching::{LOOK, Stream};
use crate::protocol::{self, Failure, Fault, Frame, Line, Method, Modern, Request, answers, modern};

const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// Answers it, in the order of checks that the specification has.
pub(super) async fn answer(
    server: &Arc<Server>,
    headers: &HeaderMap,
    wire: &Wire,
    request: Request<'_>,
    body: &Bytes,
    now: Duration,
) -> Result<Response, Refused> {
    let (revision, method) = judge(headers, &request)?;
    let running = match wire.pace.begin(server.limits.pace, now, 1) {
        Ok(running) => running,
        Err(refusal) => return turned_away(server, &request, (revision, method), &refusal),
    };
    if !may_wait(server, &request) {
        return Ok(answered(server, revision, &request));
    }
    let Ok(room) = server.waiting.clone().try_acquire_owned() else {
        return turned_away(server, &request, (revision, method), &rest::busy());
    };
    if method == Method::Listen {
        return listen(server, revision, body.clone(), (request.id, wire.socket.clone())).await;
    }
    let (server, body) = (server.clone(), body.clone());
    // A write that has begun is finished, whether or not anybody still waits for the answer.
    let work = tokio::task::spawn_blocking(move || {
        let _taken = (running, room);
        match protocol::read(&body, false) {
            Line::One(Frame::Request(request)) => Some(answered(&server, revision, &request)),
            Line::Blank | Line::Broken | Line::One(_) | Line::Batch(_) | Line::TooMany(_) => None,
        }
    });
    work.await.ok().flatten().ok_or_else(|| Refused::of_request(StatusCode::OK, broken(), &request))
}

/// Answers with a stream, on which its client is told of changes until one of the two ends it.
async fn listen(
    server: &Arc<Server>,
    revision: Revision,
    body: Bytes,
    (id, socket): (&str, Socket),
) -> Result<Response, Refused> {
    let asked = server.clone();
    let open = tokio::task::spawn_blocking(move || {
        let Line::One(Frame::Request(request)) = protocol::read(&body, false) else { return Err(broken()) };
        let context = Modern::read(&request)?.context(asked.shared.clone(), None);
        modern::listen(&asked.tools, &context, revision, &request)
    });
    let open = open.await.unwrap_or_else(|_| Err(broken()));
    let stream = open.map_err(|failure| Refused::about_id(StatusCode::OK, failure, id))?;
    Ok(events::answer(Telling::new(server, stream, socket)))
}

fn broken() -> Failure {
    Failure::new(Fault::Internal, "the call failed; this is a bug")
}

/// A stream for one request. Dropped, whoever ends it, it holds no more.
struct Telling {
    server: Arc<Server>,
    /// Not while it looks for changes.
    stream: Option<Stream>,
    stopping: watch::Receiver<bool>,
    /// Where the client is seen to go.
    socket: Socket,
    began: bool,
    ended: bool,
    beat_at: Instant,
}

impl Telling {
    fn new(server: &Arc<Server>, stream: Stream, socket: Socket) -> Self {
        let stopping = server.stopping.subscribe();
        Self {
            server: server.clone(),
            stream: Some(stream),
            stopping,
            socket,
            began: false,
            ended: false,
            beat_at: Instant::now(),
        }
    }
}

impl events::Source for Telling {
    async fn next(&mut self) -> Option<String> {
        if !std::mem::replace(&mut self.began, true) {
            return self.stream.as_ref().map(|stream| events::message(&stream.acknowledgement()));
        }
        if self.ended {
            return None;
        }
        let beat = self.server.limits.stream_beat;
        loop {
            let quiet = self.stream.as_ref().is_none_or(Stream::is_quiet);
            let pause = if quiet { beat.saturating_sub(self.beat_at.elapsed()) } else { LOOK };
            tokio::select! {
                () = self.socket.hung_up() => return None,
                _ = self.stopping.wait_for(|stop| *stop) => {
                    self.ended = true;
                    return self.stream.as_ref().map(|stream| events::message(&stream.end()));
                }
                () = tokio::time::sleep(pause) => {}
            }
            let news = if quiet { Vec::new() } else { self.look().await? };
            if !news.is_empty() {
                self.beat_at = Instant::now();
                return Some(news.iter().map(|message| events::message(message)).collect());
            }
            if self.beat_at.elapsed() >= beat {
                self.beat_at = Instant::now();
                return Some(events::BEAT.into());
            }
        }
    }
}

impl Telling {
    /// Looks for changes where nobody waits for the disk.
    async fn look(&mut self) -> Option<Vec<String>> {
        let (server, mut stream) = (self.server.clone(), self.stream.take()?);
        let looked = tokio::task::spawn_blocking(move || {
            let news = stream.news(&|uri| server.mark(uri));
            (stream, news)
        });
        let (stream, news) = looked.await.ok()?;
        self.stream = Some(stream);
        Some(news)
    }
}

/// What a request asks for, where it says the same in its headers as in itself, and there is such a thing.
fn judge(headers: &HeaderMap, request: &Request<'_>) -> Result<(Revision, Method), Refused> {
    let bad = |failure: Failure| Refused::of_request(StatusCode::BAD_REQUEST, failure, request);
    let modern = Modern::read(request).map_err(bad)?;
    mirrors(headers, &PROTOCOL_VERSION, &modern.version).map_err(bad)?;
    let revision = modern.revision().map_err(bad)?;
    mirrors(headers, &METHOD, &request.method).map_err(bad)?;
    let method = Method::named(Era::Modern, &request.method)
        .ok_or_else(|| Refused::of_request(StatusCode::NOT_FOUND, protocol::unknown_method(), request))?;
    if let Some(name) = named(method, request) {
        mirrors(headers, &NAME, &name).map_err(bad)?;
    }
    Ok((revision, method))
}

/// Answers a request that was found to be whole.
fn answered(server: &Arc<Server>, revision: Revision, request: &Request<'_>) -> Response {
    let result = Modern::read(request).and_then(|said| {
        let context = said.context(server.shared.clone(), None);
        modern::answer(&server.tools, &context, revision, request)
    });
    let mut out = Vec::new();
    match &result {
        Ok(result) => protocol::result(&mut out, request.id, result),
        Err(failure) => protocol::error(&mut out, request.id, failure),
    }
    let lacks = result.is_err_and(|failure| failure.fault == Fault::MissingCapability);
    json(if lacks { StatusCode::BAD_REQUEST } else { StatusCode::OK }, out)
}

/// Whether answering may take a disk: by what is asked, or to find out whose handle it shows.
fn may_wait(server: &Server, request: &Request<'_>) -> bool {
    let unseen = |handle: Cow<'_, str>| !server.shared.handles.is_seen(&handle);
    answers::may_wait(&server.tools, request)
        || Modern::read(request).is_ok_and(|said| said.handle().is_some_and(unseen))
}

/// Refuses a request that is not tried at all.
fn turned_away(
    server: &Server,
    request: &Request<'_>,
    (revision, method): (Revision, Method),
    refusal: &Refusal,
) -> Result<Response, Refused> {
    if method != Method::CallTool {
        return Err(unavailable(refusal).about(request));
    }
    let mut out = Vec::new();
    protocol::result(&mut out, request.id, &server.tools.refuse(revision, refusal));
    Ok(json(StatusCode::OK, out))
}

/// What a request names, of those that have to name it in a header too; `None` where it names nothing that could be.
fn named<'a>(method: Method, request: &Request<'a>) -> Option<Cow<'a, str>> {
    #[derive(Default, Deserialize)]
    struct Params<'a> {
        #[serde(borrow)]
        name: Option<&'a RawValue>,
    }
    match method {
        Method::CallTool | Method::GetPrompt => {
            let params: Params<'a> = protocol::params(request.params)?;
            params.name.and_then(protocol::string)
        }
        Method::ReadResource => answers::uri_of(request),
        Method::Initialize
        | Method::Ping
        | Method::Discover
        | Method::ListTools
        | Method::ListResources
        | Method::ListTemplates
        | Method::ListPrompts
        | Method::Complete
        | Method::Subscribe
        | Method::Unsubscribe
        | Method::Listen => None,
    }
}

/// Holds a header against what the message says.
fn mirrors(headers: &HeaderMap, header: &HeaderName, said: &str) -> Result<(), Failure> {
    let mut values = headers.get_all(header).iter();
    let why = match (values.next(), values.next()) {
        (None, _) => "is missing",
        (Some(_), Some(_)) => "is there twice",
        (Some(value), None) => match decoded(value.as_bytes()) {
            None => "is no base64",
            Some(value) if value == said.as_bytes() => return Ok(()),
            Some(_) => "is not what the message says",
        },
    };
    Err(Failure::new(Fault::HeaderMismatch, format!("the header {header} {why}")))
}

/// What a header's value stands for: itself, or the bytes in base64 between two marks.
fn decoded(value: &[u8]) -> Option<Cow<'_, [u8]>> {
    let value = value.trim_ascii();
    match value.strip_prefix(b"=?base64?").and_then(|rest| rest.strip_suffix(b"?=")) {
        Some(coded) => STANDARD.decode(coded).ok().map(Cow::Owned),
        None => Some(Cow::Borrowed(value)),
    }
}

#[cfg(test)]
mod tests;
