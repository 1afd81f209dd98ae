use std::fs;
use std::thread;
use std::time::Duration;

use majordomus_capability::catalogue;
use majordomus_episodes_core::peers::Transport;
use majordomus_records::store::Silence;
use majordomus_records::{Checkout, Policy};

use super::{House, HouseOptions};

#[test]
fn what_is_on_its_board_is_not_judged_by_its_log() {
    let folder = tempfile::tempdir().unwrap();
    for part in ["objects", "refs"] {
        fs::create_dir_all(folder.path().join(".git").join(part)).unwrap();
    }
    fs::write(folder.path().join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    let grace = Duration::from_millis(5);
    let open = || {
        let mut options = HouseOptions::new(catalogue(), Checkout::find(folder.path()));
        options.policy = Policy { grace: Some(grace), ..Policy::default() };
        House::open(options).unwrap()
    };
    // Nobody acts on this board's deadlines, as while a process is stopped and when it goes on.
    let (house, other) = (open(), open());
    let store = house.inner.recorder.as_ref().unwrap().store();
    let peer = house.shared().peers.attach(Transport::Stdio);
    house.shared().board.attach(&peer, "thread-7", "generic");
    house.shared().board.detach(&peer);
    assert!(house.shared().board.settle(Duration::from_secs(5)));
    let is_over = || matches!(store.open_episodes().unwrap()[0].silence, Silence::Over(_));
    while !is_over() {
        thread::park_timeout(grace);
    }
    assert!(house.sweep(store).is_empty());
    assert_eq!(store.open_episodes().unwrap().len(), 1);
    assert!(other.sweep(store).is_empty());
    assert!(store.open_episodes().unwrap().is_empty(), "it is not on that one's");
}
