//! What is known of each agent's hooks, and one reader per provider from bytes to an event.
//!
//! `share/providers.yaml` declares, with evidence, who draws the boundary of a sitting, which endings a person chose, and how a
//! hook's payload is spelled. The build script turns it into static data, so a hook never parses it. [`attribute`] says whose a payload
//! is where several clients run the same hook; [`read`] makes an event of it; [`value_end`] tells a reader of an open pipe where the
//! payload ends.
//!
//! ```
//! use majordomus_providers::{EventKind, find, read};
//!
//! let claude = find("claude-code").expect("declared");
//! let payload = br#"{"session_id": "5d1b", "hook_event_name": "SessionEnd", "reason": "prompt_input_exit"}"#;
//! let event = read(claude, EventKind::End, payload).expect("readable");
//! assert_eq!(event.external_id, "5d1b");
//! assert!(claude.is_deliberate(event.reason.as_deref().unwrap_or_default()));
//! ```
//!
//! What stays true:
//!
//! - every byte sequence gives an event or an [`Unreadable`] that says what to do, never a panic;
//! - no event shares a key with another by accident: a missing, empty, cut or damaged id is refused, never repaired;
//! - the person's prompt is not read, and no error text repeats a value that is not the name of a field or of an event;
//! - there is no clock, file, environment variable or thread in here (`clippy.toml` holds it).

mod attribute;
mod event;
mod provider;
mod read;
mod scan;
mod unreadable;

pub use attribute::{Lookup, attribute};
pub use event::{EventKind, HookEvent, UnknownEventKind};
pub use provider::{
    Adapter, ConfigFile, EntryShape, EpisodeSource, Format, HookEntry, HookOutput, Identity, Mcp, PromptSource,
    Provider, Shape, Signs, TimeUnit, Written,
};
pub use read::read;
pub use scan::{Scan, value_end};
pub use unreadable::{IdProblem, KeysPresent, Unreadable};

include!(concat!(env!("OUT_DIR"), "/providers.rs"));

/// Returns every declared provider, in the order of the declaration.
#[must_use]
pub fn all() -> &'static [Provider] {
    PROVIDERS
}

/// Finds the provider that is declared under exactly `id`.
#[must_use]
pub fn find(id: &str) -> Option<&'static Provider> {
    PROVIDERS.iter().find(|provider| provider.id == id)
}
