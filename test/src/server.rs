//! A real `majordomus serve`, and sessions of the protocol with whatever answers over HTTP.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::child;
use crate::{Connection, DEADLINE, Events, Left, Reply, Request, World, until};

/// The revision that sessions begin with where a test does not say otherwise.
pub const REVISION: &str = "2025-06-18";

/// A running server. Dropped, it kills its own child and nothing else.
#[derive(Debug)]
pub struct Server {
    child: Child,
    url: String,
    err: Receiver<String>,
}

impl Server {
    /// Starts a server and waits until it says where it answers.
    ///
    /// # Panics
    /// Where it does not.
    #[must_use]
    pub fn start(command: &mut Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"));
        let (send, err) = channel();
        let stderr = BufReader::new(child.stderr.take().expect("standard error is a pipe"));
        thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                let _ = send.send(line);
            }
        });
        // From here on it is ended with this value, whatever it says.
        let mut server = Self { child, url: String::new(), err };
        let mut said = Vec::new();
        loop {
            let line = server.err.recv_timeout(DEADLINE);
            let line = line.unwrap_or_else(|_| panic!("{command:?} does not say where it answers: {said:?}"));
            if let Some((url, _)) = line.split_once("(for clients: ").and_then(|(_, rest)| rest.split_once("/mcp)")) {
                url.clone_into(&mut server.url);
                return server;
            }
            said.push(line);
        }
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Where it says that it answers.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The address of that.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        address(&self.url)
    }

    /// Opens a connection to it.
    #[must_use]
    pub fn connect(&self) -> Connection {
        Connection::open(self.address())
    }

    /// Asks over a connection of its own.
    #[must_use]
    pub fn ask(&self, request: &Request) -> Reply {
        self.connect().ask(request)
    }

    /// Begins a session of the protocol.
    #[must_use]
    pub fn session(&self) -> Session {
        Session::begin(self.address(), REVISION)
    }

    /// What it says of itself.
    #[must_use]
    pub fn status(&self) -> Value {
        self.ask(&Request::get("/api/v1/server")).done()
    }

    /// What it lists of episodes.
    #[must_use]
    pub fn episodes(&self) -> Value {
        self.ask(&Request::get("/api/v1/episodes")).done()
    }

    /// Its resident memory in bytes; `None` where the system does not say.
    #[must_use]
    pub fn memory(&self) -> Option<usize> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        Some(line.trim().strip_suffix("kB")?.trim().parse::<usize>().ok()? * 1024)
    }

    /// How many descriptors it has open; `None` where the system does not say.
    #[must_use]
    pub fn descriptors(&self) -> Option<usize> {
        fs::read_dir(format!("/proc/{}/fd", self.pid())).ok().map(Iterator::count)
    }

    /// Sends it a signal.
    ///
    /// # Panics
    /// Where it is gone.
    pub fn signal(&self, signal: Signal) {
        child::signal(&self.child, signal);
    }

    /// Kills it as nobody can refuse, and waits until it is gone.
    ///
    /// # Panics
    /// Where it had ended by itself.
    pub fn kill9(mut self) {
        child::kill9(&mut self.child);
    }

    /// Sends it a signal and waits for its end.
    #[must_use]
    pub fn end(self, signal: Signal) -> Left {
        self.signal(signal);
        self.wait()
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// Where it does not end.
    #[must_use]
    pub fn wait(mut self) -> Left {
        let mut said = Vec::new();
        loop {
            match self.err.recv_timeout(DEADLINE) {
                Ok(line) => said.push(line),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("the server does not end within {DEADLINE:?}"),
            }
        }
        let status = self.child.wait().expect("a child can be waited for");
        Left { code: status.code(), signal: status.signal(), rest: Vec::new(), err: said.join("\n") }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads an address from a URL such as `http://127.0.0.1:8741`.
///
/// # Panics
/// Where it holds none.
#[must_use]
pub fn address(url: &str) -> SocketAddr {
    let rest = url.strip_prefix("http://").unwrap_or_else(|| panic!("{url}"));
    rest.parse().unwrap_or_else(|error| panic!("{url}: {error}"))
}

/// Where the server of the world's checkout says, in its state folder, that it answers.
///
/// # Panics
/// Where none does.
#[must_use]
pub fn published(world: &World) -> SocketAddr {
    let file = world.state().join("server.json");
    until("a server says where it answers", || {
        let told: Value = serde_json::from_slice(&fs::read(&file).ok()?).ok()?;
        told["url"].as_str().map(address)
    })
}

/// A session of the protocol over HTTP, on one connection.
#[derive(Debug)]
pub struct Session {
    connection: Connection,
    /// The session's id, as the server gave it.
    pub id: String,
    revision: String,
    last_id: u64,
}

/// What a client may ask for as its revision, and which one it is answered with.
#[must_use]
pub fn negotiated() -> [(Value, &'static str); 10] {
    [
        (json!("2024-11-05"), "2024-11-05"),
        (json!("2025-03-26"), "2025-03-26"),
        (json!("2025-06-18"), "2025-06-18"),
        (json!("2025-11-25"), "2025-11-25"),
        (json!("2026-07-28"), "2025-11-25"),
        (json!("1999-01-01"), "2025-11-25"),
        (json!(""), "2025-11-25"),
        (json!(20_250_618), "2025-11-25"),
        (json!({}), "2025-11-25"),
        (Value::Null, "2025-11-25"),
    ]
}

/// The message that begins a session of a revision.
#[must_use]
pub fn initialize(revision: &str) -> Value {
    let params = json!({
        "protocolVersion": revision,
        "capabilities": {},
        "clientInfo": { "name": "anything", "version": "0" },
    });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params })
}

impl Session {
    /// Begins a session as clients do.
    ///
    /// # Panics
    /// Where it is refused.
    #[must_use]
    pub fn begin(address: SocketAddr, revision: &str) -> Self {
        let mut connection = Connection::open(address);
        let reply = connection.ask(&Request::post("/mcp", &initialize(revision)));
        let result = &reply.done()["result"];
        assert!(result["capabilities"].is_object(), "{reply:?}");
        let id = reply.header("mcp-session-id").expect("a session has an id").to_owned();
        let mut session = Self { connection, id, revision: revision.to_owned(), last_id: 1 };
        let noted = session.post(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        assert_eq!((noted.status, noted.body.len()), (202, 0), "{noted:?}");
        session
    }

    /// Goes on with this session over another connection, as clients do whose server has hung up.
    pub fn reconnect(&mut self) {
        self.connection = Connection::open(self.connection.address());
    }

    /// A request of this session, without a body.
    #[must_use]
    pub fn request(&self, method: &str) -> Request {
        Request::new(method, "/mcp").header("Mcp-Session-Id", &self.id).header("MCP-Protocol-Version", &self.revision)
    }

    /// A POST of this session.
    #[must_use]
    pub fn message(&self, body: impl AsRef<[u8]>) -> Request {
        let request = self.request("POST").header("Accept", "application/json, text/event-stream");
        request.header("Content-Type", "application/json").body(body)
    }

    /// Posts a message and returns the answer.
    pub fn post(&mut self, message: &Value) -> Reply {
        self.post_text(message.to_string())
    }

    /// Posts a text and returns the answer.
    pub fn post_text(&mut self, body: impl AsRef<[u8]>) -> Reply {
        let request = self.message(body);
        self.connection.ask(&request)
    }

    /// Sends a request and returns the message that answers it.
    ///
    /// # Panics
    /// Where it is not answered.
    pub fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.last_id += 1;
        let id = self.last_id;
        let reply = self.post(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        let answer = reply.done();
        assert_eq!((&answer["id"], &answer["jsonrpc"]), (&json!(id), &json!("2.0")), "{answer}");
        answer
    }

    /// Calls a tool and returns its result, a refusal included.
    pub fn tool(&mut self, name: &str, arguments: &Value) -> Value {
        self.ask("tools/call", &json!({ "name": name, "arguments": arguments }))["result"].clone()
    }

    /// Calls a tool that must succeed and returns its structured content.
    ///
    /// # Panics
    /// Where it is refused.
    pub fn done(&mut self, name: &str, arguments: &Value) -> Value {
        let result = self.tool(name, arguments);
        assert_ne!(result["isError"], true, "{result}");
        assert!(result["structuredContent"].is_object(), "{result}");
        result["structuredContent"].clone()
    }

    /// Attaches under an id.
    pub fn attach(&mut self, external_id: &str) -> Value {
        self.done("majordomus_session_attach", &json!({ "external_id": external_id }))
    }

    /// Detaches from what it holds.
    pub fn detach(&mut self) -> Value {
        self.done("majordomus_session_detach", &json!({}))
    }

    /// Pings and waits for the answer.
    ///
    /// # Panics
    /// Where it is not answered by an empty result.
    pub fn ping(&mut self) {
        let answer = self.ask("ping", &json!({}));
        assert_eq!(answer["result"], json!({}), "{answer}");
    }

    /// Opens a stream of this session, on a connection of its own.
    #[must_use]
    pub fn stream(&self) -> Events {
        let request = self.request("GET").header("Accept", "text/event-stream");
        Connection::open(self.connection.address()).stream(&request)
    }

    /// Ends the session by its client's word.
    pub fn delete(&mut self) -> Reply {
        let request = self.request("DELETE");
        self.connection.ask(&request)
    }
}
