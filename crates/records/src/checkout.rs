//! Which checkout this is and where its HEAD stands, without asking a child process.

use std::fs;
use std::path::{Path, PathBuf};

use gix_discover::repository;
use sha2::{Digest, Sha256};

use crate::clock::hex_prefix;
use crate::line::Head;

/// One checkout of a git repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkout {
    /// The root of the working files; `None` in a bare repository.
    pub worktree: Option<PathBuf>,
    /// The checkout's own git directory.
    pub git_dir: PathBuf,
    /// The repository's common git directory; the same where the checkout is not a linked one.
    pub common_dir: PathBuf,
    /// `main`, or the linked worktree's name.
    pub name: String,
}

/// Says why no checkout was found.
#[derive(Debug, thiserror::Error)]
#[error("{} is not in a git repository", .0.display())]
pub struct NotInGit(pub PathBuf);

impl Checkout {
    /// Finds the checkout that holds `folder`, however deep. The environment is not asked: a `GIT_DIR` that some
    /// caller has set is about another repository than the one the client works in.
    ///
    /// # Errors
    /// [`NotInGit`] where no folder above is a checkout or a bare repository, or `folder` cannot be read.
    pub fn find(folder: &Path) -> Result<Self, NotInGit> {
        let not = || NotInGit(folder.to_path_buf());
        // The canonical form is the identity: one checkout reached through a symlink is the same checkout.
        let folder = fs::canonicalize(folder).map_err(|_| not())?;
        let (found, _trust) = gix_discover::upwards(&folder).map_err(|_| not())?;
        let bare = matches!(found, repository::Path::Repository(_));
        // A folder that looks like a repository inside the files of another one is one of those files: a fixture, or
        // that repository's own `.git`.
        if let repository::Path::Repository(inner) = &found
            && let Some(outer) = fs::canonicalize(inner).ok().as_deref().and_then(Path::parent)
            && let Ok(outer) = Self::find(outer)
            && outer.worktree.is_some()
        {
            return Ok(outer);
        }
        let (git_dir, worktree) = found.into_repository_and_work_tree_directories();
        let git_dir = fs::canonicalize(git_dir).map_err(|_| not())?;
        let worktree = match worktree {
            Some(path) if !bare => Some(fs::canonicalize(path).map_err(|_| not())?),
            _ => None,
        };
        let common_dir = common_dir(&git_dir);
        let name = if common_dir == git_dir { "main".into() } else { linked_name(&git_dir) };
        Ok(Self { worktree, git_dir, common_dir, name })
    }

    /// What stands for the checkout where its path would say too much: the first 16 hexadecimal digits of the SHA-256 of
    /// its git directory's path.
    #[must_use]
    pub fn id(&self) -> String {
        hex_prefix(&Sha256::digest(self.git_dir.as_os_str().as_encoded_bytes()), 8)
    }

    /// What a person calls it: its folder, and for a linked worktree its name too.
    #[must_use]
    pub fn title(&self) -> String {
        let folder = self.worktree.as_deref().unwrap_or(&self.common_dir).file_name();
        let folder = folder.unwrap_or_default().to_string_lossy();
        if self.git_dir == self.common_dir {
            folder.into_owned()
        } else {
            format!("{folder} (worktree {})", self.git_dir.file_name().unwrap_or_default().to_string_lossy())
        }
    }

    /// Names what is left of a linked worktree that was removed: its state, whose records go to the main worktree.
    pub(crate) fn removed(&self, name: &str) -> Self {
        let linked = if name == LINKED_MAIN { "main" } else { name };
        let git_dir = self.common_dir.join("worktrees").join(linked);
        Self { worktree: None, git_dir, common_dir: self.common_dir.clone(), name: name.into() }
    }

    /// Whether the linked worktree that a state folder is named after is gone: git has forgotten it, or its files are
    /// not there any more.
    pub(crate) fn is_removed(&self, name: &str) -> bool {
        if name == "main" || name == self.name {
            return false;
        }
        match fs::read_to_string(self.removed(name).git_dir.join("gitdir")) {
            Ok(link) => !Path::new(link.trim_end_matches(['\n', '\r'])).exists(),
            Err(error) => error.kind() == std::io::ErrorKind::NotFound,
        }
    }

