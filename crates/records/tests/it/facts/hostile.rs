//! Repositories that name programs, belong to a promise, or are damaged.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use super::{Repository, subjects};

const LONG_AGO: std::time::SystemTime = std::time::UNIX_EPOCH;

#[test]
fn nothing_that_the_repository_names_is_run() {
    let repository = Repository::new();
    let trap = repository.path().join("trap.sh");
    let sprung = repository.path().join(".git/sprung");
    let hooks = repository.path().join(".git/trap-hooks");
    fs::write(&trap, format!("#!/bin/sh\necho \"$0 $@\" >> '{}'\ncat 2>/dev/null\nexit 0\n", sprung.display()))
        .unwrap();
    fs::set_permissions(&trap, fs::Permissions::from_mode(0o755)).unwrap();
    let trap = trap.to_str().unwrap();
    fs::write(repository.path().join(".gitattributes"), "*.txt diff=trap\n").unwrap();
    repository.commit("a.txt", "Signed, as it claims");
    let plain = repository.git(&["cat-file", "commit", "HEAD"]);
    let signature = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----";
    fs::write(&sprung, plain.replacen("\n\n", &format!("\n{signature}\n\n"), 1) + "\n").unwrap();
    let made = repository.git(&["hash-object", "-t", "commit", "-w", sprung.to_str().unwrap()]);
    repository.git(&["update-ref", "-m", "commit: signed", "HEAD", &made]);
    fs::remove_file(&sprung).unwrap();
    for (name, value) in [
        ("core.fsmonitor", trap),
        ("diff.external", trap),
        ("diff.trap.textconv", trap),
        ("diff.trap.command", trap),
        ("gpg.program", trap),
        ("log.showSignature", "true"),
        ("core.pager", trap),
        ("core.hooksPath", hooks.to_str().unwrap()),
    ] {
        repository.git(&["config", name, value]);
    }
    // The index would be written anew if it were not forbidden, and that has a hook.
    fs::create_dir(&hooks).unwrap();
    fs::copy(trap, hooks.join("post-index-change")).unwrap();
    fs::File::options().append(true).open(repository.path().join("a.txt")).unwrap().set_modified(LONG_AGO).unwrap();
    let facts = repository.ask();
    assert_eq!(facts.commits.unwrap()[1].sha, made);
    assert!(!sprung.exists(), "{}", fs::read_to_string(sprung).unwrap_or_default());
}

/// Filters that only pass on what they get, and say that they ran.
fn set_filters(repository: &Repository, names: &[&str]) -> std::path::PathBuf {
    let (trap, sprung) = (repository.path().join(".git/trap.sh"), repository.path().join(".git/sprung"));
    fs::write(&trap, format!("#!/bin/sh\necho \"$@\" >> '{}'\nexec tr a-z A-Z\n", sprung.display())).unwrap();
    fs::set_permissions(&trap, fs::Permissions::from_mode(0o755)).unwrap();
    for name in names {
        repository.git(&["config", &format!("filter.{name}.clean"), trap.to_str().unwrap()]);
        repository.git(&["config", &format!("filter.{name}.required"), "true"]);
    }
    sprung
}

#[test]
fn content_filters_are_not_run_and_what_they_alone_could_tell_is_left_out() {
    let mut repository = Repository::new();
    let sprung = set_filters(&repository, &["One", "two.three", "four"]);
    let attributes = "*.one filter=One\n*.two filter=two.three\n*.five filter=five\n";
    fs::write(repository.path().join(".gitattributes"), attributes).unwrap();
    for file in ["a.one", "b.two", "c.five", "d.txt"] {
        repository.commit(file, "before");
    }
    repository.git(&["config", "filter.One.process", "false"]);
    assert!(sprung.exists(), "the filters work");
    fs::remove_file(&sprung).unwrap();
    repository.begin();
    for file in ["a.one", "b.two", "c.five", "d.txt", "new.one"] {
        fs::write(repository.path().join(file), "after!").unwrap();
    }
    let facts = repository.ask();
    assert!(!sprung.exists(), "{}", fs::read_to_string(sprung).unwrap_or_default());
    assert_eq!(facts.uncommitted_files.unwrap(), ["c.five", "d.txt", "new.one"]);
    assert_eq!(facts.missing, ["uncommitted_files: 2 that only a content filter could tell"]);
}

#[test]
fn a_filter_that_cannot_be_switched_off_is_not_run_either() {
    let mut repository = Repository::new();
    let sprung = set_filters(&repository, &["a=b"]);
    fs::write(repository.path().join(".git/info/attributes"), "*.txt filter=a=b\n").unwrap();
    repository.commit("a.txt", "before");
    fs::remove_file(&sprung).unwrap();
    repository.begin();
    let made = repository.commit("b.txt", "Made");
    fs::remove_file(&sprung).unwrap();
    fs::write(repository.path().join("a.txt"), "after!").unwrap();
    let facts = repository.ask();
    assert!(!sprung.exists());
    assert_eq!((facts.commits.unwrap()[0].sha.clone(), facts.uncommitted_files), (made, None));
    assert_eq!(facts.changed_files.unwrap(), ["b.txt"]);
    assert_eq!(facts.missing, ["uncommitted_files: a content filter cannot be switched off by its name"]);
}

