//! Which conversation a connection belongs to, where its client's hooks already drew one.
//!
//! Three things tell: what some clients say with each call; the variable in which some name the conversation to the MCP servers
//! that they start; and the process that started the server, which is the one whose hooks were seen. The variable is what the
//! client said when it started the server and may be stale by now (after `/clear` it names the conversation before).

use std::borrow::Cow;
use std::collections::BTreeMap;

use majordomus_episodes_core::EpisodeKey;
use majordomus_providers::{EpisodeSource, Provider};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::clock::{Clock, SystemClock};
use crate::line::Witness;
use crate::log::Log;
use crate::state::key_hash;
use crate::store::{Store, StoreError};
use crate::witnessed::ClientProcess;

/// The longest value of a variable that can be an id.
const ID_MOST_BYTES: usize = 4 * 256;

/// Who is at the other end of a connection, as far as its process can tell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caller {
    /// The conversations that the environment names: a provider's id, and what that calls its conversation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub named: Vec<(String, String)>,
    /// The client's process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<ClientProcess>,
}

impl Caller {
    /// Finds out who started this process; `variable` looks up its environment.
    #[must_use]
    pub fn of_this_process(variable: fn(&str) -> Option<String>) -> Self {
        let named = majordomus_providers::all().iter().filter_map(|provider| {
            let value = variable(provider.identity?.server_variable?)?;
            (value.len() <= ID_MOST_BYTES).then(|| (provider.id.to_owned(), value))
        });
        let process = ClientProcess::above(std::process::id(), &SystemClock::new().now().boot);
        Self { named: named.collect(), process }
    }
}

impl Caller {
    /// Finds in the `_meta` of a call the conversation that a client names with each of them; `None` for a client that is not
    /// known to. Then nothing else is asked.
    #[must_use]
    pub fn named_by(client: Option<&str>, meta: &RawValue) -> Option<Self> {
        let mut providers = majordomus_providers::all().iter();
        let (provider, keys) = providers.find_map(|provider| {
            let keys = provider.identity.map_or(&[][..], |identity| identity.meta);
            (!keys.is_empty() && calls_itself(provider, client)).then_some((provider, keys))
        })?;
        let meta: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_str(meta.get()).ok()?;
        let value = keys.iter().find_map(|key| serde_json::from_str::<String>(meta.get(*key)?.get()).ok())?;
        (value.len() <= ID_MOST_BYTES).then(|| Self { named: vec![(provider.id.into(), value)], process: None })
    }
}

impl Store {
    /// Finds the open episode that hooks drew and that this caller's conversation is; `client` is what it says it is. `None`
    /// where there is none, or several may be it.
    ///
    /// # Errors
    /// [`StoreError::Io`] where a log is there and cannot be read.
    pub fn conversation_of(&self, caller: &Caller, client: Option<&str>) -> Result<Option<EpisodeKey>, StoreError> {
        for (provider, external_id) in &caller.named {
            // A value that cannot be an id names nothing.
            let Ok(key) = EpisodeKey::new(provider, external_id) else { continue };
            if self.find(&key)?.is_some_and(|open| was_drawn(&open.log)) {
                return Ok(Some(key));
            }
        }
        let Some(process) = &caller.process else { return Ok(None) };
        let providers: Vec<&Provider> = majordomus_providers::all()
            .iter()
            .filter(|provider| provider.episode == EpisodeSource::Hooks)
            .filter(|provider| caller.named.iter().any(|(id, _)| id == provider.id) || calls_itself(provider, client))
            .collect();
        if providers.is_empty() {
            return Ok(None);
        }
        let is_its = |log: &Log| {
            let of = log.start.as_ref().map_or("", |start| &start.opened.provider);
            was_drawn(log)
                && !log.left
                && providers.iter().any(|provider| provider.id == of)
                && log.processes.iter().any(|known| known.is(process))
        };
        self.only_open(is_its)
    }

    /// Finds the open episode that hooks drew and that the connection with this carrier was the last to join; `None` also where
    /// that cannot be read.
    #[must_use]
    pub fn drawn_and_carried_by(&self, carrier: &str) -> Option<EpisodeKey> {
        let open = self.open_episodes().ok()?.into_iter();
        let its = open.filter(|open| was_drawn(&open.log) && open.log.carrier.as_deref() == Some(carrier));
        // One connection may have joined several in turn, all of them in this boot.
        key_in(&its.max_by_key(|open| open.log.joined_up)?.log)
    }

    /// The key of the open episode that fits, if there is exactly one.
    fn only_open(&self, fits: impl Fn(&Log) -> bool) -> Result<Option<EpisodeKey>, StoreError> {
        let mut all = self.open_episodes()?.into_iter().filter(|open| fits(&open.log));
        let (Some(only), None) = (all.next(), all.next()) else { return Ok(None) };
        Ok(key_in(&only.log))
    }
}

/// The key that a log is found by; `None` where a part of its id was replaced.
fn key_in(log: &Log) -> Option<EpisodeKey> {
    let opened = &log.start.as_ref()?.opened;
    let key = EpisodeKey::new(&opened.provider, &opened.external_id).ok()?;
    (key_hash(&key) == opened.key).then_some(key)
}

/// Whether a provider's episodes are drawn by its hooks, so that a connection to one only comes and goes.
#[must_use]
pub fn is_drawn_by_hooks(provider: &str) -> bool {
    majordomus_providers::find(provider).is_some_and(|provider| provider.episode == EpisodeSource::Hooks)
}

fn was_drawn(log: &Log) -> bool {
    log.start.as_ref().is_some_and(|start| start.witness == Witness::Hook)
}

/// Whether a client's own words, its name and its version, begin with a name that this provider is known by.
fn calls_itself(provider: &Provider, client: Option<&str>) -> bool {
    let names = provider.identity.map_or(&[][..], |identity| identity.client_names);
    names.iter().any(|name| {
        let rest = client.and_then(|client| client.strip_prefix(name));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    })
}
