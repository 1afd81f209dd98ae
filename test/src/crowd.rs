//! Several processes in one world: who of them serves the others, which of them live, and where they listen.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::{Client, World, until};

/// What the server of a checkout tells those that look for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// The number of its process.
    pub pid: u32,
    /// Where it answers over HTTP.
    pub url: String,
    /// Which server it is.
    pub instance: String,
    /// Where it answers other processes of its user.
    pub socket: PathBuf,
}

/// Where processes of a world listen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listening {
    /// Those that listen anywhere.
    pub processes: BTreeSet<u32>,
    /// The ports on which they listen.
    pub ports: BTreeSet<u16>,
    /// The paths on which they listen, as these were when they began to.
    pub sockets: BTreeSet<PathBuf>,
}

impl World {
    /// What the server of the main checkout tells; `None` where nobody tells anything that can be read.
    #[must_use]
    pub fn told(&self) -> Option<Told> {
        told_in(&self.state())
    }

    /// Starts the client whose process serves the others, and waits until these can find it.
    #[must_use]
    pub fn holder(&self) -> Client {
        let client = self.client();
        // What a killed one told stands there until the next one tells.
        until("it says where it answers", || self.told().filter(|told| told.pid == client.pid()));
        client
    }

    /// Starts a client that another process serves.
    ///
    /// # Panics
    /// Where it serves itself.
    #[must_use]
    pub fn bridge(&self) -> Client {
        let told = self.told().expect("somebody serves");
        let mut client = self.client();
        // It is served by the time that it is answered.
        client.ping();
        assert_ne!(told.pid, client.pid());
        assert!(!self.listening().processes.contains(&client.pid()), "a bridge listens nowhere");
        client
    }

    /// Starts a client that, once it is lost, is waited for no longer than a second.
    #[must_use]
    pub fn impatient(&self) -> Client {
        let mut client = self.server(&["mcp", "--grace-seconds", "1"]);
        client.initialize();
        client
    }

    /// The processes of the binary under test that belong to this world, wherever they are now.
    #[must_use]
    pub fn processes(&self) -> BTreeSet<u32> {
        let home = format!("HOME={}", self.folder().join("home").display());
        let ours = |pid: &u32| {
            let program = fs::read_link(format!("/proc/{pid}/exe")).ok();
            let named = program
                .as_deref()
                .and_then(Path::file_name)
                .is_some_and(|name| name.as_bytes().starts_with(b"majordomus"));
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            named && environment.split(|byte| *byte == 0).any(|variable| variable == home.as_bytes())
        };
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(ours).collect()
    }

    /// Where this world's processes listen.
    #[must_use]
    pub fn listening(&self) -> Listening {
        let mut found = Listening::default();
        let (ports, sockets) = (listening_ports(), listening_sockets());
        for pid in self.processes() {
            for inode in inodes(pid) {
                if let Some((_, port)) = ports.iter().find(|(listens, _)| *listens == inode) {
                    found.ports.insert(*port);
                    found.processes.insert(pid);
                }
                if let Some((_, path)) = sockets.iter().find(|(listens, _)| *listens == inode) {
                    found.sockets.insert(path.clone());
                    found.processes.insert(pid);
                }
            }
        }
        found
    }

    /// Waits until no process of this world lives and nothing of a server is left.
    ///
    /// # Panics
    /// Where something stays.
    pub fn is_quiet_after(&self, told: &Told) {
        until("every process has gone", || self.processes().is_empty().then_some(()));
        assert!(!told.socket.exists(), "{} is left behind", told.socket.display());
        assert!(!self.state().join("server.json").exists(), "nobody is sent to where nobody answers");
    }
}

/// What the server whose state folder that is tells.
#[must_use]
pub fn told_in(state: &Path) -> Option<Told> {
    let told: Value = serde_json::from_slice(&fs::read(state.join("server.json")).ok()?).ok()?;
    let text = |field: &str| told[field].as_str().map(str::to_owned);
    Some(Told {
        pid: u32::try_from(told["pid"].as_u64()?).ok()?,
        url: text("url")?,
        instance: text("instance")?,
        socket: text("socket")?.into(),
    })
}

/// How long a process has worked so far, in hundredths of a second.
///
/// # Panics
/// Where it is gone.
#[must_use]
pub fn worked(pid: u32) -> u64 {
    let fields = fields(Path::new(&format!("/proc/{pid}/stat"))).expect("the process lives");
    fields[11].parse::<u64>().expect("a count") + fields[12].parse::<u64>().expect("a count")
}

/// Whether a process is stopped, with all its threads: they stop one after another.
#[must_use]
pub fn is_stopped(pid: u32) -> bool {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let states: Vec<bool> =
        threads.filter_map(|thread| fields(&thread.path().join("stat"))).map(|fields| fields[0] == "T").collect();
    !states.is_empty() && states.into_iter().all(|stopped| stopped)
}

/// What the system says of a process or thread after its name.
fn fields(stat: &Path) -> Option<Vec<String>> {
    let text = fs::read_to_string(stat).ok()?;
    let (_, rest) = text.rsplit_once(") ")?;
    Some(rest.split(' ').map(str::to_owned).collect())
}

/// The sockets that a process has open, by what the system calls them.
fn inodes(pid: u32) -> Vec<u64> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let links = entries.filter_map(|entry| fs::read_link(entry.path()).ok());
    links.filter_map(|link| link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()).collect()
}

fn table(name: &str) -> Vec<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/net/{name}")).unwrap_or_default();
    text.lines().skip(1).map(|line| line.split_whitespace().map(str::to_owned).collect()).collect()
}

fn listening_ports() -> Vec<(u64, u16)> {
    let lines = table("tcp").into_iter().chain(table("tcp6"));
    let listening = lines.filter(|line| line.get(3).is_some_and(|state| state == "0A"));
    let read = |line: Vec<String>| {
        let (_, port) = line.get(1)?.rsplit_once(':')?;
        Some((line.get(9)?.parse().ok()?, u16::from_str_radix(port, 16).ok()?))
    };
    listening.filter_map(read).collect()
}

fn listening_sockets() -> Vec<(u64, PathBuf)> {
    let listening = table("unix").into_iter().filter(|line| line.get(3).is_some_and(|flags| flags == "00010000"));
    listening.filter_map(|line| Some((line.get(6)?.parse().ok()?, line.get(7)?.into()))).collect()
}
