//! The transport over HTTP: who waits for whom, how much is taken, and how it ends.

use std::num::NonZeroUsize;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use majordomus_episodes_core::board::{BoardOptions, ConnectionEpisodeState};
use majordomus_episodes_core::clock::{ManualClock, SystemClock};
use majordomus_episodes_core::driver::{Closing, EpisodeDriver, Opening, Outcome, Report};
use majordomus_mcp_server::Threads;
use majordomus_mcp_server::http::{HttpLimits, PaceLimits};
use serde_json::json;

use crate::served::HANGS;
use crate::talk::{Over, calling};

/// A repository that opens an episode only when it is let.
struct Slow {
    begun: Mutex<Sender<String>>,
    let_go: Mutex<Receiver<()>>,
}

impl EpisodeDriver for Slow {
    fn open(&self, opening: &Opening) -> Report {
        let id = opening.key.external_id.as_str();
        if id.starts_with("slow") && !opening.repeated {
            self.begun.lock().unwrap().send(id.into()).unwrap();
            self.let_go.lock().unwrap().recv_timeout(HANGS).unwrap();
        }
        done()
    }

    fn close(&self, _: &Closing) -> Report {
        done()
    }
}

fn done() -> Report {
    Report { line: "done".into(), outcome: Outcome::Recorded, known: None }
}

/// A server on such a repository; what comes out when a slow one has begun, and what lets it go.
fn slow(limits: HttpLimits) -> (Over, Receiver<String>, Sender<()>) {
    let ((tell, begun), (go, let_go)) = (channel(), channel());
    let driver = Arc::new(Slow { begun: Mutex::new(tell), let_go: Mutex::new(let_go) });
    let options = BoardOptions { driver, run: Arc::new(Threads::default()), ..BoardOptions::default() };
    (Over::start(Arc::new(SystemClock), options, limits), begun, go)
}

fn plain(limits: HttpLimits) -> Over {
    Over::start(Arc::new(SystemClock), BoardOptions::default(), limits)
}

#[test]
fn a_call_that_waits_for_a_disk_keeps_neither_others_nor_its_own_session_waiting() {
    let (over, begun, go) = slow(HttpLimits::default());
    let mut waits = over.client();
    waits.send(&calling(1, "majordomus_session_attach", &json!({"external_id": "slow"})));
    begun.recv_timeout(HANGS).unwrap();
    let mut same = over.connect();
    let ping = json!({"jsonrpc": "2.0", "id": 2, "method": "ping"});
    assert_eq!(same.post("/mcp", &[("mcp-session-id", &waits.session)], &ping).status, 200);
    let mut other = over.client();
    assert_eq!(other.attach("other")["recorded"], true);
    assert_eq!(other.call("majordomus_episodes", &json!({}))["structuredContent"]["open"], 2);
    go.send(()).unwrap();
    assert_eq!(waits.connection.read().json()["result"]["structuredContent"]["recorded"], true);
}

#[test]
fn a_request_that_its_client_calls_off_is_answered_with_nothing_and_finished_all_the_same() {
    let (over, begun, go) = slow(HttpLimits::default());
    let mut waits = over.client();
    waits.send(&calling(1, "majordomus_session_attach", &json!({"external_id": "slow"})));
    begun.recv_timeout(HANGS).unwrap();
    let cancel = |id| json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
    let mut same = over.connect();
    for id in [2, 1] {
        assert_eq!(same.post("/mcp", &[("mcp-session-id", &waits.session)], &cancel(id)).status, 202);
    }
    let answer = waits.connection.read();
    assert_eq!((answer.status, answer.body.len()), (202, 0));
    go.send(()).unwrap();
    assert_eq!(waits.attach("slow")["recorded"], true);
    assert_eq!(over.shared.board.list()[0].attachments, 1);
}

#[test]
fn too_many_calls_that_wait_for_a_disk_are_refused_at_once() {
    let (over, begun, go) = slow(HttpLimits { waiting_calls: 1, ..HttpLimits::default() });
    let (mut waits, mut other) = (over.client(), over.client());
    waits.send(&calling(1, "majordomus_session_attach", &json!({"external_id": "slow"})));
    begun.recv_timeout(HANGS).unwrap();
    let refused = other.call("majordomus_session_attach", &json!({"external_id": "b"}));
    assert_eq!(refused["_meta"]["dev.majordomus/error"], json!({"code": "unavailable", "retry": true}));
    let rest = other.connection.post("/api/v1/episodes/attach", &[], &json!({"external_id": "b"}));
    assert_eq!((rest.status, rest.header("retry-after")), (503, Some("1")));
    assert_eq!(other.ping(), 200);
    go.send(()).unwrap();
    waits.connection.read();
    assert_eq!(other.attach("b")["recorded"], true);
}

