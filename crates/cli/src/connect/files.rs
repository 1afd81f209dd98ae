//! Settings files on the disk: read whole, replaced whole, and never while somebody else has changed them.

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use majordomus_providers::Format;
use rustix::fs::{Access, Gid, OFlags, Uid};

use super::document::{Document, EditError};

/// The most bytes of settings that are read.
const MOST: u64 = 4 << 20;

/// Says why a settings file is left as it is.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FileError {
    /// A link that leads nowhere.
    #[error("it is a link to {}, where nothing is", .0.display())]
    Dangling(PathBuf),
    /// A link that leads out of the project: what a repository brings along must not change what is somebody's elsewhere.
    #[error("it leads out of the project, to {}; connect with --global for your own settings, or there", .0.display())]
    LeadsOut(PathBuf),
    /// A folder, a pipe, a device.
    #[error("it is not an ordinary file")]
    Kind,
    /// No settings file is like that.
    #[error("it has more than {} MiB", MOST >> 20)]
    Large,
    /// Nobody may write it.
    #[error("it is read-only")]
    ReadOnly,
    /// Somebody else wrote it meanwhile.
    #[error("it was changed by somebody else at this moment")]
    Changed,
    /// What it says is not edited.
    #[error(transparent)]
    Edit(#[from] EditError),
    /// The operating system refused.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// A settings file as it was found, and as it shall be.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// As the provider declares it.
    pub(super) declared: &'static str,
    /// Where it really is, all links followed.
    pub(super) real: PathBuf,
    /// The folders above it that are not there, the outermost first.
    missing: Vec<PathBuf>,
    /// What was in it; `None` where it is not there.
    pub(super) before: Option<Vec<u8>>,
    /// What shall be in it.
    pub(super) document: Document,
}

impl Settings {
    /// Reads the file at `path`, where one is there.
    pub(super) fn read(declared: &'static str, path: &Path, format: Format) -> Result<Self, FileError> {
        let (real, missing) = resolve(path)?;
        let before = if missing.is_empty() { content(&real)? } else { None };
        let document = Document::parse(format, before.as_deref().unwrap_or_default())?;
        Ok(Self { declared, real, missing, before, document })
    }

    /// The folders that writing makes.
    pub(super) fn folders(&self) -> &[PathBuf] {
        &self.missing
    }

    /// Writes what shall be in it in place of what was: whole, or not at all.
    pub(super) fn write(&self) -> Result<(), FileError> {
        let folder = self.real.parent().ok_or(FileError::Kind)?;
        let old = match &self.before {
            Some(_) => Some(fs::metadata(&self.real)?),
            None => None,
        };
        // A file may be replaced by whoever may write its folder, but then nobody asked for that.
        if old.as_ref().is_some_and(|old| old.mode() & 0o222 == 0)
            || (old.is_some() && rustix::fs::access(&self.real, Access::WRITE_OK).is_err())
        {
            return Err(FileError::ReadOnly);
        }
        for missing in &self.missing {
            match fs::create_dir(missing) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => made?,
            }
        }
        let mut name = OsString::from(".");
        name.push(self.real.file_name().unwrap_or_default());
        name.push(".");
        let mut aside = tempfile::Builder::new();
        let mut aside =
            aside.prefix(&name).suffix(".majordomus").permissions(Permissions::from_mode(0o666)).tempfile_in(folder)?;
        aside.write_all(&self.document.bytes())?;
        if let Some(old) = &old {
            let new = aside.as_file().metadata()?;
            if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
                let (owner, group) = (Uid::from_raw(old.uid()), Gid::from_raw(old.gid()));
                rustix::fs::fchown(aside.as_file(), Some(owner), Some(group)).map_err(io::Error::from)?;
            }
            aside.as_file().set_permissions(Permissions::from_mode(old.mode() & 0o7777))?;
        }
        aside.as_file().sync_all()?;
        if content(&self.real)? != self.before {
            return Err(FileError::Changed);
        }
        if self.before.is_some() {
            aside.persist(&self.real).map_err(|error| error.error)?;
        } else {
            aside.persist_noclobber(&self.real).map_err(|error| {
                let is_there = error.error.kind() == io::ErrorKind::AlreadyExists;
                if is_there { FileError::Changed } else { FileError::Io(error.error) }
            })?;
        }
        Ok(fs::File::open(folder)?.sync_all()?)
    }

    /// Removes the file, and of `folders`, the outermost first, those in which nothing is left.
    pub(super) fn delete(&self, folders: &[PathBuf]) -> Result<(), FileError> {
        if content(&self.real)? != self.before {
            return Err(FileError::Changed);
        }
        fs::remove_file(&self.real)?;
        for folder in folders.iter().rev() {
            // It is somebody's by now if something is in it.
            if fs::remove_dir(folder).is_err() {
                break;
            }
        }
        Ok(())
    }
}

/// Where a path really leads, and which folders on the way are not there.
fn resolve(path: &Path) -> Result<(PathBuf, Vec<PathBuf>), FileError> {
    match fs::canonicalize(path) {
        Ok(real) => return Ok((real, Vec::new())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error.into()),
    }
    if fs::symlink_metadata(path).is_ok() {
        return Err(FileError::Dangling(fs::read_link(path)?));
    }
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return Err(FileError::Kind) };
    let (real, mut missing) = resolve(folder)?;
    if !missing.is_empty() || !real.is_dir() {
        missing.push(real.clone());
    }
    Ok((real.join(name), missing))
}

/// What is in an ordinary file; `None` where nothing is there.
fn content(path: &Path) -> Result<Option<Vec<u8>>, FileError> {
    // A pipe is not waited for.
    let opened = fs::OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path);
    let file = match opened {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let about = file.metadata()?;
    if !about.is_file() {
        return Err(FileError::Kind);
    }
    if about.len() > MOST {
        return Err(FileError::Large);
    }
    let mut bytes = Vec::new();
    file.take(MOST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST { Err(FileError::Large) } else { Ok(Some(bytes)) }
}

#[cfg(test)]
mod tests;
