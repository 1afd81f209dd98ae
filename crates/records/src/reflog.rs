//! What HEAD's reflog says between two lines of an event log.

use std::fs;
use std::path::Path;

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

/// Reads the moves in the question's window: from the length that the reflog had at the start to the length that it
/// had at the end, or by its own times (whole seconds) where it has been rewritten since. `None` without a reflog.
pub(crate) fn between(git_dir: &Path, question: &Question<'_>) -> Option<Vec<Move>> {
    let bytes = fs::read(git_dir.join("logs/HEAD")).ok()?;
    let length = bytes.len();
    let at = |offset: Option<u64>| offset.and_then(|offset| usize::try_from(offset).ok());
    // A checkout whose first commit is still to come has no reflog yet.
    let start = at(question.start.reflog).or((question.start.head.is_none()).then_some(0));
    let window = match (start, at(question.end.reflog)) {
        (Some(start), Some(end))
            if start <= end && end <= length && is_line_start(&bytes, start) && is_line_start(&bytes, end) =>
        {
            Some(&bytes[start..end])
        }
        (Some(start), None) if question.end.head.is_none() && start <= length => Some(&bytes[..0]),
        _ => None,
    };
    let (part, by_time) = window.map_or((&bytes[..], true), |part| (part, false));
    let seconds = question.started_ms.div_euclid(1000)..=question.closed_ms.div_euclid(1000);
    let entries = part.split(|&byte| byte == b'\n').filter_map(parse);
    Some(entries.filter(|entry| !by_time || seconds.contains(&entry.seconds)).filter_map(Entry::moved).collect())
}

fn is_line_start(bytes: &[u8], at: usize) -> bool {
    at == 0 || bytes.get(at - 1) == Some(&b'\n')
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
    let id =
        |bytes| std::str::from_utf8(bytes).ok().filter(|id: &&str| id.bytes().all(|byte| byte.is_ascii_hexdigit()));
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
