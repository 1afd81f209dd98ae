//! The reference files: written once, checked, and nothing else touched.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::place::{Said, majordomus};

/// Every file below a folder.
fn files(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.insert(path.strip_prefix(root).unwrap().to_str().unwrap().to_owned(), fs::read(&path).unwrap());
            }
        }
    }
    found
}

fn generate(folder: &Path, arguments: &[&str]) -> Said {
    majordomus(folder, &[&["generate"], arguments].concat(), &[("COLUMNS", "40")])
}

/// A folder with the reference files in it.
fn generated() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("docs/reference")).unwrap();
    assert_eq!(generate(folder.path(), &[]).code, Some(0));
    folder
}

#[test]
fn generating_again_changes_nothing_and_a_check_is_content() {
    let folder = generated();
    let before = files(folder.path());
    for path in [
        "tools.json",
        "openapi.json",
        "environment.md",
        "cli/announce.md",
        "man/majordomus.1",
        "completions/_majordomus",
    ] {
        assert!(before.contains_key(&format!("docs/reference/{path}")), "{path}");
    }
    for arguments in [&[][..], &["--check"], &["--dir", "docs/reference"], &["--check", "--dir", "docs/reference"]] {
        let said = generate(folder.path(), arguments);
        let expected = format!("all {} files are up to date\n", before.len());
        assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (Some(0), expected.as_str(), ""));
    }
    assert_eq!(files(folder.path()), before);
    let tools: serde_json::Value = serde_json::from_slice(&before["docs/reference/tools.json"]).unwrap();
    assert_eq!(tools["tools"][0]["name"], "majordomus_episodes");
    assert!(tools["tools"][0]["outputSchema"].is_object(), "as the newest revision shows it");
}

#[test]
fn a_check_names_what_is_stale_missing_or_left_over_and_generating_mends_it() {
    let folder = generated();
    let path = |path: &str| folder.path().join("docs/reference").join(path);
    let good = files(folder.path());
    let mark =
        String::from_utf8(good["docs/reference/environment.md"].clone()).unwrap().lines().next().unwrap().to_owned();
    fs::write(path("tools.json"), "{}\n").unwrap();
    fs::remove_file(path("cli/announce.md")).unwrap();
    fs::write(path("cli/gone.md"), format!("{mark}\n\n# majordomus gone\n")).unwrap();
    fs::write(path("man/majordomus-gone.1"), "").unwrap();
    let wrong = files(folder.path());

    let said = generate(folder.path(), &["--check"]);
    assert_eq!((said.code, said.out.as_str()), (Some(1), ""), "{said:?}");
    let lines: Vec<_> = said.err.lines().collect();
    let expected = [
        "error: 4 of the files in docs/reference are not what they should be:",
        "  missing  cli/announce.md",
        "  stale    tools.json",
        "  surplus  cli/gone.md",
        "  surplus  man/majordomus-gone.1",
        "hint: majordomus generate",
    ];
    assert_eq!(lines, expected);
    assert_eq!(files(folder.path()), wrong, "a check writes nothing");

    let said = generate(folder.path(), &[]);
    let expected =
        "wrote    cli/announce.md\nwrote    tools.json\nremoved  cli/gone.md\nremoved  man/majordomus-gone.1\n";
    assert_eq!((said.code, said.out.as_str()), (Some(0), expected));
    assert_eq!(files(folder.path()), good);
}

#[test]
fn what_somebody_else_put_there_is_left_alone() {
    let folder = generated();
    let path = |path: &str| folder.path().join("docs/reference").join(path);
    let foreign = ["NOTES.md", "cli/notes.md", "notes.json", "man/other.1", "completions/notes", "own/page.md"];
    fs::create_dir(path("own")).unwrap();
    for name in foreign {
        fs::write(path(name), "mine\n").unwrap();
    }
    let elsewhere = folder.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::copy(path("environment.md"), elsewhere.join("kept.md")).unwrap();
    std::os::unix::fs::symlink(&elsewhere, path("link")).unwrap();
    let before = files(folder.path());
    assert_eq!(generate(folder.path(), &["--check"]).code, Some(0));
    assert_eq!(generate(folder.path(), &[]).code, Some(0));
    assert_eq!(files(folder.path()), before);
}

#[test]
fn nobody_gets_the_folder_by_accident() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [&[][..], &["--check"]] {
        let said = generate(folder.path(), arguments);
        assert_eq!((said.code, said.out.as_str()), (Some(1), ""), "{said:?}");
        assert!(said.err.starts_with("error: there is no folder docs/reference here "), "{said:?}");
    }
    assert!(files(folder.path()).is_empty());
    fs::create_dir_all(folder.path().join("docs/reference")).unwrap();
    fs::write(folder.path().join("docs/reference/environment.md"), "somebody else's\n").unwrap();
    assert_eq!(generate(folder.path(), &[]).code, Some(1));
    assert_eq!(files(folder.path()).len(), 1);
    let said = generate(folder.path(), &["--check", "--dir", "new"]);
    assert_eq!(said.code, Some(1));
    assert!(said.err.ends_with("\nhint: majordomus generate --dir new\n"), "{said:?}");
    assert_eq!(generate(folder.path(), &["--dir", "new"]).code, Some(0));
    assert!(folder.path().join("new/tools.json").is_file());
}
