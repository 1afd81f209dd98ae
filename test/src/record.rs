//! A published record, read as anybody else would read it.

use std::ops::Index;
use std::path::Path;

use serde_json::Value;

use crate::milliseconds;

/// A session record.
#[derive(Clone, Debug)]
pub struct Record {
    /// Where it lies, relative to the worktree's root.
    pub path: String,
    /// Its front matter, read as YAML.
    pub front: Value,
    /// What a person reads.
    pub body: String,
}

impl Record {
    /// Reads the record at `path` below `worktree`.
    ///
    /// # Panics
    /// Where it is not there or is no record.
    #[must_use]
    pub fn read(worktree: &Path, path: &str) -> Self {
        let text = std::fs::read_to_string(worktree.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
        let rest = text.strip_prefix("---\n").unwrap_or_else(|| panic!("{path} has no front matter"));
        let (front, body) = rest.split_once("\n---\n").unwrap_or_else(|| panic!("{path}: its front matter has no end"));
        let front = serde_saphyr::from_str(front).unwrap_or_else(|error| panic!("{path} is no YAML: {error}"));
        Self { path: path.into(), front, body: body.into() }
    }

    /// A field that is text.
    ///
    /// # Panics
    /// Where it is not.
    #[must_use]
    pub fn text(&self, field: &str) -> &str {
        self[field].as_str().unwrap_or_else(|| panic!("{field} of {} is {}", self.path, self[field]))
    }

    /// A field that is a time, in milliseconds since the epoch.
    #[must_use]
    pub fn time(&self, field: &str) -> i64 {
        milliseconds(self.text(field))
    }

    /// The subjects of the commits that it names.
    ///
    /// # Panics
    /// Where it names none because git could not say.
    #[must_use]
    pub fn subjects(&self) -> Vec<&str> {
        let commits = self["commits"].as_array().expect("the commits are known");
        commits.iter().map(|commit| commit["subject"].as_str().expect("a commit has a subject")).collect()
    }

    /// Outcome, reason and witness of its end.
    #[must_use]
    pub fn end(&self) -> (&str, &str, &str) {
        (self.text("outcome"), self.text("end_reason"), self.text("end_witness"))
    }
}

impl Index<&str> for Record {
    type Output = Value;

    fn index(&self, field: &str) -> &Value {
        &self.front[field]
    }
}
