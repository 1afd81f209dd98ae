//! The hook of a start, whole process.

use std::io::Write;
use std::process::Stdio;
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use crate::bed::Bed;
use crate::hooks::{FLOOR, Floor, Hooks, arguments};
use crate::pairs::{Effort, in_turns};
use crate::repository;
use crate::table::Report;

pub(super) fn measure(bed: &Bed, effort: Effort, report: &mut Report) -> Result<()> {
    let folder = repository::project(bed, "hook-start")?;
    let (hooks, floor) = (Hooks::new(bed, &folder), Floor::new(bed, &folder)?);
    let paired = in_turns(effort.rounds(300), || Ok(hooks.start(&hooks.fresh())?.seconds), || floor.once())?;
    report.row("hook start", FLOOR, paired, 1.0);

    // Some agents keep a hook's input open: then it cannot end on EOF and looks for more before it goes.
    let held = || start_with_open_input(bed, &hooks, &folder);
    let paired = in_turns(effort.rounds(60), held, || floor.once())?;
    report.row("hook start, input stays open", FLOOR, paired, None);
    Ok(())
}

fn start_with_open_input(bed: &Bed, hooks: &Hooks<'_>, folder: &std::path::Path) -> Result<f64> {
    let payload = hooks.payload(&hooks.fresh(), "start");
    let mut command = bed.majordomus(folder, &arguments("start"));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let begun = Instant::now();
    let mut child = command.spawn().context("cannot start a hook")?;
    let mut stdin = child.stdin.take().context("a hook without an input")?;
    stdin.write_all(&payload).context("a hook took no input")?;
    let output = child.wait_with_output().context("cannot wait for a hook")?;
    let seconds = begun.elapsed().as_secs_f64();
    drop(stdin);
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(said.contains(" opened at "), "a start opened nothing: {said}");
    Ok(seconds)
}
