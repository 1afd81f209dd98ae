use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::checkout::Checkout;
use crate::store::{Policy, Store};

/// A folder that looks enough like a repository, and what is kept of it.
fn store() -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let git = folder.path().join(".git");
    for name in ["objects", "refs"] {
        fs::create_dir_all(git.join(name)).unwrap();
    }
    fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    let store = Store::open(Checkout::find(folder.path()).unwrap(), Policy::default());
    (folder, store)
}

#[test]
fn a_token_is_new_each_time_and_for_its_user_alone() {
    let (folder, store) = store();
    assert_eq!(store.token(), None);
    let first = store.make_token("a").unwrap();
    assert_eq!(first.path, fs::canonicalize(folder.path()).unwrap().join(".git/majordomus/main/token"));
    assert_eq!(fs::metadata(&first.path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!((first.token.len(), store.token()), (32, Some(first.token.clone())));
    let second = store.make_token("b").unwrap();
    assert_ne!(second.token, first.token);
    assert_eq!(store.token(), Some(second.token.clone()));
    // A server that ends late takes nothing away from the one after it.
    store.forget_token(&first);
    assert_eq!(store.token(), Some(second.token.clone()));
    store.forget_token(&second);
    assert_eq!(fs::read_dir(second.path.parent().unwrap()).unwrap().count(), 0);
}

#[test]
fn what_is_no_token_is_none() {
    let (_folder, store) = store();
    let token = store.make_token("a").unwrap();
    for text in ["", "\r\n", "x", &"0".repeat(33), &"é".repeat(16), &format!("{}\n", &token.token[1..])] {
        fs::write(&token.path, text).unwrap();
        assert_eq!(store.token(), None, "{text:?}");
    }
}
