//! `majordomus mcp`: one client over stdio, by the server of the checkout: this process, or one that is there already.

use std::io::IsTerminal;
use std::os::fd::OwnedFd;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use std::{env, io, thread};

use majordomus_capability::catalogue;
use majordomus_mcp_server::bridge::place::{self, Search};
use majordomus_mcp_server::bridge::run::is_leaving;
use majordomus_mcp_server::http::{Allowed, BindError, Bound, DEFAULT_PORT, Listen, Port};
use majordomus_mcp_server::sharing::preamble::{Hello, Wants};
use majordomus_mcp_server::{
    BridgeOptions, Ended, House, HouseOptions, StdioOptions, exit_within, on_standard_streams, run_bridge,
    serve_streams,
};
use majordomus_records::append::holder_id;
use majordomus_records::caller::Caller;
use majordomus_records::checkout::NotInGit;
use majordomus_records::{Checkout, Policy, Serving, Store, StoreError};

use crate::args::Mcp;
use crate::{detached, output, variables};

/// How long the rest lets the first client's first answer go ahead: on a small machine each thread that starts beside it
/// makes it later.
const HEAD_START: Duration = Duration::from_millis(10);
/// How long leaving may take.
const LEAVING: Duration = Duration::from_millis(1_800);

pub(super) fn run(arguments: &Mcp) -> anyhow::Result<ExitCode> {
    let plan = Plan {
        policy: super::policy(&arguments.silence)?,
        allowed: super::allowed(&arguments.http)?,
        port: arguments.http_port,
        standalone: arguments.standalone,
    };
    stand_apart();
    let checkout = Checkout::find(&env::current_dir().unwrap_or_default());
    let Some(shared) = checkout.as_ref().ok().filter(|_| !arguments.standalone) else {
        // Whoever wants nothing shared gets no port unless it asks for one.
        let http = !arguments.standalone || plan.port.is_some();
        return serve_here(plan, checkout, None, http);
    };
    let store = Store::open(shared.clone(), plan.policy);
    match store.try_serve() {
        Ok(Some(serving)) => serve_here(plan, checkout, Some(serving), true),
        Ok(None) => serve_there(plan, store),
        Err(error) => {
            note(&format!("the git directory cannot be locked, so nothing is shared: {error}"));
            serve_here(plan, checkout, None, true)
        }
    }
}

/// What the command line asks for.
struct Plan {
    policy: Policy,
    allowed: Allowed,
    port: Option<u16>,
    standalone: bool,
}

impl Plan {
    fn open(&self, checkout: Result<Checkout, NotInGit>) -> Result<House, StoreError> {
        let mut options = HouseOptions::new(catalogue(), checkout);
        options.policy = self.policy;
        options.allowed = self.allowed.clone();
        options.shares = !self.standalone;
        options.diagnostics = Arc::new(note);
        House::open(options)
    }

    /// The command line of a process that serves in this one's stead.
    fn successor(&self) -> Vec<String> {
        let mut line = vec!["serve".to_owned(), "--take-over".into()];
        let mut add = |name: &str, value: String| line.extend([name.to_owned(), value]);
        for (name, time) in [("--grace-seconds", self.policy.grace), ("--idle-seconds", self.policy.idle)] {
            time.iter().for_each(|time| add(name, time.as_secs().to_string()));
        }
        self.allowed.hosts.iter().for_each(|host| add("--allow-host", host.clone()));
        self.allowed.origins.iter().for_each(|origin| add("--allow-origin", origin.clone()));
        line
    }

    /// Listens on the port that was asked for, or else on a free one, and says so: several checkouts have one
    /// configuration, and none of them is to lose its clients because another was there first.
    fn listen(&self) -> anyhow::Result<Bound> {
        let wanted = self.port.unwrap_or(DEFAULT_PORT);
        let bound = self.bind()?;
        if wanted != 0 && bound.port() != wanted {
            note(&format!("port {wanted} is in use; HTTP is served at {}", bound.url()));
        }
        Ok(bound)
    }

    fn bind(&self) -> Result<Bound, BindError> {
        let port = Port::Preferably(self.port.unwrap_or(DEFAULT_PORT));
        Bound::new(&Listen { addresses: Listen::LOOPBACK.to_vec(), port })
    }
}

