//! A repository, a home and a state folder that nobody else knows.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{Client, Record, Running, Said, Server, majordomus, root, state_of, until};

/// Where records lie in a worktree.
const RECORDS: &str = ".ai/repo/sessions";

/// Everything that a test touches, in one folder that is gone afterwards.
#[derive(Debug)]
pub struct World {
    folder: TempDir,
    repository: PathBuf,
}

impl World {
    /// Makes a repository with one commit on `main`.
    #[must_use]
    pub fn new() -> Self {
        let world = Self::unborn();
        world.commit("README.md", "Begin");
        world
    }

    /// Makes a repository without a commit.
    #[must_use]
    pub fn unborn() -> Self {
        let world = Self::plain();
        world.git(&["init", "--quiet", "--initial-branch=main"]);
        world
    }

    /// Makes a folder that is in no repository.
    ///
    /// # Panics
    /// Where folders cannot be made.
    #[must_use]
    pub fn plain() -> Self {
        let folder = tempfile::Builder::new().prefix("majordomus case ü ").tempdir().expect("a folder can be made");
        // The real path: where folders for tests are links, what is printed would be another path than what was given.
        let root = fs::canonicalize(folder.path()).expect("the folder is there");
        for below in ["home", "state", "tmp", "work"] {
            fs::create_dir(root.join(below)).expect("a folder can be made");
        }
        Self { repository: root.join("work"), folder }
    }

    /// The folder that holds everything.
    ///
    /// # Panics
    /// Never, while the world is there.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        fs::canonicalize(self.folder.path()).expect("the folder is there")
    }

    /// The repository's worktree.
    #[must_use]
    pub fn repository(&self) -> &Path {
        &self.repository
    }

    /// A path below the repository's worktree.
    #[must_use]
    pub fn path(&self, below: &str) -> PathBuf {
        self.repository.join(below)
    }

    /// Writes a file below the repository's worktree.
    ///
    /// # Panics
    /// Where it cannot be written.
    pub fn write(&self, below: &str, text: &str) {
        fs::write(self.path(below), text).expect("the worktree can be written");
    }

    /// The state folder of the main checkout.
    #[must_use]
    pub fn state(&self) -> PathBuf {
        self.repository.join(".git/majordomus/main")
    }

    /// Whether nothing of any episode was ever written: all that a server keeps of itself is where it answers.
    #[must_use]
    pub fn nothing_recorded(&self) -> bool {
        let state = self.state();
        let kept = ["open", "ended", "bad", "holders", "beat.json"];
        !self.path(".ai").exists() && !kept.iter().any(|kept| state.join(kept).exists())
    }

    /// The folder for temporary files.
    #[must_use]
    pub fn temporary(&self) -> PathBuf {
        self.folder().join("tmp")
    }

    /// Prepares a program that runs in the repository and knows of nothing outside this world but the PATH.
    #[must_use]
    pub fn program(&self, program: impl AsRef<OsStr>) -> Command {
        let folder = self.folder();
        let mut command = Command::new(program);
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", folder.join("home")).env("XDG_STATE_HOME", folder.join("state"));
        command.env("TMPDIR", folder.join("tmp"));
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
        command.current_dir(&self.repository).stdin(Stdio::null());
        command
    }

    /// Runs git in the repository and returns what it printed, without the last newline.
    pub fn git(&self, arguments: &[&str]) -> String {
        self.git_in(&self.repository, arguments)
    }

    /// Runs git in a folder.
    ///
    /// # Panics
    /// Where it fails.
    pub fn git_in(&self, folder: &Path, arguments: &[&str]) -> String {
        let mut git = self.program("git");
        for who in ["AUTHOR", "COMMITTER"] {
            git.env(format!("GIT_{who}_NAME"), "Test").env(format!("GIT_{who}_EMAIL"), "test@example.org");
        }
        // Looking must not change what is looked at.
        git.args(["--no-optional-locks", "-c", "protocol.file.allow=always"]).args(arguments).current_dir(folder);
        let output = git.output().expect("git can be run");
        assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim_end_matches('\n').into()
    }

    /// Commits a file and returns the commit's id.
    pub fn commit(&self, file: &str, subject: &str) -> String {
        self.commit_in(&self.repository, file, subject)
    }

    /// Commits a file in a checkout and returns the commit's id.
    ///
    /// # Panics
    /// Where it cannot be written.
    pub fn commit_in(&self, checkout: &Path, file: &str, subject: &str) -> String {
        fs::write(checkout.join(file), format!("{subject}\n")).expect("the worktree can be written");
        self.git_in(checkout, &["add", "--", file]);
        self.git_in(checkout, &["commit", "--quiet", "--message", subject]);
        self.git_in(checkout, &["rev-parse", "HEAD"])
    }

    /// What `git status` says, ignored and untracked files included.
    #[must_use]
    pub fn status(&self) -> String {
        self.git(&["status", "--porcelain=v2", "--branch", "--untracked-files=all", "--ignored"])
    }

    /// Prepares `majordomus` in the repository. `mcp` takes any free port beside stdio unless it is told one or none: the
    /// usual one is somebody's, or another test's.
    #[must_use]
    pub fn majordomus(&self, arguments: &[&str]) -> Command {
        let mut command = self.program(majordomus());
        command.args(arguments);
        if arguments.first() == Some(&"mcp")
            && !["--http-port", "--standalone"].iter().any(|own| arguments.contains(own))
        {
            command.args(["--http-port", "0"]);
        }
        command
    }

    /// Runs `majordomus` in the repository with nothing on its standard input.
    #[must_use]
    pub fn run(&self, arguments: &[&str]) -> Said {
        Running::start_with(&mut self.majordomus(arguments)).wait()
    }

    /// Prepares `majordomus capture session`.
    #[must_use]
    pub fn capture(&self, provider: &str, event: &str) -> Command {
        self.majordomus(&["capture", "session", "--provider", provider, "--event", event])
    }

    /// Runs the hook of Claude Code for an event, in the repository, and returns the one line that it reports.
    pub fn hook(&self, event: &str, payload: &Value) -> String {
        feed(&mut self.capture("claude-code", event), payload.to_string().as_bytes()).hook().to_owned()
    }

    /// Starts a server and opens its session.
    #[must_use]
    pub fn client(&self) -> Client {
        let mut client = self.server(&["mcp"]);
        client.initialize();
        client
    }

    /// Starts a server and says nothing yet.
    #[must_use]
    pub fn server(&self, arguments: &[&str]) -> Client {
        Client::start(&mut self.majordomus(arguments))
    }

    /// Starts `majordomus serve` at a free port, with more arguments.
    #[must_use]
    pub fn serve(&self, more: &[&str]) -> Server {
        Server::start(self.majordomus(&["serve", "--port", "0"]).args(more))
    }

    /// What `majordomus episodes --json` says.
    #[must_use]
    pub fn episodes(&self) -> Value {
        self.run(&["episodes", "--json"]).json()
    }

    /// Waits until what is open says that an episode waits for its client: where its server lives on, that is told a moment after
    /// the server has seen it.
    pub fn until_detached(&self, external_id: &str) {
        until("its going is told", || (state_of(&self.episodes(), external_id) == "detached").then_some(()));
    }

    /// Finishes what waits, as any command does, and reads all records, the oldest first.
    ///
    /// # Panics
    /// Where something is still waiting in the end.
    #[must_use]
    pub fn records(&self) -> Vec<Record> {
        self.records_with(&[])
    }

    /// [`World::records`] with more arguments for `sessions list`.
    ///
    /// # Panics
    /// Where something is still waiting in the end.
    #[must_use]
    pub fn records_with(&self, more: &[&str]) -> Vec<Record> {
        let arguments: Vec<&str> =
            ["sessions", "list", "--json", "--limit", "1000"].iter().chain(more).copied().collect();
        // One command finishes only so many, and a server may finish another one meanwhile.
        let listed = until("every ended session has its record, and the list names what is there", || {
            let listed = self.run(&arguments).json();
            let count = listed["sessions"].as_array().map(Vec::len);
            (self.logs("ended").is_empty() && count == Some(self.record_files().len())).then_some(listed)
        });
        let mut records: Vec<Record> = listed["sessions"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|session| {
                let record = Record::read(&self.repository, session["path"].as_str().expect("a path"));
                assert_eq!(record["session_id"], session["session_id"]);
                record
            })
            .collect();
        records.reverse();
        records
    }

    /// The only record that there is.
    ///
    /// # Panics
    /// Where there is none or another.
    #[must_use]
    pub fn record(&self) -> Record {
        let mut records = self.records();
        assert_eq!(records.len(), 1, "{records:#?}");
        records.remove(0)
    }

    /// The record files in the worktree, by their paths relative to it.
    #[must_use]
    pub fn record_files(&self) -> Vec<PathBuf> {
        record_files(&self.repository)
    }

    /// The logs in `open`, `ended` or `bad` of the main checkout.
    #[must_use]
    pub fn logs(&self, folder: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.state().join(folder)).into_iter().flatten();
        let paths = entries.map(|entry| entry.expect("a folder can be read to its end").path());
        let mut logs: Vec<PathBuf> =
            paths.filter(|path| path.extension().is_some_and(|extension| extension == "jsonl")).collect();
        logs.sort();
        logs
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // A server goes on for those who call over HTTP until they have been silent for long, and nobody comes here again.
        for pid in self.processes() {
            if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
                // It may have ended by itself.
                let _ = kill_process(pid, Signal::KILL);
            }
        }
    }
}

