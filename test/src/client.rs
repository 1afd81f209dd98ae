//! A client of `majordomus mcp` that speaks the protocol line by line.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::DEADLINE;
use crate::child;

/// An initialize line, with id 1 and without its newline.
pub const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"anything","version":"0"}}}"#;

/// The line that attaches under an id, as request 2.
#[must_use]
pub fn attach_line(external_id: &str) -> String {
    call_line(2, "majordomus_session_attach", &json!({ "external_id": external_id }))
}

/// The line that detaches, as request 3.
#[must_use]
pub fn detach_line() -> String {
    call_line(3, "majordomus_session_detach", &json!({}))
}

fn call_line(id: u32, name: &str, arguments: &Value) -> String {
    let params = json!({ "name": name, "arguments": arguments });
    format!("{}\n", json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }))
}

/// What the repository reported of the episode in an answer.
///
/// # Panics
/// Where there is none.
#[must_use]
pub fn reported(answer: &Value) -> &str {
    answer["episode"]["repository"].as_str().unwrap_or_else(|| panic!("no episode in {answer}"))
}

/// The session's id, as `session <id> opened at …` and `session <id> kept, …` name it.
///
/// # Panics
/// Where the answer names none.
#[must_use]
pub fn session_id(answer: &Value) -> String {
    let id = reported(answer).strip_prefix("session ").and_then(|rest| rest.split(' ').next());
    id.unwrap_or_else(|| panic!("no session in {answer}")).to_owned()
}

/// The state of an episode in a list of them.
///
/// # Panics
/// Where it is not listed.
#[must_use]
pub fn state_of(listed: &Value, external_id: &str) -> String {
    let mut episodes = listed["episodes"].as_array().into_iter().flatten();
    let found = episodes.find(|episode| episode["external_id"] == external_id);
    found.and_then(|found| found["state"].as_str()).unwrap_or_else(|| panic!("no {external_id} in {listed}")).to_owned()
}

/// How a server left.
#[derive(Clone, Debug)]
pub struct Left {
    /// Its exit code; `None` where a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// The lines that nobody had read before.
    pub rest: Vec<String>,
    /// Its standard error.
    pub err: String,
}

/// How many lines are taken from the pipe before somebody looks at them.
const UNREAD_LINES: usize = 4;

/// A running server and the client's ends of its pipes. Dropped, it kills its own child and nothing else.
#[derive(Debug)]
pub struct Client {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Vec<u8>>,
    err: Receiver<String>,
    last_id: u64,
}

