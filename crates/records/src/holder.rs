//! A process that holds connections, as other processes can see it.
//!
//! Each such process keeps one small file in `holders/`, locked for as long as it lives: the kernel gives the lock
//! back in every kind of death, so no process id is ever judged. The file's content is the last beat, from which the
//! grace of a silent but held episode runs once the process is gone.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde::{Deserialize, Serialize};

use crate::clock::Stamp;
use crate::disk::{Disk, File, Open};

/// How other processes see the holder of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It lives, and so does the hold.
    Alive,
    /// It is gone; the last beat that it left, if it can be read.
    Gone(Option<Stamp>),
}

#[derive(Serialize, Deserialize)]
struct Beat {
    v: u32,
    #[serde(flatten)]
    stamp: Stamp,
}

/// This process's own file in `holders/`, made when it first holds an episode.
pub struct Holder {
    id: String,
    file: Mutex<Option<Kept>>,
}

struct Kept {
    file: Box<dyn File>,
    path: PathBuf,
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

    /// Makes sure that the file is there and locked below the state folder `root`.
    pub(crate) fn stand(&self, disk: &dyn Disk, root: &Path, now: &Stamp) -> io::Result<()> {
        let mut kept = self.kept();
        if kept.is_some() {
            return Ok(());
        }
        let folder = root.join("holders");
        disk.make_folders(&folder, true)?;
        let path = holder_file(root, &self.id);
        loop {
            let mut file = disk.open(&path, Open::Create)?;
            file.lock()?;
            // Somebody who clears up may have removed it before the lock was ours.
            if disk.identity(&path)? == Some(file.identity()?) {
                file.overwrite(&beat(now))?;
                *kept = Some(Kept { file, path });
                return Ok(());
            }
        }
    }

    /// Writes the beat, if this process holds anything. Not made durable: after a loss of power the process is gone
    /// and the log's own evidence remains.
    ///
    /// # Errors
    /// The operating system's.
    pub fn beat(&self, now: &Stamp) -> io::Result<()> {
        match self.kept().as_mut() {
            Some(kept) => kept.file.overwrite(&beat(now)),
            None => Ok(()),
        }
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

/// Looks whether the holder of `connection` lives.
pub(crate) fn presence(disk: &dyn Disk, roots: &[PathBuf], connection: &str) -> Presence {
    let Some((holder, _)) = connection.rsplit_once('-') else { return Presence::Gone(None) };
    if !is_holder_id(holder) {
        return Presence::Gone(None);
    }
    for root in roots {
        let path = holder_file(root, holder);
        let Ok(mut file) = disk.open(&path, Open::Existing) else { continue };
        match file.try_lock() {
            Ok(false) => return Presence::Alive,
            // Unlocked as soon as `file` is dropped; a holder that stands up meanwhile waits that long.
            Ok(true) => {
                let beat = file.read_from(0).ok().and_then(|bytes| serde_json::from_slice::<Beat>(&bytes).ok());
                return Presence::Gone(beat.map(|beat| beat.stamp));
            }
            // Where locks do not work nothing can be said of the holder, and nothing may be ended for it.
            Err(_) => return Presence::Alive,
        }
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

fn beat(now: &Stamp) -> Vec<u8> {
    let beat = Beat { v: 1, stamp: now.clone() };
    serde_json::to_vec(&beat).expect("a beat holds only strings and numbers")
}
