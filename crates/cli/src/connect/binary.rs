//! What hooks and clients shall run: a path that is still there after the next upgrade.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::bounded;
use super::shell::NAME;
use crate::variables;

/// How long the program may take to say its version.
const LIMIT: Duration = Duration::from_secs(2);

/// Says why there is no path to be written down.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BinaryError {
    /// The operating system does not say.
    #[error("cannot tell where this program is: {0}")]
    Unknown(#[from] std::io::Error),
    /// It will not be there for long.
    #[error("{} is in a folder for temporary files", .0.display())]
    Temporary(PathBuf),
    /// It is not there any more.
    #[error("{} is not there any more", .0.display())]
    Gone(PathBuf),
    /// What is ours is known by its name.
    #[error("{} is not called {NAME}", .0.display())]
    Name(PathBuf),
    /// Settings are text.
    #[error("{} is not UTF-8", .0.display())]
    Encoding(PathBuf),
    /// It is something else.
    #[error("{0} --version does not answer as majordomus does")]
    Other(String),
}

/// The program's path as it is written down, without having been tried.
///
/// # Errors
/// Where there is none that lasts.
pub(super) fn path() -> Result<String, BinaryError> {
    let running = std::env::current_exe()?;
    let path = chosen(variables::value("PATH").as_deref(), &running);
    lasting(&path, &std::env::temp_dir())?;
    path.into_os_string().into_string().map_err(|path| BinaryError::Encoding(path.into()))
}

/// The program's path, tried out.
///
/// # Errors
/// Where there is none that lasts, or it does not run.
pub(super) fn tried() -> Result<String, BinaryError> {
    let path = path()?;
    let said = bounded::output(Command::new(&path).arg("--version"), LIMIT);
    let is_ours = said.is_some_and(|said| said.split_whitespace().next() == Some(NAME));
    if is_ours { Ok(path) } else { Err(BinaryError::Other(path)) }
}

/// The entry on the search path that leads to the running program, unresolved: what an upgrade replaces is where it leads.
/// Else the running program's own path.
fn chosen(search: Option<&OsStr>, running: &Path) -> PathBuf {
    let Ok(real) = std::fs::canonicalize(running) else { return running.to_path_buf() };
    let folders = search.map(std::env::split_paths).into_iter().flatten().filter(|folder| folder.is_absolute());
    let mut entries = folders.map(|folder| folder.join(NAME));
    entries
        .find(|entry| std::fs::canonicalize(entry).is_ok_and(|leads| leads == real))
        .unwrap_or_else(|| running.to_path_buf())
}

fn lasting(path: &Path, temporary: &Path) -> Result<(), BinaryError> {
    let real = std::fs::canonicalize(path).map_err(|_| BinaryError::Gone(path.to_path_buf()))?;
    if path.file_name() != Some(OsStr::new(NAME)) {
        return Err(BinaryError::Name(path.to_path_buf()));
    }
    let folders = [temporary, Path::new("/dev/shm"), Path::new("/proc")];
    let is_below = |folder: &&Path| {
        let leads = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_path_buf());
        path.starts_with(folder) || real.starts_with(leads)
    };
    if folders.iter().any(is_below) { Err(BinaryError::Temporary(path.to_path_buf())) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
