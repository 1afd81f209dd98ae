//! `majordomus episodes`: what is open in this checkout, as the logs say.

use std::process::ExitCode;

use anyhow::Context;
use majordomus_records::clock::rfc3339;
use majordomus_records::store::Silence;
use majordomus_records::text::visible;
use serde::Serialize;

use crate::args::Reading;
use crate::output;

#[derive(Serialize)]
struct Listed {
    open: usize,
    detached: usize,
    episodes: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    session_id: String,
    provider: String,
    external_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    client: Option<String>,
    state: &'static str,
    opened_at: String,
    last_activity_seconds_ago: u64,
    attachments: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    waits_seconds: Option<u64>,
}

pub(super) fn run(reading: &Reading) -> anyhow::Result<ExitCode> {
    let store = super::swept(&reading.silence)?;
    let mut rows: Vec<Row> = store
        .open_episodes()
        .context("cannot list the open episodes")?
        .into_iter()
        .filter_map(|open| {
            let start = open.log.start.as_ref()?;
            let by_hooks = start.witness == majordomus_records::line::Witness::Hook;
            let (held, waits) = match open.silence {
                Silence::Held => (true, None),
                // An episode of hooks is open until they say otherwise; nobody was seen to leave.
                Silence::Waiting(left) => (by_hooks, Some(left.as_secs())),
                Silence::Over(_) => (false, Some(0)),
            };
            Some(Row {
                session_id: start.opened.session_id.clone(),
                provider: start.opened.provider.clone(),
                external_id: start.opened.external_id.clone(),
                client: open.log.client.clone(),
                state: if held { "open" } else { "detached" },
                opened_at: rfc3339(start.stamp.wall_ms),
                last_activity_seconds_ago: open.silent_for.as_secs(),
                attachments: open.log.attachments,
                waits_seconds: waits,
            })
        })
        .collect();
    rows.sort_by(|one, other| (&other.state, &one.session_id).cmp(&(&one.state, &other.session_id)));
    let open = rows.iter().filter(|row| row.state == "open").count();
    let listed = Listed { open, detached: rows.len() - open, episodes: rows };
    if reading.json {
        output::json(&listed)?;
    } else if listed.episodes.is_empty() {
        output::print("no episode is open in this checkout\n")?;
    } else {
        output::print(&output::table(&listed.episodes.iter().map(Row::cells).collect::<Vec<_>>()))?;
    }
    Ok(ExitCode::SUCCESS)
}

impl Row {
    fn cells(&self) -> Vec<String> {
        vec![
            self.session_id.clone(),
            self.state.into(),
            format!("{}:{}", self.provider, visible(&self.external_id)),
            format!("since {}", self.opened_at),
            format!("last seen {} s ago", self.last_activity_seconds_ago),
            format!("attached {}×", self.attachments),
        ]
    }
}
