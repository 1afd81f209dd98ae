//! `/mcp`: the streamable HTTP transport, of both eras at one endpoint.
//!
//! Each message is decided for itself, in the order of checks that the specification has, so that no status is ever sent
//! after a stream has begun. Answers are plain JSON. A session is a peer without a hold; a stream that is open holds.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::header::{ACCEPT, ALLOW, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use majordomus_capability::project::mcp::{Era, Revision};
use majordomus_capability::{Code, Refusal};
use majordomus_episodes_core::peers::Transport;
use majordomus_records::state::carrier_of;
use tokio::sync::watch;

use super::Server;
use super::accept::Wire;
use super::events::{self, EVENTS};
use super::modern;
use super::pace::Pace;
use super::rest;
use super::sessions::{self, Live};
use super::socket::Socket;
use crate::protocol::watching::LOOK;
use crate::protocol::{self, Failure, Fault, Frame, Handled, Line, Session};

const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
pub(super) const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// The query parameter that names the checkout whose server is meant.
const CHECKOUT: &str = "checkout";
const METHODS: &str = "GET, POST, DELETE";
const JSON: &str = "application/json";

/// A request that is not answered by a session.
pub(super) struct Refused {
    status: StatusCode,
    failure: Failure,
    /// The id of the request, where it had one that could be read.
    id: Option<String>,
    revision: Option<Revision>,
}

impl Refused {
    fn new(status: StatusCode, fault: Fault, message: impl Into<std::borrow::Cow<'static, str>>) -> Self {
        Self { status, failure: Failure::new(fault, message), id: None, revision: None }
    }

    /// Refuses the request of that id.
    pub(super) fn about_id(status: StatusCode, failure: Failure, id: &str) -> Self {
        Self { status, failure, id: Some(id.to_owned()), revision: None }
    }

    /// Refuses a request.
    pub(super) fn of_request(status: StatusCode, failure: Failure, request: &protocol::Request<'_>) -> Self {
        Self::about_id(status, failure, request.id)
    }

    pub(super) fn about(mut self, request: &protocol::Request<'_>) -> Self {
        self.id = Some(request.id.to_owned());
        self
    }

    fn of(self, frame: &Line<'_>) -> Self {
        if let Line::One(Frame::Request(request)) = frame { self.about(request) } else { self }
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let mut out = Vec::new();
        match &self.id {
            Some(id) => protocol::error(&mut out, id, &self.failure),
            None => protocol::error_without_id(&mut out, self.revision, &self.failure),
        }
        let mut response = json(self.status, out);
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if self.status == StatusCode::METHOD_NOT_ALLOWED {
            response.headers_mut().insert(ALLOW, HeaderValue::from_static(METHODS));
        }
        response
    }
}

pub(super) fn json(status: StatusCode, body: Vec<u8>) -> Response {
    (status, [(CONTENT_TYPE, JSON)], body).into_response()
}

/// What a caller is told who may not call at all.
pub(super) fn forbidden(refusal: &Refusal) -> Response {
    Refused::new(StatusCode::FORBIDDEN, Fault::InvalidRequest, refusal.to_string()).into_response()
}

/// One message, or a batch of them.
pub(super) async fn post(State(server): State<Arc<Server>>, request: Request) -> Response {
    take(&server, request).await.unwrap_or_else(Refused::into_response)
}

