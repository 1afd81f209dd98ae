//! What a person is shown.

use std::path::Path;

use crate::client::{CLIENTS, Client};
use crate::proof::{Proof, expected};
use crate::scenario::{Scenario, UNSHOWN, scenarios};

/// One run in the table.
pub(crate) struct Row {
    cells: [String; 5],
    wrong: Vec<String>,
}

impl Row {
    pub(crate) fn new(client: &Client, scenario: &Scenario, proof: &anyhow::Result<Proof>) -> Self {
        let (found, wrong) = match proof {
            Ok(proof) => (proof.found.join("; "), proof.wrong.clone()),
            Err(error) => ("nothing".into(), vec![format!("{error:#}")]),
        };
        let own = [client.name, client.package.version, scenario.name].map(str::to_owned);
        let [name, version, scenario_name] = own;
        Self { cells: [name, version, scenario_name, expected(scenario), found], wrong }
    }

    pub(crate) fn is_ok(&self) -> bool {
        self.wrong.is_empty()
    }

    /// What is shown as soon as the run is over.
    pub(crate) fn line(&self) -> String {
        let [client, _, scenario, _, found] = &self.cells;
        let mut line = format!("{} {client} {scenario}: {found}", self.verdict());
        for wrong in &self.wrong {
            line.push_str(&format!("\n    {}", wrong.replace('\n', "\n    ")));
        }
        line
    }

    fn verdict(&self) -> &'static str {
        if self.is_ok() { "ok    " } else { "FAILED" }
    }
}

/// Prints all runs, and what cannot be shown.
pub(crate) fn print(rows: &[Row], runs: &Path) {
    let heads = ["client", "version", "scenario", "expected", "found"];
    let width = |at: usize| {
        let longest = rows.iter().map(|row| row.cells[at].chars().count()).max().unwrap_or_default();
        longest.max(heads[at].len())
    };
    let widths: [usize; 5] = std::array::from_fn(width);
    let line = |cells: [&str; 5], verdict: &str| {
        let padded = cells.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        println!("{}  {verdict}", padded.collect::<Vec<_>>().join("  "));
    };
    println!();
    line(heads, "");
    for row in rows {
        line(row.cells.each_ref().map(String::as_str), row.verdict().trim());
    }
    let failed = rows.iter().filter(|row| !row.is_ok()).count();
    println!("\n{} run, {failed} failed", rows.len());
    if failed > 0 {
        println!("what they left is in {}", runs.display());
    }
    not_shown();
}

/// Prints what can be run.
pub(crate) fn list() {
    for client in CLIENTS {
        println!("{} {}", client.name, client.package.version);
        for scenario in scenarios(client) {
            println!("    {:16} {}", scenario.name, expected(scenario));
        }
    }
    not_shown();
}

fn not_shown() {
    for (what, because) in UNSHOWN {
        println!("not shown: {what}: {because}");
    }
}
