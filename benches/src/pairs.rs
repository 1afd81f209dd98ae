//! Two things measured in turns, so that what disturbs the machine disturbs both.

use std::time::Instant;

use anyhow::Result;

/// How many rounds to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effort {
    /// Enough to see that everything works.
    Quick,
    /// Enough for a median that holds.
    Full,
}

impl Effort {
    /// `full` rounds, or a sixth of them.
    pub(crate) fn rounds(self, full: usize) -> usize {
        match self {
            Self::Quick => full.div_ceil(6).max(3),
            Self::Full => full,
        }
    }
}

/// The middle, the least and the most of some numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

impl Spread {
    /// Sums up numbers, of which there is at least one.
    pub(crate) fn of(mut values: Vec<f64>) -> Self {
        values.sort_unstable_by(f64::total_cmp);
        let middle = values.len() / 2;
        let median = if values.len().is_multiple_of(2) {
            f64::midpoint(values[middle - 1], values[middle])
        } else {
            values[middle]
        };
        Self { median, least: values[0], most: values[values.len() - 1] }
    }
}

/// What a series of pairs gave.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paired {
    /// Seconds, or how many per second.
    pub(crate) ours: Spread,
    /// In the same unit.
    pub(crate) floor: Spread,
    /// Of each pair, not of the medians.
    pub(crate) ratio: Spread,
}

impl Paired {
    /// Sums up pairs of ours and the floor.
    pub(crate) fn of(pairs: &[(f64, f64)]) -> Self {
        Self {
            ours: Spread::of(pairs.iter().map(|pair| pair.0).collect()),
            floor: Spread::of(pairs.iter().map(|pair| pair.1).collect()),
            ratio: Spread::of(pairs.iter().map(|pair| pair.0 / pair.1).collect()),
        }
    }
}

/// Takes `rounds` pairs after a few that do not count. Each side returns what it took itself, so that it can prepare
/// and check outside of it; which goes first changes every round, as each may leave the disk busy for the other.
pub(crate) fn in_turns(
    rounds: usize,
    mut ours: impl FnMut() -> Result<f64>,
    mut floor: impl FnMut() -> Result<f64>,
) -> Result<Paired> {
    for _ in 0..rounds.div_ceil(10).min(5) {
        ours()?;
        floor()?;
    }
    let mut pairs = Vec::with_capacity(rounds);
    for round in 0..rounds {
        pairs.push(if round.is_multiple_of(2) {
            let ours = ours()?;
            (ours, floor()?)
        } else {
            let floor = floor()?;
            (ours()?, floor)
        });
    }
    Ok(Paired::of(&pairs))
}

/// The number that as many per cent of them are below; they are sorted, and there is at least one.
pub(crate) fn percentile(sorted: &[f64], percent: usize) -> f64 {
    sorted[(sorted.len() * percent / 100).min(sorted.len() - 1)]
}

/// Seconds that something takes.
pub(crate) fn seconds<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let begun = Instant::now();
    let done = work();
    (begun.elapsed().as_secs_f64(), done)
}
