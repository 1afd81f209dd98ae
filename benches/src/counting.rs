//! A disk that counts what is asked of it: what a command costs, without the machine's noise.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use majordomus_records::disk::{Disk, File, FileId, Open, RealDisk};

/// The real disk, and how often it was asked for what grows with an archive.
#[derive(Default)]
pub(crate) struct CountingDisk {
    folders: AtomicUsize,
    names: AtomicUsize,
    reads: AtomicUsize,
}

impl CountingDisk {
    /// Says what was asked since the last time, and starts over.
    pub(crate) fn take(&self) -> String {
        let take = |count: &AtomicUsize| count.swap(0, Ordering::Relaxed);
        format!(
            "{} folders with {} names listed, {} files read",
            take(&self.folders),
            take(&self.names),
            take(&self.reads)
        )
    }
}

impl Disk for CountingDisk {
    fn read(&self, path: &Path, most: u64) -> io::Result<Vec<u8>> {
        let bytes = RealDisk.read(path, most)?;
        self.reads.fetch_add(1, Ordering::Relaxed);
        Ok(bytes)
    }

    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn File>> {
        RealDisk.open(path, how)
    }

    fn names(&self, folder: &Path) -> io::Result<Vec<OsString>> {
        let names = RealDisk.names(folder)?;
        self.folders.fetch_add(1, Ordering::Relaxed);
        self.names.fetch_add(names.len(), Ordering::Relaxed);
        Ok(names)
    }

    fn make_folders(&self, folder: &Path, private: bool) -> io::Result<()> {
        RealDisk.make_folders(folder, private)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        RealDisk.rename(from, to)
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        RealDisk.rename_new(from, to)
    }

    fn write_shared(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        RealDisk.write_shared(path, bytes)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        RealDisk.remove(path)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        RealDisk.sync_folder(folder)
    }

    fn identity(&self, path: &Path) -> io::Result<Option<FileId>> {
        RealDisk.identity(path)
    }
}
