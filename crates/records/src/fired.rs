//! What is noted of a provider's hooks beside the episodes: that they fire here, and when one last resumed a session.
//!
//! Small files that say the last time. Best effort: the episode's own log is what counts.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::append::READ_MOST;
use crate::clock::Stamp;
use crate::disk::Open;
use crate::redact::redact;
use crate::store::Store;

const FIRED: &str = "fired";
const RESUMED: &str = "resumed";
const ENDED: &str = "ended-last";

/// What a hook said of the last end.
#[derive(Serialize, Deserialize)]
struct LastEnd {
    #[serde(flatten)]
    at: Stamp,
    reason: String,
}

/// How close a start and a resume are to belong together.
const BESIDE: Duration = Duration::from_secs(5);

impl Store {
    /// Notes that a hook of this provider fired.
    pub(crate) fn note_fired(&self, provider: &str) {
        // To the minute is enough for a person, and costs no hook a write.
        let fresh = self.last_fired(provider).is_some_and(|last| self.now().age_of(&last) < Duration::from_secs(60));
        if !fresh {
            self.note(FIRED, provider);
        }
    }

    /// Notes that this provider resumed an earlier session.
    pub(crate) fn note_resumed(&self, provider: &str) {
        self.note(RESUMED, provider);
    }

    /// Whether this provider resumed a session at about the moment `at`: some clients then start a second one that
    /// is never used.
    pub(crate) fn resumed_beside(&self, provider: &str, at: &Stamp) -> bool {
        self.noted::<Stamp>(RESUMED, provider)
            .is_some_and(|resumed| at.age_of(&resumed).max(resumed.age_of(at)) <= BESIDE)
    }

    /// Notes with which reason a hook of this provider last told of an end.
    pub(crate) fn note_end_seen(&self, provider: &str, reason: &str) {
        self.note_down(ENDED, provider, &LastEnd { at: self.now(), reason: redact(reason).0 });
    }

    /// Tells when a hook of this provider last told of an end in this checkout, and with which reason; `None` where it was
    /// never seen.
    #[must_use]
    pub fn last_end_seen(&self, provider: &str) -> Option<(Stamp, String)> {
        self.noted::<LastEnd>(ENDED, provider).map(|last| (last.at, last.reason))
    }

    fn note(&self, folder: &str, provider: &str) {
        self.note_down(folder, provider, &self.now());
    }

    fn note_down(&self, folder: &str, provider: &str, what: &impl Serialize) {
        let Some(root) = self.state.roots().first() else { return };
        let folder = root.join(folder);
        let noted = self.disk.make_folders(&folder, true).and_then(|()| {
            let bytes = serde_json::to_vec(what)?;
            self.disk.open(&folder.join(format!("{provider}.json")), Open::Create)?.overwrite(&bytes)
        });
        // A folder that refuses has refused the log too, and that was said.
        drop(noted);
    }

    fn noted<T: DeserializeOwned>(&self, folder: &str, provider: &str) -> Option<T> {
        let root = self.state.roots().first()?;
        let bytes = self.disk.read(&root.join(folder).join(format!("{provider}.json")), READ_MOST).ok()?;
        // Two hooks that write at once leave two values; both are true.
        serde_json::Deserializer::from_slice(&bytes).into_iter().next()?.ok()
    }

    /// Tells when a hook of this provider last fired in this checkout; `None` where it was never seen.
    #[must_use]
    pub fn last_fired(&self, provider: &str) -> Option<Stamp> {
        self.noted(FIRED, provider)
    }
}
