//! Server-sent events: messages, and comments that show that the stream is there.

use std::convert::Infallible;

use axum::body::{Body, Bytes};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use futures_util::stream;

/// The type of such a stream.
pub(super) const EVENTS: &str = "text/event-stream";
/// What a stream says that has nothing to say.
pub(super) const BEAT: &str = ": open\n\n";
/// Keeps those between from collecting what they pass on.
const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// What is said on a stream.
pub(super) trait Source: Send + 'static {
    /// The next text; `None` ends the stream.
    fn next(&mut self) -> impl Future<Output = Option<String>> + Send;
}

/// Answers with a stream.
pub(super) fn answer(source: impl Source) -> Response {
    let next = async |mut source: Box<_>| {
        let text = Source::next(&mut *source).await?;
        Some((Ok::<_, Infallible>(Bytes::from(text)), source))
    };
    let body = Body::from_stream(stream::unfold(Box::new(source), next));
    let mut response = (StatusCode::OK, [(CONTENT_TYPE, EVENTS)], body).into_response();
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert(BUFFERING, HeaderValue::from_static("no"));
    response
}

/// One message as an event. It has no id: nothing can be asked for again.
pub(super) fn message(text: &str) -> String {
    format!("event: message\ndata: {text}\n\n")
}
