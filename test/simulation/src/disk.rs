//! The machine's disk: what is written lies in a cache, and only what was synced survives the loss of power.
//!
//! Names are changed in a journal, in order: syncing a folder makes all changes durable up to the last one that touched
//! it, and a loss of power keeps any number of the first of the others. Of bytes that were not synced it keeps none,
//! some or all, or as many zeros.
//!
//! Each process sees the disk through a [`View`], which its faults are put into: a process that was killed reaches the
//! disk no more, whatever of it still runs.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::ops::Bound;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use majordomus_records::disk::{Disk, File, FileId, Open};

use crate::random::Random;

/// Whether a failed sync is not made good by a later one of the same bytes, as Linux has it. A process that goes on after
/// another one's failure cannot know of it, so this is not demanded.
const FSYNC_FORGETS: bool = false;

/// What goes wrong at a step of a process that changes the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The process is killed before it; of an append, half is written.
    Kill,
    /// The machine loses its power before it.
    Power,
    /// It fails.
    Once,
    /// It and the next three fail.
    Some,
}

/// The disk. Clones are the same disk.
#[derive(Clone, Default)]
pub(crate) struct Platter(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    files: HashMap<u64, Contents>,
    names: BTreeMap<PathBuf, u64>,
    durable_names: BTreeMap<PathBuf, u64>,
    /// Changes of names that are not durable, oldest first.
    journal: Vec<Change>,
    folders: BTreeSet<PathBuf>,
    /// By file: who has it locked, and whether alone.
    locks: HashMap<u64, Vec<(u64, bool)>>,
    last_number: u64,
    full: bool,
    powered_off: bool,
    views: HashMap<u32, Faults>,
    /// What was changed since somebody looked.
    changed: BTreeSet<PathBuf>,
    paths: HashMap<u64, PathBuf>,
    /// What stood in logs that were removed since somebody looked.
    removed: Vec<Vec<u8>>,
    failures: u64,
}

#[derive(Default)]
struct Faults {
    dead: bool,
    armed: Vec<(usize, Fault)>,
}

#[derive(Clone, Debug)]
struct Change {
    gone: Option<PathBuf>,
    there: Option<(PathBuf, u64)>,
}

#[derive(Default)]
struct Contents {
    bytes: Vec<u8>,
    durable: Vec<u8>,
    /// Bytes whose sync has failed: they are read from the cache, and nobody writes them any more.
    lost: Vec<Range<usize>>,
    /// Whether it was written from its beginning since it was synced.
    rewritten: bool,
}

impl Contents {
    fn sync(&mut self) {
        self.durable.clone_from(&self.bytes);
        for range in &self.lost {
            let end = range.end.min(self.durable.len());
            if let Some(bytes) = self.durable.get_mut(range.start..end) {
                bytes.fill(0);
            }
        }
        self.rewritten = false;
    }

    fn fail_to_sync(&mut self) {
        if !self.rewritten && self.durable.len() < self.bytes.len() {
            self.lost.push(self.durable.len()..self.bytes.len());
        }
    }

    fn lose_power(&mut self, random: &mut Random) {
        let mut kept = std::mem::take(&mut self.durable);
        if self.rewritten {
            match random.below(3) {
                0 => kept.clear(),
                1 => kept.clone_from(&self.bytes),
                _ => {}
            }
        } else if kept.len() < self.bytes.len() {
            let unsynced = self.bytes.len() - kept.len();
            let some = random.below(unsynced + 1);
            match random.below(4) {
                0 => {}
                1 => kept.extend_from_slice(&self.bytes[kept.len()..]),
                2 => kept.extend_from_slice(&self.bytes[kept.len()..kept.len() + some]),
                _ => kept.resize(kept.len() + some, 0),
            }
            for range in &self.lost {
                let end = range.end.min(kept.len());
                if let Some(bytes) = kept.get_mut(range.start..end) {
                    bytes.fill(0);
                }
            }
        }
        *self = Self { bytes: kept.clone(), durable: kept, ..Self::default() };
    }
}