    /// The git directory to ask: the checkout's own, or the common one where that is gone.
    #[must_use]
    pub fn asked_git_dir(&self) -> &Path {
        if self.git_dir.is_dir() { &self.git_dir } else { &self.common_dir }
    }

    /// Reads where HEAD stands. What cannot be read says so, and is not taken for a branch without commits.
    #[must_use]
    pub fn head(&self) -> Head {
        let reflog = fs::metadata(self.git_dir.join("logs/HEAD")).ok().map(|data| data.len());
        let none = Head { head: None, branch: None, reflog, unreadable: true };
        let hash = object_hash(&self.common_dir);
        let store = if self.common_dir == self.git_dir {
            gix_ref::file::Store::at(self.git_dir.clone(), hash)
        } else {
            gix_ref::file::Store::for_linked_worktree(self.git_dir.clone(), self.common_dir.clone(), hash)
        };
        let Ok(Some(mut found)) = store.try_find("HEAD") else { return none };
        let mut branch = None;
        // A symbolic ref may point to another one; git itself gives up after five.
        for _ in 0..5 {
            match &found.target {
                gix_ref::Target::Object(id) => {
                    return Head { head: Some(id.to_string()), branch: branch.flatten(), reflog, unreadable: false };
                }
                gix_ref::Target::Symbolic(name) => {
                    let short = name.shorten().to_string();
                    // What a repository with the reftable format writes where files would have a branch.
                    if short == ".invalid" {
                        return none;
                    }
                    branch = Some(Some(short)).filter(|_| name.as_bstr().starts_with(b"refs/heads/")).or(branch);
                    match store.try_find(name.as_ref()) {
                        Ok(Some(next)) => found = next,
                        unborn => {
                            return Head { head: None, branch: branch.flatten(), reflog, unreadable: unborn.is_err() };
                        }
                    }
                }
            }
        }
        none
    }

    /// The worktree that a record of this checkout goes to: its own, or the main one where that is gone.
    #[must_use]
    pub fn record_root(&self) -> Option<PathBuf> {
        self.worktree.clone().filter(|root| root.is_dir()).or_else(|| main_worktree(&self.common_dir))
    }

    /// Whether the history was cut short, so that its first commits are not the repository's roots.
    #[must_use]
    pub fn is_shallow(&self) -> bool {
        fs::metadata(self.common_dir.join("shallow")).is_ok_and(|data| data.len() > 0)
    }
}

/// The name of a linked worktree that git calls `main`; git itself gives no name with a `~`.
const LINKED_MAIN: &str = "main~linked";

fn common_dir(git_dir: &Path) -> PathBuf {
    let named = fs::read_to_string(git_dir.join("commondir")).ok();
    named
        .and_then(|text| fs::canonicalize(git_dir.join(text.trim_end_matches(['\n', '\r']))).ok())
        .unwrap_or_else(|| git_dir.to_path_buf())
}

fn linked_name(git_dir: &Path) -> String {
    let name = git_dir.file_name().map_or_else(|| "linked".into(), |name| name.to_string_lossy().into_owned());
    if name == "main" { LINKED_MAIN.into() } else { name }
}

/// Whether the repository's own configuration says that it has no main worktree.
fn is_bare(common_dir: &Path) -> bool {
    let config = fs::read_to_string(common_dir.join("config")).unwrap_or_default();
    config.lines().any(|line| line.replace([' ', '\t'], "").eq_ignore_ascii_case("bare=true"))
}

/// The main worktree is the folder that holds `.git`; a bare repository has none.
fn main_worktree(common_dir: &Path) -> Option<PathBuf> {
    let named = common_dir.file_name()? == ".git" && !is_bare(common_dir);
    named.then(|| common_dir.parent().map(Path::to_path_buf))?
}

fn object_hash(common_dir: &Path) -> gix_hash::Kind {
    let config = fs::read_to_string(common_dir.join("config")).unwrap_or_default();
    let sha256 = config.lines().any(|line| {
        let line = line.trim().to_ascii_lowercase();
        line.starts_with("objectformat") && line.ends_with("sha256")
    });
    if sha256 { gix_hash::Kind::Sha256 } else { gix_hash::Kind::Sha1 }
}

#[cfg(test)]
mod tests;
