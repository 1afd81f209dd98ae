//! The client's end of a program that speaks in lines over its standard streams.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};

/// A running program, and the pipes to it; killed when this is dropped.
pub(crate) struct Talker {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    line: Vec<u8>,
}

impl Talker {
    /// Starts the program.
    pub(crate) fn start(mut command: Command) -> Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().context("a program without an output")?);
        Ok(Self { child, stdin, stdout, line: Vec::new() })
    }

    /// Writes a line, which ends in a newline.
    pub(crate) fn tell(&mut self, line: &[u8]) -> Result<()> {
        self.stdin.as_mut().context("the input is closed")?.write_all(line).context("a program took no input")
    }

    /// Writes a line and reads one.
    pub(crate) fn ask(&mut self, line: &[u8]) -> Result<&[u8]> {
        self.tell(line)?;
        self.hear()
    }

    /// Reads a line.
    pub(crate) fn hear(&mut self) -> Result<&[u8]> {
        self.line.clear();
        self.stdout.read_until(b'\n', &mut self.line).context("cannot read an answer")?;
        ensure!(self.line.ends_with(b"\n"), "a program answered nothing");
        Ok(&self.line)
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Stops it, so that it does nothing more until it is killed.
    pub(crate) fn stop(&self) -> Result<()> {
        kill_process(Pid::from_child(&self.child), Signal::STOP).context("cannot stop a program")
    }

    /// Kills it.
    pub(crate) fn kill(&mut self) -> Result<()> {
        self.child.kill().context("cannot kill a program")
    }

    /// Closes the input and waits until the program is gone.
    pub(crate) fn leave(mut self) -> Result<()> {
        self.stdin = None;
        let status = self.child.wait().context("cannot wait for a program")?;
        ensure!(status.success(), "a program left with {status}");
        Ok(())
    }
}

impl Drop for Talker {
    fn drop(&mut self) {
        // One that is gone already needs no end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
