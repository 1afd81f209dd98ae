use std::time::Duration;

use super::{Attach, Call, Completion, Due, Machine, Wish, Work};
use crate::board::{Adopted, BoardError, Limits, Touch};
use crate::clock::Moment;
use crate::driver::{Outcome, Report};
use crate::ids::{EpisodeKey, PeerId};

fn at(seconds: u64) -> Moment {
    Moment { awake: Duration::from_secs(seconds), wall_ms: 0 }
}

fn key(number: u64) -> EpisodeKey {
    EpisodeKey::new("generic", &format!("thread-{number}")).unwrap()
}

fn report(outcome: Outcome) -> Report {
    Report { line: format!("{outcome:?}"), outcome, known: None }
}

/// Of a process.
fn wish(peer: u64, number: u64) -> Wish {
    Wish {
        peer: PeerId(peer),
        by_process: true,
        key: key(number),
        client: None,
        handle: None,
        again: false,
        carrier: None,
    }
}

fn attach(machine: &mut Machine, peer: u64, number: u64, now: Moment) -> Call {
    let wish = wish(peer, number);
    match machine.attach(&wish, now) {
        Ok(Attach::Seated(seated)) => seated.open,
        other => panic!("expected a seat, got {other:?}"),
    }
}

fn open(machine: &mut Machine, peer: u64, number: u64, now: Moment) {
    let call = attach(machine, peer, number, now);
    machine.complete(call.ticket, report(Outcome::Recorded), now);
}

/// Makes every call that is due; returns how many that were.
fn sweep(machine: &mut Machine, now: Moment) -> usize {
    let mut calls = 0;
    while let Due::Call(call) = machine.due(now, now) {
        machine.complete(call.ticket, report(Outcome::Recorded), now);
        calls += 1;
    }
    calls
}

/// `count` episodes, the first `gone` of which were left at the beginning.
fn crowd(count: u64, gone: u64) -> Machine {
    let mut machine = Machine::new(Limits::default());
    for number in 1..=count {
        open(&mut machine, number, number, at(100));
    }
    for number in 1..=gone {
        leave(&mut machine, number, at(100));
    }
    machine
}

fn leave(machine: &mut Machine, peer: u64, now: Moment) {
    let departure = machine.detach(PeerId(peer), now).expect("it held one");
    let call = departure.tell.expect("there is room");
    machine.complete(call.ticket, report(Outcome::Recorded), now);
}

#[test]
fn a_sweep_looks_at_what_is_due_and_at_nothing_else() {
    for count in [100, 5_000] {
        let mut machine = crowd(count, 7);
        assert_eq!(sweep(&mut machine, at(999)), 0);
        assert_eq!(machine.examined, 0, "of {count}");
        assert_eq!(sweep(&mut machine, at(1000)), 7);
        assert_eq!(machine.examined, 7, "of {count}");
        assert_eq!(machine.len() as u64, count - 7);
    }
}

#[test]
fn silent_peers_cost_a_sweep_nothing_and_busy_ones_one_look_each() {
    let mut machine = crowd(1_000, 0);
    for second in 0..20 {
        for peer in 1..=10 {
            assert_eq!(machine.touch(PeerId(peer), at(100 + second).awake), Touch::Held);
        }
    }
    assert_eq!(sweep(&mut machine, at(10_000)), 10);
    assert_eq!(machine.examined, 10);
}

#[test]
fn a_touch_looks_at_nothing_and_asks_nobody() {
    let mut machine = crowd(1_000, 0);
    for peer in 1..=1_000 {
        machine.touch(PeerId(peer), at(101).awake);
    }
    assert_eq!((machine.examined, machine.running()), (0, 0));
    assert!(machine.deadlines.is_empty());
}

#[test]
fn calls_that_nobody_waits_for_leave_room_for_those_that_somebody_does() {
    let mut machine = crowd(100, 100);
    let mut calls = Vec::new();
    while let Due::Call(call) = machine.due(at(1000), at(1000)) {
        calls.push(call);
    }
    assert_eq!(calls.len(), 4);
    assert!(matches!(machine.due(at(1000), at(1000)), Due::NoRoom));
    for number in 1..=12 {
        calls.push(attach(&mut machine, 1_000 + number, 1_000 + number, at(1000)));
    }
    let before = machine.len();
    for key in [2_000, 1_001] {
        let refused = machine.attach(&wish(2_000, key), at(1000));
        assert!(matches!(refused, Err(BoardError::Unavailable { .. }) | Ok(Attach::Wait)), "{refused:?}");
    }
    // Who is refused has opened nothing, and nothing is opened for it later.
    assert_eq!((machine.len(), machine.held_by(PeerId(2_000))), (before, None));
}