async fn take(server: &Arc<Server>, request: Request) -> Result<Response, Refused> {
    let (head, body) = request.into_parts();
    let (headers, wire) = (head.headers, head.extensions.get::<Arc<Wire>>());
    is_meant(server, &head.uri)?;
    may_change(server, &headers)?;
    if !accepts(&headers, JSON) && !accepts(&headers, EVENTS) {
        return Err(not_acceptable(JSON));
    }
    let body = rest::body_of(server, &headers, true, body).await;
    let body = body.map_err(|(status, refusal)| Refused::new(status, Fault::InvalidRequest, refusal.to_string()))?;
    let wire = wire.expect("every request comes over a wire");
    let (line, now) = (protocol::read(&body, false), server.now());
    if matches!(&line, Line::One(Frame::Request(request)) if is_modern(request, &headers)) {
        let Line::One(Frame::Request(request)) = line else { unreachable!("it was one") };
        return modern::answer(server, &headers, wire, request, &body, now).await;
    }
    if is_modern_header(&headers) {
        match &line {
            Line::One(Frame::Notification { .. }) => return Ok(StatusCode::ACCEPTED.into_response()),
            Line::One(Frame::Response) => {
                let message = "this server asks nothing, so nothing answers it";
                return Err(Refused::new(StatusCode::BAD_REQUEST, Fault::InvalidRequest, message));
            }
            Line::Blank | Line::Broken | Line::One(_) | Line::Batch(_) | Line::TooMany(_) => {}
        }
    }
    let id = headers.get(SESSION_ID);
    let live = id.and_then(|id| sessions::read_id(id.as_bytes())).and_then(|id| server.sessions.heard(&id, now));
    // How an array is read is the session's to say.
    let batches = live.as_ref().is_some_and(|live| live.session.has_batches());
    let line = if batches && matches!(line, Line::Batch(_)) { protocol::read(&body, true) } else { line };
    if let Some(refused) = no_message(&line) {
        if let Some(live) = &live {
            live.session.touch();
        }
        let revision = live.as_ref().and_then(|live| live.session.revision());
        return Err(Refused { revision, ..refused });
    }
    if matches!(&line, Line::One(Frame::Request(request)) if request.method == "initialize") {
        return begin(server, &wire.pace, &line, now);
    }
    if !is_legacy_header(&headers) {
        let message = "MCP-Protocol-Version names no revision in which this message can be sent";
        return Err(Refused::new(StatusCode::BAD_REQUEST, Fault::InvalidRequest, message).of(&line));
    }
    let live = live.ok_or_else(|| no_session(id.is_some()).of(&line))?;
    answer(server, &live, line, &body, now).await
}

/// Whether this is the server that an address means: ports change hands, and a client whose address names its checkout is
/// not to end up at another one's server.
fn is_meant(server: &Server, uri: &Uri) -> Result<(), Refused> {
    let query = uri.query().unwrap_or_default().as_bytes();
    let mut named = form_urlencoded::parse(query).filter(|(name, _)| name == CHECKOUT).map(|(_, id)| id);
    let Some(id) = named.next() else { return Ok(()) };
    let is_id = id.len() == 16 && id.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    if !is_id || named.next().is_some() {
        let message = "the address takes one checkout, by its id of 16 hexadecimal digits";
        return Err(Refused::new(StatusCode::BAD_REQUEST, Fault::InvalidRequest, message));
    }
    let ours = match &server.checkout {
        Some((ours, _)) if *ours == id => return Ok(()),
        Some((ours, place)) => format!("this server is for the checkout {ours} at {}", place.display()),
        None => "this server is for no checkout".into(),
    };
    let refusal = Refusal::new(Code::NotFound, format!("{ours}, not for {id}")).hint(
        "the other checkout has a server and a port of its own: run majordomus serve there, and connect to the address \
         that it says",
    );
    Err(Refused::new(StatusCode::MISDIRECTED_REQUEST, Fault::InvalidRequest, refusal.to_string()))
}

fn may_change(server: &Server, headers: &HeaderMap) -> Result<(), Refused> {
    let forbidden = |refusal: Refusal| Refused::new(StatusCode::FORBIDDEN, Fault::InvalidRequest, refusal.to_string());
    server.proof.judge(headers).map_err(forbidden)
}

/// What is refused before anybody asks which session it is for: what is no message.
fn no_message(line: &Line<'_>) -> Option<Refused> {
    let bad = |fault, message: &'static str| Some(Refused::new(StatusCode::BAD_REQUEST, fault, message));
    match line {
        Line::Blank => bad(Fault::Parse, "the body is empty"),
        Line::Broken => bad(Fault::Parse, "the body is not JSON in UTF-8"),
        Line::One(Frame::Invalid { id, why }) => {
            let refused = Refused::new(StatusCode::BAD_REQUEST, Fault::InvalidRequest, *why);
            Some(Refused { id: id.map(str::to_owned), ..refused })
        }
        Line::One(_) | Line::Batch(_) | Line::TooMany(_) => None,
    }
}

