//! The driver in this process and the one that runs the command write the same.

use std::path::{Path, PathBuf};
use std::time::Duration;

use majordomus_cli::episodes::{
    CloseReason, Closing, EpisodeDriver, Opening, Outcome, RecordDriver, Report, ToolDriver,
};
use majordomus_cli::peers::{Peer, PeerBoard, Transport};
use majordomus_episodes_core::EpisodeKey;
use majordomus_records::{Checkout, Policy, Store};

use crate::place::repository;

fn open(driver: &dyn EpisodeDriver, peer: &Peer, id: &str) -> Report {
    let key = EpisodeKey::new("generic", id).unwrap();
    let (peer, ago, asked_ago) = (peer.id(), Duration::ZERO, Duration::ZERO);
    let (client, handle, carrier) = (None, None, None);
    let (again, took_over, repeated) = (false, false, false);
    driver.open(&Opening { key, peer, client, handle, again, carrier, took_over, repeated, ago, asked_ago })
}

fn close(driver: &dyn EpisodeDriver, id: &str, reason: CloseReason) -> Report {
    let key = EpisodeKey::new("generic", id).unwrap();
    let (last_evidence_ago, asked_ago) = (Some(Duration::ZERO), Duration::ZERO);
    driver.close(&Closing { key, reason, by_operator: false, last_evidence_ago, asked_ago, judged: None })
}

/// One script for both: what they report and what they leave, without what differs from run to run.
fn script(driver: &dyn EpisodeDriver, folder: &Path) -> (Vec<(String, Outcome)>, Vec<String>) {
    let peer = PeerBoard::new().attach(Transport::Stdio);
    let reports = [
        open(driver, &peer, "finished"),
        close(driver, "finished", CloseReason::Detach),
        close(driver, "finished", CloseReason::Detach),
        open(driver, &peer, "lost"),
        close(driver, "lost", CloseReason::Expired),
        open(driver, &peer, "stopped"),
        close(driver, "stopped", CloseReason::Shutdown),
        close(driver, "../never/there", CloseReason::Detach),
    ];
    let store = Store::open(Checkout::find(folder).unwrap(), Policy::default());
    store.sweep(Duration::from_secs(60));
    let page = store.records(None, 100).unwrap();
    let text = |path: &str| std::fs::read_to_string(folder.join(path)).unwrap();
    let mut records: Vec<String> = page.records.iter().map(|record| steady(&text(&record.path))).collect();
    records.sort();
    (reports.into_iter().map(|report| (steady(&report.line), report.outcome)).collect(), records)
}

/// Replaces digits, and the random half of session ids, which differ from run to run.
fn steady(text: &str) -> String {
    let mut out = String::new();
    for word in text.split_inclusive([' ', '\n', '"', '/']) {
        match word.find("s-2").filter(|at| word.len() >= at + 25) {
            Some(at) => out.push_str(&format!("{}SESSION{}", &word[..at], &word[at + 25..])),
            None => out.push_str(&word.replace(|char: char| char.is_ascii_digit(), "0")),
        }
    }
    out
}

#[test]
fn both_drivers_report_and_record_the_same() {
    let (here, there) = (repository(), repository());
    let policy = Policy { grace: Some(Duration::ZERO), idle: None, promise: None };
    let in_process = RecordDriver::new(Store::open(Checkout::find(here.path()).unwrap(), policy)).unwrap();
    let program = PathBuf::from(env!("CARGO_BIN_EXE_majordomus"));
    let by_command = ToolDriver::new(program, there.path().to_path_buf());
    let (reports, records) = script(&in_process, here.path());
    let (reports_there, records_there) = script(&by_command, there.path());
    assert_eq!(reports, reports_there);
    assert_eq!(records, records_there);
    assert_eq!(records.len(), 3);
    assert_eq!(reports[2], ("no open episode for generic finished; nothing to close".into(), Outcome::Nothing));
}

#[test]
fn a_command_that_cannot_be_run_is_a_failure_that_is_asked_again() {
    let folder = repository();
    let driver = ToolDriver::new(folder.path().join("no such program"), folder.path().to_path_buf());
    let report = open(&driver, &PeerBoard::new().attach(Transport::Stdio), "x");
    assert_eq!(report.outcome, Outcome::Failed);
    assert!(report.line.starts_with("no episode was recorded: cannot run "), "{}", report.line);
}
