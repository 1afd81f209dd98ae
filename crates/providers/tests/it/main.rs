//! Checks the declaration against its schema, the readers against recorded payloads, and both against arbitrary bytes.

#![allow(clippy::unwrap_used, reason = "a test's own functions may panic as the test may")]

mod attributed;
mod bytes;
mod declared;
mod fixtures;

#[path = "../../build/declaration.rs"]
mod declaration;

/// Reads a text file of the project, named from its root.
#[expect(clippy::disallowed_methods, reason = "tests compare the crate with the files of the project")]
fn project_file(path: &str) -> String {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../");
    std::fs::read_to_string(format!("{root}{path}")).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Lists the file names of a folder of the project, sorted.
#[expect(clippy::disallowed_methods, reason = "tests compare the crate with the files of the project")]
fn project_folder(path: &str) -> Vec<String> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../");
    let entries = std::fs::read_dir(format!("{root}{path}")).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
