//! Hooks as an agent runs them, and the floor that they are compared with.

use std::cell::Cell;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::bed::{Bed, Ran, run};
use crate::pairs::seconds;

/// How many ids were made in this run.
static IDS: AtomicU32 = AtomicU32::new(0);

/// Claude Code's hooks in one repository.
pub(crate) struct Hooks<'a> {
    bed: &'a Bed,
    repository: &'a Path,
}

impl<'a> Hooks<'a> {
    /// Hooks that run in `repository`.
    pub(crate) fn new(bed: &'a Bed, repository: &'a Path) -> Self {
        Self { bed, repository }
    }

    /// An id for another sitting, which no sitting had before.
    pub(crate) fn fresh(&self) -> String {
        format!("5b0d7c1e-9a52-4c1e-8d0f-{:012}", IDS.fetch_add(1, Ordering::Relaxed))
    }

    /// Runs the hook of a start, and makes sure that it opened something.
    pub(crate) fn start(&self, id: &str) -> Result<Ran> {
        let ran = run(&mut self.bed.majordomus(self.repository, &arguments("start")), &self.payload(id, "start"))?;
        ensure!(ran.stderr.contains(" opened at "), "a start opened nothing: {}", ran.stderr);
        Ok(ran)
    }

    /// Starts the hook of an end, without waiting for it.
    pub(crate) fn begin_end(&self, id: &str) -> Result<Child> {
        let mut command = self.bed.majordomus(self.repository, &arguments("end"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().context("cannot start a hook")?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(&self.payload(id, "end")).context("a hook took no input")?;
        }
        Ok(child)
    }

    /// Checks what the hook of an end reported, and names the record, which may be for somebody else to publish.
    pub(crate) fn record_of(&self, stderr: &[u8]) -> Result<PathBuf> {
        let said = String::from_utf8_lossy(stderr);
        let record = said.trim().rsplit_once(" into ").map(|(_, record)| self.repository.join(record));
        record.with_context(|| format!("an end closed nothing: {said}"))
    }

    /// What a hook is handed.
    pub(crate) fn payload(&self, id: &str, event: &str) -> Vec<u8> {
        let (name, key, word) = match event {
            "start" => ("SessionStart", "source", "startup"),
            _ => ("SessionEnd", "reason", "prompt_input_exit"),
        };
        let transcript = format!("/home/somebody/.claude/projects/a-project/{id}.jsonl");
        let payload = json!({
            "session_id": id, "transcript_path": transcript, "cwd": self.repository, "hook_event_name": name, key: word,
        });
        payload.to_string().into_bytes()
    }
}

/// The command line of a hook.
pub(crate) fn arguments(event: &str) -> [&str; 6] {
    ["capture", "session", "--provider", "claude-code", "--event", event]
}

/// The least that a hook could be: asking git where HEAD stands, and one file of 200 bytes that is durable with its
/// name.
pub(crate) struct Floor<'a> {
    bed: &'a Bed,
    repository: &'a Path,
    folder: PathBuf,
    next: Cell<u32>,
}

/// What the floor of a hook is, for the table.
pub(crate) const FLOOR: &str = "git rev-parse HEAD + one durable new file";

impl<'a> Floor<'a> {
    /// The floor of hooks in `repository`.
    pub(crate) fn new(bed: &'a Bed, repository: &'a Path) -> Result<Self> {
        let folder = repository.join(".git/floor");
        fs::create_dir_all(&folder).context("cannot make a folder")?;
        Ok(Self { bed, repository, folder, next: Cell::new(0) })
    }

    /// Does that once; returns the seconds that it took.
    pub(crate) fn once(&self) -> Result<f64> {
        let asked = run(&mut self.bed.git(self.repository, &["rev-parse", "HEAD"]), b"")?;
        ensure!(asked.stdout.trim().len() == 40, "git does not say where HEAD stands: {}", asked.stdout);
        let (written, done) = seconds(|| self.durable_file());
        done.context("cannot write a file")?;
        Ok(asked.seconds + written)
    }

    fn durable_file(&self) -> std::io::Result<()> {
        let number = self.next.replace(self.next.get() + 1);
        let mut file = fs::File::create_new(self.folder.join(format!("{number}.jsonl")))?;
        file.write_all(&[b'x'; 200])?;
        file.sync_all()?;
        fs::File::open(&self.folder)?.sync_all()
    }
}
