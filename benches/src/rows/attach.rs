//! A durable attach through the board, in the server's process.

use std::fs;
use std::io::Write;
use std::path::Path;
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
use crate::table::Report;

pub(super) fn measure(bed: &Bed, effort: Effort, report: &mut Report) -> Result<()> {
    let folder = repository::project(bed, "attach")?;
    let store = Store::open(Checkout::find(&folder)?, Policy::default());
    let open = store.state().roots().first().context("a checkout without a state folder")?.join("open");
    let driver = Arc::new(RecordDriver::new(store)?);
    let board =
        EpisodeBoard::with(BoardOptions { driver, run: Arc::new(Threads::default()), ..BoardOptions::default() });
    let peers = PeerBoard::new();
    let mut number = 0;
    let mut attach = || {
        number += 1;
        let (peer, external_id) = (peers.attach(Transport::Stdio), format!("thread-{number}"));
        let request =
            AttachRequest { peer: &peer, external_id: &external_id, provider: "generic", client: Some("bench 1") };
        let (seconds, attached) = seconds(|| board.attach_with(request));
        let attached = attached.context("an attach was refused")?;
        ensure!(attached.recorded, "an attach was not recorded: {}", attached.episode.repository);
        Ok(seconds)
    };
    attach()?;
    let bytes = only_file_in(&open)?;
    let bare = bed.folder("attach-floor")?;
    let mut files = 0;
    let floor = || {
        files += 1;
        let (seconds, done) = seconds(|| write_and_rename(&bare, files, &bytes));
        done.context("cannot write a file")?;
        Ok(seconds)
    };
    let paired = in_turns(effort.rounds(600), attach, floor)?;
    report.row("durable attach", "write + fsync + rename + fsync(folder)", paired, 1.2);
    Ok(())
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