impl Client {
    /// Starts a server with its standard streams as pipes.
    ///
    /// # Panics
    /// Where it cannot be started.
    #[must_use]
    pub fn start(command: &mut Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"));
        // A client that does not look at its lines does not take them either, so that the server feels it.
        let (send_line, lines) = sync_channel(UNREAD_LINES);
        let mut output = BufReader::new(child.stdout.take().expect("standard output is a pipe"));
        thread::spawn(move || {
            let mut line = Vec::new();
            while output.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
                if send_line.send(std::mem::take(&mut line)).is_err() {
                    return;
                }
            }
        });
        let (send_err, err) = channel();
        let mut stderr = child.stderr.take().expect("standard error is a pipe");
        thread::spawn(move || {
            let mut text = Vec::new();
            let _ = stderr.read_to_end(&mut text);
            let _ = send_err.send(String::from_utf8_lossy(&text).into_owned());
        });
        Self { input: child.stdin.take(), child, lines, err, last_id: 1 }
    }

    /// The server's process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Writes bytes as they are.
    ///
    /// # Panics
    /// Where the server no longer reads.
    pub fn write(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().expect("the input is still open");
        input.write_all(bytes).expect("the server reads");
    }

    /// Gives the input away, for a writer of its own.
    ///
    /// # Panics
    /// Where it is gone already.
    #[must_use]
    pub fn take_input(&mut self) -> ChildStdin {
        self.input.take().expect("the input is still open")
    }

    /// Sends one message.
    pub fn send(&mut self, message: &Value) {
        self.write(format!("{message}\n").as_bytes());
    }

    /// Reads one line without its newline; `None` where the server has closed its output.
    ///
    /// # Panics
    /// Where nothing comes, or a line without its newline.
    pub fn line(&mut self) -> Option<String> {
        self.line_within(DEADLINE)
    }

    /// [`Client::line`] with a bound that was promised.
    ///
    /// # Panics
    /// Where nothing comes within `bound`, or a line without its newline.
    pub fn line_within(&mut self, bound: Duration) -> Option<String> {
        use std::sync::mpsc::RecvTimeoutError::{Disconnected, Timeout};
        match self.lines.recv_timeout(bound) {
            Ok(line) => {
                let line = String::from_utf8(line).expect("the server writes UTF-8");
                Some(line.strip_suffix('\n').unwrap_or_else(|| panic!("a line without its end: {line:?}")).to_owned())
            }
            Err(Disconnected) => None,
            Err(Timeout) => panic!("the server says nothing within {bound:?}"),
        }
    }

    /// Reads one message.
    ///
    /// # Panics
    /// Where none comes.
    pub fn receive(&mut self) -> Value {
        let line = self.line().expect("the server answers");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("not JSON ({error}): {line:?}"))
    }

    /// Sends a request and returns its id, without waiting for the answer.
    pub fn begin(&mut self, method: &str, params: &Value) -> u64 {
        self.last_id += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params }));
        self.last_id
    }

    /// Sends a call of a tool and returns its id, without waiting for the answer.
    pub fn begin_tool(&mut self, name: &str, arguments: &Value) -> u64 {
        self.begin("tools/call", &json!({ "name": name, "arguments": arguments }))
    }

    /// Reads the answers to requests that were begun, in whatever order, by their ids.
    ///
    /// # Panics
    /// Where they have not all come `until` then, or something else comes, or one of them twice.
    pub fn answers(&mut self, ids: &[u64], until: Instant) -> BTreeMap<u64, Value> {
        let mut found = BTreeMap::new();
        while found.len() < ids.len() {
            let line = self.line_within(until.saturating_duration_since(Instant::now()));
            let answer: Value = serde_json::from_str(&line.expect("the server answers")).expect("an answer is JSON");
            let id = answer["id"].as_u64().filter(|id| ids.contains(id));
            let id = id.unwrap_or_else(|| panic!("nobody asked for {answer}"));
            assert_eq!(found.insert(id, answer), None, "{id} is answered twice");
        }
        found
    }

    /// Sends a request and reads its answer: the next message that comes.
    ///
    /// # Panics
    /// Where another message comes.
    pub fn ask(&mut self, method: &str, params: &Value) -> Value {
        let id = self.begin(method, params);
        let answer = self.receive();
        assert_eq!((&answer["id"], &answer["jsonrpc"]), (&json!(id), &json!("2.0")), "{answer}");
        answer
    }

    /// Opens the session as clients do, and returns the result.
    ///
    /// # Panics
    /// Where it is refused.
    pub fn initialize(&mut self) -> Value {
        self.write(format!("{INITIALIZE}\n").as_bytes());
        let answer = self.receive();
        assert_eq!(answer["id"], 1, "{answer}");
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        answer["result"].clone()
    }

    /// Calls a tool and returns its result, a refusal included.
    pub fn tool(&mut self, name: &str, arguments: &Value) -> Value {
        self.ask("tools/call", &json!({ "name": name, "arguments": arguments }))["result"].clone()
    }

    /// Calls a tool that must succeed and returns its structured content.
    ///
    /// # Panics
    /// Where it is refused, or the text says another thing than the structure.
    pub fn done(&mut self, name: &str, arguments: &Value) -> Value {
        let result = self.tool(name, arguments);
        assert_ne!(result["isError"], true, "{result}");
        let content = &result["structuredContent"];
        assert!(content.is_object(), "{result}");
        let text = result["content"][0]["text"].as_str().expect("a result has text");
        assert_eq!(&serde_json::from_str::<Value>(text).expect("the text is the same JSON"), content);
        content.clone()
    }

    /// The episode that it holds, as its server lists it; null where there is none.
    pub fn mine(&mut self) -> Value {
        self.done("majordomus_episodes", &json!({}))["mine"].clone()
    }

    /// Who is connected to its server.
    ///
    /// # Panics
    /// Where the server does not say.
    pub fn peers(&mut self) -> Vec<Value> {
        let listed = self.done("majordomus_peers", &json!({ "limit": 200 }));
        listed["peers"].as_array().expect("a list").clone()
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

    /// Closes its side, as a client that goes does.
    pub fn close_input(&mut self) {
        self.input = None;
    }

    /// Closes its side and waits for the server's end.
    #[must_use]
    pub fn lose(mut self) -> Left {
        self.close_input();
        self.wait()
    }

    /// Sends the server a signal.
    ///
    /// # Panics
    /// Where it is gone.
    pub fn signal(&self, signal: Signal) {
        child::signal(&self.child, signal);
    }

    /// Kills the server as nobody can refuse, and waits until it is gone.
    ///
    /// # Panics
    /// Where it had ended by itself.
    pub fn kill9(mut self) {
        child::kill9(&mut self.child);
    }

    /// Waits for the server's end, whatever becomes of its input.
    ///
    /// # Panics
    /// Where it does not end.
    #[must_use]
    pub fn wait(mut self) -> Left {
        let rest = std::iter::from_fn(|| self.line()).collect();
        let err = self.err.recv_timeout(DEADLINE).expect("the server closes its standard error");
        let status = self.child.wait().expect("a child can be waited for");
        Left { code: status.code(), signal: status.signal(), rest, err }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
