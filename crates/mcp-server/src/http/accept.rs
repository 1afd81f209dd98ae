//! From a listening socket to requests: bounded connections, each on its own task.

use std::convert::Infallible;
use std::io;
use std::net::TcpListener as StdListener;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use super::Server;
use super::pace::Pace;
use super::router;
use super::socket::Socket;

/// What a client beyond the bound is told, before anything of it is read.
const BUSY: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
/// How long to wait where no connection can be accepted, for want of descriptors for example.
const BREATH: Duration = Duration::from_millis(50);
/// How often is looked whether calls still run, at the end.
const LOOK: Duration = Duration::from_millis(2);
/// The most bytes of a request's line and headers together.
const HEAD_BYTES: usize = 64 * 1024;

/// What the requests of one connection have in common.
pub(super) struct Wire {
    /// What the connection may ask for where no session or handle does.
    pub(super) pace: Arc<Pace>,
    pub(super) socket: Socket,
}

/// Serves until the server is to stop, then until what runs is answered, for a bounded time.
pub(super) async fn run(
    server: Arc<Server>,
    listeners: Vec<StdListener>,
    diagnostics: Arc<dyn Fn(&str) + Send + Sync>,
) {
    let router = router::router(&server);
    let room = Arc::new(Semaphore::new(server.limits.connections));
    let graceful = Arc::new(GracefulShutdown::new());
    let mut accepting = Vec::new();
    for listener in listeners {
        let (server, router, room, graceful) = (server.clone(), router.clone(), room.clone(), graceful.clone());
        match TcpListener::from_std(listener) {
            Ok(listener) => accepting.push(tokio::spawn(accept(server, listener, router, room, graceful))),
            Err(error) => diagnostics(&format!("an address cannot be served: {error}")),
        }
    }
    let mut stopping = server.stopping.subscribe();
    // The sender is in `server`, so this only ever ends with the word.
    let _ = stopping.wait_for(|stop| *stop).await;
    for task in accepting {
        task.abort();
        let _ = task.await;
    }
    let Some(graceful) = Arc::into_inner(graceful) else { return };
    // A client that has sent half a request is not waited for, only calls that run, and then their answers for a moment.
    let answered = async {
        while server.running.load(Ordering::Acquire) > 0 {
            tokio::time::sleep(LOOK).await;
        }
        tokio::time::sleep(BREATH).await;
    };
    tokio::select! {
        () = graceful.shutdown() => {}
        () = answered => {}
        () = tokio::time::sleep(server.limits.settle) => {}
    }
}

async fn accept(
    server: Arc<Server>,
    listener: TcpListener,
    router: axum::Router,
    room: Arc<Semaphore>,
    graceful: Arc<GracefulShutdown>,
) {
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            // The client has gone again.
            Err(error) if matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset) => {
                continue;
            }
            Err(_) => {
                tokio::time::sleep(BREATH).await;
                continue;
            }
        };
        let Ok(place) = room.clone().try_acquire_owned() else {
            refuse(stream).await;
            continue;
        };
        prepare(&stream, server.limits.write_time);
        let socket = Socket::new(stream);
        let pace = Pace::new(server.limits.pace, server.now());
        let wire = Arc::new(Wire { pace, socket: socket.clone() });
        let (answers, router) = (server.clone(), router.clone());
        let service = service_fn(move |request: Request<Incoming>| {
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(wire.clone());
            let (server, mut router) = (answers.clone(), router.clone());
            async move { Ok::<_, Infallible>(router::serve(&server, &mut router, request).await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(server.limits.head_time)
            .max_buf_size(HEAD_BYTES)
            .half_close(true)
            .serve_connection(TokioIo::new(socket), service);
        let watched = graceful.watch(connection);
        tokio::spawn(async move {
            // A client that breaks the protocol or goes away is no trouble of ours.
            let _ = watched.await;
            drop(place);
        });
    }
}

async fn refuse(mut stream: TcpStream) {
    // A client that does not take the word goes without it.
    let _ = tokio::time::timeout(BREATH, stream.write_all(BUSY)).await;
}

/// Answers are small and wanted at once; a client that takes none is given up by the system.
fn prepare(stream: &TcpStream, write_time: Duration) {
    let _ = stream.set_nodelay(true);
    #[cfg(target_os = "linux")]
    {
        let milliseconds = u32::try_from(write_time.as_millis()).unwrap_or(u32::MAX);
        let _ = rustix::net::sockopt::set_tcp_user_timeout(stream, milliseconds);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = write_time;
}
