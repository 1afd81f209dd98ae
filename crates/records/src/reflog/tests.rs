use super::*;
use crate::checkout::Checkout;
use crate::line::Head;

const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

fn moved(message: &str) -> Option<Move> {
    let line = format!("{A} {B} Some One <one@host> 1800000000 +0100\t{message}");
    parse(line.as_bytes()).unwrap().moved()
}

#[test]
fn what_makes_a_commit_is_told_from_what_only_moves_head() {
    let made = Some(Move::Made { replaced: None, made: B.into() });
    for message in [
        "commit: x",
        "commit (initial): x",
        "commit (merge): x",
        "cherry-pick: x",
        "revert: x",
        "am: x",
        "rebase (pick): x",
        "rebase (continue): x",
    ] {
        assert_eq!(moved(message), made, "{message}");
    }
    let replaced = Some(Move::Made { replaced: Some(A.into()), made: B.into() });
    for message in ["commit (amend): x", "rebase (fixup): x", "rebase (squash): x"] {
        assert_eq!(moved(message), replaced, "{message}");
    }
    let brought = Some(Move::Brought { from: A.into(), to: B.into() });
    for message in ["pull: Fast-forward", "merge topic: Merge made by the 'ort' strategy.", "pull --rebase (finish): x"]
    {
        assert_eq!(moved(message), brought, "{message}");
    }
    for message in [
        "checkout: moving from a to b",
        "reset: moving to HEAD~1",
        "rebase (start): checkout x",
        "rebase (finish): returning to refs/heads/x",
        "clone: from x",
        "Branch: renamed",
        "",
    ] {
        assert_eq!(moved(message), None, "{message}");
    }
}

#[test]
fn a_name_may_hold_anything() {
    let line = format!("{A} {B} 17 a b > < 1 <x y> 1800000000 -0700\tcommit: x\ty");
    let entry = parse(line.as_bytes()).unwrap();
    assert_eq!((entry.seconds, entry.message), (1_800_000_000, &b"commit: x\ty"[..]));
    for wrong in ["", "\t", "x y z", "zz zz a 1 2\tcommit: x"] {
        assert!(parse(wrong.as_bytes()).is_none(), "{wrong}");
    }
}

/// A reflog of a checkout, and what it says between two of its lengths.
fn asked(text: &str, start: Head, end: Head, seconds: [i64; 2]) -> Option<Moves> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("logs")).unwrap();
    std::fs::write(folder.path().join("logs/HEAD"), text).unwrap();
    let git_dir = folder.path().to_path_buf();
    let checkout = Checkout { worktree: None, common_dir: git_dir.clone(), git_dir, name: "main".into() };
    let (started_ms, closed_ms) = (seconds[0] * 1000, seconds[1] * 1000);
    between(folder.path(), &Question { checkout: &checkout, start: &start, end: &end, started_ms, closed_ms })
}

fn at(reflog: usize) -> Head {
    Head { head: Some(A.into()), reflog: Some(reflog as u64), ..Head::default() }
}

fn made(number: usize) -> (String, Move) {
    let sha = format!("{number:040x}");
    (format!("{A} {sha} x <x@y> {number} +0000\tcommit: x\n"), Move::Made { replaced: None, made: sha })
}

#[test]
fn the_window_is_read_and_nothing_around_it() {
    let (one, two, three) = (made(1), made(2), made(3));
    let text = format!("{}{}{}", one.0, two.0, three.0);
    let (from, to) = (one.0.len(), one.0.len() + two.0.len());
    let moves = |moves: Vec<Move>| Some(Moves { moves, cut: false });
    assert_eq!(asked(&text, at(from), at(to), [0, 0]), moves(vec![two.1.clone()]));
    assert_eq!(asked(&text, Head::default(), at(from), [0, 0]), moves(vec![one.1]), "from the first commit on");
    assert_eq!(asked(&text, at(from), at(from), [0, 0]), moves(Vec::new()));
    // What does not fit lines, or the file, is read by its times.
    assert_eq!(asked(&text, at(from + 1), at(to), [2, 2]), moves(vec![two.1.clone()]));
    assert_eq!(asked(&text, at(0), at(text.len() + 1), [3, 9]), moves(vec![three.1]));
    let unreadable = Head { unreadable: true, ..Head::default() };
    assert_eq!(asked(&text, unreadable, at(to), [2, 2]), moves(vec![two.1]), "unreadable is not unborn");
}

#[test]
fn of_a_long_reflog_the_end_is_read() {
    let lines: Vec<(String, Move)> = (0..60_000).map(made).collect();
    let text: String = lines.iter().map(|line| line.0.as_str()).collect();
    assert!(text.len() as u64 > READ_MOST + 1_000_000);
    let whole = asked(&text, at(0), at(text.len()), [0, 0]).unwrap();
    assert!(whole.cut && whole.moves.len() < 60_000 && whole.moves.len() > 20_000);
    assert_eq!(whole.moves.last(), lines.last().map(|line| &line.1));
    // By time: the session is wholly in the part that is read, or not.
    let late = asked(&text, at(1), at(text.len()), [59_990, 70_000]).unwrap();
    assert_eq!((late.moves.len(), late.cut), (10, false));
    assert!(asked(&text, at(1), at(text.len()), [5, 70_000]).unwrap().cut);
}

#[test]
fn a_pipe_in_its_place_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("logs");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.is_ok_and(|status| status.success()));
    assert!(open(&pipe).is_none());
}
