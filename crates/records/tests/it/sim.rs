//! A disk in memory that stops at a chosen step, forgets what was not synced, and lets somebody else run in between.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use majordomus_records::disk::{Disk, File, FileId, Open};

/// What happens at a chosen step.
pub(crate) enum Fault {
    /// The writer stops: this step and all after it fail until the next [`SimDisk::restart`].
    Stop,
    /// The disk is full from here on; of an append, half is written.
    Full,
    /// Only this step fails.
    Once,
    /// This step and all after it fail until [`SimDisk::make_room`], while the writer lives on.
    Failing,
    /// Somebody else runs to completion before this step.
    Meanwhile(Box<dyn FnOnce() + Send>),
}

/// What a restart forgets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Restart {
    /// The processes were killed: what was written is there.
    Killed,
    /// The power went: what was not synced is gone.
    PowerLost,
}

#[derive(Default)]
struct State {
    files: HashMap<u64, Contents>,
    names: BTreeMap<PathBuf, u64>,
    /// The names as they are on the platter.
    synced_names: BTreeMap<PathBuf, u64>,
    folders: BTreeSet<PathBuf>,
    locks: HashMap<u64, u64>,
    next: u64,
    steps: usize,
    fault: Option<(usize, Fault)>,
    stopped: bool,
    failing: bool,
    full: bool,
    /// Whether only its folder's sync makes a file's name last.
    strict: bool,
}

#[derive(Default, Clone)]
struct Contents {
    bytes: Vec<u8>,
    synced: Vec<u8>,
    /// Whether that was ever asked for.
    is_synced: bool,
}

impl State {
    /// Makes a file's bytes last, and with the first time its name too, as ext4, xfs and btrfs do.
    fn sync(&mut self, inode: u64) {
        let contents = self.files.get_mut(&inode).unwrap();
        contents.synced = contents.bytes.clone();
        if !std::mem::replace(&mut contents.is_synced, true) && !self.strict {
            let its = self.names.iter().filter(|(_, named)| **named == inode).map(|(path, _)| (path.clone(), inode));
            self.synced_names.extend(its);
        }
    }
}

/// The disk. Clones are the same disk.
#[derive(Clone, Default)]
pub(crate) struct SimDisk(Arc<Mutex<State>>);

impl SimDisk {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// Counts a step that changes the disk, and lets its fault happen.
    fn step(&self) -> io::Result<()> {
        let mut state = self.state();
        if state.stopped {
            return Err(io::Error::other("stopped"));
        }
        state.steps += 1;
        if state.failing {
            return Err(io::Error::other("an error that lasts"));
        }
        let due = state.fault.as_ref().is_some_and(|(at, _)| *at == state.steps);
        match due.then(|| state.fault.take()).flatten() {
            None => Ok(()),
            Some((_, Fault::Stop)) => {
                state.stopped = true;
                Err(io::Error::other("stopped"))
            }
            Some((_, Fault::Full)) => {
                state.full = true;
                Ok(())
            }
            Some((_, Fault::Failing)) => {
                state.failing = true;
                Err(io::Error::other("an error that lasts"))
            }
            Some((_, Fault::Once)) => Err(io::Error::other("an error that passes")),
            Some((_, Fault::Meanwhile(run))) => {
                drop(state);
                run();
                Ok(())
            }
        }
    }

