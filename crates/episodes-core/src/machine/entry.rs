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
    /// When it was first asked for, in time awake.
    pub(super) asked_at: i64,
    /// Whether an operator gave the reason.
    pub(super) by_operator: bool,
}

/// What keeps the episode of a seated peer from expiring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    /// Its process, or a stream that is open.
    Held,
    /// Nothing, and nothing was seen to go: silent since then in counted time, unless its seat says more.
    Silent { since: i64 },
    /// Its last stream was seen to end, unless its seat says that there was evidence since.
    Lost(Loss),
}

/// The end of a peer's last stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Loss {
    /// When, in counted time.
    pub(super) since: i64,
    /// Whether the patience with it is over.
    pub(super) confirmed: bool,
}

/// How long an episode that nobody is seated at waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    pub(super) expires_at: i64,
    /// The length that is judged.
    pub(super) limit: i64,
    /// When its connection was seen to go, in counted time, where this process saw it.
    pub(super) lost_at: Option<i64>,
}

/// A departure that the driver has not been told.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaving {
    pub(super) peer: PeerId,
    /// In counted time.
    pub(super) at: i64,
}

/// What the driver is to be told of an attachment.
#[derive(Clone, Debug, Default)]
pub(super) struct Joining {
    pub(super) handle: Option<String>,
    pub(super) again: bool,
    pub(super) carrier: Option<String>,
    pub(super) took_over: bool,
    /// Whether it was asked for once more by whom this process believes to have it.
    pub(super) repeated: bool,
    /// When its client asked for it, in time awake.
    pub(super) asked_at: i64,
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

/// One episode. Times are nanoseconds: deadlines and losses, which they are reckoned from, in counted time, all others in
/// time awake.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) key: EpisodeKey,
    pub(super) opened_at: String,
    pub(super) attachments: u32,
    pub(super) resumed: bool,
    pub(super) repository: String,
    pub(super) client: Option<String>,
    /// Who is seated at it; whether that counts as holding it is for `hold` and the seat to say.
    pub(super) holder: Option<PeerId>,
    pub(super) hold: Hold,
    /// Whether its holder's process is its hold.
    pub(super) by_process: bool,
    /// Who holds it or held it last, in this process.
    pub(super) last_holder: Option<PeerId>,
    /// Its last evidence, unless somebody is seated: then that stands in the holder's seat, and this is what it was when
    /// they sat down.
    pub(super) evidence: i64,
    /// Whether this process saw any evidence itself.
    pub(super) witnessed: bool,
    pub(super) record: Record,
    /// What the driver is told of the last attachment, as often as it is asked.
    pub(super) joining: Joining,
    pub(super) ending: Option<Ending>,
    /// The serial number of the driver call that runs for it.
    pub(super) call: Option<u64>,
    /// How long it waits, where nobody is seated.
    pub(super) wait: Option<Wait>,
    pub(super) retry_at: Option<i64>,
    /// Whether there is evidence that the driver has not been told of, beside what its seat says.
    pub(super) untold: bool,
    pub(super) leaving: Option<Leaving>,
    /// Whether the driver was told that the seated peer is gone, and of no evidence since.
    pub(super) gone: bool,
    /// When the driver is to be told of evidence or of a departure.
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
            hold: Hold::Held,
            by_process: false,
            last_holder: None,
            evidence,
            witnessed: false,
            record: Record::Asked,
            joining: Joining::default(),
            ending: None,
            call: None,
            wait: None,
            retry_at: None,
            untold: false,
            leaving: None,
            gone: false,
            tell_at: None,
            told_at: None,
            filed_at: None,
            takeover: None,
        }
    }

    /// Takes in the last evidence of whoever gives its seat up.
    pub(super) fn stood_up(&mut self, evidence: i64) {
        // Whoever took its seat back may have said nothing since.
        self.witnessed |= evidence != self.evidence;
        self.evidence = evidence;
    }

    /// Nothing is owed to the driver of what was before.
    pub(super) fn owe_nothing(&mut self) {
        (self.retry_at, self.tell_at) = (None, None);
        (self.untold, self.leaving, self.gone) = (false, None, false);
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
