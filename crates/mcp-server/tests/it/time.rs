//! Deadlines, stopped processes and slow repositories.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use majordomus_episodes_core::board::{BoardOptions, ConnectionEpisodeState, Limits};
use majordomus_episodes_core::clock::{Clock, ManualClock};
use majordomus_episodes_core::driver::{Closing, EpisodeDriver, Opening, Outcome, Report, Seen};
use majordomus_mcp_server::{Ended, Threads};

use serde_json::json;

use crate::served::{HANGS, Setup, call, ping};

const MINUTE: Duration = Duration::from_secs(60);

/// A clock that can be moved and tells when the server has looked at it.
fn manual() -> (Arc<ManualClock>, Setup) {
    let clock = Arc::new(ManualClock::default());
    let as_clock: Arc<dyn Clock> = clock.clone();
    (clock, Setup::on(as_clock, BoardOptions::default()))
}

#[test]
fn an_episode_that_was_left_expires_while_the_connection_goes_on() {
    let (clock, setup) = manual();
    let (served, mut client) = setup.piped();
    client.initialize();
    client.attach("left");
    client.attach("held");
    clock.advance(15 * MINUTE - Duration::from_secs(1));
    client.send(ping(7));
    client.read();
    assert_eq!(served.board.list().len(), 2);
    clock.advance(Duration::from_secs(2));
    // The answer to the second one is written after the server has acted on what was due with the first.
    for id in [8, 9] {
        client.send(ping(id));
        client.read();
    }
    let ids: Vec<_> = served.board.list().into_iter().map(|episode| episode.external_id).collect();
    assert_eq!(ids, ["held"]);
}

#[test]
fn a_process_that_was_stopped_does_not_take_that_for_silence() {
    let (clock, setup) = manual();
    let (served, mut client) = setup.piped();
    client.initialize();
    client.attach("first");
    client.attach("second");
    clock.advance(10 * MINUTE);
    // The server sleeps until "first" is due, in 5 minutes; "second" is left now and would be due in 15.
    client.attach("third");
    clock.advance(60 * MINUTE);
    for id in [8, 9] {
        client.send(ping(id));
        client.read();
    }
    let states: Vec<_> = served.board.list().into_iter().map(|one| (one.external_id, one.state)).collect();
    let expected =
        [("third".to_owned(), ConnectionEpisodeState::Open), ("second".to_owned(), ConnectionEpisodeState::Detached)];
    assert_eq!(states, expected, "only what had waited its whole grace before is over");
    assert_eq!(served.said().len(), 1, "{:?}", served.said());
}

/// A repository that takes as long as it is told to.
struct Slow {
    begun: Sender<()>,
    go_on: Mutex<Receiver<()>>,
}

impl EpisodeDriver for Slow {
    fn open(&self, _: &Opening) -> Report {
        self.begun.send(()).unwrap();
        // Whoever dropped the other end does not wait for it either.
        let _ = self.go_on.lock().unwrap().recv();
        Report { line: "session s-1 opened".into(), outcome: Outcome::Recorded, known: None }
    }

    fn close(&self, _: &Closing) -> Report {
        Report { line: "episode closed".into(), outcome: Outcome::Recorded, known: None }
    }

    fn seen(&self, _: &Seen) -> bool {
        true
    }
}

fn slow(driver_time: Duration) -> (Setup, Receiver<()>, Sender<()>) {
    let ((begun, has_begun), (go, go_on)) = (channel(), channel());
    let driver = Arc::new(Slow { begun, go_on: go_on.into() });
    let limits = Limits { driver_time, ..Limits::default() };
    let options = BoardOptions { driver, limits, run: Arc::new(Threads::default()), ..BoardOptions::default() };
    let mut setup = Setup::on(Arc::new(majordomus_episodes_core::clock::SystemClock), options);
    setup.limits.settle = Duration::from_millis(10);
    (setup, has_begun, go)
}

#[test]
fn a_slow_repository_costs_its_caller_a_bounded_time_and_the_end_too() {
    let (setup, begun, go) = slow(Duration::from_millis(10));
    let (served, mut client) = setup.piped();
    client.initialize();
    let answer = client.attach("a");
    begun.recv_timeout(HANGS).unwrap();
    assert_eq!(answer["result"]["_meta"]["dev.majordomus/error"]["code"], "unavailable", "{answer}");
    assert_eq!(answer["result"]["_meta"]["dev.majordomus/error"]["retry"], true);
    drop(client);
    assert!(matches!(served.ended(), Ended::InputClosed | Ended::OutputClosed));
    assert_eq!(served.said().len(), 1, "it says that it did not wait any longer: {:?}", served.said());
    drop(go);
}

#[test]
fn what_the_repository_reports_is_shown_verbatim() {
    let (setup, _begun, go) = slow(HANGS);
    let (_served, mut client) = setup.piped();
    client.initialize();
    go.send(()).unwrap();
    let answer = client.attach("a");
    let answer = &answer["result"]["structuredContent"];
    assert_eq!((&answer["episode"]["repository"], &answer["recorded"]), (&"session s-1 opened".into(), &true.into()));
    assert!(answer["next"].as_str().unwrap().contains("majordomus_session_detach"));
}

#[test]
fn what_was_sent_before_a_signal_is_answered() {
    let (setup, begun, go) = slow(HANGS);
    let (mut served, mut client) = setup.piped();
    client.initialize();
    client.send(call("majordomus_session_attach", &json!({"external_id": "a"})) + "\n");
    begun.recv_timeout(HANGS).unwrap();
    // The server is busy; when it looks again it finds both.
    client.send(ping(7));
    served.stop();
    go.send(()).unwrap();
    assert_eq!(served.ended(), Ended::Stopped);
    assert_eq!((&client.read()["id"], &client.read()["id"]), (&json!("c"), &json!(7)));
    assert_eq!(served.board.list()[0].state, ConnectionEpisodeState::Detached);
}
