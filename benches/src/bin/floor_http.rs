//! The floor of an HTTP server: axum behind hyper on tokio, which takes a request and answers with a body that is always
//! the same, as long as its one argument says.
//!
//! The runtime is the product's (multi-thread, one worker where it may use one core), and so is the way from the socket to
//! the router; there is one route per way to ask, and no layer.

use std::convert::Infallible;
use std::future::ready;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::Request;
use axum::http::header::CONTENT_TYPE;
use axum::routing::{get, post};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tower_service::Service;

fn main() -> std::io::Result<()> {
    let length = std::env::args().nth(1).and_then(|length| length.parse().ok());
    let length = length.ok_or_else(|| std::io::Error::other("usage: majordomus-floor-http BYTES"))?;
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(workers).enable_all().build()?;
    runtime.block_on(async move {
        // As the product does: connections are accepted on a worker, not on the thread that waits for its end.
        tokio::spawn(serve(length)).await.map_err(std::io::Error::other)?
    })
}

async fn serve(length: usize) -> std::io::Result<()> {
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?;
    writeln!(std::io::stderr(), "http://{}", listener.local_addr()?)?;
    let router = router(Bytes::from(vec![b'x'; length]));
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let router = router.clone();
        let service = service_fn(move |request: Request<Incoming>| {
            let mut router = router.clone();
            async move { Ok::<_, Infallible>(router.call(request).await.unwrap_or_else(|never| match never {})) }
        });
        tokio::spawn(async move {
            // A client that has gone is no trouble.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

fn router(answer: Bytes) -> Router {
    let asked = answer.clone();
    let answered = |answer: &Bytes| ([(CONTENT_TYPE, "application/json")], Body::from(answer.clone()));
    Router::new()
        // Whoever answers a POST has read it.
        .route("/mcp", post(move |_request: Bytes| ready(answered(&answer))))
        .route("/api/v1/episodes", get(move || ready(answered(&asked))))
}
