//! What the command line may say, besides the commands that the registry declares.

mod http;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use majordomus_providers::EventKind;
use majordomus_records::Policy;

pub(crate) use http::{HttpArgs, Listen};

use crate::variables::{self, GRACE_SECONDS, IDLE_SECONDS};

/// Keeps a truthful record of every sitting of an AI coding agent, in the repository it worked in.
#[derive(Debug, Parser)]
#[command(name = "majordomus", version, arg_required_else_help = true, disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

// The same command line as far as it begins with a command of agents.
/// Keeps a truthful record of every sitting of an AI coding agent, in the repository it worked in.
#[derive(Debug, Parser)]
#[command(name = "majordomus", version, arg_required_else_help = true, disable_help_subcommand = true)]
pub(crate) struct AgentCli {
    #[command(subcommand)]
    pub(crate) command: AgentCommand,
}

/// What agents run and wait for.
#[derive(Debug, Subcommand)]
pub(crate) enum AgentCommand {
    /// Serve one client over stdio; its connection draws the boundary of its episode.
    Mcp(Mcp),
    /// Record what a provider's hooks report, and show what is recorded how.
    #[command(subcommand)]
    Capture(Capture),
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    #[command(flatten)]
    Agent(AgentCommand),
    /// Serve this checkout over HTTP, until it is stopped; or see to the server that runs for it.
    Serve(Serve),
    /// Read the session records of this repository.
    #[command(subcommand)]
    Sessions(Sessions),
    /// List the episodes that are open in this checkout.
    Episodes(Reading),
    /// Declare the hooks and the MCP server in the settings of clients, or take exactly that out again.
    Connect(Connect),
    /// Check that everything needed to record is in place here.
    Doctor(Reading),
    /// Show the whole lifecycle with real processes in a throwaway repository.
    Demo,
    /// Write the reference pages, the OpenAPI document, the manual pages and the completions.
    Generate(Generate),
}

