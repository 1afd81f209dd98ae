//! `majordomus serve ensure`: a server for this checkout, whoever started it.

use std::process::{ExitCode, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use majordomus_records::{Policy, Store};

use super::status::{PAUSE, Standing};
use crate::args::Answering;
use crate::detached::{self, Detached};
use crate::output::Hint;

/// How long a server may take until it answers.
const START: Duration = Duration::from_secs(5);

pub(super) fn run(answering: Answering) -> anyhow::Result<ExitCode> {
    let store = Store::open(crate::commands::here()?, Policy::default());
    let until = Instant::now() + START;
    let mut started: Option<Detached> = None;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let standing = Standing::of(&store, left);
        if standing.serves() || (started.is_none() && matches!(standing, Standing::Mute(_))) {
            return standing.tell(&store, answering);
        }
        if left.is_zero() {
            return late(started);
        }
        if let Some(server) = &mut started {
            match server.ended() {
                Some(status) if !status.success() => return failed(server, status, &store),
                // Another process was faster; where that one has gone too, the next round starts one again.
                Some(_) => started = None,
                None => {}
            }
        } else if matches!(standing, Standing::None) {
            started = Some(start(&store)?);
        }
        thread::sleep(PAUSE);
    }
}

fn start(store: &Store) -> anyhow::Result<Detached> {
    let started = detached::start(store, &["serve"], Stdio::null());
    started.hint("`majordomus doctor` tells what is not in place here")
}

fn failed(server: &Detached, status: ExitStatus, store: &Store) -> anyhow::Result<ExitCode> {
    let (reason, hint) = server.last_words(store);
    let reason = reason.unwrap_or_else(|| status.to_string());
    let hint = hint.unwrap_or_else(|| log_hint(server));
    Err(anyhow!("the server that was started has ended: {reason}")).hint(hint)
}

fn late(started: Option<Detached>) -> anyhow::Result<ExitCode> {
    let within = format!("within {} s", START.as_secs());
    match started {
        Some(server) => {
            let late = anyhow!("the server that was started, process {}, has not answered {within}", server.pid());
            Err(late).hint(log_hint(&server))
        }
        None => Err(anyhow!("the server of this checkout is about to end, and has not {within}")).hint("try again"),
    }
}

fn log_hint(server: &Detached) -> String {
    format!("what it says is in {}", server.log().display())
}
