//! Manual pages, and completions for shells.

use clap::Command;
use clap_complete::aot::{Bash, Fish, Generator, Zsh, generate};
use clap_mangen::Man;

use super::Page;

/// The completions, by the names under which each shell looks for them.
pub(super) const COMPLETIONS: [&str; 3] = ["_majordomus", "majordomus.bash", "majordomus.fish"];

/// A manual page for a command that was built, and for each one below it.
pub(super) fn manuals(command: &Command) -> Vec<Page> {
    let mut pages: Vec<Page> =
        command.get_subcommands().filter(|inner| !inner.is_hide_set()).flat_map(manuals).collect();
    let man = Man::new(command.clone()).source(concat!("majordomus ", env!("CARGO_PKG_VERSION")));
    let mut text = Vec::new();
    man.render(&mut text).expect("writing to memory does not fail");
    pages.push(Page::new(format!("man/{}", man.get_filename()), String::from_utf8_lossy(&text)));
    pages
}

pub(super) fn completions(command: &Command) -> Vec<Page> {
    let [zsh, bash, fish] = COMPLETIONS;
    vec![completion(Zsh, zsh, command), completion(Bash, bash, command), completion(Fish, fish, command)]
}

fn completion(shell: impl Generator, name: &str, command: &Command) -> Page {
    let mut text = Vec::new();
    generate(shell, &mut command.clone(), command.get_name(), &mut text);
    Page::new(format!("completions/{name}"), String::from_utf8_lossy(&text))
}
