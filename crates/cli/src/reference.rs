//! What `docs/reference/` holds: everything here is a function of the registry, the command line, the table of
//! variables and the declared providers, so the same version makes the same files everywhere.

mod cli;
mod environment;
mod providers;
mod shell;

use std::sync::Arc;

use majordomus_capability::Registry;
use majordomus_capability::project::mcp::{Revision, Tools};
use majordomus_capability::project::reference::MARK;
use majordomus_capability::project::{openapi, reference};

use crate::registered;

/// The page of environment variables.
pub(crate) const ENVIRONMENT: &str = "environment.md";

/// What the index says of the pages that the registry does not make.
const BESIDE: &str = "\nBesides: what is recorded of each [client](providers.md), every command of the \
                      [command line](cli/majordomus.md), and the [environment variables](environment.md).\n";

/// One file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    /// Relative to the folder, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Page {
    fn new(path: impl Into<String>, text: impl Into<String>) -> Self {
        let (path, text) = (path.into(), text.into());
        debug_assert!(is_ours(&path, &text), "{path} could not be told from what somebody else wrote");
        Self { path, text }
    }

    fn markdown(path: impl Into<String>, text: &str) -> Self {
        Self::new(path, format!("{MARK}\n\n{text}"))
    }
}

/// All files, in the order of their paths.
pub(crate) fn pages(registry: &Arc<Registry>) -> Vec<Page> {
    let mut command = registered::command(registry);
    command.build();
    let mut pages: Vec<Page> =
        reference::pages(registry).into_iter().map(|page| Page::new(page.path, page.text)).collect();
    // The registry's own pages know of nothing beside it.
    if let Some(index) = pages.iter_mut().find(|page| page.path == "README.md") {
        index.text.push_str(BESIDE);
    }
    pages.push(Page::new("openapi.json", openapi::json(registry)));
    pages.push(Page::new("tools.json", tools(registry)));
    pages.push(environment::page());
    pages.extend(providers::pages());
    pages.extend(cli::pages(&command));
    pages.extend(shell::manuals(&command));
    pages.extend(shell::completions(&command));
    pages.sort_by(|one, other| one.path.cmp(&other.path));
    pages
}

/// Whether a file of that path and text was written here, by this version or an earlier one. Only such files are ever
/// removed.
pub(crate) fn is_ours(path: &str, text: &str) -> bool {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    match folder {
        _ if name.ends_with(".md") => text.starts_with(MARK),
        "" => matches!(name, "openapi.json" | "tools.json"),
        "man" => name.starts_with("majordomus") && name.ends_with(".1"),
        "completions" => shell::COMPLETIONS.contains(&name),
        _ => false,
    }
}

/// The tools as a client of the newest revision sees them.
fn tools(registry: &Arc<Registry>) -> String {
    let tools = Tools::new(registry.clone());
    let list: serde_json::Value =
        serde_json::from_str(tools.list(Revision::NEWEST_LEGACY).get()).expect("the list of tools is JSON");
    serde_json::to_string_pretty(&list).expect("what was read can be written") + "\n"
}

#[cfg(test)]
mod tests;
