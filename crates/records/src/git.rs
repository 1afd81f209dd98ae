//! Asking git, in the second step of an end and never before.
//!
//! The child takes no lock it does not need, runs no program that the repository names, fetches nothing, asks
//! nobody, and is ended with all it started when its time is over.

use std::ffi::OsStr;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::checkout::Checkout;
use crate::facts::{Commit, CommitsFrom, Facts};
use crate::line::Head;
use crate::reflog::{self, Move};
use crate::state::RECORDS;

/// The most commits and paths that a record lists.
const LISTED_MOST: usize = 1000;

/// File times are taken from the kernel's last tick, so they may be this much behind its clock.
const FILE_TIME_BEHIND_MS: i64 = 10;

/// What is asked about a finished session.
#[derive(Clone, Debug)]
pub struct Question<'a> {
    /// Where.
    pub checkout: &'a Checkout,
    /// Where HEAD stood at the start.
    pub start: &'a Head,
    /// Where HEAD stood at the end.
    pub end: &'a Head,
    /// When the session began, in milliseconds since the epoch.
    pub started_ms: i64,
    /// When it ended.
    pub closed_ms: i64,
}

/// Answers questions about a finished session.
pub trait Git: Send + Sync {
    /// Returns what is known after at most `limit`. What could not be told is `None` and named in `missing`;
    /// `Err` where time ran out, so that asking again later may tell more.
    ///
    /// # Errors
    /// [`OutOfTime`].
    fn ask(&self, question: &Question<'_>, limit: Duration) -> Result<Facts, OutOfTime>;
}

/// The time was over before git had answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("git did not answer in time")]
pub struct OutOfTime;

/// The git on the path.
#[derive(Clone, Debug, Default)]
pub struct RealGit(());

impl Git for RealGit {
    fn ask(&self, question: &Question<'_>, limit: Duration) -> Result<Facts, OutOfTime> {
        let until = Instant::now() + limit;
        let asked = Asked { checkout: question.checkout, until };
        let mut facts = Facts::default();
        let (commits, from) = asked.commit_ids(question)?;
        facts.commits_from = from;

        // Status and roots take as long as the repository is large, so they run beside the rest.
        let ask_status = || asked.uncommitted(question);
        let ask_roots = || asked.roots(question);
        let (status, roots, rest) = thread::scope(|scope| {
            let status = scope.spawn(ask_status);
            let roots = scope.spawn(ask_roots);
            let rest = asked.describe(question, commits);
            (status.join(), roots.join(), rest)
        });
        let described = rest?;
        facts.head_tree = described.head_tree;
        facts.commits = described.commits;
        facts.uncommitted_files = status.unwrap_or(Ok(None))?;
        facts.repository_roots = roots.unwrap_or(Ok(None))?;
        facts.changed_files = match (described.files, &facts.uncommitted_files) {
            (None, None) => None,
            (files, uncommitted) => {
                let mut all: Vec<String> =
                    files.into_iter().flatten().chain(uncommitted.iter().flatten().cloned()).collect();
                all.sort_unstable();
                all.dedup();
                Some(all)
            }
        };
        for (what, known) in [
            ("commits", facts.commits.is_some()),
            ("head_tree", facts.head_tree.is_some() || question.end.head.is_none()),
            ("repository_roots", facts.repository_roots.is_some()),
            ("changed_files", facts.changed_files.is_some()),
        ] {
            if !known {
                facts.missing.push(what.into());
            }
        }
        Ok(facts)
    }
}

struct Asked<'a> {
    checkout: &'a Checkout,
    until: Instant,
}

#[derive(Default)]
struct Described {
    commits: Option<Vec<Commit>>,
    files: Option<Vec<String>>,
    head_tree: Option<String>,
}

