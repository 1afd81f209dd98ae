//! Which server answers for a checkout, as other processes can see it.
//!
//! The server of a checkout holds a lock on the checkout's own git directory for as long as it lives: the kernel gives
//! it back in every kind of death, nobody can delete the file from under it, and no process id is judged. What it
//! publishes in `server.json` is only read, never computed a second time, and whoever reads it asks the server itself
//! whether it is the one that is named.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::store::Store;

/// The version of `server.json` that this code writes.
pub const FORMAT: u32 = 2;

/// How often the lock is tried: whoever only looks has it for a moment.
const ATTEMPTS: u32 = 5;
/// How long between two tries.
const PAUSE: Duration = Duration::from_millis(5);

/// The most bytes of `server.json` that are read.
const READ_MOST: u64 = 16 * 1024;

/// What a server tells those who look for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Published {
    /// [`FORMAT`].
    pub format: u32,
    /// Where it answers: `http://127.0.0.1:8741`.
    pub url: String,
    /// The Unix socket on which it serves the other processes of its user; absent where it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<PathBuf>,
    /// 32 hexadecimal digits that no other server has.
    pub instance: String,
    /// Its process, for people: nothing is judged by it.
    pub pid: u32,
    /// Its version.
    pub version: String,
}

/// The right to be the server of a checkout, until it is dropped.
#[derive(Debug)]
pub struct Serving {
    /// Locked for as long as it is open.
    lock: File,
    published: Option<(PathBuf, String)>,
}

impl Store {
    /// Becomes the server of this checkout; `None` where another process is.
    ///
    /// # Errors
    /// The operating system's, where the git directory cannot be locked.
    pub fn serve(&self) -> io::Result<Option<Serving>> {
        for _ in 0..ATTEMPTS {
            if let Some(serving) = self.try_serve()? {
                return Ok(Some(serving));
            }
            std::thread::sleep(PAUSE);
        }
        Ok(None)
    }

    /// The same, tried once: also `None` where somebody was just looking whether there is a server.
    ///
    /// # Errors
    /// The operating system's, where the git directory cannot be locked.
    pub fn try_serve(&self) -> io::Result<Option<Serving>> {
        // A folder is locked by a descriptor that can only read, so this works in a directory that is read-only.
        let lock = match self.own_places() {
            None => File::open(&self.checkout().git_dir)?,
            Some(own) => {
                self.disk().make_folders(&own[0], true)?;
                File::open(&own[0])?
            }
        };
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Serving::with_lock(lock))),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether some process is the server of this checkout, this one included.
    #[must_use]
    pub fn is_served(&self) -> bool {
        let own = self.own_places();
        let Ok(lock) = File::open(own.map_or(&self.checkout().git_dir, |own| &own[0])) else { return false };
        flock(&lock, FlockOperation::NonBlockingLockShared) == Err(rustix::io::Errno::WOULDBLOCK)
    }

    /// Where this user's server of the checkout is locked and published, if that is not where its owner's is: one user's
    /// clients are not served by another one's server.
    fn own_places(&self) -> Option<&[PathBuf]> {
        let roots = self.state().roots();
        let owner = std::fs::metadata(&self.checkout().git_dir).ok()?.uid();
        let is_ours = owner == rustix::process::geteuid().as_raw();
        (!is_ours && roots.len() > 1).then(|| &roots[1..])
    }

    /// The folders for what is published.
    fn places(&self) -> &[PathBuf] {
        self.own_places().unwrap_or(self.state().roots())
    }

    /// Publishes where the server of this checkout answers, to be called once it does.
    ///
    /// # Errors
    /// The operating system's, where no state folder can be written.
    pub fn advertise(&self, serving: &mut Serving, published: &Published) -> io::Result<()> {
        let bytes = serde_json::to_vec(published)?;
        let mut refused = None;
        for root in self.state().roots() {
            match self.write_whole(&file(root), &bytes, &published.instance) {
                Ok(()) => {
                    serving.published = Some((file(root), published.instance.clone()));
                    self.clear_asides(root);
                    return Ok(());
                }
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        Err(refused.unwrap_or_else(|| io::ErrorKind::NotFound.into()))
    }

    /// Removes what servers left that were killed while they published. Only the server publishes.
    fn clear_asides(&self, root: &Path) {
        let names = self.disk().names(root).unwrap_or_default();
        let is_aside = |name: &&std::ffi::OsString| {
            name.to_str().is_some_and(|name| name.starts_with("server.") && name.ends_with(".aside"))
        };
        for name in names.iter().filter(is_aside) {
            let _ = self.disk().remove(&root.join(name));
        }
    }

    /// The version of a server that published in a form which this version does not read; whether it lives still is known
    /// by [`is_served`](Self::is_served).
    #[must_use]
    pub fn other_version(&self) -> Option<String> {
        #[derive(Deserialize)]
        struct Any {
            format: u32,
            version: String,
        }
        let read = |root: &PathBuf| {
            let bytes = self.disk().read(&file(root), READ_MOST).ok()?;
            serde_json::from_slice::<Any>(&bytes).ok().filter(|any| any.format != FORMAT)
        };
        self.places().iter().find_map(read).map(|any| crate::text::visible(&any.version))
    }

    /// Writes a file of the server's aside and renames it, so that nobody ever reads a half of it.
    pub(crate) fn write_whole(&self, path: &Path, bytes: &[u8], instance: &str) -> io::Result<()> {
        let (disk, aside) = (self.disk(), path.with_extension(format!("{instance}.aside")));
        disk.make_folders(path.parent().unwrap_or(path), true)?;
        let written = disk.open(&aside, crate::disk::Open::Create).and_then(|mut file| file.append(bytes));
        let renamed = written.and_then(|()| disk.rename(&aside, path));
        if renamed.is_err() {
            let _ = disk.remove(&aside);
        }
        renamed
    }

    /// What the server of this checkout published; nothing where no process is its server, whatever an earlier one left
    /// behind or a copied checkout brought along. That it is the one that answers there is for the reader to find out.
    #[must_use]
    pub fn published(&self) -> Option<Published> {
        self.left_behind().filter(|_| self.is_served())
    }

    /// What the last server published that did not take it back, whether there is one now or not.
    #[must_use]
    pub fn left_behind(&self) -> Option<Published> {
        self.places().iter().find_map(|root| read(self, &file(root)))
    }
}

impl Serving {
    /// Takes over the right of a server that has left it to this one, by the lock that was received from it.
    #[must_use]
    pub fn with_lock(lock: File) -> Self {
        Self { lock, published: None }
    }

    /// Leaves the right to another process, which receives the lock. What was published stays until that one publishes.
    #[must_use]
    pub fn into_lock(self) -> File {
        self.lock
    }

    /// Takes back what was published, where it is still ours, and lets another process be the server.
    pub fn leave(self, store: &Store) {
        if let Some((path, instance)) = &self.published
            && read(store, path).is_some_and(|published| published.instance == *instance)
        {
            let _ = store.disk().remove(path);
        }
    }
}

fn read(store: &Store, path: &Path) -> Option<Published> {
    let bytes = store.disk().read(path, READ_MOST).ok()?;
    serde_json::from_slice::<Published>(&bytes).ok().filter(|published| published.format == FORMAT)
}

fn file(root: &Path) -> PathBuf {
    root.join("server.json")
}

#[cfg(test)]
mod tests;
