//! What a person ends, by the id that the client gave.

use std::time::Duration;

use majordomus_episodes_core::EpisodeKey;
use majordomus_records::StoreError;
use majordomus_records::ending::EndedAs;
use majordomus_records::joining::Joining;
use majordomus_records::line::{EndOutcome, Witness};

use crate::world::{World, field, key};

fn named(provider: &str, external_id: &str) -> EpisodeKey {
    EpisodeKey::new(provider, external_id).unwrap()
}

#[test]
fn a_person_ends_what_anybody_began_and_whoever_holds_it() {
    let world = World::new();
    let holder = world.process();
    holder.attach().unwrap();
    let hooked = named("claude-code", "thread-7");
    holder.store.start(&hooked, Witness::Hook, Joining::default()).unwrap();
    world.clock.advance(Duration::from_secs(60));
    let person = world.process();
    for key in [&key(), &hooked] {
        let ended = person.store.close_by_operator(key).unwrap();
        let EndedAs::Ended { session_id, outcome: EndOutcome::Closed, .. } = ended else { panic!("got {ended:?}") };
        person.store.compose(&session_id, Duration::from_secs(1)).unwrap();
        assert_eq!(person.store.close_by_operator(key).unwrap(), EndedAs::NothingOpen { waiting: vec![] });
    }
    assert_eq!(world.records().len(), 2);
    for (_, record) in world.records() {
        let ended = ["outcome", "end_reason", "end_witness"].map(|name| field(&record, name));
        assert_eq!(ended, ["closed", "detach", "operator"]);
        assert_ne!(field(&record, "closed_at"), field(&record, "started_at"), "it is seen when it ends");
    }
}

#[test]
fn all_open_episodes_with_an_id_are_found_whoever_drew_them() {
    let world = World::new();
    let process = world.process();
    let secret = "work with ghp_0123456789abcdefghijABCDEFGHIJ012345";
    for (provider, external_id) in
        [("generic", secret), ("claude-code", secret), ("claude-code", "another"), ("generic", "Another")]
    {
        process.store.start(&named(provider, external_id), Witness::Hook, Joining::default()).unwrap();
    }
    let log = process.store.find(&named("generic", secret)).unwrap().unwrap().log;
    assert!(!log.start.unwrap().opened.external_id.contains("ghp_0123"), "the log does not say it");
    let mut found = process.store.open_keys(secret).unwrap();
    found.sort();
    assert_eq!(found, [named("claude-code", secret), named("generic", secret)]);
    assert_eq!(process.store.open_keys("another").unwrap(), [named("claude-code", "another")]);
    process.store.close_by_operator(&found[0]).unwrap();
    assert_eq!(process.store.open_keys(secret).unwrap(), [named("generic", secret)]);
    assert_eq!(process.store.open_keys("nobody's").unwrap(), []);
    assert!(matches!(process.store.open_keys("two\nlines"), Err(StoreError::Id(_))));
}
