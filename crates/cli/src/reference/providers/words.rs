//! How the pages of clients put things.

use std::cell::RefCell;

use majordomus_capability::project::markdown::{code, text};
use majordomus_providers::{ConfigFile, Identity, Provider};

/// What is said of something that nobody found out.
pub(super) const NOBODY_KNOWS: &str = "not known";

/// Names as code, separated by commas; nothing where there are none.
pub(super) fn quoted(names: &[&str]) -> String {
    names.iter().map(|name| code(name)).collect::<Vec<_>>().join(", ")
}

/// Names as code, or that none is known.
pub(super) fn quoted_or_unknown<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    if names.is_empty() { NOBODY_KNOWS.to_owned() } else { quoted(&names) }
}

/// Names as code, the last one behind `word`.
pub(super) fn join(names: &[&str], word: &str) -> String {
    match names {
        [] => String::new(),
        [name] => code(name),
        [names @ .., last] => format!("{} {word} {}", quoted(names), code(last)),
    }
}

/// The sources that a page names, each once, in the order in which they are first named.
#[derive(Default)]
pub(super) struct Sources(RefCell<Vec<String>>);

impl Sources {
    /// What was found, on one line, with the numbers of its sources.
    pub(super) fn cited(&self, citation: &str) -> String {
        let (says, sources) = parts(citation);
        let numbers = sources.into_iter().map(|source| format!("[{}](#sources)", self.number(&linked(&text(source)))));
        format!("{} {}", text(says), numbers.collect::<Vec<_>>().join(", ")).trim_end().to_owned()
    }

    /// Findings as quotations, one paragraph each.
    pub(super) fn shown<'a>(&self, citations: impl IntoIterator<Item = &'a str>) -> String {
        let quoted: Vec<String> = citations.into_iter().map(|one| format!("> {}\n", self.cited(one))).collect();
        quoted.join(">\n")
    }

    /// The numbered list.
    pub(super) fn list(&self) -> String {
        let numbered = self.0.borrow();
        numbered.iter().enumerate().map(|(index, source)| format!("{}. {source}\n", index + 1)).collect()
    }

    fn number(&self, source: &str) -> usize {
        let mut known = self.0.borrow_mut();
        let index = known.iter().position(|one| one == source).unwrap_or_else(|| {
            known.push(source.to_owned());
            known.len() - 1
        });
        index + 1
    }
}

/// Takes what a declaration's finding says from the sources that stand behind it, in brackets and separated by semicolons.
pub(super) fn parts(citation: &str) -> (&str, Vec<&str>) {
    let mut depth = 0;
    let opens = citation.char_indices().rev().find(|(_, char)| {
        depth += match char {
            ')' => 1,
            '(' => -1,
            _ => 0,
        };
        depth == 0
    });
    match opens {
        Some((at, '(')) => (citation[..at].trim_end(), citation[at + 1..citation.len() - 1].split("; ").collect()),
        _ => (citation, Vec::new()),
    }
}

/// Makes links of the addresses in a text that is Markdown already.
fn linked(line: &str) -> String {
    let mut linked = String::new();
    let mut rest = line;
    while let Some(at) = rest.find("https://") {
        linked.push_str(&rest[..at]);
        let length = rest[at..].find([' ', ',', ';', ')']).unwrap_or(rest.len() - at);
        let (address, after) = rest[at..].split_at(length);
        // Between these brackets nothing is markup, and so nothing is escaped.
        linked.push_str(&format!("<{}>", address.replace('\\', "")));
        rest = after;
    }
    linked + rest
}

/// Of some claims those about these things, in that order.
pub(super) fn about<'a>(claims: &'a [(&str, &'a str)], things: &'a [&str]) -> impl Iterator<Item = &'a str> {
    let of = |thing: &'a &str| claims.iter().find(|(about, _)| about == thing).map(|(_, citation)| *citation);
    things.iter().filter_map(of)
}

/// A length of time in the largest whole unit.
pub(super) fn length(seconds: u64) -> String {
    let (count, unit) = match seconds {
        hours if hours % 3600 == 0 => (hours / 3600, "hour"),
        minutes if minutes % 60 == 0 => (minutes / 60, "minute"),
        seconds => (seconds, "second"),
    };
    format!("{count} {unit}{}", if count == 1 { "" } else { "s" })
}

/// By what a connection is known to belong to what the hooks drew; `None` where it is not.
pub(super) fn joined_by(identity: &Identity) -> Option<String> {
    match (identity.server_variable, identity.meta, identity.client_names) {
        (Some(variable), _, _) => Some(code(variable)),
        // These two hold for who is known by name.
        (None, _, []) => None,
        (None, [], _) => Some("the client's process".to_owned()),
        (None, keys, _) => Some(format!("{} in each call", join(keys, "or"))),
    }
}

/// Those whose hooks a provider runs too.
pub(super) fn carriers(provider: &Provider) -> Vec<&'static Provider> {
    let is_read = |other: &&Provider| other.adapter.is_some_and(|adapter| adapter.also_read_by.contains(&provider.id));
    majordomus_providers::all().iter().filter(is_read).collect()
}

/// The titles of providers, the last one behind an `and`.
pub(super) fn files_of(providers: &[&Provider]) -> String {
    let titles: Vec<String> = providers.iter().map(|provider| text(provider.title)).collect();
    match &titles[..] {
        [] => String::new(),
        [title] => title.clone(),
        [titles @ .., last] => format!("{} and {last}", titles.join(", ")),
    }
}

/// What connecting a client writes; `None` where that is nothing.
pub(super) fn written(provider: &Provider) -> Option<String> {
    let hooks = provider.adapter.filter(|adapter| !adapter.written.is_empty()).map_or(&[][..], |adapter| adapter.files);
    let servers = provider.mcp.map_or(&[][..], |mcp| mcp.files);
    let of = |files: &'static [ConfigFile], is_users: bool| {
        files.iter().find(|file| file.write && file.is_users() == is_users).map(|file| file.path)
    };
    let scope = |is_users| {
        let parts = [("hooks", of(hooks, is_users)), ("server", of(servers, is_users))];
        let [(_, one), (_, other)] = parts;
        match (one, other) {
            (Some(one), Some(other)) if one == other => format!("hooks and server in {}", code(one)),
            _ => {
                let parts = parts.into_iter().filter_map(|(what, path)| Some(format!("{what} in {}", code(path?))));
                parts.collect::<Vec<_>>().join(", ")
            }
        }
    };
    match (scope(false), scope(true)) {
        (project, user) if project.is_empty() && user.is_empty() => None,
        (project, user) if user.is_empty() => Some(project),
        (project, user) if project.is_empty() => Some(format!("*for you* {user}")),
        (project, user) => Some(format!("{project}; *for you* {user}")),
    }
}