impl State {
    /// Where a new file got its name, that is durable with its first fsync: so do ext4, xfs and btrfs.
    fn make_name_durable(&mut self, file: u64) {
        let made =
            |change: &Change| change.gone.is_none() && change.there.as_ref().is_some_and(|(_, inode)| *inode == file);
        if let Some(at) = self.journal.iter().position(made) {
            for change in self.journal.drain(..=at) {
                apply(&mut self.durable_names, &change);
            }
        }
    }

    fn not_found<T>() -> io::Result<T> {
        Err(ErrorKind::NotFound.into())
    }

    fn change(&mut self, change: Change) {
        apply(&mut self.names, &change);
        for path in change.gone.iter().chain(change.there.as_ref().map(|(path, _)| path)) {
            self.changed.insert(path.clone());
        }
        if let Some((path, inode)) = &change.there {
            self.paths.insert(*inode, path.clone());
        }
        self.journal.push(change);
    }

    fn touched(&mut self, inode: u64) {
        if let Some(path) = self.paths.get(&inode) {
            self.changed.insert(path.clone());
        }
    }

    fn number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }
}

fn apply(names: &mut BTreeMap<PathBuf, u64>, change: &Change) {
    if let Some(gone) = &change.gone {
        names.remove(gone);
    }
    if let Some((path, inode)) = &change.there {
        names.insert(path.clone(), *inode);
    }
}

impl Platter {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The disk as a new process sees it.
    pub(crate) fn view(&self, process: u32) -> View {
        self.state().views.insert(process, Faults::default());
        View { platter: self.clone(), process }
    }

    /// Lets the process reach the disk no more.
    pub(crate) fn kill(&self, process: u32) {
        self.state().views.entry(process).or_default().dead = true;
    }

    pub(crate) fn is_dead(&self, process: u32) -> bool {
        self.state().views.get(&process).is_some_and(|faults| faults.dead)
    }

    /// Forgets a process that has ended.
    pub(crate) fn forget(&self, process: u32) {
        self.state().views.remove(&process);
    }

    /// Lets `fault` happen to the process at its step `at` from now, counted from 1.
    pub(crate) fn arm(&self, process: u32, at: usize, fault: Fault) {
        let mut state = self.state();
        let armed = &mut state.views.entry(process).or_default().armed;
        armed.push((at, fault));
        if fault == Fault::Some {
            armed.extend((at + 1..at + 4).map(|at| (at, Fault::Once)));
        }
    }

    pub(crate) fn disarm(&self) {
        self.state().views.values_mut().for_each(|faults| faults.armed.clear());
    }

    pub(crate) fn fill(&self, full: bool) {
        self.state().full = full;
    }

    pub(crate) fn is_full(&self) -> bool {
        self.state().full
    }

    /// How often something has failed that a process lived to see.
    pub(crate) fn failures(&self) -> u64 {
        self.state().failures
    }

    pub(crate) fn is_powered_off(&self) -> bool {
        self.state().powered_off
    }

    /// The power goes: no process reaches the disk any more.
    pub(crate) fn power_off(&self) {
        self.state().powered_off = true;
    }

    /// The power is back, all processes of before are gone; what survives of what was not synced is by `random`.
    pub(crate) fn power_on(&self, random: &mut Random) {
        let mut state = self.state();
        let state = &mut *state;
        let kept = random.below(state.journal.len() + 1);
        let mut names = std::mem::take(&mut state.durable_names);
        for change in &state.journal[..kept] {
            apply(&mut names, change);
        }
        state.journal.clear();
        state.changed.extend(state.names.keys().cloned());
        state.changed.extend(names.keys().cloned());
        state.durable_names.clone_from(&names);
        state.names = names;
        let mut inodes: Vec<u64> = state.files.keys().copied().collect();
        inodes.sort_unstable();
        for inode in inodes {
            if let Some(contents) = state.files.get_mut(&inode) {
                contents.lose_power(random);
            }
        }
        state.paths = state.names.iter().map(|(path, inode)| (*inode, path.clone())).collect();
        state.locks.clear();
        state.views.clear();
        (state.powered_off, state.full) = (false, false);
    }

    /// The paths that were changed since somebody asked last.
    pub(crate) fn take_changed(&self) -> BTreeSet<PathBuf> {
        std::mem::take(&mut self.state().changed)
    }

