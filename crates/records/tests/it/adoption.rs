//! What a new server finds of what an earlier one held, whatever the machine and its clocks did in between.

use std::sync::Arc;
use std::time::Duration;

use majordomus_episodes_core::board::{Adopted, BoardOptions, EpisodeBoard};
use majordomus_records::RecordDriver;
use majordomus_records::clock::{Clock, rfc3339};
use majordomus_records::store::Silence;

use crate::holders::OneClock;
use crate::world::{GRACE, World, field, key};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR_MS: i64 = 3_600_000;
const YEAR_MS: i64 = 365 * 24 * HOUR_MS;

/// A client attached twice, was last heard a minute later, and its server died two minutes after that; when it began,
/// and when it was last heard, in milliseconds.
fn died() -> (World, i64, i64) {
    let world = World::new();
    let began = world.clock.now().wall_ms;
    drop({
        let first = world.process();
        first.attach().unwrap();
        first
    });
    let server = world.process();
    assert_eq!(server.attach().unwrap().attachments, 2);
    world.clock.advance(MINUTE);
    server.seen().unwrap();
    let heard = world.clock.now().wall_ms;
    world.clock.advance(MINUTE * 2);
    server.holder.beat(&server.store.now()).unwrap();
    drop(server);
    (world, began, heard)
}

/// What the next server puts on its board.
fn adopted(world: &World) -> Adopted {
    let store = world.process().store;
    let (of, open) = store.adoptable().unwrap().remove(0);
    assert_eq!(of, key());
    store.to_adopt(&of, &open)
}

#[test]
fn it_has_its_own_attachments_and_beginning_and_waits_from_the_loss_whatever_the_clock_was_set_to() {
    for jump in [0, 8 * HOUR_MS, -8 * HOUR_MS, YEAR_MS, -YEAR_MS] {
        let (world, began, _) = died();
        world.clock.advance(MINUTE * 5);
        world.clock.sleep(MINUTE * 600);
        world.clock.jump(jump);
        let found = adopted(&world);
        assert_eq!((found.attachments, found.opened_at), (2, rfc3339(began)), "{jump}");
        assert_eq!((found.silent_for, found.waiting_for), (MINUTE * 7, MINUTE * 5), "{jump}");
    }
}

#[test]
fn after_a_boot_it_has_waited_for_as_long_as_the_wall_clock_says_and_never_less_than_nothing() {
    // How the wall clock moved across the boot, and what the next server then finds: silent for, waiting for.
    let cases =
        [(300_000, 7, 5), (0, 2, 0), (-60_000, 1, 0), (-30 * 60_000, 0, 0), (-8 * HOUR_MS, 0, 0), (-YEAR_MS, 0, 0)];
    for (jump, silent, waiting) in cases {
        let (world, began, _) = died();
        world.clock.boot("second");
        world.clock.jump(jump);
        let found = adopted(&world);
        assert_eq!((found.attachments, found.opened_at), (2, rfc3339(began)), "{jump}");
        assert_eq!((found.silent_for, found.waiting_for), (MINUTE * silent, MINUTE * waiting), "{jump}");
    }
}

#[test]
fn what_is_over_after_a_boot_ends_at_its_last_evidence() {
    for jump in [20 * 60_000, YEAR_MS] {
        let (world, began, heard) = died();
        world.clock.boot("second");
        world.clock.jump(jump);
        assert_eq!(world.process().store.sweep(MINUTE).expired.len(), 1);
        let (_, record) = &world.records()[0];
        let times = ["started_at", "last_activity_at", "closed_at"].map(|name| field(record, name).to_owned());
        assert_eq!(times, [began, heard, heard].map(rfc3339), "{jump}");
        assert_eq!(field(record, "clock_adjusted"), "false");
    }
}

#[test]
fn evidence_from_the_future_of_another_boot_is_given_one_fresh_grace_and_not_another() {
    for jump in [-48 * HOUR_MS, -30 * YEAR_MS] {
        let (world, began, heard) = died();
        world.clock.boot("second");
        world.clock.jump(jump);
        let driver = Arc::new(RecordDriver::new(world.process().store).unwrap());
        let clock = Arc::new(OneClock(world.clock.clone()));
        let board = EpisodeBoard::with(BoardOptions { driver, clock, ..BoardOptions::default() });
        board.adopt(adopted(&world));
        world.clock.advance(GRACE - Duration::from_secs(1));
        assert!(board.reap().is_empty());
        assert!(world.process().store.sweep(MINUTE).expired.is_empty());
        world.clock.advance(Duration::from_secs(1));
        assert_eq!(board.reap().len(), 1, "{jump}");
        // Nothing is invented, and nothing lasts less than nothing.
        let (_, record) = &world.records()[0];
        let times = ["started_at", "last_activity_at", "closed_at"].map(|name| field(record, name).to_owned());
        assert_eq!(times, [began, heard, heard].map(rfc3339), "{jump}");
        assert_eq!(field(record, "outcome"), "interrupted");
    }
}

#[test]
fn a_machine_that_shares_the_repository_and_whose_clock_is_a_little_behind_ends_nothing_of_the_others() {
    let (world, _, _) = died();
    world.clock.boot("another machine");
    world.clock.advance(GRACE * 100);
    world.clock.jump(-i64::try_from((GRACE * 100).as_millis()).unwrap() - 30 * 60_000);
    let open = world.process().store.find(&key()).unwrap().unwrap();
    assert_eq!(open.silence, Silence::Waiting(GRACE));
}

#[test]
fn a_hooks_sitting_outlasts_a_night_and_clocks_that_jump_and_is_over_after_a_day_of_silence() {
    let of_hooks = majordomus_episodes_core::EpisodeKey::new("claude-code", "own").unwrap();
    let sitting = || {
        let world = World::new();
        let start = majordomus_records::joining::Joining::default();
        world.process().store.start(&of_hooks, majordomus_records::line::Witness::Hook, start).unwrap();
        world
    };
    let is_over = |world: &World| {
        let found = world.process().store.find(&of_hooks).unwrap().unwrap();
        matches!(found.silence, Silence::Over(_))
    };
    for change in [
        (|world: &World| world.clock.sleep(MINUTE * 60 * 72)) as fn(&World),
        |world| world.clock.jump(72 * HOUR_MS),
        |world| world.clock.jump(-72 * HOUR_MS),
        |world| {
            world.clock.boot("second");
            world.clock.jump(23 * HOUR_MS);
        },
        |world| {
            world.clock.boot("second");
            world.clock.jump(-72 * HOUR_MS);
        },
    ] {
        let world = sitting();
        change(&world);
        assert!(!is_over(&world));
        world.clock.advance(MINUTE * 60 * 24);
        assert!(is_over(&world));
        assert_eq!(world.process().store.sweep(MINUTE).expired.len(), 1);
        let (_, record) = &world.records()[0];
        assert_eq!(field(record, "closed_at"), field(record, "started_at"));
    }
}
