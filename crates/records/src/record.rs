//! The session record: a Markdown file with front matter, a pure function of an ended log.

use std::fmt::Write;

use crate::clock::rfc3339;
use crate::facts::{Commit, CommitsFrom, Facts};
use crate::line::{EndOutcome, Head, Witness};
use crate::log::{End, Log, Start};
use crate::redact::redact;
use crate::text::{code, quoted, visible};

/// The schema that the front matter names.
pub const SCHEMA: &str = "majordomus/session@1";

/// What a record says about when it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// When the session began, in milliseconds since the epoch.
    pub started_ms: i64,
    /// When its client was last seen at work.
    pub last_activity_ms: i64,
    /// When it ended: for an end that nobody witnessed, the last activity.
    pub closed_ms: i64,
}

/// Tells when a session began, was last active, and ended. `None` while the log has no start or no end.
#[must_use]
pub fn times(log: &Log) -> Option<Times> {
    let (start, end) = (log.start.as_ref()?, log.end.as_ref()?);
    let evidence = log.last_evidence.as_ref().map_or(start.stamp.wall_ms, |(stamp, _)| stamp.wall_ms);
    // A hook that fires, or a client that says goodbye, is at work at that moment; a reaper, a server that stops or a
    // person at another terminal says nothing of the client.
    let seen =
        matches!(end.witness, Witness::Hook | Witness::Connection) && end.ended.judged_ms.is_none() && !end.ended.late;
    let last_activity_ms = if seen { end.stamp.wall_ms } else { evidence };
    let closed_ms = match end.ended.outcome {
        EndOutcome::Closed if !end.ended.late => end.stamp.wall_ms,
        EndOutcome::Closed | EndOutcome::Interrupted => last_activity_ms,
    };
    Some(Times { started_ms: start.stamp.wall_ms, last_activity_ms, closed_ms })
}

/// What a record needs besides the log.
#[derive(Clone, Debug)]
pub struct Setting<'a> {
    /// The checkout's name: `main`, or the linked worktree's.
    pub worktree: &'a str,
}

/// All that a record is made of.
struct Known<'a> {
    log: &'a Log,
    start: &'a Start,
    end: &'a End,
    facts: &'a Facts,
    times: Times,
    worktree: String,
    redactions: u64,
}

/// Renders the record of an ended log with its facts. `None` while either is missing.
#[must_use]
pub fn render(log: &Log, setting: &Setting<'_>) -> Option<String> {
    let (start, end, facts) = (log.start.as_ref()?, log.end.as_ref()?, log.facts.as_ref()?);
    // The worktree's name is the only foreign text that does not come out of the log.
    let (worktree, replaced) = redact(setting.worktree);
    let redactions = log.redactions + replaced;
    let known = Known { log, start, end, facts, times: times(log)?, worktree, redactions };
    let mut out = String::new();
    front_matter(&mut out, &known);
    body(&mut out, &known);
    Some(out)
}

fn front_matter(out: &mut String, known: &Known<'_>) {
    let Known { log, start, end, facts, times, .. } = known;
    let mut field = |name: &str, value: String| {
        // A list in block form begins on a line of its own.
        let space = if value.starts_with('\n') { "" } else { " " };
        let _ = writeln!(out, "{name}:{space}{value}");
    };
    let optional = |value: Option<&str>| value.map_or_else(|| "null".into(), quoted);
    let list = |values: &Option<Vec<String>>| values.as_ref().map_or_else(|| "null".into(), |values| block(values));
    field("---\nschema", quoted(SCHEMA));
    field("session_id", quoted(&start.opened.session_id));
    field("provider", quoted(&start.opened.provider));
    field("external_id", quoted(&start.opened.external_id));
    field("client", optional(log.client.as_deref()));
    field("started_at", quoted(&rfc3339(times.started_ms)));
    field("closed_at", quoted(&rfc3339(times.closed_ms)));
    field("last_activity_at", quoted(&rfc3339(times.last_activity_ms)));
    field("outcome", quoted(end.ended.outcome.as_str()));
    field("end_reason", quoted(&end.ended.reason));
    field("end_witness", quoted(end.witness.as_str()));
    field("end_process", optional(end.ended.process.map(|runs| if runs { "running" } else { "gone" })));
    field("end_terminal", optional(end.ended.terminal.map(|there| if there { "there" } else { "gone" })));
    field("witnesses", words(log));
    field("attachments", log.attachments.to_string());
    field("take_overs", log.take_overs.to_string());
    field("compactions", log.compactions.to_string());
    field("repository_roots", list(&facts.repository_roots));
    field("worktree", quoted(&known.worktree));
    field("branch", optional(end.at.branch.as_deref()));
    field("start_head", optional(start.at.head.as_deref()));
    field("head", optional(end.at.head.as_deref()));
    field("head_tree", optional(facts.head_tree.as_deref()));
    match &facts.commits {
        None => field("commits", "null".into()),
        Some(commits) if commits.is_empty() => field("commits", "[]".into()),
        Some(commits) => {
            field(
                "commits",
                commits.iter().fold(String::new(), |mut list, commit| {
                    let (tree, patch) = (optional(commit.tree.as_deref()), optional(commit.patch_id.as_deref()));
                    let _ = write!(list, "\n  - sha: {}\n    tree: {tree}\n    patch_id: {patch}", quoted(&commit.sha));
                    let _ = write!(list, "\n    subject: {}", quoted(&commit.subject));
                    list
                }),
            );
        }
    }
    field("changed_files", list(&facts.changed_files));
    field("resumes", optional(resumes(start, facts)));
    field("clock_adjusted", log.clock_adjusted.to_string());
    field("redactions", known.redactions.to_string());
    out.push_str("---\n");
}

