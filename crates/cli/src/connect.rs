//! Declaring our hooks and our MCP server in the settings of clients, and taking exactly that out again.
//!
//! Everything about a vendor is data of `majordomus_providers`; nothing here knows one. [`document`] edits text in place,
//! [`hooks`] and [`servers`] say what is ours in it, [`ledger`] remembers what was put in, [`work`] plans for several clients
//! at once and writes, and [`wiring`] tells others how a client stands.
//!
//! What stays true:
//!
//! - no byte changes that is not ours, and a file whose edit would mean anything else is left alone;
//! - nothing is written before all of it has been planned, and a file that somebody else changed meanwhile is not overwritten;
//! - the ledger holds names of keys, never a copy of what somebody wrote.

mod binary;
mod bounded;
mod clients;
mod containers;
mod difference;
mod document;
mod files;
mod hooks;
mod ledger;
mod scope;
mod servers;
mod shell;
mod wiring;
mod work;

pub(crate) use scope::Scope;
pub(crate) use shell::Filled;
pub(crate) use wiring::{Declared, Wired, Wiring, wiring};
pub(crate) use work::{Asked, Client, Plan, Step, plan};

use majordomus_providers::Provider;

/// The provider's clients that are here: as a program on the search path, or by a folder of their own.
pub(crate) fn found(scopes: &[&Scope]) -> Vec<&'static Provider> {
    let search = crate::variables::value("PATH");
    let here = |provider: &&Provider| {
        clients::can_be_connected(provider) && clients::is_here(provider, scopes, search.as_deref())
    };
    majordomus_providers::all().iter().filter(here).collect()
}

/// The providers that are told of us somewhere in these settings, or were.
pub(crate) fn connected(scope: &Scope) -> Vec<&'static Provider> {
    let of = |persons| Some(scope).filter(|scope| scope.is_persons == persons);
    let is_wired = |provider: &&'static Provider| {
        let wiring = wiring(provider, of(false), of(true));
        wiring.hooks.iter().chain(&wiring.servers).any(|wired| wired.was_declared || !wired.ours.is_empty())
    };
    known().filter(is_wired).collect()
}

/// The files besides those of `scope` in which a provider's hooks are declared too, so that each event comes twice.
pub(crate) fn elsewhere(
    provider: &'static Provider,
    scope: &Scope,
    project: Option<&Scope>,
    person: Option<&Scope>,
) -> Vec<&'static str> {
    let hooks = wiring(provider, project, person).hooks;
    let is_other = |wired: &&wiring::Wired| !wired.is_written || wired.path.starts_with("~/") != scope.is_persons;
    hooks.iter().filter(is_other).filter(|wired| !wired.ours.is_empty()).map(|wired| wired.path).collect()
}

/// Whether a provider that can be connected has settings of this scope to be told in.
pub(crate) fn has_settings(provider: &Provider, scope: &Scope) -> bool {
    clients::is_written_for(provider, scope.is_persons)
}

/// The providers that can be connected.
pub(crate) fn known() -> impl Iterator<Item = &'static Provider> {
    majordomus_providers::all().iter().filter(|provider| clients::can_be_connected(provider))
}
