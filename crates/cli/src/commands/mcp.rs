//! `majordomus mcp`: one client over stdio, and others over HTTP beside it.

use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use majordomus_mcp_server::http::{Bound, DEFAULT_PORT, Listen, Port};
use majordomus_mcp_server::{StdioOptions, exit_within, serve_stdio};

use super::house::{HEAD_START, House};
use crate::args::Mcp;
use crate::output;

/// How long leaving may take.
const PATIENCE: Duration = Duration::from_millis(1_800);

pub(super) fn run(arguments: &Mcp) -> anyhow::Result<ExitCode> {
    let policy = super::policy(&arguments.silence)?;
    let allowed = super::allowed(&arguments.http)?;
    let house = House::open(policy)?;
    house.keep();
    let judges = house.watch_deadlines().is_err();
    let (beside, asked) = (house.clone(), arguments.http_port);
    // The client over stdio waits for none of this.
    let http = thread::Builder::new().name("start".into()).spawn(move || {
        thread::sleep(HEAD_START);
        beside.adopt_all();
        if let Err(error) = listen(asked).and_then(|bound| beside.serve(bound, allowed)) {
            output::note(&format!("majordomus: not served over HTTP: {error:#}"));
        }
    });
    let mut options = StdioOptions::new(house.shared.clone());
    options.judges = judges;
    options.diagnostics = Box::new(output::note);
    serve_stdio(options)?;
    drop(http);
    // Its client waits for it to be gone, and kills what is not; a disk that hangs must not make it an orphan.
    exit_within(PATIENCE, i32::from(output::FAILED));
    house.leave();
    Ok(ExitCode::SUCCESS)
}

/// Listens on the port that was asked for, or else on a free one, and says so: several windows have one configuration,
/// and none of them is to lose its client because another was there first.
fn listen(asked: Option<u16>) -> anyhow::Result<Bound> {
    let wanted = asked.unwrap_or(DEFAULT_PORT);
    let bound = Bound::new(&Listen { addresses: Listen::LOOPBACK.to_vec(), port: Port::Preferably(wanted) })?;
    if wanted != 0 && bound.port() != wanted {
        output::note(&format!("majordomus: port {wanted} is in use; HTTP is served at {}", bound.url()));
    }
    Ok(bound)
}
