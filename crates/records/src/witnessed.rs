//! What a hook sees of the client that runs it: its process, and the terminal that it works in.
//!
//! Evidence and never a verdict: a client that is still running when its sitting ends may have been told to, and one that is
//! gone may have been left on purpose. It also tells apart two processes of one client in the same conversation.

use serde::{Deserialize, Serialize};

/// A client's process: its number alone would be another's one day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientProcess {
    /// Its number.
    pub pid: u32,
    /// When it started, in the kernel's ticks since boot.
    pub started: u64,
    /// The hash of the boot's id, as in a [`Stamp`](crate::clock::Stamp).
    pub boot: String,
    /// The device number of the terminal that it works in; `None` where it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal: Option<u32>,
}

impl ClientProcess {
    /// Finds the client of the process `pid`, which it started through any number of shells: the first ancestor that is
    /// none. `None` where it has gone already, so that the process is the system's own by now, or where that cannot be told.
    #[must_use]
    pub fn above(pid: u32, boot: &str) -> Option<Self> {
        let mut stat = Stat::of(pid)?;
        for _ in 0..SHELLS_MOST {
            let pid = stat.parent;
            stat = Stat::of(pid)?;
            if is_among(&SYSTEM, &stat.name) {
                return None;
            }
            if !is_among(&SHELLS, &stat.name) {
                return Some(Self { pid, started: stat.started, boot: boot.into(), terminal: stat.terminal });
            }
        }
        None
    }

    /// Whether both are the same process, whatever terminal it has by now.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        (self.pid, self.started, &self.boot) == (other.pid, other.started, &other.boot)
    }

    /// Whether it is running.
    #[must_use]
    pub fn is_running(&self, boot: &str) -> bool {
        self.boot == boot && Stat::of(self.pid).is_some_and(|stat| stat.started == self.started && !stat.is_dead)
    }

    /// Whether the terminal that it had is still there; `None` where it had none.
    #[must_use]
    pub fn has_terminal(&self, boot: &str) -> Option<bool> {
        let terminal = self.terminal?;
        // A terminal that was closed is taken from every process that had it.
        let lost = self.is_running(boot) && Stat::of(self.pid).is_some_and(|stat| stat.terminal != Some(terminal));
        Some(self.boot == boot && !lost && device(terminal).is_none_or(|path| std::path::Path::new(&path).exists()))
    }
}

/// How many shells may stand between a client and its hook.
const SHELLS_MOST: usize = 8;

/// What runs a command for somebody else.
const SHELLS: [&str; 12] =
    ["sh", "bash", "dash", "zsh", "fish", "ksh", "mksh", "ash", "busybox", "env", "timeout", "nice"];

/// What takes a process on whose parent has gone.
const SYSTEM: [&str; 7] = ["systemd", "init", "tini", "dumb-init", "docker-init", "catatonit", "s6-svscan"];

fn is_among(names: &[&str], name: &str) -> bool {
    names.contains(&name)
}

/// What the kernel says of a process (proc(5), `/proc/<pid>/stat`).
struct Stat {
    name: String,
    parent: u32,
    terminal: Option<u32>,
    started: u64,
    is_dead: bool,
}

impl Stat {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn of(pid: u32) -> Option<Self> {
        Self::parse(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// Elsewhere the kernel is not asked, and nothing is known.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    fn of(_pid: u32) -> Option<Self> {
        None
    }

    /// The name stands in parentheses and may hold anything, so the fields are counted from the last of them.
    fn parse(text: &str) -> Option<Self> {
        let (before, after) = text.rsplit_once(')')?;
        let name = before.split_once('(')?.1.to_owned();
        let fields: Vec<&str> = after.split_ascii_whitespace().collect();
        let terminal: i32 = fields.get(4)?.parse().ok()?;
        Some(Self {
            name,
            parent: fields.get(1)?.parse().ok()?,
            terminal: u32::try_from(terminal).ok().filter(|terminal| *terminal != 0),
            started: fields.get(19)?.parse().ok()?,
            is_dead: matches!(fields.first(), Some(&("Z" | "X"))),
        })
    }
}

/// The path of a pseudo terminal; `None` for a device of another kind, which does not go away.
fn device(terminal: u32) -> Option<String> {
    let (major, minor) = ((terminal >> 8) & 0xfff, (terminal & 0xff) | ((terminal >> 12) & 0xfff00));
    (136..=143).contains(&major).then(|| format!("/dev/pts/{}", (major - 136) * 256 + minor))
}

#[cfg(test)]
mod tests;
