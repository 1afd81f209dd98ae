//! Foreign text in a file that people and programs read: escaped so that it can neither end what it stands in nor
//! look like something that it is not.

use std::fmt::Write;

/// Whether a character is shown as an escape: controls, bidirectional marks, line separators and invisible marks.
fn is_hidden(char: char) -> bool {
    char.is_control()
        || matches!(char,
            '\u{061c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Makes a double-quoted YAML scalar, which is also a JSON string.
#[must_use]
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for char in text.chars() {
        match char {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            char if is_hidden(char) => {
                for unit in char.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
            char => out.push(char),
        }
    }
    out.push('"');
    out
}

/// Makes hidden characters visible as `\u{…}`, on one line.
#[must_use]
pub fn visible(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut out, char| {
        if is_hidden(char) {
            let _ = write!(out, "\\u{{{:x}}}", char as u32);
        } else {
            out.push(char);
        }
        out
    })
}

/// Makes a Markdown code span that the text cannot close.
#[must_use]
pub fn code(text: &str) -> String {
    let text = visible(text);
    let longest = text.split(|char| char != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let pad = if text.is_empty() || text.starts_with(['`', ' ']) || text.ends_with(['`', ' ']) { " " } else { "" };
    format!("{fence}{pad}{text}{pad}{fence}")
}

#[cfg(test)]
mod tests;
