//! A process that holds connections, as other processes can see it.
//!
//! Each such process keeps one small file in `holders/`, locked for as long as it lives: the kernel gives the lock
//! back in every kind of death, so no process id is ever judged. The file says when it was last written: from then runs
//! the grace of a silent but held episode once the process is gone. Beside that it says which episodes were let go, and
//! since when: from then runs theirs, whether the process lives or not.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
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
    /// The hashes of the keys that are held, as version 1 listed them; then nothing else is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    holds: Option<BTreeSet<String>>,
    /// The hashes of those that were let go, and since when. All others that a log gives this holder it still holds.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    left: BTreeMap<String, Stamp>,
}

/// The version that this code writes.
const BEAT_VERSION: u32 = 2;
/// The most episodes that were let go and are still named. Those beyond count as held until their process ends them or is
/// gone.
const LEFT_MOST: usize = 1024;
/// How long after its grace an episode that was let go is still named: it should be over by then.
const LEFT_FOR: Duration = Duration::from_secs(3600);

/// This process's own file in `holders/`, made when it first holds an episode.
///
/// What it says is changed under a short lock and written under another, by whoever comes first; whoever finds somebody
/// at it leaves it to them. So nobody waits here for a write of another client's.
pub struct Holder {
    id: String,
    left: Mutex<Left>,
    file: Mutex<Option<Kept>>,
}

#[derive(Default)]
struct Left {
    since: BTreeMap<String, Stamp>,
    /// How often this has changed.
    changes: u64,
}

struct Kept {
    file: Box<dyn File>,
    path: PathBuf,
    /// Which change it has.
    written: u64,
}

impl Holder {
    /// Names a holder: 32 hexadecimal digits that nobody else has.
    #[must_use]
    pub fn new(id: String) -> Self {
        Self { id, left: Mutex::default(), file: Mutex::new(None) }
    }

    /// The holder's id; the id of a connection is this, a dash and the connection's number in its process.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Notes that this process holds the episode of a key, in its locked file below the state folder `root`.
    pub(crate) fn hold(&self, disk: &dyn Disk, root: &Path, now: &Stamp, key: &str) -> io::Result<()> {
        {
            let mut left = self.left();
            left.changes += u64::from(left.since.remove(key).is_some());
        }
        let Some(mut kept) = self.try_file() else { return Ok(()) };
        if kept.is_none() {
            let mut new = self.stand_up(disk, root)?;
            if let Err(error) = self.write(&mut new, now) {
                let _ = disk.remove(&new.path);
                return Err(error);
            }
            *kept = Some(new);
        }
        drop(kept);
        self.catch_up(now)
    }

    fn stand_up(&self, disk: &dyn Disk, root: &Path) -> io::Result<Kept> {
        disk.make_folders(&root.join("holders"), true)?;
        let path = holder_file(root, &self.id);
        loop {
            let file = disk.open(&path, Open::Create)?;
            lock_soon(&*file)?;
            // Somebody who clears up may have removed it before the lock was ours.
            if disk.identity(&path)? == Some(file.identity()?) {
                return Ok(Kept { file, path, written: 0 });
            }
        }
    }

    /// Whether other processes are told that this one holds the episodes that logs give it, that of this key included.
    pub(crate) fn holds(&self, key: &str) -> bool {
        // Whoever is at the file is about to tell them.
        !self.left().since.contains_key(key) && self.try_file().is_none_or(|kept| kept.is_some())
    }

    /// Notes that this process has let the episode of a key go at `since`; its grace runs from then. Where that cannot
    /// be written the episode counts as held until the process is gone.
    pub(crate) fn let_go(&self, now: &Stamp, key: &str, since: Stamp, grace: Duration) {
        {
            let mut left = self.left();
            left.since.insert(key.into(), since);
            left.since.retain(|_, since| now.age_of(since) < grace.saturating_add(LEFT_FOR));
            while left.since.len() > LEFT_MOST
                && let Some(oldest) =
                    left.since.iter().max_by_key(|(_, since)| now.age_of(since)).map(|(key, _)| key.clone())
            {
                left.since.remove(&oldest);
            }
            left.changes += 1;
        }
        let _ = self.catch_up(now);
    }

