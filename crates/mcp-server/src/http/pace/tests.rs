use std::time::Duration;

use majordomus_capability::Code;

use super::{Pace, PaceLimits};

const LIMITS: PaceLimits = PaceLimits { at_once: 2, per_second: 10, burst: 3 };

fn at(milliseconds: u64) -> Duration {
    Duration::from_secs(100) + Duration::from_millis(milliseconds)
}

#[test]
fn only_so_many_run_at_once() {
    let pace = Pace::new(LIMITS, at(0));
    let first = pace.begin(LIMITS, at(0), 1).unwrap();
    let _second = pace.begin(LIMITS, at(0), 1).unwrap();
    assert_eq!(pace.begin(LIMITS, at(0), 1).unwrap_err().code, Code::Unavailable);
    drop(first);
    assert!(pace.begin(LIMITS, at(0), 1).is_ok());
}

#[test]
fn only_so_many_come_per_second_after_a_burst() {
    let pace = Pace::new(LIMITS, at(0));
    let come = |from: u64, to: u64| (from..to).filter(|ms| pace.begin(LIMITS, at(*ms), 1).is_ok()).count();
    assert_eq!(come(0, 2), 2);
    // A call in each millisecond of ten seconds: the burst, and ten in each second.
    let taken = come(2, 10_002);
    assert!((100..=102).contains(&taken), "{taken}");
    let quiet = (0..9).filter(|_| pace.begin(LIMITS, at(60_000), 1).is_ok()).count();
    assert_eq!(quiet, 3, "a long quiet saves up no more than a burst");
}

#[test]
fn a_clock_that_stands_still_or_runs_backwards_gives_nothing_away() {
    let pace = Pace::new(LIMITS, at(50));
    let taken = (0..9).filter(|_| pace.begin(LIMITS, at(0), 1).is_ok()).count();
    assert_eq!(taken, 3);
}

#[test]
fn a_batch_counts_as_what_is_in_it() {
    let pace = Pace::new(LIMITS, at(0));
    assert!(pace.begin(LIMITS, at(0), 2).is_ok());
    assert!(pace.begin(LIMITS, at(0), 2).is_err());
    assert!(pace.begin(LIMITS, at(0), 1).is_ok());
    // And one that is larger than any burst is not refused for ever.
    assert!(pace.begin(LIMITS, at(60_000), 100).is_ok());
    assert!(pace.begin(LIMITS, at(60_000), 1).is_err());
}
