use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::*;

/// A folder with something in git's place, and what it is asked.
struct Fake {
    folder: tempfile::TempDir,
    git: RealGit,
}

impl Fake {
    fn new(script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for part in [".git/objects", ".git/refs/heads"] {
            fs::create_dir_all(folder.path().join(part)).unwrap();
        }
        fs::write(folder.path().join(".git/HEAD"), "0123456789abcdef0123456789abcdef01234567\n").unwrap();
        let (text, program) = (folder.path().join("text"), folder.path().join("program"));
        fs::write(&text, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&text, fs::Permissions::from_mode(0o755)).unwrap();
        // A file that this process has written may still be open in a child of another test, and could not be run.
        assert!(std::process::Command::new("cp").arg(&text).arg(&program).status().unwrap().success());
        let git = RealGit::default();
        git.0.program.set(program).unwrap();
        Self { folder, git }
    }

    fn ask(&self, limit: Duration) -> Answer {
        let checkout = Checkout::find(self.folder.path()).unwrap();
        let head = checkout.head();
        let question = Question { checkout: &checkout, start: &head, end: &head, started_ms: 0, closed_ms: i64::MAX };
        self.git.ask(&question, limit)
    }
}

const SOON: Duration = Duration::from_millis(300);

/// Nothing is timed: a wait without bound is seen as a test that does not come back.
#[test]
fn no_child_is_waited_for_beyond_the_limit() {
    for script in [
        "exec sleep 100000",
        "exec 1>&-; exec sleep 100000",
        "exec 0<&-; exec sleep 100000",
        "sleep 100000 & exit 0",
        "trap '' TERM INT HUP; while :; do sleep 100000; done",
    ] {
        let fake = Fake::new(script);
        let answer = fake.ask(SOON);
        assert!(answer.out_of_time, "{script}: {answer:?}");
        let reaped = fake.git.0.unreaped.len();
        assert_eq!(reaped, 0, "{script}");
    }
}

#[test]
fn input_that_nobody_reads_does_not_keep_anybody() {
    let fake = Fake::new("exec sleep 100000");
    let checkout = Checkout::find(fake.folder.path()).unwrap();
    let (program, unreaped) = (fake.git.0.program.get().unwrap(), &fake.git.0.unreaped);
    let path = OsString::from("/bin:/usr/bin");
    let runner = |until| Runner { program, path: &path, checkout: &checkout, until, unreaped };
    let long = vec![b'x'; 1 << 20];
    assert_eq!(runner(Instant::now() + SOON).run(&[], &long), Err(Unsaid::OutOfTime));
    let deaf = Fake::new("exec 0<&-; echo said");
    let program = deaf.git.0.program.get().unwrap();
    let far = Runner { program, ..runner(Instant::now() + Duration::from_secs(60)) };
    assert_eq!(far.run(&[], &long), Ok(b"said\n".to_vec()));
    let echo = Fake::new("exec cat");
    let far = Runner { program: echo.git.0.program.get().unwrap(), ..far };
    assert_eq!(far.run(&[], &long), Ok(long), "both directions at once");
}

#[test]
fn what_says_too_much_is_cut_off_and_named() {
    let answer = Fake::new("exec yes").ask(Duration::from_secs(60));
    assert!(!answer.out_of_time);
    assert_eq!((answer.facts.commits, answer.facts.repository_roots), (None, None));
    assert!(answer.facts.missing.contains(&"repository_roots: git said too much".into()), "{:?}", answer.facts.missing);
}

#[test]
fn what_is_known_is_told_when_time_runs_out_for_the_rest() {
    // Only the roots are asked for with this word.
    let script =
        "for word; do case $word in\n--max-parents=0) echo root; exit;;\nstatus) exec sleep 100000;;\nesac; done";
    let answer = Fake::new(script).ask(Duration::from_secs(3));
    assert!(answer.out_of_time);
    assert_eq!(answer.facts.repository_roots, Some(vec!["root".into()]));
    assert_eq!(answer.facts.commits, Some(Vec::new()));
    assert_eq!(answer.facts.changed_files, None, "no commit says nothing of the files");
    assert!(answer.facts.missing.contains(&"uncommitted_files: git did not answer in time".into()));
}

