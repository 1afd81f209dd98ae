//! Commands that nobody wrote: every capability that declares words for the command line.
//!
//! Their arguments, types and texts come from the registry, so a capability that is declared there is a command here.

mod argument;
mod call;
mod show;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches, CommandFactory, FromArgMatches};
use majordomus_capability::{Capability, Context, Reach, Registry, Shared};
use majordomus_episodes_core::board::EpisodeBoard;
use majordomus_episodes_core::peers::PeerBoard;
use majordomus_records::Published;
use serde_json::Value;

pub(crate) use call::{NoServer, START_ONE};

use crate::args::{Cli, Command};
use crate::output;

/// A command that has the words of a capability and answers by itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Local {
    pub(crate) words: &'static str,
    /// Why, as what follows "It needs no server:".
    pub(crate) because: &'static str,
}

/// The commands that look at the repository themselves, so that they work without a server.
pub(crate) const LOCAL: &[Local] = &[
    Local {
        words: "episodes",
        because: "it shows what the logs say, also the episodes of hooks, which no server has on its board",
    },
    Local { words: "sessions list", because: "records are files; it also writes those that wait for somebody to" },
    Local { words: "sessions show", because: "a record is a file; it is printed as it is" },
];

/// What a command line asks for.
pub(crate) enum Asked {
    /// One of the commands of `args.rs`.
    Own(Command),
    /// A capability of the registry.
    Registered(Registered),
}

/// A capability that was called by its words.
pub(crate) struct Registered {
    registry: Arc<Registry>,
    id: &'static str,
    matches: ArgMatches,
}

/// The whole command line: the commands of `args.rs`, then those of the registry.
pub(crate) fn command(registry: &Registry) -> clap::Command {
    let declared = registry.capabilities().iter().filter(|capability| !is_local(capability));
    let whole = declared.fold(Cli::command(), |whole, capability| match capability.descriptor().cli {
        Some(cli) => grown(whole, &cli.split(' ').collect::<Vec<_>>(), capability),
        None => whole,
    });
    whole.mut_subcommands(finished)
}

/// Reads a command line.
pub(crate) fn parse(registry: Registry, arguments: &[std::ffi::OsString]) -> Result<Asked, clap::Error> {
    let matches = command(&registry).try_get_matches_from(arguments)?;
    let (mut words, mut innermost) = (Vec::new(), &matches);
    while let Some((word, inner)) = innermost.subcommand() {
        words.push(word);
        innermost = inner;
    }
    let words = words.join(" ");
    let found = registry.capabilities().iter().find(|one| one.descriptor().cli == Some(&words) && !is_local(one));
    match found.map(|capability| capability.descriptor().id) {
        Some(id) => Ok(Asked::Registered(Registered { id, matches: innermost.clone(), registry: Arc::new(registry) })),
        None => Cli::from_arg_matches(&matches).map(|cli| Asked::Own(cli.command)),
    }
}

/// Calls what was asked for and prints its answer.
pub(crate) fn run(asked: &Registered) -> anyhow::Result<ExitCode> {
    let capability = asked.registry.capability(asked.id).expect("it was found in this registry");
    let arguments = argument::values(capability, &asked.matches)?;
    let answer = match capability.descriptor().reach {
        Reach::Declarations => here(capability, &asked.registry, &Value::Object(arguments.fields))?,
        Reach::Server | Reach::Repository => {
            call::Server::of_this_checkout()?.call(&call::Request::new(capability, &arguments))?
        }
    };
    told(capability, &answer, asked.matches.get_flag(JSON))?;
    Ok(ExitCode::SUCCESS)
}

/// The capability that tells how a server stands.
pub(crate) const STATUS: &str = "server.status";

/// How the server that was published stands, by its own word; nothing where it gives none within `patience`, or another
/// one answers there.
pub(crate) fn status(published: &Published, patience: Duration) -> Option<Value> {
    call::Server::told(published, patience).ok().map(|(_, answer)| answer)
}

/// Prints the answer of a capability of the catalogue.
pub(crate) fn print(id: &str, answer: &Value, json: bool) -> anyhow::Result<()> {
    let registry = majordomus_capability::catalogue();
    told(registry.capability(id).expect("it is in the catalogue"), answer, json)
}

fn told(capability: &Capability, answer: &Value, json: bool) -> anyhow::Result<()> {
    if json { output::json(answer) } else { output::print(&show::text(capability.output(), answer)) }
}

/// The flag that every command that reads has.
pub(crate) const JSON: &str = "json";

/// Answers in this process: what only reads declarations needs no server.
fn here(capability: &Capability, registry: &Arc<Registry>, arguments: &Value) -> anyhow::Result<Value> {
    let shared = Shared::new(registry.clone(), EpisodeBoard::new(), PeerBoard::new());
    let context = Context::without_peer(Arc::new(shared), None);
    match capability.call(&context, &arguments.to_string(), None) {
        Ok(answer) => Ok(serde_json::from_str(&answer)?),
        Err(refusal) => Err(output::refused(&refusal.message, refusal.hint.as_deref())),
    }
}

fn is_local(capability: &Capability) -> bool {
    LOCAL.iter().any(|local| capability.descriptor().cli == Some(local.words))
}

/// Adds a capability's command below `parent`, with the words in between that are not there yet.
fn grown(parent: clap::Command, words: &[&'static str], capability: &Capability) -> clap::Command {
    let [word, rest @ ..] = words else { return filled(parent, capability) };
    let is_there = parent.find_subcommand(word).is_some();
    let parent = if is_there { parent } else { parent.subcommand(clap::Command::new(*word)) };
    parent.mut_subcommands(|inner| if inner.get_name() == *word { grown(inner, rest, capability) } else { inner })
}

/// Completes a command below which there may be others.
fn finished(command: clap::Command) -> clap::Command {
    let command = command.mut_subcommands(finished);
    let titles: Vec<String> = command.get_subcommands().map(about).collect();
    if titles.is_empty() {
        return command;
    }
    if command.get_arguments().next().is_some() {
        // It does something by itself, and what it takes is not for what follows it.
        return command.args_conflicts_with_subcommands(true);
    }
    let told = command.get_about().cloned().unwrap_or_else(|| titles.join("; ").into());
    command.about(told).subcommand_required(true).arg_required_else_help(true)
}

/// What a command does, in a few words.
pub(crate) fn about(command: &clap::Command) -> String {
    command.get_about().map(ToString::to_string).unwrap_or_default()
}

/// The command of a capability: its texts and its arguments.
fn filled(command: clap::Command, capability: &Capability) -> clap::Command {
    let declared = capability.descriptor();
    let json = Arg::new(JSON).long(JSON).action(ArgAction::SetTrue).help("Print JSON instead of text");
    command
        .about(declared.title)
        .long_about(format!("{}.\n\n{}", declared.title, declared.description))
        .args(argument::all(capability))
        .arg(json)
}

#[cfg(test)]
mod once;
#[cfg(test)]
pub(crate) mod tests;
