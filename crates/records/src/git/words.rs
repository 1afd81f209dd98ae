//! Text from git's bytes.

use std::fmt::Write;

/// The most characters of a commit's subject that are kept.
const SUBJECT_MOST: usize = 300;

/// Splits lines of what is ASCII by its nature.
pub(super) fn lines(out: &[u8]) -> impl Iterator<Item = String> + '_ {
    let lines = out.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| String::from_utf8_lossy(line).into_owned())
}

/// Makes text from a path, so that its bytes can be had back: every backslash is doubled, and what is not UTF-8 becomes
/// `\xNN`. So `\\` is a backslash, `\x` begins a byte, and all else stands for itself.
pub(super) fn path_text(path: &[u8]) -> String {
    let mut out = String::with_capacity(path.len());
    for chunk in path.utf8_chunks() {
        out.push_str(&chunk.valid().replace('\\', "\\\\"));
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    out
}

/// Cuts a subject that is too long, if possible between words: half a credential has no shape that it is known by.
pub(super) fn subject(text: &str) -> String {
    let Some((end, _)) = text.char_indices().nth(SUBJECT_MOST) else { return text.into() };
    let (kept, rest) = text.split_at(end);
    let word = if rest.starts_with(char::is_whitespace) { end } else { kept.rfind(char::is_whitespace).unwrap_or(0) };
    let whole = kept[..word].trim_end();
    format!("{}…", if whole.is_empty() { kept } else { whole })
}
