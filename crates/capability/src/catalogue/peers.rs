//! Who is connected, and what each announced.

use std::collections::HashMap;

use majordomus_episodes_core::peers::{Announcement, PeerInfo};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::arguments;
use crate::context::{Context, Shared};
use crate::handles;
use crate::page;
use crate::refusal::{Code, Refusal};
use crate::views::Peer;

/// The most characters of an announced intent.
const INTENT_MAX: usize = 300;
/// The most announced paths.
const SCOPE_MAX: usize = 50;
/// The most characters of an announced path.
const PATH_MAX: usize = 300;
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListInput {
    /// How many at most; 50 when absent.
    #[serde(default, deserialize_with = "arguments::whole")]
    #[schemars(range(min = 1, max = 200))]
    limit: Option<u32>,
    /// `next_cursor` of the page before, as it came.
    #[schemars(regex(pattern = CURSOR))]
    cursor: Option<String>,
    /// What attach gave to a caller without a connection, to be shown which one it is; leave it out otherwise.
    #[schemars(regex(pattern = handles::PATTERN))]
    episode_handle: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct ListOutput {
    /// The caller's own connection, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    you: Option<String>,
    /// In the order in which they connected.
    peers: Vec<Peer>,
    /// Give it as `cursor` for the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

pub(super) fn list(context: &Context, input: ListInput) -> Result<ListOutput, Refusal> {
    let you = context.calling_peer(input.episode_handle.as_deref())?.map(|peer| peer.id().to_string());
    let limit = page::limit(input.limit)?;
    let after = input.cursor.map(|cursor| after(&cursor)).transpose()?.unwrap_or(0);
    let mut rest = context.shared.peers.list().into_iter().filter(|peer| peer.id.number() > after);
    let page: Vec<PeerInfo> = rest.by_ref().take(limit).collect();
    let next_cursor = rest.next().and(page.last()).map(|last| page::cursor(LIST, &[&last.id.number().to_string()]));
    let mut held = held(context);
    let show = |info: PeerInfo| {
        let external_id = held.remove(&info.id.number());
        Peer::new(info, external_id)
    };
    Ok(ListOutput { you, peers: page.into_iter().map(show).collect(), next_cursor })
}

const LIST: &str = "peers";
/// Its cursors: a number that surely fits.
const CURSOR: &str = r"^peers\.(3[0-9]){1,19}$";

fn after(cursor: &str) -> Result<u64, Refusal> {
    let [number] = page::place::<1>(LIST, cursor)?;
    // As many digits as surely fit; a sign would be read as well.
    let digits = number.len() < 20 && number.bytes().all(|byte| byte.is_ascii_digit());
    number.parse().ok().filter(|_| digits).ok_or_else(page::foreign)
}

/// The external id of the episode that each peer holds.
fn held(context: &Context) -> HashMap<u64, String> {
    let episodes = context.shared.board.list().into_iter();
    episodes.filter_map(|episode| Some((episode.peer?.number(), episode.external_id))).collect()
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AnnounceInput {
    /// What you are about to do, in one line.
    #[schemars(length(min = 1, max = 300), regex(pattern = super::SAYS_SOMETHING))]
    intent: String,
    /// The paths that you are about to change, relative to the repository's root.
    #[schemars(length(max = 50), inner(length(min = 1, max = 300), regex(pattern = super::RELATIVE)))]
    scope: Option<Vec<String>>,
    /// What attach gave to a caller without a connection; leave it out otherwise.
    #[schemars(regex(pattern = handles::PATTERN))]
    episode_handle: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct AnnounceOutput {
    /// Your connection, as the others now see it.
    peer: Peer,
    /// How many other connections there are.
    others: u64,
}

pub(super) fn announce(context: &Context, input: AnnounceInput) -> Result<AnnounceOutput, Refusal> {
    let nobody = || Refusal::new(Code::Forbidden, "who announces has no connection and gave no episode_handle");
    let peer = context.calling_peer(input.episode_handle.as_deref())?;
    let peer = peer.ok_or_else(|| nobody().hint("attach first, and give the episode_handle of its answer"))?;
    let Shared { peers, board, .. } = &*context.shared;
    let scope = input.scope.unwrap_or_default();
    one_line("intent", &input.intent, INTENT_MAX)?;
    if scope.len() > SCOPE_MAX {
        return Err(invalid(format!("scope has {} paths; at most {SCOPE_MAX} are allowed", scope.len())));
    }
    for path in &scope {
        one_line("scope", path, PATH_MAX)?;
        if path.starts_with(char::is_whitespace) {
            return Err(invalid("scope holds a path that begins with a blank"));
        }
        if path.starts_with(['/', '~', '\\']) || path.chars().nth(1) == Some(':') {
            let refusal = invalid("scope holds a path that is not relative to the repository's root");
            return Err(refusal.hint("give it as git shows it, such as src/main.rs"));
        }
    }
    peers.announce(&peer, Announcement { intent: input.intent, scope });
    let mut all = peers.list();
    let own = all.iter().position(|info| info.id == peer.id());
    let own = own.map(|at| all.remove(at)).ok_or_else(handles::ended)?;
    let external_id = board.of_peer(&peer).map(|episode| episode.external_id);
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
