//! A durable attach: through the board in the server's process, and over HTTP.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use majordomus_episodes_core::EpisodeBoard;
use majordomus_episodes_core::board::{AttachRequest, BoardOptions};
use majordomus_episodes_core::peers::{PeerBoard, Transport};
use majordomus_mcp_server::Threads;
use majordomus_records::{Checkout, Policy, RecordDriver, Store};

use crate::bed::Bed;
use crate::pairs::{Effort, in_turns, seconds};
use crate::repository;
use crate::served::Served;
use crate::table::Report;
use crate::wire::{Connection, post};

/// What an attach is compared with, for the table.
const FLOOR: &str = "write + fsync + rename + fsync(folder)";

pub(super) fn measure(bed: &Bed, effort: Effort, report: &mut Report) -> Result<()> {
    let folder = repository::project(bed, "attach")?;
    let store = Store::open(Checkout::find(&folder)?, Policy::default());
    let open = open_in(&store)?;
    let driver = Arc::new(RecordDriver::new(store)?);
    let board =
        EpisodeBoard::with(BoardOptions { driver, run: Arc::new(Threads::default()), ..BoardOptions::default() });
    let peers = PeerBoard::new();
    let mut number = 0;
    let mut attach = || {
        number += 1;
        let (peer, external_id) = (peers.attach(Transport::Stdio), format!("thread-{number}"));
        let request = AttachRequest {
            peer: &peer,
            external_id: &external_id,
            provider: "generic",
            client: Some("bench 1"),
            handle: None,
            again: false,
            carrier: None,
        };
        let (seconds, attached) = seconds(|| board.attach_with(request));
        let attached = attached.context("an attach was refused")?;
        ensure!(attached.recorded, "an attach was not recorded: {}", attached.episode.repository);
        Ok(seconds)
    };
    attach()?;
    let bytes = only_file_in(&open)?;
    let paired = in_turns(effort.rounds(600), attach, floor(bed, "attach-floor", bytes)?)?;
    report.row("durable attach", FLOOR, paired, 1.2);
    over_http(bed, effort, report)
}

/// The same by a program that calls the API.
fn over_http(bed: &Bed, effort: Effort, report: &mut Report) -> Result<()> {
    let folder = repository::project(bed, "attach-http")?;
    let open = open_in(&Store::open(Checkout::find(&folder)?, Policy::default()))?;
    let server = Served::majordomus(bed, &folder)?;
    let mut connection = Connection::open(server.address)?;
    let mut number = 0;
    let mut attach = || {
        number += 1;
        let body = format!(r#"{{"external_id":"thread-{number}"}}"#);
        let request = post(server.address, "/api/v1/episodes/attach", "", &body);
        let (seconds, answer) = seconds(|| connection.ask(&request, 200));
        let said = answer?.text();
        ensure!(said.contains(r#""recorded":true"#), "an attach was not recorded: {said}");
        Ok(seconds)
    };
    attach()?;
    let bytes = only_file_in(&open)?;
    let paired = in_turns(effort.rounds(600), attach, floor(bed, "attach-http-floor", bytes)?)?;
    report.row("durable attach over HTTP", FLOOR, paired, None);
    Ok(())
}

/// Where the logs of open episodes lie.
fn open_in(store: &Store) -> Result<PathBuf> {
    Ok(store.state().roots().first().context("a checkout without a state folder")?.join("open"))
}

/// The least that a durable attach could be.
fn floor(bed: &Bed, name: &str, bytes: Vec<u8>) -> Result<impl FnMut() -> Result<f64>> {
    let bare = bed.folder(name)?;
    let mut files = 0;
    Ok(move || {
        files += 1;
        let (seconds, done) = seconds(|| write_and_rename(&bare, files, &bytes));
        done.context("cannot write a file")?;
        Ok(seconds)
    })
}

/// What an attach writes, so that the floor writes as much.
fn only_file_in(folder: &Path) -> Result<Vec<u8>> {
    let mut entries = fs::read_dir(folder).context("an attach left no folder")?;
    let entry = entries.next().context("an attach left no file")?.context("cannot read a folder")?;
    fs::read(entry.path()).context("cannot read a log")
}

fn write_and_rename(folder: &Path, number: u32, bytes: &[u8]) -> std::io::Result<()> {
    let half = folder.join("half");
    let mut file = fs::File::create_new(&half)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&half, folder.join(format!("{number}.jsonl")))?;
    fs::File::open(folder)?.sync_all()
}
