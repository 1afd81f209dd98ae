//! A disk that hangs at a step of somebody's attach or detach, while that client is deleted, evicted or left alone by
//! a server that stops.

use std::num::NonZeroUsize;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use majordomus_mcp_server::http::HttpLimits;
use majordomus_records::clock::{Clock, rfc3339};
use serde_json::{Value, json};

use crate::faults_site::{ID, Site};
use crate::faults_truth::exactly_one_record_for_each_sitting;
use crate::served::HANGS;
use crate::sim::{Fault, Restart};
use crate::talk::{Client, calling};
use crate::world::{GRACE, World, field};

/// What becomes of the client whose call hangs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Deleted,
    Evicted,
    /// The server stops, and waits for no disk.
    Left,
}

const FATES: [Fate; 3] = [Fate::Deleted, Fate::Evicted, Fate::Left];

/// What hangs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hangs {
    Attach,
    Detach,
}

/// Two sessions at most: the one whose call hangs, and somebody else's.
fn limits() -> HttpLimits {
    HttpLimits { sessions: NonZeroUsize::new(2).unwrap(), settle: Duration::from_millis(20), ..HttpLimits::default() }
}

/// Lets the disk hang at a step; says when it does, and is told when it may go on.
pub(crate) fn hang_at(world: &World, at: usize) -> (Receiver<()>, Sender<()>) {
    let ((tell, begun), (go, let_go)) = (channel(), channel::<()>());
    let fault = Fault::Meanwhile(Box::new(move || {
        tell.send(()).unwrap();
        let_go.recv_timeout(HANGS).unwrap();
    }));
    world.disk.fail_at(at, fault);
    (begun, go)
}

fn attach(client: &mut Client) -> Value {
    client.attach(ID)
}

fn detach() -> Value {
    calling(8, "majordomus_session_detach", &json!({}))
}

/// How many steps of the disk an attach takes, or a detach.
pub(crate) fn steps_of(what: Hangs) -> usize {
    let world = World::new();
    let site = Site::start(&world);
    let mut client = site.over.client();
    attach(&mut client);
    let of_attach = world.disk.steps();
    client.ask(&detach());
    let steps = if what == Hangs::Attach { of_attach } else { world.disk.steps() - of_attach };
    site.end();
    steps
}

/// Ends the client as `fate` says while its call hangs, then lets the call go on. Returns the server, if it lives.
fn meet(site: Site, mut client: Client, fate: Fate, go: &Sender<()>, what: Hangs) -> Option<Site> {
    if fate == Fate::Left {
        let began = Instant::now();
        let stopped = site.stop();
        assert!(began.elapsed() < HANGS / 3, "a server that stops waits for a disk that hangs");
        go.send(()).unwrap();
        stopped.leave();
        return None;
    }
    if fate == Fate::Deleted {
        let mut same = site.over.connect();
        same.send("DELETE", "/mcp", &[("mcp-session-id", &client.session)], "");
        assert_eq!(same.read().status, 204);
    } else {
        drop(site.over.client());
    }
    go.send(()).unwrap();
    let answer = client.connection.read().json();
    assert_eq!(answer["result"]["structuredContent"]["recorded"], true, "{what:?}: {answer}");
    site.settle();
    assert_eq!(client.ping(), 404);
    Some(site)
}

/// The client comes back, to the same server or to a new one, and ends its sitting.
fn comes_back(world: &World, site: Option<Site>, sittings_so_far: usize) {
    world.clock.advance(Duration::from_secs(5));
    let site = site.unwrap_or_else(|| {
        let site = Site::start(world);
        site.keep_house();
        site
    });
    let mut client = site.over.client();
    let attached = attach(&mut client);
    assert_eq!(attached["recorded"], true, "{attached}");
    let resumes = sittings_so_far == 0;
    assert_eq!(attached["resumed"], resumes, "{attached}");
    assert_eq!(attached["episode"]["attachments"], if resumes { 2 } else { 1 }, "{attached}");
    assert!(attached.get("taken_over_from").is_none(), "nobody holds it any more: {attached}");
    assert_eq!(client.ask(&detach()).json()["result"]["structuredContent"]["recorded"], true);
    site.end();
    world.recover();
    exactly_one_record_for_each_sitting(world, sittings_so_far + 1);
    assert!(world.records().iter().all(|(_, record)| field(record, "outcome") == "closed"));
}

