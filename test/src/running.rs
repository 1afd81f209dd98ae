//! A process that is waited for, but not for ever.

use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::DEADLINE;

/// What a process said before it ended.
#[derive(Clone, Debug)]
pub struct Said {
    /// Its exit code; `None` where a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Its standard output.
    pub out: String,
    /// Its standard error.
    pub err: String,
}

impl Said {
    /// The last line of standard error.
    #[must_use]
    pub fn line(&self) -> &str {
        self.err.lines().last().unwrap_or_default()
    }

    /// Standard output as JSON of a command that succeeded.
    ///
    /// # Panics
    /// Where it failed or said something else.
    #[must_use]
    pub fn json(&self) -> Value {
        assert_eq!(self.code, Some(0), "{self:?}");
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("not JSON ({error}): {self:?}"))
    }

    /// The only line of a hook that did as hooks must: exit 0, nothing on standard output, one line on standard error.
    ///
    /// # Panics
    /// Where it did not.
    #[must_use]
    pub fn hook(&self) -> &str {
        assert_eq!((self.code, self.out.as_str()), (Some(0), ""), "{self:?}");
        assert_eq!(self.err.lines().count(), 1, "{self:?}");
        assert!(self.err.ends_with('\n'), "{self:?}");
        self.line()
    }
}

/// A process that runs, with both its outputs being read.
#[derive(Debug)]
pub struct Running {
    child: Child,
    /// Its standard input, as long as it is open.
    pub input: Option<ChildStdin>,
    out: Receiver<Vec<u8>>,
    err: Receiver<Vec<u8>>,
}

impl Running {
    /// Starts it with its standard streams as pipes.
    ///
    /// # Panics
    /// Where it cannot be started.
    #[must_use]
    pub fn start(command: &mut Command) -> Self {
        Self::start_with(command.stdin(Stdio::piped()))
    }

    /// Starts it with the standard input that the command already has.
    ///
    /// # Panics
    /// Where it cannot be started.
    #[must_use]
    pub fn start_with(command: &mut Command) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"));
        let (out, err) = (whole(child.stdout.take()), whole(child.stderr.take()));
        Self { input: child.stdin.take(), child, out, err }
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Writes and closes its standard input; a process that does not read is for the test to judge.
    pub fn feed(&mut self, bytes: &[u8]) {
        if let Some(mut input) = self.input.take() {
            let _ = input.write_all(bytes);
        }
    }

    /// Whether it has ended and closed its outputs within `time`.
    pub fn ended_within(&mut self, time: Duration) -> bool {
        match self.err.recv_timeout(time) {
            Ok(err) => {
                // What was read is put back for whoever asks what it said.
                let (put, back) = channel();
                let _ = put.send(err);
                self.err = back;
                true
            }
            Err(RecvTimeoutError::Timeout) => false,
            Err(RecvTimeoutError::Disconnected) => true,
        }
    }

    /// Kills it as nobody can refuse, and waits until it is gone.
    pub fn kill(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Waits for its end, whatever becomes of its standard input.
    ///
    /// # Panics
    /// Where it does not end.
    #[must_use]
    pub fn wait(mut self) -> Said {
        let text = |bytes: Receiver<Vec<u8>>| {
            let bytes = bytes.recv_timeout(DEADLINE);
            bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        };
        let never = |_| panic!("process {} does not end within {DEADLINE:?}", self.child.id());
        let err = text(std::mem::replace(&mut self.err, channel().1)).unwrap_or_else(never);
        let out = text(std::mem::replace(&mut self.out, channel().1)).unwrap_or_else(never);
        let status: ExitStatus = self.child.wait().expect("a child can be waited for");
        Said { code: status.code(), signal: status.signal(), out, err }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn whole(stream: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (send, receive) = channel();
    if let Some(mut stream) = stream {
        thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = stream.read_to_end(&mut bytes);
            let _ = send.send(bytes);
        });
    }
    receive
}

/// Runs all of them at once, each with its input, and returns what each said, in order.
#[must_use]
pub fn run_at_once(commands: Vec<(Command, Vec<u8>)>) -> Vec<Said> {
    // All are started before the first one gets its input, so that they meet.
    let mut running: Vec<(Running, Vec<u8>)> =
        commands.into_iter().map(|(mut command, input)| (Running::start(&mut command), input)).collect();
    for (process, input) in &mut running {
        process.feed(input);
    }
    running.into_iter().map(|(process, _)| process.wait()).collect()
}
