//! A process that holds connections, as other processes can see it.
//!
//! Each such process keeps one small file in `holders/`, locked for as long as it lives: the kernel gives the lock
//! back in every kind of death, so no process id is ever judged. The file says which episodes are held, and when that
//! was last true: from then runs the grace of a silent but held episode once the process is gone. Beside them it says
//! which were let go, and since when: from then runs theirs, whether the process lives or not.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::append::{READ_MOST, lock_soon};
use crate::clock::Stamp;
use crate::disk::{Disk, File, Open};

/// How other processes see the holder of an episode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It lives, and so does the hold.
    Alive,
    /// It is gone or has let the episode go; when it last held it, if that is known.
    Gone(Option<Stamp>),
}

#[derive(Serialize, Deserialize)]
struct Beat {
    v: u32,
    #[serde(flatten)]
    stamp: Stamp,
    /// The hashes of the keys that are held.
    holds: BTreeSet<String>,
    /// Those that were let go, and since when.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    left: BTreeMap<String, Stamp>,
}

/// The most episodes that were let go and are still named. Those beyond wait from their last evidence.
const LEFT_MOST: usize = 256;

/// This process's own file in `holders/`, made when it first holds an episode.
pub struct Holder {
    id: String,
    file: Mutex<Option<Kept>>,
}

struct Kept {
    file: Box<dyn File>,
    path: PathBuf,
    holds: BTreeSet<String>,
    left: BTreeMap<String, Stamp>,
}

impl Holder {
    /// Names a holder: 32 hexadecimal digits that nobody else has.
    #[must_use]
    pub fn new(id: String) -> Self {
        Self { id, file: Mutex::new(None) }
    }

    /// The holder's id; the id of a connection is this, a dash and the connection's number in its process.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Notes that this process holds the episode of a key, in its locked file below the state folder `root`.
    pub(crate) fn hold(&self, disk: &dyn Disk, root: &Path, now: &Stamp, key: &str) -> io::Result<()> {
        let mut kept = self.kept();
        if let Some(kept) = kept.as_mut() {
            kept.holds.insert(key.into());
            kept.left.remove(key);
            return kept.write(now);
        }
        let mut new = self.stand_up(disk, root)?;
        new.holds.insert(key.into());
        if let Err(error) = new.write(now) {
            let _ = disk.remove(&new.path);
            return Err(error);
        }
        *kept = Some(new);
        Ok(())
    }

    fn stand_up(&self, disk: &dyn Disk, root: &Path) -> io::Result<Kept> {
        disk.make_folders(&root.join("holders"), true)?;
        let path = holder_file(root, &self.id);
        loop {
            let file = disk.open(&path, Open::Create)?;
            lock_soon(&*file)?;
            // Somebody who clears up may have removed it before the lock was ours.
            if disk.identity(&path)? == Some(file.identity()?) {
                return Ok(Kept { file, path, holds: BTreeSet::new(), left: BTreeMap::new() });
            }
        }
    }

    /// Whether this process holds the episode of a key.
    pub(crate) fn holds(&self, key: &str) -> bool {
        self.kept().as_ref().is_some_and(|kept| kept.holds.contains(key))
    }

    /// Notes that this process has let the episode of a key go at `since`, and forgets those that it let go longer than
    /// `grace` ago: they are over, whoever looks. Where that cannot be written the episode counts as held until the
    /// process is gone.
    pub(crate) fn let_go(&self, now: &Stamp, key: &str, since: Stamp, grace: Duration) {
        let mut kept = self.kept();
        let Some(kept) = kept.as_mut() else { return };
        if !kept.holds.remove(key) && !kept.left.contains_key(key) {
            return;
        }
        kept.left.insert(key.into(), since);
        kept.left.retain(|_, since| now.age_of(since) < grace);
        while kept.left.len() > LEFT_MOST
            && let Some(oldest) =
                kept.left.iter().max_by_key(|(_, since)| now.age_of(since)).map(|(key, _)| key.clone())
        {
            kept.left.remove(&oldest);
        }
        let _ = kept.write(now);
    }

    /// Notes that the episode of a key is over: it is neither held nor waited for.
    pub(crate) fn forget(&self, now: &Stamp, key: &str) {
        if let Some(kept) = self.kept().as_mut()
            && (kept.holds.remove(key) | kept.left.remove(key).is_some())
        {
            let _ = kept.write(now);
        }
    }

    /// Writes the beat, if this process holds anything. Not made durable: after a loss of power the process is gone
    /// and the log's own evidence remains.
    ///
    /// # Errors
    /// The operating system's.
    pub fn beat(&self, now: &Stamp) -> io::Result<()> {
        self.kept().as_mut().map_or(Ok(()), |kept| kept.write(now))
    }

    /// Gives the file up without a trace, where no episode waits for what it says.
    pub fn leave(&self, disk: &dyn Disk) {
        if let Some(kept) = self.kept().take() {
            let _ = disk.remove(&kept.path);
        }
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Option<Kept>> {
        self.file.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Kept {
    fn write(&mut self, now: &Stamp) -> io::Result<()> {
        let beat = Beat { v: 1, stamp: now.clone(), holds: self.holds.clone(), left: self.left.clone() };
        self.file.overwrite(&serde_json::to_vec(&beat)?)
    }
}

/// Looks whether the holder of `connection` lives and holds the episode of `key`.
pub(crate) fn presence(disk: &dyn Disk, roots: &[PathBuf], connection: &str, key: &str) -> Presence {
    let Some((holder, _)) = connection.rsplit_once('-') else { return Presence::Gone(None) };
    if !is_holder_id(holder) {
        return Presence::Gone(None);
    }
    for root in roots {
        let Ok(mut file) = disk.open(&holder_file(root, holder), Open::Existing) else { continue };
        // A lock that is taken here is given back as soon as `file` is dropped; where locks do not work nothing can be
        // said of the holder, and nothing may be ended for it.
        let lives = !file.try_lock_shared().unwrap_or(false);
        let beat = file.read_at(0, READ_MOST).ok().and_then(|bytes| serde_json::from_slice::<Beat>(&bytes).ok());
        return match beat {
            // Half-written, as its owner may be about to finish.
            None if lives => Presence::Alive,
            None => Presence::Gone(None),
            Some(mut beat) if !beat.holds.contains(key) => Presence::Gone(beat.left.remove(key)),
            Some(_) if lives => Presence::Alive,
            Some(beat) => Presence::Gone(Some(beat.stamp)),
        };
    }
    Presence::Gone(None)
}

/// Removes the files of holders that are gone and that no open episode names.
pub(crate) fn clear_up(disk: &dyn Disk, root: &Path, named: &dyn Fn(&str) -> bool) {
    let Ok(names) = disk.names(&root.join("holders")) else { return };
    for name in names {
        let Some(id) = name.to_str().and_then(|name| name.strip_suffix(".json")).filter(|id| is_holder_id(id)) else {
            continue;
        };
        let path = holder_file(root, id);
        if !named(id)
            && let Ok(file) = disk.open(&path, Open::Existing)
            && file.try_lock().unwrap_or(false)
        {
            let _ = disk.remove(&path);
        }
    }
}

/// Whether a string is 32 lower-case hexadecimal digits, so that it may be a part of a path.
fn is_holder_id(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

fn holder_file(root: &Path, id: &str) -> PathBuf {
    root.join("holders").join(format!("{id}.json"))
}
