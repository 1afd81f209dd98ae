//! How a session comes to its end.

use std::fs::File;
use std::io::Read;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use majordomus_episodes_core::board::{BoardOptions, ConnectionEpisodeState};
use majordomus_episodes_core::clock::{Clock, Moment, SystemClock};
use majordomus_mcp_server::Ended;
use serde_json::json;

use crate::served::{Client, INIT, Served, Setup, call, ping};

fn is_detached(served: &Served, id: &str) -> bool {
    let episodes = served.board.list();
    served.peers.list().is_empty()
        && episodes.len() == 1
        && (episodes[0].external_id.as_str(), episodes[0].state) == (id, ConnectionEpisodeState::Detached)
}

#[test]
fn an_input_that_is_empty_ends_the_session_at_once() {
    let null = || File::options().read(true).write(true).open("/dev/null").unwrap();
    let served = Setup::default().serve(null(), null());
    assert_eq!(served.ended(), Ended::InputClosed);
    assert!(served.said().is_empty() && served.peers.list().is_empty());

    let (served, client) = Setup::default().piped();
    drop(client.to);
    assert_eq!(served.ended(), Ended::InputClosed);
    let mut written = String::new();
    client.from.into_inner().read_to_string(&mut written).unwrap();
    assert_eq!(written, "", "nothing is written before anybody asks");
}

#[test]
fn an_input_that_cannot_be_read_ends_the_session() {
    let served =
        Setup::default().serve(File::open("/").unwrap(), File::options().write(true).open("/dev/null").unwrap());
    assert_eq!(served.ended(), Ended::InputClosed);
    assert_eq!(served.said().len(), 1);
}

#[test]
fn a_client_that_closes_its_side_gets_every_answer_and_its_episode_waits() {
    let (served, mut client) = Setup::default().piped();
    client.initialize();
    client.send(call("majordomus_session_attach", &json!({"external_id": "a"})) + "\n" + &ping(7));
    client.send(ping(8).trim_end());
    drop(client.to);
    let mut rest = String::new();
    client.from.read_to_string(&mut rest).unwrap();
    let lines: Vec<_> = rest.lines().collect();
    assert_eq!(lines.len(), 3, "the last line needs no newline: {rest}");
    assert!(
        lines[0].contains("\"structuredContent\"") && lines[1].contains("\"id\":7") && lines[2].contains("\"id\":8")
    );
    assert_eq!(served.ended(), Ended::InputClosed);
    assert!(is_detached(&served, "a"));
}

#[test]
fn whole_answers_of_awkward_sizes_arrive_before_the_end() {
    for size in [4096, 16_384, 65_536, 65_537, 300_000] {
        let (served, mut client) = Setup::default().piped();
        let frame = "{\"jsonrpc\":\"2.0\",\"id\":\"\",\"result\":{}}\n";
        let id = "x".repeat(size - frame.len());
        client.send(format!("{{\"jsonrpc\":\"2.0\",\"id\":\"{id}\",\"method\":\"ping\"}}\n"));
        drop(client.to);
        let mut answer = String::new();
        client.from.read_to_string(&mut answer).unwrap();
        assert_eq!((answer.len(), answer.ends_with("\"result\":{}}\n")), (size, true));
        assert_eq!(served.ended(), Ended::InputClosed);
    }
}

#[test]
fn a_signal_ends_the_session_while_the_input_stays_open() {
    let (mut served, mut client) = Setup::default().piped();
    client.initialize();
    client.attach("a");
    client.send(&ping(7)[..10]);
    let began = Instant::now();
    served.stop();
    assert_eq!(served.ended(), Ended::Stopped);
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    assert!(is_detached(&served, "a"));
}

#[test]
fn a_client_that_reads_no_more_is_gone() {
    let (served, mut client) = Setup::default().piped();
    client.initialize();
    client.attach("a");
    drop(client.from);
    assert_eq!(served.ended(), Ended::OutputClosed);
    assert!(is_detached(&served, "a"));
}

#[test]
fn what_a_client_said_before_it_went_is_acted_on() {
    let mut setup = Setup::default();
    setup.limits.queue_bytes = 1000;
    let (served, mut client) = setup.piped();
    client.initialize();
    client.attach("a");
    let lists = "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\"}\n".repeat(100);
    client.send(lists + &call("majordomus_session_detach", &json!({})) + "\n");
    drop(client.from);
    assert_eq!(served.ended(), Ended::OutputClosed);
    assert!(served.board.list().is_empty(), "it had finished its work");
}

/// The machine's clock, counting who looks at it.
#[derive(Default)]
struct Counting(AtomicUsize);

impl Clock for Counting {
    fn now(&self) -> Moment {
        self.0.fetch_add(1, Ordering::Relaxed);
        SystemClock.now()
    }
}

#[test]
fn a_client_that_closed_its_side_and_does_not_read_is_given_up_without_going_round_and_round() {
    let clock = Arc::new(Counting::default());
    let mut setup = Setup::on(clock.clone(), BoardOptions::default());
    (setup.limits.queue_bytes, setup.limits.stall) = (1000, Duration::from_millis(100));
    let (served, mut client) = setup.piped();
    client.initialize();
    client.attach("a");
    client.send("{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\"}\n".repeat(100));
    drop(client.to);
    assert_eq!(served.ended(), Ended::OutputClosed);
    let looks = clock.0.load(Ordering::Relaxed);
    assert!(looks < 1000, "the loop went round too often: it looked at the clock {looks} times");
    assert!(is_detached(&served, "a"));
    assert_eq!(served.said().len(), 1);
    drop(client.from);
}

#[test]
fn a_socket_that_is_half_closed_gets_every_answer() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let served = Setup::default().serve(ours.try_clone().unwrap(), ours);
    let mut client = Client { to: theirs.try_clone().unwrap(), from: std::io::BufReader::new(theirs) };
    client.initialize();
    client.attach("a");
    client.send((0..5000).map(ping).collect::<String>());
    client.to.shutdown(Shutdown::Write).unwrap();
    for id in 0..5000 {
        assert_eq!(client.read()["id"], id);
    }
    assert_eq!(served.ended(), Ended::InputClosed);
    assert!(is_detached(&served, "a"));
}

#[test]
fn a_file_is_served_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("in"), folder.path().join("out"));
    std::fs::write(&input, format!("{INIT}\n{}", (0..2000).map(ping).collect::<String>())).unwrap();
    let served = Setup::default().serve(File::open(&input).unwrap(), File::create(&output).unwrap());
    assert_eq!(served.ended(), Ended::InputClosed);
    assert_eq!(std::fs::read_to_string(&output).unwrap().lines().count(), 2001);
}

#[cfg(target_os = "linux")]
#[test]
fn a_named_pipe_that_nobody_writes_to_any_more_ends_the_session() {
    use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat, open};

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let input = open(&path, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty()).unwrap();
    let served = Setup::default().serve(input, File::options().write(true).open("/dev/null").unwrap());
    assert_eq!(served.ended(), Ended::InputClosed);
}
