//! The commits of a session: which, what of them is recorded, and which files they touch.

use std::collections::HashSet;

use super::Question;
use super::run::{Runner, Said, Unsaid};
use super::words::{lines, path_text, subject};
use crate::facts::{Commit, CommitsFrom};
use crate::reflog::{self, Move};

/// The most commits and paths that a record lists.
pub(super) const LISTED_MOST: usize = 1000;

/// The most commits whose patches are hashed.
const PATCHES_MOST: usize = 200;

/// What every diff is told, so that no configuration changes what it says or what it runs.
const DIFF: [&str; 5] = ["--root", "-r", "--no-renames", "--ignore-submodules=none", "--no-ext-diff"];

/// What every patch is told on top: with other words the same change would have another id. `diff-tree` heeds little of
/// what a person has configured for diffs; what it does heed, and what matters most, is said here.
const PATCH: [&str; 9] = [
    "-p",
    "--full-index",
    "--no-color",
    "--no-textconv",
    "--unified=3",
    "--diff-algorithm=myers",
    "--indent-heuristic",
    "--src-prefix=a/",
    "--dst-prefix=b/",
];

pub(super) struct History {
    pub(super) commits: Said<Vec<Commit>>,
    pub(super) from: Option<CommitsFrom>,
    pub(super) files: Said<Vec<String>>,
    pub(super) head_tree: Said<Option<String>>,
    /// What of this is not whole.
    pub(super) notes: Vec<String>,
    /// Whether patch ids are missing for want of time alone.
    pub(super) late: bool,
}

pub(super) fn ask(run: &Runner<'_>, question: &Question<'_>) -> History {
    let (mut notes, mut late) = (Vec::new(), false);
    let (ids, from) = commit_ids(run, question, &mut notes);
    let asked = ids.as_ref().map_or(0, Vec::len);
    let mut commits = ids.and_then(|ids| describe(run, &ids));
    let known = commits.as_deref().unwrap_or_default();
    if commits.is_ok() && known.len() < asked {
        notes.push(format!("commits: {} that git no longer has", asked - known.len()));
    }
    let files = match &commits {
        Ok(commits) => files(run, commits, &mut notes),
        Err(why) => Err(*why),
    };
    let head_tree = head_tree(run, question, known);
    if let Ok(commits) = &mut commits {
        // The longest answer, and the least needed, comes last.
        match patch_ids(run, commits) {
            Ok(()) => {}
            Err(Unsaid::Because(why)) => notes.push(format!("patch_id: {why}")),
            Err(Unsaid::OutOfTime) => {
                late = true;
                notes.push("patch_id: git did not answer in time".into());
            }
            Err(Unsaid::TooMuch) => notes.push("patch_id: the patches are too long".into()),
            Err(Unsaid::Refused(_)) => notes.push("patch_id".into()),
        }
    }
    History { commits, from, files, head_tree, notes, late }
}

fn commit_ids(
    run: &Runner<'_>,
    question: &Question<'_>,
    notes: &mut Vec<String>,
) -> (Said<Vec<String>>, Option<CommitsFrom>) {
    let (ids, from) = match reflog::between(&run.checkout.git_dir, question) {
        Some(found) => {
            if found.cut {
                notes.push("commits: the reflog is longer than what is read of it".into());
            }
            (brought_and_made(run, found.moves), CommitsFrom::Reflog)
        }
        None => (range(run, question), CommitsFrom::Range),
    };
    let ids = ids.map(|mut ids| {
        let mut seen = HashSet::new();
        ids.retain(|id| seen.insert(id.clone()));
        if keep_last(&mut ids) {
            notes.push(format!("commits: all but the last {LISTED_MOST}"));
        }
        ids
    });
    (ids, Some(from))
}

fn brought_and_made(run: &Runner<'_>, moves: Vec<Move>) -> Said<Vec<String>> {
    let mut ids: Vec<String> = Vec::new();
    for moved in moves {
        match moved {
            Move::Made { replaced, made } => {
                ids.retain(|id| Some(id) != replaced.as_ref());
                ids.push(made);
            }
            Move::Brought { from, to } => match rev_list(run, &format!("{from}..{to}")) {
                Ok(brought) => ids.extend(brought),
                Err(Unsaid::Refused(_)) => ids.push(to),
                Err(why) => return Err(why),
            },
        }
        // One more than is listed, so that it is seen that there were more.
        if ids.len() > 4 * LISTED_MOST {
            ids.drain(..ids.len() - LISTED_MOST - 1);
        }
    }
    Ok(ids)
}

