//! `majordomus serve`: many clients over HTTP, none over stdio; and what can be done about the server that runs.

mod ensure;
mod status;
mod stop;

use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use anyhow::Context;
use majordomus_capability::catalogue;
use majordomus_mcp_server::http::{BindError, Bound, DEFAULT_PORT, Listen, Port};
use majordomus_mcp_server::sharing::estate::Estate;
use majordomus_mcp_server::{House, HouseOptions, exit_within};
use majordomus_records::Store;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::args::{Serve, ServeCommand};
use crate::detached;
use crate::output::{self, Hint};

/// How long leaving may take when nothing is to be ended.
const PATIENCE: Duration = Duration::from_millis(1_800);

pub(super) fn run(arguments: &Serve) -> anyhow::Result<ExitCode> {
    match arguments.command {
        Some(ServeCommand::Status(answering)) => status::run(answering),
        Some(ServeCommand::Ensure(answering)) => ensure::run(answering),
        Some(ServeCommand::Stop(answering)) => stop::run(answering),
        None => here(arguments),
    }
}

/// What ends a server.
enum End {
    /// A signal: Ctrl-C is its operator's word that all is over, every other one says no more than that this process ends.
    Signal(i32),
    /// Its operator's word, which came over the socket; every episode has ended.
    Stopped,
    /// Nobody is left for whom it went on.
    Unused,
}

/// Serves in this process.
fn here(arguments: &Serve) -> anyhow::Result<ExitCode> {
    let own = arguments.detached || arguments.take_over;
    if own {
        detached::settle();
    }
    let estate = arguments.take_over.then(inherit).transpose()?;
    let policy = super::policy(&arguments.silence)?;
    let checkout = super::here()?;
    let store = Store::open(checkout.clone(), policy);
    let serving = if arguments.take_over { None } else { store.serve()? };
    if arguments.detached && !arguments.take_over && serving.is_none() {
        // Another process is, and nobody asked for one more.
        return Ok(ExitCode::SUCCESS);
    }
    let mut signals = Signals::new(wanted(own)).context("signals cannot be received")?;
    let (tell, told) = channel();
    let mut options = HouseOptions::new(catalogue(), Ok(checkout.clone()));
    options.policy = policy;
    options.allowed = super::allowed(&arguments.http)?;
    options.diagnostics = Arc::new(|line| output::note(&format!("majordomus: {line}")));
    let stopped = tell.clone();
    // Whoever waited for it may have gone.
    options.on_stopped = Box::new(move || drop(stopped.send(End::Stopped)));
    let house = House::open(options)?;
    house.adopt_all();
    house.watch_deadlines()?;
    let url = match estate {
        Some(estate) => {
            let url = house.take_over(estate)?;
            let (house, tell) = (house.clone(), tell.clone());
            thread::Builder::new().name("company".into()).spawn(move || {
                house.until_alone();
                drop(tell.send(End::Unused));
            })?;
            url
        }
        None => {
            let bound = listen(arguments)?;
            let url = bound.url();
            house.serve(bound, serving)?;
            url
        }
    };
    house.keep();
    let end = if own { "majordomus serve stop" } else { "Ctrl-C" };
    let place = checkout.worktree.as_ref().unwrap_or(&checkout.git_dir);
    output::note(&format!("majordomus serves {} at {url} (for clients: {url}/mcp); {end} ends it", place.display()));
    if !house.is_found() {
        output::note("note: another process is the server of this checkout; commands go to that one while it runs");
    }
    thread::Builder::new().name("signals".into()).spawn(move || {
        for signal in signals.forever() {
            if tell.send(End::Signal(signal)).is_err() {
                // Ending many episodes takes its time; a second signal ends that, and a disk that hangs does not keep
                // us for ever.
                exit_within(Duration::ZERO, i32::from(output::FAILED));
            }
        }
    })?;
    let end = told.recv().unwrap_or(End::Unused);
    drop(told);
    if matches!(end, End::Signal(SIGINT)) {
        house.end();
    } else {
        exit_within(PATIENCE, i32::from(output::FAILED));
    }
    house.leave();
    Ok(ExitCode::SUCCESS)
}

/// Takes over what a server has left that is about to be gone, and waits until it is: nobody else may be at its logs.
fn inherit() -> anyhow::Result<Estate> {
    let stdin = std::io::stdin().as_fd().try_clone_to_owned()?;
    let predecessor = UnixStream::from(stdin);
    let estate = Estate::take(&predecessor).context("nothing was left to take over")?;
    predecessor.set_read_timeout(Some(PATIENCE))?;
    // It says nothing more; what comes is its end.
    let _ = (&predecessor).read(&mut [0]);
    Ok(estate)
}

/// The signals to end at; not one that whoever started this wants ignored, as `nohup` does.
fn wanted(detached: bool) -> Vec<i32> {
    let ignored = detached || hangup_is_ignored();
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
