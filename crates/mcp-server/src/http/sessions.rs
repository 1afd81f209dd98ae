//! The sessions that clients have begun over HTTP and not ended: a bounded table, least recently used first out.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lru::LruCache;
use tokio::sync::Notify;

use super::pace::Pace;
use crate::protocol::{Handed, Session};

/// The id of a session: 32 hexadecimal digits of 128 random bits.
pub(super) type Id = [u8; 16];

/// One session, and what its transport knows of it.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) session: Session,
    pub(super) pace: Arc<Pace>,
    /// How many streams the client has open.
    pub(super) streams: AtomicU32,
    /// Whether one of them is the one on which changes are told.
    pub(super) told: AtomicBool,
    /// What runs, and the word by which its client calls it off; made when the first call has to wait.
    cancels: Mutex<Vec<(Box<str>, Arc<Notify>)>>,
    /// Tells the session's streams that it is over.
    pub(super) over: Notify,
    ended: AtomicBool,
}

impl Live {
    pub(super) fn new(session: Session, pace: Arc<Pace>) -> Arc<Self> {
        let (streams, cancels, over) = (AtomicU32::new(0), Mutex::default(), Notify::new());
        let (told, ended) = (AtomicBool::new(false), AtomicBool::new(false));
        Arc::new(Self { session, pace, streams, told, cancels, over, ended })
    }

    /// Notes that the request of that id runs; it does until what is returned is dropped.
    pub(super) fn run(self: &Arc<Self>, id: &str) -> Cancellable {
        let called_off = Arc::new(Notify::new());
        self.cancels().push((id.into(), called_off.clone()));
        Cancellable { of: Arc::clone(self), called_off }
    }

    /// Calls the running request of that id off, if there is one: nobody waits for it any more.
    pub(super) fn cancel(&self, id: &str) {
        if let Some((_, called_off)) = self.cancels().iter().find(|(running, _)| **running == *id) {
            called_off.notify_one();
        }
    }

    fn cancels(&self) -> MutexGuard<'_, Vec<(Box<str>, Arc<Notify>)>> {
        self.cancels.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that runs.
pub(super) struct Cancellable {
    of: Arc<Live>,
    /// Becomes ready when its client calls it off.
    pub(super) called_off: Arc<Notify>,
}

impl Drop for Cancellable {
    fn drop(&mut self) {
        self.of.cancels().retain(|(_, called_off)| !Arc::ptr_eq(called_off, &self.called_off));
    }
}

/// All sessions.
pub(super) struct Sessions {
    table: Mutex<LruCache<Id, Entry>>,
    most: NonZeroUsize,
}

struct Entry {
    live: Arc<Live>,
    /// When its client was last heard, in time awake.
    heard: Duration,
}

impl Sessions {
    pub(super) fn new(most: NonZeroUsize) -> Self {
        Self { table: Mutex::new(LruCache::unbounded()), most }
    }

    /// Adds a session; where there are too many, the one that was not heard for longest and has no stream is ended.
    pub(super) fn add(&self, id: Id, live: Arc<Live>, now: Duration) {
        let mut table = self.lock();
        table.put(id, Entry { live, heard: now });
        if table.len() <= self.most.get() {
            return;
        }
        let idle = table.iter().rev().find(|(_, entry)| !entry.live.has_streams()).map(|(id, _)| *id);
        let evicted = idle.and_then(|id| table.pop(&id));
        drop(table);
        if let Some(entry) = evicted {
            entry.live.end();
        }
    }

    /// The session of that id, which has just been heard.
    pub(super) fn heard(&self, id: &Id, now: Duration) -> Option<Arc<Live>> {
        let mut table = self.lock();
        let entry = table.get_mut(id)?;
        entry.heard = now;
        Some(Arc::clone(&entry.live))
    }

    /// Ends the session of that id; whether there was one.
    pub(super) fn delete(&self, id: &Id) -> bool {
        let entry = self.lock().pop(id);
        entry.is_some_and(|entry| {
            entry.live.end();
            true
        })
    }

    /// Ends the sessions that were not heard for `idle` and have no stream. Costs what it ends, and the streams.
    pub(super) fn expire(&self, idle: Duration, now: Duration) {
        let mut table = self.lock();
        let over = |entry: &Entry| now.saturating_sub(entry.heard) >= idle;
        let ids: Vec<Id> = table
            .iter()
            .rev()
            .take_while(|(_, entry)| over(entry))
            .filter(|(_, entry)| !entry.live.has_streams())
            .map(|(id, _)| *id)
            .collect();
        let ended: Vec<Entry> = ids.iter().filter_map(|id| table.pop(id)).collect();
        drop(table);
        for entry in ended {
            entry.live.end();
        }
    }

    /// Leaves all of them to another process.
    pub(super) fn hand_over(&self) -> Vec<Handed> {
        let mut table = self.lock();
        let all: Vec<_> = std::iter::from_fn(|| table.pop_lru()).collect();
        drop(table);
        all.iter().filter_map(|(id, entry)| entry.live.session.hand_over(write_id(id))).collect()
    }

    /// Ends all of them.
    pub(super) fn end_all(&self) {
        let mut table = self.lock();
        let all: Vec<Entry> = std::iter::from_fn(|| table.pop_lru().map(|(_, entry)| entry)).collect();
        drop(table);
        for entry in all {
            entry.live.end();
        }
    }

    /// How many streams they have open.
    pub(super) fn streams(&self) -> usize {
        let open = |entry: &Entry| usize::try_from(entry.live.streams.load(Ordering::Acquire)).unwrap_or(usize::MAX);
        self.lock().iter().map(|(_, entry)| open(entry)).sum()
    }

    /// Whether one of them was heard within `time`.
    pub(super) fn was_heard(&self, time: Duration, now: Duration) -> bool {
        // In the order in which they were heard, the last one first.
        self.lock().iter().next().is_some_and(|(_, entry)| now.saturating_sub(entry.heard) < time)
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, LruCache<Id, Entry>> {
        // Every change is one step, so a panic elsewhere leaves the table whole.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Live {
    fn has_streams(&self) -> bool {
        self.streams.load(Ordering::Acquire) > 0
    }

    /// The id is dead from now on; what still runs is finished, and what the client held waits for it.
    fn end(&self) {
        self.ended.store(true, Ordering::Release);
        self.over.notify_waiters();
        self.session.end();
    }

    /// To be called after each call: one that still ran when the session ended may have attached something for nobody.
    pub(super) fn settle(&self) {
        if self.is_over() {
            self.session.end();
        }
    }

    /// Whether the session has ended.
    pub(super) fn is_over(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }
}

/// Makes an id that nobody can guess.
///
/// # Errors
/// The operating system's, where it has no random bytes.
pub(super) fn new_id() -> Result<Id, getrandom::Error> {
    let mut id = Id::default();
    getrandom::fill(&mut id)?;
    Ok(id)
}

pub(super) fn write_id(id: &Id) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads an id as it stands in a header; `None` for whatever cannot be one.
pub(super) fn read_id(text: &[u8]) -> Option<Id> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut id = Id::default();
    if text.len() != 2 * id.len() {
        return None;
    }
    for (byte, pair) in id.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(id)
}

#[cfg(test)]
mod tests;