#[test]
fn the_next_look_is_put_off_where_nothing_can_begin() {
    let mut machine = crowd(100, 100);
    assert_eq!(machine.next_due(), Some(Duration::from_secs(1000)));
    while let Due::Call(call) = machine.due(at(1000), at(1000)) {
        std::mem::forget(call);
    }
    assert_eq!(machine.next_due(), Some(Duration::from_secs(1010)));
}

#[test]
fn an_excused_gap_moves_an_expiry_and_no_age() {
    let mut machine = crowd(1, 1);
    machine.touch(PeerId(9), at(2000).awake);
    machine.excuse(Duration::from_secs(1900));
    assert_eq!(sweep(&mut machine, at(2000)), 1, "the driver is told of it");
    assert_eq!(machine.next_due(), Some(Duration::from_secs(2900)));
    assert_eq!(sweep(&mut machine, at(2899)), 0);
    assert_eq!(machine.list(at(2899).awake)[0].last_activity_seconds_ago, 2799);
    assert_eq!(sweep(&mut machine, at(2900)), 1);
}

#[test]
fn evidence_does_not_wait_for_an_excused_gap_to_pass_again() {
    let mut machine = crowd(1, 0);
    machine.touch(PeerId(1), at(2000).awake);
    machine.excuse(Duration::from_secs(1900));
    assert_eq!(machine.next_due(), Some(Duration::from_secs(2030)));
}

#[test]
fn evidence_that_had_to_wait_for_a_call_is_not_followed_too_soon() {
    let mut machine = Machine::new(Limits::default());
    let opening = attach(&mut machine, 1, 1, at(100));
    machine.touch(PeerId(1), at(101).awake);
    assert!(matches!(machine.due(at(131), at(131)), Due::Nothing), "one call at a time runs for a key");
    machine.touch(PeerId(1), at(132).awake);
    machine.complete(opening.ticket, report(Outcome::Recorded), at(150));
    assert_eq!(sweep(&mut machine, at(150)), 1);
    assert_eq!(sweep(&mut machine, at(179)), 0, "it would have been due at 162");
    assert_eq!(machine.next_due(), Some(Duration::from_secs(180)));
    assert_eq!(sweep(&mut machine, at(180)), 1);
}

#[test]
fn time_never_runs_backwards() {
    let mut machine = crowd(1, 0);
    machine.touch(PeerId(1), at(500).awake);
    machine.touch(PeerId(1), at(400).awake);
    assert_eq!(machine.list(at(300).awake)[0].last_activity_seconds_ago, 0);
    assert_eq!(machine.list(at(501).awake)[0].last_activity_seconds_ago, 1);
}

#[test]
fn a_detach_while_the_opening_runs_counts_once_it_has_returned() {
    let mut machine = Machine::new(Limits::default());
    let call = attach(&mut machine, 1, 1, at(10));
    machine.touch(PeerId(1), at(20).awake);
    let departure = machine.detach(PeerId(1), at(30)).expect("it held one");
    assert!(departure.tell.is_none(), "one call at a time runs for a key");
    assert_eq!(machine.next_due(), None, "nothing is due while a call runs");

    let completion = machine.complete(call.ticket, report(Outcome::Recorded), at(40));
    let Completion::Opened { episode, .. } = completion else { panic!("expected an opening") };
    assert_eq!(episode.peer, None);
    let Due::Call(Call { ticket, work: Work::Tell(telling) }) = machine.due(at(40), at(40)) else {
        panic!("the evidence is owed")
    };
    let (seen, left) = (telling.seen.expect("evidence"), telling.left.expect("a departure"));
    assert_eq!((seen.ago, seen.peer), (Duration::from_secs(20), Some(PeerId(1))));
    assert_eq!((left.ago, left.peer), (Duration::from_secs(10), PeerId(1)));
    machine.complete(ticket, report(Outcome::Recorded), at(41));
    assert_eq!(machine.next_due(), Some(Duration::from_secs(930)), "the grace runs from the detach");
}

