//! `/api/v1`: the transport's part of a call. What a request means is the registry's to say.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use axum::RequestExt;
use axum::body::HttpBody;
use axum::body::{Body, Bytes};
use axum::extract::{RawPathParams, Request};
use axum::http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, ETAG, IF_NONE_MATCH, RETRY_AFTER, USER_AGENT};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt;
use majordomus_capability::project::rest::{self, HANDLE_ARGUMENT, HANDLE_HEADER, Parts, Reply};
use majordomus_capability::{Code, Context, Effect, Reach, Refusal};

use super::Server;
use super::accept::Wire;

/// How many times the most that a body may have is read before the connection is given up.
const FORGOTTEN: usize = 8;

/// How long that may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why a body was not taken: the status, and the refusal.
type Unread = (StatusCode, Refusal);

/// The most characters of what a caller says it is that are shown.
const CLIENT_CHARS: usize = 64;

/// Calls the capability at that place of the registry.
pub(super) async fn call(server: Arc<Server>, at: usize, mut request: Request) -> Response {
    let wire = request.extensions().get::<Arc<Wire>>().cloned().expect("every request comes over a wire");
    let _running = match wire.pace.begin(server.limits.pace, server.now(), 1) {
        Ok(running) => running,
        Err(refusal) => return refused(&refusal),
    };
    if server.shared.registry.capabilities()[at].descriptor().effect != Effect::Read
        && let Err(refusal) = server.proof.judge(request.headers())
    {
        return refused(&refusal);
    }
    let Ok(path) = request.extract_parts::<RawPathParams>().await else {
        return refused(&Refusal::new(Code::InvalidInput, "the path is not UTF-8"));
    };
    let (head, body) = request.into_parts();
    let body = match body_of(&server, &head.headers, head.method == Method::POST, body).await {
        Ok(body) => body,
        Err((status, refusal)) => return respond(rest::refused_as(status.as_u16(), &refusal), None),
    };
    let capability = &server.shared.registry.capabilities()[at];
    let handle = head.headers.get(HANDLE_HEADER).and_then(|handle| handle.to_str().ok()).map(str::to_owned);
    let unseen = handle.as_deref().is_some_and(|handle| !server.shared.handles.is_seen(handle));
    let waits = capability.descriptor().reach == Reach::Repository
        || unseen
        || contains(&body, HANDLE_ARGUMENT.as_bytes())
        || body.contains(&b'\\');
    let asked = head.headers.get(IF_NONE_MATCH).cloned();
    let work = {
        let (server, uri) = (server.clone(), head.uri);
        let client = client(&head.headers);
        move || {
            let capability = &server.shared.registry.capabilities()[at];
            let path: Vec<(&str, &str)> = path.iter().collect();
            let mut context = Context::without_peer(server.shared.clone(), handle.as_deref());
            context.client = client;
            rest::call(capability, &context, Parts { path: &path, query: uri.query(), body: &body })
        }
    };
    let reply = if waits { wait(&server, work).await } else { work() };
    respond(reply, asked.as_ref())
}

/// Runs what may wait for a disk where nobody else waits for it.
async fn wait(server: &Server, work: impl FnOnce() -> Reply + Send + 'static) -> Reply {
    let Ok(room) = server.waiting.clone().try_acquire_owned() else {
        return rest::refused(&busy());
    };
    let failed = |_| rest::refused(&Refusal::new(Code::Internal, "the call failed; this is a bug"));
    // It goes on where the caller has hung up, and so does what it takes of the room.
    let work = move || {
        let _room = room;
        work()
    };
    tokio::task::spawn_blocking(work).await.unwrap_or_else(failed)
}

/// Says that too many calls wait for the repository already.
pub(super) fn busy() -> Refusal {
    Refusal::new(Code::Unavailable, "too many calls wait for the repository already").hint("call again in a second")
}