    /// The contents of the logs that were removed since somebody asked last.
    pub(crate) fn take_removed(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.state().removed)
    }

    /// What a path names, as somebody sees it who watches from outside.
    pub(crate) fn peek(&self, path: &Path) -> Option<Vec<u8>> {
        let state = self.state();
        state.names.get(path).map(|inode| state.files[inode].bytes.clone())
    }
}

/// The disk as one process sees it.
#[derive(Clone)]
pub(crate) struct View {
    platter: Platter,
    process: u32,
}

impl View {
    fn reach(&self) -> io::Result<MutexGuard<'_, State>> {
        let state = self.platter.state();
        if state.powered_off || state.views.get(&self.process).is_none_or(|faults| faults.dead) {
            return Err(io::Error::other("this process is dead"));
        }
        Ok(state)
    }

    /// Counts a step that changes the disk, and lets its fault happen.
    fn step(&self) -> io::Result<MutexGuard<'_, State>> {
        let mut state = self.reach()?;
        let faults = state.views.entry(self.process).or_default();
        let mut due = None;
        faults.armed.retain_mut(|(at, fault)| {
            *at = at.saturating_sub(1);
            if *at == 0 {
                due = due.or(Some(*fault));
            }
            *at > 0
        });
        match due {
            None => Ok(state),
            Some(Fault::Kill) => {
                faults.dead = true;
                Err(io::Error::other("killed"))
            }
            Some(Fault::Power) => {
                state.powered_off = true;
                Err(io::Error::other("the power is gone"))
            }
            Some(Fault::Once | Fault::Some) => {
                state.failures += 1;
                Err(io::Error::other("an error of the disk"))
            }
        }
    }

    /// The same for what takes room.
    fn step_for_room(&self) -> io::Result<MutexGuard<'_, State>> {
        let mut state = self.step()?;
        if state.full {
            state.failures += 1;
            return Err(ErrorKind::StorageFull.into());
        }
        Ok(state)
    }
}

impl Disk for View {
    fn read(&self, path: &Path, _most: u64) -> io::Result<Vec<u8>> {
        let state = self.reach()?;
        match state.names.get(path) {
            Some(inode) => Ok(state.files[inode].bytes.clone()),
            None => State::not_found(),
        }
    }

    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn File>> {
        let mut state = self.reach()?;
        let inode = match (state.names.get(path), how) {
            (Some(inode), _) => *inode,
            (None, Open::Existing) => return State::not_found(),
            (None, Open::Create) => {
                drop(state);
                state = self.step_for_room()?;
                let inode = state.number();
                state.files.insert(inode, Contents::default());
                state.change(Change { gone: None, there: Some((path.into(), inode)) });
                inode
            }
        };
        let handle = state.number();
        Ok(Box::new(Opened { view: self.clone(), inode, handle, waited: Cell::new(false) }))
    }

    fn names(&self, folder: &Path) -> io::Result<Vec<OsString>> {
        let state = self.reach()?;
        let from = (Bound::Excluded(folder), Bound::Unbounded);
        let first = |path: &PathBuf| {
            path.strip_prefix(folder).ok()?.components().next().map(|first| first.as_os_str().to_owned())
        };
        let files = state.names.range::<Path, _>(from).map_while(|(path, _)| first(path));
        let folders = state.folders.range::<Path, _>(from).map_while(first);
        let names: BTreeSet<OsString> = files.chain(folders).collect();
        if names.is_empty() && !state.folders.contains(folder) {
            return State::not_found();
        }
        Ok(names.into_iter().collect())
    }

    fn make_folders(&self, folder: &Path, _private: bool) -> io::Result<()> {
        if self.reach()?.folders.contains(folder) {
            return Ok(());
        }
        self.step_for_room()?.folders.insert(folder.into());
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.step()?;
        let Some(inode) = state.names.get(from).copied() else { return State::not_found() };
        state.change(Change { gone: Some(from.into()), there: Some((to.into(), inode)) });
        Ok(())
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        if self.reach()?.names.contains_key(to) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        self.rename(from, to)
    }

