//! What real git is asked in real repositories.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use majordomus_records::Checkout;
use majordomus_records::clock::{Clock, SystemClock};
use majordomus_records::facts::{CommitsFrom, Facts};
use majordomus_records::git::{Answer, Git, Question, RealGit};
use majordomus_records::line::Head;

mod hostile;

struct Repository {
    folder: tempfile::TempDir,
    start: Head,
    started_ms: i64,
}

impl Repository {
    /// A repository with one commit, at which the session begins.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut repository = Self { folder, start: Head::default(), started_ms: 0 };
        repository.git(&["init", "--quiet", "--initial-branch=main"]);
        repository.commit("first.txt", "Before the session");
        repository.begin();
        repository
    }

    fn begin(&mut self) {
        self.start = self.checkout().head();
        self.started_ms = SystemClock::new().now().wall_ms;
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn checkout(&self) -> Checkout {
        Checkout::find(self.path()).unwrap()
    }

    fn git(&self, arguments: &[&str]) -> String {
        let mut git = Command::new("git");
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("GIT_")) {
            git.env_remove(name);
        }
        git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
        git.args(["-c", "user.name=test", "-c", "user.email=test@localhost", "-c", "protocol.file.allow=always"]);
        let output = git.args(arguments).current_dir(self.path()).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    fn commit(&self, file: &str, subject: &str) -> String {
        fs::write(self.path().join(file), subject).unwrap();
        self.git(&["add", "--", file]);
        self.git(&["commit", "--quiet", "-m", subject]);
        self.git(&["rev-parse", "HEAD"])
    }

    fn ask(&self) -> Facts {
        let answer = self.ask_within(Duration::from_secs(60));
        assert!(!answer.out_of_time, "{answer:?}");
        answer.facts
    }

    fn ask_within(&self, limit: Duration) -> Answer {
        let checkout = self.checkout();
        let end = checkout.head();
        let closed_ms = SystemClock::new().now().wall_ms;
        let question =
            Question { checkout: &checkout, start: &self.start, end: &end, started_ms: self.started_ms, closed_ms };
        RealGit::default().ask(&question, limit)
    }
}

fn subjects(facts: &Facts) -> Vec<&str> {
    facts.commits.as_ref().unwrap().iter().map(|commit| commit.subject.as_str()).collect()
}

#[test]
fn commits_are_those_that_appeared_and_no_others() {
    let mut repository = Repository::new();
    repository.git(&["checkout", "--quiet", "-b", "other"]);
    repository.commit("other.txt", "On another branch, before");
    repository.git(&["checkout", "--quiet", "main"]);
    repository.begin();
    repository.commit("a.txt", "Made");
    repository.commit("b.txt", "Made and then amended");
    repository.git(&["commit", "--quiet", "--amend", "-m", "Amended"]);
    repository.git(&["checkout", "--quiet", "other"]);
    repository.git(&["checkout", "--quiet", "main"]);
    repository.git(&["merge", "--quiet", "--no-ff", "-m", "Merged", "other"]);
    let facts = repository.ask();
    assert_eq!(subjects(&facts), ["Made", "Amended", "On another branch, before", "Merged"]);
    assert_eq!(facts.commits_from, Some(CommitsFrom::Reflog));
    assert_eq!(facts.changed_files.unwrap(), ["a.txt", "b.txt", "other.txt"]);
    assert_eq!(facts.repository_roots.unwrap().len(), 1);
    assert_eq!(facts.head_tree.unwrap(), repository.git(&["rev-parse", "HEAD^{tree}"]));
    let commits = facts.commits.unwrap();
    assert!(commits[0].patch_id.as_ref().is_some_and(|id| id.len() == 40), "{commits:?}");
    assert_eq!(commits[3].patch_id, None, "a merge has no patch");
    assert_eq!(facts.missing, Vec::<String>::new());
}

#[test]
fn a_squash_can_be_matched_by_patch_id_after_the_branch_is_gone() {
    let repository = Repository::new();
    repository.git(&["checkout", "--quiet", "-b", "topic"]);
    repository.commit("a.txt", "The change");
    let facts = repository.ask();
    let recorded = facts.commits.unwrap()[0].clone();
    repository.git(&["checkout", "--quiet", "main"]);
    repository.commit("unrelated.txt", "Meanwhile");
    repository.git(&["merge", "--quiet", "--squash", "topic"]);
    repository.git(&["commit", "--quiet", "-m", "Squashed"]);
    let diff = repository.git(&["show", "--format=%H", "HEAD"]);
    assert!(diff.contains("+The change"));
    let again = repository.ask();
    let squashed = again.commits.as_ref().unwrap().last().unwrap();
    assert_ne!(squashed.sha, recorded.sha);
    assert_eq!(squashed.patch_id, recorded.patch_id);
}

