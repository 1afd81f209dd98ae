//! The rows of the table, in groups that can be measured alone.

mod archive;
mod attach;
mod board;
mod bridge;
mod bridge_memory;
mod failover;
mod hook_end;
mod hook_start;
mod http;
mod http_idle;
mod stdio_round_trip;
mod stdio_start;

use anyhow::Result;

use crate::bed::Bed;
use crate::pairs::Effort;
use crate::table::Report;

/// Rows that are measured together.
pub(crate) struct Group {
    /// What `--only` calls it.
    pub(crate) name: &'static str,
    /// What it measures.
    pub(crate) about: &'static str,
    /// Measures it.
    pub(crate) measure: fn(&Bed, Effort, &mut Report) -> Result<()>,
}

/// All groups, in the order of the table.
pub(crate) const GROUPS: &[Group] = &[
    Group { name: "hook-start", about: "the hook of a start, whole process", measure: hook_start::measure },
    Group { name: "hook-end", about: "the hook of an end: its line, and the rest of it", measure: hook_end::measure },
    Group {
        name: "attach",
        about: "a durable attach, in the server's process and over HTTP",
        measure: attach::measure,
    },
    Group { name: "stdio-start", about: "start to the first answer of initialize", measure: stdio_start::measure },
    Group { name: "stdio-round-trip", about: "ping and a tool call over stdio", measure: stdio_round_trip::measure },
    Group { name: "bridge", about: "ping and a tool call over a bridge", measure: bridge::measure },
    Group { name: "failover", about: "from a server's death to its bridges' answers", measure: failover::measure },
    Group { name: "bridge-memory", about: "memory of a bridge", measure: bridge_memory::measure },
    Group {
        name: "http",
        about: "calls over HTTP, a core for the server and one for the load",
        measure: http::measure,
    },
    Group { name: "http-idle", about: "memory per idle session over HTTP", measure: http_idle::measure },
    Group { name: "board", about: "touch, reap and list at 1,000 and 1,000,000 episodes", measure: board::measure },
    Group { name: "archive", about: "commands with 100 and 100,000 records", measure: archive::measure },
];
