use std::os::unix::fs::symlink;

use super::*;

fn settings(path: &Path) -> Result<Settings, FileError> {
    Settings::read("x", path, Format::Json)
}

fn edited(path: &Path, text: &str) -> Settings {
    let settings = settings(path).unwrap();
    Settings { document: Document::parse(Format::Json, text.as_bytes()).unwrap(), ..settings }
}

/// What lies in a folder besides the settings.
fn names(folder: &Path) -> Vec<OsString> {
    let mut names: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    names
}

#[test]
fn a_new_file_comes_with_its_folders_and_goes_with_them() {
    let folder = tempfile::tempdir().unwrap();
    let base = fs::canonicalize(folder.path()).unwrap();
    let path = base.join("a/b/c.json");
    let new = edited(&path, "{}");
    assert_eq!(new.folders(), [base.join("a"), base.join("a/b")]);
    new.write().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"{}");
    assert!(matches!(new.write(), Err(FileError::Changed)), "what is there now is not what was there");

    let there = settings(&path).unwrap();
    fs::write(base.join("a/theirs"), "").unwrap();
    there.delete(new.folders()).unwrap();
    assert_eq!(names(&base.join("a")), ["theirs"], "a folder with something in it stays");
}

#[test]
fn a_file_keeps_its_mode_and_a_link_stays_one() {
    let folder = tempfile::tempdir().unwrap();
    let real = folder.path().join("real.json");
    fs::write(&real, "{}").unwrap();
    fs::set_permissions(&real, Permissions::from_mode(0o640)).unwrap();
    symlink("real.json", folder.path().join("link.json")).unwrap();
    edited(&folder.path().join("link.json"), "{\"a\": 1}").write().unwrap();
    assert_eq!(fs::read(&real).unwrap(), b"{\"a\": 1}");
    assert_eq!(fs::metadata(&real).unwrap().mode() & 0o7777, 0o640);
    assert_eq!(fs::read_link(folder.path().join("link.json")).unwrap(), Path::new("real.json"));
    assert_eq!(names(folder.path()), ["link.json", "real.json"], "nothing is left beside it");
}

#[test]
fn what_somebody_wrote_meanwhile_is_not_lost() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.json");
    fs::write(&path, "{}").unwrap();
    let ours = edited(&path, "{\"a\": 1}");
    fs::write(&path, "{\"b\": 2}").unwrap();
    assert!(matches!(ours.write(), Err(FileError::Changed)));
    assert!(matches!(ours.delete(&[]), Err(FileError::Changed)));
    assert_eq!(fs::read(&path).unwrap(), b"{\"b\": 2}");
    fs::remove_file(&path).unwrap();
    assert!(matches!(ours.write(), Err(FileError::Io(_) | FileError::Changed)));
    assert!(names(folder.path()).is_empty());
}

#[test]
fn what_is_no_ordinary_file_is_not_touched_and_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    rustix::fs::mknodat(rustix::fs::CWD, at("pipe"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    fs::create_dir(at("folder")).unwrap();
    symlink("nowhere", at("dangling")).unwrap();
    symlink("circle", at("circle")).unwrap();
    fs::write(at("file"), "{").unwrap();
    fs::write(at("large"), vec![b' '; usize::try_from(MOST).unwrap() + 1]).unwrap();
    for (name, said) in [
        ("pipe", "it is not an ordinary file"),
        ("folder", "it is not an ordinary file"),
        ("dangling", "it is a link to nowhere, where nothing is"),
        ("dangling/x", "it is a link to nowhere, where nothing is"),
        ("circle", "Too many levels"),
        ("file/x", "Not a directory"),
        ("file", "line 1, column 1: "),
        ("large", "it has more than 4 MiB"),
    ] {
        let error = settings(&at(name)).unwrap_err().to_string();
        assert!(error.starts_with(said), "{name}: {error}");
    }
    fs::write(at("read-only"), "{}").unwrap();
    fs::set_permissions(at("read-only"), Permissions::from_mode(0o444)).unwrap();
    let refused = edited(&at("read-only"), "{\"a\": 1}").write();
    assert!(matches!(refused, Err(FileError::ReadOnly)), "also where the folder would allow it");
    assert_eq!(fs::read(at("read-only")).unwrap(), b"{}");
}
