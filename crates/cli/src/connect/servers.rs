//! The MCP server majordomus in one file: whether it is ours, missing or stale, and its coming and going.

use majordomus_providers::{Mcp, Provider};
use serde_json::{Map, Value};

use super::containers::{Change, empty, empty_root, forget, owned, put};
use super::document::{Document, EditError, to, way};
use super::hooks::members;
use super::ledger::{FileNote, Server};
use super::shell::{self, NAME};

/// What stands under our name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum There {
    /// Nothing.
    Nothing,
    /// A server that runs this program, which is majordomus.
    Ours(String),
    /// Something that somebody else wrote.
    Foreign,
}

/// Where the servers of a provider are declared.
#[derive(Clone, Copy, Debug)]
pub(super) struct Servers {
    pub(super) provider: &'static Provider,
    pub(super) mcp: &'static Mcp,
    /// The keys that lead to the object with the servers.
    pub(super) at: &'static [&'static str],
}

impl Servers {
    /// What stands under our name.
    pub(super) fn find(&self, document: &Document) -> There {
        let Some(entry) = document.get(&to(&way(self.at), NAME)) else { return There::Nothing };
        let program = entry.get(self.mcp.command_key).and_then(Value::as_str).filter(|program| shell::is_ours(program));
        let serves = entry.pointer("/args/0").and_then(Value::as_str) == Some("mcp");
        program.filter(|_| serves).map_or(There::Foreign, |program| There::Ours(program.to_owned()))
    }

    fn entry(&self, binary: &str) -> Map<String, Value> {
        let mut entry = members(self.mcp.members);
        entry.insert(self.mcp.command_key.into(), binary.into());
        entry.insert("args".into(), Value::from(["mcp"].as_slice()));
        entry
    }

    /// The members of the entry that are not as they should be.
    fn stale(&self, document: &Document, binary: &str) -> Vec<(String, Value)> {
        let there = document.get(&to(&way(self.at), NAME));
        let is_stale = |key: &str, value: &Value| match there.and_then(|there| there.get(key)) {
            None => true,
            // What somebody added to the arguments is theirs.
            Some(_) if key == "args" => false,
            Some(there) => there != value,
        };
        self.entry(binary).into_iter().filter(|(key, value)| is_stale(key, value)).collect()
    }

    /// Whether the entry is as it would be written now.
    pub(super) fn is_current(&self, document: &Document, binary: &str) -> bool {
        matches!(self.find(document), There::Ours(_)) && self.stale(document, binary).is_empty()
    }

    /// Declares the server.
    pub(super) fn connect(
        &self,
        document: &mut Document,
        note: &mut FileNote,
        binary: &str,
    ) -> Result<Vec<Change>, EditError> {
        document.members(&way(self.at))?;
        let entry = to(&way(self.at), NAME);
        let changes = match self.find(document) {
            There::Foreign => {
                return Err(EditError::Form(format!(
                    "{} is there already and is not this program's entry; it is left as it is",
                    super::document::named(&entry)
                )));
            }
            There::Nothing => {
                let lead = put(document, note, self.at, Some(NAME), Value::Object(self.entry(binary)))?;
                note.servers.retain(|server| server.name != NAME);
                note.servers.push(Server { name: NAME.into(), owners: Vec::new(), lead });
                vec![Change::Added(NAME.into())]
            }
            There::Ours(_) => {
                let stale = self.stale(document, binary);
                for (key, value) in &stale {
                    match document.get(&to(&entry, key)) {
                        Some(Value::Array(_) | Value::Object(_)) => {
                            document.remove(&to(&entry, key), None)?;
                            document.insert(&entry, Some(key), value)?;
                        }
                        Some(_) => document.replace(&to(&entry, key), value)?,
                        None => _ = document.insert(&entry, Some(key), value)?,
                    }
                }
                if stale.is_empty() { Vec::new() } else { vec![Change::Updated(NAME.into())] }
            }
        };
        // An entry that was there before us has no note, and gets none.
        if let Some(server) = note.servers.iter_mut().find(|server| server.name == NAME)
            && !server.owners.iter().any(|owner| owner == self.provider.id)
        {
            server.owners.push(self.provider.id.to_owned());
        }
        Ok(changes)
    }

    /// Takes the server out, unless `others` or the note say that another provider needs it.
    pub(super) fn remove(
        &self,
        document: &mut Document,
        note: Option<&mut FileNote>,
        others: bool,
    ) -> Result<Vec<Change>, EditError> {
        let known = note.as_deref().and_then(|note| note.servers.iter().find(|server| server.name == NAME)).cloned();
        let needed = match &known {
            Some(server) => server.owners.iter().any(|owner| owner != self.provider.id),
            None => others,
        };
        let ours = matches!(self.find(document), There::Ours(_));
        if !needed {
            if ours {
                document.remove(&to(&way(self.at), NAME), known.as_ref().map(|server| server.lead.as_str()))?;
            }
            if ours || known.is_some() {
                let above = (1..=self.at.len()).map(|depth| owned(&self.at[..depth]));
                let note = known.as_ref().and(note.as_deref());
                empty(document, note, above)?;
                empty_root(document, note)?;
            }
        }
        if let Some(note) = note {
            for server in note.servers.iter_mut().filter(|server| server.name == NAME) {
                server.owners.retain(|owner| owner != self.provider.id);
            }
            note.servers.retain(|server| !server.owners.is_empty());
            forget(document, note);
        }
        Ok(if ours && !needed { vec![Change::Removed(NAME.into())] } else { Vec::new() })
    }
}

#[cfg(test)]
mod tests;
