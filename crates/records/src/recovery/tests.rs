use majordomus_episodes_core::EpisodeKey;

use super::Swept;
use crate::joining::Joining;
use crate::line::Witness;
use crate::state;
use crate::testing::{repository, store};

#[test]
fn what_was_begun_at_the_path_of_an_ended_log_is_not_put_aside_in_its_place() {
    let folder = repository();
    let store = store(folder.path());
    let key = EpisodeKey::new("generic", "thread-7").unwrap();
    store.start(&key, Witness::Connection, Joining::default()).unwrap();
    let path = state::open_log(store.state().preferred(), &key);

    // A sweep that had seen an ended log there comes to it only now.
    let mut swept = Swept::default();
    store.put_aside(std::slice::from_ref(&path), &mut swept);
    assert_eq!(swept, Swept::default());
    assert!(store.find(&key).unwrap().is_some(), "the sitting that is under way stays open");
}
