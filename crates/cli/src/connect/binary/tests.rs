use std::os::unix::fs::symlink;

use super::*;

#[test]
fn the_entry_on_the_search_path_is_named_and_not_where_it_leads() {
    let folder = tempfile::tempdir().unwrap();
    let at = |below: &str| folder.path().join(below);
    for below in ["bin", "cellar/1.0", "other"] {
        std::fs::create_dir_all(at(below)).unwrap();
    }
    std::fs::write(at("cellar/1.0/majordomus"), "").unwrap();
    std::fs::write(at("other/majordomus"), "").unwrap();
    symlink("../cellar/1.0/majordomus", at("bin/majordomus")).unwrap();
    let running = at("cellar/1.0/majordomus");
    let search = |folders: &[&str]| std::env::join_paths(folders.iter().map(|below| at(below))).unwrap();
    assert_eq!(chosen(Some(&search(&["other", "bin"])), &running), at("bin/majordomus"));
    assert_eq!(chosen(Some(&search(&["other"])), &running), running);
    assert_eq!(chosen(Some(OsStr::new("bin:.")), &running), running, "a relative folder is another one elsewhere");
    assert_eq!(chosen(None, &running), running);
}

#[test]
fn what_will_not_stay_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let temporary = folder.path().join("tmp");
    std::fs::create_dir(&temporary).unwrap();
    for below in ["majordomus", "other", "tmp/majordomus"] {
        std::fs::write(folder.path().join(below), "").unwrap();
    }
    std::fs::create_dir(folder.path().join("bin")).unwrap();
    symlink("../tmp/majordomus", folder.path().join("bin/majordomus")).unwrap();
    symlink("tmp", folder.path().join("t")).unwrap();
    let lasts = |below: &str, temporary: &Path| lasting(&folder.path().join(below), temporary);
    assert!(lasts("majordomus", &temporary).is_ok());
    assert!(matches!(lasts("tmp/majordomus", &temporary), Err(BinaryError::Temporary(_))));
    assert!(matches!(lasts("tmp/majordomus", &folder.path().join("t")), Err(BinaryError::Temporary(_))), "by any name");
    assert!(matches!(lasts("bin/majordomus", &temporary), Err(BinaryError::Temporary(_))), "nor where it leads");
    assert!(matches!(lasts("other", &temporary), Err(BinaryError::Name(_))), "it would not know its own lines again");
    assert!(matches!(lasts("majordomus (deleted)", &temporary), Err(BinaryError::Gone(_))));
}
