//! Command lines as the vendors run them: by a POSIX shell.

use majordomus_providers::EventKind;

/// The program's name.
pub(super) const NAME: &str = "majordomus";

/// Quotes a word for a POSIX shell, only where it has to be.
pub(super) fn quoted(word: &str) -> String {
    let plain = |char: char| char.is_ascii_alphanumeric() || "/._-+:@%,=".contains(char);
    // A `=` in the first word would make it an assignment, and a tilde another folder.
    if !word.is_empty() && word.chars().all(plain) && !word.contains('=') {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The command line of a hook.
pub(super) fn hook_line(binary: &str, provider: &str, event: EventKind) -> String {
    format!("{} capture session --provider {provider} --event {}", quoted(binary), event.as_str())
}

/// The program of a command line, if it is a hook of this provider and nothing besides: a line that somebody wrapped in
/// something of their own is theirs.
pub(super) fn hook_program(line: &str, provider: &str) -> Option<String> {
    let mut words = words(line)?.into_iter();
    let program = words.next().filter(|program| is_ours(program))?;
    if words.next()? != "capture" || words.next()? != "session" {
        return None;
    }
    let (mut named, mut words) = (false, words.peekable());
    while let Some(word) = words.next() {
        let (option, value) = match word.split_once('=') {
            Some((option, value)) => (option.to_owned(), value.to_owned()),
            None => (word, words.next()?),
        };
        match option.as_str() {
            "--provider" => named = value == provider,
            "--event" | "--idle-seconds" | "--grace-seconds" => {}
            _ => return None,
        }
    }
    named.then_some(program)
}

/// What a hook's line reports; `None` where it names no event that is known.
pub(super) fn hook_event(line: &str) -> Option<EventKind> {
    let words = words(line)?;
    let named = words.iter().enumerate().find_map(|(index, word)| match word.strip_prefix("--event") {
        Some("") => words.get(index + 1).map(String::as_str),
        Some(value) => value.strip_prefix('='),
        None => None,
    });
    named?.parse().ok()
}

/// What a shell fills in where it takes the words of a simple command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Filled {
    /// Nothing: the words stand there as they are.
    Nothing,
    /// Where it says so, the home folder, and nothing else.
    Home,
    /// Other variables, or what a command prints.
    Other,
}

/// Looks for what a shell would fill into a simple command.
pub(super) fn filled(line: &str) -> Filled {
    let (mut filled, mut quote) = (Filled::Nothing, None);
    let mut before = ' ';
    let mut rest = line.chars();
    while let Some(char) = rest.next() {
        let begins = quote.is_none() && matches!(before, ' ' | '\t');
        before = char;
        match (char, quote) {
            ('\'', Some('\'')) | ('"', Some('"')) => quote = None,
            (_, Some('\'')) => {}
            ('\'' | '"', None) => quote = Some(char),
            ('\\', _) => _ = rest.next(),
            ('$', _) => {
                let is_home =
                    ["HOME/", "HOME\"/", "{HOME}/", "{HOME}\"/"].iter().any(|home| rest.as_str().starts_with(home));
                filled = filled.max(if is_home { Filled::Home } else { Filled::Other });
            }
            ('`', _) => filled = Filled::Other,
            ('~', None) if begins => {
                filled = filled.max(if rest.as_str().starts_with('/') { Filled::Home } else { Filled::Other });
            }
            _ => {}
        }
    }
    filled
}

/// Whether a program is majordomus, by its name.
pub(super) fn is_ours(program: &str) -> bool {
    program.rsplit('/').next() == Some(NAME)
}

/// The words of a simple command, variables and tildes as they are written; `None` where the shell would do more than to
/// split it and to fill these in.
fn words(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = line.chars();
    while let Some(char) = chars.next() {
        match char {
            ' ' | '\t' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '\'' => break,
                        char => word.push(char),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '"' => break,
                        '`' => return None,
                        '\\' => match chars.next()? {
                            char @ ('"' | '\\' | '$' | '`') => word.push(char),
                            char => word.extend(['\\', char]),
                        },
                        char => word.push(char),
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(chars.next()?),
            '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')' | '`' | '*' | '?' | '[' | '#' | '!' => return None,
            char => word.get_or_insert_default().push(char),
        }
    }
    words.extend(word);
    Some(words)
}

#[cfg(test)]
mod tests;