#[test]
fn an_adopted_episode_waits_for_the_rest_of_its_grace() {
    let mut machine = Machine::new(Limits::default());
    let adopted = |number, silent, waiting| Adopted {
        key: key(number),
        opened_at: "2026-01-01T00:00:00.000Z".into(),
        attachments: 3,
        silent_for: Duration::from_secs(silent),
        waiting_for: Duration::from_secs(waiting),
        line: "known".into(),
    };
    machine.adopt(adopted(1, 5_000, 800), at(1));
    machine.adopt(adopted(1, 0, 0), at(2));
    assert_eq!(machine.next_due(), Some(Duration::from_secs(101)));
    assert_eq!(machine.list(at(3).awake)[0].last_activity_seconds_ago, 5_002, "from before this process began");

    let Due::Call(Call { work: Work::Close(closing), .. }) = machine.due(at(101), at(101)) else {
        panic!("it has expired")
    };
    assert_eq!(closing.last_evidence_ago, None, "this process saw none");
    machine.adopt(adopted(2, 5_000, 5_000), at(101));
    assert_eq!(machine.next_due(), Some(Duration::from_secs(101)), "its grace is over");
}

/// Of a caller that has no hold but its streams.
fn caller(peer: u64, number: u64) -> Wish {
    Wish { by_process: false, ..wish(peer, number) }
}

fn open_without_hold(machine: &mut Machine, peer: u64, now: Moment) {
    let Ok(Attach::Seated(seated)) = machine.attach(&caller(peer, peer), now) else { panic!("expected a seat") };
    machine.complete(seated.open.ticket, report(Outcome::Recorded), now);
}

/// Lets one that is busy all the time be told of and looked at as often as that is due; counts the looks beside the
/// reports of its evidence.
fn looks_at_a_busy_one(machine: &mut Machine, minutes: std::ops::Range<u64>) -> u64 {
    let (before, mut told) = (machine.examined, 0);
    for minute in minutes {
        let now = at(100 + 60 * minute);
        machine.touch(PeerId(1), now.awake);
        told += sweep(machine, now) as u64;
    }
    machine.examined - before - told
}

#[test]
fn one_that_is_busy_all_the_time_is_looked_at_only_to_tell_of_it() {
    let mut machine = Machine::new(Limits::default());
    open_without_hold(&mut machine, 1, at(100));
    assert_eq!(looks_at_a_busy_one(&mut machine, 1..14_400), 0);
    assert_eq!(machine.deadlines.len(), 1);
}

#[test]
fn a_loss_that_was_answered_is_looked_at_once_more() {
    let mut machine = Machine::new(Limits::default());
    machine.hold(PeerId(1), at(50));
    open_without_hold(&mut machine, 1, at(100));
    machine.release(PeerId(1), at(100));
    assert_eq!(looks_at_a_busy_one(&mut machine, 1..3), 1);
    assert_eq!(looks_at_a_busy_one(&mut machine, 3..14_400), 0);
}

#[test]
fn callers_without_a_hold_cost_a_sweep_nothing_and_a_touch_looks_at_nothing() {
    let mut machine = Machine::new(Limits::default());
    for peer in 1..=1_000 {
        open_without_hold(&mut machine, peer, at(100));
        machine.touch(PeerId(peer), at(100).awake);
    }
    assert_eq!(machine.examined, 0);
    assert_eq!(sweep(&mut machine, at(100 + 86_399)), 1_000, "that is their evidence");
    machine.examined = 0;
    assert_eq!(sweep(&mut machine, at(100 + 86_400)), 1_000);
    assert_eq!(machine.examined, 1_000);
}

#[test]
fn silence_is_not_judged_more_strictly_than_loss() {
    let limits = Limits { grace: Duration::from_secs(200_000), ..Limits::default() };
    let mut machine = Machine::new(limits);
    open_without_hold(&mut machine, 1, at(100));
    assert_eq!(sweep(&mut machine, at(200_099)), 0);
    assert_eq!(sweep(&mut machine, at(200_100)), 1);
}

#[test]
fn a_grace_without_length_is_over_with_the_loss() {
    let mut machine = Machine::new(Limits { grace: Duration::ZERO, ..Limits::default() });
    machine.hold(PeerId(1), at(100));
    open_without_hold(&mut machine, 1, at(100));
    machine.release(PeerId(1), at(100));
    assert_eq!(machine.of_peer(PeerId(1), at(100).awake).unwrap().peer, None);
    let Due::Call(Call { work: Work::Close(_), .. }) = machine.due(at(100), at(100)) else { panic!("it has expired") };
}

