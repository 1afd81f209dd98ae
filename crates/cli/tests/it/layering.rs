//! The arrows between the crates.

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::{DependencyKind, MetadataCommand};

/// Which crates each crate may use, as `docs/ARCHITECTURE.md` says.
const ALLOWED: &[(&str, &[&str])] = &[
    ("episodes-core", &[]),
    ("providers", &[]),
    ("records", &["episodes-core", "providers"]),
    ("capability", &["episodes-core", "records"]),
    ("mcp-server", &["capability", "episodes-core", "providers", "records"]),
    ("cli", &["capability", "episodes-core", "mcp-server", "providers", "records"]),
];

/// Crates that only have been chosen for some places.
const ONLY_IN: &[(&str, &[&str])] = &[
    ("anyhow", &["benches", "cli", "clients", "conformance"]),
    ("clap", &["cli", "benches"]),
    ("clap_complete", &["cli"]),
    ("clap_mangen", &["cli"]),
    ("jsonc-parser", &["cli"]),
    ("percent-encoding", &["cli"]),
    ("schemars", &["capability"]),
    ("toml_edit", &["cli"]),
    ("ureq", &["cli"]),
];

#[test]
fn an_arrow_between_crates_only_goes_down_the_list() {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml");
    let metadata =
        MetadataCommand::new().manifest_path(manifest).no_deps().other_options(["--offline".into()]).exec().unwrap();
    let mut seen: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in &metadata.packages {
        let name = package.name.strip_prefix("majordomus-").expect("every package is named after us");
        let uses = package.dependencies.iter().filter(|uses| uses.kind != DependencyKind::Development);
        let uses: BTreeSet<String> = uses.map(|uses| uses.name.clone()).collect();
        for (only, places) in ONLY_IN {
            assert!(!uses.contains(*only) || places.contains(&name), "{name} uses {only}");
        }
        let ours = uses.iter().filter_map(|uses| uses.strip_prefix("majordomus-")).map(str::to_owned);
        seen.insert(name.into(), ours.collect());
    }
    for (name, allowed) in ALLOWED {
        let uses = seen.remove(*name).unwrap_or_else(|| panic!("there is no crate {name}"));
        let allowed: BTreeSet<String> = allowed.iter().map(|name| (*name).to_owned()).collect();
        assert!(uses.is_subset(&allowed), "{name} uses {uses:?}, and may use {allowed:?}");
    }
    let besides: Vec<_> = seen.keys().map(String::as_str).collect();
    assert_eq!(
        besides,
        ["benches", "clients", "conformance", "e2e", "simulation"],
        "a new crate needs a place in this list and in docs/ARCHITECTURE.md"
    );
}
