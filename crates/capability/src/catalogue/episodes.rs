//! Attaching, detaching and listing episodes.

use std::time::Duration;

use majordomus_episodes_core::board::{AttachRequest, Attached, ConnectionEpisode, ConnectionEpisodeState};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::context::Context;
use crate::page;
use crate::refusal::Refusal;
use crate::views::{Episode, State};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AttachInput {
    /// The id that this conversation or thread durably has, the same after a restart: one line, kept verbatim.
    #[schemars(length(min = 1, max = 256))]
    external_id: String,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct AttachOutput {
    /// The episode that this connection now holds.
    episode: Episode,
    /// Whether the episode was there before.
    resumed: bool,
    /// Whether the repository durably has it; if not, `episode.repository` says why.
    recorded: bool,
    /// How long the episode waits for its client once a connection was seen to go.
    reattach_grace_seconds: u64,
    /// The connection that held the episode until now.
    #[serde(skip_serializing_if = "Option::is_none")]
    taken_over_from: Option<String>,
    /// How many other episodes are open here.
    others: u64,
    /// What to do next.
    next: String,
}

pub(super) fn attach(context: &Context, input: AttachInput) -> Result<AttachOutput, Refusal> {
    let attached = context.board.attach_with(AttachRequest {
        peer: &context.peer,
        external_id: &input.external_id,
        provider: &context.provider,
        client: context.client.as_deref(),
    })?;
    let others = context.board.list().iter().filter(|other| is_open(other) && !is(other, &attached.episode)).count();
    Ok(AttachOutput {
        next: next(&attached, others, context.grace),
        resumed: attached.resumed,
        recorded: attached.recorded,
        reattach_grace_seconds: context.grace.as_secs(),
        taken_over_from: attached.taken_over_from.map(|peer| peer.to_string()),
        others: others as u64,
        episode: attached.episode.into(),
    })
}

fn next(attached: &Attached, others: usize, grace: Duration) -> String {
    let first = if attached.recorded {
        "Go on working, and call majordomus_session_detach when the work is finished"
    } else {
        "Nothing is recorded in the repository (see episode.repository); go on working"
    };
    let time = match grace.as_secs() {
        seconds if seconds < 120 => format!("{seconds} seconds"),
        seconds => format!("{} minutes", seconds / 60),
    };
    let lost = format!("; if the connection is lost, attach again with this external_id within {time}");
    let left = if attached.left.is_some() { "; the episode held before waits, detached and not finished" } else { "" };
    let others = if others > 0 { "; majordomus_episodes shows who else is at work here" } else { "" };
    format!("{first}{lost}{left}{others}.")
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DetachInput {
    /// Which episode; without it, the one that this connection holds.
    #[schemars(length(min = 1, max = 256))]
    external_id: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct DetachOutput {
    /// The episode as it ended, without a state; with one, its end is not durable yet and is tried again.
    episode: Episode,
    /// Whether its end is durable in the repository; if not, `episode.repository` says why.
    recorded: bool,
}

pub(super) fn detach(context: &Context, input: DetachInput) -> Result<DetachOutput, Refusal> {
    let closed = context.board.finish(&context.peer, input.external_id.as_deref(), &context.provider)?;
    // An end that is not durable may leave the episode on the board, to be tried again; then it has a state still.
    let remains = (!closed.recorded).then(|| context.board.list().into_iter().find(|left| is(left, &closed.episode)));
    let episode = remains.flatten().map_or_else(|| Episode::from(closed.episode).ended(), Episode::from);
    Ok(DetachOutput { episode, recorded: closed.recorded })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListInput {
    /// Only episodes in this state.
    state: Option<State>,
    /// How many at most; 50 when absent.
    #[schemars(range(min = 1, max = 200))]
    limit: Option<u32>,
    /// `next_cursor` of the page before, as it came.
    cursor: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct ListOutput {
    /// How many episodes are open, on all pages.
    open: u64,
    /// How many are detached, on all pages.
    detached: u64,
    /// Open ones first, each group by when they were opened.
    episodes: Vec<Episode>,
    /// The episode that this connection holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    mine: Option<Episode>,
    /// Give it as `cursor` for the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

pub(super) fn list(context: &Context, input: ListInput) -> Result<ListOutput, Refusal> {
    let limit = page::limit(input.limit)?;
    let after = input.cursor.map(|cursor| page::place::<4>(LIST, &cursor)).transpose()?;
    let all = context.board.list();
    let open = all.iter().filter(|episode| is_open(episode)).count();
    let detached = all.len() - open;
    let wanted = |episode: &ConnectionEpisode| {
        input.state.is_none_or(|state| State::from(episode.state) == state)
            && after.as_ref().is_none_or(|after| place(episode) > after.each_ref().map(String::as_str))
    };
    let mut rest = all.into_iter().filter(wanted);
    let page: Vec<ConnectionEpisode> = rest.by_ref().take(limit).collect();
    let next_cursor = rest.next().and(page.last()).map(|last| page::cursor(LIST, &place(last)));
    Ok(ListOutput {
        open: open as u64,
        detached: detached as u64,
        mine: context.board.of_peer(&context.peer).map(Episode::from),
        episodes: page.into_iter().map(Episode::from).collect(),
        next_cursor,
    })
}

const LIST: &str = "episodes";

/// What the board's list is ordered by.
fn place(episode: &ConnectionEpisode) -> [&str; 4] {
    let group = match episode.state {
        ConnectionEpisodeState::Open => "0",
        ConnectionEpisodeState::Detached => "1",
    };
    [group, &episode.opened_at, &episode.provider, &episode.external_id]
}

fn is_open(episode: &ConnectionEpisode) -> bool {
    episode.state == ConnectionEpisodeState::Open
}

fn is(left: &ConnectionEpisode, right: &ConnectionEpisode) -> bool {
    (&left.provider, &left.external_id) == (&right.provider, &right.external_id)
}
