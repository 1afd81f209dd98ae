//! One episode as the machine keeps it, and where entries live.

use crate::driver::CloseReason;
use crate::ids::{EpisodeKey, PeerId};

/// What is known about the repository's side of an episode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Record {
    /// The driver is asked and has not answered.
    Asked,
    /// The driver has it durably.
    Recorded,
    /// There is nothing to record.
    Nothing,
    /// The driver failed and is asked again.
    Failed,
}

/// A close that has begun and is not yet durable.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ending {
    pub(super) reason: CloseReason,
    /// Who asked for it last and is owed the same answer again.
    pub(super) by: Option<PeerId>,
}

/// The last takeover, to notice two holders that keep taking it back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Takeover {
    pub(super) by: PeerId,
    pub(super) from: PeerId,
    pub(super) at: i64,
    /// How many takeovers before this one it answered in turn.
    pub(super) returns: u32,
}

/// One episode. Times are nanoseconds: deadlines, which are yet to come, in counted time, all others in time awake.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) key: EpisodeKey,
    pub(super) opened_at: String,
    pub(super) attachments: u32,
    pub(super) resumed: bool,
    pub(super) repository: String,
    pub(super) client: Option<String>,
    pub(super) holder: Option<PeerId>,
    /// Who holds it or held it last, in this process.
    pub(super) last_holder: Option<PeerId>,
    /// Its last evidence, unless it is held: then that stands in the holder's seat.
    pub(super) evidence: i64,
    /// Whether this process saw any evidence itself.
    pub(super) witnessed: bool,
    pub(super) record: Record,
    pub(super) ending: Option<Ending>,
    /// The serial number of the driver call that runs for it.
    pub(super) call: Option<u64>,
    pub(super) expires_at: Option<i64>,
    pub(super) retry_at: Option<i64>,
    /// When evidence that the driver has not been told of is due, beside what its seat says.
    pub(super) tell_at: Option<i64>,
    /// When the driver was last told of evidence.
    pub(super) told_at: Option<i64>,
    /// Where it stands in the deadline list.
    pub(super) filed_at: Option<i64>,
    pub(super) takeover: Option<Takeover>,
}

impl Entry {
    /// A new episode that nobody holds yet.
    pub(super) fn new(key: EpisodeKey, opened_at: String, evidence: i64) -> Self {
        Self {
            key,
            opened_at,
            attachments: 0,
            resumed: false,
            repository: "the repository has not answered yet".into(),
            client: None,
            holder: None,
            last_holder: None,
            evidence,
            witnessed: false,
            record: Record::Asked,
            ending: None,
            call: None,
            expires_at: None,
            retry_at: None,
            tell_at: None,
            told_at: None,
            filed_at: None,
            takeover: None,
        }
    }

    /// Whether nobody holds it and its grace is over.
    pub(super) fn overdue(&self, counted: i64) -> bool {
        self.holder.is_none() && self.expires_at.is_some_and(|at| at <= counted)
    }

    /// When something is due for it; nothing is while a call runs.
    pub(super) fn deadline(&self) -> Option<i64> {
        if self.call.is_some() {
            return None;
        }
        if self.ending.is_some() {
            return self.retry_at;
        }
        [self.expires_at, self.retry_at, self.tell_at].into_iter().flatten().min()
    }
}

/// Entries by small numbers that are used again.
#[derive(Debug, Default)]
pub(super) struct Entries {
    slots: Vec<Option<Entry>>,
    free: Vec<u32>,
}

impl Entries {
    pub(super) fn insert(&mut self, entry: Entry) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = Some(entry);
            return slot;
        }
        self.slots.push(Some(entry));
        u32::try_from(self.slots.len() - 1).expect("fewer than 2^32 episodes fit in memory")
    }

    pub(super) fn remove(&mut self, slot: u32) -> Entry {
        let entry = self.slots[slot as usize].take().expect("a slot in use holds an entry");
        self.free.push(slot);
        entry
    }

    pub(super) fn of(&self, slot: u32) -> &Entry {
        self.slots[slot as usize].as_ref().expect("a slot in use holds an entry")
    }

    pub(super) fn of_mut(&mut self, slot: u32) -> &mut Entry {
        self.slots[slot as usize].as_mut().expect("a slot in use holds an entry")
    }

    pub(super) fn slots(&self) -> impl Iterator<Item = u32> {
        (0_u32..).zip(&self.slots).filter(|(_, entry)| entry.is_some()).map(|(slot, _)| slot)
    }
}
