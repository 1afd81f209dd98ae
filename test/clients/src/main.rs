//! The proof with real agent CLIs: each is run offline against a stand-in for its model, in every way that it can end,
//! and what majordomus recorded is held against what hooks of our own witnessed.
//!
//! `majordomus-clients [install | list | CLIENT [SCENARIO…]] [--keep]`; without a word everything is run, two at a time.
//! A run is a folder ([`place`]) and a [`scenario`] of a [`client`]: [`namespace`] puts it between walls, [`inside`] plays
//! it there with a [`service`] and a [`terminal`], [`witness`] tells what happened, [`proof`] compares.

#![allow(clippy::print_stdout, reason = "a program for people")]

mod client;
mod inside;
mod install;
mod namespace;
mod place;
mod proof;
mod scenario;
mod service;
mod table;
mod terminal;
mod witness;

use std::collections::VecDeque;
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::{Context, bail, ensure};

use client::{CLIENTS, Client};
use place::Place;
use proof::Proof;
use scenario::{Scenario, scenarios};
use table::Row;

/// How many runs there are at a time: clients are heavy.
const AT_ONCE: usize = 2;

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
    let (flags, words): (Vec<&str>, Vec<&str>) =
        words.iter().map(String::as_str).partition(|word| word.starts_with("--"));
    let keep = flags == ["--keep"];
    ensure!(keep || flags.is_empty(), "there is no flag but --keep");
    match words.as_slice() {
        ["witness", log, event] => {
            witness::take(log.as_ref(), event)?;
            Ok(ExitCode::SUCCESS)
        }
        ["inside", client, scenario, installed, root] => {
            let client = Client::find(client)?;
            inside::play(client, find(client, scenario)?, &Place::at(root.as_ref()), installed.as_ref())?;
            Ok(ExitCode::SUCCESS)
        }
        ["install"] => {
            install::install(&install::folder()?)?;
            Ok(ExitCode::SUCCESS)
        }
        ["list"] => {
            table::list();
            Ok(ExitCode::SUCCESS)
        }
        chosen => run(&choose(chosen)?, keep),
    }
}

fn find(client: &Client, name: &str) -> anyhow::Result<&'static Scenario> {
    let found = scenarios(client).iter().find(|scenario| scenario.name == name);
    found.with_context(|| format!("{} has no scenario {name}", client.name))
}

fn choose(words: &[&str]) -> anyhow::Result<Vec<(&'static Client, &'static Scenario)>> {
    let all = |client: &'static Client| scenarios(client).iter().map(move |scenario| (client, scenario));
    match words {
        [] => Ok(CLIENTS.iter().flat_map(|client| all(client)).collect()),
        [client] => Ok(all(Client::find(client)?).collect()),
        [client, names @ ..] => {
            let client = Client::find(client)?;
            names.iter().map(|name| Ok((client, find(client, name)?))).collect()
        }
    }
}

fn run(chosen: &[(&'static Client, &'static Scenario)], keep: bool) -> anyhow::Result<ExitCode> {
    if !cfg!(target_os = "linux") {
        bail!("this needs the namespaces of Linux");
    }
    let folder = install::folder()?;
    install::install(&folder)?;
    let majordomus = majordomus_e2e::majordomus();
    let runs = folder.join("runs");
    fs::create_dir_all(&runs)?;
    let own = fs::File::open(&folder)?;
    ensure!(own.try_lock().is_ok(), "other runs go on in {}", runs.display());
    fs::remove_dir_all(&runs)?;
    let waiting: Mutex<VecDeque<_>> = Mutex::new(chosen.iter().copied().enumerate().collect());
    let rows = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                while let Some((at, (client, scenario))) = next() {
                    let root = runs.join(format!("{:02}-{}-{}", at + 1, client.name, scenario.name));
                    let proof = prove(client, scenario, &folder, &root, majordomus);
                    let row = Row::new(client, scenario, &proof);
                    println!("{}", row.line());
                    if row.is_ok() && !keep {
                        // What cannot be removed now is when something is run again.
                        let _ = fs::remove_dir_all(&root);
                    }
                    rows.lock().unwrap_or_else(PoisonError::into_inner).push((at, row));
                }
            });
        }
    });
    let mut rows = rows.into_inner().unwrap_or_else(PoisonError::into_inner);
    rows.sort_by_key(|(at, _)| *at);
    let rows: Vec<Row> = rows.into_iter().map(|(_, row)| row).collect();
    table::print(&rows, &runs);
    Ok(if rows.iter().all(Row::is_ok) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn prove(
    client: &Client,
    scenario: &Scenario,
    installed: &Path,
    root: &Path,
    majordomus: &Path,
) -> anyhow::Result<Proof> {
    let place = Place::make(root, majordomus)?;
    (client.prepare)(&place)?;
    namespace::run(&place, &[client.name, scenario.name, &installed.display().to_string()])?;
    proof::of(client, scenario, &place)
}
