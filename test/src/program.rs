//! Where the released binary is.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::Value;

/// Names a binary to test instead of the one that is built here.
const GIVEN: &str = "MAJORDOMUS_BIN";

/// Returns the root of this checkout.
///
/// # Panics
/// Where this file has been built elsewhere.
#[must_use]
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("this package is a folder of the workspace")
}

/// Returns the binary to test: the one that `MAJORDOMUS_BIN` names, else what [`built`] gives.
#[must_use]
pub fn majordomus() -> &'static Path {
    static FOUND: OnceLock<PathBuf> = OnceLock::new();
    FOUND.get_or_init(|| std::env::var_os(GIVEN).map_or_else(|| built().to_path_buf(), PathBuf::from))
}

/// Builds the released binary, once in a process, and returns where cargo put it.
///
/// # Panics
/// Where it cannot be built.
#[must_use]
pub fn built() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(build)
}

fn build() -> PathBuf {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--release", "--package", "majordomus-cli", "--message-format=json-render-diagnostics"]);
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"GIT_")) {
        command.env_remove(name);
    }
    let output = command.current_dir(root()).stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output = output.expect("cargo can be run");
    assert!(output.status.success(), "the released binary cannot be built");
    let messages = String::from_utf8(output.stdout).expect("cargo writes UTF-8");
    let executable = messages.lines().rev().find_map(|line| {
        let message: Value = serde_json::from_str(line).ok()?;
        (message["target"]["name"] == "majordomus").then(|| message["executable"].as_str().map(PathBuf::from))?
    });
    executable.expect("cargo says where it put the binary")
}

/// Names the variables without which cargo is not found from another home.
#[must_use]
pub fn cargo_environment() -> Vec<(&'static str, PathBuf)> {
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")]
        .into_iter()
        .map(|(name, below)| (name, std::env::var_os(name).map_or_else(|| home.join(below), PathBuf::from)))
        .collect()
}

/// Copies the released binary to where it is to be run from.
///
/// Another process does it: a child that another test starts while this one writes would keep the file open for writing,
/// and what is written cannot be run.
///
/// # Panics
/// Where it cannot be copied.
pub fn install(to: &Path) {
    let copied = Command::new("cp").arg(majordomus()).arg(to).status();
    assert!(copied.is_ok_and(|status| status.success()), "the binary cannot be copied to {}", to.display());
}