fn range(run: &Runner<'_>, question: &Question<'_>) -> Said<Vec<String>> {
    if question.start.unreadable || question.end.unreadable {
        return Err(UNREADABLE);
    }
    match (&question.start.head, &question.end.head) {
        (_, None) => Ok(Vec::new()),
        (Some(start), Some(end)) => rev_list(run, &format!("{start}..{end}")),
        (None, Some(end)) => rev_list(run, end),
    }
}

pub(super) const UNREADABLE: Unsaid = Unsaid::Because("HEAD could not be read");

fn rev_list(run: &Runner<'_>, range: &str) -> Said<Vec<String>> {
    let most = format!("--max-count={}", LISTED_MOST + 1);
    let out = run.run(&["rev-list", "--reverse", &most, "--end-of-options", range], b"")?;
    Ok(lines(&out).collect())
}

fn keep_last<T>(list: &mut Vec<T>) -> bool {
    let over = list.len().saturating_sub(LISTED_MOST);
    list.drain(..over);
    over > 0
}

fn describe(run: &Runner<'_>, ids: &[String]) -> Said<Vec<Commit>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let log = ["log", "--ignore-missing", "--no-walk=unsorted", "--stdin", "-z", "--format=%H%x00%T%x00%s"];
    let out = run.run(&[&log[..], &["--encoding=UTF-8"]].concat(), ids.join("\n").as_bytes())?;
    let fields: Vec<&[u8]> = out.split(|&byte| byte == 0).collect();
    let id = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let commit = |field: &[&[u8]]| Commit {
        sha: id(field[0]),
        tree: Some(id(field[1])),
        patch_id: None,
        subject: subject(&String::from_utf8_lossy(field[2])),
    };
    Ok(fields.chunks_exact(3).map(commit).collect())
}

fn shas(commits: &[Commit]) -> Vec<u8> {
    commits.iter().fold(Vec::new(), |mut all, commit| {
        all.extend_from_slice(commit.sha.as_bytes());
        all.push(b'\n');
        all
    })
}

/// The paths that the commits touch; of a merge, those that are as in no parent.
fn files(run: &Runner<'_>, commits: &[Commit], notes: &mut Vec<String>) -> Said<Vec<String>> {
    if commits.is_empty() {
        return Ok(Vec::new());
    }
    let names = ["diff-tree", "--stdin", "-c", "--name-only", "-z", "--no-commit-id"];
    let out = run.run(&[&names[..], &DIFF].concat(), &shas(commits))?;
    let mut paths: Vec<&[u8]> = out.split(|&byte| byte == 0).filter(|path| !path.is_empty()).collect();
    paths.sort_unstable();
    paths.dedup();
    if paths.len() > LISTED_MOST {
        notes.push(format!("changed_files: all but the first {LISTED_MOST} of the commits"));
        paths.truncate(LISTED_MOST);
    }
    Ok(paths.into_iter().map(path_text).collect())
}

fn head_tree(run: &Runner<'_>, question: &Question<'_>, commits: &[Commit]) -> Said<Option<String>> {
    let Some(head) = &question.end.head else {
        return if question.end.unreadable { Err(UNREADABLE) } else { Ok(None) };
    };
    if let Some(commit) = commits.iter().find(|commit| commit.sha == *head) {
        return Ok(commit.tree.clone());
    }
    let out = run.run(&["rev-parse", "--verify", "--end-of-options", &format!("{head}^{{tree}}")], b"")?;
    lines(&out).next().map(Some).ok_or(Unsaid::Refused(None))
}

fn patch_ids(run: &Runner<'_>, commits: &mut [Commit]) -> Said<()> {
    match commits.len() {
        0 => return Ok(()),
        1..=PATCHES_MOST => {}
        _ => return Err(Unsaid::Because("there are too many commits")),
    }
    let diffs = run.run(&[&["diff-tree", "--stdin"][..], &DIFF, &PATCH].concat(), &shas(commits))?;
    let out = run.run(&["patch-id", "--stable"], &diffs)?;
    for line in lines(&out) {
        let Some((patch_id, sha)) = line.split_once(' ') else { continue };
        if let Some(commit) = commits.iter_mut().find(|commit| commit.sha == sha) {
            commit.patch_id = Some(patch_id.into());
        }
    }
    Ok(())
}