/// Nobody comes back.
fn expires(world: &World, site: Option<Site>, sittings_so_far: usize, began: &str) {
    let went_on = now(world);
    world.clock.advance(GRACE + Duration::from_secs(60));
    if let Some(site) = site {
        site.reap();
        assert_eq!(site.over.shared.board.list().len(), 0, "its time is over");
        site.crash(world, Restart::Killed);
    }
    world.recover();
    exactly_one_record_for_each_sitting(world, 1);
    let (_, record) = &world.records()[0];
    let expected = if sittings_so_far == 0 { ("interrupted", "expired") } else { ("closed", "detach") };
    assert_eq!((field(record, "outcome"), field(record, "end_reason")), expected);
    // What hangs before its line is made is dated when it goes on.
    let closed_at = field(record, "closed_at");
    assert!(
        began <= closed_at && closed_at <= went_on.as_str(),
        "it ends at the last evidence, and not at {closed_at}"
    );
}

#[test]
fn a_call_that_hangs_ends_with_its_client_and_leaves_one_truthful_record() {
    let mut runs = 0;
    for what in [Hangs::Attach, Hangs::Detach] {
        for (fate, returns) in FATES.into_iter().flat_map(|fate| [(fate, true), (fate, false)]) {
            for at in 1..=steps_of(what) {
                let world = World::new();
                let mut site = Site::within(&world, limits(), Duration::from_secs(5));
                let mut client = site.over.client();
                let began = now(&world);
                if what == Hangs::Detach {
                    attach(&mut client);
                }
                let (begun, go) = hang_at(&world, at);
                match what {
                    Hangs::Attach => {
                        client.send(&calling(7, "majordomus_session_attach", &json!({ "external_id": ID })));
                    }
                    Hangs::Detach => client.send(&detach()),
                }
                begun.recv_timeout(HANGS).unwrap();
                site.other_callers_are_answered();
                world.clock.advance(Duration::from_secs(2));
                let site = meet(site, client, fate, &go, what);
                let so_far = usize::from(what == Hangs::Detach);
                if returns {
                    comes_back(&world, site, so_far);
                } else {
                    expires(&world, site, so_far, &began);
                }
                runs += 1;
            }
        }
    }
    println!("{runs} runs with a disk that hung");
    assert!(runs > 100, "{runs}");
}

fn now(world: &World) -> String {
    rfc3339(world.clock.now().wall_ms)
}

#[test]
fn a_call_that_hangs_too_long_is_unavailable_and_its_late_answer_is_the_next_ones() {
    for at in 1..=steps_of(Hangs::Attach) {
        let world = World::new();
        let mut site = Site::within(&world, HttpLimits::default(), Duration::from_millis(30));
        let mut client = site.over.client();
        let (begun, go) = hang_at(&world, at);
        let refused = client.call("majordomus_session_attach", &json!({ "external_id": ID }));
        assert_eq!(
            refused["_meta"]["dev.majordomus/error"],
            json!({"code": "unavailable", "retry": true}),
            "{refused}"
        );
        begun.recv_timeout(HANGS).unwrap();
        site.other_callers_are_answered();
        go.send(()).unwrap();
        site.settle();
        let attached = attach(&mut client);
        assert_eq!((&attached["recorded"], &attached["episode"]["attachments"]), (&json!(true), &json!(1)));
        site.end();
        world.recover();
        exactly_one_record_for_each_sitting(&world, 1);
    }
}

#[test]
fn a_session_that_is_deleted_while_it_waits_for_its_turn_holds_nothing_afterwards() {
    let world = World::new();
    let site = Site::start(&world);
    let (mut first, mut second) = (site.over.client(), site.over.client());
    let (begun, go) = hang_at(&world, 1);
    let asks = calling(7, "majordomus_session_attach", &json!({ "external_id": ID }));
    first.send(&asks);
    begun.recv_timeout(HANGS).unwrap();
    second.send(&asks);
    // Nothing tells that it waits; that it is answered below shows that it did.
    std::thread::park_timeout(Duration::from_millis(200));
    let mut same = site.over.connect();
    same.send("DELETE", "/mcp", &[("mcp-session-id", &second.session)], "");
    assert_eq!(same.read().status, 204);
    go.send(()).unwrap();
    for client in [&mut first, &mut second] {
        let answer = client.connection.read().json();
        assert_eq!(answer["result"]["structuredContent"]["recorded"], true, "{answer}");
    }
    site.settle();
    let held = site.over.shared.board.list();
    assert!(held.iter().all(|episode| episode.peer.is_none()), "held by a session that is gone: {held:?}");
    let back = attach(&mut site.over.client());
    assert!(back.get("taken_over_from").is_none() && back["episode"]["attachments"] == 3, "{back}");
    site.end();
    world.recover();
    exactly_one_record_for_each_sitting(&world, 1);
}
