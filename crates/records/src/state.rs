//! Where the durable state of a checkout lives, and what its files are called.

use std::path::{Path, PathBuf};

use majordomus_episodes_core::EpisodeKey;
use sha2::{Digest, Sha256};

use crate::clock::{hex_prefix, rfc3339};

/// The state folders of one checkout.
///
/// The first is in the repository's common git directory: invisible to `git status`, safe from `git clean` and from
/// the removal of a linked worktree, and nothing that a repository can ship. Where that cannot be written the same
/// tree is made in the user's state folder. Reading looks into both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    roots: Vec<PathBuf>,
}

impl State {
    /// Names the state folders of the checkout called `name` whose common git directory is `common_dir`;
    /// `user_state` is the user's own state folder, where there is one.
    #[must_use]
    pub fn new(common_dir: &Path, name: &str, user_state: Option<&Path>) -> Self {
        let mut roots = vec![common_dir.join("majordomus").join(name)];
        if let Some(user_state) = user_state {
            let repository = hex_prefix(&Sha256::digest(common_dir.as_os_str().as_encoded_bytes()), 8);
            roots.push(user_state.join("majordomus").join(repository).join(name));
        }
        Self { roots }
    }

    /// The state of another checkout of the same repository.
    #[must_use]
    pub fn sibling(&self, name: &str) -> Self {
        Self { roots: self.roots.iter().map(|root| root.with_file_name(name)).collect() }
    }

    /// The preferred folder.
    pub(crate) fn preferred(&self) -> &Path {
        &self.roots[0]
    }

    /// The folders, the preferred one first.
    #[must_use]
    pub fn roots(&self) -> &[PathBuf] {
        &self.roots
    }
}

/// `open/<slug>-<hash>.jsonl` below a state folder.
#[must_use]
pub fn open_log(root: &Path, key: &EpisodeKey) -> PathBuf {
    root.join("open").join(format!("{}-{}.jsonl", slug(key.external_id.as_str(), "id"), key_hash(key)))
}

/// `ended/<session_id>.jsonl` below a state folder.
#[must_use]
pub fn ended_log(root: &Path, session_id: &str) -> PathBuf {
    root.join("ended").join(format!("{session_id}.jsonl"))
}

/// `history/<first two digits of the key's hash>` below a state folder.
#[must_use]
pub fn history(root: &Path, key: &str) -> PathBuf {
    root.join("history").join(key.get(..2).unwrap_or("00"))
}

/// The first 16 hexadecimal digits of SHA-256 over provider, NUL and external id: what a key's files are found by.
#[must_use]
pub fn key_hash(key: &EpisodeKey) -> String {
    let mut hash = Sha256::new();
    hash.update(key.provider.as_str());
    hash.update([0]);
    hash.update(key.external_id.as_str());
    hex_prefix(&hash.finalize(), 8)
}

/// What stands for a connection's own id where it is written or compared: its SHA-256, in hexadecimal.
#[must_use]
pub fn carrier_of(connection: &str) -> String {
    hex_prefix(&Sha256::digest(connection), 32)
}

/// Makes a part of a file name from foreign text, for people only: `[a-z0-9-]`, at most 40 characters, `empty` where
/// nothing is left.
#[must_use]
pub fn slug(text: &str, empty: &str) -> String {
    // Nothing of a credential may end up in a file's name either.
    let (text, _) = crate::redact::redact(text);
    let mut slug = String::new();
    for char in text.chars() {
        match char.to_ascii_lowercase() {
            char @ ('a'..='z' | '0'..='9') => slug.push(char),
            _ if slug.ends_with('-') || slug.is_empty() => {}
            _ => slug.push('-'),
        }
        if slug.len() == 40 {
            break;
        }
    }
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() { empty.into() } else { slug.into() }
}

/// Makes a session id: `s-<YYYYMMDDHHMMSS>-<8 hex>`.
#[must_use]
pub fn session_id(wall_ms: i64, random: [u8; 4]) -> String {
    let digits: String = rfc3339(wall_ms).chars().filter(char::is_ascii_digit).take(14).collect();
    format!("s-{digits:0>14}-{}", hex_prefix(&random, 4))
}

/// Tells whether a string has the form of a session id, so that it may be a part of a path.
#[must_use]
pub fn is_session_id(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() == 25
        && bytes.starts_with(b"s-")
        && bytes[16] == b'-'
        && bytes[2..16].iter().all(u8::is_ascii_digit)
        && bytes[17..].iter().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte))
}

/// Where a record goes, relative to the worktree's root:
/// `.ai/repo/sessions/<YYYY>/<MM>/<session_id>--<branch-slug>.md`, the month from when the session began.
#[must_use]
pub fn record_path(started_ms: i64, session_id: &str, branch: Option<&str>) -> String {
    let started = rfc3339(started_ms);
    let (year, month) = (started.get(..4).unwrap_or("0000"), started.get(5..7).unwrap_or("00"));
    let branch = branch.map_or_else(|| "detached".into(), |branch| slug(branch, "branch"));
    format!("{RECORDS}/{year}/{month}/{session_id}--{branch}.md")
}

/// The folder of all records, relative to the worktree's root.
pub const RECORDS: &str = ".ai/repo/sessions";

#[cfg(test)]
mod tests;
