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
use super::whose::{Stranger, Teller};

/// What a client beyond the bound is told, before anything of it is read.
const BUSY: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
/// What a stranger beyond the bound is told.
const FORBIDDEN: &[u8] = b"HTTP/1.1 403 Forbidden\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
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
    /// Who it is, where that is not this server's own user.
    pub(super) stranger: Option<Stranger>,
}

/// Serves until the server is to stop, then until what runs is answered, for a bounded time.
pub(super) async fn run(
    server: Arc<Server>,
    listeners: Vec<StdListener>,
    tellers: Option<Vec<Teller>>,
    diagnostics: Arc<dyn Fn(&str) + Send + Sync>,
) {
    let hall = Hall {
        router: router::router(&server),
        room: Arc::new(Semaphore::new(server.limits.connections)),
        strangers: Arc::new(Semaphore::new(server.limits.strangers)),
        graceful: Arc::new(GracefulShutdown::new()),
        server: server.clone(),
    };
    let mut accepting = Vec::new();
    let mut tellers = tellers.into_iter().flatten();
    for listener in listeners {
        let teller = tellers.next();
        match TcpListener::from_std(listener) {
            Ok(listener) => accepting.push(tokio::spawn(accept(listener, teller, hall.clone()))),
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
    let Some(graceful) = Arc::into_inner(hall.graceful) else { return };
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

async fn accept(listener: TcpListener, mut teller: Option<Teller>, hall: Hall) {
    loop {
        match listener.accept().await {
            Ok((stream, client)) => {
                // A question that the system answers at once: nobody who comes after waits for it.
                let judged = teller.as_mut().map_or(Ok(()), |teller| teller.judge(&stream, client));
                hall.take(stream, judged.err()).await;
            }
            // The client has gone again.
            Err(error) if matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset) => {
            }
            Err(_) => tokio::time::sleep(BREATH).await,
        }
    }
}

/// What all connections have in common. Clones are the same one.
#[derive(Clone)]
struct Hall {
    server: Arc<Server>,
    router: axum::Router,
    /// Room for those who are served.
    room: Arc<Semaphore>,
    /// Room for those who are only told that they are not.
    strangers: Arc<Semaphore>,
    graceful: Arc<GracefulShutdown>,
}

impl Hall {
    /// Answers a connection's requests on a task of its own, a stranger's only by saying so.
    async fn take(&self, stream: TcpStream, stranger: Option<Stranger>) {
        let (room, full) = if stranger.is_some() { (&self.strangers, FORBIDDEN) } else { (&self.room, BUSY) };
        let Ok(place) = room.clone().try_acquire_owned() else {
            return refuse(stream, full).await;
        };
        let limits = self.server.limits;
        prepare(&stream, limits.write_time);
        let socket = Socket::new(stream);
        let pace = Pace::new(limits.pace, self.server.now());
        let wire = Arc::new(Wire { pace, socket: socket.clone(), stranger });
        let (answers, router) = (self.server.clone(), self.router.clone());
        let service = service_fn(move |request: Request<Incoming>| {
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(wire.clone());
            let (server, mut router) = (answers.clone(), router.clone());
            async move { Ok::<_, Infallible>(router::serve(&server, &mut router, request).await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.head_time)
            .max_buf_size(HEAD_BYTES)
            .half_close(true)
            .keep_alive(stranger.is_none())
            .serve_connection(TokioIo::new(socket), service);
        let watched = self.graceful.watch(connection);
        tokio::spawn(async move {
            // A client that breaks the protocol or goes away is no trouble of ours.
            match stranger {
                None => drop(watched.await),
                Some(_) => drop(tokio::time::timeout(limits.stranger_time, watched).await),
            }
            drop(place);
        });
    }
}

async fn refuse(mut stream: TcpStream, word: &[u8]) {
    // A client that does not take the word goes without it.
    let _ = tokio::time::timeout(BREATH, stream.write_all(word)).await;
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
