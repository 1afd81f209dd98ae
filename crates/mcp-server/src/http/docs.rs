//! For people: what is served here, and a page to try it with.

use std::sync::{Arc, OnceLock};

use axum::extract::{Path, State};
use axum::http::header::{ACCEPT, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Redirect, Response};
use serde_json::json;
use utoipa_swagger_ui::Config;

use super::{Server, rest};

/// What pages of ours may load: only from here. The interface for trying styles itself in place.
const POLICY: &str =
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'none'";

/// `/`: the surfaces, as a page or as JSON.
pub(super) async fn index(State(server): State<Arc<Server>>, headers: HeaderMap) -> Response {
    let accept = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    let capabilities = server.shared.registry.capabilities().iter().map(|capability| capability.descriptor());
    let routes = capabilities.filter_map(|declared| Some((declared.route?, declared.title)));
    if !accept.contains("text/html") {
        let api: Vec<_> = routes
            .map(|(route, title)| json!({ "method": route.method.as_str(), "path": route.path, "title": title }))
            .collect();
        let listed = json!({
            "name": "majordomus",
            "version": env!("CARGO_PKG_VERSION"),
            "mcp": "/mcp",
            "openapi": "/openapi.json",
            "docs": "/docs/",
            "api": api,
        });
        return ([(CONTENT_TYPE, "application/json")], listed.to_string()).into_response();
    }
    let rows: String = routes
        .map(|(route, title)| format!("<li><code>{} {}</code> {title}</li>\n", route.method.as_str(), route.path))
        .collect();
    let page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>majordomus</title>\n\
         <h1>majordomus {}</h1>\n<p>Session records in the repository. What is served here:</p>\n<ul>\n\
         <li><code>/mcp</code> the Model Context Protocol, for clients</li>\n\
         <li><a href=\"/docs/\">/docs</a> the API, to read and to try</li>\n\
         <li><a href=\"/openapi.json\">/openapi.json</a> its description, for programs</li>\n{rows}</ul>\n</html>\n",
        env!("CARGO_PKG_VERSION"),
    );
    html(page.into_bytes())
}

fn html(page: Vec<u8>) -> Response {
    ([(CONTENT_TYPE, "text/html; charset=utf-8"), (CONTENT_SECURITY_POLICY, POLICY)], page).into_response()
}

/// `/openapi.json`: the description that is also in `docs/reference/`, byte for byte.
pub(super) async fn openapi(State(server): State<Arc<Server>>) -> Response {
    ([(CONTENT_TYPE, "application/json")], server.openapi().to_owned()).into_response()
}

/// `/docs`: the page's own links are relative to `/docs/`.
pub(super) async fn forward() -> Redirect {
    Redirect::permanent("/docs/")
}

/// `/docs/`.
pub(super) async fn page(uri: Uri) -> Response {
    file("index.html", uri).await
}

/// What the page loads.
pub(super) async fn asset(Path(name): Path<String>, uri: Uri) -> Response {
    file(&name, uri).await
}

async fn file(name: &str, uri: Uri) -> Response {
    static CONFIG: OnceLock<Arc<Config<'static>>> = OnceLock::new();

    let config = CONFIG.get_or_init(|| Arc::new(Config::from("/openapi.json").validator_url("none")));
    let found = utoipa_swagger_ui::serve(name, config.clone()).map_err(drop);
    match found {
        Ok(Some(file)) if file.content_type.starts_with("text/html") => html(file.bytes.into_owned()),
        Ok(Some(file)) => ([(CONTENT_TYPE, file.content_type)], file.bytes.into_owned()).into_response(),
        Ok(None) => rest::no_route(uri).await,
        Err(()) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
