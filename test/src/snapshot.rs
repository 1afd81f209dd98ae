//! What stands in a folder, byte for byte.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Every entry below a folder by its path: a file's bytes, a link's target, nothing for a folder.
pub type Files = BTreeMap<PathBuf, Vec<u8>>;

/// Reads everything below `folder`, except what `leave_out` names by its path relative to it.
///
/// # Panics
/// Where something cannot be read.
#[must_use]
pub fn files(folder: &Path, leave_out: &[&str]) -> Files {
    let mut found = Files::new();
    collect(folder, Path::new(""), leave_out, &mut found);
    found
}

fn collect(root: &Path, below: &Path, leave_out: &[&str], found: &mut Files) {
    let folder = root.join(below);
    for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("cannot list {}: {error}", folder.display())) {
        let entry = entry.expect("a folder can be read to its end");
        let path = below.join(entry.file_name());
        if leave_out.iter().any(|left_out| path == Path::new(left_out)) {
            continue;
        }
        let kind = entry.file_type().expect("an entry has a kind");
        if kind.is_dir() {
            collect(root, &path, leave_out, found);
            found.insert(path, Vec::new());
        } else if kind.is_symlink() {
            let target = fs::read_link(entry.path()).expect("a link can be read");
            found.insert(path, target.into_os_string().into_encoded_bytes());
        } else if kind.is_file() {
            let bytes =
                fs::read(entry.path()).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
            found.insert(path, bytes);
        }
    }
}

/// Names the entries whose bytes or names hold `text`.
#[must_use]
pub fn holds(files: &Files, text: &str) -> Vec<PathBuf> {
    let text = text.as_bytes();
    let inside = |bytes: &[u8]| bytes.windows(text.len()).any(|window| window == text);
    let hit = |(path, bytes): &(&PathBuf, &Vec<u8>)| inside(bytes) || inside(path.as_os_str().as_encoded_bytes());
    files.iter().filter(hit).map(|(path, _)| path.clone()).collect()
}
