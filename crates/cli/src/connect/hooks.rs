//! The hooks of one provider in one file: which are ours, which are missing or stale, and their coming and going.

use majordomus_providers::{Adapter, EntryShape, EventKind, Provider, TimeUnit, Written};
use serde_json::{Map, Value};

use super::containers::{Change, empty, empty_root, forget, owned, put};
use super::document::{Document, EditError, Way, at as element, kind_error, to, way};
use super::ledger::{FileNote, Hook};
use super::shell;

/// The member of a group that lists its entries.
const GROUP: &str = "hooks";

/// One of our entries in a file.
#[derive(Clone, Debug)]
pub(super) struct Found {
    /// The native name of its event.
    pub(super) event: String,
    /// The program that it runs.
    pub(super) program: String,
    /// The whole command line.
    pub(super) line: String,
    /// Where it stands in its list.
    way: Way,
    /// Its members.
    entry: Map<String, Value>,
}

/// How the hooks of a provider are declared in a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hooks {
    pub(super) provider: &'static Provider,
    pub(super) adapter: &'static Adapter,
    /// The keys that lead to the object with the events.
    pub(super) at: &'static [&'static str],
}

impl Hooks {
    /// Our entries, in the order of the file. What has another form than it should is passed over.
    pub(super) fn find(&self, document: &Document) -> Vec<Found> {
        let root = way(self.at);
        let mut found = Vec::new();
        for event in document.members(&root).unwrap_or_default() {
            let list = to(&root, &event);
            for index in 0..document.length(&list).unwrap_or_default() {
                let item = element(&list, index);
                match self.adapter.entry.shape {
                    EntryShape::Flat => found.extend(self.ours(document, &event, item)),
                    EntryShape::Nested => {
                        let group = to(&item, GROUP);
                        let entries =
                            (0..document.length(&group).unwrap_or_default()).map(|index| element(&group, index));
                        found.extend(entries.filter_map(|entry| self.ours(document, &event, entry)));
                    }
                }
            }
        }
        found
    }

    fn ours(&self, document: &Document, event: &str, way: Way) -> Option<Found> {
        let entry = document.get(&way)?.as_object()?.clone();
        let line = entry.get(self.adapter.entry.command_key)?.as_str()?;
        let program = shell::hook_program(line, self.provider.id)?;
        let line = line.to_owned();
        Some(Found { event: event.to_owned(), program, line, way, entry })
    }

    /// The entry that reports an event.
    fn entry(&self, binary: &str, event: EventKind) -> Map<String, Value> {
        let form = &self.adapter.entry;
        let mut entry = members(form.members);
        entry.insert(form.command_key.into(), shell::hook_line(binary, self.provider.id, event).into());
        let timeout = match form.timeout_unit {
            TimeUnit::Seconds => u64::from(form.timeout_seconds),
            TimeUnit::Milliseconds => u64::from(form.timeout_seconds) * 1000,
        };
        entry.insert(form.timeout_key.into(), timeout.into());
        entry
    }

    /// Whether an entry is as it would be written now, with this program; what somebody added to it is theirs.
    pub(super) fn is_current(&self, found: &Found, binary: &str) -> bool {
        let written = self.adapter.written.iter().find(|written| written.name == found.event);
        written.is_some_and(|written| {
            self.entry(binary, written.event).iter().all(|(key, value)| found.entry.get(key) == Some(value))
        })
    }

