//! Foreign text in a file that people and programs read: escaped so that it can neither end what it stands in nor
//! look like something that it is not.

use std::fmt::Write;

/// Whether a character is shown as an escape: controls, bidirectional marks, line separators, invisible marks and what
/// is no character at all.
fn is_hidden(char: char) -> bool {
    char.is_control()
        || is_no_character(char)
        || matches!(char,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// The code points that Unicode keeps free for ever: the last two of each plane, and 32 more.
fn is_no_character(char: char) -> bool {
    u32::from(char) & 0xfffe == 0xfffe || matches!(char, '\u{fdd0}'..='\u{fdef}')
}

/// Makes a double-quoted YAML scalar. It is also a JSON string where nothing above U+FFFF has to be escaped: YAML has
/// `\UXXXXXXXX` for that, and no pairs of surrogates (YAML 1.2, section 5.7).
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
                let _ = match u32::from(char) {
                    code @ ..=0xffff => write!(out, "\\u{code:04x}"),
                    code => write!(out, "\\U{code:08x}"),
                };
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
