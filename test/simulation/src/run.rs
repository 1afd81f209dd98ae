//! Running scripts, and making those that fail short.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::choose::Chooser;
use crate::server::Place;
use crate::step::{self, Step};
use crate::watch::Wrong;
use crate::world::World;

/// The folder that stands for a checkout. Nothing is written into it.
#[derive(Debug)]
pub struct Ground {
    folder: tempfile::TempDir,
}

impl Ground {
    /// Makes the folder.
    ///
    /// # Panics
    /// Where the machine has no room for an empty folder.
    #[must_use]
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("there is room for a folder");
        std::fs::create_dir(folder.path().join(".git")).expect("there is room for a folder");
        Self { folder }
    }

    fn place(&self) -> Place {
        Place::new(self.folder.path())
    }
}

impl Default for Ground {
    fn default() -> Self {
        Self::new()
    }
}

/// How much happened in some runs: what never happens proves nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many runs there were.
    pub runs: u64,
    /// How many sessions had begun.
    pub sessions: u64,
    /// How many of them were closed on purpose.
    pub closed: u64,
    /// How many had expired.
    pub expired: u64,
    /// How many were ended by an operator who stopped the server.
    pub shut_down: u64,
    /// How often an episode was taken over.
    pub take_overs: u64,
    /// How often somebody went on silently at another server.
    pub returns: u64,
    /// How often a process was killed, or lost its machine, while it was at work.
    pub killed_at_work: u64,
    /// How often the power was lost.
    pub power_losses: u64,
}

impl Tally {
    fn add(&mut self, other: &Self) {
        self.runs += other.runs;
        self.sessions += other.sessions;
        self.closed += other.closed;
        self.expired += other.expired;
        self.shut_down += other.shut_down;
        self.take_overs += other.take_overs;
        self.returns += other.returns;
        self.killed_at_work += other.killed_at_work;
        self.power_losses += other.power_losses;
    }
}

/// A run in which something was not as it should be.
#[derive(Debug)]
pub struct Failure {
    /// The seed of the run; none for a script that was given.
    pub seed: Option<u64>,
    /// The sentence that was not true.
    pub sentence: String,
    /// How it was instead.
    pub what: String,
    /// The steps up to there.
    pub script: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(seed) = self.seed {
            writeln!(f, "# seed {seed}")?;
        }
        writeln!(f, "# not true: {}\n# {}", self.sentence, self.what)?;
        f.write_str(&self.script)
    }
}

fn run_steps(ground: &Ground, steps: &[Step]) -> Result<Tally, (Wrong, usize)> {
    let mut at = 0;
    let ran = catch_unwind(AssertUnwindSafe(|| {
        let mut world = World::new(ground.place());
        for step in steps {
            world.run(*step)?;
            at += 1;
        }
        world.heal()?;
        Ok(world.tally())
    }));
    let ran = ran.unwrap_or_else(|panic| {
        let what = panic.downcast_ref::<String>().cloned();
        let what = what.or_else(|| panic.downcast_ref::<&str>().map(|what| (*what).into())).unwrap_or_default();
        Err(Wrong { sentence: "nothing_panics", what })
    });
    ran.map_err(|wrong| (wrong, (at + 1).min(steps.len())))
}

fn failure(seed: Option<u64>, wrong: Wrong, steps: &[Step]) -> Failure {
    Failure { seed, sentence: wrong.sentence.into(), what: wrong.what, script: step::write(steps) }
}

/// Runs a script.
///
/// # Errors
/// What was not true in it, or the line that cannot be read.
pub fn run_script(ground: &Ground, script: &str) -> Result<Tally, Failure> {
    let steps = step::read(script).map_err(|line| Failure {
        seed: None,
        sentence: "every_line_is_a_step".into(),
        what: line,
        script: script.into(),
    })?;
    run_steps(ground, &steps).map_err(|(wrong, at)| failure(None, wrong, &steps[..at]))
}

/// Runs what a seed chooses.
///
/// # Errors
/// What was not true in it.
pub fn run_seed(ground: &Ground, seed: u64) -> Result<Tally, Failure> {
    let steps = Chooser::new(seed).script();
    run_steps(ground, &steps).map_err(|(wrong, at)| failure(Some(seed), wrong, &steps[..at]))
}

/// Leaves steps away as long as the same sentence stays untrue.
#[must_use]
pub fn minimise(ground: &Ground, failed: Failure) -> Failure {
    let Ok(mut steps) = step::read(&failed.script) else { return failed };
    let fails = |steps: &[Step]| match run_steps(ground, steps) {
        Err((wrong, at)) if wrong.sentence == failed.sentence => Some((wrong, at)),
        _ => None,
    };
    let Some((mut wrong, at)) = fails(&steps) else { return failed };
    steps.truncate(at);
    let mut piece = steps.len().div_ceil(2).max(1);
    loop {
        let (mut from, before) = (0, steps.len());
        while from < steps.len() {
            let mut fewer = steps.clone();
            fewer.drain(from..(from + piece).min(steps.len()));
            match fails(&fewer) {
                Some((found, at)) => {
                    wrong = found;
                    fewer.truncate(at);
                    steps = fewer;
                }
                None => from += piece,
            }
        }
        if piece > 1 {
            piece = piece.div_ceil(2).min(piece - 1);
        } else if steps.len() == before {
            break;
        }
    }
    failure(failed.seed, wrong, &steps)
}

/// Runs many seeds on some threads; returns what happened, and the failures.
///
/// Stops at the first few failures: one is enough, and more may be of the same kind.
#[must_use]
pub fn run_seeds(seeds: std::ops::Range<u64>, threads: usize) -> (Tally, Vec<Failure>) {
    let next = AtomicU64::new(seeds.start);
    let found = std::sync::Mutex::new(Vec::new());
    let all = std::sync::Mutex::new(Tally::default());
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                let ground = Ground::new();
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end || found.lock().is_ok_and(|found| found.len() >= FAILURES) {
                        return;
                    }
                    match run_seed(&ground, seed) {
                        Ok(tally) => all.lock().expect("nobody panics with it").add(&tally),
                        Err(failure) => {
                            let short = minimise(&ground, failure);
                            found.lock().expect("nobody panics with it").push(short);
                        }
                    }
                }
            });
        }
    });
    (all.into_inner().unwrap_or_default(), found.into_inner().unwrap_or_default())
}

/// After how many failures nothing more is run.
const FAILURES: usize = 3;
