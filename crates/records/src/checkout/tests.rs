use super::*;

/// The least that git itself takes for a repository.
fn repository(folder: &Path) -> PathBuf {
    let git = folder.join(".git");
    for part in ["objects", "refs/heads"] {
        fs::create_dir_all(git.join(part)).unwrap();
    }
    fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    git
}

const SHA: &str = "0123456789abcdef0123456789abcdef01234567";

#[test]
fn head_is_read_unborn_packed_loose_detached_and_broken() {
    let folder = tempfile::tempdir().unwrap();
    let git = repository(folder.path());
    let checkout = Checkout::find(folder.path()).unwrap();
    let head = || {
        let head = checkout.head();
        (head.head, head.branch, head.unreadable)
    };
    assert_eq!(head(), (None, Some("main".into()), false), "unborn");
    fs::write(
        git.join("packed-refs"),
        format!("# pack-refs with: peeled fully-peeled sorted \n{SHA} refs/heads/main\n"),
    )
    .unwrap();
    assert_eq!(head(), (Some(SHA.into()), Some("main".into()), false));
    let other = SHA.replace('0', "9");
    fs::write(git.join("refs/heads/main"), format!("{other}\n")).unwrap();
    assert_eq!(head(), (Some(other.clone()), Some("main".into()), false));
    fs::write(git.join("HEAD"), format!("{other}\n")).unwrap();
    assert_eq!(head(), (Some(other), None, false));
    fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    fs::write(git.join("refs/heads/main"), "nonsense").unwrap();
    assert_eq!(head(), (None, Some("main".into()), true));
    // What git writes where the refs are in the reftable format.
    fs::write(git.join("HEAD"), "ref: refs/heads/.invalid\n").unwrap();
    assert_eq!(head(), (None, None, true));
    fs::write(git.join("HEAD"), "nonsense").unwrap();
    assert_eq!(head(), (None, None, true));
    fs::remove_file(git.join("HEAD")).unwrap();
    assert_eq!(head(), (None, None, true));
}

#[test]
fn one_checkout_is_found_from_any_folder_in_it_and_through_a_link() {
    let folder = tempfile::tempdir().unwrap();
    repository(folder.path());
    let deep = folder.path().join("a/b");
    fs::create_dir_all(&deep).unwrap();
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&deep, &link).unwrap();
    let found = Checkout::find(folder.path()).unwrap();
    assert_eq!(Checkout::find(&deep).unwrap(), found);
    assert_eq!(Checkout::find(&link).unwrap(), found);
    assert_eq!(found.worktree.as_deref(), Some(fs::canonicalize(folder.path()).unwrap().as_path()));
}

#[test]
fn outside_git_there_is_none() {
    let folder = tempfile::tempdir().unwrap();
    assert!(Checkout::find(folder.path()).is_err());
    assert!(Checkout::find(&folder.path().join("missing")).is_err());
}

/// A linked worktree of the repository in `main`, as git makes it.
fn linked(main: &Path, folder: &Path, name: &str) {
    let git = main.join(".git/worktrees").join(name);
    fs::create_dir_all(&git).unwrap();
    fs::create_dir_all(folder).unwrap();
    fs::write(git.join("commondir"), "../..\n").unwrap();
    fs::write(git.join("HEAD"), "ref: refs/heads/other\n").unwrap();
    fs::write(git.join("gitdir"), format!("{}\n", folder.join(".git").display())).unwrap();
    fs::write(folder.join(".git"), format!("gitdir: {}\n", git.display())).unwrap();
}

#[test]
fn each_checkout_has_an_id_of_its_own_that_says_nothing_of_where_it_is_and_a_title() {
    let folder = tempfile::tempdir().unwrap();
    let main = folder.path().join("project");
    repository(&main);
    linked(&main, &folder.path().join("elsewhere"), "feature");
    linked(&main, &folder.path().join("third"), "main");
    let found = ["project", "elsewhere", "third"].map(|name| Checkout::find(&folder.path().join(name)).unwrap());
    let titles = found.each_ref().map(Checkout::title);
    assert_eq!(titles, ["project", "elsewhere (worktree feature)", "third (worktree main)"]);
    let ids = found.each_ref().map(Checkout::id);
    for (at, id) in ids.iter().enumerate() {
        assert!(id.len() == 16 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}");
        assert!(!ids[..at].contains(id));
    }
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&main, &link).unwrap();
    assert_eq!(Checkout::find(&link).unwrap().id(), ids[0], "one checkout, however it is reached");
    assert_eq!(hex_prefix(&Sha256::digest(found[0].git_dir.as_os_str().as_encoded_bytes()), 8), ids[0]);
}
