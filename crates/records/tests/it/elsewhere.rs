//! Two servers at one episode: the one that has lost it finds that by the log, and its board says no more of it.

use std::time::Duration;

use majordomus_episodes_core::CloseReason;
use majordomus_episodes_core::board::{Attached, Touch};
use majordomus_episodes_core::driver::{Closing, EpisodeDriver, Outcome};
use majordomus_episodes_core::peers::Peer;
use majordomus_records::clock::{Clock, rfc3339};
use majordomus_records::ending::{EndedAs, Ending};
use majordomus_records::joining::{Joining, Whose};
use majordomus_records::line::{EndOutcome, Kind, Witness};
use majordomus_records::recovery::Judges;
use majordomus_records::state::key_hash;
use majordomus_records::store::Silence;

use crate::returning::{Server, only, silence};
use crate::sim::Fault;
use crate::world::{GRACE, Process, World, field, key};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const ID: &str = "thread-7";

fn log_bytes(world: &World) -> Vec<u8> {
    use majordomus_records::disk::Disk;
    let path = world.disk.below(&world.state().join("open")).remove(0);
    world.disk.read(&path, u64::MAX).unwrap()
}

#[test]
fn who_was_taken_over_from_at_another_server_is_told_and_shows_nothing_there() {
    let world = World::new();
    let (first, second) = (Server::new(&world), Server::new(&world));
    let (old, new) = (first.bridge(), second.bridge());
    first.attach(&old, ID, "c");
    world.clock.advance(MINUTE);
    second.attach(&new, ID, "d");
    let taken = only(&world);
    world.clock.advance(MINUTE);
    assert_eq!(first.board.touch(&old), Touch::Held);
    world.clock.advance(MINUTE / 2);
    first.board.reap();
    assert!(first.board.list().is_empty());
    assert_eq!(first.board.touch(&old), Touch::Lost { by: None });
    assert_eq!((only(&world).last_evidence, only(&world).connection), (taken.last_evidence, taken.connection));
    assert_eq!(silence(&world), Silence::Held);

    // It may take it back, and then it is the other one that learns it.
    let back = first.attach(&old, ID, "c");
    assert_eq!((back.resumed, back.recorded, back.episode.attachments), (true, true, 3));
    second.board.touch(&new);
    world.clock.advance(MINUTE);
    second.board.reap();
    assert_eq!(second.board.touch(&new), Touch::Lost { by: None });
    first.board.touch(&old);
    world.clock.advance(MINUTE);
    first.board.reap();
    assert_eq!(first.board.touch(&old), Touch::Held);
}

#[test]
fn who_asks_once_more_for_what_it_has_writes_and_syncs_nothing() {
    let world = World::new();
    let server = Server::new(&world);
    let peer = server.bridge();
    let first = server.attach(&peer, ID, "c");
    let (steps, bytes) = (world.disk.steps(), log_bytes(&world));
    assert_eq!(server.attach(&peer, ID, "c"), first, "the answer is the first one");
    assert_eq!((world.disk.steps(), log_bytes(&world)), (steps, bytes));
    // It was a message all the same.
    world.clock.advance(MINUTE);
    let again = server.attach(&peer, ID, "c");
    assert_eq!((again.episode.last_activity_seconds_ago, again.resumed, world.disk.steps()), (0, false, steps));
    let asked = world.clock.now();
    world.clock.advance(MINUTE);
    server.board.reap();
    assert_eq!(only(&world).last_evidence.unwrap().0, asked);
    assert_eq!(only(&world).attachments, 1);
}

#[test]
fn who_asks_once_more_for_what_was_taken_elsewhere_takes_it_back() {
    let world = World::new();
    let (first, second) = (Server::new(&world), Server::new(&world));
    let (old, new) = (first.bridge(), second.bridge());
    let before = first.attach(&old, ID, "c");
    second.attach(&new, ID, "d");
    let back = first.attach(&old, ID, "c");
    assert_eq!((back.resumed, back.recorded, back.episode.attachments), (true, true, 3));
    assert_eq!(back.episode.opened_at, before.episode.opened_at);
    assert_eq!((only(&world).carrier.as_deref(), only(&world).take_overs), (Some("c"), 2));
    let kept = first.attach(&old, ID, "c");
    assert_eq!(kept, Attached { taken_over_from: None, ..back });

    // What was ended elsewhere is begun anew.
    world.process().store.close_by_operator(&key()).unwrap();
    world.clock.advance(MINUTE);
    let anew = first.attach(&old, ID, "c");
    assert_eq!((anew.resumed, anew.recorded, anew.episode.attachments), (false, true, 1));
    assert_eq!(anew.episode.opened_at, rfc3339(world.clock.now().wall_ms));
}

