use serde_json::json;

use crate::testing::World;

/// A token of a shape that vendors give theirs.
fn secret() -> String {
    format!("ghp_{}", "a1B2".repeat(9))
}

#[test]
fn a_secret_in_what_a_client_wrote_is_shown_to_nobody() {
    let world = World::new();
    let secret = secret();
    let token = world.attach(&format!("id {secret}"));
    world.shared.peers.identify(&world.peer(), format!("client {secret}"));
    let said = json!({"intent": format!("use {secret}"), "scope": [format!("src/{secret}.rs")]});
    world.answer("peers.announce", Some(&token), &said);
    for id in ["episodes.list", "peers.list"] {
        let answer = world.answer(id, Some(&token), &json!({})).to_string();
        assert!(!answer.contains(&secret) && answer.contains("[redacted]"), "{id}: {answer}");
    }
    world.attach("other");
    let page = world.answer("episodes.list", None, &json!({"limit": 1}));
    let cursor = page["next_cursor"].as_str().unwrap();
    let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
    assert!(!cursor.contains(&hex), "{cursor}");
    assert_eq!(
        world.answer("episodes.list", None, &json!({"limit": 1, "cursor": cursor}))["episodes"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}
