//! `majordomus connect`: our hooks and our MCP server in the settings of clients.

use std::process::ExitCode;

use anyhow::{Context, anyhow};
use majordomus_providers::{EpisodeSource, Provider};
use majordomus_records::Checkout;
use serde_json::{Value, json};

use crate::args::Connect;
use crate::connect::{self, Asked, Client, Plan, Scope, Step, plan};
use crate::output::{self, Hint};

pub(super) fn run(arguments: &Connect) -> anyhow::Result<ExitCode> {
    let project = project(arguments.global)?;
    let person = Scope::person();
    let scope = match (arguments.global, &project, &person) {
        (false, Some(project), _) => project,
        (true, _, Some(person)) => person,
        (_, _, _) => {
            return Err(anyhow!("HOME names no folder")).hint("set HOME to the folder whose settings are meant");
        }
    };
    let asked = if arguments.remove { Asked::Remove } else { Asked::Connect };
    let providers = if arguments.clients.is_empty() {
        if arguments.remove { connect::connected(scope) } else { found(&[project.as_ref(), person.as_ref()])? }
    } else {
        named(&arguments.clients)?
    };
    let (providers, others) =
        providers.into_iter().partition::<Vec<_>, _>(|provider| connect::has_settings(provider, scope));
    // Whoever names one that cannot be connected here meant another place; who names none gets those that can.
    if let Some(other) = others.first().filter(|_| providers.is_empty() || !arguments.clients.is_empty()) {
        return Err(anyhow!(nowhere(other, scope))).hint(format!("run {}", elsewhere(other, scope)));
    }
    let writes = !arguments.check && !arguments.dry_run;
    let lock = writes.then(|| Plan::lock(scope)).transpose();
    let _lock = lock.hint("make the state folder writable, or wait for the other process")?;
    let mut plan = plan(scope, asked, &providers).hint(
        "install majordomus to a folder that stays, such as ~/.local/bin, put that on the PATH, and run this again from there",
    )?;
    for client in plan.clients.iter_mut().filter(|_| asked == Asked::Connect) {
        let others = connect::elsewhere(client.provider, scope, project.as_ref(), person.as_ref());
        let twice = |path| format!("its hooks are declared in {path} too, and each event comes as often");
        client.notes.extend(others.into_iter().map(twice));
    }
    if arguments.check {
        return check(&plan, arguments.json);
    }
    let others = others.iter().map(|other| format!("{}; run {}\n", nowhere(other, scope), elsewhere(other, scope)));
    output::print(&plan.difference())?;
    if writes {
        let written = plan.write();
        let warnings = written.map_err(|(file, error)| anyhow!("cannot write {file}: {error}"));
        for warning in warnings.hint("nothing of that file has changed; mend that and run this again")? {
            output::note(&format!("warning: {warning}"));
        }
    }
    tell(&plan, asked, writes, &others.collect::<String>())
}

/// The project that the command runs in; with `global` it may also run elsewhere.
fn project(global: bool) -> anyhow::Result<Option<Scope>> {
    if global {
        let here = std::env::current_dir().ok();
        return Ok(here.and_then(|here| Checkout::find(&here).ok()).and_then(Scope::project));
    }
    let folder = std::env::current_dir().context("cannot tell the current folder")?;
    let checkout = Checkout::find(&folder);
    let checkout = checkout.hint("run this inside a git repository, or with --global for all projects")?;
    let bare = anyhow!("{} has no worktree, so no project's settings", checkout.git_dir.display());
    Scope::project(checkout).ok_or(bare).hint("run this in a worktree, or with --global for all projects").map(Some)
}

/// Those who are found here.
fn found(scopes: &[Option<&Scope>]) -> anyhow::Result<Vec<&'static Provider>> {
    let found = connect::found(&scopes.iter().copied().flatten().collect::<Vec<_>>());
    if found.is_empty() {
        let known = connect::known().map(|provider| provider.id).collect::<Vec<_>>().join(", ");
        return Err(anyhow!("no client was found here")).hint(format!("name those that you use: {known}"));
    }
    Ok(found)
}

/// Those who were named, each once.
fn named(ids: &[String]) -> anyhow::Result<Vec<&'static Provider>> {
    let mut named: Vec<&'static Provider> = Vec::new();
    for id in ids {
        let provider = majordomus_providers::find(id).context("only declared names are taken")?;
        if !connect::known().any(|known| known.id == provider.id) {
            return Err(anyhow!("{} cannot be connected: {}", provider.title, why_not(provider)))
                .hint("where it takes MCP servers, declare the command `majordomus mcp` there by hand");
        }
        if named.iter().all(|other| other.id != provider.id) {
            named.push(provider);
        }
    }
    Ok(named)
}

