use std::sync::Arc;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use axum::response::Response;
use majordomus_capability::{Shared, catalogue};
use majordomus_episodes_core::EpisodeBoard;
use majordomus_episodes_core::peers::PeerBoard;

use super::super::accept::Wire;
use super::super::bind::{Bound, Listen, Port};
use super::super::guard::Proof;
use super::super::pace::Pace;
use super::super::socket::Socket;
use super::super::{HttpOptions, Server};
use super::{router, routes, serve};

fn server() -> Arc<Server> {
    let shared = Shared::new(Arc::new(catalogue()), EpisodeBoard::new(), PeerBoard::new());
    let bound = Bound::new(&Listen { addresses: Listen::LOOPBACK.to_vec(), port: Port::Exactly(0) }).unwrap();
    Arc::new(Server::new(HttpOptions::new(Arc::new(shared), "0".repeat(32)), &bound, Proof::Nothing))
}

async fn ask(server: &Arc<Server>, method: &str, path: &str, headers: &[(&str, &str)]) -> Response {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let mut request = request.body(Body::empty()).unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let stream = tokio::net::TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let pace = Pace::new(server.limits.pace, server.now());
    request.extensions_mut().insert(Arc::new(Wire { pace, socket: Socket::new(stream), stranger: None }));
    serve(server, &mut router(server), request).await
}

/// Every path, with something in the place of its parameters.
fn paths(server: &Arc<Server>) -> Vec<String> {
    routes(server).into_iter().map(|(path, _)| path.replace("{*file}", "index.css").replace(['{', '}'], "")).collect()
}

#[tokio::test]
async fn every_route_is_behind_the_guard_whatever_the_method() {
    let server = server();
    let paths = paths(&server);
    assert!(paths.len() > 15, "{paths:?}");
    for path in paths.iter().map(String::as_str).chain(["/nowhere", "/api/v1/nowhere"]) {
        for method in ["GET", "POST", "DELETE", "OPTIONS", "HEAD", "PUT"] {
            for headers in [
                &[("host", "evil.example")] as &[(&str, &str)],
                &[],
                &[("host", "localhost"), ("origin", "http://evil.example")],
                &[("host", "localhost"), ("sec-fetch-site", "cross-site")],
            ] {
                let status = ask(&server, method, path, headers).await.status();
                assert_eq!(status, StatusCode::FORBIDDEN, "{method} {path} {headers:?}");
            }
        }
    }
    assert!(server.shared.peers.list().is_empty());
}

#[tokio::test]
async fn every_answer_has_a_request_id_of_its_own_or_the_one_that_came() {
    let server = server();
    for path in paths(&server) {
        let own = ask(&server, "GET", &path, &[("host", "localhost")]).await;
        assert!(own.headers()["x-request-id"].to_str().unwrap().starts_with("00000000-"), "{path}");
        let given = ask(&server, "GET", &path, &[("host", "localhost"), ("x-request-id", "mine-1")]).await;
        assert_eq!(given.headers()["x-request-id"], "mine-1");
        let hostile = ask(&server, "GET", &path, &[("host", "localhost"), ("x-request-id", "a b<c>")]).await;
        assert_ne!(hostile.headers()["x-request-id"], "a b<c>");
    }
    let refused = ask(&server, "GET", "/", &[("host", "evil.example")]).await;
    assert!(refused.headers().contains_key("x-request-id"));
}

#[tokio::test]
async fn a_page_that_the_user_allowed_is_told_so_before_and_after_its_request() {
    let mut server = server();
    Arc::get_mut(&mut server).unwrap().allowed.origins = vec!["https://pages.example".into()];
    let from = [("host", "localhost"), ("origin", "https://pages.example"), ("sec-fetch-site", "cross-site")];
    let before = ask(&server, "OPTIONS", "/mcp", &from).await;
    assert_eq!(before.status(), StatusCode::NO_CONTENT);
    assert!(before.headers()["access-control-allow-headers"].to_str().unwrap().contains("mcp-session-id"));
    let after = ask(&server, "GET", "/api/v1/live", &from).await;
    assert_eq!(
        (after.status(), &after.headers()["access-control-allow-origin"]),
        (StatusCode::OK, &"https://pages.example".parse().unwrap())
    );
    let own = ask(&server, "GET", "/api/v1/live", &[("host", "localhost")]).await;
    assert!(!own.headers().contains_key("access-control-allow-origin"));
}

#[tokio::test]
async fn what_is_served_elsewhere_or_otherwise_says_so() {
    let server = server();
    let here = [("host", "localhost")];
    assert_eq!(ask(&server, "GET", "/nowhere", &here).await.status(), StatusCode::NOT_FOUND);
    let other = ask(&server, "PUT", "/mcp", &here).await;
    assert_eq!(other.status(), StatusCode::METHOD_NOT_ALLOWED);
    let allowed = other.headers()["allow"].to_str().unwrap();
    assert!(["GET", "POST", "DELETE"].iter().all(|method| allowed.contains(method)), "{allowed}");
}

#[tokio::test]
async fn the_page_for_people_loads_from_here_alone() {
    let server = server();
    let here = [("host", "localhost"), ("accept", "text/html")];
    for path in ["/", "/docs/"] {
        let page = ask(&server, "GET", path, &here).await;
        assert_eq!(page.status(), StatusCode::OK);
        assert!(page.headers()["content-security-policy"].to_str().unwrap().contains("default-src 'self'"));
        let bytes = axum::body::to_bytes(page.into_body(), 1 << 20).await.unwrap();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        assert!(!text.contains("//cdn") && !text.contains("src=\"http"), "{text}");
    }
    let loaded = ask(&server, "GET", "/docs/swagger-ui-bundle.js", &here).await;
    assert_eq!(
        (loaded.status(), &loaded.headers()["content-type"]),
        (StatusCode::OK, &"text/javascript".parse().unwrap())
    );
    assert_eq!(ask(&server, "GET", "/docs/../../etc/passwd", &here).await.status(), StatusCode::NOT_FOUND);
}