    /// Notes that the episode of a key is over: it is neither held nor waited for.
    pub(crate) fn forget(&self, now: &Stamp, key: &str) {
        {
            let mut left = self.left();
            if left.since.remove(key).is_none() {
                return;
            }
            left.changes += 1;
        }
        let _ = self.catch_up(now);
    }

    /// Writes the beat, if this process holds anything. Not made durable: after a loss of power the process is gone
    /// and the log's own evidence remains.
    ///
    /// # Errors
    /// The operating system's.
    pub fn beat(&self, now: &Stamp) -> io::Result<()> {
        self.left().changes += 1;
        self.catch_up(now)
    }

    /// Gives the file up without a trace, where no episode waits for what it says.
    pub fn leave(&self, disk: &dyn Disk) {
        if let Some(kept) = self.try_file().and_then(|mut kept| kept.take()) {
            let _ = disk.remove(&kept.path);
        }
    }

    /// Says a last time that this process lives, and is none from now on that others would take for a holder: what it held
    /// waits for its clients from here.
    pub(crate) fn retire(&self, now: &Stamp) {
        // A beat that cannot be written costs a part of a grace, no truth.
        let _ = self.beat(now);
        // Its lock goes with it.
        drop(self.try_file().and_then(|mut kept| kept.take()));
    }

    /// Writes what has changed, until nothing more has: also what others could not write because we were at it.
    fn catch_up(&self, now: &Stamp) -> io::Result<()> {
        loop {
            let Some(mut kept) = self.try_file() else { return Ok(()) };
            let Some(file) = kept.as_mut() else { return Ok(()) };
            if file.written == self.left().changes {
                return Ok(());
            }
            self.write(file, now)?;
        }
    }

    fn write(&self, kept: &mut Kept, now: &Stamp) -> io::Result<()> {
        let (left, changes) = {
            let left = self.left();
            (left.since.clone(), left.changes)
        };
        let beat = Beat { v: BEAT_VERSION, stamp: now.clone(), holds: None, left };
        kept.file.overwrite(&serde_json::to_vec(&beat)?)?;
        kept.written = changes;
        Ok(())
    }

    /// The file, unless somebody is at it.
    fn try_file(&self) -> Option<MutexGuard<'_, Option<Kept>>> {
        match self.file.try_lock() {
            Ok(kept) => Some(kept),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn left(&self) -> MutexGuard<'_, Left> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Beat {
    /// Whether the holder has not let the episode of a key go.
    fn says_held(&self, key: &str) -> bool {
        !self.left.contains_key(key) && self.holds.as_ref().is_none_or(|holds| holds.contains(key))
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
            Some(mut beat) if !beat.says_held(key) => Presence::Gone(beat.left.remove(key)),
            Some(_) if lives => Presence::Alive,
            Some(beat) => Presence::Gone(Some(beat.stamp)),
        };
    }
    Presence::Gone(None)
}

/// Notes that a holder was seen to die now: its last beat may be old, where it was stopped before. What it had let go it
/// let go when it said.
pub(crate) fn note_death(disk: &dyn Disk, roots: &[PathBuf], id: &str, now: &Stamp) -> io::Result<()> {
    if !is_holder_id(id) {
        return Ok(());
    }
    for root in roots {
        let Ok(mut file) = disk.open(&holder_file(root, id), Open::Existing) else { continue };
        if !file.try_lock()? {
            continue;
        }
        let bytes = file.read_at(0, READ_MOST)?;
        if let Ok(beat) = serde_json::from_slice::<Beat>(&bytes) {
            file.overwrite(&serde_json::to_vec(&Beat { stamp: now.clone(), ..beat })?)?;
        }
    }
    Ok(())
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
