//! The one way in: every request is judged, routed and labelled here, whatever its route.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, CACHE_CONTROL, ORIGIN, VARY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, MethodRouter, get, on};
use majordomus_capability::descriptor::Method as Verb;
use tower_service::Service;

use super::accept::Wire;
use super::guard::Caller;
use super::{Server, docs, mcp, rest};

/// The header by which a request and its answer are found again in somebody's log.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Every path that is served, with its methods: what `/` lists and what the tests go through.
pub(super) fn routes(server: &Arc<Server>) -> Vec<(&'static str, MethodRouter<Arc<Server>, Infallible>)> {
    let mut routes = vec![
        ("/", get(docs::index)),
        ("/docs", get(docs::forward)),
        ("/docs/", get(docs::page)),
        ("/docs/{*file}", get(docs::asset)),
        ("/openapi.json", get(docs::openapi)),
        ("/mcp", get(mcp::get).head(mcp::head).post(mcp::post).delete(mcp::delete)),
    ];
    for (at, capability) in server.shared.registry.capabilities().iter().enumerate() {
        let Some(route) = capability.descriptor().route else { continue };
        let filter = match route.method {
            Verb::Get => MethodFilter::GET,
            Verb::Post => MethodFilter::POST,
        };
        let call = move |State(server): State<Arc<Server>>, request: Request| rest::call(server, at, request);
        routes.push((route.path, on(filter, call)));
    }
    routes
}

/// All routes. Nothing calls it but [`serve`], so that no route is served past the guard.
pub(super) fn router(server: &Arc<Server>) -> Router {
    let mut router = Router::new();
    for (path, methods) in routes(server) {
        router = router.route(path, methods);
    }
    router.fallback(rest::no_route).method_not_allowed_fallback(rest::no_method).with_state(server.clone())
}

/// Answers one request: lets in who may call, and gives the answer what every answer has.
///
/// Layers of the router would do the same at twice the cost of routing itself.
pub(super) async fn serve(server: &Arc<Server>, router: &mut Router, request: Request) -> Response {
    let _running = Answering::begin(&server.running);
    let given = request.headers().get(&REQUEST_ID).filter(|id| is_request_id(id.as_bytes())).cloned();
    let stranger = request.extensions().get::<Arc<Wire>>().and_then(|wire| wire.stranger);
    let judged = match stranger {
        Some(stranger) => Err(stranger.refusal()),
        None => server.allowed.judge(request.uri(), request.headers(), server.port),
    };
    let mut response = match judged {
        Ok(Caller::Own) => route(router, request).await,
        Ok(Caller::Page(origin)) => {
            // A page that may call, by the user's word, is told so in its browser's terms.
            let asks_first = request.method() == Method::OPTIONS;
            let mut response =
                if asks_first { StatusCode::NO_CONTENT.into_response() } else { route(router, request).await };
            tell_browser(response.headers_mut(), origin, asks_first);
            response
        }
        Err(refusal) if request.uri().path() == "/mcp" => mcp::forbidden(&refusal),
        Err(refusal) => rest::refused(&refusal),
    };
    label(server, &mut response, given);
    response
}

/// A request that is being answered, until it is dropped.
struct Answering<'a>(&'a AtomicUsize);

impl<'a> Answering<'a> {
    fn begin(running: &'a AtomicUsize) -> Self {
        running.fetch_add(1, Ordering::AcqRel);
        Self(running)
    }
}

impl Drop for Answering<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

async fn route(router: &mut Router, request: Request) -> Response {
    router.call(request).await.unwrap_or_else(|never| match never {})
}

fn tell_browser(headers: &mut HeaderMap, origin: HeaderValue, asks_first: bool) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(VARY, HeaderValue::from_name(ORIGIN));
    let fixed = HeaderValue::from_static;
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, fixed("mcp-session-id, x-request-id, etag"));
    if asks_first {
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, fixed("GET, POST, DELETE"));
        let names = "content-type, mcp-session-id, mcp-protocol-version, last-event-id, majordomus-episode-handle, \
                     majordomus-token, if-none-match, x-request-id";
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, fixed(names));
    }
}

/// Gives an answer the request's id, its own or a new one, and keeps what is true now out of caches.
fn label(server: &Server, response: &mut Response, given: Option<HeaderValue>) {
    static COUNT: AtomicU64 = AtomicU64::new(1);

    let id = given.or_else(|| {
        let instance = server.instance.get(..8).unwrap_or("0");
        HeaderValue::try_from(format!("{instance}-{}", COUNT.fetch_add(1, Ordering::Relaxed))).ok()
    });
    let headers = response.headers_mut();
    if let Some(id) = id {
        headers.insert(REQUEST_ID, id);
    }
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}

fn is_request_id(text: &[u8]) -> bool {
    let fits = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    (1..=64).contains(&text.len()) && text.iter().all(fits)
}

#[cfg(test)]
mod tests;