#[test]
fn no_git_runs_in_a_submodule() {
    let inner = Repository::new();
    let mut repository = Repository::new();
    repository.git(&["submodule", "--quiet", "add", inner.path().to_str().unwrap(), "sub"]);
    repository.git(&["commit", "--quiet", "-m", "With a submodule"]);
    let sprung = set_filters(&repository, &[]);
    let trap = repository.path().join(".git/trap.sh");
    let sub = repository.path().join("sub");
    repository.git(&["-C", "sub", "config", "filter.inner.clean", trap.to_str().unwrap()]);
    fs::write(repository.path().join(".git/modules/sub/info/attributes"), "*.txt filter=inner\n").unwrap();
    repository.begin();
    fs::write(sub.join("added.md"), "new").unwrap();
    repository.git(&["-C", "sub", "add", "added.md"]);
    repository.git(&["-C", "sub", "commit", "--quiet", "-m", "Moved"]);
    let _ = fs::remove_file(&sprung);
    fs::write(sub.join("first.txt"), "changed").unwrap();
    let facts = repository.ask();
    assert!(!sprung.exists(), "{}", fs::read_to_string(sprung).unwrap_or_default());
    assert_eq!(facts.changed_files.unwrap(), ["sub"], "the commit that is checked out in it is told");
}

#[test]
fn one_commit_that_is_gone_takes_no_other_with_it() {
    let repository = Repository::new();
    let gone = repository.commit("a.txt", "Dropped");
    repository.git(&["reset", "--quiet", "--hard", "HEAD~1"]);
    let made = repository.commit("b.txt", "Made");
    fs::remove_file(repository.path().join(".git/objects").join(&gone[..2]).join(&gone[2..])).unwrap();
    let facts = repository.ask();
    assert_eq!(subjects(&facts), ["Made"]);
    let commits = facts.commits.unwrap();
    assert!(commits[0].sha == made && commits[0].patch_id.is_some());
    assert_eq!(facts.changed_files.unwrap(), ["b.txt"]);
    assert_eq!(facts.missing, ["commits: 1 that git no longer has"]);
}

#[test]
fn a_branch_that_cannot_be_read_is_not_one_without_commits() {
    let mut repository = Repository::new();
    repository.commit("a.txt", "Made");
    // As where the refs are in the reftable format: no reflog in files, and no branch in HEAD.
    fs::remove_dir_all(repository.path().join(".git/logs")).unwrap();
    fs::write(repository.path().join(".git/HEAD"), "ref: refs/heads/.invalid\n").unwrap();
    let readable = repository.start.clone();
    for (start, what) in [(repository.checkout().head(), "both"), (readable, "the end")] {
        repository.start = start;
        let facts = repository.ask();
        assert_eq!((facts.commits, facts.head_tree, facts.repository_roots), (None, None, None), "{what}");
        assert!(facts.missing.contains(&"commits: HEAD could not be read".into()), "{:?}", facts.missing);
    }
    repository.start = repository.checkout().head();
    fs::write(repository.path().join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    let facts = repository.ask();
    assert_eq!(facts.commits, None, "an unreadable start does not bring up the whole history");
    assert_eq!(facts.repository_roots.map(|roots| roots.len()), Some(1));
}

#[test]
fn git_gets_no_more_time_than_it_is_given() {
    let answer = Repository::new().ask_within(Duration::ZERO);
    assert!(answer.out_of_time);
    assert_eq!((answer.facts.uncommitted_files, answer.facts.changed_files), (None, None));
    assert!(answer.facts.missing.contains(&"uncommitted_files: git did not answer in time".into()));
}

/// A partial clone would fetch what it lacks, by a program that its remote names.
#[test]
fn nothing_that_is_missing_is_fetched() {
    let repository = Repository::new();
    let (trap, sprung) = (repository.path().join(".git/trap.sh"), repository.path().join(".git/sprung"));
    fs::write(&trap, format!("#!/bin/sh\necho \"$@\" >> '{}'\n", sprung.display())).unwrap();
    fs::set_permissions(&trap, fs::Permissions::from_mode(0o755)).unwrap();
    let gone = repository.commit("a.txt", "Promised");
    repository.git(&["reset", "--quiet", "--hard", "HEAD~1"]);
    repository.commit("b.txt", "Made");
    fs::remove_file(repository.path().join(".git/objects").join(&gone[..2]).join(&gone[2..])).unwrap();
    for (name, value) in [
        ("core.repositoryFormatVersion", "1"),
        ("extensions.partialClone", "origin"),
        ("remote.origin.promisor", "true"),
        ("remote.origin.url", &format!("ext::{}", trap.display())),
        ("protocol.ext.allow", "always"),
    ] {
        repository.git(&["config", name, value]);
    }
    assert_eq!(subjects(&repository.ask()), ["Made"]);
    assert!(!sprung.exists(), "{}", fs::read_to_string(sprung).unwrap_or_default());
}
