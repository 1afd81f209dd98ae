//! The marks of what is watched, made anew at most so often for all who watch: a thousand subscribers cost what one does.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::protocol::watching::LOOK;

/// The most URIs whose marks are kept.
const MOST: usize = 1_000;

/// By URI: when the mark was made, and the mark.
type Kept = HashMap<Box<str>, (Duration, Option<u64>)>;

#[derive(Debug, Default)]
pub(super) struct Marks {
    kept: Mutex<Kept>,
}

impl Marks {
    /// The mark of a URI: a young one as it is, else by `look`, for which nobody else waits.
    pub(super) fn get(&self, uri: &str, now: Duration, look: impl FnOnce() -> Option<u64>) -> Option<u64> {
        let is_young = |at: Duration| now.saturating_sub(at) < LOOK / 2;
        if let Some((_, mark)) = self.lock().get(uri).filter(|(at, _)| is_young(*at)) {
            return *mark;
        }
        let mark = look();
        let mut kept = self.lock();
        if kept.len() >= MOST {
            kept.retain(|_, (at, _)| is_young(*at));
        }
        if kept.len() < MOST {
            kept.insert(uri.into(), (now, mark));
        }
        mark
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        // Every change is one step, so a panic elsewhere leaves the table whole.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
