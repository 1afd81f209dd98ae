//! What the number of records in a repository, and of sittings that are open there, costs the commands that should not feel it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use majordomus_episodes_core::driver::Opening;
use majordomus_episodes_core::peers::{PeerBoard, Transport};
use majordomus_episodes_core::{EpisodeDriver, EpisodeKey};
use majordomus_records::clock::SystemClock;
use majordomus_records::git::RealGit;
use majordomus_records::state::State;
use majordomus_records::store::Parts;
use majordomus_records::{Checkout, Policy, RecordDriver, Store};

use super::hook_end::{Ends, git_alone};
use crate::bed::{Bed, run};
use crate::counting::CountingDisk;
use crate::hooks::Hooks;
use crate::pairs::{Effort, Paired, in_turns};
use crate::records::{fill, fill_open};
use crate::repository;
use crate::table::{Report, note};

const FEW: u32 = 100;
const MANY: u32 = 100_000;
/// Sittings that nobody has ended yet, beside them; only hooks are to feel none of those.
const OPEN: u32 = 10_000;
/// One page, as the command shows it.
const PAGE: usize = 20;

pub(super) fn measure(bed: &Bed, effort: Effort, report: &mut Report) -> Result<()> {
    let (many, few) = (repository::small(bed, "many")?, repository::small(bed, "few")?);
    note("  writing 100,000 records …");
    fill(bed, &many, MANY)?;
    fill(bed, &few, FEW)?;
    // What was just written must not be what the first measurement waits for.
    rustix::fs::sync();

    let against = "the same with 100 records";
    let commands: [(&str, &[&str], &str); 3] = [
        ("sessions list, a page", &["sessions", "list"], "prompt_input_exit"),
        ("episodes", &["episodes"], "no episode is open"),
        ("capture status", &["capture", "status"], "verified"),
    ];
    for (what, arguments, expected) in commands {
        let once = |folder: &Path| {
            let ran = run(&mut bed.majordomus(folder, arguments), b"")?;
            ensure!(ran.stdout.contains(expected), "{what} says: {}", ran.stdout);
            Ok(ran.seconds)
        };
        let paired = in_turns(effort.rounds(120), || once(&many), || once(&few))?;
        report.row(&format!("{what}, 100,000 records"), against, paired, 1.5);
    }
    // Leaves an episode open in both, so it comes after the commands that list none.
    for (name, folder) in [("100,000", &many), ("100", &few)] {
        for (what, counted) in count(folder)? {
            report.note(format!("{what} with {name} records: {counted}"));
        }
    }
    note("  writing 10,000 open logs …");
    fill_open(bed, &many, OPEN)?;
    rustix::fs::sync();
    let (among_many, among_few) = (Hooks::new(bed, &many), Hooks::new(bed, &few));
    let start = |hooks: &Hooks<'_>| Ok(hooks.start(&hooks.fresh())?.seconds);
    let paired = in_turns(effort.rounds(120), || start(&among_many), || start(&among_few))?;
    report.row("hook start, 100,000 records and 10,000 open", against, paired, 1.5);
    ends(bed, effort, report, &many, &few)
}

fn ends(bed: &Bed, effort: Effort, report: &mut Report, many: &Path, few: &Path) -> Result<()> {
    let against = "the same with 100 records";
    let (mut among_many, mut among_few) = (Ends::prepare(bed, many)?, Ends::prepare(bed, few)?);
    let (mut durable, mut rest, mut published) = (Vec::new(), Vec::new(), 0);
    let mut git = Vec::new();
    let rounds = effort.rounds(60);
    for _ in 0..rounds {
        let (ours, floor) = (among_many.round(0)?, among_few.round(0)?);
        durable.push((ours.durable, floor.durable));
        rest.push((ours.rest, floor.rest));
        git.push((ours.rest, git_alone(bed, many)?));
        published += usize::from(ours.published);
    }
    report.row("hook end until durable, 100,000 records and 10,000 open", against, Paired::of(&durable), 1.5);
    report.row("the rest of an end, 100,000 records and 10,000 open", against, Paired::of(&rest), None);
    report.row(
        "the rest of an end, 100,000 records and 10,000 open",
        "git log -n 50 + git status there",
        Paired::of(&git),
        None,
    );
    report.note(format!("hook end, 100,000 untracked records: {published} of {rounds} published their record at once"));
    Ok(())
}

/// What the library asks of the disk for a page, for the open episodes, and for a start.
fn count(folder: &Path) -> Result<Vec<(&'static str, String)>> {
    let checkout = Checkout::find(folder)?;
    let state = State::new(&checkout.common_dir, &checkout.name, None);
    let disk = Arc::new(CountingDisk::default());
    let parts = Parts { disk: disk.clone(), clock: Arc::new(SystemClock::new()), git: Arc::new(RealGit::default()) };
    let store = Store::with(checkout, state, Policy::default(), parts);
    let mut counted = Vec::new();
    store.sweep(std::time::Duration::from_secs(60));
    counted.push(("sweep", disk.take()));
    let page = store.records(None, PAGE)?;
    ensure!(page.records.len() == PAGE && page.next.is_some(), "a page has {} records", page.records.len());
    ensure!(page.records.iter().all(|record| record.started_at.is_some()), "a record cannot be read");
    counted.push(("a page of records", disk.take()));
    let second = store.records(page.next.as_deref(), PAGE)?;
    ensure!(second.records.len() == PAGE, "the second page has {} records", second.records.len());
    counted.push(("the page after it", disk.take()));
    let driver = RecordDriver::new(store)?;
    let (key, peer) = (EpisodeKey::new("generic", "counted")?, PeerBoard::new().attach(Transport::Stdio).id());
    let report = driver.open(&Opening {
        key,
        peer,
        client: None,
        handle: None,
        again: false,
        carrier: None,
        took_over: false,
        repeated: false,
        ago: Duration::ZERO,
        asked_ago: Duration::ZERO,
    });
    ensure!(report.line.contains(" opened at "), "a start opened nothing: {}", report.line);
    counted.push(("a start", disk.take()));
    driver.store().open_episodes()?;
    counted.push(("the open episodes", disk.take()));
    Ok(counted)
}
