//! A server that gives the answers it was given, and tells what it was asked.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};

/// One request, as it came.
#[derive(Debug)]
pub(crate) struct Asked {
    /// The method and the target.
    pub(crate) line: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(one, _)| one == name).map(|(_, value)| value.as_str())
    }
}

pub(crate) struct Canned {
    pub(crate) url: String,
    asked: Receiver<Asked>,
}

impl Canned {
    /// Answers one request after the other: with a status line's rest and headers, and a body. An empty status closes
    /// the connection without an answer.
    pub(crate) fn answering(answers: &[(&str, &str)]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (sender, asked) = channel();
        let answers: Vec<(String, String)> =
            answers.iter().map(|(head, body)| ((*head).to_owned(), (*body).to_owned())).collect();
        std::thread::spawn(move || {
            let mut answers = answers.into_iter();
            let mut connection: Option<BufReader<TcpStream>> = None;
            loop {
                let mut reader = match connection.take() {
                    Some(reader) => reader,
                    None => BufReader::new(listener.accept().unwrap().0),
                };
                let Some(asked) = read(&mut reader) else { continue };
                let _ = sender.send(asked);
                let Some((head, body)) = answers.next() else { return };
                if head.is_empty() {
                    continue;
                }
                let answer = format!("HTTP/1.1 {head}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
                // A client that wants no more of it may have gone.
                let _ = reader.get_mut().write_all(answer.as_bytes());
                connection = Some(reader);
            }
        });
        Self { url, asked }
    }

    /// What was asked so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.try_iter().collect()
    }
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<Asked> {
    let line = text_line(reader)?;
    let mut headers = Vec::new();
    while let Some((name, value)) = text_line(reader)?.split_once(": ") {
        headers.push((name.to_ascii_lowercase(), value.to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length").map(|(_, value)| value.parse().unwrap());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    let line = line.strip_suffix(" HTTP/1.1").unwrap_or(&line).to_owned();
    Some(Asked { line, headers, body: String::from_utf8(body).unwrap() })
}

fn text_line(reader: &mut BufReader<TcpStream>) -> Option<String> {
    let mut line = String::new();
    (reader.read_line(&mut line).ok()? > 0).then(|| line.trim_end().to_owned())
}