#[test]
fn what_was_left_here_and_is_held_elsewhere_is_neither_listed_nor_judged() {
    // Its client had gone on elsewhere before this server noticed that it had left.
    let world = World::new();
    let (first, second) = (Server::new(&world), Server::new(&world));
    let old = first.bridge();
    first.attach(&old, ID, "c");
    second.attach(&second.bridge(), ID, "d");
    first.board.detach(&old);
    assert!(first.board.list().is_empty());
    assert_eq!(silence(&world), Silence::Held);
    world.clock.advance(GRACE * 2);
    assert!(first.board.reap().is_empty());

    // And after that, while it was stopped or not.
    for gap in [Duration::ZERO, GRACE * 2] {
        let world = World::new();
        let (first, second) = (Server::new(&world), Server::new(&world));
        let old = first.bridge();
        first.attach(&old, ID, "c");
        first.board.detach(&old);
        world.clock.advance(MINUTE);
        second.attach(&second.bridge(), ID, "c");
        world.clock.advance(gap);
        if gap == Duration::ZERO {
            assert_eq!(first.board.list().len(), 1, "until its time comes");
            world.clock.advance(GRACE);
        } else {
            first.board.excuse(gap);
        }
        assert!(first.board.reap().is_empty(), "it has not ended");
        assert!(first.board.list().is_empty());
        assert_eq!((silence(&world), only(&world).end.is_none()), (Silence::Held, true));
    }
}

#[test]
fn what_was_ended_elsewhere_is_lost_and_what_a_hook_joined_is_not() {
    let world = World::new();
    let server = Server::new(&world);
    let peer = server.bridge();
    server.attach(&peer, ID, "c");
    world.process().store.start(&key(), Witness::Hook, Joining::default()).unwrap();
    let heard = |server: &Server| {
        server.board.touch(&peer);
        world.clock.advance(MINUTE);
        server.board.reap();
        server.board.touch(&peer)
    };
    assert_eq!(heard(&server), Touch::Held);
    world.process().store.close_by_operator(&key()).unwrap();
    assert_eq!(heard(&server), Touch::Lost { by: None });
    assert!(server.board.list().is_empty());
}

