use std::time::Duration;

use super::{Attach, Call, Completion, Due, Machine, Wish, Work};
use crate::board::{Adopted, Limits, Touch};
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

fn attach(machine: &mut Machine, peer: u64, number: u64, now: Moment) -> Call {
    let wish = Wish { peer: PeerId(peer), key: key(number), client: None };
    match machine.attach(&wish, now) {
        Ok(Attach::Seated(seated)) => seated.open.expect("there is room"),
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
        machine.detach(PeerId(number), at(100));
    }
    machine
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
            assert_eq!(machine.touch(PeerId(peer), at(100 + second)), Touch::Held);
        }
    }
    assert_eq!(sweep(&mut machine, at(10_000)), 10);
    assert_eq!(machine.examined, 10);
}

#[test]
fn a_touch_looks_at_nothing_and_asks_nobody() {
    let mut machine = crowd(1_000, 0);
    for peer in 1..=1_000 {
        machine.touch(PeerId(peer), at(101));
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
    let wish = Wish { peer: PeerId(2_000), key: key(2_000), client: None };
    let Ok(Attach::Seated(seated)) = machine.attach(&wish, at(1000)) else { panic!("expected a seat") };
    assert!(seated.open.is_none(), "the 17th call is refused");
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
    machine.touch(PeerId(9), at(2000));
    machine.excuse(Duration::from_secs(1900));
    assert_eq!(machine.next_due(), Some(Duration::from_secs(2900)));
    assert_eq!(sweep(&mut machine, at(2899)), 0);
    assert_eq!(machine.list(at(2899))[0].last_activity_seconds_ago, 2799);
    assert_eq!(sweep(&mut machine, at(2900)), 1);
}

#[test]
fn evidence_does_not_wait_for_an_excused_gap_to_pass_again() {
    let mut machine = crowd(1, 0);
    machine.touch(PeerId(1), at(2000));
    machine.excuse(Duration::from_secs(1900));
    assert_eq!(machine.next_due(), Some(Duration::from_secs(2030)));
}

#[test]
fn evidence_that_had_to_wait_for_a_call_is_not_followed_too_soon() {
    let mut machine = Machine::new(Limits::default());
    let opening = attach(&mut machine, 1, 1, at(100));
    machine.touch(PeerId(1), at(101));
    assert!(matches!(machine.due(at(131), at(131)), Due::Nothing), "one call at a time runs for a key");
    machine.touch(PeerId(1), at(132));
    machine.complete(opening.ticket, report(Outcome::Recorded), at(150));
    assert_eq!(sweep(&mut machine, at(150)), 1);
    assert_eq!(sweep(&mut machine, at(179)), 0, "it would have been due at 162");
    assert_eq!(machine.next_due(), Some(Duration::from_secs(180)));
    assert_eq!(sweep(&mut machine, at(180)), 1);
}

#[test]
fn time_never_runs_backwards() {
    let mut machine = crowd(1, 0);
    machine.touch(PeerId(1), at(500));
    machine.touch(PeerId(1), at(400));
    assert_eq!(machine.list(at(300))[0].last_activity_seconds_ago, 0);
    assert_eq!(machine.list(at(501))[0].last_activity_seconds_ago, 1);
}

#[test]
fn a_detach_while_the_opening_runs_counts_once_it_has_returned() {
    let mut machine = Machine::new(Limits::default());
    let call = attach(&mut machine, 1, 1, at(10));
    machine.touch(PeerId(1), at(20));
    let departure = machine.detach(PeerId(1), at(30)).expect("it held one");
    assert!(departure.seen.is_none(), "one call at a time runs for a key");
    assert_eq!(machine.next_due(), None, "nothing is due while a call runs");

    let completion = machine.complete(call.ticket, report(Outcome::Recorded), at(40));
    let Completion::Opened { episode, .. } = completion else { panic!("expected an opening") };
    assert_eq!(episode.peer, None);
    let Due::Call(Call { ticket, work: Work::Seen(seen) }) = machine.due(at(40), at(40)) else {
        panic!("the evidence is owed")
    };
    assert_eq!((seen.ago, seen.peer), (Duration::from_secs(20), Some(PeerId(1))));
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
    assert_eq!(machine.list(at(3))[0].last_activity_seconds_ago, 5_002, "from before this process began");

    let Due::Call(Call { work: Work::Close(closing), .. }) = machine.due(at(101), at(101)) else {
        panic!("it has expired")
    };
    assert_eq!(closing.last_evidence_ago, None, "this process saw none");
    machine.adopt(adopted(2, 5_000, 5_000), at(101));
    assert_eq!(machine.next_due(), Some(Duration::from_secs(101)), "its grace is over");
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
    assert_eq!(machine.list(at(200)).len(), 2);
    assert!(machine.next_due().is_some());
}
