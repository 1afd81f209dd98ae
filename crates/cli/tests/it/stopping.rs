//! What `majordomus serve stop` makes of a server that does not do what servers do.

use std::io::Write;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use majordomus_mcp_server::sharing::folder;
use majordomus_mcp_server::sharing::preamble::{self, Ended, Hello, Refused, Reply, Wants};
use majordomus_records::append::holder_id;
use majordomus_records::serving::{FORMAT, Published, Serving};
use majordomus_records::{Checkout, Policy, Store};

use crate::place::{Said, majordomus, repository};

const PATIENCE: Duration = Duration::from_secs(5);

/// Has the right to be the server of a repository's checkout and a socket, and says what a test wants it to say.
struct Impostor {
    folder: tempfile::TempDir,
    store: Store,
    instance: String,
    socket: PathBuf,
    /// Taken by whoever listens.
    listener: Option<UnixListener>,
    serving: Serving,
}

impl Impostor {
    fn new() -> Self {
        let folder = repository();
        let store = Store::open(Checkout::find(folder.path()).unwrap(), Policy::default());
        let mut serving = store.serve().unwrap().unwrap();
        let instance = holder_id().unwrap();
        let (listener, socket) = folder::listen(&instance).unwrap();
        let (url, version) = ("http://127.0.0.1:9".into(), "0.1.0".into());
        let published = Published {
            format: FORMAT,
            url,
            instance: instance.clone(),
            version,
            pid: 7,
            socket: Some(socket.clone()),
        };
        store.advertise(&mut serving, &published).unwrap();
        Self { folder, store, instance, socket, listener: Some(listener), serving }
    }

    /// Answers each connection with `answer` as long as the command runs, and returns what that said.
    fn answering(&mut self, mut answer: impl FnMut(&UnixStream) + Send) -> Said {
        let listener = self.listener.take().unwrap();
        let id = self.store.checkout().id();
        let over = std::sync::atomic::AtomicBool::new(false);
        listener.set_nonblocking(true).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(std::sync::atomic::Ordering::Acquire) {
                    let Ok((stream, _)) = listener.accept() else {
                        thread::park_timeout(Duration::from_millis(2));
                        continue;
                    };
                    stream.set_nonblocking(false).unwrap();
                    // Whoever clears up sockets connects and says nothing.
                    let Ok(hello) = preamble::receive::<Hello>(&stream, PATIENCE) else { continue };
                    assert_eq!((hello.wants, &hello.checkout), (Wants::Stop, &id));
                    answer(&stream);
                }
            });
            let said = majordomus(self.folder.path(), &["serve", "stop"], &[]);
            over.store(true, std::sync::atomic::Ordering::Release);
            said
        })
    }

    fn served(&self) -> Reply {
        Reply::Served { instance: self.instance.clone(), pid: 7, version: "9".into() }
    }
}

impl Drop for Impostor {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.socket);
    }
}

fn failed(said: &Said, error: &str) {
    assert_eq!((said.code, said.out.as_str()), (Some(1), ""), "{said:?}");
    assert!(said.err.starts_with(&format!("error: {error}")), "{said:?}");
}

#[test]
fn a_server_that_ends_says_how_much_it_closed_or_is_believed_to_have_ended() {
    for (ended, line) in [
        (Some(Ended { closed: 1 }), "stopped; 1 episode was closed (interrupted, reason shutdown)\n"),
        (None, "stopped; how many episodes it closed it has not said\n"),
    ] {
        let mut impostor = Impostor::new();
        let served = impostor.served();
        let said = impostor.answering(|stream| {
            preamble::send(stream, &served, PATIENCE).unwrap();
            if let Some(ended) = &ended {
                preamble::send(stream, ended, PATIENCE).unwrap();
            }
        });
        assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (Some(0), line, ""));
    }
}

#[test]
fn a_server_that_has_not_ended_within_ten_seconds_has_not_ended() {
    let mut impostor = Impostor::new();
    let served = impostor.served();
    let mut kept = Vec::new();
    let said = impostor.answering(|stream| {
        preamble::send(stream, &served, PATIENCE).unwrap();
        preamble::send(stream, &Ended { closed: 1 }, PATIENCE).unwrap();
        kept.push(stream.try_clone().unwrap());
    });
    failed(&said, "the server, process 7, was asked to end and has not within 10 s\nhint: ");
}

#[test]
fn a_server_of_another_version_says_what_to_do_and_nonsense_is_an_error() {
    let mut impostor = Impostor::new();
    let message = "not understood\u{1b}[31m".to_owned();
    let said = impostor.answering(|stream| {
        let refused = Reply::Refused { why: Refused::Format, message: message.clone() };
        preamble::send(stream, &refused, PATIENCE).unwrap();
    });
    failed(&said, "the server of this checkout refused: not understood\\u{1b}[31m\n");
    let mut impostor = Impostor::new();
    let said = impostor.answering(|mut stream| stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap());
    failed(&said, "the server of this checkout does not say what was expected");
}

#[test]
fn whoever_is_not_the_one_that_was_published_is_not_stopped_nor_is_whoever_refuses_or_hangs_up() {
    for (at, reply) in [
        Some(Reply::Served { instance: "another".into(), pid: 7, version: "9".into() }),
        Some(Reply::Refused { why: Refused::Checkout, message: "another checkout's".into() }),
        Some(Reply::Refused { why: Refused::Stopping, message: "about to end".into() }),
        None,
    ]
    .iter()
    .enumerate()
    {
        let mut impostor = Impostor::new();
        let mut asked = 0;
        let said = impostor.answering(|stream| {
            asked += 1;
            if let Some(reply) = reply {
                preamble::send(stream, reply, PATIENCE).unwrap();
            }
        });
        failed(&said, "the server of this checkout does not answer\nhint: ");
        assert!(asked > 1, "{at}: it may be the next one");
    }
}

#[test]
fn a_socket_that_is_in_no_folder_of_sockets_is_not_connected_to() {
    let mut impostor = Impostor::new();
    let elsewhere = impostor.folder.path().join("sock");
    let listener = UnixListener::bind(&elsewhere).unwrap();
    listener.set_nonblocking(true).unwrap();
    let published = Published {
        format: FORMAT,
        url: "http://127.0.0.1:9".into(),
        instance: impostor.instance.clone(),
        version: "0.1.0".into(),
        pid: 7,
        socket: Some(elsewhere),
    };
    impostor.store.advertise(&mut impostor.serving, &published).unwrap();
    let said = majordomus(impostor.folder.path(), &["serve", "stop"], &[]);
    failed(&said, "cannot reach the server of this checkout: ");
    assert!(listener.accept().is_err(), "nobody connected");
}