#[test]
fn whose_an_episode_is_stands_in_the_log_and_not_in_how_long_it_is() {
    use majordomus_records::disk::{Disk, Open};
    let world = World::new();
    let (process, other) = (world.process(), world.process());
    process.store.start(&key(), Witness::Hook, Joining::default()).unwrap();
    let before = log_bytes(&world).len();
    process.store.mark(&key(), Kind::Activity, Witness::Hook, None, None).unwrap();
    let line = String::from_utf8(log_bytes(&world).split_off(before)).unwrap();
    let id = line.split("\"id\":\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let path = world.disk.below(&world.state().join("open")).remove(0);
    let mark = |numbers: std::ops::Range<u32>| {
        for number in numbers {
            let line = line.replace(&id, &format!("{number:016x}"));
            world.disk.open(&path, Open::Existing).unwrap().append(line.as_bytes()).unwrap();
        }
    };
    // So many marks that the last joiner stands neither at the beginning nor at the end.
    other.attach().unwrap();
    mark(0..100);
    process.attach().unwrap();
    mark(100..1000);
    assert!(line.len() * 900 > 80 << 10);
    let whose = |process: &Process| process.store.whose(&key(), (process.holder.id(), 1)).unwrap();
    assert_eq!((whose(&process), whose(&other)), (Whose::Its, Whose::Others));
    assert!(process.seen().unwrap());
}

#[test]
fn evidence_that_is_told_late_does_not_move_what_stands_there_back() {
    let world = World::new();
    let process = world.process();
    process.attach().unwrap();
    world.clock.advance(MINUTE);
    process.attach().unwrap();
    let (before, bytes) = (only(&world).last_evidence, log_bytes(&world));
    assert!(before.is_some());
    for ago in [MINUTE / 2, Duration::ZERO] {
        let whose = process.store.seen(&key(), (process.holder.id(), 1), ago).unwrap();
        assert_eq!((whose, log_bytes(&world) == bytes), (Whose::Its, true), "{ago:?}");
    }
    assert_eq!(only(&world).last_evidence, before);
    world.clock.advance(MINUTE);
    assert!(process.seen().unwrap());
    assert_eq!(only(&world).last_evidence.unwrap().0, world.clock.now());
}

#[test]
fn a_judge_does_not_write_what_it_remembers_as_evidence_of_anothers_connection() {
    let world = World::new();
    let (first, second) = (Server::new(&world), Server::new(&world));
    first.attach(&first.bridge(), ID, "c");
    world.clock.advance(MINUTE);
    let taken = world.clock.now();
    second.attach(&second.bridge(), ID, "d");
    world.clock.advance(MINUTE);
    // Its board has heard its client since, and believes that it was about this.
    drop(second);
    world.clock.advance(GRACE * 2);
    let (reason, judged) = (CloseReason::Expired, None);
    let (last_evidence_ago, asked_ago) = (Some(GRACE * 2), Duration::ZERO);
    let closing = Closing { key: key(), reason, by_operator: false, last_evidence_ago, asked_ago, judged };
    assert_eq!(first.driver.close(&closing).outcome, Outcome::Recorded);
    let (_, record) = &world.records()[0];
    assert_eq!(field(record, "closed_at"), rfc3339(taken.wall_ms), "when its client was last heard");
}

#[test]
fn a_process_that_was_stopped_ends_nothing_of_its_board_before_a_whole_rest_of_the_grace() {
    for attaches in [false, true] {
        let world = World::new();
        let server = Server::new(&world);
        let _serving = server.driver.store().serve().unwrap().unwrap();
        let peer = server.bridge();
        let opened = server.attach(&peer, ID, "c");
        server.board.detach(&peer);
        world.clock.advance(MINUTE);
        server.board.reap();
        let rest = GRACE - MINUTE;
        assert_eq!(silence(&world), Silence::Waiting(rest));

        // Twenty minutes in which nobody could come back; then all of its threads go on, in whatever order.
        let gap = MINUTE * 20;
        world.clock.advance(gap);
        let sweep = || {
            let keys: Vec<String> = server.board.keys().iter().map(key_hash).collect();
            server.driver.store().sweep_as(Judges::AllBut(&|key| keys.iter().any(|of| of == key)), SECOND).expired.len()
        };
        assert_eq!(sweep(), 0, "before its keeper has noticed");
        server.board.excuse(gap);
        assert!(server.board.reap().is_empty());
        assert_eq!(sweep(), 0);
        // Others see it so, too: whoever opens that key does not find it over.
        assert_eq!(silence(&world), Silence::Waiting(rest));
        world.clock.advance(rest - SECOND);
        assert!(server.board.reap().is_empty());
        assert_eq!((sweep(), silence(&world)), (0, Silence::Waiting(SECOND)));
        if attaches {
            let back = server.attach(&server.bridge(), ID, "e");
            assert_eq!((back.resumed, back.episode.opened_at), (true, opened.episode.opened_at));
            continue;
        }
        world.clock.advance(SECOND);
        assert_eq!(sweep(), 0, "that is the board's to judge");
        assert_eq!(server.board.reap().len(), 1);
        assert_eq!(field(&world.records()[0].1, "closed_at"), opened.episode.opened_at);
    }
}

#[test]
fn a_server_judges_by_the_logs_what_is_not_on_its_board() {
    let world = World::new();
    let gone = Server::new(&world);
    gone.attach(&gone.bridge(), ID, "c");
    drop(gone);
    world.clock.advance(GRACE);
    let server = Server::new(&world);
    let sweep = |judges| server.driver.store().sweep_as(judges, SECOND).expired.len();
    assert_eq!(sweep(Judges::Nothing), 0);
    assert_eq!(sweep(Judges::AllBut(&|hash| hash == key_hash(&key()))), 0);
    assert_eq!(sweep(Judges::AllBut(&|_| false)), 1);
}

/// A server whose opening could not be written, and is tried again.
fn unrecorded(world: &World) -> (Server, Peer) {
    let server = Server::new(world);
    let peer = server.bridge();
    world.disk.fail_at(1, Fault::Full);
    assert!(!server.attach(&peer, ID, "c").recorded);
    world.disk.make_room();
    (server, peer)
}

#[test]
fn an_opening_that_is_tried_again_takes_nothing_from_who_was_heard_at_another_server_since() {
    // Whether that one was there before or not, and whatever the first one does meanwhile.
    for (before, works) in [(false, false), (true, false), (false, true)] {
        let world = World::new();
        let second = Server::new(&world);
        let new = second.bridge();
        if before {
            second.attach(&new, ID, "d");
            world.clock.advance(SECOND);
        }
        let (first, old) = unrecorded(&world);
        world.clock.advance(SECOND);
        if before {
            second.board.touch(&new);
            world.clock.advance(MINUTE / 2);
            second.board.reap();
        } else {
            second.attach(&new, ID, "d");
            world.clock.advance(MINUTE / 2);
        }
        if works {
            assert_eq!(first.board.touch(&old), Touch::Held, "nobody has told it");
            world.clock.advance(SECOND);
        }
        let bytes = log_bytes(&world);
        assert!(first.board.reap().is_empty(), "it has not ended");
        assert!(log_bytes(&world) == bytes, "and nothing is written");
        assert!(first.board.list().is_empty());
        assert_eq!(first.board.touch(&old), Touch::Lost { by: None });
        assert_eq!((only(&world).carrier.as_deref(), only(&world).take_overs), (Some("d"), 0));
        second.board.touch(&new);
        world.clock.advance(MINUTE);
        second.board.reap();
        assert_eq!(second.board.touch(&new), Touch::Held);

        // Whoever attaches anew takes it as ever.
        let back = first.attach(&old, ID, "c");
        assert_eq!((back.recorded, back.resumed), (true, true));
        assert_eq!((only(&world).carrier.as_deref(), only(&world).take_overs), (Some("c"), 1));
    }
}

#[test]
fn an_opening_that_is_tried_again_joins_what_was_there_before_it_and_nobody_was_heard_at_since() {
    let world = World::new();
    let second = Server::new(&world);
    second.attach(&second.bridge(), ID, "d");
    world.clock.advance(SECOND);
    let (first, old) = unrecorded(&world);
    let asked = world.clock.now();
    // What a hook notes is no connection's.
    world.clock.advance(SECOND);
    world.process().store.mark(&key(), Kind::Activity, Witness::Hook, None, None).unwrap();
    world.clock.advance(MINUTE);
    first.board.reap();
    assert_eq!((only(&world).carrier.as_deref(), only(&world).take_overs), (Some("c"), 1));
    assert_eq!(first.board.touch(&old), Touch::Held);
    assert_eq!(only(&world).last_evidence.unwrap().0.up_ms, asked.up_ms + 1000, "never before what stood there");
}

#[test]
fn an_end_that_is_tried_again_ends_nothing_that_began_since() {
    for by_operator in [true, false] {
        let world = World::new();
        let server = Server::new(&world);
        let peer = server.bridge();
        server.attach(&peer, ID, "c");
        world.clock.advance(MINUTE);
        world.disk.fail_at(1, Fault::Full);
        if by_operator {
            assert!(server.board.close(ID, CloseReason::Detach).is_err());
        } else {
            assert!(!server.board.finish(&peer, None, "generic").unwrap().recorded);
        }
        // Meanwhile it is over, and another one begins and is left.
        world.disk.make_room();
        world.process().store.close_by_operator(&key()).unwrap();
        world.clock.advance(SECOND);
        let next = world.process();
        next.attach().unwrap();
        drop(next);
        let bytes = log_bytes(&world);
        world.clock.advance(MINUTE);
        let ended = server.board.reap();
        assert_eq!(ended[0].repository, format!("no open episode for generic {ID}; nothing to close"));
        assert!(log_bytes(&world) == bytes);
        assert!(matches!(silence(&world), Silence::Waiting(_)));
        assert!(server.board.list().is_empty());

        // Whoever asks now means that one.
        server.attach(&peer, ID, "c");
        assert!(server.board.finish(&peer, None, "generic").unwrap().recorded);
        assert!(world.process().store.find(&key()).unwrap().is_none());
    }
}

/// Ends on a person's word that was first given so long ago; whether that ended anything.
fn ends_by_what_was_asked(world: &World, asked_ago: Duration) -> bool {
    let (outcome, witness, last_evidence_ago) = (EndOutcome::Closed, Witness::Operator, None);
    let said = Ending::Said {
        outcome,
        reason: "detach",
        witness,
        holder: None,
        last_evidence_ago,
        asked_ago,
        hook: majordomus_records::ending::HookEnd::default(),
    };
    matches!(world.process().store.end(&key(), said).unwrap(), EndedAs::Ended { .. })
}

#[test]
fn an_end_that_is_tried_again_ends_what_it_was_asked_of_also_where_that_began_in_another_boot() {
    // The clock is behind: by it all that was before is as good as now.
    for by_ms in [0, -600_000, -7_200_000] {
        let world = World::new();
        drop({
            let before = world.process();
            before.attach().unwrap();
            before
        });
        world.clock.advance(MINUTE);
        world.clock.boot("second");
        world.clock.advance(MINUTE);
        world.clock.jump(by_ms);
        assert!(ends_by_what_was_asked(&world, MINUTE / 2), "set by {by_ms}");
    }
}

#[test]
fn an_end_is_of_what_began_just_before_it_however_its_age_is_rounded() {
    for (ms, ended) in [(0, true), (2, true), (3, false)] {
        let world = World::new();
        world.process().attach().unwrap();
        assert_eq!(ends_by_what_was_asked(&world, Duration::from_millis(ms)), ended, "{ms} ms");
    }
}
