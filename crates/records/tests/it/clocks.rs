//! Clocks that jump, sleep and start again.

use std::time::Duration;

use majordomus_records::ending::EndedAs;

use crate::world::{GRACE, World, field};

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
