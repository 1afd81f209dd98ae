//! Who ends what nobody comes back to: one process at a time.

use majordomus_e2e::{World, until};

/// Hooks begin so many sittings, and nothing follows.
fn abandoned(world: &World, count: usize) {
    for number in 0..count {
        let payload = serde_json::json!({ "session_id": format!("c-{number}"), "source": "startup" });
        assert!(world.hook("start", &payload).contains("opened at"));
    }
}

#[test]
fn without_a_server_a_command_ends_at_most_ten_of_those_that_are_past_their_time_and_the_next_one_the_rest() {
    let world = World::new();
    abandoned(&world, 12);
    until("a second passes", || {
        let said = world.run(&["episodes", "--json"]);
        let listed: serde_json::Value = serde_json::from_str(&said.out).ok()?;
        let episodes = listed["episodes"].as_array()?;
        episodes.iter().all(|one| one["last_activity_seconds_ago"].as_u64() >= Some(1)).then_some(())
    });
    assert_eq!(world.record_files().len(), 0, "a day is not over");
    let _ = world.run(&["episodes", "--idle-seconds", "1"]);
    assert_eq!(world.record_files().len(), 10);
    let _ = world.run(&["episodes", "--idle-seconds", "1"]);
    assert_eq!(world.record_files().len(), 12);
    assert!(world.records().iter().all(|record| record.end() == ("interrupted", "expired", "reaper")));
}

#[test]
fn while_a_server_has_the_checkout_no_command_judges_and_a_hook_never_does() {
    let world = World::new();
    abandoned(&world, 2);
    let mut server = world.client();
    until("it is the server", || world.run(&["serve", "status"]).code.filter(|code| *code == 0));
    until("a second passes", || {
        let said = world.run(&["episodes", "--json", "--idle-seconds", "1"]);
        let listed: serde_json::Value = serde_json::from_str(&said.out).ok()?;
        let episodes = listed["episodes"].as_array()?;
        episodes.iter().all(|one| one["last_activity_seconds_ago"].as_u64() >= Some(2)).then_some(())
    });
    let _ = world.run(&["sessions", "list", "--idle-seconds", "1"]);
    assert_eq!(world.record_files().len(), 0, "the server is the one to judge");
    server.ping();
    assert_eq!(server.lose().code, Some(0));

    let payload = serde_json::json!({ "session_id": "another", "source": "startup" });
    world.hook("start", &payload);
    assert_eq!(world.record_files().len(), 0, "a hook touches only its own");
    let _ = world.run(&["episodes", "--idle-seconds", "1"]);
    assert_eq!(world.record_files().len(), 2);
}