#[test]
fn an_excused_gap_is_no_silence_and_moves_a_loss() {
    let mut machine = Machine::new(Limits::default());
    open_without_hold(&mut machine, 1, at(100));
    machine.hold(PeerId(2), at(100));
    open_without_hold(&mut machine, 2, at(100));
    machine.release(PeerId(2), at(100));
    machine.excuse(Duration::from_secs(500));
    let shown = |machine: &mut Machine, now: Moment| {
        [1, 2].map(|peer| machine.of_peer(PeerId(peer), now.awake).unwrap().peer == Some(PeerId(peer)))
    };
    assert_eq!(shown(&mut machine, at(689)), [true, true]);
    assert_eq!(shown(&mut machine, at(690)), [true, false]);
    assert_eq!(shown(&mut machine, at(1_499)), [true, false]);
    assert_eq!(shown(&mut machine, at(1_500)), [false, false]);
    sweep(&mut machine, at(1_499));
    assert_eq!(machine.len(), 2);
    sweep(&mut machine, at(1_500));
    assert_eq!(machine.len(), 1, "the loss");
    sweep(&mut machine, at(86_999));
    assert_eq!(machine.len(), 1);
    sweep(&mut machine, at(87_000));
    assert_eq!(machine.len(), 0);
}

#[test]
fn evidence_that_is_younger_than_an_interval_is_told_with_the_loss() {
    let mut machine = Machine::new(Limits { stream_patience: Duration::from_secs(5), ..Limits::default() });
    machine.hold(PeerId(1), at(100));
    open_without_hold(&mut machine, 1, at(100));
    machine.touch(PeerId(1), at(101).awake);
    machine.release(PeerId(1), at(102));
    let Due::Call(Call { ticket, work: Work::Tell(telling) }) = machine.due(at(107), at(107)) else {
        panic!("the patience is over")
    };
    assert_eq!(telling.seen.expect("evidence").ago, Duration::from_secs(6));
    assert_eq!(telling.left.expect("a loss").ago, Duration::from_secs(5));
    machine.complete(ticket, report(Outcome::Recorded), at(107));
    assert_eq!(machine.next_due(), Some(Duration::from_secs(1_002)), "and not once more by itself");
}

#[test]
fn those_that_come_back_while_too_many_calls_run_are_told_once_there_is_room() {
    let mut machine = Machine::new(Limits::default());
    for peer in 1..=6 {
        machine.hold(PeerId(peer), at(100));
        open_without_hold(&mut machine, peer, at(100));
        machine.release(PeerId(peer), at(100));
    }
    assert_eq!(sweep(&mut machine, at(190)), 6);
    for peer in 1..=6 {
        assert_eq!(machine.touch(PeerId(peer), at(191).awake), Touch::Held);
    }
    let mut told: Vec<Call> = std::iter::from_fn(|| machine.tell_returned()).collect();
    assert_eq!(told.len(), 4);
    assert!(matches!(machine.due(at(191), at(191)), Due::NoRoom));
    for call in told.drain(..) {
        machine.complete(call.ticket, report(Outcome::Recorded), at(191));
    }
    assert_eq!(machine.next_due(), Some(Duration::from_secs(191)));
    assert_eq!(sweep(&mut machine, at(191)), 2);
    assert!(!machine.has_returned());
}

#[test]
fn streams_are_forgotten_with_their_peer_and_with_the_last_of_them() {
    let mut machine = Machine::new(Limits::default());
    for _ in 0..3 {
        assert!(machine.hold(PeerId(1), at(1)).is_none());
    }
    machine.hold(PeerId(2), at(1));
    machine.detach(PeerId(2), at(2));
    for _ in 0..4 {
        machine.release(PeerId(1), at(3));
        machine.release(PeerId(2), at(3));
    }
    assert!(machine.streams.is_empty());
}

#[test]
fn unbounded_spans_are_taken_as_very_long_ones() {
    let mut machine = crowd(1, 1);
    machine.excuse(Duration::MAX);
    machine.excuse(Duration::MAX);
    machine.adopt(
        Adopted {
            key: key(2),
            opened_at: String::new(),
            attachments: 0,
            silent_for: Duration::MAX,
            waiting_for: Duration::MAX,
            line: String::new(),
        },
        at(200),
    );
    assert_eq!(machine.list(at(200).awake).len(), 2);
    assert!(machine.next_due().is_some());
}
