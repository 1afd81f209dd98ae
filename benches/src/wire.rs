//! HTTP/1.1 as a client writes and reads it, by hand: what asks must cost less than what answers.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

/// How long an answer may take.
const LIMIT: Duration = Duration::from_secs(10);
/// The most bytes of an answer.
const MOST: usize = 64 * 1024;

/// A connection that is kept, with one request at a time on its way.
pub(crate) struct Connection {
    pub(crate) stream: TcpStream,
    buffer: Box<[u8]>,
    filled: usize,
}

/// An answer, in the connection's buffer.
#[derive(Clone, Copy)]
pub(crate) struct Answer<'a> {
    pub(crate) status: u16,
    /// The status line and the headers.
    pub(crate) head: &'a str,
    pub(crate) body: &'a [u8],
}

/// How an answer lies in the buffer.
struct Shape {
    status: u16,
    head: usize,
    body: usize,
}

impl Connection {
    /// Connects.
    pub(crate) fn open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).with_context(|| format!("cannot connect to {address}"))?;
        stream.set_nodelay(true).context("cannot prepare a connection")?;
        stream.set_read_timeout(Some(LIMIT)).context("cannot prepare a connection")?;
        Ok(Self { stream, buffer: vec![0; MOST].into(), filled: 0 })
    }

    /// Sends a request.
    pub(crate) fn send(&mut self, request: &[u8]) -> Result<()> {
        self.stream.write_all(request).context("a server took no request")
    }

    /// Reads once; gives the answer when it is all there.
    pub(crate) fn receive(&mut self) -> Result<Option<Answer<'_>>> {
        let read = self.stream.read(&mut self.buffer[self.filled..]).context("a server did not answer")?;
        ensure!(read > 0, "a server hung up, or answered with more than {MOST} bytes");
        self.filled += read;
        let Some(Shape { status, head, body }) = shape(&self.buffer[..self.filled])? else { return Ok(None) };
        if self.filled < head + body {
            return Ok(None);
        }
        ensure!(self.filled == head + body, "a server answered more than it was asked");
        self.filled = 0;
        let (head, rest) = self.buffer.split_at(head);
        let head = std::str::from_utf8(head).context("an answer's head is not UTF-8")?;
        Ok(Some(Answer { status, head, body: &rest[..body] }))
    }

    /// Sends a request and waits for its answer, which has to have that status.
    pub(crate) fn ask(&mut self, request: &[u8], status: u16) -> Result<Answer<'_>> {
        self.send(request)?;
        while self.receive()?.is_none() {}
        // Nothing has been read since, so it lies there still.
        let shape = shape(&self.buffer)?.context("an answer is gone")?;
        let (head, rest) = self.buffer.split_at(shape.head);
        let head = std::str::from_utf8(head).context("an answer's head is not UTF-8")?;
        let answer = Answer { status: shape.status, head, body: &rest[..shape.body] };
        ensure!(answer.status == status, "not {status} but {}{}", answer.head, answer.text());
        Ok(answer)
    }
}

impl<'a> Answer<'a> {
    /// The body, for a person or a search.
    pub(crate) fn text(&self) -> std::borrow::Cow<'a, str> {
        String::from_utf8_lossy(self.body)
    }

    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&'a str> {
        value(self.head, name)
    }
}

/// Writes a POST of JSON; `more` are headers, each with its line's end.
pub(crate) fn post(address: SocketAddr, path: &str, more: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\nuser-agent: bench/1\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\n{more}content-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

/// Writes a GET.
pub(crate) fn get(address: SocketAddr, path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nuser-agent: bench/1\r\naccept: application/json\r\n\r\n")
        .into_bytes()
}

/// Reads the head, if it is all there.
fn shape(bytes: &[u8]) -> Result<Option<Shape>> {
    let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { return Ok(None) };
    let head = std::str::from_utf8(&bytes[..end + 4]).context("an answer's head is not UTF-8")?;
    let status = head.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
    let Some(status) = status else { bail!("not an answer: {head}") };
    let length = value(head, "content-length").map_or(Ok(0), str::parse);
    Ok(Some(Shape { status, head: end + 4, body: length.with_context(|| format!("no length: {head}"))? }))
}

fn value<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = head.split("\r\n").filter_map(|line| line.split_once(": "));
    lines.find(|(given, _)| given.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}
