//! Which clients are here, and in which version.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use majordomus_providers::{Provider, Written};
use rustix::fs::{Access, access};

use super::bounded;
use super::scope::Scope;

/// How long a client may take to say its version.
const LIMIT: Duration = Duration::from_secs(2);

/// Whether a provider's client is here: as a program on the search path, or by a folder of its own.
pub(super) fn is_here(provider: &Provider, scopes: &[&Scope], search: Option<&OsStr>) -> bool {
    program(provider, search).is_some() || scopes.iter().any(|scope| scope.has_folder(provider.folders))
}

/// Whether there is something to be written for a provider.
pub(super) fn can_be_connected(provider: &Provider) -> bool {
    is_written_for(provider, false) || is_written_for(provider, true)
}

/// Whether a provider has a file that is written for a person, or for a project.
pub(super) fn is_written_for(provider: &Provider, persons: bool) -> bool {
    let hooks = provider.adapter.filter(|adapter| !adapter.written.is_empty()).map_or(&[][..], |adapter| adapter.files);
    let servers = provider.mcp.map_or(&[][..], |mcp| mcp.files);
    hooks.iter().chain(servers).any(|file| file.write && file.is_users() == persons)
}

fn program(provider: &Provider, search: Option<&OsStr>) -> Option<PathBuf> {
    let folders = || search.map(std::env::split_paths).into_iter().flatten().filter(|folder| folder.is_absolute());
    let is_program = |path: &PathBuf| path.is_file() && access(path, Access::EXEC_OK).is_ok();
    provider.programs.iter().find_map(|name| folders().map(|folder| folder.join(name)).find(is_program))
}

/// The hooks that the installed version knows.
#[derive(Debug)]
pub(super) struct Known {
    /// Those to declare.
    pub(super) written: Vec<&'static Written>,
    /// Those that are left out, though they may be known: the version could not be told.
    pub(super) untold: Vec<&'static Written>,
    /// Those that the version does not know.
    pub(super) unknown: Vec<&'static Written>,
}

/// Asks a provider's client for its version, if a hook depends on that, and sorts its hooks by it.
pub(super) fn known(provider: &Provider, search: Option<&OsStr>) -> Known {
    let written = provider.adapter.map_or(&[][..], |adapter| adapter.written);
    let depends = written.iter().any(|written| written.since.is_some());
    let version = depends
        .then(|| program(provider, search))
        .flatten()
        .and_then(|program| version(&bounded::output(Command::new(program).arg("--version"), LIMIT)?));
    sorted(written, version)
}

fn sorted(all: &'static [Written], version: Option<[u64; 3]>) -> Known {
    let mut known = Known { written: Vec::new(), untold: Vec::new(), unknown: Vec::new() };
    for written in all {
        match (written.since.map(self::version), version) {
            (None, _) => known.written.push(written),
            (Some(Some(since)), Some(is)) if is >= since => known.written.push(written),
            (Some(Some(_)), Some(_)) => known.unknown.push(written),
            (Some(_), _) => known.untold.push(written),
        }
    }
    known
}

/// The first `x.y.z` in a text.
fn version(text: &str) -> Option<[u64; 3]> {
    text.split(|char: char| !char.is_ascii_digit() && char != '.').find_map(|word| {
        let mut parts = word.split('.').map(str::parse);
        let version = [parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?];
        Some(version)
    })
}

#[cfg(test)]
mod tests;
