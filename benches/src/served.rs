//! A server that runs for as long as it is measured.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::bed::Bed;
use crate::memory::Memory;

/// A running server; killed when this is dropped.
pub(crate) struct Served {
    child: Child,
    /// Where it answers.
    pub(crate) address: SocketAddr,
    /// Kept open, so that what it still has to say finds somebody.
    _stderr: BufReader<ChildStderr>,
}

impl Served {
    /// Starts `majordomus serve`.
    pub(crate) fn majordomus(bed: &Bed, folder: &Path) -> Result<Self> {
        Self::start(bed.majordomus(folder, &["serve", "--port", "0"]))
    }

    /// Starts the floor, whose answers have that many bytes.
    pub(crate) fn floor(bed: &Bed, folder: &Path, bytes: usize) -> Result<Self> {
        let mut command = bed.command(&bed.floor_http, folder);
        command.arg(bytes.to_string());
        Self::start(command)
    }

    fn start(mut command: Command) -> Result<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
        let mut stderr = BufReader::new(child.stderr.take().context("a program without a way to report")?);
        let mut said = String::new();
        let address = loop {
            let before = said.len();
            ensure!(stderr.read_line(&mut said).context("cannot read")? > 0, "{command:?} serves nothing: {said}");
            if let Some(address) = address_in(&said[before..]) {
                break address;
            }
        };
        Ok(Self { child, address, _stderr: stderr })
    }

    /// Seconds that its threads have computed so far; `None` where the system does not tell.
    pub(crate) fn computed(&self) -> Option<f64> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.child.id())).ok()?;
        tasks.map(|task| computed_in(&task.ok()?.path().join("schedstat"))).sum()
    }

    /// What it has in memory now.
    pub(crate) fn memory(&self) -> Result<Memory> {
        Memory::of(self.child.id())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // One that is gone already needs no end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn computed_in(schedstat: &Path) -> Option<f64> {
    let nanoseconds = fs::read_to_string(schedstat).ok()?.split(' ').next()?.parse::<f64>().ok()?;
    Some(nanoseconds / 1e9)
}

fn address_in(line: &str) -> Option<SocketAddr> {
    let (_, rest) = line.split_once("http://")?;
    rest.split(|char: char| char.is_whitespace() || char == '/').next()?.parse().ok()
}
