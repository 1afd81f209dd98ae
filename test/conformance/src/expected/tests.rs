use super::{Expected, Tally};
use crate::suite::{Check, Status};

fn check(id: &str, status: Status) -> Check {
    Check { id: id.into(), status, error: None }
}

fn tally(entries: &str, checks: &[(&str, Status)]) -> Tally {
    let mut expected = Expected::of(&format!("server: [{entries}]")).unwrap();
    let checks: Vec<Check> = checks.iter().map(|(id, status)| check(id, *status)).collect();
    let mut tally = Tally::default();
    tally.count(&expected.judge("a", &checks));
    tally
}

const PASSED: Tally = Tally { passed: 1, expected: 0, skipped: 0, wrong: 0 };
const EXPECTED: Tally = Tally { passed: 0, expected: 1, skipped: 0, wrong: 0 };
const SKIPPED: Tally = Tally { passed: 0, expected: 0, skipped: 1, wrong: 0 };
const WRONG: Tally = Tally { passed: 0, expected: 0, skipped: 0, wrong: 1 };

#[test]
fn what_fails_has_to_be_expected_and_what_is_expected_has_to_fail() {
    use Status::{Failure, Info, Skipped, Success, Warning};
    let (good, mixed) = ([("x", Success), ("y", Info)], [("x", Success), ("y", Failure)]);
    for (entries, checks, outcome) in [
        ("", &good[..], PASSED),
        ("b", &good, PASSED),
        ("a", &good, WRONG),
        ("", &mixed, WRONG),
        ("a", &mixed, EXPECTED),
        ("'a:y'", &mixed, EXPECTED),
        ("'a:x'", &mixed, WRONG),
        ("'a:x', 'a:y'", &mixed, WRONG),
        ("'a:z'", &good, PASSED),
        ("", &[("x", Warning)], WRONG),
        ("a", &[("x", Warning)], EXPECTED),
        ("'a:x'", &[("x", Success), ("x", Failure)], EXPECTED),
        ("", &[("x", Skipped), ("y", Info)], SKIPPED),
        ("'a:x'", &[("x", Skipped), ("y", Success)], PASSED),
        ("", &[], WRONG),
        ("a", &[], WRONG),
    ] {
        assert_eq!(tally(entries, checks), outcome, "{entries}: {checks:?}");
    }
}

#[test]
fn an_entry_has_to_fail_wherever_it_is_run_and_to_be_about_something() {
    let mut expected = Expected::of("server: [a, 'b:x', 'b:y']").unwrap();
    assert!(expected.judge("b", &[check("x", Status::Failure)]).wrong.is_empty());
    assert_eq!(expected.judge("b", &[check("x", Status::Success)]).wrong, ["x passes, and is expected to fail"]);
    assert_eq!(expected.unmet().collect::<Vec<_>>(), ["a", "b:y"]);
    assert!(Expected::of("server: [a, a]").is_err());
}
