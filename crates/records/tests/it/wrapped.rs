//! The simulated disk seen through something that counts what is read, or that takes names but no bytes.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use majordomus_records::disk::{Disk, File, FileId, Open};

use crate::sim::SimDisk;

/// The disk. Clones are the same disk and count together.
#[derive(Clone, Default)]
pub(crate) struct Wrapped {
    disk: SimDisk,
    read: Arc<AtomicU64>,
    full: Option<PathBuf>,
}

impl Wrapped {
    pub(crate) fn new(disk: &SimDisk) -> Self {
        Self { disk: disk.clone(), ..Self::default() }
    }

    /// Below `folder` names are taken and bytes are not.
    pub(crate) fn full_below(disk: &SimDisk, folder: PathBuf) -> Self {
        Self { full: Some(folder), ..Self::new(disk) }
    }

    /// How many bytes `what` reads.
    pub(crate) fn bytes_read(&self, what: impl FnOnce()) -> u64 {
        let before = self.read.load(Ordering::Relaxed);
        what();
        self.read.load(Ordering::Relaxed) - before
    }

    fn is_full(&self, path: &Path) -> bool {
        self.full.as_ref().is_some_and(|folder| path.starts_with(folder))
    }
}

fn no_space() -> io::Error {
    io::ErrorKind::StorageFull.into()
}

fn counted(read: &AtomicU64, bytes: Vec<u8>) -> Vec<u8> {
    read.fetch_add(bytes.len() as u64, Ordering::Relaxed);
    bytes
}

impl Disk for Wrapped {
    fn read(&self, path: &Path, most: u64) -> io::Result<Vec<u8>> {
        Ok(counted(&self.read, self.disk.read(path, most)?))
    }

    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn File>> {
        let file = self.disk.open(path, how)?;
        Ok(Box::new(WrappedFile { file, read: self.read.clone(), full: self.is_full(path) }))
    }

    fn names(&self, folder: &Path) -> io::Result<Vec<OsString>> {
        self.disk.names(folder)
    }

    fn make_folders(&self, folder: &Path, private: bool) -> io::Result<()> {
        self.disk.make_folders(folder, private)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.rename_new(from, to)
    }

    fn write_shared(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        if self.is_full(path) { Err(no_space()) } else { self.disk.write_shared(path, bytes) }
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.disk.remove(path)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        self.disk.sync_folder(folder)
    }

    fn identity(&self, path: &Path) -> io::Result<Option<FileId>> {
        self.disk.identity(path)
    }
}

struct WrappedFile {
    file: Box<dyn File>,
    read: Arc<AtomicU64>,
    full: bool,
}

impl File for WrappedFile {
    fn length(&self) -> io::Result<u64> {
        self.file.length()
    }

    fn read_at(&mut self, offset: u64, most: u64) -> io::Result<Vec<u8>> {
        Ok(counted(&self.read, self.file.read_at(offset, most)?))
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.full { Err(no_space()) } else { self.file.append(bytes) }
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync()
    }

    fn overwrite(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.full { Err(no_space()) } else { self.file.overwrite(bytes) }
    }

    fn identity(&self) -> io::Result<FileId> {
        self.file.identity()
    }

    fn try_lock(&self) -> io::Result<bool> {
        self.file.try_lock()
    }

    fn try_lock_shared(&self) -> io::Result<bool> {
        self.file.try_lock_shared()
    }
}
