//! The file layer: what the durable side needs of a disk, and nothing more.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{FlockOperation, RenameFlags, flock};

/// What a file is, whatever it is called now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileId {
    /// The file system.
    pub device: u64,
    /// The file on it.
    pub inode: u64,
}

/// How to open a file for appending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Open {
    /// It must exist.
    Existing,
    /// It is made, readable by its owner alone, where it does not exist.
    Create,
}

/// A disk. Paths are absolute; errors are the operating system's.
pub trait Disk: Send + Sync {
    /// Reads the first `most` bytes of an ordinary file; no link is followed and nothing is waited for.
    fn read(&self, path: &Path, most: u64) -> io::Result<Vec<u8>>;
    /// Opens a file for reading and appending.
    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn File>>;
    /// Lists the names in a folder, in no order.
    fn names(&self, folder: &Path) -> io::Result<Vec<OsString>>;
    /// Makes a folder and those above it that are missing, for its owner alone if `private`, and makes them durable.
    fn make_folders(&self, folder: &Path, private: bool) -> io::Result<()>;
    /// Renames within one file system, replacing.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Renames within one file system; `AlreadyExists` where there is something already.
    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Makes or replaces a small file that everybody may read, durable before it returns.
    fn write_shared(&self, path: &Path, bytes: &[u8]) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Makes the names in a folder durable.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;
    /// Tells which file a path names now; `None` where it names none.
    fn identity(&self, path: &Path) -> io::Result<Option<FileId>>;
}

/// An open file.
pub trait File: Send {
    /// Tells how many bytes it has.
    fn length(&self) -> io::Result<u64>;
    /// Reads at most `most` bytes from `offset`.
    fn read_at(&mut self, offset: u64, most: u64) -> io::Result<Vec<u8>>;
    /// Appends with one write; a short write is an error, and what it wrote stays.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Makes the contents durable.
    fn sync(&mut self) -> io::Result<()>;
    /// Replaces the first bytes without making them durable.
    fn overwrite(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Tells which file this is.
    fn identity(&self) -> io::Result<FileId>;
    /// Takes the file's lock alone, for as long as this is open, if nobody else has it; tells whether it did.
    fn try_lock(&self) -> io::Result<bool>;
    /// The same together with others who take it so: for looking whether somebody has it alone.
    fn try_lock_shared(&self) -> io::Result<bool>;
}

/// The machine's own file systems.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn read(&self, path: &Path, most: u64) -> io::Result<Vec<u8>> {
        let file = ordinary(fs::OpenOptions::new().read(true).custom_flags(CAREFUL).open(path)?)?;
        // Most files here fit into one read.
        let mut bytes = Vec::with_capacity(FIRST_READ);
        file.take(most).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn File>> {
        let file = fs::OpenOptions::new()
            .read(true)
            .append(true)
            .create(how == Open::Create)
            .mode(0o600)
            .custom_flags(CAREFUL)
            .open(path)?;
        Ok(Box::new(RealFile(ordinary(file)?)))
    }

    fn names(&self, folder: &Path) -> io::Result<Vec<OsString>> {
        fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name())).collect()
    }

    fn make_folders(&self, folder: &Path, private: bool) -> io::Result<()> {
        if folder.is_dir() {
            return Ok(());
        }
        let Some(parent) = folder.parent() else { return Ok(()) };
        self.make_folders(parent, private)?;
        match fs::DirBuilder::new().mode(if private { 0o700 } else { 0o777 }).create(folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            other => other?,
        }
        self.sync_folder(parent)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        use rustix::fs::{CWD, renameat_with};
        match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
            // Some file systems cannot: a link fails just as well where there is something already.
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS | rustix::io::Errno::NOTSUP) => {
                fs::hard_link(from, to)?;
                fs::remove_file(from)
            }
            done => Ok(done?),
        }
    }

    fn write_shared(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o644)
            .custom_flags(CAREFUL)
            .open(path)?;
        file.write_all(bytes)?;
        file.sync_all()
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        fs::File::open(folder)?.sync_all()
    }

    fn identity(&self, path: &Path) -> io::Result<Option<FileId>> {
        match fs::symlink_metadata(path) {
            Ok(data) => Ok(Some(FileId { device: data.dev(), inode: data.ino() })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

struct RealFile(fs::File);

impl File for RealFile {
    fn length(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read_at(&mut self, offset: u64, most: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(FIRST_READ);
        self.0.seek(SeekFrom::Start(offset))?;
        Read::take(&self.0, most).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.0.write(bytes)? < bytes.len() {
            return Err(io::Error::new(io::ErrorKind::WriteZero, "the disk took only a part of the line"));
        }
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn overwrite(&mut self, bytes: &[u8]) -> io::Result<()> {
        // The descriptor appends, so the start is reached by cutting first. A reader in between sees an empty file,
        // which says as much as a missing one.
        self.0.set_len(0)?;
        self.0.write_all(bytes)
    }

    fn identity(&self) -> io::Result<FileId> {
        let data = self.0.metadata()?;
        Ok(FileId { device: data.dev(), inode: data.ino() })
    }

    fn try_lock(&self) -> io::Result<bool> {
        taken(flock(&self.0, FlockOperation::NonBlockingLockExclusive))
    }

    fn try_lock_shared(&self) -> io::Result<bool> {
        taken(flock(&self.0, FlockOperation::NonBlockingLockShared))
    }
}

fn taken(answer: rustix::io::Result<()>) -> io::Result<bool> {
    match answer {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// No link is followed, and a pipe or device that stands where a file should is not waited for.
const CAREFUL: i32 = rustix::fs::OFlags::NOFOLLOW.union(rustix::fs::OFlags::NONBLOCK).bits().cast_signed();

/// How many bytes are made room for before a file is read.
const FIRST_READ: usize = 4096;

fn ordinary(file: fs::File) -> io::Result<fs::File> {
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("not an ordinary file")) }
}
