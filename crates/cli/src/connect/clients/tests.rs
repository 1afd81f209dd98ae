use std::time::Instant;

use majordomus_providers::EventKind;

use super::*;

#[test]
fn a_version_is_the_first_that_a_text_has() {
    for (text, is) in [
        ("2.1.332 (Claude Code)", Some([2, 1, 332])),
        ("codex-cli 0.171.0\n", Some([0, 171, 0])),
        ("v1.0.102-beta.3, node 20.1.0", Some([1, 0, 102])),
        ("2026.09.10-abc", Some([2026, 9, 10])),
        ("version 3.1", None),
        ("1..2.3", None),
        ("", None),
    ] {
        assert_eq!(version(text), is, "{text}");
    }
}

#[test]
fn only_names_that_the_version_knows_are_declared() {
    const ALL: &[Written] = &[
        Written { name: "Start", event: EventKind::Start, since: None },
        Written { name: "End", event: EventKind::End, since: Some("0.146.0") },
    ];
    let names = |version| {
        let Known { written, untold, unknown } = sorted(ALL, version);
        [written, untold, unknown].map(|all| all.iter().map(|written| written.name).collect::<Vec<_>>())
    };
    assert_eq!(names(Some([0, 146, 0])), [vec!["Start", "End"], vec![], vec![]]);
    assert_eq!(names(Some([1, 0, 0])), [vec!["Start", "End"], vec![], vec![]]);
    assert_eq!(names(Some([0, 99, 9])), [vec!["Start"], vec![], vec!["End"]]);
    assert_eq!(names(None), [vec!["Start"], vec!["End"], vec![]]);
}

#[test]
fn every_declared_first_version_can_be_read() {
    let all = majordomus_providers::all().iter().filter_map(|provider| provider.adapter);
    for written in all.flat_map(|adapter| adapter.written) {
        assert!(written.since.is_none_or(|since| version(since).is_some()), "{written:?}");
    }
}

#[test]
fn a_program_that_does_not_get_done_is_not_waited_for() {
    let since = Instant::now();
    let run = |script: &str| bounded::output(Command::new("sh").args(["-c", script]), Duration::from_millis(200));
    assert_eq!(run("echo 1.2.3").as_deref(), Some("1.2.3\n"));
    assert_eq!(run("read x; echo done $x").as_deref(), Some("done\n"), "it gets nothing to read");
    assert_eq!(run("echo 1.2.3; exit 1"), None);
    assert_eq!(run("sleep 60"), None);
    assert_eq!(run("exec >&-; sleep 60"), None);
    assert_eq!(run("sleep 60 & echo 1"), None, "nor what it leaves behind");
    assert_eq!(bounded::output(&mut Command::new("/does/not/exist"), LIMIT), None);
    assert!(since.elapsed() < Duration::from_secs(20));
}
