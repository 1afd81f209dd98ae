//! What is declared of a provider.

/// Describes one provider: who draws the boundary of its sittings, and how to read what it says.
#[derive(Debug, PartialEq, Eq)]
pub struct Provider {
    /// The name in records and on command lines, for example `claude-code`.
    pub id: &'static str,
    /// The name for people.
    pub title: &'static str,
    /// Who draws the boundary of an episode.
    pub episode: EpisodeSource,
    /// What shows that [`episode`](Self::episode) holds, with its sources.
    pub episode_evidence: &'static str,
    /// Where the person's prompt could be had.
    pub prompts: PromptSource,
    /// What shows that [`prompts`](Self::prompts) holds, with its sources.
    pub prompts_evidence: &'static str,
    /// The end reasons that are only sent when somebody ended the sitting on purpose.
    pub deliberate: &'static [&'static str],
    /// The end reasons that say that the person went on in another sitting; this one may be resumed.
    pub switch: &'static [&'static str],
    /// The seconds without any event after which an episode of this provider's hooks is taken for interrupted.
    pub idle_seconds: u64,
    /// How its payloads are spelled; `None` where no hook of it is read.
    pub adapter: Option<&'static Adapter>,
}

impl Provider {
    /// Says whether `reason` is only sent when somebody ended the sitting on purpose. Exact: another case is another reason.
    #[must_use]
    pub fn is_deliberate(&self, reason: &str) -> bool {
        self.deliberate.contains(&reason)
    }

    /// Says whether `reason` means that the person went on in another sitting.
    #[must_use]
    pub fn is_switch(&self, reason: &str) -> bool {
        self.switch.contains(&reason)
    }
}

/// Names who draws the boundary of an episode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EpisodeSource {
    /// The provider's lifecycle hooks.
    Hooks,
    /// The connection itself.
    Connection,
    /// Nobody: such a provider's sittings cannot be recorded.
    None,
}

impl EpisodeSource {
    /// Returns the word of the declaration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hooks => "hooks",
            Self::Connection => "connection",
            Self::None => "none",
        }
    }
}

/// Names where the person's prompt could be had. There is no `connection`: no MCP message carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PromptSource {
    /// A hook of the provider gets it.
    Hook,
    /// Nowhere.
    None,
}

impl PromptSource {
    /// Returns the word of the declaration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hook => "hook",
            Self::None => "none",
        }
    }
}

/// Describes how a provider's hook payloads are spelled and where its hooks are declared.
///
/// A list of field names is in order of preference: the first that is present and not null is taken.
#[derive(Debug, PartialEq, Eq)]
pub struct Adapter {
    /// Fields that carry the external id.
    pub session_id: &'static [&'static str],
    /// Fields that carry the working directory.
    pub cwd: &'static [&'static str],
    /// Fields that say why a sitting starts.
    pub source: &'static [&'static str],
    /// Fields that say why a sitting ends.
    pub reason: &'static [&'static str],
    /// Fields that carry the native event name.
    pub event_name: &'static [&'static str],
    /// Fields that only another client's payload has: it ran a hook that was declared for this one.
    pub foreign_fields: &'static [&'static str],
    /// Native events that serve [`EventKind::Start`](crate::EventKind::Start).
    pub start_events: &'static [&'static str],
    /// Native events that serve [`EventKind::End`](crate::EventKind::End).
    pub end_events: &'static [&'static str],
    /// Native events that serve [`EventKind::Compact`](crate::EventKind::Compact).
    pub compact_events: &'static [&'static str],
    /// Native events known to serve [`EventKind::Activity`](crate::EventKind::Activity); an unknown one serves it too.
    pub activity_events: &'static [&'static str],
    /// Sources of a start that stand inside a running sitting and are no attachment.
    pub mark_sources: &'static [&'static str],
    /// Environment variables that name the project's folder to a hook, in order of preference.
    pub project_variables: &'static [&'static str],
    /// Files in which the provider's hooks are declared, nearest first.
    pub configuration: &'static [Configuration],
    /// What a hook may write on its standard output.
    pub stdout: HookOutput,
}

impl Adapter {
    /// Says whether a start with `source` stands inside a running sitting and is no attachment.
    #[must_use]
    pub fn is_mark(&self, source: &str) -> bool {
        self.mark_sources.contains(&source)
    }
}

/// Names one file in which hooks are declared: a JSON object whose [`root`](Self::root) holds one list per native event name.
#[derive(Debug, PartialEq, Eq)]
pub struct Configuration {
    /// The path, relative to the project, or to the user's home folder where it begins with `~/`.
    pub path: &'static str,
    /// The key of the object that holds the events.
    pub root: &'static str,
    /// The native event names to look for in it.
    pub events: &'static [&'static str],
}

/// Says what a hook may write on its standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HookOutput {
    /// Nothing.
    None,
}

#[cfg(test)]
mod tests;
