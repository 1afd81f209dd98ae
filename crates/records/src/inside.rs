//! Staying inside the repository, whatever links it ships.

use std::fs;
use std::path::{Path, PathBuf};

/// Says which part of a path leads out of the repository.
#[derive(Debug, thiserror::Error)]
#[error("{} leads out of the repository", .0.display())]
pub struct LeadsOut(pub PathBuf);

/// Makes sure that no link on the way from `root` to `folder` leads out of `root`. What does not exist yet leads nowhere.
pub(crate) fn stay_inside(root: &Path, folder: &Path) -> Result<(), LeadsOut> {
    let Ok(below) = folder.strip_prefix(root) else { return Err(LeadsOut(folder.into())) };
    let Ok(real_root) = fs::canonicalize(root) else { return Ok(()) };
    let mut at = root.to_path_buf();
    for part in below.components() {
        at.push(part);
        match fs::symlink_metadata(&at) {
            Ok(data) if data.is_symlink() => {
                // A dangling link would be followed by whoever makes the folder.
                if !fs::canonicalize(&at).is_ok_and(|real| real.starts_with(&real_root)) {
                    return Err(LeadsOut(at));
                }
            }
            Ok(_) => {}
            Err(_) => return Ok(()),
        }
    }
    Ok(())
}
