//! Putting items into containers that may not be there yet, and taking containers away that were only there for them.

use serde_json::{Map, Value};

use super::document::{Document, EditError, Step, way};
use super::ledger::{FileNote, Filled};

/// What became of a hook or a server in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// It was not there.
    Added(String),
    /// It was there and not as it should be.
    Updated(String),
    /// It was there and should not be.
    Removed(String),
}

/// Puts an item behind all others in the container at `path`, and makes what is missing of that. Returns what has to be known
/// to take it out again.
pub(super) fn put(
    document: &mut Document,
    note: &mut FileNote,
    path: &[&str],
    key: Option<&str>,
    value: Value,
) -> Result<String, EditError> {
    if document.is_blank() {
        note.root = Some(document.begin()?);
    }
    let there = (0..=path.len()).rev().find(|depth| document.get(&way(&path[..*depth])).is_some()).unwrap_or(0);
    note_filled(document, note, &path[..there]);
    let mut item = value;
    let mut key = key;
    for depth in (there..path.len()).rev() {
        item = match key {
            Some(key) => Value::Object(Map::from_iter([(key.to_owned(), item)])),
            None => Value::Array(vec![item]),
        };
        key = Some(path[depth]);
        let made = owned(&path[..=depth]);
        if !note.has_made(&made) {
            note.made.push(made);
        }
    }
    document.insert(&way(&path[..there]), key, &item)
}

/// Notes what an empty container looks like before something is put into it.
fn note_filled(document: &Document, note: &mut FileNote, path: &[&str]) {
    let at = owned(path);
    let ours = note.has_made(&at) || (path.is_empty() && (note.root.is_some() || note.created));
    if let Some(space) = document.space(&way(path)).filter(|_| !ours) {
        note.filled.retain(|filled| filled.at != at);
        note.filled.push(Filled { at, space });
    }
}

/// Gives the containers at `paths` back the look that they had, where nothing is left in them: those that were there are
/// empty again, the others are gone. A comment in one of them is somebody's, and keeps it.
pub(super) fn empty(
    document: &mut Document,
    note: Option<&FileNote>,
    paths: impl IntoIterator<Item = Vec<String>>,
) -> Result<(), EditError> {
    let mut paths: Vec<Vec<String>> =
        paths.into_iter().chain(note.into_iter().flat_map(|note| note.made.clone())).collect();
    // The inner ones first.
    paths.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
    paths.dedup();
    for path in paths.iter().filter(|path| !path.is_empty()) {
        let at: Vec<Step> = path.iter().cloned().map(Step::Key).collect();
        if document.space(&at).is_none() {
            continue;
        }
        match note.and_then(|note| note.space(path)) {
            Some(space) => document.set_space(&at, space)?,
            None if document.is_commented(&at) => {}
            None => document.remove(&at, None)?,
        }
    }
    Ok(())
}

/// Gives the root back the look that it had, where nothing is left in it.
pub(super) fn empty_root(document: &mut Document, note: Option<&FileNote>) -> Result<(), EditError> {
    let (Some(note), Some(_)) = (note, document.space(&[])) else { return Ok(()) };
    match (&note.root, note.space(&[])) {
        (Some(before), _) if !document.is_commented(&[]) => document.unbegin(before),
        (None, Some(space)) => document.set_space(&[], space),
        (Some(_), _) | (None, None) => Ok(()),
    }
}

/// Forgets of a file what is no longer there.
pub(super) fn forget(document: &Document, note: &mut FileNote) {
    let there = |at: &[String]| document.get(&at.iter().cloned().map(Step::Key).collect::<Vec<_>>()).is_some();
    note.made.retain(|at| there(at));
    note.filled.retain(|filled| there(&filled.at));
}

pub(super) fn owned(path: &[&str]) -> Vec<String> {
    path.iter().map(|key| (*key).to_owned()).collect()
}
