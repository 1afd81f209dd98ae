//! What every measurement needs: the programs, a folder on the real disk, an environment that is the same everywhere.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use tempfile::TempDir;

/// What is said where a program is missing.
const BUILD: &str = "hint: cargo build --release -p majordomus-cli -p majordomus-benches";

/// The programs that are measured and a folder to do it in, removed at the end.
pub(crate) struct Bed {
    folder: TempDir,
    /// The released `majordomus`, beside this program.
    pub(crate) majordomus: PathBuf,
    /// The program that a stdio server is compared with.
    pub(crate) floor_echo: PathBuf,
    /// The program that an HTTP server is compared with.
    pub(crate) floor_http: PathBuf,
    /// By its full path, so that starting it takes no look through `PATH`.
    git: PathBuf,
}

/// What a program that ran to its end took and said.
pub(crate) struct Ran {
    /// From before it was started until it was gone.
    pub(crate) seconds: f64,
    /// What it printed.
    pub(crate) stdout: String,
    /// What it reported.
    pub(crate) stderr: String,
}

impl Bed {
    /// Finds the programs beside this one, and makes the folder below the target directory that they lie in.
    pub(crate) fn make() -> Result<Self> {
        let own = std::env::current_exe().context("cannot tell where this program lies")?;
        let programs = own.parent().context("this program lies in no folder")?;
        let beside = |name: &str| {
            let path = programs.join(name);
            ensure!(path.is_file(), "there is no {}\n{BUILD}", path.display());
            Ok(path)
        };
        let target = programs.parent().unwrap_or(programs);
        // Below `target`, because a temporary folder of the system is often in memory, where nothing is durable.
        let folder = tempfile::Builder::new().prefix("bench-").tempdir_in(target).context("cannot make a folder")?;
        for name in ["home", "tmp"] {
            fs::create_dir(folder.path().join(name)).context("cannot make a folder")?;
        }
        let majordomus = beside("majordomus")?;
        let (floor_echo, floor_http) = (beside("majordomus-floor-echo")?, beside("majordomus-floor-http")?);
        Ok(Self { folder, majordomus, floor_echo, floor_http, git: find_git()? })
    }

    /// Makes a folder.
    pub(crate) fn folder(&self, name: &str) -> Result<PathBuf> {
        let path = self.folder.path().join(name);
        fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(path)
    }

    /// Prepares a program that knows nothing of who runs this.
    pub(crate) fn command(&self, program: &Path, folder: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear().current_dir(folder);
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }
        command.env("HOME", self.folder.path().join("home")).env("TMPDIR", self.folder.path().join("tmp"));
        command
    }

    /// Prepares `git` with these arguments.
    pub(crate) fn git(&self, folder: &Path, arguments: &[&str]) -> Command {
        let mut command = self.command(&self.git, folder);
        command.args(arguments);
        command
    }

    /// Prepares `majordomus` with these arguments.
    pub(crate) fn majordomus(&self, folder: &Path, arguments: &[&str]) -> Command {
        let mut command = self.command(&self.majordomus, folder);
        command.args(arguments);
        command
    }

    /// Says what is measured where.
    pub(crate) fn describe(&self) -> String {
        let built = fs::metadata(&self.majordomus).and_then(|data| data.modified()).ok();
        let minutes = built.and_then(|built| built.elapsed().ok()).map_or(0, |age| age.as_secs() / 60);
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let disk =
            if in_memory(self.folder.path()) { "; THIS FOLDER IS IN MEMORY, durable rows mean nothing" } else { "" };
        format!(
            "{}, built {minutes} min ago; {cores} cores; load average {}{disk}\n",
            self.majordomus.display(),
            load()
        )
    }
}

/// The machine's load average over one, five and fifteen minutes.
pub(crate) fn load() -> String {
    let said = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let words: Vec<&str> = said.split(' ').take(3).collect();
    if words.is_empty() { "unknown".into() } else { words.join(" ") }
}

/// Runs a program to its end, with `input` on a standard input that is then closed.
pub(crate) fn run(command: &mut Command, input: &[u8]) -> Result<Ran> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let begun = Instant::now();
    let mut child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(input).context("a program took no input")?;
    }
    let output = child.wait_with_output().context("cannot wait for a program")?;
    let seconds = begun.elapsed().as_secs_f64();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    if !output.status.success() {
        bail!("{command:?} failed: {stderr}");
    }
    Ok(Ran { seconds, stdout, stderr })
}

fn find_git() -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join("git")).find(|git| git.is_file());
    found.context("there is no git on PATH")
}

#[cfg(target_os = "linux")]
fn in_memory(folder: &Path) -> bool {
    // The magic number of tmpfs.
    rustix::fs::statfs(folder).is_ok_and(|fs| fs.f_type == 0x0102_1994)
}

#[cfg(not(target_os = "linux"))]
fn in_memory(_folder: &Path) -> bool {
    false
}