    fn write_shared(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.step_for_room()?;
        let inode = state.number();
        let contents = Contents { bytes: bytes.into(), durable: bytes.into(), ..Contents::default() };
        state.files.insert(inode, contents);
        state.change(Change { gone: None, there: Some((path.into(), inode)) });
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.step()?;
        let Some(inode) = state.names.get(path).copied() else { return State::not_found() };
        if path.extension().is_some_and(|extension| extension == "jsonl") {
            let bytes = state.files[&inode].bytes.clone();
            state.removed.push(bytes);
        }
        state.change(Change { gone: Some(path.into()), there: None });
        Ok(())
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        let mut state = self.step()?;
        let state = &mut *state;
        let inside = |path: &PathBuf| path.parent() == Some(folder);
        let touches = |change: &Change| {
            change.gone.as_ref().is_some_and(inside) || change.there.as_ref().is_some_and(|(path, _)| inside(path))
        };
        if let Some(last) = state.journal.iter().rposition(touches) {
            for change in state.journal.drain(..=last) {
                apply(&mut state.durable_names, &change);
            }
        }
        Ok(())
    }

    fn identity(&self, path: &Path) -> io::Result<Option<FileId>> {
        Ok(self.reach()?.names.get(path).map(|inode| FileId { device: 1, inode: *inode }))
    }
}

struct Opened {
    view: View,
    inode: u64,
    handle: u64,
    /// Whether its lock was asked for in vain.
    waited: Cell<bool>,
}

impl Opened {
    fn contents<'a>(&self, state: &'a mut State) -> &'a mut Contents {
        state.files.entry(self.inode).or_default()
    }

    fn lock(&self, alone: bool) -> io::Result<bool> {
        let mut state = self.view.reach()?;
        let locks = state.locks.entry(self.inode).or_default();
        if locks.iter().any(|(handle, other)| *handle != self.handle && (alone || *other)) {
            // Whoever waits for a lock here waits for somebody who cannot go on meanwhile.
            return if self.waited.replace(true) { Err(ErrorKind::WouldBlock.into()) } else { Ok(false) };
        }
        locks.retain(|(handle, _)| *handle != self.handle);
        locks.push((self.handle, alone));
        Ok(true)
    }
}

impl File for Opened {
    fn length(&self) -> io::Result<u64> {
        let state = self.view.reach()?;
        Ok(state.files[&self.inode].bytes.len() as u64)
    }

    fn read_at(&mut self, offset: u64, most: u64) -> io::Result<Vec<u8>> {
        let state = self.view.reach()?;
        let rest = state.files[&self.inode].bytes.get(usize::try_from(offset).unwrap_or(usize::MAX)..);
        let rest = rest.unwrap_or_default();
        Ok(rest[..rest.len().min(usize::try_from(most).unwrap_or(usize::MAX))].to_vec())
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        // Whoever was dead before writes nothing at all.
        drop(self.view.reach()?);
        let (half, failed) = match self.view.step_for_room() {
            Ok(_) => (bytes, None),
            Err(error) => (&bytes[..bytes.len() / 2], Some(error)),
        };
        let mut state = self.view.platter.state();
        self.contents(&mut state).bytes.extend_from_slice(half);
        state.touched(self.inode);
        failed.map_or(Ok(()), Err)
    }

    fn sync(&mut self) -> io::Result<()> {
        drop(self.view.reach()?);
        let failed = self.view.step().err();
        let mut state = self.view.platter.state();
        let is_alive = !state.powered_off && state.views.get(&self.view.process).is_some_and(|faults| !faults.dead);
        let contents = self.contents(&mut state);
        match failed {
            None => {
                contents.sync();
                state.make_name_durable(self.inode);
            }
            // Whoever is killed before has not asked for it.
            Some(_) if is_alive && FSYNC_FORGETS => contents.fail_to_sync(),
            Some(_) => {}
        }
        failed.map_or(Ok(()), Err)
    }

    fn overwrite(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.view.step()?;
        let contents = self.contents(&mut state);
        contents.bytes = bytes.into();
        contents.rewritten = true;
        Ok(())
    }

    fn identity(&self) -> io::Result<FileId> {
        Ok(FileId { device: 1, inode: self.inode })
    }

    fn try_lock(&self) -> io::Result<bool> {
        self.lock(true)
    }

    fn try_lock_shared(&self) -> io::Result<bool> {
        self.lock(false)
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        let mut state = self.view.platter.state();
        if let Some(locks) = state.locks.get_mut(&self.inode) {
            locks.retain(|(handle, _)| *handle != self.handle);
        }
    }
}
