//! The walls: no client runs but in a network of its own that holds nothing but loopback, among processes of its own,
//! with a `/tmp` of its own and an environment that names nothing of the person who runs it.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::place::Place;

/// How long a run may take in all.
const LIMIT: Duration = Duration::from_secs(400);

/// Runs this program's `inside` within walls, until it ends or its time is over. With it ends everything it has started.
pub(crate) fn run(place: &Place, words: &[&str]) -> anyhow::Result<()> {
    let said = File::create(place.root().join("inside.txt"))?;
    // Whoever stops this program in the middle stops the client with it.
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--", "unshare"]);
    if !rustix::process::geteuid().is_root() {
        command.arg("--map-root-user");
    }
    command.args(["--net", "--pid", "--fork", "--mount-proc", "--kill-child=KILL", "--"]);
    command.arg(place.own()).arg("inside").args(words).arg(place.root());
    command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin").current_dir("/");
    command.stdin(Stdio::null()).stdout(said.try_clone()?).stderr(said).process_group(0);
    let mut child = command.spawn().context("setpriv cannot be run")?;
    let since = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            let said = fs::read_to_string(place.root().join("inside.txt")).unwrap_or_default();
            ensure!(status.success(), "{}", said.trim());
            return Ok(());
        }
        if since.elapsed() > LIMIT {
            end(&mut child);
            bail!("not over within {LIMIT:?}");
        }
        thread::park_timeout(Duration::from_millis(20));
    }
}

fn end(child: &mut Child) {
    // With unshare's own death its child dies, and with that one its whole namespace.
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
    let _ = child.wait();
}

/// Makes the walls complete from inside, and refuses where there is a way out.
pub(crate) fn enter(place: &Place) -> anyhow::Result<()> {
    ensure!(std::process::id() == 1, "this runs only in a namespace of its own");
    run_tool(Command::new("ip").args(["link", "set", "lo", "up"]))?;
    let routes = fs::read_to_string("/proc/net/route")?;
    ensure!(routes.lines().count() <= 1, "the namespace has a route, so nothing is run: {routes}");
    let routes = fs::read_to_string("/proc/net/ipv6_route").unwrap_or_default();
    let leads_out = |route: &str| route.split_whitespace().last() != Some("lo");
    ensure!(!routes.lines().any(leads_out), "the namespace has a route, so nothing is run: {routes}");
    run_tool(Command::new("mount").arg("--bind").arg(place.tmp()).arg("/tmp"))?;
    if Path::new("/run/user").is_dir() {
        run_tool(Command::new("mount").args(["-t", "tmpfs", "none", "/run/user"]))?;
    }
    Ok(())
}

fn run_tool(command: &mut Command) -> anyhow::Result<()> {
    let output = command.output().with_context(|| format!("{} cannot be run", command.get_program().display()))?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(())
}

/// Whether a process is there and more than what its parent has not asked for yet.
pub(crate) fn lives(pid: i32) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    let state = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().next());
    !matches!(state, Some("Z" | "X") | None)
}

/// The processes of this namespace besides this one, by their command lines.
pub(crate) fn others() -> Vec<String> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let words = pids.filter(|pid| *pid != 1 && lives(*pid)).map(|pid| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&words).replace('\0', " ").trim().to_owned()
    });
    words.collect()
}