#[test]
fn a_caller_that_hangs_up_keeps_its_place_until_its_call_is_done() {
    let (over, begun, go) = slow(HttpLimits { waiting_calls: 1, ..HttpLimits::default() });
    let mut gone = over.connect();
    gone.send("POST", "/api/v1/episodes/attach", &[], r#"{"external_id":"slow"}"#);
    begun.recv_timeout(HANGS).unwrap();
    drop(gone);
    let mut other = over.connect();
    // The server needs a moment to see that the other has gone, and then must not take that for room.
    let until = Instant::now() + Duration::from_millis(200);
    while Instant::now() < until {
        let refused = other.post("/api/v1/episodes/attach", &[], &json!({"external_id": "b"}));
        assert_eq!(refused.status, 503);
    }
    go.send(()).unwrap();
    let until = Instant::now() + HANGS;
    while other.post("/api/v1/episodes/attach", &[], &json!({"external_id": "b"})).status != 200 {
        assert!(Instant::now() < until);
    }
}

#[test]
fn a_session_that_asks_for_too_much_is_refused_and_no_other_is() {
    let pace = PaceLimits { at_once: 32, per_second: 1, burst: 5 };
    let over = plain(HttpLimits { pace, ..HttpLimits::default() });
    let (mut greedy, mut modest) = (over.client(), over.client());
    let answers: Vec<u16> = (0..20).map(|_| greedy.ping()).collect();
    assert_eq!(answers.iter().filter(|status| **status == 200).count(), 5, "{answers:?}");
    let refused = greedy.ask(&json!({"jsonrpc": "2.0", "id": "x", "method": "ping"}));
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")));
    assert_eq!((&refused.json()["id"], &refused.json()["error"]["code"]), (&json!("x"), &json!(-32603)));
    let refused = greedy.call("majordomus_episodes", &json!({}));
    assert_eq!(refused["_meta"]["dev.majordomus/error"]["code"], "unavailable");
    assert!(refused["content"][0]["text"].as_str().unwrap().contains("1 calls per second"));
    assert_eq!(modest.ping(), 200);
}

#[test]
fn silence_for_a_day_ends_a_session_and_not_a_second_earlier() {
    let clock = Arc::new(ManualClock::default());
    let over = Over::start(clock.clone(), BoardOptions::default(), HttpLimits::default());
    let mut client = over.client();
    let mut listens = over.client();
    let stream = listens.listen(&over);
    clock.advance(Duration::from_secs(24 * 3600 - 1));
    over.server.expire_sessions();
    assert_eq!(client.ping(), 200);
    clock.advance(Duration::from_secs(24 * 3600));
    over.server.expire_sessions();
    assert_eq!(client.ping(), 404);
    // Whoever has a stream open is there, however silent.
    assert_eq!(listens.ping(), 200);
    drop(stream);
}

#[test]
fn the_least_recently_heard_session_makes_room_and_what_it_held_waits() {
    let sessions = NonZeroUsize::new(2).unwrap();
    let over = plain(HttpLimits { sessions, ..HttpLimits::default() });
    let (mut first, mut second) = (over.client(), over.client());
    first.attach("a");
    second.attach("b");
    assert_eq!(first.ping(), 200);
    let mut third = over.client();
    assert_eq!((first.ping(), second.ping(), third.ping()), (200, 404, 200));
    let state = |id: &str| over.shared.board.list().into_iter().find(|one| one.external_id == id).unwrap().state;
    assert_eq!((state("a"), state("b")), (ConnectionEpisodeState::Open, ConnectionEpisodeState::Detached));
}

#[test]
fn a_deleted_session_ends_its_streams_and_its_id() {
    let over = plain(HttpLimits { stream_beat: Duration::from_millis(20), ..HttpLimits::default() });
    let mut client = over.client();
    let stream = client.listen(&over);
    client.connection.send("DELETE", "/mcp", &[("mcp-session-id", &client.session)], "");
    assert_eq!(client.connection.read().status, 204);
    stream.ended();
    assert_eq!(client.ping(), 404);
    assert!(over.shared.peers.list().is_empty());
}

#[test]
fn a_session_has_only_so_many_streams() {
    let over = plain(HttpLimits { streams: 1, ..HttpLimits::default() });
    let client = over.client();
    let stream = client.listen(&over);
    let mut more = over.connect();
    more.send("GET", "/mcp", &[("mcp-session-id", &client.session)], "");
    assert_eq!(more.read().status, 503);
    drop(stream);
    let until = Instant::now() + HANGS;
    loop {
        more.send("GET", "/mcp", &[("mcp-session-id", &client.session)], "");
        if more.read().status == 200 {
            break;
        }
        assert!(Instant::now() < until);
    }
}

#[test]
fn stopping_waits_for_what_runs_and_for_nothing_else() {
    let (over, begun, go) = slow(HttpLimits { settle: HANGS, ..HttpLimits::default() });
    let (mut waits, listens, idle) = (over.client(), over.client(), over.connect());
    let stream = listens.listen(&over);
    waits.send(&calling(1, "majordomus_session_attach", &json!({"external_id": "slow"})));
    begun.recv_timeout(HANGS).unwrap();
    let Over { server, shared } = over;
    let stopped = std::thread::spawn(move || server.stop());
    stream.closed();
    idle.closed();
    // Longer than it would take to be gone.
    let since = Instant::now();
    while since.elapsed() < Duration::from_millis(300) {
        assert!(!stopped.is_finished());
        std::thread::park_timeout(Duration::from_millis(5));
    }
    go.send(()).unwrap();
    assert_eq!(waits.connection.read().json()["result"]["structuredContent"]["recorded"], true);
    stopped.join().unwrap();
    assert_eq!(shared.board.list()[0].state, ConnectionEpisodeState::Detached);
}

#[test]
fn stopping_gives_up_on_what_hangs() {
    let (over, begun, _go) = slow(HttpLimits { settle: Duration::from_millis(50), ..HttpLimits::default() });
    let mut waits = over.client();
    waits.send(&calling(1, "majordomus_session_attach", &json!({"external_id": "slow"})));
    begun.recv_timeout(HANGS).unwrap();
    let since = Instant::now();
    over.server.stop();
    assert!(since.elapsed() < HANGS / 2);
}

#[test]
fn more_connections_than_are_allowed_are_told_so() {
    let over = plain(HttpLimits { connections: 1, ..HttpLimits::default() });
    let mut first = over.connect();
    assert_eq!(first.post("/api/v1/episodes/detach", &[], &json!({})).status, 404);
    let mut second = over.connect();
    assert_eq!(second.read().status, 503);
}

#[test]
fn a_client_that_never_says_what_it_wants_is_let_go() {
    let over = plain(HttpLimits { head_time: Duration::from_millis(50), ..HttpLimits::default() });
    over.connect().closed();
    let over = plain(HttpLimits { body_time: Duration::from_millis(50), ..HttpLimits::default() });
    let mut half = over.connect();
    half.half("POST", "/api/v1/episodes/attach", 100);
    assert_eq!(half.read().status, 408);
}

#[test]
fn asking_for_a_streams_head_opens_none_and_loses_none() {
    let clock = Arc::new(ManualClock::default());
    let over = Over::start(clock.clone(), BoardOptions::default(), HttpLimits::default());
    let mut client = over.client();
    client.attach("a");
    let mut other = over.connect();
    other.send("HEAD", "/mcp", &[("mcp-session-id", &client.session), ("accept", "text/event-stream")], "");
    assert_eq!(other.head().status, 405);
    // Had a stream been lost, the episode would be over by now; silence ends it only after a day.
    clock.advance(Duration::from_secs(20 * 60));
    assert!(over.shared.board.reap().is_empty());
    assert_eq!(over.shared.board.list().len(), 1);
}

#[test]
fn a_session_whose_stream_ends_after_days_is_there_until_it_is_silent_for_one() {
    let clock = Arc::new(ManualClock::default());
    let limits = HttpLimits { streams: 1, ..HttpLimits::default() };
    let over = Over::start(clock.clone(), BoardOptions::default(), limits);
    let client = over.client();
    let stream = client.listen(&over);
    clock.advance(Duration::from_secs(30 * 3600));
    drop(stream);
    // It has gone once there is room for another, and that one is refused for what it does not accept: no sign of life.
    let until = Instant::now() + HANGS;
    let mut other = over.connect();
    while over.server.streams() > 0 {
        assert!(Instant::now() < until);
        std::thread::yield_now();
    }
    over.server.expire_sessions();
    other.send("DELETE", "/mcp", &[("mcp-session-id", &client.session)], "");
    assert_eq!(other.read().status, 204, "it was there still");
}
