//! A server over HTTP on a port of its own, and callers that write their requests by hand.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use majordomus_capability::{Shared, catalogue};
use majordomus_episodes_core::EpisodeBoard;
use majordomus_episodes_core::board::BoardOptions;
use majordomus_episodes_core::clock::Clock;
use majordomus_episodes_core::peers::PeerBoard;
use majordomus_mcp_server::http::{Bound, HttpLimits, Listen, Port};
use majordomus_mcp_server::{HttpOptions, HttpServer, serve_http};
use serde_json::{Value, json};

use crate::served::HANGS;

/// A server, and what it shares.
pub(crate) struct Over {
    pub(crate) server: HttpServer,
    pub(crate) shared: Arc<Shared>,
}

impl Over {
    pub(crate) fn start(clock: Arc<dyn Clock>, options: BoardOptions, limits: HttpLimits) -> Self {
        let board = EpisodeBoard::with(BoardOptions { clock: clock.clone(), ..options });
        let shared = Arc::new(Shared::new(Arc::new(catalogue()), board, PeerBoard::with_clock(clock.clone())));
        let bound = Bound::new(&Listen { addresses: Listen::LOOPBACK.to_vec(), port: Port::Exactly(0) }).unwrap();
        let mut options = HttpOptions::new(shared.clone(), "0".repeat(32));
        (options.clock, options.limits) = (clock, limits);
        Self { server: serve_http(bound, options).unwrap(), shared }
    }

    /// A connection of its own.
    pub(crate) fn connect(&self) -> Connection {
        let stream = TcpStream::connect(self.server.url().strip_prefix("http://").unwrap()).unwrap();
        stream.set_read_timeout(Some(HANGS)).unwrap();
        Connection { stream: BufReader::new(stream) }
    }

    /// A client that has begun a session.
    pub(crate) fn client(&self) -> Client {
        let mut connection = self.connect();
        let about =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        let begun =
            connection.post("/mcp", &[], &json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": about}));
        Client { session: begun.header("mcp-session-id").unwrap().to_owned(), connection }
    }
}

pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

impl Connection {
    pub(crate) fn post(&mut self, path: &str, headers: &[(&str, &str)], body: &Value) -> Answer {
        self.send("POST", path, headers, &body.to_string());
        self.read()
    }

    pub(crate) fn send(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) {
        let more: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let length = body.len();
        let text = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n{more}content-length: {length}\r\n\r\n{body}"
        );
        self.stream.get_mut().write_all(text.as_bytes()).unwrap();
    }

    /// Promises a body of that many bytes and sends one of them.
    pub(crate) fn half(&mut self, method: &str, path: &str, length: usize) {
        let text = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{{"
        );
        self.stream.get_mut().write_all(text.as_bytes()).unwrap();
    }

    /// Reads an answer, of a stream only its head.
    pub(crate) fn read(&mut self) -> Answer {
        let mut answer = self.head();
        let length = answer.header("content-length").map_or(0, |length| length.parse().unwrap());
        answer.body.resize(length, 0);
        self.stream.read_exact(&mut answer.body).unwrap();
        answer
    }

    /// Reads an answer that has no body, whatever its head says.
    pub(crate) fn head(&mut self) -> Answer {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            assert_ne!(self.stream.read_line(&mut line).unwrap(), 0, "the server hung up");
            match line.trim_end() {
                "" => break,
                line => lines.push(line.to_owned()),
            }
        }
        let status = lines[0].split(' ').nth(1).unwrap().parse().unwrap();
        let split = |line: &String| line.split_once(": ").map(|(name, value)| (name.to_owned(), value.to_owned()));
        Answer { status, headers: lines[1..].iter().filter_map(split).collect(), body: Vec::new() }
    }

    /// Waits until the server ends a stream: its last chunk is an empty one.
    pub(crate) fn ended(mut self) {
        let mut line = String::new();
        while line.trim_end() != "0" {
            line.clear();
            assert_ne!(self.stream.read_line(&mut line).unwrap(), 0, "the server hung up");
        }
    }

    /// Waits until the server hangs up.
    pub(crate) fn closed(mut self) {
        self.stream.read_to_end(&mut Vec::new()).unwrap();
    }
}

/// A client of a session, on one connection.
pub(crate) struct Client {
    pub(crate) session: String,
    pub(crate) connection: Connection,
}

impl Client {
    pub(crate) fn send(&mut self, message: &Value) {
        let session = self.session.clone();
        self.connection.send("POST", "/mcp", &[("mcp-session-id", &session)], &message.to_string());
    }

    pub(crate) fn ask(&mut self, message: &Value) -> Answer {
        self.send(message);
        self.connection.read()
    }

    pub(crate) fn ping(&mut self) -> u16 {
        self.ask(&json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})).status
    }

    /// What a tool answers.
    pub(crate) fn call(&mut self, name: &str, arguments: &Value) -> Value {
        self.ask(&calling(7, name, arguments)).json()["result"].take()
    }

    pub(crate) fn attach(&mut self, external_id: &str) -> Value {
        let mut answer = self.call("majordomus_session_attach", &json!({ "external_id": external_id }));
        answer["structuredContent"].take()
    }

    /// Opens a stream on a connection of its own.
    pub(crate) fn listen(&self, over: &Over) -> Connection {
        let mut connection = over.connect();
        connection.send("GET", "/mcp", &[("mcp-session-id", &self.session), ("accept", "text/event-stream")], "");
        let head = connection.read();
        assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")));
        connection
    }
}

pub(crate) fn calling(id: u32, name: &str, arguments: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": name, "arguments": arguments}})
}
