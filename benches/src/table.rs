//! The one table, and the only place that prints.

use crate::pairs::{Paired, Spread};

/// One row of the table.
struct Row {
    /// What was measured.
    what: String,
    /// What came out, in its unit.
    ours: String,
    /// What it was compared with, in the same unit.
    floor: String,
    /// The ratio of the two, where there are two.
    ratio: String,
    /// What was promised.
    budget: Option<Budget>,
    /// What the floor is.
    against: String,
}

/// A promise, and whether it was kept.
struct Budget {
    text: String,
    is_met: bool,
}

/// What a run has to say.
#[derive(Default)]
pub(crate) struct Report {
    rows: Vec<Row>,
    notes: Vec<String>,
}

impl Report {
    /// Adds a row of times; the budget is the most that the ratio may be.
    pub(crate) fn row(&mut self, what: &str, against: &str, paired: Paired, budget: impl Into<Option<f64>>) {
        let budget =
            budget.into().map(|most| Budget { text: format!("≤ {most}×"), is_met: paired.ratio.median <= most });
        self.pair(what, against, paired, time, budget);
    }

    /// Adds a row of times, of which none may be more than so many seconds, whatever the ratio is.
    pub(crate) fn bound(&mut self, what: &str, against: &str, paired: Paired, seconds: f64) {
        let budget = Budget { text: format!("each ≤ {}", time(seconds)), is_met: paired.ours.most <= seconds };
        self.pair(what, against, paired, time, Some(budget));
    }

    /// Adds a row of how many per second; the budget is the least that the ratio may be.
    pub(crate) fn rate(&mut self, what: &str, against: &str, paired: Paired, budget: impl Into<Option<f64>>) {
        let budget =
            budget.into().map(|least| Budget { text: format!("≥ {least}×"), is_met: paired.ratio.median >= least });
        self.pair(what, against, paired, |per_second| format!("{per_second:.0}/s"), budget);
    }

    /// Adds a row of bytes, which nothing is compared with; the budget is the most that they may be.
    pub(crate) fn size(&mut self, what: &str, bytes: f64, budget: f64) {
        let nothing = || "–".to_owned();
        let budget = Budget { text: format!("≤ {}", size(budget)), is_met: bytes <= budget };
        let (ours, budget) = (size(bytes), Some(budget));
        self.rows.push(Row { what: what.into(), ours, floor: nothing(), ratio: nothing(), budget, against: nothing() });
    }

    fn pair(&mut self, what: &str, against: &str, paired: Paired, unit: fn(f64) -> String, budget: Option<Budget>) {
        let Spread { median, least, most } = paired.ratio;
        self.rows.push(Row {
            what: what.into(),
            ours: unit(paired.ours.median),
            floor: unit(paired.floor.median),
            ratio: format!("{median:.2} ({least:.2}–{most:.2})"),
            budget,
            against: against.into(),
        });
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
        let Self { what, ours, floor, ratio, budget, against } = self;
        let (budget, met) = match budget {
            Some(Budget { text, is_met }) => (text.as_str(), if *is_met { "yes" } else { "NO" }),
            None => ("–", "–"),
        };
        [what, ours, floor, ratio, budget, met, against].map(|cell| cell.to_owned()).into()
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

/// Bytes, in KiB.
pub(crate) fn size(bytes: f64) -> String {
    let digits = if bytes.rem_euclid(1024.0) == 0.0 { 0 } else { 2 };
    format!("{:.digits$} KiB", bytes / 1024.0)
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
