//! The revisions of the protocol.

/// How the messages of a revision belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// A session begins with `initialize`, and whose a message is its session says.
    Legacy,
    /// Every request is complete in itself.
    Modern,
}

/// A revision of the Model Context Protocol, in the order of their dates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Revision {
    /// 2024-11-05.
    V2024_11_05,
    /// 2025-03-26.
    V2025_03_26,
    /// 2025-06-18.
    V2025_06_18,
    /// 2025-11-25.
    V2025_11_25,
    /// 2026-07-28.
    V2026_07_28,
}

impl Revision {
    /// Every revision, oldest first.
    pub const ALL: [Self; 5] =
        [Self::V2024_11_05, Self::V2025_03_26, Self::V2025_06_18, Self::V2025_11_25, Self::V2026_07_28];
    /// The newest one that begins with `initialize`: the answer to a client that asks for something else there.
    pub const NEWEST_LEGACY: Self = Self::V2025_11_25;
    /// The newest one of all.
    pub const NEWEST: Self = Self::V2026_07_28;

    /// The table: its name in messages, and its era.
    const fn row(self) -> (&'static str, Era) {
        match self {
            Self::V2024_11_05 => ("2024-11-05", Era::Legacy),
            Self::V2025_03_26 => ("2025-03-26", Era::Legacy),
            Self::V2025_06_18 => ("2025-06-18", Era::Legacy),
            Self::V2025_11_25 => ("2025-11-25", Era::Legacy),
            Self::V2026_07_28 => ("2026-07-28", Era::Modern),
        }
    }

    /// Its name in messages.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.row().0
    }

    /// Its era.
    #[must_use]
    pub const fn era(self) -> Era {
        self.row().1
    }

    /// The revisions of one era, oldest first.
    pub fn of(era: Era) -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(move |revision| revision.era() == era)
    }

    /// The revision of that name in that era.
    #[must_use]
    pub fn named(era: Era, name: &str) -> Option<Self> {
        Self::of(era).find(|revision| revision.as_str() == name)
    }

    /// Whether results say what they are and who answers, and how long they may be kept.
    #[must_use]
    pub fn is_self_contained(self) -> bool {
        self.era() == Era::Modern
    }

    /// Whether tools carry annotations.
    #[must_use]
    pub fn has_annotations(self) -> bool {
        self >= Self::V2025_03_26
    }

    /// Whether a server says that it completes arguments.
    #[must_use]
    pub fn has_completions(self) -> bool {
        self >= Self::V2025_03_26
    }

    /// Whether several messages may come as one array. 2025-03-26 demands it; 2024-11-05 leaves it to JSON-RPC.
    #[must_use]
    pub fn has_batches(self) -> bool {
        self <= Self::V2025_03_26
    }

    /// Whether an error about a message without a readable id has the id `null`; later ones leave the id out.
    #[must_use]
    pub fn has_null_ids(self) -> bool {
        self <= Self::V2025_06_18
    }

    /// Whether tools and implementations carry a title.
    #[must_use]
    pub fn has_titles(self) -> bool {
        self >= Self::V2025_06_18
    }

    /// Whether tools declare an output schema and results carry structured content.
    #[must_use]
    pub fn has_structured_content(self) -> bool {
        self >= Self::V2025_06_18
    }
}
