use std::fs;
use std::path::Path;

use majordomus_episodes_core::EpisodeKey;
use majordomus_records::joining::Joining;
use majordomus_records::line::Witness;
use majordomus_records::{Checkout, Policy, Store};
use serde_json::{Value, json};

use crate::testing::World;

/// A server of a checkout that has no commit yet.
fn world(folder: &Path) -> (World, Store) {
    let git = folder.join(".git");
    for name in ["objects", "refs/heads"] {
        fs::create_dir_all(git.join(name)).unwrap();
    }
    fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    let store = Store::open(Checkout::find(folder).unwrap(), Policy::default());
    let records = store.clone();
    (World::with(|shared| shared.records = Some(records)), store)
}

/// An episode that hooks began.
fn hooked(store: &Store, provider: &str, id: &str) -> String {
    let key = EpisodeKey::new(provider, id).unwrap();
    store.start(&key, Witness::Hook, Joining::default()).unwrap().session_id
}

fn close(world: &World, arguments: &Value) -> Value {
    world.answer("episodes.close", None, arguments)
}

#[test]
fn an_episode_of_hooks_is_ended_by_a_person_and_its_record_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let (world, store) = world(folder.path());
    let session = hooked(&store, "claude-code", "a");
    let answer = close(&world, &json!({"external_id": "a"}));
    assert_eq!((&answer["recorded"], &answer["episode"]["provider"]), (&json!(true), &json!("claude-code")));
    let said = answer["episode"]["repository"].as_str().unwrap();
    assert!(said.starts_with("episode closed (closed, reason detach) into .ai/repo/sessions/"), "{said}");
    assert!(answer["episode"]["state"].is_null() && said.contains(&session), "{answer}");
    let (summary, _) = store.record(&session).unwrap().expect("the record is there at once");
    assert_eq!(summary.end_witness.as_deref(), Some("operator"));
    assert_eq!(world.refused("episodes.close", None, &json!({"external_id": "a"})).0, 404);
}

#[test]
fn where_several_have_one_id_the_person_says_which() {
    let folder = tempfile::tempdir().unwrap();
    let (world, store) = world(folder.path());
    hooked(&store, "claude-code", "a");
    hooked(&store, "generic", "a");
    let (status, message) = world.refused("episodes.close", None, &json!({"external_id": "a"}));
    assert!(status == 409 && message.contains("claude-code") && message.contains("generic"), "{status} {message}");
    let answer = close(&world, &json!({"external_id": "a", "provider": "generic"}));
    assert_eq!(answer["episode"]["provider"], "generic");
    assert_eq!(close(&world, &json!({"external_id": "a"}))["episode"]["provider"], "claude-code");
}

#[test]
fn an_id_that_nobody_has_is_not_found() {
    let folder = tempfile::tempdir().unwrap();
    let (world, _) = world(folder.path());
    for arguments in [json!({"external_id": "b"}), json!({"external_id": "b", "provider": "nobody"})] {
        assert_eq!(world.refused("episodes.close", None, &arguments).0, 404);
    }
}