/// Whether a request is complete in itself, by what it says or by its header; what begins a session is not.
fn is_modern(request: &protocol::Request<'_>, headers: &HeaderMap) -> bool {
    request.era() == Era::Modern || (request.method != "initialize" && is_modern_header(headers))
}

fn no_session(was_named: bool) -> Refused {
    if was_named {
        let message = "there is no session of that id (any more); begin one with initialize, and attach again under the \
                       same external_id";
        return Refused::new(StatusCode::NOT_FOUND, Fault::InvalidRequest, message);
    }
    let message = "Mcp-Session-Id is missing; begin a session with initialize and send the id of its answer";
    Refused::new(StatusCode::BAD_REQUEST, Fault::InvalidRequest, message)
}

pub(super) fn unavailable(refusal: &Refusal) -> Refused {
    Refused::new(StatusCode::SERVICE_UNAVAILABLE, Fault::Internal, refusal.to_string())
}

/// Begins a session.
fn begin(server: &Arc<Server>, connection: &Arc<Pace>, line: &Line<'_>, now: Duration) -> Result<Response, Refused> {
    let Line::One(Frame::Request(request)) = line else { unreachable!("initialize is a request") };
    let _running = connection.begin(server.limits.pace, now, 1).map_err(|refusal| unavailable(&refusal).of(line))?;
    let id = sessions::new_id().map_err(|_| {
        let refusal = Refusal::new(Code::Unavailable, "the machine gave no random bytes for a session id");
        unavailable(&refusal).of(line)
    })?;
    let session = Session::new(server.shared.clone(), server.tools.clone(), Transport::Http);
    // Known again by its id, should another process go on with it.
    let mut session = session.carried_by(&carrier_of(&sessions::write_id(&id)));
    let mut out = Vec::new();
    session.initialize(request, &mut out);
    if session.revision().is_none() {
        return Ok(json(StatusCode::OK, out));
    }
    server.sessions.add(id, Live::new(session, Pace::new(server.limits.pace, now)), now);
    let mut response = json(StatusCode::OK, out);
    let id = HeaderValue::try_from(sessions::write_id(&id)).expect("hexadecimal digits are a header's value");
    response.headers_mut().insert(SESSION_ID, id);
    Ok(response)
}

/// Answers what belongs to a session.
async fn answer(
    server: &Arc<Server>,
    live: &Arc<Live>,
    line: Line<'_>,
    body: &Bytes,
    now: Duration,
) -> Result<Response, Refused> {
    let calls = match &line {
        Line::Batch(frames) => u32::try_from(frames.len()).unwrap_or(u32::MAX).max(1),
        Line::Blank | Line::Broken | Line::One(_) | Line::TooMany(_) => 1,
    };
    let running = match live.pace.begin(server.limits.pace, now, calls) {
        Ok(running) => running,
        Err(refusal) => return turned_away(live, &line, &refusal),
    };
    if let Line::One(Frame::Notification { cancels: Some(id) }) = &line {
        live.cancel(id);
    }
    let mut out = Vec::new();
    if !live.session.may_wait(&line) {
        let handled = live.session.answer(line, &mut out);
        live.settle();
        return Ok(answered(handled, out));
    }
    let Ok(room) = server.waiting.clone().try_acquire_owned() else {
        return turned_away(live, &line, &rest::busy());
    };
    let cancellable = match &line {
        Line::One(Frame::Request(request)) => Some(live.run(request.id)),
        Line::Blank | Line::Broken | Line::One(_) | Line::Batch(_) | Line::TooMany(_) => None,
    };
    let (called_off, works, body) =
        (cancellable.as_ref().map(|one| one.called_off.clone()), live.clone(), body.clone());
    // A write that has begun is finished, whether or not anybody still waits for the answer.
    let work = tokio::task::spawn_blocking(move || {
        let _taken = (running, room);
        let mut out = Vec::new();
        let line = protocol::read(&body, works.session.has_batches());
        let handled = works.session.answer(line, &mut out);
        works.settle();
        (handled, out)
    });
    let done = async { work.await.unwrap_or_else(|_| (Handled::Invalid, Vec::new())) };
    let response = match called_off {
        Some(called_off) => tokio::select! {
            (handled, out) = done => answered(handled, out),
            () = called_off.notified() => StatusCode::ACCEPTED.into_response(),
        },
        None => {
            let (handled, out) = done.await;
            answered(handled, out)
        }
    };
    Ok(response)
}