#[test]
fn time_that_runs_out_for_patch_ids_loses_nothing_else() {
    let script = "for word; do case $word in\n\
        -p) exec sleep 100000;;\n\
        log) printf 'sha\\0tree\\0subject\\0'; exit;;\n\
        rev-list) echo sha; exit;;\n\
        rev-parse) echo tree; exit;;\n\
        esac; done";
    let answer = Fake::new(script).ask(Duration::from_secs(3));
    assert!(answer.out_of_time, "asking again may tell them: {answer:?}");
    let commits = answer.facts.commits.unwrap();
    assert_eq!((commits[0].subject.as_str(), commits[0].patch_id.as_ref()), ("subject", None));
    assert_eq!(answer.facts.changed_files, Some(Vec::new()));
    assert_eq!(answer.facts.missing, ["patch_id: git did not answer in time"]);
}

#[test]
fn a_repository_of_another_user_is_not_asked() {
    let asked = "echo asked >> \"$0.asked\"";
    let mine = Fake::new(asked);
    mine.ask(Duration::from_secs(60));
    assert!(mine.folder.path().join("program.asked").exists());
    let mut theirs = Fake::new(asked);
    // Everything here belongs to whoever runs the test, and that is not this user.
    Arc::get_mut(&mut theirs.git.0).unwrap().user += 1;
    let answer = theirs.ask(Duration::from_secs(60));
    assert_eq!(answer.facts.missing, ["git was not asked: the repository belongs to another user"]);
    let rest = Facts { missing: Vec::new(), ..answer.facts };
    assert_eq!((rest, answer.out_of_time), (Facts::default(), false));
    assert!(!theirs.folder.path().join("program.asked").exists());
}

#[test]
fn git_is_not_taken_from_where_the_process_stands() {
    let real = tempfile::tempdir().unwrap();
    let program = real.path().join("git");
    fs::write(&program, "#!/bin/sh\n").unwrap();
    assert_eq!(run::find_git(real.path().as_os_str()), None, "not executable");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let up: std::path::PathBuf = std::env::current_dir().unwrap().components().skip(1).map(|_| "..").collect();
    let relative = up.join(real.path().strip_prefix("/").unwrap());
    assert!(relative.join("git").is_file());
    let path = |folders: &[&Path]| std::env::join_paths(folders).unwrap();
    assert_eq!(run::find_git(&path(&[&relative])), None);
    let none = Path::new("");
    assert_eq!(
        run::find_git(&path(&[&relative, none, Path::new("."), Path::new("/nowhere"), real.path()])),
        Some(program)
    );
}

#[test]
fn a_child_finds_programs_only_in_absolute_folders() {
    let fake = Fake::new("echo \"$PATH\"");
    let checkout = Checkout::find(fake.folder.path()).unwrap();
    let path = OsString::from(".:bin::/usr/bin:/bin");
    let (program, unreaped) = (fake.git.0.program.get().unwrap(), &fake.git.0.unreaped);
    let until = Instant::now() + Duration::from_secs(60);
    let runner = Runner { program, path: &path, checkout: &checkout, until, unreaped };
    assert_eq!(runner.run(&[], b""), Ok(b"/usr/bin:/bin\n".to_vec()));
}

/// Reads a path back as its documentation says.
fn bytes_of(text: &str) -> Vec<u8> {
    let (mut out, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((&byte, after)) = rest.split_first() {
        rest = match (byte, after) {
            (b'\\', [b'\\', after @ ..]) => {
                out.push(b'\\');
                after
            }
            (b'\\', [b'x', high, low, after @ ..]) => {
                out.push(u8::from_str_radix(std::str::from_utf8(&[*high, *low]).unwrap(), 16).unwrap());
                after
            }
            (byte, after) => {
                out.push(byte);
                after
            }
        };
    }
    out
}

#[test]
fn no_two_paths_have_one_text() {
    assert_eq!(words::path_text(b"a\\xff"), "a\\\\xff");
    assert_eq!(words::path_text(b"a\xff"), "a\\xff");
    let paths: [&[u8]; 8] =
        [b"plain", b"a\\xff", b"a\xff", b"a\\\xff", b"a\\\\xff", b"\\", b"caf\xc3\xa9 \\ \xe9", b"\xff\\xff"];
    for path in paths {
        let text = words::path_text(path);
        assert_eq!(bytes_of(&text), path, "{text}");
    }
}

#[test]
fn a_long_subject_is_cut_between_words() {
    assert_eq!(words::subject("short"), "short");
    let exact = "é".repeat(300);
    assert_eq!(words::subject(&exact), exact);
    let token = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    let cut = words::subject(&format!("{} {token}", "x".repeat(280)));
    assert_eq!(cut, format!("{}…", "x".repeat(280)));
    assert_eq!(words::subject(&"x".repeat(1_000_000)), format!("{}…", "x".repeat(300)));
}
