//! From starting a server until it has answered its first message.

use std::path::Path;

use anyhow::{Result, ensure};

use crate::bed::Bed;
use crate::calls::INITIALIZE;
use crate::pairs::{Effort, in_turns, seconds};
use crate::repository;
use crate::table::Report;
use crate::talker::Talker;

pub(super) fn measure(bed: &Bed, effort: Effort, report: &mut Report) -> Result<()> {
    let folder = repository::project(bed, "stdio-start")?;
    let ours = || first_answer(bed, &bed.majordomus, &["mcp"], &folder, "protocolVersion");
    let floor = || first_answer(bed, &bed.floor_echo, &[], &folder, "initialize");
    let paired = in_turns(effort.rounds(240), ours, floor)?;
    report.row("start to first initialize reply", "a bare tokio program echoes the line", paired, 2.0);
    Ok(())
}

/// Seconds until a program that was started has answered.
pub(super) fn first_answer(
    bed: &Bed,
    program: &Path,
    arguments: &[&str],
    folder: &Path,
    expected: &str,
) -> Result<f64> {
    let mut command = bed.command(program, folder);
    command.args(arguments);
    let (seconds, begun) = seconds(|| {
        let mut talker = Talker::start(command)?;
        let answer = String::from_utf8_lossy(talker.ask(INITIALIZE.as_bytes())?).into_owned();
        anyhow::Ok((talker, answer))
    });
    let (talker, answer) = begun?;
    ensure!(answer.contains(expected), "not an answer to initialize: {answer}");
    talker.leave()?;
    Ok(seconds)
}
