//! One page per command.

use clap::{Arg, Command};

use majordomus_capability::project::markdown::{code, table, text};

use super::Page;
use crate::registered;

/// The pages of a command that was built, and of those below it.
pub(super) fn pages(command: &Command) -> Vec<Page> {
    let mut pages = vec![page(command)];
    for inner in shown(command) {
        pages.extend(self::pages(inner));
    }
    pages
}

fn shown(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|inner| !inner.is_hide_set())
}

/// `majordomus episodes close`, as it is typed.
fn words(command: &Command) -> &str {
    command.get_bin_name().unwrap_or_else(|| command.get_name())
}

/// The file of a command: `episodes-close.md`, and for the whole program `majordomus.md`.
fn file(command: &Command) -> String {
    let words = words(command);
    format!("{}.md", words.split_once(' ').map_or(words, |(_, rest)| rest).replace(' ', "-"))
}

fn page(command: &Command) -> Page {
    let mut page = format!("# {}\n\n", words(command));
    if let Some(about) = command.get_long_about().or_else(|| command.get_about()) {
        page.push_str(&format!("{}\n\n", prose(&about.to_string())));
    }
    let local = registered::LOCAL
        .iter()
        .find(|local| words(command).split_once(' ').is_some_and(|(_, rest)| rest == local.words));
    if let Some(local) = local {
        page.push_str(&format!("It needs no server: {}.\n\n", local.because));
    }
    let usage = command.clone().render_usage().to_string();
    page.push_str(&format!("```text\n{}\n```\n", usage.trim_start_matches("Usage:").trim()));
    let (places, flags): (Vec<&Arg>, Vec<&Arg>) =
        command.get_arguments().filter(|arg| !arg.is_hide_set()).partition(|arg| arg.is_positional());
    page.push_str(&section("Arguments", "argument", places.into_iter().map(row)));
    page.push_str(&section("Options", "option", flags.into_iter().map(row)));
    let below = shown(command)
        .map(|inner| [format!("[{}]({})", code(words(inner)), file(inner)), text(&registered::about(inner))]);
    page.push_str(&section("Commands", "command", below));
    Page::markdown(format!("cli/{}", file(command)), &page)
}

/// Text outside tables: paragraphs stay, and nothing in them is a tag.
fn prose(text: &str) -> String {
    text.replace('<', "\\<")
}

fn section(title: &str, head: &str, rows: impl Iterator<Item = [String; 2]>) -> String {
    let table = table([head, "meaning"], rows);
    if table.is_empty() { table } else { format!("\n## {title}\n\n{table}") }
}

fn row(arg: &Arg) -> [String; 2] {
    let help = arg.get_long_help().or_else(|| arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let mut meaning = text(&help);
    let values: Vec<String> = arg
        .get_possible_values()
        .iter()
        .filter(|value| !value.is_hide_set() && arg.get_action().takes_values())
        .map(|value| code(value.get_name()))
        .collect();
    if !values.is_empty() {
        meaning.push_str(&format!(" One of {}.", values.join(", ")));
    }
    let defaults = arg.get_default_values();
    if !defaults.is_empty() && !arg.is_hide_default_value_set() && arg.get_action().takes_values() {
        let shown: Vec<_> = defaults.iter().map(|value| code(&value.to_string_lossy())).collect();
        meaning.push_str(&format!(" Default: {}.", shown.join(", ")));
    }
    let short = arg.get_short().map(|short| format!("-{short}, ")).unwrap_or_default();
    [code(&(short + &arg.to_string())), meaning]
}
