//! A plain client of HTTP/1.1 that sends whatever it is told, also what no good client would.

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::DEADLINE;

/// One request, as it goes onto the wire.
#[derive(Clone, Debug)]
pub struct Request {
    method: String,
    target: String,
    headers: Vec<(String, String)>,
    without: Vec<&'static str>,
    body: Vec<u8>,
}

impl Request {
    /// A request without a body.
    #[must_use]
    pub fn new(method: &str, target: &str) -> Self {
        let (method, target) = (method.to_owned(), target.to_owned());
        Self { method, target, headers: Vec::new(), without: Vec::new(), body: Vec::new() }
    }

    /// A GET.
    #[must_use]
    pub fn get(target: &str) -> Self {
        Self::new("GET", target)
    }

    /// A POST of JSON.
    #[must_use]
    pub fn post(target: &str, body: &Value) -> Self {
        Self::text(target, body.to_string())
    }

    /// A POST of bytes that are said to be JSON.
    #[must_use]
    pub fn text(target: &str, body: impl AsRef<[u8]>) -> Self {
        Self::new("POST", target).header("Content-Type", "application/json").body(body)
    }

    /// Adds a header; one of the same name stays.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Takes out a header, also one that would be added when it is sent.
    #[must_use]
    pub fn without(mut self, name: &'static str) -> Self {
        self.headers.retain(|(given, _)| !given.eq_ignore_ascii_case(name));
        self.without.push(name);
        self
    }

    /// Sets the body.
    #[must_use]
    pub fn body(mut self, body: impl AsRef<[u8]>) -> Self {
        self.body = body.as_ref().to_vec();
        self
    }

    /// The path that is asked for.
    #[must_use]
    pub fn target(&self) -> &str {
        &self.target
    }

    /// The request's bytes for a server at `address`: `Host` and `Content-Length` are added where nobody said otherwise.
    #[must_use]
    pub fn bytes(&self, address: SocketAddr) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.target);
        let open = |name: &str| {
            !self.without.iter().any(|left_out| left_out.eq_ignore_ascii_case(name))
                && !self.headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name))
        };
        if open("Host") {
            head += &format!("Host: {address}\r\n");
        }
        let has_body = !self.body.is_empty() || self.method == "POST";
        if has_body && open("Content-Length") && open("Transfer-Encoding") {
            head += &format!("Content-Length: {}\r\n", self.body.len());
        }
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        [head.as_bytes(), b"\r\n", &self.body].concat()
    }
}

/// One answer.
#[derive(Clone, PartialEq, Eq)]
pub struct Reply {
    /// Its status.
    pub status: u16,
    /// Its headers in their order, the names in lower case.
    pub headers: Vec<(String, String)>,
    /// Its body, without the marks of chunks.
    pub body: Vec<u8>,
}

impl Reply {
    /// The value of a header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut named = self.headers.iter().filter(|(given, _)| given.eq_ignore_ascii_case(name));
        named.next().map(|(_, value)| value.as_str())
    }

    /// The body as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    ///
    /// # Panics
    /// Where it is not.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("not JSON ({error}): {self:?}"))
    }

    /// The body of an answer that went well.
    ///
    /// # Panics
    /// Where it did not.
    #[must_use]
    pub fn done(&self) -> Value {
        assert_eq!(self.status, 200, "{self:?}");
        self.json()
    }

    /// The code of the JSON-RPC error, or the word of the refusal; null where it is neither.
    #[must_use]
    pub fn code(&self) -> Value {
        serde_json::from_slice::<Value>(&self.body).map_or(Value::Null, |body| body["error"]["code"].clone())
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.status)?;
        for (name, value) in &self.headers {
            writeln!(f, "{name}: {value}")?;
        }
        let text = self.text();
        write!(f, "\n{}", text.get(..2000).unwrap_or(&text))
    }
}

/// A connection to a server, kept for as many requests as it lives.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    address: SocketAddr,
    /// What was read and belongs to nobody yet.
    unread: Vec<u8>,
}

impl Connection {
    /// Connects.
    ///
    /// # Panics
    /// Where nobody listens there.
    #[must_use]
    pub fn open(address: SocketAddr) -> Self {
        Self::try_open(address).unwrap_or_else(|error| panic!("nobody listens at {address}: {error}"))
    }

