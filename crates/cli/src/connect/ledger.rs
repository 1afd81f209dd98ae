//! What was put into which file, so that exactly that can be taken out again.
//!
//! It holds names of keys and the space between brackets, never a copy of somebody's file: settings can hold credentials.

use serde::{Deserialize, Serialize};

/// The version of the form that this code writes.
const FORMAT: u32 = 1;

/// Everything that was put in, for a project or for a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Ledger {
    format: u32,
    files: Vec<FileNote>,
}

/// What was put into one file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct FileNote {
    /// As the provider declares it: relative to the project, or to the home folder after `~/`.
    pub(super) path: String,
    /// Whether the file was made.
    pub(super) created: bool,
    /// The folders that were made for it, from the outermost on: relative to the project or the home folder where they are below
    /// it.
    pub(super) folders: Vec<String>,
    /// What was put before the root that a blank file got.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) root: Option<String>,
    /// The keys of containers and values that were made.
    pub(super) made: Vec<Vec<String>>,
    /// The containers that were there and empty.
    pub(super) filled: Vec<Filled>,
    /// Which hooks were declared.
    pub(super) hooks: Vec<Hook>,
    /// Which servers were declared.
    pub(super) servers: Vec<Server>,
}

/// A container that was empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Filled {
    /// The keys that lead to it.
    pub(super) at: Vec<String>,
    /// The space before its closing bracket, or the null that stood for it.
    pub(super) space: String,
}

/// A hook that was declared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Hook {
    /// Whose.
    pub(super) provider: String,
    /// The native name of its event.
    pub(super) event: String,
}

/// A server that was declared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Server {
    /// Its name.
    pub(super) name: String,
    /// The providers that it was declared for.
    pub(super) owners: Vec<String>,
    /// What was put before it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) lead: String,
}

impl Default for Ledger {
    fn default() -> Self {
        Self { format: FORMAT, files: Vec::new() }
    }
}

impl Ledger {
    /// Reads a ledger; `None` for bytes that are none, or one of a later version.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice::<Self>(bytes).ok().filter(|ledger| ledger.format == FORMAT)
    }

    /// The bytes to write.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let text = serde_json::to_string_pretty(self).expect("a ledger has only text for keys");
        (text + "\n").into_bytes()
    }

    /// What is noted of a file.
    pub(super) fn note(&self, path: &str) -> Option<&FileNote> {
        self.files.iter().find(|note| note.path == path)
    }

    /// Notes something else of a file, or nothing.
    pub(super) fn set(&mut self, path: &str, note: Option<FileNote>) {
        self.files.retain(|note| note.path != path);
        self.files.extend(note.filter(FileNote::is_any));
        self.files.sort_by(|a, b| a.path.cmp(&b.path));
    }

    /// Whether nothing was put anywhere.
    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }
}

impl FileNote {
    /// The same file, of which nothing is noted yet.
    pub(super) fn of(path: &str) -> Self {
        Self { path: path.to_owned(), ..Self::default() }
    }

    /// Whether anything was declared there.
    pub(super) fn is_any(&self) -> bool {
        !self.hooks.is_empty() || !self.servers.is_empty()
    }

    /// Whether hooks of a provider were declared there.
    pub(super) fn has_hooks_of(&self, provider: &str) -> bool {
        self.hooks.iter().any(|hook| hook.provider == provider)
    }

    /// Whether a server was declared there for a provider.
    pub(super) fn has_server_of(&self, provider: &str) -> bool {
        self.servers.iter().any(|server| server.owners.iter().any(|owner| owner == provider))
    }

    /// Whether the container there was made.
    pub(super) fn has_made(&self, at: &[String]) -> bool {
        self.made.iter().any(|made| made == at)
    }

    /// The space that an empty container had.
    pub(super) fn space(&self, at: &[String]) -> Option<&str> {
        self.filled.iter().find(|filled| filled.at == at).map(|filled| filled.space.as_str())
    }
}
