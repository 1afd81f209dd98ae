//! `majordomus serve`: many clients over HTTP, none over stdio.

use std::process::ExitCode;

use anyhow::Context;
use majordomus_episodes_core::CloseReason;
use majordomus_mcp_server::http::{BindError, Bound, DEFAULT_PORT, Listen, Port};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::house::House;
use crate::args::Serve;
use crate::output::{self, Hint};

pub(super) fn run(arguments: &Serve) -> anyhow::Result<ExitCode> {
    let policy = super::policy(&arguments.silence)?;
    let checkout = super::here()?;
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).context("signals cannot be received")?;
    let bound = listen(arguments)?;
    let url = bound.url();
    let house = House::open(policy)?;
    house.watch_deadlines()?;
    house.serve(bound, super::allowed(&arguments.http)?)?;
    house.keep();
    let place = checkout.worktree.as_ref().unwrap_or(&checkout.git_dir);
    output::note(&format!("majordomus serves {} at {url} (for clients: {url}/mcp); Ctrl-C ends it", place.display()));
    // Ctrl-C is its operator's word that all is over; every other signal says no more than that this process ends.
    let told = signals.forever().next();
    house.close_doors();
    if told == Some(SIGINT) {
        house.shared.board.close_all(CloseReason::Shutdown);
    }
    house.leave();
    Ok(ExitCode::SUCCESS)
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
