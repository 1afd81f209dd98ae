//! Running a hook's line as the client would, in a throwaway repository.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::Context;
use majordomus_providers::{Adapter, EventKind, Provider};
use majordomus_records::Store;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Map, Value};

use super::super::throwaway::Throwaway;
use crate::variables;

/// What the conversation that is played is called.
const ID: &str = "majordomus-doctor";
/// How long a line may take.
const LIMIT: Duration = Duration::from_secs(5);
/// How long between two looks at a line that runs.
const PAUSE: Duration = Duration::from_millis(5);
/// The most bytes of what a line says that are read, from its end.
const MOST: i64 = 4096;

/// A conversation that is played.
pub(super) struct Trial<'a> {
    provider: &'a Provider,
    adapter: &'a Adapter,
    throwaway: Throwaway,
    store: Store,
}

impl<'a> Trial<'a> {
    /// Makes the repository.
    ///
    /// # Errors
    /// Where no temporary folder can be written.
    pub(super) fn begin(provider: &'a Provider, adapter: &'a Adapter) -> anyhow::Result<Self> {
        let throwaway = Throwaway::make()?;
        let store = throwaway.store()?;
        Ok(Self { provider, adapter, throwaway, store })
    }

    /// Runs the line that is declared for the event `native`, and looks for what it was to record.
    ///
    /// # Errors
    /// What went wrong, for a person.
    pub(super) fn run(&mut self, kind: EventKind, native: &str, line: &str, needs_home: bool) -> Result<(), String> {
        let (status, said) = self.ran(kind, native, line, needs_home).map_err(|error| format!("{error:#}"))?;
        let said = if said.is_empty() { String::new() } else { format!(": {said}") };
        match status {
            None => return Err(format!("not done after {} s{said}", LIMIT.as_secs())),
            Some(status) if !status.success() => {
                // A signal has a name here, and a code its number.
                let how = status.code().map_or_else(|| status.to_string(), |code| format!("exit code {code}"));
                return Err(format!("{how}{said}"));
            }
            Some(_) => {}
        }
        let is_recorded = match kind {
            EventKind::Start => self.is_open(),
            EventKind::End => !self.is_open() && self.has_record(),
            EventKind::Compact | EventKind::Activity => true,
        };
        if is_recorded { Ok(()) } else { Err(format!("it ran, but recorded no {kind}{said}")) }
    }

    fn is_open(&self) -> bool {
        let open = self.store.open_episodes().unwrap_or_default();
        let starts = open.iter().filter_map(|open| open.log.start.as_ref());
        let mut opened = starts.map(|start| (start.opened.provider.as_str(), start.opened.external_id.as_str()));
        opened.any(|opened| opened == (self.provider.id, ID))
    }

    fn has_record(&self) -> bool {
        // A git that is slow is no fault of the hook's.
        self.store.sweep(LIMIT);
        let records = self.store.records(None, 8).map(|page| page.records).unwrap_or_default();
        let is_ours = |provider: Option<&str>, id: Option<&str>| provider == Some(self.provider.id) && id == Some(ID);
        records.iter().any(|record| is_ours(record.provider.as_deref(), record.external_id.as_deref()))
    }

    /// Runs the line and says how it ended, if it did in time, and the last line of what it said.
    fn ran(
        &self,
        kind: EventKind,
        native: &str,
        line: &str,
        needs_home: bool,
    ) -> anyhow::Result<(Option<ExitStatus>, String)> {
        // Files, because a pipe wants somebody at its other end.
        let mut payload = tempfile::tempfile().context("cannot make a temporary file")?;
        payload
            .write_all(&self.payload(kind, native))
            .and_then(|()| payload.rewind())
            .context("cannot write a file")?;
        let mut said = tempfile::tempfile().context("cannot make a temporary file")?;
        let mut command = Command::new("sh");
        command.arg("-c").arg(line).current_dir(self.throwaway.repository());
        // What is set here may be of another repository, or of an agent that runs this.
        command.env_clear().envs(variables::value("PATH").map(|path| ("PATH", path)));
        // A line that names the home folder means the person's; nothing is written below it, since state has a place.
        let home = if needs_home { variables::value("HOME") } else { None };
        command.env("HOME", home.unwrap_or_else(|| self.throwaway.home().into()));
        command.env("XDG_STATE_HOME", self.throwaway.state()).env("TMPDIR", self.throwaway.temporary());
        let both = said.try_clone().context("cannot make a temporary file")?;
        command.stdin(payload).stdout(std::process::Stdio::null()).stderr(both);
        // Its own group, so that what it starts ends with it.
        let mut child = command.process_group(0).spawn().context("cannot run sh")?;
        let until = Instant::now() + LIMIT;
        let mut ended = child.try_wait()?;
        while ended.is_none() && Instant::now() < until {
            std::thread::sleep(PAUSE);
            ended = child.try_wait()?;
        }
        if ended.is_none() {
            if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
                // It may just have ended.
                let _ = kill_process_group(group, Signal::KILL);
            }
            let _ = child.wait();
        }
        Ok((ended, last_line(&mut said)))
    }

    /// The least that the client would say.
    fn payload(&self, kind: EventKind, native: &str) -> Vec<u8> {
        let adapter = self.adapter;
        let folder = self.throwaway.repository().to_string_lossy().into_owned();
        let (source, reason) = match kind {
            EventKind::Start => (adapter.source, &[][..]),
            EventKind::End => (&[][..], adapter.reason),
            EventKind::Compact | EventKind::Activity => (&[][..], &[][..]),
        };
        let reason_word = self.provider.deliberate.first().copied().unwrap_or("other");
        let fields = [
            (adapter.session_id, ID),
            (adapter.cwd, folder.as_str()),
            (adapter.event_name, native),
            (source, "startup"),
            (reason, reason_word),
        ];
        let named = |(names, value): (&[&str], &str)| Some(((*names.first()?).to_owned(), Value::from(value)));
        Value::Object(fields.into_iter().filter_map(named).collect::<Map<_, _>>()).to_string().into_bytes()
    }
}

fn last_line(said: &mut File) -> String {
    let mut bytes = Vec::new();
    let end = said.seek(SeekFrom::End(0)).unwrap_or(0).try_into().unwrap_or(0);
    let read = said.seek(SeekFrom::End(-MOST.min(end))).and_then(|_| said.read_to_end(&mut bytes));
    // What cannot be read is not said; the exit code is.
    drop(read);
    String::from_utf8_lossy(&bytes).trim_end().lines().last().unwrap_or_default().to_owned()
}