fn answered(handled: Handled, out: Vec<u8>) -> Response {
    match (handled, out.is_empty()) {
        (Handled::Message, true) => StatusCode::ACCEPTED.into_response(),
        (Handled::Message, false) => json(StatusCode::OK, out),
        (Handled::Blank | Handled::Invalid | Handled::Malformed, _) => json(StatusCode::BAD_REQUEST, out),
    }
}

/// Refuses a message of a session that is not tried at all.
fn turned_away(live: &Live, line: &Line<'_>, refusal: &Refusal) -> Result<Response, Refused> {
    let Line::One(Frame::Request(request)) = line else { return Err(unavailable(refusal)) };
    if request.method != "tools/call" {
        return Err(unavailable(refusal).of(line));
    }
    let mut out = Vec::new();
    live.session.refuse(request, refusal, &mut out);
    Ok(json(StatusCode::OK, out))
}

/// A stream of the session: nothing is said on it yet, but as long as it is open its client is there.
pub(super) async fn get(State(server): State<Arc<Server>>, request: Request) -> Response {
    let socket = request.extensions().get::<Arc<Wire>>().map(|wire| wire.socket.clone());
    let meant = is_meant(&server, request.uri());
    meant.and_then(|()| listen(&server, request.headers(), socket)).unwrap_or_else(Refused::into_response)
}

/// Asked without a body, a stream would open and be lost at once, and a loss shortens how long an episode waits.
pub(super) async fn head() -> Response {
    no_stream().into_response()
}

fn listen(server: &Arc<Server>, headers: &HeaderMap, socket: Option<Socket>) -> Result<Response, Refused> {
    let Some(id) = headers.get(SESSION_ID).filter(|_| is_legacy_header(headers)) else { return Err(no_stream()) };
    if !accepts(headers, EVENTS) {
        return Err(not_acceptable(EVENTS));
    }
    let id = sessions::read_id(id.as_bytes()).ok_or_else(|| no_session(true))?;
    let live = server.sessions.heard(&id, server.now()).ok_or_else(|| no_session(true))?;
    live.session.touch();
    let stream = Stream::open(server, id, live, socket).ok_or_else(|| {
        let what = format!("this session has {} streams already", server.limits.streams);
        unavailable(&Refusal::new(Code::Unavailable, what).hint("close one of them"))
    })?;
    Ok(events::answer(stream))
}

/// Whether the header names a revision that has no sessions.
fn is_modern_header(headers: &HeaderMap) -> bool {
    names_revision(headers, Era::Modern).unwrap_or(false)
}

/// Whether the header names one that has them; who does not say does.
fn is_legacy_header(headers: &HeaderMap) -> bool {
    names_revision(headers, Era::Legacy).unwrap_or(true)
}

fn names_revision(headers: &HeaderMap, era: Era) -> Option<bool> {
    let named = |version: &HeaderValue| version.to_str().ok().and_then(|version| Revision::named(era, version));
    headers.get(PROTOCOL_VERSION).map(|version| named(version).is_some())
}

fn no_stream() -> Refused {
    let message = "only a session that has begun with initialize has a stream, or can be deleted";
    Refused::new(StatusCode::METHOD_NOT_ALLOWED, Fault::InvalidRequest, message)
}

/// An open stream. Dropped, whoever ends it, it holds no more.
struct Stream {
    server: Arc<Server>,
    id: sessions::Id,
    live: Arc<Live>,
    stopping: watch::Receiver<bool>,
    /// Where the client is seen to go.
    socket: Option<Socket>,
    began: bool,
    /// Whether it is the one of its session on which changes are told.
    tells: bool,
    beat_at: Instant,
}

impl Stream {
    /// Opens one, unless the session has too many.
    fn open(server: &Arc<Server>, id: sessions::Id, live: Arc<Live>, socket: Option<Socket>) -> Option<Self> {
        let most = server.limits.streams;
        let count =
            live.streams.fetch_update(Ordering::AcqRel, Ordering::Acquire, |open| (open < most).then_some(open + 1));
        count.ok()?;
        server.shared.board.hold(live.session.peer());
        let (server, stopping) = (server.clone(), server.stopping.subscribe());
        Some(Self { server, id, live, stopping, socket, began: false, tells: false, beat_at: Instant::now() })
    }

