//! The clients: how each is run, what it asks before it works, and what its hooks are called.

mod claude;
mod codex;
mod copilot;
mod gemini;

use std::path::{Path, PathBuf};

use anyhow::bail;
use majordomus_e2e::executable;
use serde_json::{Value, json};

use crate::install::Package;
use crate::place::Place;
use crate::service::Tool;
use crate::witness::Fired;

/// A client, and all that is particular to it.
pub(crate) struct Client {
    /// What the command line calls it.
    pub(crate) name: &'static str,
    /// What majordomus calls it.
    pub(crate) provider: &'static str,
    pub(crate) package: Package,
    /// The program itself and its first words, below the folder of installed clients. A launcher would stand between it
    /// and the signals.
    pub(crate) program: fn(&Path) -> Vec<PathBuf>,
    pub(crate) environment: &'static [(&'static str, &'static str)],
    /// The arguments of a run without a terminal, before the prompt.
    pub(crate) print: &'static [&'static str],
    /// The arguments in a terminal.
    pub(crate) terminal: &'static [&'static str],
    /// What the screen shows once a line can be typed.
    pub(crate) ready: &'static str,
    /// What is typed to leave.
    pub(crate) quit: &'static str,
    pub(crate) hooks: Hooks,
    /// The end reasons that only somebody's decision sends, as measured.
    pub(crate) deliberate: &'static [&'static str],
    /// Answers what the client asks when it first runs, and adds the hooks of our own.
    pub(crate) prepare: fn(&Place) -> anyhow::Result<()>,
}

/// What a client's hooks are called.
pub(crate) struct Hooks {
    /// The field that names the sitting.
    pub(crate) id: &'static str,
    /// What fires when a turn is over.
    pub(crate) turn_over: &'static str,
    pub(crate) end: &'static str,
    /// Whether a call says that context was discarded.
    pub(crate) compacts: fn(&Fired) -> bool,
}

/// All of them.
pub(crate) const CLIENTS: [&Client; 4] = [&claude::CLAUDE, &codex::CODEX, &gemini::GEMINI, &copilot::COPILOT];

impl Client {
    pub(crate) fn find(name: &str) -> anyhow::Result<&'static Self> {
        match CLIENTS.iter().find(|client| client.name == name) {
            Some(client) => Ok(client),
            None => bail!("{name} is no client that is run here"),
        }
    }
}

/// What the models call: the tool that joins the connection to the sitting. What a model calls the conversation is its own
/// invention, and nothing may come of it.
pub(crate) fn tool() -> Tool {
    Tool { name: "majordomus_session_attach", arguments: json!({"external_id": "a-name-of-the-model"}) }
}

/// Puts the client where a command is looked for, and connects it to majordomus in the run's repository. Within the walls:
/// to be connected a client may be run, to say its version.
pub(crate) fn connect(client: &Client, place: &Place, installed: &Path) -> anyhow::Result<()> {
    let words: Vec<String> = (client.program)(installed).iter().map(|word| format!("'{}'", word.display())).collect();
    executable(&place.bin().join(client.name), &format!("#!/bin/sh\nexec {} \"$@\"\n", words.join(" ")));
    let said = place.majordomus(&["connect", client.provider])?;
    place.put(&place.root().join("connected.txt"), &said)?;
    place.commit("Connect")
}

/// Hook entries in the form that most clients share: per event a list of groups, each with a list of commands.
fn grouped(events: &[&str], timeout: u32, command: impl Fn(&str) -> String) -> Value {
    let group = |event: &str| json!([{"hooks": [{"type": "command", "command": command(event), "timeout": timeout}]}]);
    events.iter().map(|event| ((*event).to_owned(), group(event))).collect::<serde_json::Map<_, _>>().into()
}
