//! What a bridge keeps in memory: one for each client of a checkout but the first.

use std::thread::sleep;
use std::time::Duration;

use anyhow::Result;

use crate::bed::Bed;
use crate::calls::{Call, EPISODES, attach, client, is_served_by, until_nobody_serves};
use crate::memory::Memory;
use crate::pairs::Effort;
use crate::repository;
use crate::table::{Report, size};

const BUDGET: f64 = 6.0 * 1024.0 * 1024.0;
const CALLS: u32 = 1000;
/// Long enough for everything that follows a beginning to be over.
const REST: Duration = Duration::from_millis(500);

pub(super) fn measure(bed: &Bed, _effort: Effort, report: &mut Report) -> Result<()> {
    let folder = repository::project(bed, "bridge-memory")?;
    let holder = client(bed, &folder)?;
    let idle = client(bed, &folder)?;
    let mut busy = client(bed, &folder)?;
    is_served_by(bed, &folder, &holder)?;
    attach(&mut busy, "bench")?;
    Call::numbered(EPISODES, CALLS).iter().try_for_each(|call| call.ask(&mut busy))?;
    sleep(REST);
    for (what, bridge) in [("resident memory of an idle bridge", &idle), ("the same after 1,000 calls", &busy)] {
        let memory = Memory::of(bridge.pid())?;
        report.size(what, memory.resident as f64, BUDGET);
        report.note(format!("bridge-memory: {what} {}", describe(memory)));
    }
    let server = describe(Memory::of(holder.pid())?);
    report.note(format!("bridge-memory: the server {server}; three processes share the program's pages"));
    busy.leave()?;
    idle.leave()?;
    holder.leave()?;
    until_nobody_serves(bed, &folder)
}

fn describe(memory: Memory) -> String {
    format!(
        "RSS {}, PSS {}, private dirty {}",
        size(memory.resident as f64),
        size(memory.proportional as f64),
        size(memory.private_dirty as f64)
    )
}
