//! Which sessions of a key have ended, so that a later one can say what it continues.
//!
//! Small files, one for each first byte of the keys' hashes, so that looking something up does not cost what the archive
//! holds. Best effort: no record hangs on them, only the link from one to another.

use std::path::Path;
use std::time::Duration;

use majordomus_episodes_core::EpisodeKey;

use crate::append::READ_MOST;
use crate::disk::Open;
use crate::line::EndOutcome;
use crate::log::Log;
use crate::returning::EndedBy;
use crate::state;
use crate::store::Store;

/// How long after an end a sign of life is a hook that came late, rather than a new sitting.
const JUST: Duration = Duration::from_secs(10);

/// One line: the key's hash, the session's id, and when its end was written; where its last connection had one, its
/// carrier; and where that ended it on purpose, what it was told.
struct Entry<'a> {
    key: &'a str,
    session_id: &'a str,
    ended_ms: i64,
    carrier: Option<&'a str>,
    told: Option<EndedBy>,
}

impl Store {
    /// Notes that a session of this key has ended; perhaps twice.
    pub(crate) fn note_ended(&self, root: &Path, log: &Log) {
        let (Some(start), Some(end)) = (&log.start, &log.end) else { return };
        let path = state::history(root, &start.opened.key);
        // Silence ends nothing at a moment that a sign of life could be late for.
        let ended_ms = if end.ended.judged_ms.is_some() { 0 } else { end.stamp.wall_ms };
        // On a line of its own, whatever a write that was cut short has left.
        let mut line = format!("\n{} {} {ended_ms}", start.opened.key, start.opened.session_id);
        if let Some(carrier) = &log.carrier {
            line = format!("{line} {carrier}");
            if let Some(EndedBy { opened_ms, attachments, outcome, record }) = EndedBy::of(log, carrier) {
                line = format!("{line} {opened_ms} {attachments} {} {record}", outcome.as_str());
            }
        }
        line.push('\n');
        let folder = path.parent().unwrap_or(root);
        let noted = self
            .disk
            .make_folders(folder, true)
            .and_then(|()| self.disk.open(&path, Open::Create)?.append(line.as_bytes()));
        // A folder that refuses refuses the log as well, and that is said.
        drop(noted);
    }

    /// Finds the session of a key that ended last before the session `session_id` of that key did.
    pub(crate) fn ended_last(&self, root: &Path, key: &str, session_id: &str) -> Option<String> {
        let bytes = self.disk.read(&state::history(root, key), READ_MOST).ok()?;
        // In the order in which they ended; a session that waits long for its record is not the last any more.
        let of_key: Vec<&str> =
            entries(&bytes).filter(|entry| entry.key == key).map(|entry| entry.session_id).collect();
        let own = of_key.iter().position(|id| *id == session_id)?;
        of_key[..own].last().map(|id| (*id).to_owned())
    }

    /// Finds the session of a key whose end was written a moment ago.
    pub(crate) fn just_ended(&self, key: &EpisodeKey) -> Option<String> {
        let (hash, now) = (state::key_hash(key), self.now().wall_ms);
        self.state.roots().iter().find_map(|root| {
            let bytes = self.disk.read(&state::history(root, &hash), READ_MOST).ok()?;
            let last = entries(&bytes).filter(|entry| entry.key == hash).last()?;
            let just = now.abs_diff(last.ended_ms) <= u64::try_from(JUST.as_millis()).unwrap_or(0);
            just.then(|| last.session_id.to_owned())
        })
    }
}

impl Store {
    /// What a carrier was told that ended its session of a key on purpose, if that is the last one of that key it had.
    pub(crate) fn ended_by(&self, key: &EpisodeKey, carrier: &str) -> Option<EndedBy> {
        let hash = state::key_hash(key);
        self.state.roots().iter().find_map(|root| {
            let bytes = self.disk.read(&state::history(root, &hash), READ_MOST).ok()?;
            entries(&bytes).filter(|entry| entry.key == hash && entry.carrier == Some(carrier)).last()?.told
        })
    }
}

fn entries(bytes: &[u8]) -> impl Iterator<Item = Entry<'_>> {
    let lines = bytes.split(|&byte| byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok());
    lines.filter_map(|line| {
        let mut words = line.split(' ');
        let (key, session_id, ended_ms) = (words.next()?, words.next()?, words.next()?.parse().ok()?);
        let carrier = words.next();
        let told = told(words);
        state::is_session_id(session_id).then_some(Entry { key, session_id, ended_ms, carrier, told })
    })
}

fn told<'a>(mut words: impl Iterator<Item = &'a str>) -> Option<EndedBy> {
    Some(EndedBy {
        opened_ms: words.next()?.parse().ok()?,
        attachments: words.next()?.parse().ok()?,
        outcome: EndOutcome::of(words.next()?)?,
        // Made of digits and slugs, it has no space in it.
        record: words.next()?.into(),
    })
}