impl Default for World {
    fn default() -> Self {
        Self::new()
    }
}

/// Runs a command with an input and waits for its end.
#[must_use]
pub fn feed(command: &mut Command, input: &[u8]) -> Said {
    let mut process = Running::start(command);
    process.feed(input);
    process.wait()
}

/// The record files in a worktree, half-written ones included.
#[must_use]
pub fn record_files(worktree: &Path) -> Vec<PathBuf> {
    let records = worktree.join(RECORDS);
    if !records.is_dir() {
        return Vec::new();
    }
    let found = crate::files(&records, &[]).into_keys().filter(|path| records.join(path).is_file());
    found.map(|path| Path::new(RECORDS).join(path)).collect()
}

/// A payload as Claude Code sends it, with fields of it set anew; one that is set to null is taken out.
///
/// # Panics
/// Where there is no such payload.
#[must_use]
pub fn provider_payload(name: &str, fields: &Value) -> Value {
    let path = root().join("test/fixtures/providers/claude-code").join(format!("{name}.json"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut payload: Value = serde_json::from_str(&text).expect("a payload is JSON");
    for (field, value) in fields.as_object().expect("fields are an object") {
        if value.is_null() {
            payload.as_object_mut().expect("a payload is an object").remove(field);
        } else {
            payload[field] = value.clone();
        }
    }
    payload
}

/// A payload of the given session.
#[must_use]
pub fn payload_of(name: &str, session_id: &str) -> Value {
    provider_payload(name, &json!({ "session_id": session_id }))
}
