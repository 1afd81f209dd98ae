//! The pages of clients: what is recorded of each, what cannot be, and what shows that. All of it is declared in
//! `share/providers.yaml`.

mod client;
mod words;

use majordomus_capability::project::markdown::{code, table, text};
use majordomus_providers::{Adapter, EpisodeSource, PromptSource, Provider};

use super::Page;
use words::{NOBODY_KNOWS, files_of, join, quoted, written};

/// The overview, then a page for each.
pub(super) fn pages() -> Vec<Page> {
    let all = majordomus_providers::all();
    let page = |provider| Page::markdown(path(provider), &client::page(provider));
    let overview = Page::markdown("providers.md", &overview(all));
    std::iter::once(overview).chain(all.iter().map(page)).collect()
}

fn path(provider: &Provider) -> String {
    format!("providers/{}.md", provider.id)
}

fn overview(all: &[Provider]) -> String {
    let head =
        ["client", "who draws the boundary", "known as on purpose", "compaction", "hook and connection", "prompt"];
    let known = table(head, all.iter().map(known));
    let head = ["client", "`majordomus connect` writes", "you then"];
    let setup = table(head, all.iter().map(setup));
    format!(
        "# Clients\n\nWhat is recorded of each client and what is not. The page of a client says why, and what shows it. \
         What nobody found out is called {NOBODY_KNOWS}.\n\n{known}\n\
         An ending that is not known as on purpose is recorded as interrupted, never as closed. Where hook and connection \
         are joined, a sitting has one record, whichever of the two saw it first. No prompt is ever read, whether or not a \
         hook gets it.\n\n\
         ## Setting up\n\n{setup}\nWhat stands after *for you* is written with `--global`: for all your projects rather than \
         for this one. [`majordomus capture status`](cli/capture-status.md) says how each client stands here, \
         [`majordomus doctor`](cli/doctor.md) tries it out.\n"
    )
}

fn known(provider: &Provider) -> [String; 6] {
    let boundary = match (provider.episode, provider.adapter) {
        (EpisodeSource::Hooks, Some(_)) => "its hooks",
        (EpisodeSource::Hooks, None) => "its hooks, which are not read yet",
        (EpisodeSource::Connection, _) => "its connection",
        (EpisodeSource::None, _) => "nobody",
    };
    let on_purpose = match quoted(provider.deliberate) {
        none if none.is_empty() => "none".to_owned(),
        reasons => reasons,
    };
    let joined = match (provider.episode, provider.identity) {
        (EpisodeSource::Connection | EpisodeSource::None, _) => "it has only the connection".to_owned(),
        (EpisodeSource::Hooks, Some(_)) if provider.adapter.is_none() => "only the connection is recorded".to_owned(),
        (EpisodeSource::Hooks, None) => NOBODY_KNOWS.to_owned(),
        (EpisodeSource::Hooks, Some(identity)) => {
            words::joined_by(identity).map_or_else(|| "not joined".to_owned(), |how| format!("joined, by {how}"))
        }
    };
    let prompt = match provider.prompts {
        PromptSource::Hook => "a hook gets it",
        PromptSource::None => "cannot be had",
    };
    let name = format!("[{}]({})", text(provider.title), path(provider));
    [name, boundary.into(), on_purpose, compaction(provider), joined, prompt.into()]
}

fn compaction(provider: &Provider) -> String {
    match (provider.episode, provider.adapter) {
        (EpisodeSource::Connection | EpisodeSource::None, _) => "not seen".into(),
        (EpisodeSource::Hooks, None) => NOBODY_KNOWS.into(),
        (EpisodeSource::Hooks, Some(Adapter { compact_events: [], .. })) => "not seen".into(),
        (EpisodeSource::Hooks, Some(Adapter { compact_triggers: [], .. })) => "seen".into(),
        (EpisodeSource::Hooks, Some(adapter)) => {
            format!("seen if its trigger is {}", join(adapter.compact_triggers, "or"))
        }
    }
}

fn setup(provider: &Provider) -> [String; 3] {
    let trust = provider.adapter.and_then(|adapter| adapter.trust);
    let approval = provider.mcp.and_then(|mcp| mcp.approval);
    // What the other one begins with is said once.
    let approval =
        approval.filter(|approval| !trust.is_some_and(|trust| trust.starts_with(approval.trim_end_matches('.'))));
    let then: Vec<String> = trust.into_iter().chain(approval).map(text).collect();
    let carriers = words::carriers(provider);
    let writes = written(provider).unwrap_or_else(|| match (provider.episode, carriers.is_empty()) {
        (EpisodeSource::Connection, _) => format!("nothing; name {} among its MCP servers", code("majordomus mcp")),
        (_, true) => "nothing".to_owned(),
        (_, false) => format!("nothing of its own; it runs the hooks of {}", files_of(&carriers)),
    });
    let name = format!("[{}]({})", text(provider.title), path(provider));
    let then = if then.is_empty() { "nothing that is known".to_owned() } else { then.join(" ") };
    [name, writes, then]
}

#[cfg(test)]
mod tests;
