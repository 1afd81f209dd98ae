use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::testing::{repository, store};

#[test]
fn a_token_is_new_each_time_and_for_its_user_alone() {
    let folder = repository();
    let store = store(folder.path());
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
    let folder = repository();
    let store = store(folder.path());
    let token = store.make_token("a").unwrap();
    for text in ["", "\r\n", "x", &"0".repeat(33), &"é".repeat(16), &format!("{}\n", &token.token[1..])] {
        fs::write(&token.path, text).unwrap();
        assert_eq!(store.token(), None, "{text:?}");
    }
}
