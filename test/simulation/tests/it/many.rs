use std::thread::available_parallelism;
use std::time::Instant;

use majordomus_simulation::{Tally, run_seeds};

/// How many are run each time.
const RUNS: u64 = 10_000;

#[test]
fn whatever_goes_wrong_the_record_stays_truthful() {
    let (began, threads) = (Instant::now(), available_parallelism().map_or(1, usize::from));
    let (tally, failures) = run_seeds(0..RUNS, threads);
    println!("{RUNS} simulations in {:.1} s: {tally:?}", began.elapsed().as_secs_f64());
    let told: Vec<String> = failures.iter().map(ToString::to_string).collect();
    assert!(failures.is_empty(), "{} runs failed:\n\n{}", failures.len(), told.join("\n"));
    assert_eq!(tally.runs, RUNS);
    // What never happens proves nothing.
    let Tally { sessions, closed, expired, shut_down, take_overs, returns, killed_at_work, power_losses, .. } = tally;
    assert!(sessions > 3 * RUNS, "{sessions} sessions");
    for often in [closed, expired, shut_down, take_overs, returns, killed_at_work, power_losses] {
        assert!(often > RUNS / 10, "something has hardly happened");
    }
}