#[derive(Debug, Default, Args)]
pub(crate) struct Mcp {
    /// The port at which the server of this checkout also answers over HTTP, beside stdio; where it is taken, a free one
    /// [default: 8741].
    #[arg(long, value_name = "N")]
    pub(crate) http_port: Option<u16>,
    /// Serve this client by itself: share no server with other clients of this checkout, and answer over HTTP only
    /// where --http-port is given.
    #[arg(long)]
    pub(crate) standalone: bool,
    #[command(flatten)]
    pub(crate) http: HttpArgs,
    #[command(flatten)]
    pub(crate) silence: SilenceArgs,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Serve {
    #[command(subcommand)]
    pub(crate) command: Option<ServeCommand>,
    /// Run in a session of its own, and end where another process is the server of this checkout already.
    #[arg(long, hide = true)]
    pub(crate) detached: bool,
    /// Go on where the server has left that started this process, until nobody is left whom it served.
    #[arg(long, hide = true)]
    pub(crate) take_over: bool,
    /// The loopback address to answer at, or `localhost` for both [default: both].
    #[arg(long, value_name = "ADDRESS", default_value = "localhost", hide_default_value = true)]
    pub(crate) host: Listen,
    /// The port to answer at; one that is taken is an error, and 0 is any free one [default: 8741, or a free one where
    /// that is taken].
    #[arg(long, value_name = "N")]
    pub(crate) port: Option<u16>,
    #[command(flatten)]
    pub(crate) http: HttpArgs,
    #[command(flatten)]
    pub(crate) silence: SilenceArgs,
}

/// What can be done about the server of this checkout, whoever started it.
#[derive(Debug, Subcommand)]
pub(crate) enum ServeCommand {
    /// Tell how the server of this checkout stands.
    Status(Answering),
    /// Start a server for this checkout in the background, unless one answers already, and tell how it stands.
    Ensure(Answering),
    /// End the server of this checkout, and all episodes of its connections with it.
    Stop(Answering),
}

/// How a command answers.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Answering {
    /// Print JSON instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Generate {
    /// Write nothing; fail where a file is stale, missing or left over.
    #[arg(long)]
    pub(crate) check: bool,
    /// The folder to write to [default: docs/reference below the current folder, which has to be there].
    #[arg(long, value_name = "PATH")]
    pub(crate) dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Connect {
    /// Which clients [default: those that are found here; with --remove, those that are connected].
    #[arg(value_name = "CLIENT", value_parser = client_ids())]
    pub(crate) clients: Vec<String>,
    /// Change the settings of the person, for all projects, instead of this project's.
    #[arg(long)]
    pub(crate) global: bool,
    /// Show what would change, and write nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Write nothing; tell what is there, and fail where something is missing or stale.
    #[arg(long, conflicts_with_all = ["dry_run", "remove"])]
    pub(crate) check: bool,
    /// Take out what was put in, and nothing else.
    #[arg(long)]
    pub(crate) remove: bool,
    /// Print what --check finds as JSON.
    #[arg(long, requires = "check")]
    pub(crate) json: bool,
}

/// Every client that is declared: one that cannot be connected is told why.
fn client_ids() -> clap::builder::PossibleValuesParser {
    clap::builder::PossibleValuesParser::new(majordomus_providers::all().iter().map(|provider| provider.id))
}

#[derive(Debug, Subcommand)]
pub(crate) enum Capture {
    /// Record one event; the payload is one JSON object on standard input. What a provider's hook runs.
    Session(CaptureSession),
    /// Show for each provider what is recorded, and whether that has been seen to work.
    Status(Reading),
}

#[derive(Debug, Args)]
pub(crate) struct CaptureSession {
    /// Whose event it is.
    #[arg(long, value_name = "ID")]
    pub(crate) provider: String,
    /// Which event.
    #[arg(long)]
    pub(crate) event: EventArg,
    #[command(flatten)]
    pub(crate) silence: SilenceArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum EventArg {
    Start,
    End,
    Compact,
    Activity,
}

impl From<EventArg> for EventKind {
    fn from(event: EventArg) -> Self {
        match event {
            EventArg::Start => Self::Start,
            EventArg::End => Self::End,
            EventArg::Compact => Self::Compact,
            EventArg::Activity => Self::Activity,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Sessions {
    /// List the records, newest first.
    List {
        /// How many to show.
        #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1000))]
        limit: u16,
        /// Show those that began before this session.
        #[arg(long, value_name = "SESSION_ID")]
        after: Option<String>,
        #[command(flatten)]
        reading: Reading,
    },
    /// Print one record.
    Show {
        /// Its id, for example s-20260102030405-0a1b2c3d.
        session_id: String,
        #[command(flatten)]
        reading: Reading,
    },
}

/// What every command that reads can be told.
#[derive(Debug, Args)]
pub(crate) struct Reading {
    /// Print JSON instead of text.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) silence: SilenceArgs,
}

/// How long silence may last.
#[derive(Debug, Default, Args)]
pub(crate) struct SilenceArgs {
    /// How long an episode waits for its client after the connection was lost [default: 900; or MAJORDOMUS_GRACE_SECONDS].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    grace_seconds: Option<u32>,
    /// How long an episode of hooks waits for their next event [default: what the provider declares; or MAJORDOMUS_IDLE_SECONDS].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    idle_seconds: Option<u32>,
}

/// Says that an environment variable holds no number of seconds.
#[derive(Debug, thiserror::Error)]
#[error("{name} is {value:?}, not a whole number of seconds from 1")]
pub(crate) struct BadVariable {
    pub(crate) name: &'static str,
    value: OsString,
}

impl SilenceArgs {
    /// Joins arguments, environment and defaults, in this order. Also tells what in the environment was no number;
    /// what it stands for keeps its default.
    pub(crate) fn policy(&self) -> (Policy, Option<BadVariable>) {
        let mut policy = Policy::default();
        let mut bad = None;
        let mut seconds = |argument: Option<u32>, name| {
            argument.or_else(|| {
                variable(name).unwrap_or_else(|error| {
                    bad = Some(error);
                    None
                })
            })
        };
        if let Some(grace) = seconds(self.grace_seconds, GRACE_SECONDS) {
            policy.grace = Some(Duration::from_secs(grace.into()));
        }
        policy.idle = seconds(self.idle_seconds, IDLE_SECONDS).map(|idle| Duration::from_secs(idle.into()));
        (policy, bad)
    }
}

fn variable(name: &'static str) -> Result<Option<u32>, BadVariable> {
    let Some(value) = variables::value(name) else { return Ok(None) };
    match value.to_str().and_then(|text| text.parse().ok()).filter(|seconds| *seconds >= 1) {
        Some(seconds) => Ok(Some(seconds)),
        None => Err(BadVariable { name, value }),
    }
}

#[cfg(test)]
mod tests;
