//! Every environment variable that is read, by whom and what for: `docs/reference/environment.md` is made of this.

use std::ffi::OsString;

/// Stands for `--grace-seconds`.
pub(crate) const GRACE_SECONDS: &str = "MAJORDOMUS_GRACE_SECONDS";
/// Stands for `--idle-seconds`.
pub(crate) const IDLE_SECONDS: &str = "MAJORDOMUS_IDLE_SECONDS";
/// Stands for `--episode-handle`; a command line can be seen by everybody on the machine.
pub(crate) const EPISODE_HANDLE: &str = "MAJORDOMUS_EPISODE_HANDLE";
/// Stands for `--allow-host`, separated by commas.
pub(crate) const ALLOWED_HOSTS: &str = "MAJORDOMUS_ALLOWED_HOSTS";
/// Stands for `--allow-origin`, separated by commas.
pub(crate) const ALLOWED_ORIGINS: &str = "MAJORDOMUS_ALLOWED_ORIGINS";

/// One environment variable.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Variable {
    pub(crate) name: &'static str,
    /// Who reads it.
    pub(crate) read_by: &'static str,
    /// What it says.
    pub(crate) says: &'static str,
}

/// The variables, ours first. Those by which providers name a project's folder or a conversation, and by which their hooks are
/// told apart, are declared in `share/providers.yaml`.
pub(crate) const VARIABLES: &[Variable] = &[
    Variable {
        name: GRACE_SECONDS,
        read_by: "every command with `--grace-seconds`",
        says: "How long an episode waits for its client after the connection was lost, in whole seconds from 1; 900 where \
               it is not set. The flag goes before it.",
    },
    Variable {
        name: IDLE_SECONDS,
        read_by: "every command with `--idle-seconds`",
        says: "How long an episode of hooks waits for their next event, in whole seconds from 1; what the provider \
               declares where it is not set. The flag goes before it.",
    },
    Variable {
        name: EPISODE_HANDLE,
        read_by: "every command with `--episode-handle`",
        says: "The handle that `majordomus episodes attach` gave. It is a secret, and everybody on the machine can see \
               a command line, so it belongs here rather than there. The flag goes before it.",
    },
    Variable {
        name: ALLOWED_HOSTS,
        read_by: "`majordomus serve`, `majordomus mcp`",
        says: "Hosts under which a proxy forwards to this server, separated by commas: `tools.example.com`. The flag \
               `--allow-host` goes before it.",
    },
    Variable {
        name: ALLOWED_ORIGINS,
        read_by: "`majordomus serve`, `majordomus mcp`",
        says: "Origins whose pages may call this server, separated by commas: `https://tools.example.com`. The flag \
               `--allow-origin` goes before it.",
    },
    Variable {
        name: "XDG_STATE_HOME",
        read_by: "every command in a repository",
        says: "The folder below which state is kept where the repository's git directory cannot be written.",
    },
    Variable {
        name: "XDG_CONFIG_HOME",
        read_by: "`majordomus connect`, `majordomus capture status`, `majordomus doctor`",
        says: "The folder that stands for `.config` in the home folder, where a client keeps its settings below that.",
    },
    Variable {
        name: "HOME",
        read_by: "every command in a repository",
        says: "Stands for `XDG_STATE_HOME` with `.local/state` below it; `capture status` and `connect` also look \
               below it for clients and their settings.",
    },
    Variable {
        name: "PATH",
        read_by: "every command in a repository",
        says: "Where git is found, and by `connect` the clients and the name under which this program stays to be found.",
    },
    Variable {
        name: "TMPDIR",
        read_by: "`majordomus capture status`, `majordomus doctor`, `majordomus demo`, `majordomus connect`",
        says: "Where the throwaway repository is made; a program that lies there is not declared to any client.",
    },
    Variable {
        name: "CARGO_TARGET_DIR",
        read_by: "the launcher `bin/majordomus-mcp`",
        says: "Where the released binary is built and found; `target` beside the sources where it is not set.",
    },
];

/// The value of a variable; an empty one counts as none.
pub(crate) fn value(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// The same as text; one that is not UTF-8 says nothing.
pub(crate) fn text(name: &str) -> Option<String> {
    value(name)?.into_string().ok()
}

#[cfg(test)]
mod tests;
