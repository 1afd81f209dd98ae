//! A repository, and the command run in a folder.

use std::path::Path;
use std::process::{Command, Output};

pub(crate) fn repository() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut git = Command::new("git");
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("GIT_")) {
        git.env_remove(name);
    }
    let made = git.args(["init", "--quiet", "--initial-branch=main"]).current_dir(folder.path()).status().unwrap();
    assert!(made.success());
    folder
}

/// What a command said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Runs the command with nothing of this process's environment but these variables.
pub(crate) fn majordomus(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Said {
    let mut command = Command::new(env!("CARGO_BIN_EXE_majordomus"));
    command.args(arguments).current_dir(folder).env_clear().envs(variables.iter().copied());
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Said { code: status.code(), out: text(stdout), err: text(stderr) }
}
