//! What really happened, kept beside what the product says: who did what and when, and what anybody was told.

use std::collections::{BTreeMap, BTreeSet};

use majordomus_records::clock::Stamp;

/// The providers that appear here: one whose boundary is the connection, one whose hooks draw it.
pub(crate) const BY_CONNECTION: &str = "generic";
pub(crate) const BY_HOOKS: &str = "claude-code";

/// One conversation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) provider: String,
    pub(crate) id: String,
}

impl Key {
    pub(crate) fn of_connection(id: char) -> Self {
        Self { provider: BY_CONNECTION.into(), id: id.into() }
    }

    pub(crate) fn of_hook(n: u8) -> Self {
        Self { provider: BY_HOOKS.into(), id: format!("hook-{n}") }
    }
}

/// A moment by the one clock that neither jumps nor sleeps: which boot, and how long awake then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct At {
    pub(crate) boot: u64,
    pub(crate) up_ms: u64,
}

impl At {
    pub(crate) fn of(stamp: &Stamp) -> Self {
        Self { boot: u64::from_str_radix(&stamp.boot, 16).unwrap_or(0), up_ms: stamp.up_ms }
    }

    /// Whether they are the same moment but for the rounding of ages.
    pub(crate) fn is_about(self, other: Self) -> bool {
        self.boot == other.boot && self.up_ms.abs_diff(other.up_ms) <= ROUNDING_MS
    }
}

/// By how much an age in whole milliseconds, taken a few times, may be off.
const ROUNDING_MS: u64 = 5;

/// Somebody who works under an external id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Actor {
    Client(u8),
    Web(u8),
    Handle(u8),
    Hook(u8),
}

/// One request, by who made it and its number.
pub(crate) type Request = (Actor, u64);

/// What is known of one conversation.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    /// When somebody who may speak for it did something.
    pub(crate) evidence: Vec<At>,
    /// Attaches that may count as attachments, each once.
    pub(crate) attaches: BTreeSet<Request>,
    /// When somebody asked for an end on purpose: each may close one session.
    pub(crate) ends_on_purpose: BTreeMap<Request, Vec<At>>,
    /// Whether one of them could not be recorded, and is tried again.
    pub(crate) is_ending: bool,
    /// When a hook reported an end, and its reason.
    pub(crate) hook_ends: Vec<(At, &'static str)>,
    /// Whose it is: who attached last, and who may have since.
    pub(crate) owners: BTreeSet<Actor>,
    /// Those whose attach is not recorded and is tried again.
    pub(crate) pending: BTreeSet<Actor>,
    /// Whether somebody came while others were still being tried again: who has it then is nobody's to say from outside.
    pub(crate) is_contested: bool,
    /// Everybody who had it by handle.
    pub(crate) handles: BTreeSet<Actor>,
    /// Whether the last attach was answered as recorded.
    pub(crate) is_recorded: bool,
    /// Since when a living process holds it, where one does.
    pub(crate) held: Option<Held>,
    /// When it was held.
    pub(crate) spans: Vec<(At, At)>,
    /// From when at the earliest its silence may be counted, as far as that was made known; and as far as it was durable.
    pub(crate) known: Option<Stamp>,
    pub(crate) known_durably: Option<Stamp>,
    /// Of which session that is known.
    pub(crate) known_of: Option<String>,
    /// The session that somebody was told of last.
    pub(crate) told: Option<String>,
}

/// A hold that lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) by: Actor,
    pub(crate) process: u32,
    pub(crate) since: At,
}

/// What was acknowledged of one session.
#[derive(Debug, Default)]
pub(crate) struct Told {
    pub(crate) key: Option<Key>,
    pub(crate) attachments: u32,
    pub(crate) opened_at: Option<String>,
    /// The last evidence that was said to be recorded.
    pub(crate) evidence: Option<At>,
    /// Its end: the outcome that was told.
    pub(crate) ended: Option<String>,
}

/// All of it.
#[derive(Debug, Default)]
pub(crate) struct Truth {
    /// When each boot was, in milliseconds that no clock shows.
    pub(crate) boots: BTreeMap<u64, i64>,
    pub(crate) conversations: BTreeMap<Key, Conversation>,
    pub(crate) told: BTreeMap<String, Told>,
    /// Whose connection that is, by what the log keeps of its id.
    pub(crate) carriers: BTreeMap<String, Actor>,
    /// When a person told a server to stop.
    pub(crate) stops: Vec<At>,
    /// When a hook said that an earlier sitting is resumed.
    pub(crate) resumes: Vec<Stamp>,
}

impl Truth {
    pub(crate) fn of(&mut self, key: &Key) -> &mut Conversation {
        self.conversations.entry(key.clone()).or_default()
    }

    /// Somebody who may speak for the conversation did something.
    pub(crate) fn evidence(&mut self, key: &Key, at: At) {
        self.of(key).evidence.push(at);
    }

    /// From now on its silence counts, as its holder has made known.
    pub(crate) fn known(&mut self, key: &Key, now: &Stamp) {
        self.of(key).known = Some(now.clone());
    }

    /// The same, durably.
    pub(crate) fn known_durably(&mut self, key: &Key, session_id: &str, now: &Stamp) {
        let conversation = self.of(key);
        conversation.known_of = Some(session_id.into());
        (conversation.known, conversation.known_durably) = (Some(now.clone()), Some(now.clone()));
    }

    /// It goes on in that session; what was known of another one says nothing of it.
    pub(crate) fn is_another(&mut self, key: &Key, session_id: &str) {
        let conversation = self.of(key);
        if conversation.known_of.as_deref() != Some(session_id) {
            (conversation.known, conversation.known_durably) = (None, None);
            conversation.known_of = Some(session_id.into());
        }
    }

    /// How much time has really passed between two moments, asleep and switched off included.
    pub(crate) fn between(&self, then: &Stamp, now: &Stamp) -> i64 {
        let truly = |stamp: &Stamp| {
            let since_boot = i64::try_from(stamp.up_ms + stamp.asleep_ms).unwrap_or(i64::MAX);
            self.boots.get(&At::of(stamp).boot).copied().unwrap_or_default() + since_boot
        };
        truly(now) - truly(then)
    }

    /// Somebody holds it from now on.
    pub(crate) fn hold(&mut self, key: &Key, held: Held) {
        let conversation = self.of(key);
        if let Some(before) = conversation.held.replace(held) {
            conversation.spans.push((before.since, held.since));
        }
    }

    /// Nobody does any more.
    pub(crate) fn release(&mut self, key: &Key, now: At) {
        let conversation = self.of(key);
        if let Some(before) = conversation.held.take() {
            conversation.spans.push((before.since, now));
        }
    }

    /// The conversations that a process holds.
    pub(crate) fn held_by_process(&self, process: u32) -> Vec<Key> {
        self.held_where(|held| held.process == process)
    }

    /// The conversations that somebody holds at a process.
    pub(crate) fn held_by(&self, by: Actor, process: u32) -> Vec<Key> {
        self.held_where(|held| held.by == by && held.process == process)
    }

    fn held_where(&self, wanted: impl Fn(Held) -> bool) -> Vec<Key> {
        let held = self.conversations.iter().filter(|(_, one)| one.held.is_some_and(&wanted));
        held.map(|(key, _)| key.clone()).collect()
    }

    /// What was known and not durable is forgotten with the power.
    pub(crate) fn lose_power(&mut self, now: At) {
        for conversation in self.conversations.values_mut() {
            conversation.known.clone_from(&conversation.known_durably);
            if let Some(before) = conversation.held.take() {
                conversation.spans.push((before.since, now));
            }
        }
    }
}