#[test]
fn without_a_reflog_the_range_is_told_and_labelled() {
    let repository = Repository::new();
    repository.git(&["config", "core.logAllRefUpdates", "false"]);
    fs::remove_dir_all(repository.path().join(".git/logs")).unwrap();
    repository.commit("a.txt", "One");
    repository.commit("b.txt", "Two");
    let facts = repository.ask();
    assert_eq!(facts.commits_from, Some(CommitsFrom::Range));
    assert_eq!(subjects(&facts), ["One", "Two"]);
}

#[test]
fn a_rewritten_reflog_is_read_by_its_times() {
    let repository = Repository::new();
    let made = repository.commit("a.txt", "Made");
    let log = repository.path().join(".git/logs/HEAD");
    let text = fs::read_to_string(&log).unwrap();
    fs::write(&log, text.lines().last().unwrap().to_owned() + "\n").unwrap();
    let facts = repository.ask();
    assert_eq!(facts.commits.unwrap()[0].sha, made);
}

#[test]
fn only_what_was_written_during_the_session_counts_as_changed() {
    let mut repository = Repository::new();
    fs::write(repository.path().join("old and dirty"), "x").unwrap();
    let past = std::time::SystemTime::now() - Duration::from_secs(3600);
    fs::File::options().write(true).open(repository.path().join("old and dirty")).unwrap().set_modified(past).unwrap();
    repository.begin();
    fs::write(repository.path().join("new ü"), "x").unwrap();
    fs::write(repository.path().join("first.txt"), "changed").unwrap();
    fs::create_dir_all(repository.path().join(".ai/repo/sessions")).unwrap();
    fs::write(repository.path().join(".ai/repo/sessions/ours"), "x").unwrap();
    let facts = repository.ask();
    assert_eq!(facts.changed_files.unwrap(), ["first.txt", "new ü"]);
    assert_eq!(facts.uncommitted_files.unwrap(), ["first.txt", "new ü"]);
}

#[test]
fn a_path_that_is_not_text_is_escaped_so_that_it_can_be_had_back() {
    use std::os::unix::ffi::OsStrExt;
    let repository = Repository::new();
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9\\x");
    if fs::write(repository.path().join(name), "x").is_err() {
        return; // a file system that only takes UTF-8 has no such path
    }
    fs::write(repository.path().join("caf\\xe9\\x"), "x").unwrap();
    assert_eq!(repository.ask().changed_files.unwrap(), ["caf\\\\xe9\\\\x", "caf\\xe9\\\\x"]);
}

#[test]
fn a_patch_id_is_the_same_under_any_configuration() {
    let repository = Repository::new();
    let long: String = (0..40).map(|number| format!("line {number}\n\n")).collect();
    fs::write(repository.path().join(".git/info/attributes"), "*.txt diff=driver\n").unwrap();
    fs::write(repository.path().join("old name.txt"), &long).unwrap();
    fs::write(repository.path().join("binary"), b"\0one").unwrap();
    // Two algorithms take different lines of this for the same.
    fs::write(repository.path().join("blocks.txt"), "a\n{\nb\n}\n\nc\n{\nd\n}\n").unwrap();
    repository.git(&["add", "."]);
    repository.git(&["commit", "--quiet", "-m", "Files"]);
    fs::rename(repository.path().join("old name.txt"), repository.path().join("é.txt")).unwrap();
    let changed = long.replace("line 9\n", "line nine\n").replace("line 18\n", "");
    fs::write(repository.path().join("é.txt"), changed).unwrap();
    fs::write(repository.path().join("binary"), b"\0two").unwrap();
    fs::write(repository.path().join("blocks.txt"), "e\n{\nf\n}\n\na\n{\nb\n}\n").unwrap();
    repository.git(&["add", "."]);
    repository.git(&["commit", "--quiet", "-m", "Renamed and changed"]);
    let ids = || -> Vec<_> { repository.ask().commits.unwrap().into_iter().map(|commit| commit.patch_id).collect() };
    let plain = ids();
    assert!(plain.iter().all(Option::is_some) && plain.len() == 2);
    for (name, value) in [
        ("color.ui", "always"),
        ("diff.noprefix", "true"),
        ("diff.mnemonicPrefix", "true"),
        ("diff.srcPrefix", "x/"),
        ("diff.context", "0"),
        ("diff.interHunkContext", "9"),
        ("diff.renames", "copies"),
        ("diff.algorithm", "histogram"),
        ("diff.driver.algorithm", "histogram"),
        ("diff.driver.textconv", "sort"),
        ("diff.driver.command", "echo"),
        ("diff.indentHeuristic", "false"),
        ("diff.suppressBlankEmpty", "true"),
        ("diff.relative", "true"),
        ("diff.orderFile", "/dev/null"),
        ("diff.submodule", "log"),
        ("diff.wsErrorHighlight", "all"),
        ("core.abbrev", "5"),
        ("core.quotePath", "false"),
        ("core.bigFileThreshold", "1"),
        ("patchid.stable", "false"),
        ("patchid.verbatim", "true"),
        ("log.showRoot", "false"),
        ("log.diffMerges", "off"),
        ("format.pretty", "email"),
        ("format.notes", "*"),
    ] {
        repository.git(&["config", name, value]);
        assert_eq!(ids(), plain, "{name}");
    }
}

