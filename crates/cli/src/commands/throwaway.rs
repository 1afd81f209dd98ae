//! A repository to try something in, gone afterwards, in which nothing of the person is touched.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use majordomus_records::clock::SystemClock;
use majordomus_records::disk::RealDisk;
use majordomus_records::git::RealGit;
use majordomus_records::state::State;
use majordomus_records::store::Parts;
use majordomus_records::{Checkout, Policy, Store};
use tempfile::TempDir;

/// A folder with a repository without a commit, a home and a place for state and for temporary files.
pub(super) struct Throwaway {
    folder: TempDir,
}

impl Throwaway {
    /// Makes one below the folder for temporary files.
    ///
    /// # Errors
    /// Where that cannot be written.
    pub(super) fn make() -> anyhow::Result<Self> {
        let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
        let made = Self { folder };
        let git = made.repository().join(".git");
        for part in [git.join("objects"), git.join("refs/heads"), made.home(), made.state(), made.temporary()] {
            fs::create_dir_all(part).context("cannot write into a temporary folder")?;
        }
        fs::write(git.join("HEAD"), "ref: refs/heads/main\n").context("cannot write into a temporary folder")?;
        Ok(made)
    }

    /// The root of its repository.
    pub(super) fn repository(&self) -> PathBuf {
        self.folder.path().join("repository")
    }

    /// Its home folder.
    pub(super) fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// Where state goes that finds no place in the repository.
    pub(super) fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    /// Its folder for temporary files.
    pub(super) fn temporary(&self) -> PathBuf {
        self.folder.path().join("tmp")
    }

    /// The episodes of its repository.
    ///
    /// # Errors
    /// Where it is gone.
    pub(super) fn store(&self) -> anyhow::Result<Store> {
        let checkout = Checkout::find(&self.repository())?;
        let state = State::new(&checkout.common_dir, &checkout.name, None);
        let parts =
            Parts { disk: Arc::new(RealDisk), clock: Arc::new(SystemClock::new()), git: Arc::new(RealGit::default()) };
        Ok(Store::with(checkout, state, Policy::default(), parts))
    }
}
