//! What may fail, and what came of it.
//!
//! The file is the suite's own format: an entry is a scenario, or one check of it as `scenario:check`. The suite judges by it
//! what it scores; here everything is judged that was run.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::ops::AddAssign;
use std::path::Path;

use anyhow::{Context, ensure};
use serde::Deserialize;

use crate::suite::{Check, Status};

/// The most characters of an error that are shown.
const ERROR_MAX: usize = 240;

/// The failures that are expected of one server.
#[derive(Debug)]
pub(crate) struct Expected {
    /// The entries by scenario.
    entries: BTreeMap<String, Vec<Entry>>,
}

#[derive(Debug)]
struct Entry {
    /// The only check that may fail; any of them where there is none.
    check: Option<String>,
    /// Whether something was run that it is about.
    met: bool,
}

#[derive(Deserialize)]
struct File {
    server: Vec<String>,
}

/// How a scenario ended.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    /// What is not as it should be, a line each.
    pub(crate) wrong: Vec<String>,
    /// Whether something failed that was expected to.
    excused: bool,
    /// Whether something was checked and is good.
    succeeded: bool,
}

/// How many scenarios ended how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    passed: u32,
    expected: u32,
    skipped: u32,
    pub(crate) wrong: u32,
}

impl Expected {
    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        Self::of(&text).with_context(|| path.display().to_string())
    }

    fn of(text: &str) -> anyhow::Result<Self> {
        let mut entries: BTreeMap<String, Vec<Entry>> = BTreeMap::new();
        let mut seen = BTreeSet::new();
        for entry in serde_saphyr::from_str::<File>(text)?.server {
            ensure!(seen.insert(entry.clone()), "{entry} stands there twice");
            let (scenario, check) = match entry.split_once(':') {
                Some((scenario, check)) => (scenario.to_owned(), Some(check.to_owned())),
                None => (entry, None),
            };
            entries.entry(scenario).or_default().push(Entry { check, met: false });
        }
        Ok(Self { entries })
    }

    /// Judges what a scenario found.
    pub(crate) fn judge(&mut self, scenario: &str, checks: &[Check]) -> Verdict {
        let mut verdict = Verdict::default();
        if checks.is_empty() {
            verdict.wrong.push("it was not run".into());
        }
        let entries = self.entries.get_mut(scenario).map_or(&mut [][..], Vec::as_mut_slice);
        for check in checks.iter().filter(|check| check.status.is_bad()) {
            if entries.iter().any(|entry| entry.is_of(check)) {
                verdict.excused = true;
            } else {
                verdict.wrong.push(line(check));
            }
        }
        for entry in entries {
            // A check that is not reached, or not made, is none that passes.
            let made = || checks.iter().filter(|check| check.status.is_known() && entry.is_of(check));
            let (is_met, is_bad) = (made().next().is_some(), made().any(|check| check.status.is_bad()));
            entry.met |= is_met;
            if is_met && !is_bad {
                let what = entry.check.as_deref().unwrap_or("it");
                verdict.wrong.push(format!("{what} passes, and is expected to fail"));
            }
        }
        verdict.succeeded = checks.iter().any(|check| check.status == Status::Success);
        verdict
    }

    /// The entries that nothing of what was run is about.
    pub(crate) fn unmet(&self) -> impl Iterator<Item = String> {
        let all = self.entries.iter().flat_map(|(scenario, entries)| entries.iter().map(move |one| (scenario, one)));
        all.filter(|(_, entry)| !entry.met).map(|(scenario, entry)| match &entry.check {
            Some(check) => format!("{scenario}:{check}"),
            None => scenario.clone(),
        })
    }
}

impl Entry {
    /// Whether a check of its scenario is what it excuses.
    fn is_of(&self, check: &Check) -> bool {
        self.check.as_ref().is_none_or(|id| *id == check.id)
    }
}

/// What a check found, as much of it as fits a line.
fn line(check: &Check) -> String {
    let error = check.error.as_deref().unwrap_or("it failed");
    let shown: String = error.chars().take(ERROR_MAX).collect();
    format!("{}: {shown}{}", check.id, if shown.len() < error.len() { "…" } else { "" })
}

impl Tally {
    /// Counts one more.
    pub(crate) fn count(&mut self, verdict: &Verdict) {
        let which = match verdict {
            Verdict { wrong, .. } if !wrong.is_empty() => &mut self.wrong,
            Verdict { excused: true, .. } => &mut self.expected,
            Verdict { succeeded: true, .. } => &mut self.passed,
            Verdict { .. } => &mut self.skipped,
        };
        *which += 1;
    }

    /// Whether all is as it should be.
    pub(crate) fn is_good(self) -> bool {
        self.wrong == 0
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.expected += other.expected;
        self.skipped += other.skipped;
        self.wrong += other.wrong;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { passed, expected, skipped, wrong } = self;
        write!(
            f,
            "{passed} scenarios passed, {expected} failed as expected, {skipped} had nothing to check, {wrong} wrong"
        )
    }
}

#[cfg(test)]
mod tests;
