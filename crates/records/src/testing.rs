//! What unit tests share.

use std::fs;
use std::path::Path;

use crate::checkout::Checkout;
use crate::store::{Policy, Store};

/// A folder that looks enough like a repository.
pub(crate) fn repository() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let git = folder.path().join(".git");
    for name in ["objects", "refs"] {
        fs::create_dir_all(git.join(name)).unwrap();
    }
    fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    folder
}

/// What one process keeps of it.
pub(crate) fn store(folder: &Path) -> Store {
    Store::open(Checkout::find(folder).unwrap(), Policy::default())
}
