//! How a client's settings stand: for `capture status` and `doctor`, which write nothing.

use majordomus_providers::{ConfigFile, EventKind, Provider};
use serde::Serialize;

use super::binary;
use super::files::Settings;
use super::hooks::Hooks;
use super::scope::Scope;
use super::servers::{Servers, There};
use super::shell::{self, Filled};

/// Every file in which a client may be told of us.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Wiring {
    /// Where its hooks are declared, nearest first.
    pub(crate) hooks: Vec<Wired>,
    /// Where its MCP servers are.
    pub(crate) servers: Vec<Wired>,
}

/// How one file stands.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Wired {
    /// The file: relative to the project, or to the home folder after `~/`.
    pub(crate) path: &'static str,
    /// Whether it is the one that `majordomus connect` writes.
    pub(crate) is_written: bool,
    /// Whether it is there.
    pub(crate) is_there: bool,
    /// Why it cannot be read, if it is there and cannot.
    pub(crate) trouble: Option<String>,
    /// What is ours in it: native event names, or the server's name.
    pub(crate) ours: Vec<Declared>,
    /// Whether something that is not ours stands under our name (servers only).
    pub(crate) is_taken: bool,
    /// Whether `majordomus connect` has put something into it that it did not take out: where nothing is ours in it now,
    /// somebody else has overwritten it.
    pub(crate) was_declared: bool,
    /// What of that is not there any more.
    pub(crate) gone: Vec<String>,
}

/// Something of ours in a file.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Declared {
    /// The event, or the server.
    pub(crate) name: String,
    /// The program that it runs.
    pub(crate) program: String,
    /// The command line of a hook, as it stands there; a server has none.
    pub(crate) line: Option<String>,
    /// What a shell fills into that line.
    #[serde(skip)]
    pub(crate) filled: Filled,
    /// What the line reports, if that is one thing that is known.
    #[serde(skip)]
    pub(crate) event: Option<EventKind>,
    /// Whether it is as it would be written now.
    pub(crate) is_current: bool,
}

/// Looks into every settings file of a client that is declared, of the project and of the person as far as there are such
/// scopes. Reads only; what cannot be read is said in [`Wired::trouble`].
pub(crate) fn wiring(provider: &'static Provider, project: Option<&Scope>, person: Option<&Scope>) -> Wiring {
    // Where this program has no lasting path, what is declared is measured by the path that it names itself.
    let binary = binary::path().ok();
    let look = |file: &'static ConfigFile, hooks: bool| {
        let scope = if file.is_users() { person } else { project }?;
        Some(wired(provider, file, scope, binary.as_deref(), hooks))
    };
    let hooks = provider.adapter.map_or(&[][..], |adapter| adapter.files);
    let servers = provider.mcp.map_or(&[][..], |mcp| mcp.files);
    Wiring {
        hooks: hooks.iter().filter_map(|file| look(file, true)).collect(),
        servers: servers.iter().filter_map(|file| look(file, false)).collect(),
    }
}

fn wired(
    provider: &'static Provider,
    file: &'static ConfigFile,
    scope: &Scope,
    binary: Option<&str>,
    hooks: bool,
) -> Wired {
    let mut wired = Wired {
        path: file.path,
        is_written: file.write,
        is_there: false,
        trouble: None,
        ours: Vec::new(),
        is_taken: false,
        was_declared: false,
        gone: Vec::new(),
    };
    let ledger = scope.ledger();
    let mut noted: Vec<String> = Vec::new();
    if let Some(note) = ledger.note(file.path) {
        wired.was_declared = if hooks { note.has_hooks_of(provider.id) } else { note.has_server_of(provider.id) };
        if hooks {
            let of = note.hooks.iter().filter(|hook| hook.provider == provider.id);
            noted.extend(of.map(|hook| hook.event.clone()));
        } else if wired.was_declared {
            noted.push(shell::NAME.to_owned());
        }
    }
    let path = scope.path(file).unwrap_or_default();
    match Settings::read(file.path, &path, file.format) {
        Err(error) => {
            wired.is_there = true;
            wired.trouble = Some(error.to_string());
            return wired;
        }
        Ok(settings) => {
            wired.is_there = settings.before.is_some();
            let document = &settings.document;
            if let (true, Some(adapter)) = (hooks, provider.adapter) {
                let hooks = Hooks { provider, adapter, at: file.at };
                wired.ours.extend(hooks.find(document).into_iter().map(|found| Declared {
                    is_current: hooks.is_current(&found, binary.unwrap_or(&found.program)),
                    name: found.event,
                    program: found.program,
                    filled: shell::filled(&found.line),
                    event: shell::hook_event(&found.line),
                    line: Some(found.line),
                }));
            }
            if let (false, Some(mcp)) = (hooks, provider.mcp) {
                let servers = Servers { provider, mcp, at: file.at };
                match servers.find(document) {
                    There::Nothing => {}
                    There::Foreign => wired.is_taken = true,
                    There::Ours(program) => wired.ours.push(Declared {
                        name: shell::NAME.to_owned(),
                        is_current: servers.is_current(document, binary.unwrap_or(&program)),
                        program,
                        line: None,
                        filled: Filled::Nothing,
                        event: None,
                    }),
                }
            }
        }
    }
    wired.gone = noted.into_iter().filter(|name| wired.ours.iter().all(|ours| ours.name != *name)).collect();
    wired
}

#[cfg(test)]
mod tests;
