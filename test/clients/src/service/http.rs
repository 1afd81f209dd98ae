//! As much of HTTP as clients need that talk to a model: one request on a connection, one answer, and its end.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use anyhow::{Context, bail, ensure};
use serde_json::Value;

/// No request of a client comes near it.
const MOST: u64 = 64 << 20;

pub(super) struct Request {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) body: Vec<u8>,
}

impl Request {
    /// Reads one request; `None` where the client connected and said nothing.
    pub(super) fn read(stream: &mut TcpStream) -> anyhow::Result<Option<Self>> {
        let mut answers = stream.try_clone()?;
        let mut reader = BufReader::new(stream.take(MOST));
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let mut words = line.split_whitespace();
        let (Some(method), Some(path)) = (words.next(), words.next()) else { bail!("no request: {line}") };
        let mut request = Self { method: method.into(), path: path.into(), body: Vec::new() };
        let (mut length, mut chunked) = (0, false);
        loop {
            let mut header = String::new();
            reader.read_line(&mut header)?;
            let Some((name, value)) = header.trim_end().split_once(':') else { break };
            let value = value.trim();
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.parse().context("a length")?,
                "transfer-encoding" => chunked = value.contains("chunked"),
                "content-encoding" => ensure!(value == "identity", "a body that is packed: {value}"),
                "expect" => answers.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?,
                _ => {}
            }
        }
        if !chunked {
            reader.take(length).read_to_end(&mut request.body)?;
            return Ok(Some(request));
        }
        loop {
            let mut size = String::new();
            reader.read_line(&mut size)?;
            let size = u64::from_str_radix(size.split(';').next().unwrap_or_default().trim(), 16)?;
            (&mut reader).take(size).read_to_end(&mut request.body)?;
            reader.read_line(&mut String::new())?;
            if size == 0 {
                return Ok(Some(request));
            }
        }
    }
}

pub(super) fn json(stream: &mut TcpStream, status: u16, body: &Value) -> anyhow::Result<()> {
    let body = body.to_string();
    let length = body.len();
    write!(stream, "HTTP/1.1 {status} -\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n")?;
    write!(stream, "Connection: close\r\n\r\n{body}")?;
    Ok(())
}

/// Writes events, the end of which is the end of the connection.
pub(super) fn events(stream: &mut TcpStream, events: &[String]) -> anyhow::Result<()> {
    write!(stream, "HTTP/1.1 200 -\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")?;
    for event in events {
        stream.write_all(event.as_bytes())?;
        stream.flush()?;
    }
    Ok(())
}

/// Waits until the client has gone.
pub(super) fn until_hung_up(stream: &mut TcpStream) {
    while matches!(stream.read(&mut [0; 64]), Ok(length) if length > 0) {}
}
