//! Markdown that foreign text cannot break out of.

/// The characters that can mean something anywhere in a line.
const ESCAPED: &[char] = &['\\', '`', '*', '_', '[', ']', '<', '|', '~', '&', '$'];

/// Writes a text so that it reads as itself on one line, also in a cell of a table: nothing in it is markup.
///
/// Only plain words between backticks stay such, as descriptions name fields and commands that way.
#[must_use]
pub fn text(text: &str) -> String {
    let mut line = String::new();
    let mut rest = text.trim_start_matches(is_break);
    while let Some(next) = rest.chars().next() {
        if let Some(name) = name(rest) {
            line.push_str(&rest[..name]);
            rest = &rest[name..];
            continue;
        }
        let after = &rest[next.len_utf8()..];
        if is_break(next) {
            line.push(' ');
            rest = after.trim_start_matches(is_break);
            continue;
        }
        // What begins a line may begin a heading, a quotation or a list, also a numbered one.
        let begins = line.bytes().all(|byte| byte.is_ascii_digit()) && next.is_ascii_punctuation();
        let within = next == '_' && line.ends_with(char::is_alphanumeric) && after.starts_with(char::is_alphanumeric);
        if begins || (ESCAPED.contains(&next) && !within) {
            line.push('\\');
        }
        line.push(next);
        rest = after;
    }
    line.truncate(line.trim_end().len());
    line
}

/// Writes a text as code on one line, also in a cell of a table.
#[must_use]
pub fn code(text: &str) -> String {
    let line: String = text.chars().map(|char| if is_break(char) { ' ' } else { char }).collect();
    let runs = line.split(|char| char != '`').map(str::len);
    let fence = "`".repeat(runs.max().unwrap_or(0) + 1);
    // A code span loses one blank at each end where it has them at both, and cannot be empty.
    let padded = line.is_empty() || line.starts_with(['`', ' ']) || line.ends_with(['`', ' ']);
    let blank = if padded { " " } else { "" };
    // A table is cut into cells before code is looked for.
    format!("{fence}{blank}{}{blank}{fence}", line.replace('|', "\\|"))
}

/// Writes a table; its cells are Markdown already. Without a row there is none.
#[must_use]
pub fn table<const N: usize>(head: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let row = |cells: [String; N]| format!("| {} |\n", cells.join(" | "));
    let rows: String = rows.into_iter().map(row).collect();
    if rows.is_empty() {
        return String::new();
    }
    row(head.map(str::to_owned)) + &row(head.map(|_| "---".to_owned())) + &rows
}

/// The length of the words between backticks that a text begins with.
fn name(text: &str) -> Option<usize> {
    let inner = text.strip_prefix('`')?;
    let end = inner.find('`')?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-' | b' ' | b'/' | b':');
    let whole = |word: &str| !word.is_empty() && word.trim() == word;
    let is_name = whole(&inner[..end]) && inner[..end].bytes().all(plain) && !inner[end + 1..].starts_with('`');
    is_name.then_some(end + 2)
}

/// Whether a character would end the line, or shows as nothing.
fn is_break(char: char) -> bool {
    char.is_whitespace() || char.is_control()
}

#[cfg(test)]
mod tests;
