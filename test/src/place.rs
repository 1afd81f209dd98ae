//! Things that a test puts in place.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::fs::{CWD, FileType, mknodat};

/// Makes a named pipe, which whoever opens it for reading waits at.
///
/// # Panics
/// Where it cannot be made.
pub fn named_pipe(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, 0o600.into(), 0).expect("a pipe can be made");
}

/// Writes a script that can be run, and makes the folders above it.
///
/// # Panics
/// Where it cannot be written.
pub fn executable(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("a folder can be made");
    fs::write(path, text).expect("a script can be written");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("a script can be made to run");
}
