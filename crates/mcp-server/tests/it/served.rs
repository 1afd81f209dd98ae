//! A server on a thread of its own, and its client.

use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Write, pipe};
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use majordomus_capability::{Shared, catalogue};
use majordomus_episodes_core::EpisodeBoard;
use majordomus_episodes_core::board::BoardOptions;
use majordomus_episodes_core::clock::{Clock, SystemClock};
use majordomus_episodes_core::peers::PeerBoard;
use majordomus_mcp_server::Ended;
use majordomus_mcp_server::stdio::{Limits, StdioOptions, Streams, serve_streams};
use serde_json::{Value, json};

/// After how long a test says that a server hangs. No test waits for it to pass.
pub(crate) const HANGS: Duration = Duration::from_secs(30);

/// How a server is started.
pub(crate) struct Setup {
    pub(crate) board: EpisodeBoard,
    pub(crate) peers: PeerBoard,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) limits: Limits,
}

impl Default for Setup {
    fn default() -> Self {
        Self::on(Arc::new(SystemClock), BoardOptions::default())
    }
}

impl Setup {
    /// A server whose boards run on `clock`.
    pub(crate) fn on(clock: Arc<dyn Clock>, options: BoardOptions) -> Self {
        let board = EpisodeBoard::with(BoardOptions { clock: clock.clone(), ..options });
        Self { board, peers: PeerBoard::with_clock(clock.clone()), clock, limits: Limits::default() }
    }

    /// Serves on any descriptors.
    pub(crate) fn serve(self, input: impl Into<OwnedFd>, output: impl Into<OwnedFd>) -> Served {
        let ((stop, stopper), (tell, ended)) = (pipe().unwrap(), channel());
        let said = Arc::new(Mutex::new(Vec::new()));
        let shared = Shared::new(Arc::new(catalogue()), self.board.clone(), self.peers.clone());
        let mut options = StdioOptions::new(Arc::new(shared));
        (options.clock, options.limits) = (self.clock, self.limits);
        let says = Arc::clone(&said);
        options.diagnostics = Box::new(move |line| says.lock().unwrap().push(line.to_owned()));
        let streams = Streams { input: input.into(), output: output.into(), stop: stop.into() };
        thread::spawn(move || {
            tell.send(serve_streams(options, streams)).unwrap();
        });
        Served { board: self.board, peers: self.peers, stopper, said, ended }
    }

    /// Serves on two pipes.
    pub(crate) fn piped(self) -> (Served, Client<PipeWriter, PipeReader>) {
        let ((input, to), (from, output)) = (pipe().unwrap(), pipe().unwrap());
        (self.serve(input, output), Client { to, from: BufReader::new(from) })
    }
}

/// A server that runs.
pub(crate) struct Served {
    pub(crate) board: EpisodeBoard,
    pub(crate) peers: PeerBoard,
    /// Makes it stop as a signal does.
    pub(crate) stopper: PipeWriter,
    /// Its diagnostics.
    pub(crate) said: Arc<Mutex<Vec<String>>>,
    ended: Receiver<Ended>,
}

impl Served {
    /// Waits for its end.
    pub(crate) fn ended(&self) -> Ended {
        self.ended.recv_timeout(HANGS).expect("the server ends")
    }

    /// Stops it as a signal does.
    pub(crate) fn stop(&mut self) {
        self.stopper.write_all(b"!").unwrap();
    }

    /// What it said for people.
    pub(crate) fn said(&self) -> Vec<String> {
        self.said.lock().unwrap().clone()
    }
}

/// The other side of the pipes.
pub(crate) struct Client<W, R> {
    pub(crate) to: W,
    pub(crate) from: BufReader<R>,
}

impl<W: Write, R: std::io::Read> Client<W, R> {
    /// Sends bytes as they are.
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.to.write_all(bytes.as_ref()).unwrap();
    }

    /// Reads one answer.
    pub(crate) fn read(&mut self) -> Value {
        let mut line = String::new();
        self.from.read_line(&mut line).unwrap();
        assert!(line.ends_with('\n'), "a whole line: {line:?}");
        serde_json::from_str(&line).unwrap()
    }

    /// Sends a line and reads one answer.
    pub(crate) fn ask(&mut self, line: &str) -> Value {
        self.send(format!("{line}\n"));
        self.read()
    }

    /// Initializes.
    pub(crate) fn initialize(&mut self) {
        assert_eq!(self.ask(INIT)["result"]["protocolVersion"], "2025-06-18");
    }

    /// Attaches under that id.
    pub(crate) fn attach(&mut self, id: &str) -> Value {
        self.ask(&call("majordomus_session_attach", &json!({"external_id": id})))
    }
}

pub(crate) const INIT: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{}}}"#;

pub(crate) fn ping(id: usize) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n")
}

pub(crate) fn call(tool: &str, arguments: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
        .to_string()
}
