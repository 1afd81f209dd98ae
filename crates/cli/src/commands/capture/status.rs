//! `majordomus capture status`: what is recorded of each provider, and how that is known.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail};
use majordomus_capability::project::mcp::Tools;
use majordomus_capability::{Shared, catalogue};
use majordomus_episodes_core::board::{BoardOptions, EpisodeBoard};
use majordomus_episodes_core::peers::{PeerBoard, Transport};
use majordomus_mcp_server::Session;
use majordomus_providers::{Configuration, EpisodeSource, PromptSource, Provider};
use majordomus_records::clock::{SystemClock, rfc3339};
use majordomus_records::disk::RealDisk;
use majordomus_records::git::RealGit;
use majordomus_records::state::State;
use majordomus_records::store::Parts;
use majordomus_records::{Checkout, Policy, RecordDriver, Store};
use serde::Serialize;
use serde_json::{Value, json};

use crate::args::Reading;
use crate::output;

/// One row: a provider's prompts, or its sessions.
#[derive(Serialize)]
struct Row {
    name: String,
    capability: &'static str,
    state: &'static str,
    reason: String,
}

pub(super) fn run(reading: &Reading) -> anyhow::Result<ExitCode> {
    // Outside a repository the table still says what could be recorded.
    let store = Checkout::find(&std::env::current_dir().unwrap_or_default())
        .ok()
        .map(|checkout| Store::open(checkout, reading.silence.policy().0));
    let rows: Vec<Row> = majordomus_providers::all()
        .iter()
        .flat_map(|provider| [prompts(provider), sessions(provider, store.as_ref())])
        .collect();
    if reading.json {
        output::json(&rows)?;
    } else {
        let cells = |row: &Row| vec![row.name.clone(), row.capability.into(), row.state.into(), row.reason.clone()];
        output::print(&output::table(&rows.iter().map(cells).collect::<Vec<_>>()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn prompts(provider: &Provider) -> Row {
    let (state, reason) = match provider.prompts {
        PromptSource::None => ("unsupported", provider.prompts_evidence.to_owned()),
        PromptSource::Hook => ("unadapted", "its hooks carry the prompt; this version does not record prompts".into()),
    };
    Row { name: provider.id.into(), capability: provider.prompts.as_str(), state, reason }
}

fn sessions(provider: &Provider, store: Option<&Store>) -> Row {
    let (state, reason) = match (provider.episode, provider.adapter) {
        (EpisodeSource::None, _) => ("unsupported", provider.episode_evidence.to_owned()),
        (EpisodeSource::Connection, _) => match through_a_server() {
            Ok(()) => {
                ("verified", "an attach and a detach went through a server just now and left their record".into())
            }
            Err(error) => ("unadapted", format!("an attach and a detach through a server failed just now: {error:#}")),
        },
        (EpisodeSource::Hooks, None) => {
            ("unadapted", "its hooks could be recorded; this version cannot read them yet".into())
        }
        (EpisodeSource::Hooks, Some(adapter)) => hooks(provider, adapter.configuration, store),
    };
    Row { name: format!("{}:session", provider.id), capability: provider.episode.as_str(), state, reason }
}

/// A settings file only promises; a hook that was seen firing is what counts, and both are said.
fn hooks(provider: &Provider, places: &[Configuration], store: Option<&Store>) -> (&'static str, String) {
    let Some(store) = store else { return ("unconfigured", "not in a git repository".into()) };
    let wired: Vec<&str> =
        places.iter().filter(|place| names_us(provider, place, store)).map(|place| place.path).collect();
    let fired = store.last_fired(provider.id).map(|stamp| rfc3339(stamp.wall_ms));
    match (wired.is_empty(), fired) {
        (false, Some(at)) => ("verified", format!("last seen firing at {at}; declared in {}", wired.join(", "))),
        (false, None) => ("wired", format!("declared in {}, never seen firing", wired.join(", "))),
        (true, Some(at)) => (
            "unconfigured",
            format!("last seen firing at {at}, but no settings file names it now; looked in {}", paths(places)),
        ),
        (true, None) => ("unconfigured", format!("no settings file names it; looked in {}", paths(places))),
    }
}

fn paths(places: &[Configuration]) -> String {
    places.iter().map(|place| place.path).collect::<Vec<_>>().join(", ")
}

/// Whether a settings file runs our command for this provider on at least one of the events.
fn names_us(provider: &Provider, place: &Configuration, store: &Store) -> bool {
    let path = match place.path.strip_prefix("~/") {
        Some(below) => super::super::folder_variable("HOME").map(|home| home.join(below)),
        None => store.checkout().worktree.as_ref().map(|root| root.join(place.path)),
    };
    let read = |path: PathBuf| serde_json::from_slice::<Value>(&std::fs::read(path).ok()?).ok();
    let Some(settings) = path.and_then(read) else { return false };
    let runs =
        |command: &str| command.contains("capture session") && command.contains(&format!("--provider {}", provider.id));
    place.events.iter().any(|event| holds_string(&settings[place.root][*event], &runs))
}

fn holds_string(value: &Value, wanted: &dyn Fn(&str) -> bool) -> bool {
    match value {
        Value::String(text) => wanted(text),
        Value::Array(values) => values.iter().any(|value| holds_string(value, wanted)),
        Value::Object(fields) => fields.values().any(|value| holds_string(value, wanted)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Passes an attach and a detach through a real server over a repository made for that, and looks for the record.
fn through_a_server() -> anyhow::Result<()> {
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let checkout = small_repository(folder.path())?;
    let state = State::new(&checkout.common_dir, &checkout.name, None);
    let parts =
        Parts { disk: Arc::new(RealDisk), clock: Arc::new(SystemClock::new()), git: Arc::new(RealGit::default()) };
    let driver = Arc::new(RecordDriver::new(Store::with(checkout, state, Policy::default(), parts))?);
    let board = EpisodeBoard::with(BoardOptions { driver: driver.clone(), ..BoardOptions::default() });
    let registry = Arc::new(catalogue());
    let shared = Arc::new(Shared::new(registry.clone(), board, PeerBoard::new()));
    let mut session = Session::new(shared, Arc::new(Tools::new(registry)), Transport::Stdio);
    let about = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "capture status", "version": "1" } });
    ask(&mut session, "initialize", &about)?;
    ask(
        &mut session,
        "tools/call",
        &json!({ "name": "majordomus_session_attach", "arguments": { "external_id": "capture-status" } }),
    )?;
    let answer = ask(&mut session, "tools/call", &json!({ "name": "majordomus_session_detach", "arguments": {} }))?;
    driver.compose_waiting(std::time::Duration::from_secs(5));
    let said = answer["structuredContent"]["episode"]["repository"].as_str().unwrap_or_default();
    let Some((_, record)) = said.split_once(" into ") else { bail!("{said}") };
    if !folder.path().join(record).is_file() {
        bail!("there is no {record}");
    }
    Ok(())
}

fn ask(session: &mut Session, method: &str, params: &Value) -> anyhow::Result<Value> {
    let mut out = Vec::new();
    session.handle(
        json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string().as_bytes(),
        &mut out,
    );
    let mut answer: Value = serde_json::from_slice(&out).context("the answer is not JSON")?;
    match answer["result"].take() {
        result if result.is_object() && result["isError"] != json!(true) => Ok(result),
        refused => bail!("{method} was refused: {refused}"),
    }
}

fn small_repository(folder: &Path) -> anyhow::Result<Checkout> {
    let git = folder.join(".git");
    for part in ["objects", "refs/heads"] {
        std::fs::create_dir_all(git.join(part)).context("cannot write into a temporary folder")?;
    }
    std::fs::write(git.join("HEAD"), "ref: refs/heads/main\n").context("cannot write into a temporary folder")?;
    Ok(Checkout::find(folder)?)
}