#[test]
fn a_merge_does_not_bring_up_what_its_own_branch_had_before() {
    let mut repository = Repository::new();
    repository.git(&["checkout", "--quiet", "-b", "topic"]);
    repository.commit("earlier.txt", "Before the session");
    repository.git(&["checkout", "--quiet", "main"]);
    repository.commit("theirs.txt", "Meanwhile");
    repository.git(&["checkout", "--quiet", "topic"]);
    repository.begin();
    repository.git(&["merge", "--quiet", "--no-ff", "-m", "Merged", "main"]);
    let facts = repository.ask();
    assert_eq!(subjects(&facts), ["Meanwhile", "Merged"]);
    assert_eq!(facts.changed_files.unwrap(), ["theirs.txt"]);
}

#[test]
fn many_commits_are_listed_without_patch_ids() {
    let repository = Repository::new();
    let stream: String = (0..1_100).fold(String::new(), |stream, number| {
        let from = if number == 0 { "from refs/heads/main^0\n" } else { "" };
        let person = format!("x <x@y> {} +0000", 1_800_000_000 + number);
        let subject = format!("Number {number} {}", "long ".repeat(100));
        let data = format!("data {}\n{subject}\n", subject.len());
        stream
            + &format!(
                "commit refs/heads/many\ncommitter {person}\n{data}{from}M 100644 inline f{number}\ndata 1\nx\n\n"
            )
    });
    let file = repository.path().join(".git/stream");
    fs::write(&file, stream).unwrap();
    let mut import = Command::new("git");
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("GIT_")) {
        import.env_remove(name);
    }
    import.args(["fast-import", "--quiet"]).current_dir(repository.path()).stdin(fs::File::open(&file).unwrap());
    assert!(import.status().unwrap().success());
    repository.git(&["merge", "--quiet", "--ff-only", "many"]);
    let facts = repository.ask();
    let commits = facts.commits.unwrap();
    assert_eq!(commits.len(), 1000);
    assert!(commits[999].subject.starts_with("Number 1099 long "), "the last ones are kept");
    assert!(commits.iter().all(|commit| commit.patch_id.is_none() && commit.subject.ends_with(" long…")));
    assert_eq!(facts.missing, ["commits: all but the last 1000", "patch_id: there are too many commits"]);
}

#[test]
fn a_shallow_clone_does_not_say_where_its_history_begins() {
    let origin = Repository::new();
    origin.commit("a.txt", "Second");
    let mut clone = Repository::new();
    let url = format!("file://{}", origin.path().display());
    clone.git(&["clone", "--quiet", "--depth", "1", &url, "inner"]);
    let inner = clone.path().join("inner");
    clone.folder = {
        let moved = tempfile::tempdir().unwrap();
        fs::rename(&inner, moved.path().join("inner")).unwrap();
        moved
    };
    let checkout = Checkout::find(&clone.path().join("inner")).unwrap();
    let head = checkout.head();
    let question = Question { checkout: &checkout, start: &head, end: &head, started_ms: 0, closed_ms: i64::MAX };
    let facts = RealGit::default().ask(&question, Duration::from_secs(60)).facts;
    assert_eq!(facts.repository_roots, None);
    assert_eq!(facts.missing, ["repository_roots: the clone is shallow"]);
    assert_eq!(facts.commits, Some(Vec::new()));
}

#[test]
fn an_unborn_branch_has_no_commits_and_that_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let mut repository = Repository { folder, start: Head::default(), started_ms: 0 };
    repository.git(&["init", "--quiet", "--initial-branch=main"]);
    repository.begin();
    let facts = repository.ask();
    assert_eq!((facts.commits, facts.repository_roots), (Some(Vec::new()), Some(Vec::new())));
    let first = repository.commit("a.txt", "The first");
    let facts = repository.ask();
    assert_eq!((facts.commits.unwrap()[0].sha.clone(), facts.changed_files), (first, Some(vec!["a.txt".into()])));
}
