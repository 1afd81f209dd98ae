//! Clocks that jump, sleep and start again.

use std::time::Duration;

use majordomus_records::ending::EndedAs;
use majordomus_records::joining::Joining;
use majordomus_records::line::Witness;

use crate::world::{GRACE, World, field, key};

#[test]
fn a_wall_clock_that_jumps_forward_ends_nothing() {
    let world = World::new();
    drop({
        let process = world.process();
        process.attach().unwrap();
        process
    });
    world.clock.jump(8 * 3_600_000);
    assert!(matches!(world.process().expire().unwrap(), EndedAs::NotOver(_)));
}

#[test]
fn a_wall_clock_that_jumps_back_gives_no_negative_duration_and_says_so() {
    let world = World::new();
    let process = world.process();
    process.attach().unwrap();
    world.clock.advance(Duration::from_secs(60));
    world.clock.jump(-2 * 3_600_000);
    process.seen().unwrap();
    process.detach().unwrap();
    world.recover();
    let (_, record) = &world.records()[0];
    assert_eq!(field(record, "clock_adjusted"), "true");
    assert!(field(record, "closed_at") >= field(record, "started_at"));
    assert!(field(record, "last_activity_at") >= field(record, "started_at"));
}

#[test]
fn after_a_boot_the_wall_clock_decides() {
    let world = World::new();
    drop({
        let process = world.process();
        process.attach().unwrap();
        process
    });
    world.clock.boot("second");
    world.clock.advance(GRACE - Duration::from_secs(1));
    assert!(matches!(world.process().expire().unwrap(), EndedAs::NotOver(_)));
    world.clock.advance(Duration::from_secs(1));
    assert!(matches!(world.process().expire().unwrap(), EndedAs::Ended { .. }));
}

#[test]
fn evidence_from_the_future_of_another_boot_is_as_good_as_fresh() {
    let world = World::new();
    world.clock.jump(48 * 3_600_000);
    drop({
        let process = world.process();
        process.attach().unwrap();
        process
    });
    world.clock.boot("second");
    world.clock.jump(-48 * 3_600_000);
    assert!(matches!(world.process().expire().unwrap(), EndedAs::NotOver(left) if left == GRACE));
}

#[test]
fn what_is_written_late_after_a_boot_is_shown_when_it_was_whatever_the_clock_was_set_to() {
    for by_ms in [0, -7_200_000, -600_000, 7_200_000] {
        let world = World::new();
        drop({
            let process = world.process();
            process.attach().unwrap();
            process
        });
        world.clock.boot("second");
        world.clock.jump(by_ms);
        world.clock.advance(Duration::from_secs(60));
        let ago = Duration::from_secs(20);
        let process = world.process();
        let joining = Joining { connection: Some((&process.holder, 1)), ago, asked_ago: ago, ..Joining::default() };
        process.store.start(&key(), Witness::Connection, joining).unwrap();
        let logs = world.logs();
        let (last, _) = logs.last().unwrap().last_evidence.clone().unwrap();
        assert_eq!((last.boot.as_str(), last.up_ms), ("second", 40_000), "set by {by_ms}");
    }
}
