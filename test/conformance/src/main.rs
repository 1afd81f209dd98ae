//! The protocol's official conformance suite, in both eras, against two servers: the released binary, and a [`fixture`], which
//! is the same server with the tools, resources and prompts that the suite asks for.
//!
//! `majordomus-conformance [released | fixture | install]`; without a word both servers are tried. [`install`] brings the
//! suite, [`suite`] runs it, and [`expected`] judges what it found by a file for each server, `<name>.yaml` beside this
//! package's manifest: what fails has to stand there, and what stands there has to fail.

#![allow(clippy::print_stdout, reason = "a program for people")]

mod expected;
mod fixture;
mod install;
mod suite;

use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, bail};
use majordomus_e2e::{Server, World, root};

use expected::{Expected, Tally};
use suite::Suite;

/// The revisions whose requirements are run: the newest of each era.
const REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];

/// A server that the suite is run against.
struct Subject {
    name: &'static str,
    start: fn(&World) -> anyhow::Result<Server>,
}

const SUBJECTS: &[Subject] = &[
    Subject { name: "released", start: |world| Ok(world.serve(&[])) },
    Subject {
        name: "fixture",
        start: |world| {
            let own = std::env::current_exe().context("this program cannot be found")?;
            Ok(Server::start(world.program(own).arg(fixture::WORD)))
        },
    },
];

fn main() -> ExitCode {
    match obey() {
        Ok(code) => code,
        Err(error) => {
            println!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn obey() -> anyhow::Result<ExitCode> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        [] => run(SUBJECTS),
        ["install"] => install::installed().map(|_| ExitCode::SUCCESS),
        [fixture::WORD] => fixture::serve(),
        [name] => {
            let at = SUBJECTS.iter().position(|subject| subject.name == *name);
            let at = at.with_context(|| format!("there is no server {name}"))?;
            run(&SUBJECTS[at..=at])
        }
        _ => bail!("it takes one word: released, fixture or install"),
    }
}

fn run(subjects: &[Subject]) -> anyhow::Result<ExitCode> {
    let began = Instant::now();
    let suite = Suite::new(install::installed()?);
    let mut all = Tally::default();
    for subject in subjects {
        all += against(&suite, subject)?;
    }
    println!("conformance: {all}, in {} s", began.elapsed().as_secs());
    Ok(if all.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs the requirements of every revision against one server.
fn against(suite: &Suite, subject: &Subject) -> anyhow::Result<Tally> {
    let file = root().join("test/conformance").join(subject.name).with_extension("yaml");
    let mut expected = Expected::read(&file)?;
    let world = World::new();
    let server = (subject.start)(&world)?;
    let mut all = Tally::default();
    for revision in REVISIONS {
        let ran = suite.run(&world, server.url(), revision, &file)?;
        let mut tally = Tally::default();
        for (scenario, checks) in &ran.scenarios {
            let verdict = expected.judge(scenario, checks);
            verdict.wrong.iter().for_each(|line| println!("  {} {revision} {scenario}: {line}", subject.name));
            tally.count(&verdict);
        }
        println!("{} {revision}: {tally}", subject.name);
        if tally.is_good() && !ran.agrees {
            bail!("the suite itself finds fault with {} {revision}:\n{}", subject.name, ran.said);
        }
        all += tally;
    }
    for entry in expected.unmet() {
        println!("  {}.yaml: nothing was run that {entry} is about", subject.name);
        all.wrong += 1;
    }
    Ok(all)
}
