//! One module per command, and how a failure becomes an exit code.

mod capture;
mod connect;
mod demo;
mod doctor;
mod episodes;
mod generate;
mod mcp;
mod serve;
mod sessions;
mod standing;
mod throwaway;

use std::ffi::OsString;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::Parser;
use majordomus_capability::catalogue;
use majordomus_records::{Checkout, Policy, Store};

use crate::args::{AgentCli, AgentCommand, Command, Mcp, SilenceArgs};
use crate::output::{self, Hint};
use crate::registered::{self, Asked};
use crate::{input, variables};

/// Runs the command that `arguments` name, the program's own name first.
///
/// Exits 0, 1 where the user can fix it, 2 for a wrong command line, 3 where no server runs for this checkout and the
/// command needs one, 101 for a bug. No path under `capture` ends with 2:
/// a hook's exit code 2 can block a person's prompt.
#[must_use]
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    survive_a_file_limit();
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let first = |word| arguments.get(1).is_some_and(|argument| argument == word);
    let captures = first("capture");
    if first("mcp") && arguments.len() == 2 {
        // What clients start, and start often: nothing is there to be parsed, and a bridge stays as small as it begins.
        return mcp::run(&Mcp::default()).unwrap_or_else(|error| output::failure(&error));
    }
    // An agent does not wait for commands that it does not run, nor for the registry.
    let asked = if captures || first("mcp") {
        AgentCli::try_parse_from(&arguments).map(|cli| Asked::Own(Command::Agent(cli.command)))
    } else {
        registered::parse(catalogue(), &arguments)
    };
    let asked = match asked {
        Ok(asked) => asked,
        Err(error) => {
            let wrong = error.use_stderr();
            // A closed output is nothing to report on.
            let _ = error.print();
            if wrong && captures {
                // An agent that configured us wrongly shall not be harmed by that either.
                input::drain(std::io::stdin().as_fd());
            }
            return ExitCode::from(match (wrong, captures) {
                (false, _) => 0,
                (true, true) => output::FAILED,
                (true, false) => output::USAGE,
            });
        }
    };
    let done = match asked {
        Asked::Registered(call) => registered::run(&call),
        Asked::Own(command) => own(command),
    };
    done.unwrap_or_else(|error| output::failure(&error))
}

/// Runs one of the commands of `args.rs`.
fn own(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Agent(AgentCommand::Mcp(arguments)) => mcp::run(&arguments),
        Command::Agent(AgentCommand::Capture(arguments)) => capture::run(&arguments),
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Sessions(arguments) => sessions::run(&arguments),
        Command::Episodes(reading) => episodes::run(&reading),
        Command::Connect(arguments) => connect::run(&arguments),
        Command::Doctor(reading) => doctor::run(&reading),
        Command::Demo => demo::run(),
        Command::Generate(arguments) => generate::run(&arguments),
    }
}

/// Makes a write beyond the file size limit an error like any other: by default its signal ends the process, and with
/// it the agent's hook.
fn survive_a_file_limit() {
    // Without the handler the limit kills, as it does everybody else.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
}

/// How long finishing what others have left may delay a command.
const SWEEP: Duration = Duration::from_secs(2);

/// The checkout that the command runs in.
pub(crate) fn here() -> anyhow::Result<Checkout> {
    let folder = std::env::current_dir().context("cannot tell the current folder")?;
    Checkout::find(&folder).hint("run this inside a git repository; `git init` makes one")
}

/// The policy that arguments and environment ask for; a variable that holds no number is an error.
fn policy(silence: &SilenceArgs) -> anyhow::Result<Policy> {
    let (policy, bad) = silence.policy();
    match bad {
        None => Ok(policy),
        Some(bad) => {
            let hint = format!("unset {0}, or set it to a number such as 900", bad.name);
            Err(bad).hint(hint)
        }
    }
}

/// Who may call a server over HTTP besides programs of this machine.
fn allowed(http: &crate::args::HttpArgs) -> anyhow::Result<majordomus_mcp_server::http::Allowed> {
    let hosts = http.allowed_hosts().hint("give hosts such as tools.example.com, separated by commas")?;
    let origins = http.allowed_origins().hint("give origins such as https://tools.example.com, separated by commas")?;
    Ok(majordomus_mcp_server::http::Allowed { hosts, origins })
}

/// Opens the episodes of this checkout and finishes what nobody else is left to finish.
fn swept(silence: &SilenceArgs) -> anyhow::Result<Store> {
    let store = Store::open(here()?, policy(silence)?);
    let swept = store.sweep(SWEEP);
    for trouble in swept.troubles {
        output::note(&format!("warning: {trouble}"));
    }
    if !swept.waiting.is_empty() {
        let (count, first) = (swept.waiting.len(), &swept.waiting[0]);
        output::note(&format!("note: {count} ended sessions wait for their records, the first is {first}"));
    }
    Ok(store)
}

/// Looks up an environment variable that names a folder.
fn folder_variable(name: &str) -> Option<PathBuf> {
    variables::value(name).map(PathBuf::from)
}