/// Who saw the client at work, as a list on one line.
fn words(log: &Log) -> String {
    let words: Vec<String> = log.witnesses.iter().map(|witness| quoted(witness.as_str())).collect();
    format!("[{}]", words.join(", "))
}

/// What the session continues: what its start saw end, or what the history names.
fn resumes<'a>(start: &'a Start, facts: &'a Facts) -> Option<&'a str> {
    start.opened.resumes.as_deref().or(facts.resumes.as_deref())
}

/// A list of strings, one line each.
fn block(values: &[String]) -> String {
    if values.is_empty() {
        return "[]".into();
    }
    values.iter().fold(String::new(), |list, value| list + "\n  - " + &quoted(value))
}

fn body(out: &mut String, known: &Known<'_>) {
    let Known { log, start, end, facts, times, .. } = known;
    let none = if end.at.unreadable { "a branch that could not be read" } else { "a detached HEAD" };
    let branch = end.at.branch.as_deref().map_or_else(|| none.into(), code);
    let _ = writeln!(out, "\n# Session on {branch}, {}\n", day(times.started_ms));
    let _ = writeln!(out, "{}{}\n", how_it_ended(end, times), what_was_there(end));
    let provider = majordomus_providers::find(&start.opened.provider);
    let title = || provider.map_or_else(|| code(&start.opened.provider), |provider| provider.title.to_owned());
    let client = log.client.as_deref().map_or_else(title, code);
    let (id, provider) = (code(&start.opened.external_id), code(&start.opened.provider));
    let _ = writeln!(out, "- **Client:** {client}, in the conversation {id} (provider {provider})");
    let (from, to) = (clock(times.started_ms), clock(times.closed_ms));
    let _ = writeln!(out, "- **Time:** {from} to {to} UTC ({})", duration(times.closed_ms - times.started_ms));
    let _ = writeln!(out, "- **Connections:** {}", connections(log));
    if log.compactions > 0 {
        let _ = writeln!(out, "- **Context discarded:** {}", count(u64::from(log.compactions), "time"));
    }
    if let Some(resumes) = resumes(start, facts) {
        let _ = writeln!(out, "- **Continues:** {}", code(resumes));
    }
    let _ = writeln!(out, "- **HEAD:** {} at the start, {} at the end", short(&start.at), short(&end.at));
    commits(out, facts);
    files(out, facts);
    missing(out, facts);
    if log.clock_adjusted {
        out.push_str("\nThe machine's clock ran backwards during the session; times after that were moved forward.\n");
    }
    if known.redactions > 0 {
        let replaced = sentence_count(known.redactions, "credential");
        let _ = writeln!(out, "\n{replaced} replaced before anything was written.");
    }
}

fn short(at: &Head) -> String {
    match &at.head {
        Some(head) => code(head.get(..7).unwrap_or(head)),
        None if at.unreadable => "unknown".into(),
        None => "no commit yet".into(),
    }
}

fn how_it_ended(end: &End, times: &Times) -> String {
    let reason = code(&end.ended.reason);
    match (end.ended.outcome, end.witness) {
        (EndOutcome::Closed, Witness::Connection) => {
            format!("**Closed on purpose:** the client detached over its own connection (reason {reason}).")
        }
        (EndOutcome::Closed, Witness::Hook) => {
            format!("**Closed on purpose:** the provider's hook reported the end (reason {reason}).")
        }
        (EndOutcome::Closed, witness) => {
            format!("**Closed on purpose:** seen by {} (reason {reason}).", witness.as_str())
        }
        (EndOutcome::Interrupted, Witness::Reaper | Witness::Recovery) => {
            let waited = end.ended.judged_ms.map_or(0, |ms| i64::try_from(ms).unwrap_or(i64::MAX));
            let noticed = clock(end.stamp.wall_ms);
            format!(
                "**Interrupted:** nobody ended it. The last sign of the client was at {} UTC; after {} without another \
                 one this was noticed at {noticed} UTC on {} (reason {reason}).",
                clock(times.last_activity_ms),
                duration(waited),
                day(end.stamp.wall_ms),
            )
        }
        (EndOutcome::Interrupted, Witness::Hook) => format!(
            "**Interrupted:** the provider's hook reported an end that does not say that somebody wanted it (reason {reason})."
        ),
        (EndOutcome::Interrupted, Witness::Shutdown) => {
            format!("**Interrupted:** the server was told to stop while this was open (reason {reason}).")
        }
        (EndOutcome::Interrupted, witness) => {
            format!("**Interrupted:** seen by {} (reason {reason}).", witness.as_str())
        }
    }
}

