//! Asking git, in the second step of an end and never before.
//!
//! The child takes no lock it does not need, runs no program that the repository names, fetches nothing, asks
//! nobody, and is ended with all it started when its time is over. A repository that belongs to another user is not
//! asked at all.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use crate::checkout::Checkout;
use crate::facts::Facts;
use crate::line::Head;

mod history;
mod run;
mod status;
mod words;

use history::{History, UNREADABLE};
use run::{Runner, Said, Unreaped, Unsaid};

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

/// What is known about a finished session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The facts. What could not be told is `None` and named in `missing`.
    pub facts: Facts,
    /// Whether something is missing because time ran out, so that asking again, with more time, may tell more. Patch
    /// ids alone are not worth that.
    pub out_of_time: bool,
}

/// Answers questions about a finished session.
pub trait Git: Send + Sync {
    /// Returns what is known after at most `limit`, and a moment for ending what was started.
    fn ask(&self, question: &Question<'_>, limit: Duration) -> Answer;
}

/// The git on the search path.
#[derive(Clone, Debug)]
pub struct RealGit(Arc<Found>);

#[derive(Debug)]
struct Found {
    program: OnceLock<PathBuf>,
    user: u32,
    unreaped: Unreaped,
}

impl Default for RealGit {
    fn default() -> Self {
        let user = rustix::process::geteuid().as_raw();
        Self(Arc::new(Found { program: OnceLock::new(), user, unreaped: Unreaped::default() }))
    }
}

/// Finds the git that is asked: in the absolute folders of the search path, so that no repository can put its own there.
#[must_use]
pub fn program() -> Option<PathBuf> {
    run::find_git(&std::env::var_os("PATH").unwrap_or_else(|| run::PATH_UNSET.into()))
}

impl Git for RealGit {
    fn ask(&self, question: &Question<'_>, limit: Duration) -> Answer {
        let now = Instant::now();
        let until = now.checked_add(limit).unwrap_or(now + Duration::from_secs(3600));
        let mut answer = Answer::default();
        if run::belongs_to_another(question.checkout, self.0.user) {
            answer.note("git was not asked: the repository belongs to another user");
            return answer;
        }
        let path = std::env::var_os("PATH").unwrap_or_else(|| run::PATH_UNSET.into());
        let program = self.0.program.get().cloned().or_else(|| run::find_git(&path));
        let Some(program) = program else {
            answer.note("git was not asked: it is not on the search path");
            return answer;
        };
        let program = self.0.program.get_or_init(|| program);
        self.0.unreaped.reap();
        let run = Runner { program, path: &path, checkout: question.checkout, until, unreaped: &self.0.unreaped };

        // Status and roots take as long as the repository is large, so they run beside the rest.
        let (status, roots, history) = thread::scope(|scope| {
            let status = scope.spawn(|| status::uncommitted(&run, question));
            let roots = scope.spawn(|| roots(&run, question));
            let history = history::ask(&run, question);
            let status = status.join().unwrap_or(Err(Unsaid::Refused(None)));
            (status, roots.join().unwrap_or(Err(Unsaid::Refused(None))), history)
        });
        answer.fill(question, status, roots, history);
        answer
    }
}

impl Answer {
    fn fill(
        &mut self,
        question: &Question<'_>,
        status: Said<(Vec<String>, Vec<String>)>,
        roots: Said<Vec<String>>,
        history: History,
    ) {
        for (head, when) in [(question.start, "start_head"), (question.end, "head and branch")] {
            if head.unreadable {
                self.take::<()>(when, Err(UNREADABLE));
            }
        }
        self.out_of_time |= history.late;
        self.facts.commits = self.take("commits", history.commits);
        self.facts.commits_from = history.from;
        self.facts.head_tree = self.take("head_tree", history.head_tree).flatten();
        self.facts.repository_roots = self.take("repository_roots", roots);
        let files = self.take("changed_files of the commits", history.files);
        let (uncommitted, notes) = self.take("uncommitted_files", status).unzip();
        self.facts.missing.extend(history.notes.into_iter().chain(notes.into_iter().flatten()));
        let whole = files.is_some() && uncommitted.is_some();
        let mut all: Vec<String> = files.into_iter().flatten().chain(uncommitted.iter().flatten().cloned()).collect();
        all.sort_unstable();
        all.dedup();
        // Half an answer is one, but half of it being empty does not say that nothing changed.
        self.facts.changed_files = (whole || !all.is_empty()).then_some(all);
        self.facts.uncommitted_files = uncommitted;
    }

    /// Takes what was said, or notes why it was not.
    fn take<T>(&mut self, what: &str, said: Said<T>) -> Option<T> {
        let why = match said {
            Ok(said) => return Some(said),
            Err(why) => why,
        };
        self.out_of_time |= why == Unsaid::OutOfTime;
        match why {
            Unsaid::Refused(_) => self.note(what),
            Unsaid::OutOfTime => self.note(&format!("{what}: git did not answer in time")),
            Unsaid::TooMuch => self.note(&format!("{what}: git said too much")),
            Unsaid::Because(why) => self.note(&format!("{what}: {why}")),
        }
        None
    }

    fn note(&mut self, missing: &str) {
        self.facts.missing.push(missing.into());
    }
}

fn roots(run: &Runner<'_>, question: &Question<'_>) -> Said<Vec<String>> {
    if run.checkout.is_shallow() {
        return Err(Unsaid::Because("the clone is shallow"));
    }
    if question.end.unreadable && question.end.head.is_none() {
        return Err(UNREADABLE);
    }
    let Some(head) = &question.end.head else { return Ok(Vec::new()) };
    let out = run.run(&["rev-list", "--max-parents=0", "--end-of-options", head], b"")?;
    Ok(words::lines(&out).collect())
}

#[cfg(test)]
mod tests;
