//! Requests that are complete in themselves, over a bridge to another process's server.

use majordomus_e2e::{Client, World, session_id, state_of};
use serde_json::json;

/// Starts a client of no session whose server is another process.
fn bridge(world: &World) -> Client {
    let told = world.told().expect("somebody serves");
    let mut client = world.server(&["mcp"]);
    assert!(client.modern("server/discover", &json!({}))["result"].is_object());
    assert_ne!(told.pid, client.pid());
    client
}

#[test]
fn a_sitting_over_a_bridge_is_lost_with_it_and_found_again_by_its_handle() {
    let world = World::new();
    let holder = world.holder();
    let mut first = bridge(&world);
    let (opened, handle) = first.modern_attach("my-thread");
    assert_eq!(state_of(&world.episodes(), "my-thread"), "open");
    first.kill9();
    world.until_detached("my-thread");
    let mut second = bridge(&world);
    second.show(&handle);
    assert_eq!(state_of(&world.episodes(), "my-thread"), "open");
    second.modern_detach(&handle);
    let record = world.record();
    assert_eq!((record.text("session_id"), record.end().0), (session_id(&opened).as_str(), "closed"));
    assert_eq!(record["attachments"], 1);
    assert_eq!((second.lose().code, holder.lose().code), (Some(0), Some(0)));
}

#[test]
fn handles_stay_good_when_the_process_that_serves_dies() {
    let world = World::new();
    let holder = world.holder();
    let (mut one, mut other) = (bridge(&world), bridge(&world));
    let (opened, handle) = one.modern_attach("one");
    let (_, theirs) = other.modern_attach("other");
    holder.kill9();
    for (client, handle, id) in [(&mut one, &handle, "one"), (&mut other, &theirs, "other")] {
        let mine = client.modern_done("majordomus_episodes", &json!({ "episode_handle": handle }))["mine"].clone();
        assert_eq!((&mine["external_id"], &mine["attachments"]), (&json!(id), &json!(1)));
    }
    let closed = one.modern_detach(&handle);
    assert_eq!(closed["recorded"], true);
    // Another one's handle ends nothing of somebody else's, also at the new server.
    let refused =
        one.modern_tool("majordomus_session_detach", &json!({ "episode_handle": handle, "external_id": "other" }));
    assert_eq!(refused["isError"], true, "{refused}");
    other.modern_detach(&theirs);
    let records = world.records();
    assert_eq!(records.len(), 2);
    assert!(records.iter().all(|record| record["attachments"] == 1 && record["take_overs"] == 0));
    assert!(records.iter().any(|record| record.text("session_id") == session_id(&opened)));
}
