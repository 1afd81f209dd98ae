//! What a session over HTTP keeps in memory while its client says nothing.

use anyhow::Result;

use crate::bed::Bed;
use crate::memory::Memory;
use crate::pairs::Effort;
use crate::repository;
use crate::served::Served;
use crate::sessions::Session;
use crate::table::{Report, size};
use crate::wire::Connection;

/// As many as the server keeps.
const SESSIONS: usize = 10_000;
/// A connection may begin 2,000 at once, and 1,000 a second after that.
const CONNECTIONS: usize = 16;

pub(super) fn measure(bed: &Bed, _effort: Effort, report: &mut Report) -> Result<()> {
    let folder = repository::project(bed, "http-idle")?;
    let server = Served::majordomus(bed, &folder)?;
    let mut connections = Vec::with_capacity(CONNECTIONS);
    for _ in 0..CONNECTIONS {
        connections.push(Connection::open(server.address)?);
    }
    let begin = |connections: &mut [Connection], count: usize| -> Result<Vec<Session>> {
        (0..count).map(|number| Session::begin(&mut connections[number % CONNECTIONS], server.address)).collect()
    };
    // What the first ones make the server set up is not theirs alone.
    let first = begin(&mut connections, CONNECTIONS)?;
    let before = server.memory()?;
    let sessions = begin(&mut connections, SESSIONS - first.len())?;
    let full = server.memory()?;
    for session in [&first[0], &sessions[0], &sessions[sessions.len() - 1]] {
        session.ping(&mut connections[0])?;
    }
    let others = begin(&mut connections, SESSIONS)?;
    let after = server.memory()?;
    sessions[1].is_over(&mut connections[0])?;
    others[0].ping(&mut connections[0])?;

    let per_session = |bytes: u64| bytes as f64 / sessions.len() as f64;
    let grown = full.anonymous.saturating_sub(before.anonymous);
    report.size("memory per idle HTTP session, at 10,000", per_session(grown), 2048.0);
    let resident = per_session(full.resident.saturating_sub(before.resident));
    report.note(format!(
        "http-idle: {} at first, {} with 10,000 sessions, {} after 10,000 more, each of which took the place of one; \
         by what is resident a session has {}",
        describe(before),
        describe(full),
        describe(after),
        size(resident),
    ));
    Ok(())
}

fn describe(memory: Memory) -> String {
    let mib = |bytes: u64| bytes as f64 / 1024.0 / 1024.0;
    format!("{:.1} MiB of heap and stacks ({:.1} resident)", mib(memory.anonymous), mib(memory.resident))
}
