//! `majordomus serve status`: how the server of this checkout stands, also where there is none or it does not answer.

use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use majordomus_records::{Policy, Published, Store};
use serde::Serialize;
use serde_json::Value;

use crate::args::Answering;
use crate::output;
use crate::registered;

/// How long a server may take to answer before it counts as mute.
pub(super) const MUTE: Duration = Duration::from_secs(2);
/// How long between two looks.
pub(super) const PAUSE: Duration = Duration::from_millis(20);

/// How the server of a checkout stands, as others see it.
#[derive(Debug)]
pub(super) enum Standing {
    /// It answers, with this.
    Answering(Value),
    /// A process is the server and does not answer; what one published may be an earlier one's.
    Mute(Option<Published>),
    /// No process is the server.
    None,
}

/// What is told of a server that does not answer.
#[derive(Serialize)]
struct Told {
    standing: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
}

pub(super) fn run(answering: Answering) -> anyhow::Result<ExitCode> {
    let store = Store::open(crate::commands::here()?, Policy::default());
    Standing::of(&store, MUTE).tell(&store, answering)
}

impl Standing {
    /// Asks for at most `patience`: a server that starts is there before it answers, and one that ends a little longer.
    pub(super) fn of(store: &Store, patience: Duration) -> Self {
        let until = Instant::now() + patience;
        loop {
            // The lock says whether there is a server; a process's number, which may be another's by now, says nothing.
            if !store.is_served() {
                return Self::None;
            }
            let published = store.published();
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Self::Mute(published);
            }
            if let Some(answer) = published.and_then(|published| registered::status(&published, left)) {
                return Self::Answering(answer);
            }
            thread::sleep(PAUSE.min(left));
        }
    }

    /// Whether it answers and is not about to end.
    pub(super) fn serves(&self) -> bool {
        matches!(self, Self::Answering(answer) if answer["standing"] == "serving")
    }

    /// Prints it as `server status` does; without an answer that is a failure.
    pub(super) fn tell(self, store: &Store, answering: Answering) -> anyhow::Result<ExitCode> {
        let (standing, url) = match self {
            Self::Answering(answer) => {
                registered::print(registered::STATUS, &answer, answering.json)?;
                return Ok(ExitCode::SUCCESS);
            }
            Self::Mute(published) => ("mute", published.map(|published| published.url)),
            Self::None => ("none", None),
        };
        if answering.json {
            output::json(&Told { standing, url })?;
            return Ok(ExitCode::from(output::NO_SERVER));
        }
        Err(match standing {
            "mute" => output::no_server(mute(), &mute_hint(store)),
            _ => output::no_server(registered::NoServer::None, registered::START_ONE),
        })
    }
}

/// Says that there is a server which does not answer.
pub(super) fn mute() -> anyhow::Error {
    anyhow::anyhow!("the server of this checkout does not answer")
}

/// What to do about a server that does not answer. Who holds the lock is for the system to say.
pub(super) fn mute_hint(store: &Store) -> String {
    if let Some(version) = store.other_version() {
        return format!("majordomus {version} serves this checkout; ask it with a program of that version");
    }
    let folder = store.checkout().git_dir.display().to_string().replace('\'', r"'\''");
    format!("it is stopped or stuck: `lsof '{folder}'` tells its process; continue that with `kill -CONT`, or end it")
}
