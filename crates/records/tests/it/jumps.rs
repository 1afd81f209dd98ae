//! What a record says of time where the clock was set, the machine slept, or a longer grace was promised.

use std::sync::Arc;
use std::time::Duration;

use majordomus_records::Policy;
use majordomus_records::clock::{Clock, rfc3339};
use majordomus_records::ending::EndedAs;

use crate::world::{GRACE, World, field};

const MINUTE: Duration = Duration::from_secs(60);
const YEAR_MS: i64 = 365 * 86_400_000;
const NIGHT: Duration = Duration::from_secs(8 * 3600);

/// A session of two minutes awake, in whose middle something happens to the clock; returns when it began, and its record.
fn two_minutes(meanwhile: impl FnOnce(&World)) -> (World, i64, String) {
    let world = World::new();
    let process = world.process();
    let began = world.clock.now().wall_ms;
    process.attach().unwrap();
    world.clock.advance(MINUTE);
    meanwhile(&world);
    process.seen().unwrap();
    world.clock.advance(MINUTE);
    process.detach().unwrap();
    world.recover();
    let mut records = world.records();
    assert_eq!(records.len(), 1);
    let (path, record) = records.remove(0);
    assert!(path.to_string_lossy().contains("/sessions/2027/01/"), "{}", path.display());
    (world, began, record)
}

#[test]
fn a_session_in_which_the_clock_jumps_forward_by_years_is_as_long_as_the_machine_was_awake() {
    for years in [1, 3, 30] {
        let (_, began, record) = two_minutes(|world| world.clock.jump(years * YEAR_MS));
        assert_eq!(field(&record, "started_at"), rfc3339(began));
        assert_eq!(field(&record, "last_activity_at"), rfc3339(began + 120_000));
        assert_eq!(field(&record, "closed_at"), rfc3339(began + 120_000));
        assert_eq!(field(&record, "clock_adjusted"), "true");
        assert!(record.contains("(2 minutes)"), "{record}");
    }
}

#[test]
fn a_clock_that_jumps_forward_and_is_set_right_again_is_the_same_two_minutes() {
    let (_, began, record) = two_minutes(|world| {
        world.clock.jump(3 * YEAR_MS);
        world.process().attach().unwrap();
        world.clock.jump(-3 * YEAR_MS);
    });
    assert_eq!(field(&record, "closed_at"), rfc3339(began + 120_000));
    assert_eq!(field(&record, "clock_adjusted"), "true");
}

#[test]
fn a_machine_that_sleeps_has_no_clock_that_jumps() {
    let (_, began, record) = two_minutes(|world| world.clock.sleep(NIGHT));
    let closed = began + 120_000 + i64::try_from(NIGHT.as_millis()).unwrap();
    assert_eq!((field(&record, "started_at"), field(&record, "closed_at")), (&*rfc3339(began), &*rfc3339(closed)));
    assert_eq!(field(&record, "clock_adjusted"), "false");
}

#[test]
fn a_night_asleep_is_no_silence() {
    let world = World::new();
    world.process().attach().unwrap();
    world.clock.sleep(NIGHT);
    assert!(matches!(world.process().expire().unwrap(), EndedAs::NotOver(left) if left == GRACE));
}

#[test]
fn a_time_server_that_moves_the_clock_gently_adjusts_nothing() {
    let (_, began, record) = two_minutes(|world| world.clock.jump(1500));
    assert_eq!(field(&record, "closed_at"), rfc3339(began + 121_500));
    assert_eq!(field(&record, "clock_adjusted"), "false");
}

#[test]
fn the_grace_that_a_client_was_promised_outlasts_the_usual_one_for_whoever_names_none() {
    let world = World::new();
    let promised = GRACE * 4;
    let with =
        |grace| world.process_on(Arc::new(world.disk.clone()), None, Policy { grace, idle: None, promise: None });
    with(Some(promised)).attach().unwrap();
    world.clock.advance(GRACE + MINUTE);
    assert!(with(None).store.sweep(Duration::from_secs(1)).expired.is_empty());
    assert!(matches!(with(None).expire().unwrap(), EndedAs::NotOver(left) if left == promised - GRACE - MINUTE));
    world.clock.advance(promised - GRACE - MINUTE);
    assert!(matches!(with(None).expire().unwrap(), EndedAs::Ended { .. }));
}

#[test]
fn a_grace_that_is_named_overrides_the_promised_one() {
    let world = World::new();
    let with =
        |grace| world.process_on(Arc::new(world.disk.clone()), None, Policy { grace, idle: None, promise: None });
    with(Some(GRACE * 4)).attach().unwrap();
    world.clock.advance(MINUTE);
    assert!(matches!(with(Some(MINUTE)).expire().unwrap(), EndedAs::Ended { .. }));
}

#[test]
fn a_long_sitting_after_a_comeback_is_seen_to_its_last_sign() {
    let world = World::new();
    drop({
        let first = world.process();
        first.attach().unwrap();
        // Enough that the comeback stands neither in the log's first bytes nor, later, in its last.
        (0..50).for_each(|_| {
            world.clock.advance(MINUTE);
            first.seen().unwrap();
        });
        first
    });
    let process = world.process();
    assert_eq!(process.attach().unwrap().attachments, 2);
    for _ in 0..300 {
        world.clock.advance(MINUTE);
        process.seen().unwrap();
    }
    let last = world.clock.now().wall_ms;
    drop(process);
    world.recover();
    let (_, record) = world.records().remove(0);
    assert_eq!(field(&record, "closed_at"), rfc3339(last));
}

#[test]
fn a_servers_own_grace_is_a_promise_to_its_own_clients_only() {
    let world = World::new();
    drop({
        let process = world.process();
        process.attach().unwrap();
        process
    });
    world.clock.advance(Duration::from_secs(10));
    let short = Policy { grace: Some(Duration::from_secs(1)), ..Policy::default() };
    let server = world.process_on(Arc::new(world.disk.clone()), None, short);
    let server = crate::world::Process { store: server.store.by_promise(), ..server };
    assert!(server.store.sweep(MINUTE).expired.is_empty(), "it was promised longer");
    assert_eq!(server.attach().unwrap().attachments, 2, "and comes back to its own");
    drop(server);
    world.clock.advance(Duration::from_secs(10));
    assert_eq!(
        world.process_on(Arc::new(world.disk.clone()), None, Policy::default()).store.sweep(MINUTE).expired.len(),
        1
    );
}
