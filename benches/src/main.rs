//! Budgets, measured beside their floors in one run.
//!
//! The machine is noisy, so nothing here is a number to compare with another run: each row takes what the product does
//! and the least that would have to be done anyway in turns, and reports the median of the ratios of the pairs. A run
//! builds nothing and asserts nothing; it exits 0 whatever the ratios are, and 1 only where something could not be
//! measured because it did not do what it should.
//!
//! `cargo build --release -p majordomus-cli -p majordomus-benches` first, then `cargo run --release -p majordomus-benches`.

mod arguments;
mod bed;
mod calls;
mod cores;
mod counting;
mod hooks;
mod load;
mod memory;
mod pairs;
mod records;
mod repository;
mod rows;
mod served;
mod sessions;
mod table;
mod talker;
mod watch;
mod wire;

use std::process::ExitCode;

use anyhow::ensure;
use arguments::Arguments;
use bed::Bed;
use rows::GROUPS;
use table::{Report, note, say};

fn main() -> ExitCode {
    let arguments = match Arguments::parse(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(usage) => {
            note(&usage);
            return ExitCode::from(2);
        }
    };
    match measure(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            note(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn measure(arguments: &Arguments) -> anyhow::Result<()> {
    let bed = Bed::make()?;
    say(&bed.describe());
    let (mut report, mut failed) = (Report::default(), Vec::new());
    for group in GROUPS.iter().filter(|group| arguments.wants(group.name)) {
        note(&format!("measuring {} …", group.name));
        // One that fails takes nothing from what the others say.
        if let Err(error) = (group.measure)(&bed, arguments.effort(), &mut report) {
            note(&format!("error: {}: {error:#}", group.name));
            failed.push(group.name);
        }
    }
    say(&report.render());
    say(&format!("load average at the end {}", bed::load()));
    ensure!(failed.is_empty(), "could not be measured: {}", failed.join(", "));
    Ok(())
}
