//! Runs more simulations with fresh seeds: `soak [count] [first seed]`, or `soak script <file>`.

#![allow(clippy::print_stdout, reason = "a program for people")]

use std::process::ExitCode;
use std::thread::available_parallelism;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use majordomus_simulation::{Ground, minimise, run_script, run_seeds};

fn main() -> ExitCode {
    std::panic::set_hook(Box::new(|_| ()));
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [word, path] = arguments.as_slice()
        && word == "script"
    {
        return script(path);
    }
    let number = |at: usize| arguments.get(at).and_then(|word| word.parse::<u64>().ok());
    let fresh = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs() << 20);
    let (count, first) = (number(0).unwrap_or(100_000), number(1).unwrap_or_else(fresh));
    let (began, threads) = (Instant::now(), available_parallelism().map_or(1, usize::from));
    let (ran, failures) = run_seeds(first..first.saturating_add(count), threads);
    println!("from seed {first} in {:.1} s, {} failed: {ran:?}", began.elapsed().as_secs_f64(), failures.len());
    for failure in &failures {
        println!("\n{failure}");
    }
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn script(path: &str) -> ExitCode {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) => {
            println!("cannot read {path}: {error}");
            return ExitCode::FAILURE;
        }
    };
    let ground = Ground::new();
    match run_script(&ground, &text) {
        Ok(tally) => {
            println!("{tally:?}");
            ExitCode::SUCCESS
        }
        Err(failure) => {
            println!("{}", minimise(&ground, failure));
            ExitCode::FAILURE
        }
    }
}
