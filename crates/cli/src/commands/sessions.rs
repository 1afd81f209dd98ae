//! `majordomus sessions list|show`: the published records.

use std::process::ExitCode;

use anyhow::bail;
use majordomus_records::listing::Summary;
use majordomus_records::text::visible;
use serde::Serialize;

use crate::args::Sessions;
use crate::output::{self, Hint};

#[derive(Serialize)]
struct Listed<'a> {
    sessions: Vec<View<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

#[derive(Serialize)]
struct View<'a> {
    session_id: &'a str,
    provider: &'a Option<String>,
    external_id: &'a Option<String>,
    client: &'a Option<String>,
    started_at: &'a Option<String>,
    closed_at: &'a Option<String>,
    last_activity_at: &'a Option<String>,
    outcome: &'a Option<String>,
    end_reason: &'a Option<String>,
    end_witness: &'a Option<String>,
    attachments: Option<u32>,
    branch: &'a Option<String>,
    path: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
}

pub(super) fn run(arguments: &Sessions) -> anyhow::Result<ExitCode> {
    match arguments {
        Sessions::List { limit, after, reading } => {
            let store = super::swept(&reading.silence)?;
            let page = store
                .records(after.as_deref(), (*limit).into())
                .hint("make the records readable, and let no link lead out of the repository")?;
            if reading.json {
                let sessions = page.records.iter().map(|record| view(record, None)).collect();
                output::json(&Listed { sessions, next: page.next })?;
            } else if page.records.is_empty() {
                output::print("no session has been recorded in this repository yet\n")?;
            } else {
                output::print(&output::table(&page.records.iter().map(cells).collect::<Vec<_>>()))?;
                if let Some(next) = page.next {
                    output::note(&format!("older ones: majordomus sessions list --after {next}"));
                }
            }
        }
        Sessions::Show { session_id, reading } => {
            let store = super::swept(&reading.silence)?;
            let found = store
                .record(session_id)
                .hint("make the record readable, and let no link lead out of the repository")?;
            let Some((summary, text)) = found else {
                let missing = || -> anyhow::Result<()> { bail!("there is no record of {}", visible(session_id)) };
                missing().hint("`majordomus sessions list` names those that there are")?;
                return Ok(ExitCode::SUCCESS);
            };
            if reading.json {
                output::json(&view(&summary, Some(&text)))?;
            } else {
                output::print(&text)?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn view<'a>(record: &'a Summary, text: Option<&'a str>) -> View<'a> {
    View {
        session_id: &record.session_id,
        provider: &record.provider,
        external_id: &record.external_id,
        client: &record.client,
        started_at: &record.started_at,
        closed_at: &record.closed_at,
        last_activity_at: &record.last_activity_at,
        outcome: &record.outcome,
        end_reason: &record.end_reason,
        end_witness: &record.end_witness,
        attachments: record.attachments,
        branch: &record.branch,
        path: &record.path,
        text,
    }
}

fn cells(record: &Summary) -> Vec<String> {
    let shown = |value: &Option<String>| value.as_deref().map_or_else(|| "?".into(), visible);
    vec![
        record.session_id.clone(),
        shown(&record.outcome),
        shown(&record.end_reason),
        format!("{}:{}", shown(&record.provider), shown(&record.external_id)),
        shown(&record.branch),
        record.path.clone(),
    ]
}
