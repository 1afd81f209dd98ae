//! What goes in and out while a session lasts.

use std::io::{ErrorKind, PipeWriter, Write, pipe};
use std::time::{Duration, Instant};

use majordomus_mcp_server::Ended;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use serde_json::json;

use crate::served::{Client, INIT, Setup, call, ping};

#[test]
fn the_first_line_that_is_written_answers_initialize() {
    let (_served, mut client) = Setup::default().piped();
    client.send(format!("\n\r\n{INIT}\r\n"));
    assert_eq!(client.read()["id"], 1);
}

#[test]
fn answers_come_in_the_order_of_the_requests_however_the_bytes_are_cut() {
    let (served, mut client) = Setup::default().piped();
    let all: String = (0..300).map(ping).collect();
    for chunk in all.as_bytes().chunks(7) {
        client.send(chunk);
    }
    for id in 0..300 {
        assert_eq!(client.read()["id"], id);
    }
    drop(client);
    served.ended();
}

#[test]
fn lines_that_are_no_messages_are_answered_and_reported_once() {
    let (served, mut client) = Setup::default().piped();
    for line in [b"not json\n".as_slice(), b"\xff\xfe\n", b"{\n"] {
        client.send(line);
        assert_eq!(client.read()["error"]["code"], -32700);
    }
    client.initialize();
    assert_eq!(served.said().len(), 1, "{:?}", served.said());
}

#[test]
fn responses_of_the_other_side_are_never_answered() {
    let (_served, mut client) = Setup::default().piped();
    client.send("{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"no\"}}\n".repeat(1000));
    client.send(ping(7));
    assert_eq!(client.read()["id"], 7);
}

#[test]
fn a_line_over_the_limit_is_refused_once_and_the_connection_stays() {
    let mut setup = Setup::default();
    setup.limits.line_bytes = 1000;
    let (_served, mut client) = setup.piped();
    client.initialize();
    client.send("x".repeat(1_000_000));
    let answer = client.read();
    assert_eq!((answer.get("id"), &answer["error"]["code"]), (Some(&json!(null)), &json!(-32600)));
    assert!(answer["error"]["message"].as_str().unwrap().contains("1000 bytes"), "{answer}");
    client.send("x".repeat(1_000_000));
    client.send("\n");
    client.send(ping(7));
    assert_eq!(client.read()["id"], 7);
}

#[test]
fn an_argument_of_a_mebibyte_fits() {
    let (_served, mut client) = Setup::default().piped();
    client.initialize();
    let answer = client.ask(&call("majordomus_announce", &json!({"intent": "x".repeat(1 << 20)})));
    assert_eq!(answer["result"]["isError"], true);
    client.send(ping(7));
    assert_eq!(client.read()["id"], 7);
}

#[test]
fn our_end_of_a_pipe_does_not_become_non_blocking_for_whoever_shares_it() {
    let ((input, to), (from, output)) = (pipe().unwrap(), pipe().unwrap());
    let shared = (input.try_clone().unwrap(), output.try_clone().unwrap());
    let _served = Setup::default().serve(input, output);
    let mut client = Client { to, from: std::io::BufReader::new(from) };
    client.initialize();
    assert!(!fcntl_getfl(&shared.0).unwrap().contains(OFlags::NONBLOCK));
    assert!(!fcntl_getfl(&shared.1).unwrap().contains(OFlags::NONBLOCK));
}

/// A request that is long and quickly answered with as much.
fn long_ping() -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":\"{}\",\"method\":\"ping\"}}\n", "x".repeat(10_000))
}

/// Sends pings until nothing more is taken, and says how many bytes were; at most `most`.
fn fill(to: &mut PipeWriter, most: usize) -> usize {
    fcntl_setfl(&*to, fcntl_getfl(&*to).unwrap() | OFlags::NONBLOCK).unwrap();
    let many = long_ping();
    let mut sent = 0;
    while sent < most {
        match to.write(&many.as_bytes()[sent % many.len()..]) {
            Ok(count) => sent += count,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                let patience = Timespec::try_from(Duration::from_millis(500)).unwrap();
                if poll(&mut [PollFd::new(to, PollFlags::OUT)], Some(&patience)).unwrap() == 0 {
                    break;
                }
            }
        }
    }
    sent
}

/// More than pipes, buffers and the queue can hold together.
const FLOOD: usize = 32 << 20;

#[test]
fn a_client_that_does_not_read_is_not_read_either_and_loses_nothing() {
    let (served, mut client) = Setup::default().piped();
    let sent = fill(&mut client.to, FLOOD);
    assert!(sent < FLOOD / 4, "{sent} bytes were taken while no answer was");
    drop(client.to);
    let lines = std::io::BufRead::lines(client.from).map(Result::unwrap);
    let answers = lines.filter(|line| line.len() > 10_000 && line.ends_with(r#","result":{}}"#)).count();
    assert_eq!(answers, sent / long_ping().len());
    assert_eq!(served.ended(), Ended::InputClosed);
}

#[test]
fn a_signal_ends_a_session_whose_client_does_not_read() {
    let (mut served, mut client) = Setup::default().piped();
    client.initialize();
    client.attach("a");
    fill(&mut client.to, FLOOD);
    let began = Instant::now();
    served.stop();
    assert_eq!(served.ended(), Ended::Stopped);
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    assert!(served.peers.list().is_empty());
}