    fn full(&self) -> io::Result<()> {
        if self.state().full { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    /// Makes it a disk that promises no more than POSIX: only its folder's sync makes a file's name last.
    pub(crate) fn be_strict(&self) {
        self.state().strict = true;
    }

    /// Lets `fault` happen at step `at`, counted from 1 and from now.
    pub(crate) fn fail_at(&self, at: usize, fault: Fault) {
        let mut state = self.state();
        let at = state.steps + at;
        state.fault = Some((at, fault));
    }

    /// Whether the chosen step has not come.
    pub(crate) fn is_waiting(&self) -> bool {
        self.state().fault.is_some()
    }

    /// How many steps there were.
    pub(crate) fn steps(&self) -> usize {
        self.state().steps
    }

    /// Begins anew after all processes have ended.
    pub(crate) fn restart(&self, how: Restart) {
        let mut state = self.state();
        (state.stopped, state.failing, state.full, state.fault) = (false, false, false, None);
        state.locks.clear();
        if how == Restart::PowerLost {
            state.names = state.synced_names.clone();
            for contents in state.files.values_mut() {
                contents.bytes = contents.synced.clone();
            }
        }
    }

    /// Makes room again, and ends what fails.
    pub(crate) fn make_room(&self) {
        let mut state = self.state();
        (state.full, state.failing) = (false, false);
    }

    /// All paths of files below `folder`.
    pub(crate) fn below(&self, folder: &Path) -> Vec<PathBuf> {
        self.state().names.keys().filter(|path| path.starts_with(folder)).cloned().collect()
    }

    /// Puts a file there, synced, whatever was there before.
    pub(crate) fn put(&self, path: &Path, bytes: &[u8]) {
        let mut state = self.state();
        state.next += 1;
        let inode = state.next;
        state.files.insert(inode, Contents { bytes: bytes.into(), synced: bytes.into(), is_synced: true });
        state.names.insert(path.into(), inode);
        state.synced_names.insert(path.into(), inode);
    }

    fn not_found() -> io::Error {
        io::ErrorKind::NotFound.into()
    }
}

impl Disk for SimDisk {
    fn read(&self, path: &Path, _most: u64) -> io::Result<Vec<u8>> {
        let state = self.state();
        let inode = state.names.get(path).ok_or_else(Self::not_found)?;
        Ok(state.files[inode].bytes.clone())
    }

    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn File>> {
        if !self.state().names.contains_key(path) {
            if how == Open::Existing {
                return Err(Self::not_found());
            }
            self.step()?;
            self.full()?;
        }
        let mut state = self.state();
        let next = state.next + 1;
        let inode = *state.names.entry(path.into()).or_insert(next);
        state.files.entry(inode).or_default();
        state.next = next + 1;
        let handle = state.next;
        Ok(Box::new(SimFile { disk: self.clone(), inode, handle }))
    }

    fn names(&self, folder: &Path) -> io::Result<Vec<OsString>> {
        let state = self.state();
        let mut names: BTreeSet<OsString> = BTreeSet::new();
        for path in state.names.keys().chain(&state.folders) {
            if let Some(first) = path.strip_prefix(folder).ok().and_then(|below| below.components().next()) {
                names.insert(first.as_os_str().into());
            }
        }
        if names.is_empty() && !state.folders.contains(folder) {
            return Err(Self::not_found());
        }
        Ok(names.into_iter().collect())
    }

    fn make_folders(&self, folder: &Path, _private: bool) -> io::Result<()> {
        if self.state().folders.contains(folder) {
            return Ok(());
        }
        self.step()?;
        self.full()?;
        self.state().folders.insert(folder.into());
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step()?;
        let mut state = self.state();
        let inode = state.names.remove(from).ok_or_else(Self::not_found)?;
        state.names.insert(to.into(), inode);
        Ok(())
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        if self.state().names.contains_key(to) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.rename(from, to)
    }

    fn write_shared(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        self.step()?;
        self.full()?;
        let mut state = self.state();
        state.next += 1;
        let inode = state.next;
        state.files.insert(inode, Contents { bytes: bytes.into(), ..Contents::default() });
        state.names.insert(path.into(), inode);
        state.sync(inode);
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.step()?;
        self.state().names.remove(path).map(drop).ok_or_else(Self::not_found)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        self.step()?;
        let mut state = self.state();
        let inside = |path: &PathBuf| path.parent() == Some(folder);
        state.synced_names.retain(|path, _| !inside(path));
        let now: Vec<_> =
            state.names.iter().filter(|(path, _)| inside(path)).map(|(path, id)| (path.clone(), *id)).collect();
        state.synced_names.extend(now);
        Ok(())
    }

    fn identity(&self, path: &Path) -> io::Result<Option<FileId>> {
        Ok(self.state().names.get(path).map(|inode| FileId { device: 1, inode: *inode }))
    }
}

struct SimFile {
    disk: SimDisk,
    inode: u64,
    handle: u64,
}

impl File for SimFile {
    fn length(&self) -> io::Result<u64> {
        Ok(self.disk.state().files[&self.inode].bytes.len() as u64)
    }

    fn read_at(&mut self, offset: u64, most: u64) -> io::Result<Vec<u8>> {
        let state = self.disk.state();
        let bytes = &state.files[&self.inode].bytes;
        let rest = bytes.get(usize::try_from(offset).unwrap()..).unwrap_or_default();
        Ok(rest.iter().take(usize::try_from(most).unwrap_or(usize::MAX)).copied().collect())
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        // Whoever has stopped before writes nothing at all.
        let was_stopped = self.disk.state().stopped;
        let fails = self.disk.step().is_err();
        let mut state = self.disk.state();
        if was_stopped {
            return Err(io::Error::other("stopped"));
        }
        let torn = fails || state.full;
        let written = if torn { &bytes[..bytes.len() / 2] } else { bytes };
        state.files.get_mut(&self.inode).unwrap().bytes.extend_from_slice(written);
        if torn { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    fn sync(&mut self) -> io::Result<()> {
        self.disk.step()?;
        self.disk.state().sync(self.inode);
        Ok(())
    }

    fn overwrite(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.disk.step()?;
        self.disk.state().files.get_mut(&self.inode).unwrap().bytes = bytes.into();
        Ok(())
    }

    fn identity(&self) -> io::Result<FileId> {
        Ok(FileId { device: 1, inode: self.inode })
    }

    fn try_lock(&self) -> io::Result<bool> {
        let mut state = self.disk.state();
        let owner = *state.locks.entry(self.inode).or_insert(self.handle);
        Ok(owner == self.handle)
    }

    fn try_lock_shared(&self) -> io::Result<bool> {
        // Nobody here holds it for longer than it takes to look.
        let state = self.disk.state();
        Ok(state.locks.get(&self.inode).is_none_or(|owner| *owner == self.handle))
    }
}

impl Drop for SimFile {
    fn drop(&mut self) {
        let mut state = self.disk.state();
        if state.locks.get(&self.inode) == Some(&self.handle) {
            state.locks.remove(&self.inode);
        }
    }
}
