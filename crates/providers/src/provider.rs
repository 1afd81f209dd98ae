//! What is declared of a provider.

use crate::EventKind;

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
    /// What shows what its end reasons mean, with its sources.
    pub ends_evidence: &'static str,
    /// The end reasons that are only sent when somebody ended the sitting on purpose.
    pub deliberate: &'static [&'static str],
    /// The end reasons that are only sent when a run without a person came to its own end.
    pub finished: &'static [&'static str],
    /// The end reasons that say that the person went on in another sitting; this one may be resumed.
    pub switch: &'static [&'static str],
    /// Whether an end may come long after the sitting was over, so that it says nothing of when.
    pub late_end: bool,
    /// The seconds without any event after which an episode of this provider's hooks is taken for interrupted.
    pub idle_seconds: u64,
    /// The names of its programs, by any of which on the `PATH` it is found on a machine.
    pub programs: &'static [&'static str],
    /// Folders of its own, relative to the project and to the home folder, by any of which it is found too.
    pub folders: &'static [&'static str],
    /// What cannot be had of it and why, each with its sources.
    pub limits: &'static [&'static str],
    /// By what else its conversations can be known; `None` where nothing is.
    pub identity: Option<&'static Identity>,
    /// Where it looks for MCP servers; `None` where that is not known.
    pub mcp: Option<&'static Mcp>,
    /// What only its own payloads and hook processes have; `None` where nothing is known.
    pub signs: Option<&'static Signs>,
    /// How its payloads are spelled; `None` where no hook of it is read.
    pub adapter: Option<&'static Adapter>,
}

impl Provider {
    /// Says whether `reason` is only sent when somebody ended the sitting on purpose. Exact: another case is another reason.
    #[must_use]
    pub fn is_deliberate(&self, reason: &str) -> bool {
        self.deliberate.contains(&reason)
    }

    /// Says whether `reason` is only sent when a run without a person came to its own end.
    #[must_use]
    pub fn is_finished(&self, reason: &str) -> bool {
        self.finished.contains(&reason)
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
    /// Fields that carry the working directory, or a list whose first text it is.
    pub cwd: &'static [&'static str],
    /// Fields that say why a sitting starts.
    pub source: &'static [&'static str],
    /// Fields that say why a sitting ends.
    pub reason: &'static [&'static str],
    /// Fields that carry the native event name.
    pub event_name: &'static [&'static str],
    /// Fields that say what a compaction was triggered by.
    pub trigger: &'static [&'static str],
    /// Fields that only an event inside a subagent has.
    pub subagent: &'static [&'static str],
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
    /// The triggers by which context is really discarded; where none are named, by any.
    pub compact_triggers: &'static [&'static str],
    /// Ids of other providers that load the files in which its hooks are declared, the easiest to tell first.
    pub also_read_by: &'static [&'static str],
    /// Environment variables that name the project's folder to a hook, in order of preference.
    pub project_variables: &'static [&'static str],
    /// What a hook may write on its standard output.
    pub stdout: HookOutput,
    /// Files in which its hooks are declared, nearest first.
    pub files: &'static [ConfigFile],
    /// How one hook is spelled in them.
    pub entry: HookEntry,
    /// The hooks to declare.
    pub written: &'static [Written],
    /// What a person has to do before declared hooks run; `None` where nothing is known.
    pub trust: Option<&'static str>,
    /// What shows each part of this, by its name, with its sources.
    pub claims: &'static [(&'static str, &'static str)],
}

impl Adapter {
    /// Says whether a start with `source` stands inside a running sitting and is no attachment.
    #[must_use]
    pub fn is_mark(&self, source: &str) -> bool {
        self.mark_sources.contains(&source)
    }
}

/// Says what only a provider's own payloads and hook processes have, so that [`attribute`](crate::attribute) can tell them.
#[derive(Debug, PartialEq, Eq)]
pub struct Signs {
    /// Shapes that only its payloads have: any of them shows that one is its own, whoever's hook ran.
    pub shapes: &'static [Shape],
    /// Environment variables that only its hooks have.
    pub variables: &'static [&'static str],
    /// The environment variable that names the sitting to its own hooks.
    pub session_variable: Option<&'static str>,
    /// What shows each part of this, by its name, with its sources.
    pub claims: &'static [(&'static str, &'static str)],
}

