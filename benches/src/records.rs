//! An archive of session records, as two years of work leave one.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use majordomus_records::clock::rfc3339;
use majordomus_records::state;

use crate::bed::{Bed, run};
use crate::hooks::Hooks;

/// Over how long the records are spread, up to now.
const SPAN: Duration = Duration::from_secs(730 * 24 * 3600);
/// How long each session lasted, in milliseconds.
const LASTED_MS: i64 = 1_234_567;

/// Fills `repository` with `count` records, each a copy of one that the product has just written there, under an id and
/// at times of its own.
pub(crate) fn fill(bed: &Bed, repository: &Path, count: u32) -> Result<()> {
    let model = Model::make(bed, repository)?;
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).context("the clock stands before 1970")?;
    let now = i64::try_from(since_epoch.as_millis()).context("the clock stands far from now")?;
    let apart = i64::try_from(SPAN.as_millis()).context("a span that no clock has")? / i64::from(count);
    let mut made = None;
    for number in 0..count {
        let started_ms = now - LASTED_MS - apart * i64::from(number);
        let session_id = state::session_id(started_ms, number.to_be_bytes());
        let path = repository.join(state::record_path(started_ms, &session_id, Some("main")));
        let folder = path.parent().context("a record lies in a folder")?;
        if made.as_deref() != Some(folder) {
            fs::create_dir_all(folder).context("cannot make a folder of records")?;
            made = Some(folder.to_path_buf());
        }
        fs::write(&path, model.copy(number, started_ms, &session_id)).context("cannot write a record")?;
    }
    Ok(())
}

/// Leaves `count` episodes open in `repository`: logs as a hook begins one, each under a name of its own.
pub(crate) fn fill_open(bed: &Bed, repository: &Path, count: u32) -> Result<()> {
    let hooks = Hooks::new(bed, repository);
    hooks.start(&hooks.fresh())?;
    let open = repository.join(".git/majordomus/main/open");
    let mut logs = fs::read_dir(&open).context("cannot list the open logs")?;
    let model = logs.next().context("a start leaves an open log")??.path();
    for number in 0..count {
        fs::copy(&model, open.join(format!("other-{number:016x}.jsonl"))).context("cannot write an open log")?;
    }
    Ok(())
}

/// A record, and what differs in its copies.
struct Model {
    text: String,
    session_id: String,
    external_id: String,
}

impl Model {
    fn make(bed: &Bed, repository: &Path) -> Result<Self> {
        let hooks = Hooks::new(bed, repository);
        let external_id = hooks.fresh();
        hooks.start(&external_id)?;
        let output = hooks.begin_end(&external_id)?.wait_with_output().context("cannot wait for a hook")?;
        let record = hooks.record_of(&output.stderr)?;
        // Publishes what the hook had no time for.
        run(&mut bed.majordomus(repository, &["sessions", "list"]), b"")?;
        let text = fs::read_to_string(&record).with_context(|| format!("cannot read {}", record.display()))?;
        fs::remove_file(&record).context("cannot remove a record")?;
        let name = record.file_name().and_then(|name| name.to_str()).and_then(|name| name.split_once("--"));
        let (session_id, _) = name.context("a record is not named by its session")?;
        Ok(Self { text, session_id: session_id.into(), external_id })
    }

    fn copy(&self, number: u32, started_ms: i64, session_id: &str) -> String {
        let (started, closed) = (rfc3339(started_ms), rfc3339(started_ms + LASTED_MS));
        let external_id = format!("0c4e2f6a-1b3d-4f5a-9c7e-{number:012}");
        let mut copy = String::with_capacity(self.text.len());
        for line in self.text.replace(&self.session_id, session_id).replace(&self.external_id, &external_id).lines() {
            match line.split_once(": ") {
                Some(("started_at", _)) => copy.push_str(&format!("started_at: \"{started}\"")),
                Some((key @ ("closed_at" | "last_activity_at"), _)) => copy.push_str(&format!("{key}: \"{closed}\"")),
                _ => copy.push_str(line),
            }
            copy.push('\n');
        }
        copy
    }
}
