//! What git says about a finished session, in the form that the log and the record hold.

use serde::{Deserialize, Serialize};

/// A commit that appeared in the checkout during the session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commit {
    /// Its id, full hexadecimal.
    pub sha: String,
    /// Its tree's id; matches the same content after a rebase or squash.
    pub tree: Option<String>,
    /// Its stable patch id, the same under any configuration; `None` for merges, empty commits, where there are many
    /// commits, and where git did not answer in time.
    pub patch_id: Option<String>,
    /// Its first line, cut after 300 characters.
    pub subject: String,
}

/// Where the list of commits comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommitsFrom {
    /// HEAD's reflog, between the session's first and last line.
    Reflog,
    /// The range from the first HEAD to the last, because there is no usable reflog.
    Range,
}

/// The answers, redacted. `None` is what git could not say, never what it said was empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// Where the record goes, relative to the worktree's root.
    pub record: String,
    /// The session of the same key that ended before this one began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumes: Option<String>,
    /// Ids of all root commits; `None` in a shallow clone, which would report another root.
    pub repository_roots: Option<Vec<String>>,
    /// The tree of the last HEAD.
    pub head_tree: Option<String>,
    /// What appeared in this checkout.
    pub commits: Option<Vec<Commit>>,
    /// How `commits` is known.
    pub commits_from: Option<CommitsFrom>,
    /// Paths that those commits touch, and paths that were not committed and were written during the session. In a path
    /// every backslash is doubled, and a byte that is not UTF-8 is `\xNN`. Where git told only one of the two, that one,
    /// unless it is empty.
    pub changed_files: Option<Vec<String>>,
    /// The part of `changed_files` that stood uncommitted at the end.
    pub uncommitted_files: Option<Vec<String>>,
    /// What is missing and why, in a few words for a person.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}