/// What the hook saw of the client at its end, which says nothing of whether somebody wanted it.
fn what_was_there(end: &End) -> String {
    let process = end.ended.process.map(|runs| if runs { "was running" } else { "had gone" });
    let terminal = end.ended.terminal.map(|there| if there { "was there" } else { "had gone" });
    let late = if end.ended.late {
        " This provider may report an end long after the sitting was over, so the times end with the last sign of the client before it."
    } else {
        ""
    };
    let seen = match (process, terminal) {
        (None, None) => String::new(),
        (Some(process), None) => format!(" At that moment the client's process {process}."),
        (Some(process), Some(terminal)) => {
            format!(" At that moment the client's process {process} and its terminal {terminal}.")
        }
        (None, Some(terminal)) => format!(" At that moment the client's terminal {terminal}."),
    };
    format!("{seen}{late}")
}

fn connections(log: &Log) -> String {
    let mut text = match log.attachments {
        0 | 1 => "attached once".to_owned(),
        times => format!("attached {times} times"),
    };
    if log.take_overs > 0 {
        let _ = write!(
            text,
            ", {} taking over from a connection that was still there",
            count(u64::from(log.take_overs), "time")
        );
    }
    text
}

fn commits(out: &mut String, facts: &Facts) {
    out.push_str("\n## Commits that appeared here\n\n");
    match &facts.commits {
        None => out.push_str("Unknown: git could not say.\n"),
        Some(commits) if commits.is_empty() => out.push_str("None.\n"),
        Some(commits) => {
            if facts.commits_from == Some(CommitsFrom::Range) {
                out.push_str("From the first HEAD to the last, because this checkout keeps no usable reflog:\n\n");
            }
            for Commit { sha, subject, .. } in commits {
                let _ = writeln!(out, "- {} {}", code(sha.get(..7).unwrap_or(sha)), code(subject));
            }
        }
    }
}

fn files(out: &mut String, facts: &Facts) {
    out.push_str("\n## Files that changed\n\n");
    match &facts.changed_files {
        None => out.push_str("Unknown: git could not say.\n"),
        Some(files) if files.is_empty() => out.push_str("None.\n"),
        Some(files) => {
            for file in files {
                let uncommitted = facts.uncommitted_files.as_ref().is_some_and(|list| list.contains(file));
                let _ =
                    writeln!(out, "- {}{}", code(file), if uncommitted { " (not committed at the end)" } else { "" });
            }
        }
    }
}

fn missing(out: &mut String, facts: &Facts) {
    if facts.missing.is_empty() {
        return;
    }
    out.push_str("\n## What is not known\n\n");
    for missing in &facts.missing {
        let _ = writeln!(out, "- {}", code(missing));
    }
}

fn day(ms: i64) -> String {
    let text = rfc3339(ms);
    const MONTHS: [&str; 12] = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ];
    let month = text
        .get(5..7)
        .and_then(|month| month.parse::<usize>().ok())
        .and_then(|month| MONTHS.get(month.wrapping_sub(1)));
    match (text.get(8..10), month, text.get(..4)) {
        (Some(day), Some(month), Some(year)) => format!("{} {month} {year}", day.trim_start_matches('0')),
        _ => visible(&text),
    }
}

fn clock(ms: i64) -> String {
    rfc3339(ms).get(11..19).unwrap_or("unknown").to_owned()
}

fn duration(ms: i64) -> String {
    let seconds = u64::try_from(ms).unwrap_or(0) / 1000;
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => count(seconds, "second"),
        (0, minutes, _) => count(minutes, "minute"),
        (hours, 0, _) => count(hours, "hour"),
        (hours, minutes, _) => format!("{} and {}", count(hours, "hour"), count(minutes, "minute")),
    }
}

fn count(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

fn sentence_count(number: u64, what: &str) -> String {
    format!("{} {}", count(number, what), if number == 1 { "was" } else { "were" })
}

#[cfg(test)]
mod tests;
