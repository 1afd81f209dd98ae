//! Repositories to measure in, made by `git fast-import`.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};

use crate::bed::{Bed, run};

/// When the first commit was made, in seconds since the epoch.
const FIRST: usize = 1_700_000_000;

/// Makes a repository as a project has one: 2,000 files, 200 commits.
pub(crate) fn project(bed: &Bed, name: &str) -> Result<PathBuf> {
    make(bed, name, 2000, 200)
}

/// Makes a repository with hardly anything in it.
pub(crate) fn small(bed: &Bed, name: &str) -> Result<PathBuf> {
    make(bed, name, 10, 3)
}

/// Names the file with that number.
pub(crate) fn file(number: usize) -> String {
    format!("src/part{:02}/file{number:04}.txt", number / 50)
}

fn make(bed: &Bed, name: &str, files: usize, commits: usize) -> Result<PathBuf> {
    let folder = bed.folder(name)?;
    let git = |arguments: &[&str], input: &[u8]| run(&mut bed.git(&folder, arguments), input);
    git(&["init", "--quiet", "--initial-branch=main"], b"")?;
    // Nothing may start to tidy up in the middle of a measurement.
    for (key, value) in [
        ("user.name", "Bench"),
        ("user.email", "bench@example.invalid"),
        ("gc.auto", "0"),
        ("maintenance.auto", "false"),
    ] {
        git(&["config", key, value], b"")?;
    }
    git(&["fast-import", "--quiet"], stream(files, commits).as_bytes())?;
    git(&["reset", "--quiet", "--hard"], b"")?;
    // As old as a checkout ordinarily is; else git reads every file again because the index is no younger.
    age(&folder.join("src"))?;
    git(&["update-index", "-q", "--refresh"], b"")?;
    // A commit of the ordinary way, for a reflog of the ordinary kind.
    git(&["commit", "--quiet", "--allow-empty", "--message=the last before the session"], b"")?;
    Ok(folder)
}

fn stream(files: usize, commits: usize) -> String {
    let mut stream = String::new();
    for commit in 0..commits {
        let message = format!("change number {commit}\n");
        let at = FIRST + commit * 3600;
        let _ = write!(stream, "commit refs/heads/main\nmark :{}\n", commit + 1);
        let _ = write!(stream, "committer Bench <bench@example.invalid> {at} +0000\ndata {}\n{message}", message.len());
        if commit > 0 {
            let _ = writeln!(stream, "from :{commit}");
        }
        // All files at first, then five at a time.
        let changed = if commit == 0 { 0..files } else { 0..5.min(files) };
        for changed in changed {
            let number = (changed + commit * 5) % files;
            let text = content(number, commit);
            let _ = write!(stream, "M 100644 inline {}\ndata {}\n{text}\n", file(number), text.len());
        }
    }
    stream
}

/// What is in a file after a commit: some 2 KiB, of which a line differs.
pub(crate) fn content(number: usize, commit: usize) -> String {
    let mut text = format!("file {number} as of change {commit}\n");
    for line in 0..40 {
        let _ = writeln!(text, "line {line} of file {number}, which says nothing in particular");
    }
    text
}

fn age(folder: &Path) -> Result<()> {
    let before = SystemTime::now() - Duration::from_secs(3600);
    for entry in fs::read_dir(folder).context("cannot read a checkout")? {
        let path = entry.context("cannot read a checkout")?.path();
        if path.is_dir() {
            age(&path)?;
        } else {
            let file = fs::File::options().write(true).open(&path).context("cannot read a checkout")?;
            file.set_modified(before).context("cannot age a file")?;
        }
    }
    Ok(())
}
