//! The revisions of the protocol that begin with `initialize`.

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
}

impl Revision {
    /// Every revision, oldest first.
    pub const ALL: [Self; 4] = [Self::V2024_11_05, Self::V2025_03_26, Self::V2025_06_18, Self::V2025_11_25];
    /// The newest one: the answer to a client that asks for something else.
    pub const NEWEST: Self = Self::V2025_11_25;

    /// Its name in messages.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
        }
    }

    /// The revision of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|revision| revision.as_str() == name)
    }

    /// Whether tools carry annotations.
    #[must_use]
    pub fn has_annotations(self) -> bool {
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