impl Asked<'_> {
    fn commit_ids(&self, question: &Question<'_>) -> Result<(Option<Vec<String>>, Option<CommitsFrom>), OutOfTime> {
        if let Some(moves) = reflog::between(&self.checkout.git_dir, question) {
            let mut ids: Vec<String> = Vec::new();
            for moved in moves {
                match moved {
                    Move::Made { replaced, made } => {
                        ids.retain(|id| Some(id) != replaced.as_ref());
                        ids.push(made);
                    }
                    Move::Brought { from, to } => {
                        let range = format!("{from}..{to}");
                        let most = format!("--max-count={LISTED_MOST}");
                        let range = ["rev-list", "--reverse", &most, "--end-of-options", &range];
                        match self.run(&range, b"")? {
                            Some(out) => ids.extend(lines(&out)),
                            None => ids.push(to),
                        }
                    }
                }
            }
            let mut seen = std::collections::HashSet::new();
            ids.retain(|id| seen.insert(id.clone()));
            ids.truncate(LISTED_MOST);
            return Ok((Some(ids), Some(CommitsFrom::Reflog)));
        }
        let range = match (&question.start.head, &question.end.head) {
            (_, None) => return Ok((Some(Vec::new()), Some(CommitsFrom::Range))),
            (Some(start), Some(end)) => format!("{start}..{end}"),
            (None, Some(end)) => end.clone(),
        };
        let most = format!("--max-count={LISTED_MOST}");
        let ids = self.run(&["rev-list", "--reverse", &most, "--end-of-options", &range], b"")?;
        Ok((ids.map(|out| lines(&out).collect()), Some(CommitsFrom::Range)))
    }

    fn describe(&self, question: &Question<'_>, ids: Option<Vec<String>>) -> Result<Described, OutOfTime> {
        let head = question.end.head.as_deref();
        let Some(ids) = ids else { return Ok(Described { head_tree: self.tree_of(head)?, ..Described::default() }) };
        if ids.is_empty() {
            let head_tree = self.tree_of(head)?;
            return Ok(Described { commits: Some(Vec::new()), files: Some(Vec::new()), head_tree });
        }
        let wanted = ids.join("\n");
        let log = ["log", "--no-walk=unsorted", "--stdin", "-z", "--format=%H%x00%T%x00%s", "--encoding=UTF-8"];
        let Some(out) = self.run(&log, wanted.as_bytes())? else {
            return Ok(Described { head_tree: self.tree_of(head)?, ..Described::default() });
        };
        let fields: Vec<String> = out.split(|&byte| byte == 0).map(text).collect();
        let mut commits: Vec<Commit> = fields
            .chunks_exact(3)
            .map(|field| Commit {
                sha: field[0].clone(),
                tree: Some(field[1].clone()),
                patch_id: None,
                subject: field[2].clone(),
            })
            .collect();
        let names = ["log", "--no-walk=unsorted", "--stdin", "-z", "--format=", "--name-only", "--no-renames", "-m"];
        let files = self.run(&names, wanted.as_bytes())?.map(|out| paths(&out));
        let diffs = ["log", "--no-walk=unsorted", "--stdin", "-p", "--format=%H", "--no-ext-diff", "--no-textconv"];
        if let Some(diffs) = self.run(&diffs, wanted.as_bytes())?
            && let Some(out) = self.run(&["patch-id", "--stable"], &diffs)?
        {
            for line in lines(&out) {
                let Some((patch_id, sha)) = line.split_once(' ') else { continue };
                if let Some(commit) = commits.iter_mut().find(|commit| commit.sha == sha) {
                    commit.patch_id = Some(patch_id.into());
                }
            }
        }
        let known =
            commits.iter().find(|commit| Some(commit.sha.as_str()) == head).and_then(|commit| commit.tree.clone());
        let head_tree = if known.is_some() { known } else { self.tree_of(head)? };
        Ok(Described { commits: Some(commits), files, head_tree })
    }

    fn tree_of(&self, head: Option<&str>) -> Result<Option<String>, OutOfTime> {
        let Some(head) = head else { return Ok(None) };
        let out = self.run(&["rev-parse", "--verify", "--end-of-options", &format!("{head}^{{tree}}")], b"")?;
        Ok(out.and_then(|out| lines(&out).next()))
    }

    fn roots(&self, question: &Question<'_>) -> Result<Option<Vec<String>>, OutOfTime> {
        if self.checkout.is_shallow() {
            return Ok(None);
        }
        let Some(head) = &question.end.head else { return Ok(Some(Vec::new())) };
        let out = self.run(&["rev-list", "--max-parents=0", "--end-of-options", head], b"")?;
        Ok(out.map(|out| lines(&out).collect()))
    }

    /// Paths that git calls uncommitted and that were written between the session's start and its end; what was
    /// already there, and what came later, is somebody else's.
    fn uncommitted(&self, question: &Question<'_>) -> Result<Option<Vec<String>>, OutOfTime> {
        let Some(worktree) = self.checkout.worktree.as_ref().filter(|root| root.is_dir()) else { return Ok(None) };
        let ours = format!(":(exclude,top){RECORDS}");
        let status = ["status", "--porcelain", "-z", "--untracked-files=normal", "--no-renames", "--", ".", &ours];
        let Some(out) = self.run(&status, b"")? else { return Ok(None) };
        let mut found = Vec::new();
        for entry in out.split(|&byte| byte == 0).filter(|entry| entry.len() > 3) {
            let path = &entry[3..];
            if path.starts_with(RECORDS.as_bytes()) {
                continue;
            }
            let written = fs::symlink_metadata(worktree.join(OsStr::from_bytes(path))).and_then(|data| data.modified());
            let Ok(since) = written.map(|at| at.duration_since(std::time::UNIX_EPOCH).unwrap_or_default()) else {
                continue;
            };
            let ms = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
            if (question.started_ms - FILE_TIME_BEHIND_MS..=question.closed_ms).contains(&ms) {
                found.push(text(path));
            }
            if found.len() == LISTED_MOST {
                break;
            }
        }
        Ok(Some(found))
    }

    /// Runs git. `None` where it refused or is not there.
    fn run(&self, arguments: &[&str], input: &[u8]) -> Result<Option<Vec<u8>>, OutOfTime> {
        let mut git = Command::new("git");
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_bytes().starts_with(b"GIT_")) {
            git.env_remove(name);
        }
        git.env("GIT_TERMINAL_PROMPT", "0").env("GIT_NO_LAZY_FETCH", "1").env("GIT_OPTIONAL_LOCKS", "0");
        git.env("LC_ALL", "C").arg("--no-optional-locks").arg("--no-pager");
        for setting in [
            "core.fsmonitor=false",
            "core.untrackedCache=false",
            "core.quotePath=false",
            "diff.external=",
            "log.showSignature=false",
            "protocol.allow=never",
        ] {
            git.arg("-c").arg(setting);
        }
        git.arg("--git-dir").arg(self.checkout.asked_git_dir());
        let folder = match self.checkout.worktree.as_ref().filter(|root| root.is_dir()) {
            Some(worktree) => {
                git.arg("--work-tree").arg(worktree);
                worktree.as_path()
            }
            None => Path::new("/"),
        };
        git.args(arguments).current_dir(folder).process_group(0);
        git.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let Ok(mut child) = git.spawn() else { return Ok(None) };
        let out = self.talk(&mut child, input);
        let Some(out) = out else {
            end_group(&child);
            let _ = child.wait();
            return Err(OutOfTime);
        };
        Ok(child.wait().is_ok_and(|status| status.success()).then_some(out))
    }

    /// Writes and reads at once, until the child has said everything or the time is over.
    fn talk(&self, child: &mut Child, input: &[u8]) -> Option<Vec<u8>> {
        let (mut stdin, mut stdout) = (child.stdin.take()?, child.stdout.take()?);
        let input = input.to_vec();
        let writer = thread::spawn(move || {
            let _ = stdin.write_all(&input);
        });
        let (done, wait) = mpsc::channel();
        thread::spawn(move || {
            let mut out = Vec::new();
            let _ = stdout.read_to_end(&mut out);
            let _ = done.send(out);
        });
        let out = wait.recv_timeout(self.until.saturating_duration_since(Instant::now())).ok();
        if out.is_some() {
            let _ = writer.join();
        }
        out
    }
}

fn end_group(child: &Child) {
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw) {
        let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
    }
}

fn lines(out: &[u8]) -> impl Iterator<Item = String> + '_ {
    out.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).map(text)
}

fn paths(out: &[u8]) -> Vec<String> {
    let mut paths: Vec<String> = out
        .split(|&byte| byte == 0)
        .map(|path| path.strip_prefix(b"\n").unwrap_or(path))
        .filter(|path| !path.is_empty())
        .map(text)
        .collect();
    paths.sort_unstable();
    paths.dedup();
    paths.truncate(LISTED_MOST);
    paths
}

/// Makes text from git's bytes. What is not UTF-8 becomes `\xNN`, and a backslash there `\\`, so that the bytes can
/// be had back.
pub(crate) fn text(bytes: &[u8]) -> String {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return text.into();
    }
    let mut out = String::new();
    for chunk in bytes.utf8_chunks() {
        out.push_str(&chunk.valid().replace('\\', "\\\\"));
        for byte in chunk.invalid() {
            out.push_str(&format!("\\x{byte:02x}"));
        }
    }
    out
}