    /// Whether something is to be told here, and on no other stream of the session.
    fn is_to_tell(&mut self) -> bool {
        if !self.live.session.is_watching() {
            return false;
        }
        self.tells = self.tells || !self.live.told.swap(true, Ordering::AcqRel);
        self.tells
    }

    /// Looks for changes where nobody waits for the disk.
    async fn look(&self) -> Option<String> {
        let (server, live) = (self.server.clone(), self.live.clone());
        let looked = tokio::task::spawn_blocking(move || {
            let mut news = Vec::new();
            live.session.news(&|uri| server.mark(uri), &mut news);
            String::from_utf8(news).expect("JSON is written in UTF-8")
        });
        let news = looked.await.ok()?;
        (!news.is_empty()).then(|| news.lines().map(events::message).collect())
    }
}

impl events::Source for Stream {
    /// The next words: the first at once, so that the client knows that it is connected.
    async fn next(&mut self) -> Option<String> {
        if !std::mem::replace(&mut self.began, true) {
            return Some(events::BEAT.into());
        }
        let beat = self.server.limits.stream_beat;
        loop {
            let tells = self.is_to_tell();
            let rest = beat.saturating_sub(self.beat_at.elapsed());
            let hung_up = async {
                match &self.socket {
                    Some(socket) => socket.hung_up().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = hung_up => return None,
                () = self.live.over.notified() => return None,
                _ = self.stopping.wait_for(|stop| *stop) => return None,
                () = tokio::time::sleep(rest.min(LOOK)) => {}
            }
            if self.live.is_over() {
                return None;
            }
            let news = if tells { self.look().await } else { None };
            if news.is_some() || self.beat_at.elapsed() >= beat {
                self.beat_at = Instant::now();
                return Some(news.unwrap_or_else(|| events::BEAT.into()));
            }
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // Until now its client was there, so its silence begins now.
        self.server.sessions.heard(&self.id, self.server.now());
        if self.tells {
            self.live.told.store(false, Ordering::Release);
        }
        self.live.streams.fetch_sub(1, Ordering::AcqRel);
        self.server.shared.board.release(self.live.session.peer());
    }
}

/// Ends a session: what it held is detached and waits for its client.
pub(super) async fn delete(State(server): State<Arc<Server>>, uri: Uri, headers: HeaderMap) -> Response {
    if let Err(refused) = is_meant(&server, &uri).and_then(|()| may_change(&server, &headers)) {
        return refused.into_response();
    }
    if !is_legacy_header(&headers) {
        return no_stream().into_response();
    }
    let Some(id) = headers.get(SESSION_ID) else { return no_session(false).into_response() };
    match sessions::read_id(id.as_bytes()).filter(|id| server.sessions.delete(id)) {
        Some(_) => StatusCode::NO_CONTENT.into_response(),
        None => no_session(true).into_response(),
    }
}

fn not_acceptable(what: &str) -> Refused {
    let message = format!("Accept leaves no room for {what}, which is what this server answers with");
    Refused::new(StatusCode::NOT_ACCEPTABLE, Fault::InvalidRequest, message)
}

/// Whether a client takes an answer of that type; one that says nothing takes anything.
fn accepts(headers: &HeaderMap, wanted: &str) -> bool {
    let mut given = headers.get_all(ACCEPT).iter().peekable();
    if given.peek().is_none() {
        return true;
    }
    let (family, _) = wanted.split_once('/').unwrap_or((wanted, ""));
    let takes = |range: &str| {
        let mut parts = range.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let refused = parts.any(|part| {
            let weight = part.strip_prefix("q=").or_else(|| part.strip_prefix("Q="));
            weight.is_some_and(|weight| weight.trim().parse::<f32>() == Ok(0.0))
        });
        let fits = name == "*/*"
            || name.eq_ignore_ascii_case(wanted)
            || name.strip_suffix("/*").is_some_and(|range| range.eq_ignore_ascii_case(family));
        fits && !refused
    };
    given.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(',')).any(takes)
}

#[cfg(test)]
mod tests;
