//! The hook of an end: until its line is durable, and the rest of it.
//!
//! The hook composes the record in the same process, so the two parts are told apart from outside: the log is renamed
//! into `ended/` once its `end` line is durable and not before, and the kernel reports that rename. It comes some
//! microseconds after the moment that counts, and its report some more; both count against us. What follows until the
//! process is gone is the rest.

use std::fs;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use majordomus_records::{Checkout, Policy, Store};

use crate::bed::{Bed, run};
use crate::hooks::{FLOOR, Floor, Hooks};
use crate::pairs::{Effort, Paired};
use crate::repository::{self, content, file};
use crate::table::{Report, time};
use crate::watch::Arrivals;

/// How many commits a session makes, where it makes any.
const COMMITS: usize = 3;

pub(super) fn measure(bed: &Bed, effort: Effort, report: &mut Report) -> Result<()> {
    let folder = repository::project(bed, "hook-end")?;
    let floor = Floor::new(bed, &folder)?;
    let mut session = Ends::prepare(bed, &folder)?;

    let rounds = effort.rounds(120);
    let mut quiet = Rounds::default();
    let mut busy = Rounds::default();
    for round in 0..rounds + 2 {
        let counts = round >= 2;
        for (commits, kept) in [(0, &mut quiet), (COMMITS, &mut busy)] {
            let bare = floor.once()?;
            let parts = session.round(commits)?;
            let asked = git_alone(bed, &folder)?;
            if counts {
                kept.add(&parts, bare, asked);
            }
        }
    }
    report.row("hook end until its line is durable", FLOOR, Paired::of(&quiet.durable), 1.0);
    report.row("the rest of an end, nothing committed", "git log -n 50 + git status", Paired::of(&quiet.rest), 1.5);
    report.row("the rest of an end, 3 commits", "git log -n 50 + git status", Paired::of(&busy.rest), 1.5);
    for (what, rounds) in [("nothing committed", &quiet), ("3 commits", &busy)] {
        report.note(format!(
            "hook end, {what}: whole process {}; {} of {} published their record at once",
            time(crate::pairs::Spread::of(rounds.whole.clone()).median),
            rounds.published,
            rounds.whole.len()
        ));
    }
    Ok(())
}

/// What one end took.
pub(crate) struct Parts {
    /// Until its line was durable.
    pub(crate) durable: f64,
    /// From then until the process was gone.
    pub(crate) rest: f64,
    /// Whether the record was there by then.
    pub(crate) published: bool,
}

#[derive(Default)]
struct Rounds {
    durable: Vec<(f64, f64)>,
    rest: Vec<(f64, f64)>,
    whole: Vec<f64>,
    published: usize,
}

impl Rounds {
    fn add(&mut self, parts: &Parts, bare: f64, asked: f64) {
        self.durable.push((parts.durable, bare));
        self.rest.push((parts.rest, asked));
        self.whole.push(parts.durable + parts.rest);
        self.published += usize::from(parts.published);
    }
}

/// Sessions in one repository, of which the ends are measured.
pub(crate) struct Ends<'a> {
    bed: &'a Bed,
    folder: &'a Path,
    hooks: Hooks<'a>,
    arrivals: Arrivals,
    changes: usize,
}

impl<'a> Ends<'a> {
    /// Makes one session, so that the folders are there, and begins to watch.
    pub(crate) fn prepare(bed: &'a Bed, folder: &'a Path) -> Result<Self> {
        let hooks = Hooks::new(bed, folder);
        let id = hooks.fresh();
        hooks.start(&id)?;
        let output = hooks.begin_end(&id)?.wait_with_output().context("cannot wait for a hook")?;
        hooks.record_of(&output.stderr)?;
        let store = Store::open(Checkout::find(folder)?, Policy::default());
        let state = store.state().roots().first().context("a checkout without a state folder")?;
        let arrivals = Arrivals::watch(&state.join("ended"))?;
        Ok(Self { bed, folder, hooks, arrivals, changes: 0 })
    }

    /// Makes a session with that many commits, and measures its end.
    pub(crate) fn round(&mut self, commits: usize) -> Result<Parts> {
        let id = self.hooks.fresh();
        self.hooks.start(&id)?;
        for _ in 0..commits {
            self.commit()?;
        }
        self.arrivals.forget();
        let begun = Instant::now();
        let child = self.hooks.begin_end(&id)?;
        let noticed = self.arrivals.wait()?;
        let output = child.wait_with_output().context("cannot wait for a hook")?;
        let rest = noticed.elapsed().as_secs_f64();
        let published = self.hooks.record_of(&output.stderr)?.is_file();
        Ok(Parts { durable: (noticed - begun).as_secs_f64(), rest, published })
    }

    fn commit(&mut self) -> Result<()> {
        self.changes += 1;
        for number in 0..3 {
            let number = (self.changes * 3 + number) % 2000;
            fs::write(self.folder.join(file(number)), content(number, self.changes + 1000))
                .context("cannot write a file")?;
        }
        run(&mut self.bed.git(self.folder, &["commit", "--quiet", "--all", "--message=work of a session"]), b"")?;
        Ok(())
    }
}

/// What git itself takes to say the like.
pub(crate) fn git_alone(bed: &Bed, folder: &Path) -> Result<f64> {
    let log = run(&mut bed.git(folder, &["log", "-n", "50"]), b"")?;
    let status = run(&mut bed.git(folder, &["status"]), b"")?;
    Ok(log.seconds + status.seconds)
}
