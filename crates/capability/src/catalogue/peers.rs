//! Who is connected, and what each announced.

use std::collections::HashMap;

use majordomus_episodes_core::peers::{Announcement, PeerInfo};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::context::Context;
use crate::page;
use crate::refusal::{Code, Refusal};
use crate::views::Peer;

/// The most characters of an announced intent.
const INTENT_MAX: usize = 300;
/// The most announced paths.
const SCOPE_MAX: usize = 50;
/// The most characters of an announced path.
const PATH_MAX: usize = 300;

#[derive(Serialize, JsonSchema)]
pub(super) struct ListOutput {
    /// The caller's own connection.
    you: String,
    /// In the order in which they connected.
    peers: Vec<Peer>,
    /// Give it as `cursor` for the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

pub(super) fn list(context: &Context, input: page::Input) -> Result<ListOutput, Refusal> {
    let limit = page::limit(input.limit)?;
    let after = input.cursor.map(|cursor| after(&cursor)).transpose()?.unwrap_or(0);
    let mut rest = context.peers.list().into_iter().filter(|peer| peer.id.number() > after);
    let page: Vec<PeerInfo> = rest.by_ref().take(limit).collect();
    let next_cursor = rest.next().and(page.last()).map(|last| page::cursor(LIST, &[&last.id.number().to_string()]));
    let mut held = held(context);
    let show = |info: PeerInfo| {
        let external_id = held.remove(&info.id.number());
        Peer::new(info, external_id)
    };
    Ok(ListOutput { you: context.peer.id().to_string(), peers: page.into_iter().map(show).collect(), next_cursor })
}

const LIST: &str = "peers";

fn after(cursor: &str) -> Result<u64, Refusal> {
    let [number] = page::place::<1>(LIST, cursor)?;
    number.parse().map_err(|_| page::foreign())
}

/// The external id of the episode that each peer holds.
fn held(context: &Context) -> HashMap<u64, String> {
    let episodes = context.board.list().into_iter();
    episodes.filter_map(|episode| Some((episode.peer?.number(), episode.external_id))).collect()
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AnnounceInput {
    /// What you are about to do, in one line.
    #[schemars(length(min = 1, max = 300))]
    intent: String,
    /// The paths that you are about to change, relative to the repository's root.
    #[schemars(length(max = 50), inner(length(min = 1, max = 300)))]
    scope: Option<Vec<String>>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct AnnounceOutput {
    /// Your connection, as the others now see it.
    peer: Peer,
    /// How many other connections there are.
    others: u64,
}

pub(super) fn announce(context: &Context, input: AnnounceInput) -> Result<AnnounceOutput, Refusal> {
    let scope = input.scope.unwrap_or_default();
    one_line("intent", &input.intent, INTENT_MAX)?;
    if scope.len() > SCOPE_MAX {
        return Err(invalid(format!("scope has {} paths; at most {SCOPE_MAX} are allowed", scope.len())));
    }
    for path in &scope {
        one_line("scope", path, PATH_MAX)?;
        if path.starts_with(['/', '~', '\\']) || path.as_bytes().get(1) == Some(&b':') {
            let refusal = invalid("scope holds a path that is not relative to the repository's root");
            return Err(refusal.hint("give it as git shows it, such as src/main.rs"));
        }
    }
    context.peers.announce(&context.peer, Announcement { intent: input.intent, scope });
    let mut all = context.peers.list();
    let own = all.iter().position(|peer| peer.id == context.peer.id());
    let own = own.map(|at| all.remove(at)).ok_or_else(|| Refusal::new(Code::Internal, "this connection has left"))?;
    let external_id = context.board.of_peer(&context.peer).map(|episode| episode.external_id);
    Ok(AnnounceOutput { peer: Peer::new(own, external_id), others: all.len() as u64 })
}

/// Checks that a text is one line of 1 to `max` characters without control characters.
fn one_line(name: &str, text: &str, max: usize) -> Result<(), Refusal> {
    let chars = text.chars().count();
    if text.trim().is_empty() {
        return Err(invalid(format!("{name} is empty")));
    }
    if chars > max {
        return Err(invalid(format!("{name} has {chars} characters; at most {max} are allowed")));
    }
    if text.chars().any(|char| char.is_control() || matches!(char, '\u{2028}' | '\u{2029}')) {
        return Err(invalid(format!("{name} holds a control character; give one line of printable text")));
    }
    Ok(())
}

fn invalid(message: impl std::fmt::Display) -> Refusal {
    Refusal::new(Code::InvalidInput, message)
}
