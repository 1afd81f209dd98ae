//! What stands uncommitted in a worktree, without running what turns files into content.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::time::UNIX_EPOCH;

use super::Question;
use super::history::LISTED_MOST;
use super::run::{Runner, Said, Unsaid};
use super::words::path_text;
use crate::state::RECORDS;

/// File times are taken from the kernel's last tick, so they may be this much behind its clock.
const FILE_TIME_BEHIND_MS: i64 = 10;

/// Paths that git calls uncommitted and that were written between the session's start and its end; what was already
/// there, and what came later, is somebody else's.
pub(super) fn uncommitted(run: &Runner<'_>, question: &Question<'_>) -> Said<(Vec<String>, Vec<String>)> {
    let worktree = run.checkout.worktree.as_ref().filter(|root| root.is_dir());
    let worktree = worktree.ok_or(Unsaid::Because("there is no worktree"))?;
    let filters = filters(run)?;
    let ours = format!(":(exclude,top){RECORDS}");
    // A submodule's own changes would be asked of a git that runs the submodule's filters.
    let status = ["status", "--porcelain", "-z", "--untracked-files=normal", "--no-renames"];
    let status = [&status[..], &["--ignore-submodules=dirty", "--", ".", &ours]].concat();
    let out = run.run_with(&without(&filters), &status, b"")?;
    let mut found = Vec::new();
    let (mut notes, mut more) = (Vec::new(), false);
    for entry in out.split(|&byte| byte == 0).filter(|entry| entry.len() > 3) {
        run.is_time()?;
        let (state, path) = (&entry[..2], &entry[3..]);
        if path.starts_with(RECORDS.as_bytes()) {
            continue;
        }
        let written = fs::symlink_metadata(worktree.join(OsStr::from_bytes(path))).and_then(|data| data.modified());
        let Ok(since) = written.map(|at| at.duration_since(UNIX_EPOCH).unwrap_or_default()) else { continue };
        let ms = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
        if !(question.started_ms - FILE_TIME_BEHIND_MS..=question.closed_ms).contains(&ms) {
            continue;
        }
        if found.len() == LISTED_MOST {
            more = true;
            break;
        }
        found.push((state, path));
    }
    if more {
        notes.push(format!("uncommitted_files: all but the first {LISTED_MOST}"));
    }
    let guessed: Vec<&[u8]> = found.iter().filter(|(state, _)| state == b" M").map(|(_, path)| *path).collect();
    let unknown = filtered(run, &filters, &guessed)?;
    if !unknown.is_empty() {
        notes.push(format!("uncommitted_files: {} that only a content filter could tell", unknown.len()));
    }
    let known = found.into_iter().filter(|(state, path)| state != b" M" || !unknown.contains(path));
    Ok((known.map(|(_, path)| path_text(path)).collect(), notes))
}

/// The names of the content filters that any configuration defines: programs, which `git status` would run.
fn filters(run: &Runner<'_>) -> Said<Vec<Vec<u8>>> {
    let out = match run.run(&["config", "--null", "--name-only", "--get-regexp", r"^filter\..*\."], b"") {
        Err(Unsaid::Refused(Some(1))) => return Ok(Vec::new()),
        other => other?,
    };
    let mut names: Vec<Vec<u8>> = Vec::new();
    for key in out.split(|&byte| byte == 0) {
        let Some(rest) = key.strip_prefix(b"filter.") else { continue };
        let Some(dot) = rest.iter().rposition(|&byte| byte == b'.') else { continue };
        names.push(rest[..dot].to_vec());
    }
    names.sort_unstable();
    names.dedup();
    // `-c` takes the name to end at the first of these.
    if names.iter().any(|name| name.contains(&b'=')) {
        return Err(Unsaid::Because("a content filter cannot be switched off by its name"));
    }
    Ok(names)
}

/// The settings that switch filters off: one that is empty changes nothing, if nothing requires it.
fn without(filters: &[Vec<u8>]) -> Vec<OsString> {
    let setting = |name: &Vec<u8>, end: &str| OsString::from_vec([b"filter.", &name[..], end.as_bytes()].concat());
    let all = |name| [".clean=", ".smudge=", ".process=", ".required=false"].map(|end| setting(name, end));
    filters.iter().flat_map(all).collect()
}

/// Those of the changed paths that have a filter: with it they may be the same as in the index.
fn filtered<'a>(run: &Runner<'_>, filters: &[Vec<u8>], paths: &[&'a [u8]]) -> Said<HashSet<&'a [u8]>> {
    if filters.is_empty() || paths.is_empty() {
        return Ok(HashSet::new());
    }
    let out = run.run(&["check-attr", "-z", "--stdin", "filter"], &paths.join(&0))?;
    let fields: Vec<&[u8]> = out.split(|&byte| byte == 0).collect();
    let has = |field: &&[&[u8]]| filters.iter().any(|name| name == field[2]);
    let named: HashSet<&[u8]> = fields.chunks_exact(3).filter(has).map(|field| field[0]).collect();
    Ok(paths.iter().copied().filter(|path| named.contains(path)).collect())
}
