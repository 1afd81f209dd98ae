use super::*;

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
        assert!(parse(wrong.as_bytes()).is_none_or(|entry| entry.old.is_empty()), "{wrong}");
    }
}