    /// Declares `events`, and takes back what was declared once for others of `known`.
    pub(super) fn connect(
        &self,
        document: &mut Document,
        note: &mut FileNote,
        binary: &str,
        events: &[&'static Written],
        known: &dyn Fn(&str) -> bool,
    ) -> Result<Vec<Change>, EditError> {
        let root = way(self.at);
        document.members(&root)?;
        for written in events {
            self.check(document, &to(&root, written.name))?;
        }
        let mut changes = Vec::new();
        for (key, value) in members(self.adapter.entry.document) {
            match document.get(&way(&[&key])) {
                None => {
                    put(document, note, &[], Some(&key), value)?;
                    note.made.push(vec![key]);
                }
                Some(there) if *there == value => {}
                Some(_) => return Err(EditError::Form(format!("{key} is not {value}, the only form that is known"))),
            }
        }
        for written in events {
            let entry = self.entry(binary, written.event);
            let found: Vec<Found> = self.of(document, written.name);
            let Some((first, more)) = found.split_first() else {
                let item = match self.adapter.entry.shape {
                    EntryShape::Flat => Value::Object(entry),
                    EntryShape::Nested => {
                        Value::Object(Map::from_iter([(GROUP.to_owned(), Value::Array(vec![Value::Object(entry)]))]))
                    }
                };
                put(document, note, &[self.at, &[written.name]].concat(), None, item)?;
                self.remember(note, written.name);
                changes.push(Change::Added(written.name.to_owned()));
                continue;
            };
            // Twice is once too often. From the end, so that the others stay where they are.
            for twice in more.iter().rev() {
                self.take(document, twice)?;
                changes.push(Change::Removed(written.name.to_owned()));
            }
            let stale: Vec<_> = entry.iter().filter(|(key, value)| first.entry.get(*key) != Some(value)).collect();
            for (key, value) in &stale {
                match first.entry.get(*key) {
                    Some(Value::Array(_) | Value::Object(_)) | None => {
                        if first.entry.contains_key(*key) {
                            document.remove(&to(&first.way, key), None)?;
                        }
                        document.insert(&first.way, Some(key), value)?;
                    }
                    Some(_) => document.replace(&to(&first.way, key), value)?,
                }
            }
            if !stale.is_empty() {
                changes.push(Change::Updated(written.name.to_owned()));
            }
        }
        let gone: Vec<String> = note
            .hooks
            .iter()
            .filter(|hook| hook.provider == self.provider.id && known(&hook.event))
            .map(|hook| hook.event.clone())
            .collect();
        for event in gone.into_iter().filter(|event| events.iter().all(|written| written.name != event)) {
            for found in self.of(document, &event).iter().rev() {
                self.take(document, found)?;
                changes.push(Change::Removed(event.clone()));
            }
            empty(document, Some(note), [self.list(&event)])?;
            note.hooks.retain(|hook| hook.provider != self.provider.id || hook.event != event);
            forget(document, note);
        }
        Ok(changes)
    }

    /// Takes all of ours out, and what was only there for them.
    pub(super) fn remove(
        &self,
        document: &mut Document,
        note: Option<&mut FileNote>,
    ) -> Result<Vec<Change>, EditError> {
        let found = self.find(document);
        for found in found.iter().rev() {
            self.take(document, found)?;
        }
        let known = note.as_deref().filter(|note| note.has_hooks_of(self.provider.id));
        if found.is_empty() && known.is_none() {
            return Ok(Vec::new());
        }
        let lists = found.iter().map(|found| self.list(&found.event));
        let above = (1..=self.at.len()).map(|depth| owned(&self.at[..depth]));
        empty(document, known, lists.chain(above))?;
        // Hooks that others put beside ours since need these members; those that were there before us did without.
        let needed = !document.members(&way(self.at))?.is_empty()
            && known.is_none_or(|note| note.has_made(&owned(self.at)) || note.space(&owned(self.at)).is_some());
        for (key, value) in members(self.adapter.entry.document) {
            let made = known.is_some_and(|note| note.has_made(std::slice::from_ref(&key)));
            if made && !needed && document.get(&way(&[&key])) == Some(&value) {
                document.remove(&way(&[&key]), None)?;
            }
        }
        empty_root(document, known)?;
        if let Some(note) = note {
            note.hooks.retain(|hook| hook.provider != self.provider.id);
            forget(document, note);
        }
        Ok(found.into_iter().map(|found| Change::Removed(found.event)).collect())
    }

    fn list(&self, event: &str) -> Vec<String> {
        owned(&[self.at, &[event]].concat())
    }

    fn of(&self, document: &Document, event: &str) -> Vec<Found> {
        self.find(document).into_iter().filter(|found| found.event == event).collect()
    }

    /// Refuses where a list of ours could not be told from what is there.
    fn check(&self, document: &Document, list: &Way) -> Result<(), EditError> {
        for index in 0..document.length(list)? {
            let item = element(list, index);
            let there = document.get(&item).unwrap_or(&Value::Null);
            if !there.is_object() {
                return Err(kind_error(&item, "an object", there));
            }
            if self.adapter.entry.shape == EntryShape::Nested {
                document.length(&to(&item, GROUP))?;
            }
        }
        Ok(())
    }

    /// Takes one entry out, with its group where nothing else is in that.
    fn take(&self, document: &mut Document, found: &Found) -> Result<(), EditError> {
        let mut way = &found.way[..];
        if self.adapter.entry.shape == EntryShape::Nested && document.length(&way[..way.len() - 1])? == 1 {
            // List and member of the group go too.
            way = &way[..way.len() - 2];
        }
        document.remove(way, None)
    }

    fn remember(&self, note: &mut FileNote, event: &str) {
        let hook = Hook { provider: self.provider.id.to_owned(), event: event.to_owned() };
        if !note.hooks.contains(&hook) {
            note.hooks.push(hook);
        }
    }
}

/// Members as they are declared, with their values.
pub(super) fn members(declared: &[(&str, &str)]) -> Map<String, Value> {
    let read = |json: &str| serde_json::from_str(json).expect("the declaration was made of such values");
    declared.iter().map(|(key, json)| ((*key).to_owned(), read(json))).collect()
}

#[cfg(test)]
mod tests;
