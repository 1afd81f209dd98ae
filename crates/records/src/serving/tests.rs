use std::fs;

use super::{FORMAT, Published, Serving};
use crate::store::Store;
use crate::testing::{repository, store};

fn published(instance: &str) -> Published {
    let url = "http://127.0.0.1:8741".into();
    let socket = Some("/run/user/1000/majordomus/a.sock".into());
    Published { format: FORMAT, url, socket, instance: instance.into(), pid: 7, version: "1".into() }
}

/// Two processes' view of one repository.
fn stores() -> (tempfile::TempDir, Store, Store) {
    let folder = repository();
    let stores = (store(folder.path()), store(folder.path()));
    (folder, stores.0, stores.1)
}

#[test]
fn one_process_serves_a_checkout_and_the_next_one_once_it_has_gone() {
    let (_folder, one, other) = stores();
    let serving = one.serve().unwrap().unwrap();
    assert!(other.serve().unwrap().is_none());
    drop(serving);
    assert!(other.serve().unwrap().is_some());
}

#[test]
fn what_a_server_publishes_is_there_until_it_leaves() {
    let (_folder, one, other) = stores();
    assert_eq!(other.published(), None);
    let mut serving = one.serve().unwrap().unwrap();
    one.advertise(&mut serving, &published("a")).unwrap();
    assert_eq!(other.published(), Some(published("a")));
    serving.leave(&one);
    assert_eq!(other.published(), None);
}

#[test]
fn leaving_takes_nothing_away_that_the_next_server_published() {
    let (_folder, one, other) = stores();
    let mut first = one.serve().unwrap().unwrap();
    one.advertise(&mut first, &published("a")).unwrap();
    // As when its lock was lost with the file system that it was on.
    let path = first.published.clone();
    drop(first);
    let mut next = other.serve().unwrap().unwrap();
    other.advertise(&mut next, &published("b")).unwrap();
    let mut late = Serving { lock: tempfile::tempfile().unwrap(), published: path };
    late.published.as_mut().unwrap().1 = "a".into();
    late.leave(&one);
    assert_eq!(other.published(), Some(published("b")));
}

#[test]
fn what_nobody_serves_is_not_published_whatever_lies_there() {
    let (folder, one, other) = stores();
    let mut serving = one.serve().unwrap().unwrap();
    one.advertise(&mut serving, &published("a")).unwrap();
    // As a copy of the checkout has it, or one whose server was killed.
    drop(serving);
    assert!(folder.path().join(".git/majordomus/main/server.json").exists());
    assert_eq!(other.published(), None);
}

#[test]
fn a_file_that_is_none_of_ours_is_nobody() {
    let (folder, one, _) = stores();
    let _serving = one.serve().unwrap().unwrap();
    let root = folder.path().join(".git/majordomus/main");
    fs::create_dir_all(&root).unwrap();
    let [old, later] =
        [1, 3].map(|format| format!(r#"{{"format":{format},"url":"u","instance":"i","pid":1,"version":"v"}}"#));
    for bytes in ["", "{", "[]", &old, &later] {
        fs::write(root.join("server.json"), bytes).unwrap();
        assert_eq!(one.published(), None, "{bytes:?}");
    }
}

#[test]
fn a_server_of_a_version_that_publishes_otherwise_is_told_by_its_version() {
    let (_folder, one, other) = stores();
    let mut serving = one.serve().unwrap().unwrap();
    one.advertise(&mut serving, &published("a")).unwrap();
    assert_eq!(other.other_version(), None);
    let place = one.state().roots()[0].join("server.json");
    fs::write(place, r#"{"format":99,"version":"9.0.0","where":"elsewhere"}"#).unwrap();
    assert_eq!((other.published(), other.other_version()), (None, Some("9.0.0".into())));
}
