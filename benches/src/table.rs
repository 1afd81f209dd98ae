//! The one table, and the only place that prints.

use crate::pairs::{Paired, Spread};

/// One row of the table.
pub(crate) struct Row {
    /// What was measured.
    pub(crate) what: String,
    /// What it was compared with.
    pub(crate) against: String,
    /// What came out.
    pub(crate) paired: Paired,
    /// The most that the ratio may be; absent where none was set.
    pub(crate) budget: Option<f64>,
}

/// What a run has to say.
#[derive(Default)]
pub(crate) struct Report {
    rows: Vec<Row>,
    notes: Vec<String>,
}

impl Report {
    /// Adds a row with a budget.
    pub(crate) fn row(&mut self, what: &str, against: &str, paired: Paired, budget: impl Into<Option<f64>>) {
        self.rows.push(Row { what: what.into(), against: against.into(), paired, budget: budget.into() });
    }

    /// Adds a line below the table.
    pub(crate) fn note(&mut self, text: String) {
        self.notes.push(text);
    }

    /// Lays everything out.
    pub(crate) fn render(&self) -> String {
        let heads = ["what", "ours", "floor", "ratio (min–max)", "budget", "met", "the floor is"];
        let mut cells: Vec<Vec<String>> = vec![heads.map(Into::into).into()];
        cells.extend(self.rows.iter().map(Row::cells));
        let widths: Vec<usize> = (0..heads.len())
            .map(|column| cells.iter().map(|row| row[column].chars().count()).max().unwrap_or(0))
            .collect();
        let mut text = String::new();
        for row in &cells {
            let line: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
            text.push_str(line.join(" | ").trim_end());
            text.push('\n');
        }
        for note in &self.notes {
            text.push_str(&format!("- {note}\n"));
        }
        text
    }
}

impl Row {
    fn cells(&self) -> Vec<String> {
        let Spread { median, least, most } = self.paired.ratio;
        let met = self.budget.map_or("–", |budget| if median <= budget { "yes" } else { "NO" });
        vec![
            self.what.clone(),
            time(self.paired.ours.median),
            time(self.paired.floor.median),
            format!("{median:.2} ({least:.2}–{most:.2})"),
            self.budget.map_or_else(|| "–".into(), |budget| format!("≤ {budget}×")),
            met.into(),
            self.against.clone(),
        ]
    }
}

/// Seconds, in the unit that gives three digits.
pub(crate) fn time(seconds: f64) -> String {
    let (value, unit) = match seconds {
        seconds if seconds < 1e-6 => (seconds * 1e9, "ns"),
        seconds if seconds < 1e-3 => (seconds * 1e6, "µs"),
        seconds if seconds < 1.0 => (seconds * 1e3, "ms"),
        seconds => (seconds, "s"),
    };
    let digits = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
    format!("{value:.digits$} {unit}")
}

/// Prints a part of the report.
#[allow(clippy::print_stdout, reason = "the report is what this program is for")]
pub(crate) fn say(text: &str) {
    println!("{text}");
}

/// Prints what is not a part of the report.
#[allow(clippy::print_stderr, reason = "a program on a terminal says what it is at and what failed")]
pub(crate) fn note(text: &str) {
    eprintln!("{text}");
}