/// Describes payloads by the names of their fields, and by the values of some.
#[derive(Debug, PartialEq, Eq)]
pub struct Shape {
    /// Fields that all of them have, if only with null.
    pub present: &'static [&'static str],
    /// Fields that none of them has.
    pub absent: &'static [&'static str],
    /// Fields whose text is exactly one of these.
    pub values: &'static [(&'static str, &'static [&'static str])],
}

/// Names a file of settings and a place in it.
#[derive(Debug, PartialEq, Eq)]
pub struct ConfigFile {
    /// The path, relative to the project, or to the person's home folder where it begins with `~/`.
    pub path: &'static str,
    /// How it is written.
    pub format: Format,
    /// The keys that lead from its root to the object that holds hooks by event, or servers by name.
    pub at: &'static [&'static str],
    /// Whether it is the one to write to, of its project or its person.
    pub write: bool,
}

impl ConfigFile {
    /// Says whether it is the person's, for all projects.
    #[must_use]
    pub fn is_users(&self) -> bool {
        self.path.starts_with("~/")
    }
}

/// Names how a file of settings is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// JSON, possibly with comments and trailing commas.
    Json,
    /// TOML.
    Toml,
    /// YAML.
    Yaml,
}

/// Says how one hook is spelled in a file of settings.
#[derive(Debug, PartialEq, Eq)]
pub struct HookEntry {
    /// What stands under an event's name.
    pub shape: EntryShape,
    /// The member that holds the command line.
    pub command_key: &'static str,
    /// Further members, with their values as JSON.
    pub members: &'static [(&'static str, &'static str)],
    /// The member that holds the time limit.
    pub timeout_key: &'static str,
    /// Its unit.
    pub timeout_unit: TimeUnit,
    /// The time limit to declare, in seconds.
    pub timeout_seconds: u32,
    /// Members that the whole file must have, with their values as JSON.
    pub document: &'static [(&'static str, &'static str)],
}

/// Names what stands under an event's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EntryShape {
    /// A list of groups, each with a list `hooks` of entries.
    Nested,
    /// A list of entries.
    Flat,
}

/// Names a unit of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimeUnit {
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Milliseconds,
}

/// Names a hook to declare.
#[derive(Debug, PartialEq, Eq)]
pub struct Written {
    /// The native event name.
    pub name: &'static str,
    /// What it reports.
    pub event: EventKind,
    /// The first version that is known to know it; `None` where every version in use does, or none is named anywhere.
    pub since: Option<&'static str>,
}

/// Says by what a conversation of a provider can be known besides its hooks.
#[derive(Debug, PartialEq, Eq)]
pub struct Identity {
    /// What it calls itself when it connects as an MCP client.
    pub client_names: &'static [&'static str],
    /// The environment variable that names the sitting to an MCP server that it starts.
    pub server_variable: Option<&'static str>,
    /// The one that names it to a command that its agent runs.
    pub shell_variable: Option<&'static str>,
    /// Keys that name it in `_meta` of a tool call.
    pub meta: &'static [&'static str],
    /// What shows each part of this, by its name, with its sources.
    pub claims: &'static [(&'static str, &'static str)],
}

/// Says where a provider looks for MCP servers.
#[derive(Debug, PartialEq, Eq)]
pub struct Mcp {
    /// Files in which they are declared by name.
    pub files: &'static [ConfigFile],
    /// The member of an entry that holds the program.
    pub command_key: &'static str,
    /// Members of an entry besides that and `args`, with their values as JSON.
    pub members: &'static [(&'static str, &'static str)],
    /// What a person has to do before a declared server is started; `None` where nothing is known.
    pub approval: Option<&'static str>,
    /// What shows each part of this, by its name, with its sources.
    pub claims: &'static [(&'static str, &'static str)],
}

/// Says what a hook may write on its standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HookOutput {
    /// Nothing.
    None,
    /// A line after a compaction, which becomes part of the conversation.
    Context,
}

#[cfg(test)]
mod tests;
