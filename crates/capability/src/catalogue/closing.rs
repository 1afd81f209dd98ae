//! Ending an episode by the word of the person at the machine, whoever holds it.

use majordomus_episodes_core::board::{BoardError, Closed};
use majordomus_episodes_core::driver::CloseReason;
use majordomus_episodes_core::{EpisodeKey, Provider};
use majordomus_records::clock::rfc3339;
use majordomus_records::ending::EndedAs;
use majordomus_records::store::OpenEpisode;
use majordomus_records::{Store, StoreError, capture};
use schemars::JsonSchema;
use serde::Deserialize;

use super::episodes::DetachOutput;
use crate::context::Context;
use crate::refusal::{Code, Refusal};
use crate::views::{Episode, shown};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CloseInput {
    /// Which episode, as the list shows it.
    #[schemars(length(min = 1, max = 256), regex(pattern = super::ONE_LINE))]
    external_id: String,
    /// Who drew its boundary; needed only where several have one of that id.
    #[schemars(length(min = 1, max = 64), regex(pattern = "^[a-z0-9][a-z0-9-]*$"))]
    provider: Option<String>,
}

pub(super) fn close(context: &Context, input: CloseInput) -> Result<DetachOutput, Refusal> {
    let shared = &context.shared;
    let key = which(context, &input)?;
    match (shared.board.close_with(&key, CloseReason::Detach), &shared.records) {
        (Ok(Closed { episode, recorded }), _) => Ok(DetachOutput { episode: Episode::from(episode).ended(), recorded }),
        (Err(BoardError::NotFound { .. }), Some(records)) => in_logs(records, &key),
        (Err(error), _) => Err(error.into()),
    }
}

/// The key of the episode that is meant.
fn which(context: &Context, input: &CloseInput) -> Result<EpisodeKey, Refusal> {
    let named =
        |provider: &str| EpisodeKey::new(provider, &input.external_id).map_err(|error| BoardError::from(error).into());
    if let Some(provider) = &input.provider {
        return named(provider);
    }
    let ours = || named(&context.shared.provider);
    let Some(records) = &context.shared.records else { return ours() };
    match records.open_keys(&input.external_id).map_err(unwritable)?.as_slice() {
        [] => ours(),
        [only] => Ok(only.clone()),
        several => {
            let names: Vec<&str> = several.iter().map(|key| Provider::as_str(&key.provider)).collect();
            let refusal = format!("several episodes have that external_id, of the providers {}", names.join(", "));
            Err(Refusal::new(Code::Conflict, refusal).hint("say which by provider"))
        }
    }
}

/// Ends an episode that no connection to this server has: one that hooks began, or another process holds.
fn in_logs(records: &Store, key: &EpisodeKey) -> Result<DetachOutput, Refusal> {
    let not_found = || Refusal::from(BoardError::NotFound { key: key.clone() });
    let open = records.find(key).map_err(unwritable)?.ok_or_else(not_found)?;
    match records.close_by_operator(key).map_err(unwritable)? {
        EndedAs::Ended { session_id, outcome, record } => {
            // What does not fit into a moment is done by whoever comes next.
            let _ = capture::compose_at_once(records, &session_id);
            let repository = capture::ended_line(outcome, CloseReason::Detach.as_str(), &record);
            Ok(DetachOutput { episode: view(&open, key, repository), recorded: true })
        }
        EndedAs::NothingOpen { .. } | EndedAs::NotOver(_) | EndedAs::HeldElsewhere | EndedAs::GoesOn { .. } => {
            Err(not_found())
        }
    }
}

fn view(open: &OpenEpisode, key: &EpisodeKey, repository: String) -> Episode {
    Episode {
        external_id: shown(key.external_id.as_str().into()),
        provider: key.provider.as_str().into(),
        peer: None,
        opened_at: open.log.start.as_ref().map_or_else(String::new, |start| rfc3339(start.stamp.wall_ms)),
        last_activity_seconds_ago: open.silent_for.as_secs(),
        attachments: open.log.attachments,
        state: None,
        repository,
    }
}

fn unwritable(error: StoreError) -> Refusal {
    match error {
        StoreError::Id(error) => BoardError::from(error).into(),
        error @ (StoreError::Io { .. }
        | StoreError::Contended(_)
        | StoreError::Random
        | StoreError::Gone
        | StoreError::LeadsOut(_)) => {
            Refusal::new(Code::Unavailable, error.without_place()).hint("see `majordomus doctor`, and call again")
        }
    }
}

#[cfg(test)]
mod tests;