/// Leaves the process group of whoever started this: one terminal's Ctrl-C is for its own client, and not for those of
/// others who are served here. A person at a terminal keeps the group, or could not be read from.
fn stand_apart() {
    if !io::stdin().is_terminal() {
        // Whoever leads its session stands apart already.
        let _ = rustix::process::setpgid(None, None);
    }
}

/// Serves the client itself, and with the right to it everybody else of this checkout.
fn serve_here(
    plan: Plan,
    checkout: Result<Checkout, NotInGit>,
    serving: Option<Serving>,
    http: bool,
) -> anyhow::Result<ExitCode> {
    let house = plan.open(checkout)?;
    let mut options = StdioOptions::new(house.shared().clone());
    options.diagnostics = Box::new(note);
    options.caller = Some(Caller::of_this_process(variables::text));
    let (beside, plan) = (house.clone(), Arc::new(plan));
    let listens = plan.clone();
    // The client over stdio waits for none of this: its first answer goes ahead of every other thread.
    let others = thread::Builder::new().name("start".into()).spawn(move || {
        thread::sleep(HEAD_START);
        if let Err(error) = beside.watch_deadlines() {
            note(&format!("nothing ends for silence while this process lives: {error}"));
        }
        beside.keep();
        beside.adopt_all();
        if http && let Err(error) = listens.listen().and_then(|bound| Ok(beside.serve(bound, serving)?)) {
            note(&format!("not served over HTTP: {error:#}"));
        }
    });
    // Without another thread the one that serves does that too.
    options.judges = others.is_err();
    let patience = options.limits.patience;
    on_standard_streams(patience, |streams| serve_streams(options, streams))?;
    depart(&house, &plan);
    Ok(ExitCode::SUCCESS)
}

/// The client has gone. It waits for this process to be gone too, and kills what is not; a disk that hangs must not make
/// it an orphan. So whoever is served here besides is served by another process: a bridge becomes the server by itself,
/// and for those who only call over HTTP one is started.
fn depart(house: &House, plan: &Plan) {
    exit_within(LEAVING, i32::from(output::FAILED));
    match &house.shared().records {
        Some(store) if house.is_found() && house.has_callers() => house.hand_over(|left| {
            let started = detached::start(store, &plan.successor(), OwnedFd::from(left).into());
            started.map(drop).map_err(|error| io::Error::other(format!("{error:#}")))
        }),
        _ => house.leave(),
    }
}

/// Hands the client's messages to the server of this checkout, and serves in its stead once it is gone.
fn serve_there(plan: Plan, store: Store) -> anyhow::Result<ExitCode> {
    let plan = Arc::new(plan);
    // Found once: the folder may be gone by the time that it is this process's turn.
    let (opens, checkout) = (plan.clone(), store.checkout().clone());
    let mut hello = Hello::new(Wants::Bridge, store.checkout().id());
    hello.connection = Some(holder_id()?);
    hello.caller = Some(Caller::of_this_process(variables::text));
    let open = move |serving: Option<Serving>| {
        let house = opens.open(Ok(checkout.clone())).map_err(io::Error::other)?;
        house.watch_deadlines()?;
        if let Some(serving) = serving {
            house.adopt_all();
            // That this process is the server now is said already, and `serve status` tells where.
            let stands = opens.bind().map_err(io::Error::other).and_then(|bound| house.serve(bound, Some(serving)));
            if let Err(error) = stands {
                note(&format!("only this client is served: {error}"));
            }
        }
        house.keep();
        Ok(house)
    };
    let mut options = BridgeOptions::new(store, hello, Box::new(open));
    options.diagnostics = Arc::new(note);
    let (ended, house) = on_standard_streams(options.limits.patience, |streams| {
        let given_up = || is_leaving(&streams);
        let place = place::find(&options.store, &options.hello, Search { given_up: &given_up, ..Search::default() });
        run_bridge(options, place, streams)
    })?;
    if let Some(house) = house {
        depart(&house, &plan);
    }
    Ok(if ended == Ended::Unserved { ExitCode::from(output::FAILED) } else { ExitCode::SUCCESS })
}

fn note(line: &str) {
    output::note(&format!("majordomus: {line}"));
}
