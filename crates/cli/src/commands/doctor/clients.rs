//! Whether the clients that are declared here would really be recorded.

use std::path::Path;

use majordomus_providers::{Adapter, EventKind, Provider};
use majordomus_records::Store;
use majordomus_records::clock::rfc3339;
use majordomus_records::text::visible;

use super::super::standing::{Overwritten, Scopes, Standing, is_program, path_of};
use super::trial::Trial;
use super::{Check, failed, ok, warning};
use crate::connect::{Declared, Filled, Wired};

/// Looks at every client of which something is declared here, or was.
pub(super) fn look(store: &Store, checks: &mut Vec<Check>) {
    let scopes = Scopes::of(store.checkout());
    for provider in majordomus_providers::all() {
        let wiring = scopes.wiring(provider);
        if let Some(adapter) = provider.adapter {
            hooks(provider, adapter, wiring.hooks, &scopes, store, checks);
        }
        for file in &wiring.servers {
            checks.extend(server(provider, file));
        }
    }
}

fn hooks(
    provider: &'static Provider,
    adapter: &'static Adapter,
    files: Vec<Wired>,
    scopes: &Scopes,
    store: &Store,
    checks: &mut Vec<Check>,
) {
    let about = format!("hooks of {}", provider.id);
    let standing = Standing::find(provider, adapter, files, scopes, store);
    for (path, why) in standing.troubles() {
        checks.push(warning(&about, format!("{path} cannot be read: {}", visible(why)), "mend it"));
    }
    let overwritten = standing.overwritten();
    if let Some(Overwritten { what, hint }) = &overwritten {
        checks.push(failed(&about, format!("overwritten by somebody else since: {what}"), hint));
    }
    let mut works = Vec::new();
    let starts = |file: &&Wired| file.ours.iter().any(|ours| adapter.start_events.contains(&ours.name.as_str()));
    let mut declared = standing.files.iter().filter(|file| !file.ours.is_empty()).peekable();
    if let Some(first) = declared.peek().filter(|_| !standing.files.iter().any(|file| starts(&file))) {
        let found = format!("{}: no hook is declared for the start of a sitting", first.path);
        checks.push(failed(&about, found, &standing.hint(first.path)));
    }
    // One without a start goes on where another one has begun.
    for file in declared.filter(starts) {
        match tried(provider, adapter, file, store.checkout().worktree.as_deref()) {
            Tried::Works => works.push(file.path),
            Tried::Fails(why) => {
                checks.push(failed(&about, format!("{}: {why}", file.path), &standing.hint(file.path)));
            }
            Tried::Not(why) => {
                let hint = format!("read the line, and {}", standing.hint(file.path));
                checks.push(warning(&about, format!("{}: not tried: {why}", file.path), &hint));
            }
        }
    }
    if works.is_empty() {
        return;
    }
    let missing: Vec<&str> =
        standing.missing().iter().filter(|written| written.since.is_none()).map(|written| written.name).collect();
    if !missing.is_empty() && overwritten.is_none() {
        let found = format!("{} declares no {}", works.join(", "), missing.join(", "));
        checks.push(warning(&about, found, &standing.hint(works[0])));
    }
    let found = format!("what {} runs recorded a session in a throwaway repository", works.join(" and "));
    checks.push(match (&standing.fired, standing.last_end()) {
        (Some(at), end) => {
            let end = end.map_or_else(String::new, |end| format!("; {end}"));
            ok(&about, format!("{found}; last seen firing here at {}{end}", rfc3339(at.wall_ms)))
        }
        (None, _) => {
            let start = format!("start a conversation of {} here", provider.title);
            warning(&about, format!("{found}, but it was never seen firing here"), adapter.trust.unwrap_or(&start))
        }
    });
}

/// What became of trying out a file's hooks.
enum Tried {
    Works,
    Fails(String),
    Not(String),
}

fn tried(provider: &Provider, adapter: &Adapter, file: &Wired, worktree: Option<&Path>) -> Tried {
    let line = |kind, events: &[&str]| {
        // As the event is named: what a line reports is what is tried.
        let declared = file.ours.iter().find(|ours| events.contains(&ours.name.as_str()))?;
        Some((kind, declared))
    };
    let lines = [line(EventKind::Start, adapter.start_events), line(EventKind::End, adapter.end_events)];
    let lines: Vec<(EventKind, &Declared)> = lines.into_iter().flatten().collect();
    for (_, declared) in &lines {
        if let Some(why) = is_doubtful(declared, worktree) {
            return Tried::Not(format!("{} {why}", declared.name));
        }
    }
    let mut trial = match Trial::begin(provider, adapter) {
        Ok(trial) => trial,
        Err(error) => return Tried::Not(format!("{error:#}")),
    };
    for (kind, declared) in lines {
        let line = declared.line.as_deref().unwrap_or_default();
        let native = declared.name.as_str();
        if let Err(why) = trial.run(kind, native, line, declared.filled == Filled::Home) {
            return Tried::Fails(format!("{native}: {}", visible(&why)));
        }
    }
    Tried::Works
}

/// Why a line is not run. It has our form, but a repository can carry settings and programs of that name as well.
fn is_doubtful(declared: &Declared, worktree: Option<&Path>) -> Option<String> {
    if declared.filled == Filled::Other {
        return Some("has a part that only the client's shell could fill in".to_owned());
    }
    let path = path_of(&declared.program);
    if path.is_none() && declared.program.contains('/') {
        return Some("names a program by where the client runs".to_owned());
    }
    let real = path.and_then(|path| std::fs::canonicalize(path).ok())?;
    let own = std::env::current_exe().and_then(std::fs::canonicalize);
    let is_carried = worktree.is_some_and(|root| real.starts_with(root)) && own.ok().as_ref() != Some(&real);
    is_carried.then(|| "names a program inside this repository".to_owned())
}

fn server(provider: &Provider, file: &Wired) -> Option<Check> {
    let about = format!("server of {}", provider.id);
    let global = if file.path.starts_with("~/") { " --global" } else { "" };
    let hint = format!("run majordomus connect {}{global}", provider.id);
    if let Some(ours) = file.ours.first() {
        let program = visible(&ours.program);
        let is_gone = path_of(&ours.program).is_some_and(|path| !is_program(&path));
        return Some(if is_gone {
            failed(&about, format!("{} names {program}, which does not exist", file.path), &hint)
        } else {
            let approval = provider.mcp.and_then(|mcp| mcp.approval);
            let approval = approval.map_or_else(String::new, |approval| format!("; if it is not started: {approval}"));
            ok(&about, format!("{} names {program}{}", file.path, approval.trim_end_matches('.')))
        });
    }
    let is_said_of_hooks =
        provider.adapter.is_some_and(|adapter| adapter.files.iter().any(|hooks| hooks.path == file.path));
    if let Some(why) = file.trouble.as_deref().filter(|_| !is_said_of_hooks) {
        return Some(warning(&about, format!("{} cannot be read: {}", file.path, visible(why)), "mend it"));
    }
    if file.is_taken {
        let found = format!("{}: what is called majordomus there is something else", file.path);
        return Some(warning(&about, found, "give it another name, then connect"));
    }
    let found = format!("{}: overwritten by somebody else since", file.path);
    file.was_declared.then(|| failed(&about, found, &hint))
}
