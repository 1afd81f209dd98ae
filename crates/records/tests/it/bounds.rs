//! What a hook reads does not grow with the sitting.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use majordomus_records::disk::{Disk, Open};
use majordomus_records::ending::{EndedAs, Ending};
use majordomus_records::joining::{Joining, Marked};
use majordomus_records::line::{EndOutcome, Kind, Witness};
use majordomus_records::{Policy, StoreError};

use crate::world::{Process, World, field, key};
use crate::wrapped::Wrapped;

const LINES: usize = 20_000;
/// The most that one hook may read of a log.
const MOST: u64 = 128 << 10;

/// A sitting with so many marks in its log, and the disk that counts what is read of it.
fn long_sitting() -> (World, Wrapped, Process) {
    let world = World::new();
    let disk = Wrapped::new(&world.disk);
    let process = world.process_on(Arc::new(disk.clone()), None, Policy::default());
    process.store.start(&key(), Witness::Hook, Joining::default()).unwrap();
    mark(&process, Kind::Activity).unwrap();
    let log = world.disk.below(&world.state().join("open")).remove(0);
    let text = String::from_utf8(world.disk.read(&log, u64::MAX).unwrap()).unwrap();
    let sample = text.lines().rfind(|line| !line.is_empty()).unwrap();
    let (before, rest) = sample.split_once("\"id\":\"").unwrap();
    let (_, after) = rest.split_once('"').unwrap();
    let mut lines = String::new();
    for nr in 0..LINES {
        writeln!(lines, "{before}\"id\":\"{nr:016x}\"{after}").unwrap();
    }
    let mut file = world.disk.open(&log, Open::Existing).unwrap();
    file.append(lines.as_bytes()).unwrap();
    file.sync().unwrap();
    assert!(file.length().unwrap() > 8 * MOST, "the log is long");
    (world, disk, process)
}

fn mark(process: &Process, kind: Kind) -> Result<Marked, StoreError> {
    process.store.mark(&key(), kind, Witness::Hook, None, None)
}

#[test]
fn a_mark_in_a_sitting_of_20000_lines_reads_only_the_ends_of_its_log() {
    let (_world, disk, process) = long_sitting();
    for kind in [Kind::Activity, Kind::Compact] {
        let read = disk.bytes_read(|| assert!(matches!(mark(&process, kind), Ok(Marked::In(joined)) if joined.kept)));
        assert!(read < MOST, "{kind:?} read {read} bytes");
    }
}

#[test]
fn the_end_of_a_sitting_of_20000_lines_reads_only_the_ends_of_its_log_and_its_record_knows_all_of_it() {
    let (world, disk, process) = long_sitting();
    mark(&process, Kind::Compact).unwrap();
    world.clock.advance(Duration::from_secs(60));
    let said = Ending::Said {
        outcome: EndOutcome::Closed,
        reason: "clear",
        witness: Witness::Hook,
        holder: None,
        last_evidence_ago: None,
        asked_ago: Duration::ZERO,
        hook: majordomus_records::ending::HookEnd::default(),
    };
    let read = disk.bytes_read(|| assert!(matches!(process.store.end(&key(), said), Ok(EndedAs::Ended { .. }))));
    assert!(read < MOST, "the end read {read} bytes");
    let read = disk.bytes_read(|| assert!(matches!(mark(&process, Kind::Activity), Ok(Marked::JustEnded(_)))));
    assert!(read < MOST, "what came late read {read} bytes");
    world.recover();
    let (_, record) = &world.records()[0];
    assert_eq!(
        (field(record, "outcome"), field(record, "compactions"), field(record, "attachments")),
        ("closed", "1", "1")
    );
}
