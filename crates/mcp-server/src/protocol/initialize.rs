//! The opening message.

use majordomus_capability::project::mcp::{Era, Revision};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::reply::Failure;
use super::{Session, frame, params_of};

/// What a client may show to its model.
pub(super) const INSTRUCTIONS: &str = "majordomus keeps a record of this working session in the repository. When you begin to work, \
    call majordomus_session_attach with the id that this conversation durably has (its session, thread or conversation \
    id, the same after a restart) as external_id, and attach again under it after a compaction; give the episode_handle \
    of its answer, if there is one, with every later call; when the person's work is finished, call \
    majordomus_session_detach. \
    majordomus_episodes shows who else is at work in this checkout. What the person writes is never recorded.";

/// What is offered; the lists are fixed for the life of the program, so no change of one is ever told.
const CAPABILITIES: &str = r#"{"tools":{},"resources":{"subscribe":true},"prompts":{},"completions":{}}"#;

/// What is offered in that revision.
pub(super) fn capabilities(revision: Revision) -> Value {
    let mut offered: Value = serde_json::from_str(CAPABILITIES).expect("it is JSON");
    if !revision.has_completions()
        && let Some(offered) = offered.as_object_mut()
    {
        offered.shift_remove("completions");
    }
    offered
}

/// The most characters of a client's name, and of its version, that are shown.
const WORD_MAX: usize = 64;

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params<'a> {
    #[serde(borrow)]
    protocol_version: Option<&'a RawValue>,
    #[serde(borrow)]
    client_info: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
struct ClientInfo<'a> {
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    version: Option<&'a RawValue>,
}

/// Negotiates: the revision that was asked for, else the newest; a client that repeats itself is answered again.
pub(super) fn initialize(session: &mut Session, raw: Option<&RawValue>) -> Result<String, Failure> {
    let asked: Params<'_> = params_of(raw)?;
    let named = asked.protocol_version.and_then(frame::string).and_then(|name| Revision::named(Era::Legacy, &name));
    let revision = named.unwrap_or(Revision::NEWEST_LEGACY);
    session.come_forward();
    session.revision = Some(revision);
    if let Some(client) = client(asked.client_info) {
        session.context.shared.peers.identify(&session.peer, client.clone());
        session.context.client = Some(client.into());
    }
    let mut server = json!({ "name": "majordomus", "version": env!("CARGO_PKG_VERSION") });
    if revision.has_titles() {
        server["title"] = "majordomus: session records in the repository".into();
    }
    let result = json!({
        "protocolVersion": revision.as_str(),
        "capabilities": capabilities(revision),
        "serverInfo": server,
        "instructions": INSTRUCTIONS,
    });
    Ok(result.to_string())
}

/// The client's name and version as a person reads them; `None` where it says nothing.
pub(super) fn client(info: Option<&RawValue>) -> Option<String> {
    let info: ClientInfo<'_> = params_of(info).ok()?;
    let words = [info.name, info.version].map(|raw| word(&raw.and_then(frame::string).unwrap_or_default()));
    Some(words.join(" ").trim().to_owned()).filter(|client| !client.is_empty())
}

/// What is printable of a text, as much as is shown of it.
fn word(text: &str) -> String {
    let shown = |char: &char| {
        !char.is_control()
            && !matches!(char, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.trim().chars().filter(shown).take(WORD_MAX).collect()
}
