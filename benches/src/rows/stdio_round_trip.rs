//! One call after another over a connection that stands, beside a line that comes back from the echo.

use anyhow::Result;

use crate::bed::Bed;
use crate::calls::{Call, EPISODES, PING, attach, client, expect};
use crate::pairs::{Effort, in_turns, seconds};
use crate::repository;
use crate::table::Report;
use crate::talker::Talker;

/// How many calls are timed together.
const BATCH: u32 = 500;

pub(super) fn measure(bed: &Bed, effort: Effort, report: &mut Report) -> Result<()> {
    let folder = repository::project(bed, "stdio-round-trip")?;
    let mut echo = Talker::start(bed.command(&bed.floor_echo, &folder))?;
    let mut server = client(bed, &folder)?;
    // With an episode every message is evidence, as it is for a client at work.
    attach(&mut server, "bench")?;
    expect(&mut server, EPISODES, r#""open":1"#)?;
    for (what, line) in [("stdio round trip, ping", PING), ("stdio round trip, majordomus_episodes", EPISODES)] {
        let paired = in_turns(effort.rounds(60), || batch(&mut server, line), || batch(&mut echo, line))?;
        report.row(what, "the bare tokio program echoes the line", paired, None);
    }
    server.leave()?;
    echo.leave()
}

/// Seconds of one call.
fn batch(talker: &mut Talker, line: &str) -> Result<f64> {
    let calls = Call::numbered(line, BATCH);
    let (seconds, done) = seconds(|| calls.iter().try_for_each(|call| call.ask(talker)));
    done?;
    Ok(seconds / f64::from(BATCH))
}
