//! `majordomus doctor`: is everything in place to record here?

mod clients;
mod trial;

use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

use majordomus_records::recovery::with_causes;
use majordomus_records::{Checkout, Store};
use serde::Serialize;

use crate::args::Reading;
use crate::output;

/// How long finishing what others have left may take here.
const SWEEP: Duration = Duration::from_secs(20);

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Verdict {
    Ok,
    Warning,
    Failed,
}

#[derive(Serialize)]
struct Check {
    check: String,
    verdict: Verdict,
    found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

pub(super) fn run(reading: &Reading) -> anyhow::Result<ExitCode> {
    let policy = super::policy(&reading.silence)?;
    let mut checks = vec![git()];
    match Checkout::find(&std::env::current_dir().unwrap_or_default()) {
        Err(error) => checks.push(Check {
            check: "repository".into(),
            verdict: Verdict::Failed,
            found: error.to_string(),
            hint: Some("run this inside a git repository; `git init` makes one".into()),
        }),
        Ok(checkout) => in_checkout(&Store::open(checkout, policy), &mut checks),
    }
    if reading.json {
        output::json(&checks)?;
    } else {
        output::print(&checks.iter().map(Check::line).collect::<String>())?;
    }
    let failed = checks.iter().any(|check| check.verdict == Verdict::Failed);
    Ok(ExitCode::from(if failed { output::FAILED } else { 0 }))
}

fn in_checkout(store: &Store, checks: &mut Vec<Check>) {
    let checkout = store.checkout();
    checks.push(match &checkout.worktree {
        Some(root) => ok("repository", format!("{} ({})", root.display(), checkout.name)),
        None => warning(
            "repository",
            format!("{} is bare", checkout.git_dir.display()),
            "records need a worktree; until there is one they wait in the state folder",
        ),
    });
    let state = &store.state().roots()[0];
    checks.push(match writable(state) {
        Ok(()) => ok("state", state.display().to_string()),
        Err(error) => warning(
            "state",
            format!("{} cannot be written: {error}", state.display()),
            "the user's state folder is used instead; make the git directory writable to keep both together",
        ),
    });
    if let Some(root) = checkout.record_root() {
        let folder = root.join(majordomus_records::state::RECORDS);
        checks.push(match writable(&folder) {
            Ok(()) => ok("records", folder.display().to_string()),
            Err(error) => failed(
                "records",
                format!("{} cannot be written: {error}", folder.display()),
                "make it writable; sessions that end meanwhile wait in the state folder",
            ),
        });
    }
    let swept = store.sweep(SWEEP);
    checks.push(match (swept.troubles.is_empty(), swept.waiting.len()) {
        (true, 0) => ok("recovery", "nothing is left undone".into()),
        (true, waiting) => warning(
            "recovery",
            format!("{waiting} ended sessions wait for their records, the first is {}", swept.waiting[0]),
            "a worktree, or a git that answers within seconds, lets the next command write them",
        ),
        (false, _) => warning("recovery", swept.troubles.join("; "), "mend that; the next command tries again"),
    });
    let bad = store.bad_logs().unwrap_or_default();
    if !bad.is_empty() {
        let list = bad.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
        checks.push(warning("bad logs", list, "read them by hand: they hold sessions that no record could be made of"));
    }
    checks.push(match store.open_episodes() {
        Ok(open) => ok("episodes", format!("{} open", open.len())),
        Err(error) => failed("episodes", with_causes(&error), "make the state folder readable"),
    });
    clients::look(store, checks);
}

fn git() -> Check {
    let asked = majordomus_records::git::program().map(|git| Command::new(git).arg("--version").output());
    match asked {
        Some(Ok(output)) if output.status.success() => {
            ok("git", String::from_utf8_lossy(&output.stdout).trim().to_owned())
        }
        _ => failed(
            "git",
            "cannot be run".into(),
            "install git, or put it on the PATH; without it records name no commits",
        ),
    }
}

/// Whether a folder, or the nearest one above it that is there, may be written. Makes nothing.
fn writable(folder: &Path) -> std::io::Result<()> {
    let there = folder.ancestors().find(|folder| folder.exists()).unwrap_or(folder);
    Ok(rustix::fs::access(there, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK)?)
}

fn ok(check: &str, found: String) -> Check {
    Check { check: check.into(), verdict: Verdict::Ok, found, hint: None }
}

fn warning(check: &str, found: String, hint: &str) -> Check {
    Check { check: check.into(), verdict: Verdict::Warning, found, hint: Some(hint.into()) }
}

fn failed(check: &str, found: String, hint: &str) -> Check {
    Check { check: check.into(), verdict: Verdict::Failed, found, hint: Some(hint.into()) }
}

impl Check {
    fn line(&self) -> String {
        let verdict = match self.verdict {
            Verdict::Ok => "ok",
            Verdict::Warning => "warning",
            Verdict::Failed => "failed",
        };
        let hint = self.hint.as_ref().map_or_else(String::new, |hint| format!("         hint: {hint}\n"));
        format!("{verdict:8} {}: {}\n{hint}", self.check, self.found)
    }
}
