//! `majordomus serve`: many clients over HTTP, none over stdio.

use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use anyhow::Context;
use majordomus_episodes_core::CloseReason;
use majordomus_mcp_server::exit_within;
use majordomus_mcp_server::http::{BindError, Bound, DEFAULT_PORT, Listen, Port};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::house::House;
use crate::args::Serve;
use crate::output::{self, Hint};

/// How long leaving may take when nothing is to be ended.
const PATIENCE: Duration = Duration::from_millis(1_800);

pub(super) fn run(arguments: &Serve) -> anyhow::Result<ExitCode> {
    let policy = super::policy(&arguments.silence)?;
    let checkout = super::here()?;
    let mut signals = Signals::new(wanted()).context("signals cannot be received")?;
    let bound = listen(arguments)?;
    let url = bound.url();
    let house = House::open(policy)?;
    house.adopt_all();
    house.watch_deadlines()?;
    house.serve(bound, super::allowed(&arguments.http)?)?;
    house.keep();
    let place = checkout.worktree.as_ref().unwrap_or(&checkout.git_dir);
    output::note(&format!("majordomus serves {} at {url} (for clients: {url}/mcp); Ctrl-C ends it", place.display()));
    if !house.is_found() {
        output::note("note: another process is the server of this checkout; commands go to that one while it runs");
    }
    // Ctrl-C is its operator's word that all is over; every other signal says no more than that this process ends.
    let told = signals.forever().next();
    // Ending many episodes takes its time; a second signal ends that, and a disk that hangs does not keep us for ever.
    let again = thread::Builder::new().name("signals".into()).spawn(move || {
        signals.forever().next();
        exit_within(Duration::ZERO, i32::from(output::FAILED));
    });
    if again.is_err() || told != Some(SIGINT) {
        exit_within(PATIENCE, i32::from(output::FAILED));
    }
    house.close_doors();
    if told == Some(SIGINT) {
        house.shared.board.close_all(CloseReason::Shutdown);
    }
    house.leave();
    Ok(ExitCode::SUCCESS)
}

/// The signals to end at; not one that whoever started this wants ignored, as `nohup` does.
fn wanted() -> Vec<i32> {
    let ignored = hangup_is_ignored();
    [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| *signal != SIGHUP || !ignored).collect()
}

/// Whether HUP was ignored when this process began, as far as that can be told.
fn hangup_is_ignored() -> bool {
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else { return false };
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask >> (SIGHUP - 1) & 1 == 1)
}

/// Listens; a port that nobody asked for by number may be another, and the line that tells the address says which.
fn listen(arguments: &Serve) -> anyhow::Result<Bound> {
    let addresses = arguments.host.addresses().to_vec();
    let port = arguments.port.map_or(Port::Preferably(DEFAULT_PORT), Port::Exactly);
    let bound = Bound::new(&Listen { addresses, port });
    let hint = match &bound {
        Err(BindError::InUse { .. }) => {
            "it may be another majordomus; choose another port with --port N, or --port 0 for any that is free"
        }
        _ => "--host takes a loopback address of this machine",
    };
    bound.hint(hint)
}
