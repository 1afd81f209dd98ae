//! Attaching, detaching and listing episodes.

use std::time::Duration;

use majordomus_episodes_core::EpisodeKey;
use majordomus_episodes_core::board::{AttachRequest, Attached, Closed, ConnectionEpisode, ConnectionEpisodeState};
use majordomus_episodes_core::peers::{Peer, Transport};
use majordomus_records::caller::is_drawn_by_hooks;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::arguments;
use crate::context::{Context, Shared};
use crate::handles::{self, Handles, Known};
use crate::page;
use crate::refusal::{Code, Refusal};
use crate::views::{Episode, State, shown};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AttachInput {
    /// The id that this conversation or thread durably has, the same after a restart: one line, kept verbatim.
    #[schemars(length(min = 1, max = 256), regex(pattern = super::ONE_LINE))]
    external_id: String,
    /// What an earlier attach gave to a caller without a connection; leave it out otherwise.
    #[schemars(regex(pattern = handles::PATTERN))]
    episode_handle: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct AttachOutput {
    /// The episode that this connection now holds.
    episode: Episode,
    /// Whether the episode was there before.
    resumed: bool,
    /// Whether the repository durably has it; if not, `episode.repository` says why.
    recorded: bool,
    /// Which repository its record goes into: the name of its folder, and of a linked worktree; absent outside one.
    #[serde(skip_serializing_if = "Option::is_none")]
    records_into: Option<String>,
    /// How long the episode waits for its client once a connection was seen to go.
    reattach_grace_seconds: u64,
    /// Only for a caller without a connection: give it with later calls, and keep it to yourself.
    #[serde(skip_serializing_if = "Option::is_none")]
    episode_handle: Option<String>,
    /// The connection that held the episode until now.
    #[serde(skip_serializing_if = "Option::is_none")]
    taken_over_from: Option<String>,
    /// How many other episodes are open here.
    others: u64,
    /// What to do next.
    next: String,
}

pub(super) fn attach(context: &Context, input: AttachInput) -> Result<AttachOutput, Refusal> {
    let key = context.episode_key(&input.external_id)?;
    let (attached, episode_handle) = match (context.caller(input.episode_handle.as_deref())?, &context.peer) {
        (Some(known), _) => again(context, &known, &input)?,
        (None, Some(peer)) => {
            let request = AttachRequest { carrier: context.carrier.as_deref(), ..request(context, peer, &key, None) };
            let attached = context.shared.board.attach_with(request)?;
            // What an earlier server handed out stood for whoever was here before.
            context.shared.handles.supersede(&key);
            (attached, None)
        }
        (None, None) => by_handle(context, &key)?,
    };
    let all = context.shared.board.list();
    let others = all.iter().filter(|other| is_open(other) && !is(other, &attached.episode)).count();
    Ok(AttachOutput {
        next: next(&attached, others, context.shared.grace, episode_handle.is_some()),
        resumed: attached.resumed,
        recorded: attached.recorded,
        records_into: context.shared.records.as_ref().map(|records| shown(records.checkout().title())),
        reattach_grace_seconds: context.shared.grace.as_secs(),
        episode_handle,
        taken_over_from: attached.taken_over_from.map(|peer| peer.to_string()),
        others: others as u64,
        episode: attached.episode.into(),
    })
}

/// Attaches for a caller whose handle says that it holds the episode: that changes nothing more.
fn again(context: &Context, known: &Known, input: &AttachInput) -> Result<(Attached, Option<String>), Refusal> {
    if known.key().external_id.as_str() != input.external_id {
        let refusal = Refusal::new(Code::InvalidInput, "episode_handle belongs to another external_id");
        return Err(refusal.hint("leave episode_handle out to attach under another external_id"));
    }
    if !known.holds {
        return Err(handles::ended());
    }
    let attached = context.shared.board.attach_with(request(context, known.peer(), known.key(), None))?;
    let token = input.episode_handle.clone().or_else(|| context.handle.as_deref().map(str::to_owned));
    Ok((attached, token))
}

/// Attaches for a caller without a connection, for whom the handle that it is given is the connection.
fn by_handle(context: &Context, key: &EpisodeKey) -> Result<(Attached, Option<String>), Refusal> {
    let Shared { board, peers, handles, .. } = &*context.shared;
    let minted = Handles::mint()?;
    let (seat, is_new) = handles.seat_for(key, board, peers);
    if let (true, Some(client)) = (is_new, &context.client) {
        peers.identify(seat.peer(), client.to_string());
    }
    // Where this is refused, the seat goes with the last call that uses it, unless it has an earlier handle.
    let attached = board.attach_with(request(context, seat.peer(), key, Some(&minted.hash)))?;
    if !attached.resumed {
        // What an earlier server handed out was for the episode before.
        handles.supersede(key);
    }
    handles.bind(minted.hash, &seat);
    context.heard(&seat);
    Ok((attached, Some(minted.token)))
}

fn next(attached: &Attached, others: usize, grace: Duration, by_handle: bool) -> String {
    let first = if attached.recorded {
        "Go on working, and call majordomus_session_detach when the work is finished"
    } else {
        "Nothing is recorded in the repository (see episode.repository); go on working"
    };
    let time = match grace.as_secs() {
        seconds if seconds < 120 => format!("{seconds} seconds"),
        seconds => format!("{} minutes", seconds / 60),
    };
    let lost = if by_handle {
        "; give episode_handle with every call, and attach again with this external_id if you lose it".into()
    } else {
        format!("; if the connection is lost, attach again with this external_id within {time}")
    };
    let left = if attached.left.is_some() { "; the episode held before waits, detached and not finished" } else { "" };
    let others = if others > 0 { "; majordomus_episodes shows who else is at work here" } else { "" };
    format!("{first}{lost}{left}{others}.")
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DetachInput {
    /// Which episode; without it, the one that the caller holds.
    #[schemars(length(min = 1, max = 256), regex(pattern = super::ONE_LINE))]
    external_id: Option<String>,
    /// What attach gave to a caller without a connection; leave it out otherwise.
    #[schemars(regex(pattern = handles::PATTERN))]
    episode_handle: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct DetachOutput {
    /// The episode as it ended, without a state; with one, its end is not durable yet and is tried again.
    pub(super) episode: Episode,
    /// Whether its end is durable in the repository; if not, `episode.repository` says why.
    pub(super) recorded: bool,
}

pub(super) fn detach(context: &Context, input: DetachInput) -> Result<DetachOutput, Refusal> {
    let Shared { board, peers, provider, .. } = &*context.shared;
    let external_id = input.external_id.as_deref();
    let known = context.caller(input.episode_handle.as_deref())?;
    let calls = known.as_ref().map(Known::peer).or(context.peer.as_ref());
    if let Some(left) = calls.and_then(|peer| leave_to_hooks(context, peer)) {
        return Ok(left);
    }
    let closed = match (known, &context.peer) {
        // Also where it holds nothing any more: asked again, it is given the first answer again.
        (Some(known), _) => {
            let its = external_id.is_none_or(|id| id == known.key().external_id.as_str());
            let provider = if its { known.key().provider.as_str() } else { provider };
            board.finish(known.peer(), external_id, provider)
        }
        (None, Some(peer)) => board.finish(peer, external_id, provider),
        (None, None) => {
            // Whoever holds nothing may still end what nobody holds.
            let nobody = peers.attach(Transport::Handle);
            let closed = board.finish(&nobody, external_id, provider);
            board.detach(&nobody);
            peers.detach(&nobody);
            closed
        }
    }?;
    // An end that is not durable may leave the episode on the board, to be tried again; then it has a state still.
    let remains = (!closed.recorded).then(|| board.list().into_iter().find(|left| is(left, &closed.episode)));
    if closed.episode.repository == LET_GO {
        return Ok(DetachOutput { episode: closed.episode.into(), recorded: true });
    }
    let episode = remains.flatten().map_or_else(|| Episode::from(closed.episode).ended(), Episode::from);
    Ok(DetachOutput { episode, recorded: closed.recorded })
}

/// What is reported of an episode that only its client's hooks end.
const LET_GO: &str = "the connection let go; the client's own hooks end this episode";

/// Lets an episode go that the client's hooks drew: they, its idle time or a person end it, and a connection only comes and
/// goes. `None` where the caller holds none of those.
fn leave_to_hooks(context: &Context, peer: &Peer) -> Option<DetachOutput> {
    let board = &context.shared.board;
    let mut episode = board.of_peer(peer)?;
    is_drawn_by_hooks(&episode.provider).then(|| {
        board.detach(peer);
        (episode.state, episode.peer) = (ConnectionEpisodeState::Detached, None);
        episode.repository = LET_GO.into();
        // Asked again, it is given the first answer again.
        board.recall(peer, Closed { episode: episode.clone(), recorded: true });
        DetachOutput { episode: episode.into(), recorded: true }
    })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListInput {
    /// Only episodes in this state.
    #[serde(default, deserialize_with = "arguments::word")]
    state: Option<State>,
    /// How many at most; 50 when absent.
    #[serde(default, deserialize_with = "arguments::whole")]
    #[schemars(range(min = 1, max = 200))]
    limit: Option<u32>,
    /// `next_cursor` of the page before, as it came.
    #[schemars(regex(pattern = CURSOR))]
    cursor: Option<String>,
    /// What attach gave to a caller without a connection, to be shown its own episode; leave it out otherwise.
    #[schemars(regex(pattern = handles::PATTERN))]
    episode_handle: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct ListOutput {
    /// How many episodes are open, on all pages.
    open: u64,
    /// How many are detached, on all pages.
    detached: u64,
    /// Open ones first, each group by when they were opened.
    episodes: Vec<Episode>,
    /// The episode that the caller holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    mine: Option<Episode>,
    /// Give it as `cursor` for the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

pub(super) fn list(context: &Context, input: ListInput) -> Result<ListOutput, Refusal> {
    let peer = context.calling_peer(input.episode_handle.as_deref())?;
    let limit = page::limit(input.limit)?;
    let after = input.cursor.map(|cursor| page::place::<4>(LIST, &cursor)).transpose()?;
    let all = context.shared.board.list();
    let open = all.iter().filter(|episode| is_open(episode)).count();
    let detached = all.len() - open;
    let wanted = |episode: &ConnectionEpisode| {
        input.state.is_none_or(|state| State::from(episode.state) == state)
            && after.as_ref().is_none_or(|after| place(episode) > *after)
    };
    let mut rest = all.into_iter().filter(wanted);
    let page: Vec<ConnectionEpisode> = rest.by_ref().take(limit).collect();
    let next_cursor =
        rest.next().and(page.last()).map(|last| page::cursor(LIST, &place(last).each_ref().map(String::as_str)));
    Ok(ListOutput {
        open: open as u64,
        detached: detached as u64,
        mine: peer.and_then(|peer| context.shared.board.of_peer(&peer)).map(Episode::from),
        episodes: page.into_iter().map(Episode::from).collect(),
        next_cursor,
    })
}

const LIST: &str = "episodes";
/// Its cursors: as many values as [`place`] has.
const CURSOR: &str = r"^episodes(\.([0-9a-f]{2})*){4}$";

/// What the board's list is ordered by, without what nobody else is shown: a cursor can be read.
fn place(episode: &ConnectionEpisode) -> [String; 4] {
    let group = match episode.state {
        ConnectionEpisodeState::Open => "0",
        ConnectionEpisodeState::Detached => "1",
    };
    let (opened_at, provider) = (episode.opened_at.clone(), episode.provider.clone());
    [group.into(), opened_at, provider, shown(episode.external_id.clone())]
}

fn request<'a>(
    context: &'a Context,
    peer: &'a Peer,
    key: &'a EpisodeKey,
    handle: Option<&'a str>,
) -> AttachRequest<'a> {
    let (provider, external_id) = (key.provider.as_str(), key.external_id.as_str());
    AttachRequest {
        peer,
        external_id,
        provider,
        client: context.client.as_deref(),
        handle,
        again: false,
        carrier: None,
    }
}

fn is_open(episode: &ConnectionEpisode) -> bool {
    episode.state == ConnectionEpisodeState::Open
}

fn is(left: &ConnectionEpisode, right: &ConnectionEpisode) -> bool {
    (&left.provider, &left.external_id) == (&right.provider, &right.external_id)
}