/// Reads a body within its bounds, if it is of the one type that is taken.
///
/// # Errors
/// The status and the refusal.
pub(super) async fn body_of(
    server: &Server,
    headers: &HeaderMap,
    wants_json: bool,
    body: Body,
) -> Result<Bytes, Unread> {
    let limit = server.limits.body_bytes;
    let told = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    if told.is_some_and(|told| told > limit) {
        return Err(too_large(body, limit));
    }
    // A form or plain text is what a page of another site can send without asking.
    if wants_json && !is_json(headers) && (headers.contains_key(CONTENT_TYPE) || !body.is_end_stream()) {
        let refusal = Refusal::new(Code::InvalidInput, "the Content-Type is not application/json")
            .hint("send the arguments as a JSON object, with Content-Type: application/json");
        return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, refusal));
    }
    let mut reading = pin!(whole(body, limit));
    // It is nearly always there already, and then needs neither a timer nor an ear for the end of the server.
    if let Poll::Ready(read) = poll_fn(|context| Poll::Ready(reading.as_mut().poll(context))).await {
        return read;
    }
    let mut stopping = server.stopping.subscribe();
    tokio::select! {
        biased;
        read = tokio::time::timeout(server.limits.body_time, reading) => read.unwrap_or_else(|_| {
            let refusal = Refusal::new(Code::InvalidInput, "the body did not arrive in time");
            Err((StatusCode::REQUEST_TIMEOUT, refusal))
        }),
        _ = stopping.wait_for(|stop| *stop) => {
            Err((StatusCode::SERVICE_UNAVAILABLE, Refusal::new(Code::Unavailable, "this server is about to end")))
        }
    }
}

/// Reads a body of at most `limit` bytes.
async fn whole(mut body: Body, limit: usize) -> Result<Bytes, Unread> {
    // Nearly every body comes in one piece, which is then the whole of it.
    let mut first: Option<Bytes> = None;
    let mut all = Vec::new();
    let mut length = 0;
    while let Some(frame) = body.frame().await {
        let unreadable = |_| (StatusCode::BAD_REQUEST, Refusal::new(Code::InvalidInput, "the body could not be read"));
        let Ok(data) = frame.map_err(unreadable)?.into_data() else { continue };
        length += data.len();
        if length > limit {
            return Err(too_large(body, limit));
        }
        if first.is_none() && all.is_empty() {
            first = Some(data);
        } else {
            all.extend_from_slice(&first.take().unwrap_or_default());
            all.extend_from_slice(&data);
        }
    }
    Ok(first.unwrap_or_else(|| all.into()))
}

/// Refuses a body at once. Much of it is still read beside the answer and forgotten: a client that writes on to a closed
/// connection never sees why.
fn too_large(mut body: Body, limit: usize) -> Unread {
    tokio::spawn(async move {
        let forget = async {
            let mut left = limit.saturating_mul(FORGOTTEN);
            while let Some(Ok(frame)) = body.frame().await {
                left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
                if left == 0 {
                    break;
                }
            }
        };
        // Not for ever, whatever it still has to say.
        let _ = tokio::time::timeout(PATIENCE, forget).await;
    });
    (StatusCode::PAYLOAD_TOO_LARGE, Refusal::new(Code::InvalidInput, format!("the body is longer than {limit} bytes")))
}

fn is_json(headers: &HeaderMap) -> bool {
    let given = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = given.split(';').next().unwrap_or_default();
    essence.trim().eq_ignore_ascii_case("application/json")
}

/// What the caller says it is, as a person reads it.
fn client(headers: &HeaderMap) -> Option<Box<str>> {
    let said = headers.get(USER_AGENT)?.to_str().ok()?.trim();
    let shown: String = said.chars().filter(|char| !char.is_control()).take(CLIENT_CHARS).collect();
    (!shown.is_empty()).then(|| shown.into())
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// Sends a reply; the caller may have it already, by the tag that it shows.
fn respond(reply: Reply, asked: Option<&HeaderValue>) -> Response {
    let status = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let known =
        |tag: &str| asked.and_then(|asked| asked.to_str().ok()).is_some_and(|asked| rest::matches_tag(asked, tag));
    let mut response = match &reply.tag {
        Some(tag) if known(tag) => StatusCode::NOT_MODIFIED.into_response(),
        _ => (status, [(CONTENT_TYPE, "application/json")], reply.body).into_response(),
    };
    let headers = response.headers_mut();
    if let Some(tag) = reply.tag.and_then(|tag| HeaderValue::try_from(tag).ok()) {
        headers.insert(ETAG, tag);
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    }
    if status == StatusCode::SERVICE_UNAVAILABLE {
        headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

/// Sends a refusal.
pub(super) fn refused(refusal: &Refusal) -> Response {
    respond(rest::refused(refusal), None)
}

/// Nothing is served under that path.
pub(super) async fn no_route(uri: Uri) -> Response {
    let refusal = Refusal::new(Code::NotFound, format!("nothing is served at {}", uri.path()));
    refused(&refusal.hint("GET / lists what there is"))
}

/// Something is, by other methods, which the router adds as `Allow`.
pub(super) async fn no_method(method: Method, uri: Uri) -> Response {
    let refusal = Refusal::new(Code::InvalidInput, format!("{} does not take {method}", uri.path()));
    let reply = rest::refused_as(StatusCode::METHOD_NOT_ALLOWED.as_u16(), &refusal.hint("see the header Allow"));
    respond(reply, None)
}
