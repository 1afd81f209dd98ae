use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::VARIABLES;

/// What stands for our names in this file itself.
const PREFIX: &str = concat!("MAJOR", "DOMUS_");

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every Rust file below a folder.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// What the program is made of, and its launcher.
fn read_by_users() -> Vec<(PathBuf, String)> {
    let mut files = vec![root().join("bin/majordomus-mcp")];
    for crate_folder in fs::read_dir(root().join("crates")).unwrap() {
        sources(&crate_folder.unwrap().path().join("src"), &mut files);
    }
    files.retain(|path| !path.ends_with("tests.rs"));
    files.into_iter().map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

/// The names of ours that a text mentions.
fn names(text: &str) -> BTreeSet<String> {
    let of_name = |char: char| char.is_ascii_uppercase() || char.is_ascii_digit() || char == '_';
    let mentions = text.match_indices(PREFIX).map(|(at, _)| &text[at..]);
    mentions.map(|rest| rest[..rest.find(|char| !of_name(char)).unwrap_or(rest.len())].to_owned()).collect()
}

#[test]
fn no_other_variable_of_ours_is_named_anywhere() {
    let known: BTreeSet<String> =
        VARIABLES.iter().map(|variable| variable.name.to_owned()).filter(|name| name.starts_with(PREFIX)).collect();
    let mut seen = BTreeSet::new();
    for (path, text) in read_by_users() {
        let named = names(&text);
        let unknown: Vec<_> = named.difference(&known).collect();
        assert!(unknown.is_empty(), "{} names {unknown:?}", path.display());
        seen.extend(named);
    }
    assert_eq!(seen, known);
}

#[test]
fn a_variable_of_ours_is_a_constant_in_one_place() {
    for (path, text) in read_by_users() {
        if !path.ends_with("cli/src/variables.rs") {
            assert!(!text.contains(&format!("\"{PREFIX}")), "{} spells a variable out", path.display());
        }
    }
}

#[test]
fn the_environment_is_read_in_few_places() {
    const PLACES: [&str; 5] = [
        "cli/src/variables.rs",
        "cli/src/commands/demo.rs",
        "records/src/git.rs",
        "records/src/git/run.rs",
        "records/src/store.rs",
    ];
    let call = concat!("env::", "var");
    for (path, text) in read_by_users() {
        let known = PLACES.iter().any(|place| path.ends_with(place));
        assert!(known || !text.contains(call), "{}: a variable that is read belongs in the table", path.display());
    }
}

#[test]
fn each_variable_is_listed_once_and_says_what_it_is_for() {
    let names: BTreeSet<_> = VARIABLES.iter().map(|variable| variable.name).collect();
    assert_eq!(names.len(), VARIABLES.len());
    assert!(VARIABLES.iter().all(|variable| variable.says.ends_with('.') && !variable.read_by.is_empty()));
}
