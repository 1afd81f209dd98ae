//! What would change in a file, for a person: the lines that come and go, and two on each side.

use majordomus_records::redact::redact;
use majordomus_records::text::visible;

/// How many lines are shown around what changes.
const AROUND: usize = 2;
/// The most characters of a line that are shown.
const WIDTH: usize = 200;
/// Beyond this many pairs of lines no shortest way is looked for.
const PAIRS: usize = 4_000_000;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    Same,
    Gone,
    New,
}

/// Shows the difference between two texts; nothing where there is none. Credentials beside what changes are not shown.
pub(super) fn shown(name: &str, before: Option<&str>, after: Option<&str>) -> String {
    let (old, new) = (lines(before), lines(after));
    let marked = compared(&old, &new);
    if marked.iter().all(|(mark, _)| *mark == Mark::Same) && before.is_some() == after.is_some() {
        return String::new();
    }
    let side = |there: bool| if there { name } else { "/dev/null" };
    let mut out = format!("--- {}\n+++ {}\n", side(before.is_some()), side(after.is_some()));
    let near = |at: usize| {
        let from = at.saturating_sub(AROUND);
        marked[from..marked.len().min(at + AROUND + 1)].iter().any(|(mark, _)| *mark != Mark::Same)
    };
    let (mut line, mut skipped) = (1, true);
    for (at, (mark, text)) in marked.iter().enumerate() {
        if near(at) {
            if skipped {
                out.push_str(&format!("@@ line {line} @@\n"));
            }
            let sign = match mark {
                Mark::Same => ' ',
                Mark::Gone => '-',
                Mark::New => '+',
            };
            let text = visible(&redact(text.trim_end_matches(['\r', '\n'])).0.replace('\t', "    "));
            let cut: String = text.chars().take(WIDTH).collect();
            let more = if cut.len() < text.len() { " …" } else { "" };
            out.push_str(&format!("{sign}{cut}{more}\n"));
        }
        skipped = !near(at);
        line += usize::from(*mark != Mark::New);
    }
    out
}

fn lines(text: Option<&str>) -> Vec<&str> {
    text.unwrap_or_default().split_inclusive('\n').collect()
}

/// The lines of both, by the longest common subsequence of what is between a common beginning and a common end.
fn compared<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<(Mark, &'a str)> {
    let head = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let tail = old[head..].iter().rev().zip(new[head..].iter().rev()).take_while(|(old, new)| old == new).count();
    let (gone, come) = (&old[head..old.len() - tail], &new[head..new.len() - tail]);
    let mut out: Vec<(Mark, &str)> = old[..head].iter().map(|line| (Mark::Same, *line)).collect();
    let (mut at, mut to) = (0, 0);
    if gone.len().saturating_mul(come.len()) <= PAIRS {
        let width = come.len() + 1;
        let mut longest = vec![0_u32; (gone.len() + 1) * width];
        for a in (0..gone.len()).rev() {
            for b in (0..come.len()).rev() {
                longest[a * width + b] = if gone[a] == come[b] {
                    longest[(a + 1) * width + b + 1] + 1
                } else {
                    longest[(a + 1) * width + b].max(longest[a * width + b + 1])
                };
            }
        }
        while at < gone.len() && to < come.len() {
            if gone[at] == come[to] {
                out.push((Mark::Same, gone[at]));
                (at, to) = (at + 1, to + 1);
            } else if longest[(at + 1) * width + to] >= longest[at * width + to + 1] {
                out.push((Mark::Gone, gone[at]));
                at += 1;
            } else {
                out.push((Mark::New, come[to]));
                to += 1;
            }
        }
    }
    out.extend(gone[at..].iter().map(|line| (Mark::Gone, *line)));
    out.extend(come[to..].iter().map(|line| (Mark::New, *line)));
    out.extend(old[old.len() - tail..].iter().map(|line| (Mark::Same, *line)));
    out
}

#[cfg(test)]
mod tests;