fn nowhere(provider: &Provider, scope: &Scope) -> String {
    let (here, there) = if scope.is_persons() { ("a person", "a project") } else { ("a project", "a person") };
    format!("{} is told of servers and hooks in the settings of {there}, and has none of {here}", provider.title)
}

/// The command that connects it where it has settings.
fn elsewhere(provider: &Provider, scope: &Scope) -> String {
    let global = if scope.is_persons() { "" } else { " --global" };
    format!("majordomus connect {}{global}", provider.id)
}

fn why_not(provider: &Provider) -> String {
    match (provider.episode, provider.limits.first()) {
        (EpisodeSource::Connection, _) => "it stands for every MCP client, and has no settings of its own".to_owned(),
        (_, Some(limit)) => (*limit).to_owned(),
        (_, None) => "it is not known where its hooks and servers are declared".to_owned(),
    }
}

fn check(plan: &Plan<'_>, as_json: bool) -> anyhow::Result<ExitCode> {
    let complete = plan.clients.iter().all(Client::is_done);
    if as_json {
        output::json(&json!({ "complete": complete, "clients": plan.clients.iter().map(seen).collect::<Vec<_>>() }))?;
    } else {
        let mut text = String::new();
        for client in &plan.clients {
            for step in &client.steps {
                text.push_str(&format!("{}: {}: {}\n", client.provider.title, step.file, stands(step)));
            }
            text.extend(notes(client));
        }
        output::print(&text)?;
    }
    Ok(ExitCode::from(if complete { 0 } else { output::FAILED }))
}

fn seen(client: &Client) -> Value {
    let steps = client.steps.iter().map(|step| {
        json!({
            "path": step.file, "missing": step.missing, "stale": step.stale, "left_over": step.over,
            "refused": step.refused,
        })
    });
    json!({
        "client": client.provider.id, "complete": client.is_done(), "files": steps.collect::<Vec<_>>(),
        "notes": client.notes,
    })
}

fn stands(step: &Step) -> String {
    if let Some(refused) = &step.refused {
        return refused.clone();
    }
    let parts = [("missing", &step.missing), ("stale", &step.stale), ("left over", &step.over)];
    let said = parts.iter().filter(|(_, names)| !names.is_empty());
    let said = said.map(|(what, names)| format!("{what}: {}", names.join(", "))).collect::<Vec<_>>();
    if said.is_empty() { "in place".to_owned() } else { said.join("; ") }
}

fn notes(client: &Client) -> Vec<String> {
    client.notes.iter().map(|note| format!("  note: {note}\n")).collect()
}

/// Says for each client what was done, and what is left for the person to do.
fn tell(plan: &Plan<'_>, asked: Asked, written: bool, others: &str) -> anyhow::Result<ExitCode> {
    let mut text = String::new();
    for client in &plan.clients {
        let title = client.provider.title;
        for step in client.steps.iter().filter(|step| step.refused.is_some()) {
            let why = step.refused.as_deref().unwrap_or_default();
            output::note(&format!("error: {title}: {} is left as it is: {why}", step.file));
        }
        let done: Vec<&Step> = client.steps.iter().filter(|step| !step.is_nothing()).collect();
        let mut files: Vec<&str> = done.iter().map(|step| step.file.as_str()).collect();
        files.dedup();
        let files = files.join(", ");
        let said = match (asked, done.is_empty(), written) {
            (_, true, _) if client.is_refused() => continue,
            (Asked::Connect, true, _) => format!("{title}: everything is in place, nothing was changed"),
            // Whoever asks for all is not told of those who have nothing.
            (Asked::Remove, true, _) => continue,
            (Asked::Connect, false, true) => format!("{title}: connected in {files}"),
            (Asked::Connect, false, false) => format!("{title}: would be connected in {files}"),
            (Asked::Remove, false, true) => format!("{title}: taken out of {files}"),
            (Asked::Remove, false, false) => format!("{title}: would be taken out of {files}"),
        };
        text.push_str(&format!("{said}\n"));
        text.extend(notes(client));
        if asked == Asked::Connect && !done.is_empty() {
            let trust = client.provider.adapter.and_then(|adapter| adapter.trust);
            let approval = client.provider.mcp.and_then(|mcp| mcp.approval);
            text.extend([trust, approval].into_iter().flatten().map(|todo| format!("  to do: {todo}\n")));
        }
    }
    if asked == Asked::Remove && plan.clients.iter().all(|client| client.steps.iter().all(Step::is_nothing)) {
        text.push_str("nothing of majordomus is in these settings, nothing was changed\n");
    }
    output::print(&(text + others))?;
    Ok(ExitCode::from(if plan.clients.iter().any(Client::is_refused) { output::FAILED } else { 0 }))
}
