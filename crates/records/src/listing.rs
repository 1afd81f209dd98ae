//! Reading published records, newest first, a page at a time.
//!
//! A record's name begins with when its session began, so a page costs what it shows and never what the archive holds.

use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::compose::front_matter;
use crate::inside::stay_inside;
use crate::state::{RECORDS, is_session_id};
use crate::store::{Store, StoreError, is_absent};

/// How long a session's id is.
const ID: usize = 25;
/// The most bytes of a record that are read.
const RECORD_MOST: u64 = 4 << 20;
/// The most bytes of it in which its front matter has to end for a list to show it.
const FRONT_MATTER_MOST: u64 = 256 << 10;

/// The front matter of a record, as far as it can be read: the file is the user's once it is published.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Summary {
    /// The session's id.
    pub session_id: String,
    /// Who drew the boundary.
    pub provider: Option<String>,
    /// What the client calls its sitting.
    pub external_id: Option<String>,
    /// What the client says it is.
    pub client: Option<String>,
    /// When it began, RFC 3339 UTC.
    pub started_at: Option<String>,
    /// When it ended.
    pub closed_at: Option<String>,
    /// When its client was last seen at work.
    pub last_activity_at: Option<String>,
    /// `closed` or `interrupted`.
    pub outcome: Option<String>,
    /// Why it ended.
    pub end_reason: Option<String>,
    /// Who saw that.
    pub end_witness: Option<String>,
    /// How often a client attached.
    pub attachments: Option<u32>,
    /// On which branch it ended.
    pub branch: Option<String>,
    /// Where the record lies, relative to the worktree's root.
    #[serde(skip)]
    pub path: String,
}

/// A page of records, newest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// The records.
    pub records: Vec<Summary>,
    /// The last session's id if there are older ones: what the next page comes after.
    pub next: Option<String>,
}

impl Store {
    /// Lists at most `limit` records that began before the session `after`, newest first.
    ///
    /// # Errors
    /// [`StoreError::Io`] where a folder is there and cannot be read. A record that cannot be read or has been
    /// changed beyond recognition is listed by what its name says.
    pub fn records(&self, after: Option<&str>, limit: usize) -> Result<Page, StoreError> {
        let Some(root) = self.checkout.record_root() else { return Ok(Page::default()) };
        let mut found = self.find_records(&root, after, limit + 1)?;
        let more = found.len() > limit;
        found.truncate(limit);
        let next = found.last().filter(|_| more).map(|(id, _)| id.clone());
        Ok(Page { records: found.into_iter().map(|(id, path)| self.summary(&root, id, &path)).collect(), next })
    }

    /// The ids of at most `limit` sessions that have a record, newest first; no record is read.
    ///
    /// # Errors
    /// [`StoreError::Io`] where a folder is there and cannot be read.
    pub fn record_ids(&self, limit: usize) -> Result<Vec<String>, StoreError> {
        let Some(root) = self.checkout.record_root() else { return Ok(Vec::new()) };
        Ok(self.find_records(&root, None, limit)?.into_iter().map(|(id, _)| id).collect())
    }

    /// Finds at most `most` records that began before the session `after`, newest first: their ids and where they lie.
    fn find_records(
        &self,
        root: &Path,
        after: Option<&str>,
        most: usize,
    ) -> Result<Vec<(String, PathBuf)>, StoreError> {
        stay_inside(root, &root.join(RECORDS))?;
        let mut found: Vec<(String, PathBuf)> = Vec::new();
        'months: for year in self.folders(&root.join(RECORDS), after.and_then(|id| id.get(2..6)))? {
            let month = after.filter(|id| id.get(2..6) == name_of(&year)).and_then(|id| id.get(6..8));
            for month in self.folders(&year, month)? {
                if stay_inside(root, &month).is_err() {
                    continue;
                }
                let mut names = self.record_names(&month)?;
                names.retain(|name| after.is_none_or(|after| &name[..ID] < after));
                // Only what may be shown is put in order.
                let wanted = most - found.len();
                if names.len() > wanted {
                    names.select_nth_unstable_by(wanted - 1, |one, other| other.cmp(one));
                    names.truncate(wanted);
                }
                names.sort_unstable_by(|one, other| other.cmp(one));
                found.extend(names.into_iter().map(|name| (name[..ID].to_owned(), month.join(name))));
                if found.len() == most {
                    break 'months;
                }
            }
        }
        Ok(found)
    }

    /// Finds the record of a session: its summary and its text.
    ///
    /// # Errors
    /// [`StoreError::Io`] where it is there and cannot be read.
    pub fn record(&self, session_id: &str) -> Result<Option<(Summary, String)>, StoreError> {
        let (Some(root), true) = (self.checkout.record_root(), is_session_id(session_id)) else { return Ok(None) };
        let folder = root.join(RECORDS).join(&session_id[2..6]).join(&session_id[6..8]);
        stay_inside(&root, &folder)?;
        let Some(name) = self.record_names(&folder)?.into_iter().find(|name| name.starts_with(session_id)) else {
            return Ok(None);
        };
        let path = folder.join(name);
        let bytes = self.disk.read(&path, RECORD_MOST).map_err(StoreError::io("cannot read", &path))?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Ok(Some((self.summary(&root, session_id.into(), &path), text)))
    }

    /// Folders whose names are numbers, the highest first, none above `most`.
    fn folders(&self, folder: &Path, most: Option<&str>) -> Result<Vec<PathBuf>, StoreError> {
        let names = self.names_in(folder)?;
        let digits = |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
        let mut names: Vec<String> = names.into_iter().filter(|name| digits(name)).collect();
        names.retain(|name| most.is_none_or(|most| name.as_str() <= most));
        names.sort_unstable_by(|one, other| other.cmp(one));
        Ok(names.into_iter().map(|name| folder.join(name)).collect())
    }

    fn record_names(&self, folder: &Path) -> Result<Vec<String>, StoreError> {
        let mut names = self.names_in(folder)?;
        names.retain(|name| name.ends_with(".md") && name.get(..ID).is_some_and(is_session_id));
        Ok(names)
    }

    fn names_in(&self, folder: &Path) -> Result<Vec<String>, StoreError> {
        match self.disk.names(folder) {
            Ok(names) => Ok(names.into_iter().filter_map(|name| name.into_string().ok()).collect()),
            Err(error) if is_absent(&error) => Ok(Vec::new()),
            Err(source) => Err(StoreError::Io { what: "cannot list", path: folder.into(), source }),
        }
    }

    fn summary(&self, root: &Path, id: String, path: &Path) -> Summary {
        let read = || -> io::Result<Summary> {
            let bytes = self.disk.read(path, FRONT_MATTER_MOST)?;
            let text = String::from_utf8_lossy(&bytes);
            let front = front_matter(&text).unwrap_or_default();
            Ok(serde_saphyr::from_str(front).unwrap_or_default())
        };
        let relative = path.strip_prefix(root).unwrap_or(path);
        let path = relative.to_string_lossy().into_owned();
        // The name is the identity; what a person wrote into the file is not.
        Summary { session_id: id, path, ..read().unwrap_or_default() }
    }
}

fn name_of(path: &Path) -> Option<&str> {
    path.file_name().and_then(|name| name.to_str())
}
