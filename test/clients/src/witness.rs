//! What really happened, as hooks of our own were told: never what majordomus says of it.

use std::io::Read;
use std::path::Path;

use majordomus_e2e::now_ms;
use serde_json::{Value, json};

use crate::client::Client;
use crate::place::{note, noted};

/// Notes the payload that a hook is given: what our own hook entries run. It says nothing, and nothing stops the client.
pub(crate) fn take(log: &Path, event: &str) -> anyhow::Result<()> {
    let at_ms = now_ms();
    let mut payload = Vec::new();
    std::io::stdin().take(1 << 20).read_to_end(&mut payload)?;
    let payload: Value = serde_json::from_slice(&payload).unwrap_or_default();
    note(log, &json!({"at_ms": at_ms, "event": event, "payload": payload}))
}

/// One call of one of our hooks.
#[derive(Clone, Debug)]
pub(crate) struct Fired {
    pub(crate) at_ms: i64,
    pub(crate) event: String,
    pub(crate) id: String,
    /// Why it ended, why it began, or what made it discard context.
    pub(crate) word: Option<String>,
}

/// One sitting, as the hooks that fired tell it.
#[derive(Clone, Debug)]
pub(crate) struct Sitting {
    pub(crate) id: String,
    pub(crate) began_ms: i64,
    /// The last event before the end.
    pub(crate) last_ms: i64,
    /// Why it ended and when, as the first of its ends says.
    pub(crate) ended: Option<(String, i64)>,
    pub(crate) compactions: usize,
}

/// All calls so far, in the order in which they came.
pub(crate) fn fired(log: &Path, client: &Client) -> Vec<Fired> {
    let mut all: Vec<Fired> = noted(log)
        .iter()
        .map(|line| {
            let payload = &line["payload"];
            let word = ["reason", "source", "trigger"].iter().find_map(|field| payload[field].as_str());
            Fired {
                at_ms: line["at_ms"].as_i64().unwrap_or_default(),
                event: line["event"].as_str().unwrap_or_default().into(),
                id: payload[client.hooks.id].as_str().unwrap_or_default().into(),
                word: word.map(Into::into),
            }
        })
        .collect();
    all.sort_by_key(|fired| fired.at_ms);
    all
}

/// The sittings that there were. An end of which nothing went before is none: some commands of clients fire it alone.
pub(crate) fn sittings(fired: &[Fired], client: &Client) -> Vec<Sitting> {
    let mut sittings: Vec<Sitting> = Vec::new();
    for fired in fired {
        let is_end = fired.event == client.hooks.end;
        let known = sittings.iter().position(|sitting| sitting.id == fired.id);
        let Some(known) = known.or_else(|| {
            (!is_end).then(|| {
                let (id, at_ms) = (fired.id.clone(), fired.at_ms);
                sittings.push(Sitting { id, began_ms: at_ms, last_ms: at_ms, ended: None, compactions: 0 });
                sittings.len() - 1
            })
        }) else {
            continue;
        };
        let sitting = &mut sittings[known];
        if sitting.ended.is_some() {
            continue;
        }
        if is_end {
            sitting.ended = Some((fired.word.clone().unwrap_or_default(), fired.at_ms));
        } else {
            sitting.last_ms = sitting.last_ms.max(fired.at_ms);
            sitting.compactions += usize::from((client.hooks.compacts)(fired));
        }
    }
    sittings
}
