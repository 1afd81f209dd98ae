//! `majordomus generate`: writes the reference files, or checks that they are what they should be.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail};
use majordomus_capability::catalogue;

use crate::args::Generate;
use crate::output::{self, Hint};
use crate::reference::{self, Page};

/// Where the files are, below the repository's root.
const FOLDER: &str = "docs/reference";

pub(super) fn run(arguments: &Generate) -> anyhow::Result<ExitCode> {
    let folder = match &arguments.dir {
        Some(folder) => folder.clone(),
        None if is_for_us(Path::new(FOLDER)) => FOLDER.into(),
        None => {
            let missing = Err(anyhow::anyhow!("there is no folder {FOLDER} here that is empty or was written by this"));
            return missing.hint("run this in the root of majordomus' own repository, or name a folder with --dir");
        }
    };
    let difference = Difference::find(&folder, reference::pages(&Arc::new(catalogue())))?;
    if arguments.check {
        let mends = match &arguments.dir {
            Some(folder) => format!("majordomus generate --dir {}", folder.display()),
            None => "majordomus generate".into(),
        };
        return difference.is_none_or_fails(&folder, &mends);
    }
    let said = difference.said();
    difference.mend(&folder)?;
    output::print(&said)?;
    Ok(ExitCode::SUCCESS)
}

/// Whether a folder that nobody named is meant: many repositories have one of that name.
fn is_for_us(folder: &Path) -> bool {
    let is_empty = || fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none());
    let page = fs::read_to_string(folder.join(reference::ENVIRONMENT)).unwrap_or_default();
    reference::is_ours(reference::ENVIRONMENT, &page) || is_empty()
}

/// How a folder differs from what it should hold.
#[derive(Debug, Default)]
struct Difference {
    missing: Vec<Page>,
    stale: Vec<Page>,
    /// Files that an earlier version wrote.
    surplus: Vec<String>,
    all: usize,
}

impl Difference {
    fn find(folder: &Path, pages: Vec<Page>) -> anyhow::Result<Self> {
        let mut found = BTreeMap::new();
        files(folder, "", &mut found)?;
        let mut difference = Self { all: pages.len(), ..Self::default() };
        for page in pages {
            match found.remove(&page.path) {
                None => difference.missing.push(page),
                Some(bytes) if bytes != page.text.as_bytes() => difference.stale.push(page),
                Some(_) => {}
            }
        }
        let ours = |(path, bytes): &(String, Vec<u8>)| reference::is_ours(path, &String::from_utf8_lossy(bytes));
        difference.surplus = found.into_iter().filter(ours).map(|(path, _)| path).collect();
        Ok(difference)
    }

    /// Each file that is not as it should be, with what is wrong with it.
    fn wrong(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let missing = self.missing.iter().map(|page| ("missing", page.path.as_str()));
        let stale = self.stale.iter().map(|page| ("stale", page.path.as_str()));
        missing.chain(stale).chain(self.surplus.iter().map(|path| ("surplus", path.as_str())))
    }

    fn is_none_or_fails(&self, folder: &Path, mends: &str) -> anyhow::Result<ExitCode> {
        let wrong: Vec<String> = self.wrong().map(|(how, path)| format!("\n  {how:7}  {path}")).collect();
        if wrong.is_empty() {
            output::print(&format!("all {} files are up to date\n", self.all))?;
            return Ok(ExitCode::SUCCESS);
        }
        let failed = || -> anyhow::Result<ExitCode> {
            bail!("{} of the files in {} are not what they should be:{}", wrong.len(), folder.display(), wrong.concat())
        };
        failed().hint(mends)
    }

    /// What mending it does.
    fn said(&self) -> String {
        let did = |how| match how {
            "surplus" => "removed",
            _ => "wrote",
        };
        let lines: String = self.wrong().map(|(how, path)| format!("{:7}  {path}\n", did(how))).collect();
        if lines.is_empty() { format!("all {} files are up to date\n", self.all) } else { lines }
    }

    fn mend(self, folder: &Path) -> anyhow::Result<()> {
        for page in self.missing.into_iter().chain(self.stale) {
            let path = folder.join(&page.path);
            let parent = path.parent().unwrap_or(folder);
            fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
            fs::write(&path, page.text).with_context(|| format!("cannot write {}", path.display()))?;
        }
        for path in self.surplus {
            let path = folder.join(path);
            fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        }
        Ok(())
    }
}

/// The files below a folder by their paths in it. Links are left alone: what they lead to is somebody else's.
fn files(root: &Path, below: &str, found: &mut BTreeMap<String, Vec<u8>>) -> anyhow::Result<()> {
    let folder: PathBuf = root.join(below);
    let cannot = || format!("cannot read {}", folder.display());
    let entries = match fs::read_dir(&folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && below.is_empty() => return Ok(()),
        entries => entries.with_context(cannot)?,
    };
    for entry in entries {
        let entry = entry.with_context(cannot)?;
        // A name that is no text is none that was made here.
        let Ok(name) = entry.file_name().into_string() else { continue };
        let path = if below.is_empty() { name } else { format!("{below}/{name}") };
        let kind = entry.file_type().with_context(cannot)?;
        if kind.is_dir() {
            files(root, &path, found)?;
        } else if kind.is_file() {
            let bytes = fs::read(entry.path()).with_context(|| format!("cannot read {}", entry.path().display()))?;
            found.insert(path, bytes);
        }
    }
    Ok(())
}
