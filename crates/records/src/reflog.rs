//! What HEAD's reflog says between two lines of an event log.

use std::fs::File;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

use crate::git::Question;

/// One move of HEAD that brought something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Move {
    /// A commit was made here; an amended one replaces another.
    Made {
        /// The commit that it takes the place of.
        replaced: Option<String>,
        /// The new commit.
        made: String,
    },
    /// Commits came from elsewhere, as a pull or a merge brings them.
    Brought {
        /// HEAD before.
        from: String,
        /// HEAD after.
        to: String,
    },
}

/// The most of a reflog that is read: some twenty thousand moves.
pub(crate) const READ_MOST: u64 = 4 << 20;

/// What the reflog says about a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Moves {
    /// The moves, in order.
    pub(crate) moves: Vec<Move>,
    /// Whether there was more than is read; the last part was.
    pub(crate) cut: bool,
}

/// Reads the moves in the question's window: from the length that the reflog had at the start to the length that it
/// had at the end, or by its own times (whole seconds) where it has been rewritten since. `None` without a reflog.
pub(crate) fn between(git_dir: &Path, question: &Question<'_>) -> Option<Moves> {
    let file = open(&git_dir.join("logs/HEAD"))?;
    let length = file.metadata().ok()?.len();
    let (start, end) = (question.start, question.end);
    // A checkout whose first commit is still to come has no reflog yet.
    let from = start.reflog.or((start.head.is_none() && !start.unreadable).then_some(0));
    match (from, end.reflog) {
        (Some(from), Some(to))
            if from <= to && to <= length && is_line_start(&file, from) && is_line_start(&file, to) =>
        {
            let (bytes, cut) = read(&file, from, to)?;
            Some(Moves { moves: entries(&bytes).filter_map(Entry::moved).collect(), cut })
        }
        (Some(from), None) if end.head.is_none() && !end.unreadable && from <= length => Some(Moves::default()),
        _ => {
            let (bytes, cut) = read(&file, 0, length)?;
            let seconds = question.started_ms.div_euclid(1000)..=question.closed_ms.div_euclid(1000);
            let first = entries(&bytes).next().map(|entry| entry.seconds);
            let moves = entries(&bytes).filter(|entry| seconds.contains(&entry.seconds)).filter_map(Entry::moved);
            // What was not read is older than what was, and may all be older than the session.
            Some(Moves { moves: moves.collect(), cut: cut && first.is_none_or(|first| first >= *seconds.start()) })
        }
    }
}

/// A named pipe in its place would be waited for.
fn open(path: &Path) -> Option<File> {
    let file = File::options().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path).ok()?;
    file.metadata().is_ok_and(|data| data.is_file()).then_some(file)
}

/// Reads a part of the file, or of a long part the last [`READ_MOST`] bytes from a line's start on.
fn read(file: &File, from: u64, to: u64) -> Option<(Vec<u8>, bool)> {
    let at = from.max(to.saturating_sub(READ_MOST));
    let mut bytes = vec![0; usize::try_from(to - at).ok()?];
    file.read_exact_at(&mut bytes, at).ok()?;
    if at > from {
        let line = bytes.iter().position(|&byte| byte == b'\n').map_or(bytes.len(), |newline| newline + 1);
        bytes.drain(..line);
    }
    Some((bytes, at > from))
}

fn is_line_start(file: &File, at: u64) -> bool {
    let mut before = [0];
    at == 0 || (file.read_exact_at(&mut before, at - 1).is_ok() && before == [b'\n'])
}

fn entries(bytes: &[u8]) -> impl Iterator<Item = Entry<'_>> {
    bytes.split(|&byte| byte == b'\n').filter_map(parse)
}

struct Entry<'a> {
    old: &'a str,
    new: &'a str,
    seconds: i64,
    message: &'a [u8],
}

/// `<old> <new> <name> <mail> <seconds> <zone>TAB<message>`; the name may hold anything but a newline.
fn parse(line: &[u8]) -> Option<Entry<'_>> {
    let tab = line.iter().position(|&byte| byte == b'\t')?;
    let (head, message) = (&line[..tab], &line[tab + 1..]);
    let mut words = head.splitn(3, |&byte| byte == b' ');
    let (old, new, person) = (words.next()?, words.next()?, words.next()?);
    let seconds = person.rsplit(|&byte| byte == b' ').nth(1)?;
    let is_id = |id: &&str| matches!(id.len(), 40 | 64) && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    let id = |bytes| std::str::from_utf8(bytes).ok().filter(is_id);
    Some(Entry { old: id(old)?, new: id(new)?, seconds: std::str::from_utf8(seconds).ok()?.parse().ok()?, message })
}

impl Entry<'_> {
    /// Moves to what was there before (a checkout, a reset, the start of a rebase) bring nothing.
    fn moved(self) -> Option<Move> {
        let message = String::from_utf8_lossy(self.message);
        let action = message.split(':').next().unwrap_or_default();
        let word = action.split([' ', '(']).next().unwrap_or_default();
        let made =
            |replaced: bool| Move::Made { replaced: replaced.then(|| self.old.to_owned()), made: self.new.to_owned() };
        match word {
            "commit" => Some(made(action.contains("(amend)"))),
            "cherry-pick" | "revert" | "am" => Some(made(false)),
            "rebase" => {
                let brings = ["pick", "reword", "edit", "squash", "fixup", "continue"];
                let brings = brings.iter().any(|step| action.contains(&format!("({step})")));
                brings.then(|| made(action.contains("(squash)") || action.contains("(fixup)")))
            }
            "merge" | "pull" => Some(Move::Brought { from: self.old.to_owned(), to: self.new.to_owned() }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
