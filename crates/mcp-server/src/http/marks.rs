//! The marks of what is watched, made anew at most so often for all who watch: a thousand subscribers cost what one does.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::protocol::watching::LOOK;

/// The most URIs whose marks are kept.
const MOST: usize = 1_000;

/// What was last seen of one URI.
#[derive(Clone, Copy, Debug)]
struct Kept {
    at: Duration,
    mark: Option<u64>,
    /// Whether somebody looks right now, on a disk that may be slow.
    busy: bool,
}

#[derive(Debug, Default)]
pub(super) struct Marks {
    kept: Mutex<HashMap<Box<str>, Kept>>,
}

impl Marks {
    /// The mark of a URI: a young one as it is, or while somebody else looks; else by `look`. Whoever looks holds up nobody
    /// else, so that a disk that hangs takes one thread for each URI and not one for each who watches.
    pub(super) fn get(&self, uri: &str, now: Duration, look: impl FnOnce() -> Option<u64>) -> Option<u64> {
        let is_young = |kept: &Kept| now.saturating_sub(kept.at) < LOOK / 2;
        if let Some(kept) = self.lock().get_mut(uri) {
            if kept.busy || is_young(kept) {
                return kept.mark;
            }
            kept.busy = true;
        }
        let mark = look();
        let mut kept = self.lock();
        if kept.len() >= MOST && !kept.contains_key(uri) {
            kept.retain(|_, kept| kept.busy || is_young(kept));
        }
        if kept.len() < MOST || kept.contains_key(uri) {
            kept.insert(uri.into(), Kept { at: now, mark, busy: false });
        }
        mark
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Box<str>, Kept>> {
        // Every change is one step, so a panic elsewhere leaves the table whole.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