    /// Connects, if somebody listens there.
    ///
    /// # Errors
    /// The operating system's.
    pub fn try_open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, DEADLINE)?;
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(DEADLINE))?;
        Ok(Self { stream, address, unread: Vec::new() })
    }

    /// Where it goes to.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Writes bytes as they are.
    ///
    /// # Panics
    /// Where the server has hung up.
    pub fn write(&mut self, bytes: &[u8]) {
        self.try_write(bytes).expect("the server reads");
    }

    /// Writes bytes to a server that may hang up meanwhile.
    ///
    /// # Errors
    /// The operating system's.
    pub fn try_write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Sends a request without waiting for its answer.
    pub fn send(&mut self, request: &Request) {
        let bytes = request.bytes(self.address);
        self.write(&bytes);
    }

    /// Sends a request and reads its answer.
    pub fn ask(&mut self, request: &Request) -> Reply {
        self.send(request);
        if request.method != "HEAD" {
            return self.reply();
        }
        // Its answer tells of a body that does not come.
        self.head(Instant::now() + DEADLINE).expect("the server answers")
    }

    /// Reads the status of an answer and leaves the rest.
    ///
    /// # Panics
    /// Where none comes.
    pub fn status(&mut self) -> u16 {
        self.head(Instant::now() + DEADLINE).expect("the server answers").status
    }

    /// Writes again and again, reading nothing, until the other side takes no more.
    ///
    /// # Panics
    /// Where it takes everything.
    pub fn blocks_after(&mut self, bytes: &[u8]) {
        const MOST: usize = 256 << 20;
        self.stream.set_write_timeout(Some(Duration::from_millis(200))).expect("a socket has timeouts");
        let mut taken = 0;
        while self.stream.write(bytes).map(|count| taken += count).is_ok() {
            assert!(taken < MOST, "the server takes everything, whatever waits");
        }
        self.stream.set_write_timeout(Some(DEADLINE)).expect("a socket has timeouts");
    }

    /// Closes the client's side only.
    ///
    /// # Panics
    /// Where the connection is gone already.
    pub fn close_write(&self) {
        self.stream.shutdown(Shutdown::Write).expect("the connection is open");
    }

    /// Reads an answer whole.
    ///
    /// # Panics
    /// Where none comes.
    pub fn reply(&mut self) -> Reply {
        self.try_reply().unwrap_or_else(|error| panic!("no answer from {}: {error}", self.address))
    }

    /// Reads an answer whole, if one comes.
    ///
    /// # Errors
    /// [`ErrorKind::UnexpectedEof`] where the server hung up, [`ErrorKind::TimedOut`] where it says nothing.
    pub fn try_reply(&mut self) -> io::Result<Reply> {
        let until = Instant::now() + DEADLINE;
        let mut reply = self.head(until)?;
        let has_none = matches!(reply.status, 100..=199 | 204 | 304);
        if reply.header("transfer-encoding") == Some("chunked") {
            while let Some(chunk) = self.chunk(until)? {
                reply.body.extend(chunk);
            }
        } else if let Some(length) = reply.header("content-length").filter(|_| !has_none) {
            let length = length.parse().map_err(|_| io::Error::other(format!("its length is {length}")))?;
            reply.body = self.take(length, until)?;
        } else if !has_none && reply.header("connection") == Some("close") {
            while self.fill(until)? {}
            reply.body = std::mem::take(&mut self.unread);
        }
        Ok(reply)
    }

    /// Sends a request whose answer is a stream of events, and reads the answer's head.
    ///
    /// # Panics
    /// Where the answer is no such stream.
    #[must_use]
    pub fn stream(mut self, request: &Request) -> Events {
        self.send(request);
        let head = self.head(Instant::now() + DEADLINE).expect("the server answers");
        assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")), "{head:?}");
        Events { connection: self, head }
    }

    /// Whether the server hangs up within the time, whatever it says before.
    pub fn ends_within(&mut self, time: Duration) -> bool {
        let until = Instant::now() + time;
        loop {
            match self.fill(until) {
                Ok(true) => {}
                Ok(false) => return true,
                Err(error) => return error.kind() != ErrorKind::TimedOut,
            }
        }
    }

    /// Reads status and headers.
    fn head(&mut self, until: Instant) -> io::Result<Reply> {
        let end = self.find(b"\r\n\r\n", until)?;
        let head = self.take(end + 4, until)?;
        let text = String::from_utf8_lossy(&head);
        let mut lines = text.trim_end().split("\r\n");
        let status = lines.next().and_then(|line| line.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok());
        let status = status.ok_or_else(|| io::Error::other(format!("no status: {text}")))?;
        let headers = lines.filter_map(|line| line.split_once(':'));
        let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned())).collect();
        Ok(Reply { status, headers, body: Vec::new() })
    }

    /// Reads one chunk of a body; `None` is its end.
    fn chunk(&mut self, until: Instant) -> io::Result<Option<Vec<u8>>> {
        let end = self.find(b"\r\n", until)?;
        let line = self.take(end + 2, until)?;
        let size = std::str::from_utf8(&line[..end]).ok().and_then(|size| usize::from_str_radix(size, 16).ok());
        let size = size.ok_or_else(|| io::Error::other("a chunk without its size"))?;
        let mut chunk = self.take(size + 2, until)?;
        chunk.truncate(size);
        Ok((size > 0).then_some(chunk))
    }

    fn take(&mut self, count: usize, until: Instant) -> io::Result<Vec<u8>> {
        while self.unread.len() < count {
            if !self.fill(until)? {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
        let rest = self.unread.split_off(count);
        Ok(std::mem::replace(&mut self.unread, rest))
    }

    fn find(&mut self, mark: &[u8], until: Instant) -> io::Result<usize> {
        loop {
            if let Some(at) = self.unread.windows(mark.len()).position(|window| window == mark) {
                return Ok(at);
            }
            if !self.fill(until)? {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Reads what is there; false where the server has hung up.
    fn fill(&mut self, until: Instant) -> io::Result<bool> {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        let mut bytes = [0; 16 * 1024];
        match self.stream.read(&mut bytes) {
            Ok(read) => {
                self.unread.extend(&bytes[..read]);
                Ok(read > 0)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Err(ErrorKind::TimedOut.into()),
            Err(error) => Err(error),
        }
    }
}

/// An open stream of events.
#[derive(Debug)]
pub struct Events {
    connection: Connection,
    /// The head of the answer.
    pub head: Reply,
}

impl Events {
    /// The next bytes that come; `None` where the server has ended the stream.
    ///
    /// # Panics
    /// Where nothing comes within `time`.
    pub fn next_within(&mut self, time: Duration) -> Option<String> {
        self.next_before(Instant::now() + time).unwrap_or_else(|| panic!("nothing on the stream within {time:?}"))
    }

    /// The same; `None` where nothing comes before `until`.
    pub fn next_before(&mut self, until: Instant) -> Option<Option<String>> {
        match self.connection.chunk(until) {
            Ok(chunk) => Some(chunk.map(|chunk| String::from_utf8(chunk).expect("events are UTF-8"))),
            Err(error) if error.kind() == ErrorKind::TimedOut => None,
            Err(_) => Some(None),
        }
    }
}
