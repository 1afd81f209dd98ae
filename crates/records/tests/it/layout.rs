//! Where things are put.

use std::time::Duration;

use majordomus_records::ending::EndedAs;

use crate::world::{World, key};

#[test]
fn an_open_episode_is_one_log_and_a_finished_one_is_one_record() {
    let world = World::new();
    let process = world.process();
    process.attach().unwrap();
    let logs = world.disk.below(&world.state().join("open"));
    assert_eq!(logs.len(), 1);
    let hash = majordomus_records::state::key_hash(&key());
    assert_eq!(logs[0].file_name().unwrap().to_str().unwrap(), format!("thread-7-{hash}.jsonl"));
    let EndedAs::Ended { session_id, record, .. } = process.detach().unwrap() else { panic!("it was attached") };
    assert!(world.disk.below(&world.state().join("open")).is_empty());
    process.store.compose(&session_id, Duration::from_secs(1)).unwrap();
    assert!(world.disk.below(&world.state().join("ended")).is_empty());
    assert_eq!(world.records()[0].0, world.root().join(&record));
    assert!(record.starts_with(&format!(".ai/repo/sessions/2027/01/{session_id}--")), "{record}");
}

#[test]
fn a_page_of_records_reads_only_what_it_shows() {
    let world = World::new();
    for round in 0..30 {
        let process = world.process();
        process.attach().unwrap();
        process.detach().unwrap();
        world.clock.advance(Duration::from_secs(86_400 * (1 + round % 3)));
    }
    world.process().store.sweep(Duration::from_secs(10));
    world.process().store.sweep(Duration::from_secs(10));
    world.process().store.sweep(Duration::from_secs(10));
    let store = world.process().store;
    let mut after = None;
    let mut ids = Vec::new();
    loop {
        let page = store.records(after.as_deref(), 7).unwrap();
        assert!(page.records.len() <= 7);
        ids.extend(page.records.into_iter().map(|record| record.session_id));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(ids.len(), 30);
    assert!(ids.windows(2).all(|pair| pair[0] > pair[1]), "newest first, each once");
}
