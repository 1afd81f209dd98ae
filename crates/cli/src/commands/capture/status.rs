//! `majordomus capture status`: what is recorded of each provider, and how that is known.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail};
use majordomus_capability::project::mcp::Tools;
use majordomus_capability::{Shared, catalogue};
use majordomus_episodes_core::board::{BoardOptions, EpisodeBoard};
use majordomus_episodes_core::peers::{PeerBoard, Transport};
use majordomus_mcp_server::Session;
use majordomus_providers::{Adapter, EpisodeSource, PromptSource, Provider};
use majordomus_records::text::visible;
use majordomus_records::{Checkout, RecordDriver, Store};
use serde::Serialize;
use serde_json::{Value, json};

use super::super::standing::{Scopes, Standing};
use super::super::throwaway::Throwaway;
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

/// Where the command runs.
struct Here {
    scopes: Scopes,
    store: Store,
}

pub(super) fn run(reading: &Reading) -> anyhow::Result<ExitCode> {
    // Outside a repository the table still says what could be recorded.
    let here = Checkout::find(&std::env::current_dir().unwrap_or_default()).ok().map(|checkout| Here {
        scopes: Scopes::of(&checkout),
        store: Store::open(checkout, reading.silence.policy().0),
    });
    let rows: Vec<Row> = majordomus_providers::all()
        .iter()
        .flat_map(|provider| [prompts(provider), sessions(provider, here.as_ref())])
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

fn sessions(provider: &'static Provider, here: Option<&Here>) -> Row {
    let (state, reason) = match (provider.episode, provider.adapter) {
        (EpisodeSource::None, _) => ("unsupported", provider.episode_evidence.to_owned()),
        (EpisodeSource::Connection, _) => match through_a_server() {
            Ok(()) => {
                ("verified", "an attach and a detach went through a server just now and left their record".into())
            }
            Err(error) => ("unadapted", format!("an attach and a detach through a server failed just now: {error:#}")),
        },
        (EpisodeSource::Hooks, None) => ("unadapted", unadapted(provider, here)),
        (EpisodeSource::Hooks, Some(adapter)) => hooks(provider, adapter, here),
    };
    Row { name: format!("{}:session", provider.id), capability: provider.episode.as_str(), state, reason }
}

/// What is recorded of a client whose hooks are not read: its connection, where that is declared.
fn unadapted(provider: &'static Provider, here: Option<&Here>) -> String {
    let mut reason = "its hooks could be recorded; this version cannot read them yet".to_owned();
    let servers = here.map(|here| here.scopes.wiring(provider).servers).unwrap_or_default();
    let declared = servers.iter().find(|file| !file.ours.is_empty());
    if let Some(file) = declared.or(servers.iter().find(|file| file.is_written)) {
        reason.push_str(&match (declared, file.trouble.as_deref()) {
            (Some(file), _) => format!("; its connection is, by the server in {}", file.path),
            (None, Some(why)) => format!("; {} cannot be read: {}", file.path, visible(why)),
            (None, None) => {
                let global = if file.path.starts_with("~/") { " --global" } else { "" };
                format!("; its connection is once it has the server: run majordomus connect {}{global}", provider.id)
            }
        });
    }
    reason
}

/// A settings file only promises; a hook that was seen firing is what counts, and both are said.
fn hooks(provider: &'static Provider, adapter: &'static Adapter, here: Option<&Here>) -> (&'static str, String) {
    let Some(Here { store, scopes }) = here else { return ("unconfigured", "not in a git repository".into()) };
    Standing::find(provider, adapter, scopes.wiring(provider).hooks, scopes, store).state()
}

/// Passes an attach and a detach through a real server over a repository made for that, and looks for the record.
fn through_a_server() -> anyhow::Result<()> {
    let throwaway = Throwaway::make()?;
    let driver = Arc::new(RecordDriver::new(throwaway.store()?)?);
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
    if !throwaway.repository().join(record).is_file() {
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
