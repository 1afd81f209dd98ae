//! A client's process that runs hooks itself, so that these find it above them.

use std::io::{BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use rustix::pty::{OpenptFlags, openpt, ptsname, unlockpt};
use serde_json::{Value, json};

use crate::child::kill9;
use crate::{Said, World, majordomus};

/// A process that stands in for an agent, in a session of its own.
#[derive(Debug)]
pub struct Agent {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    terminal: Option<OwnedFd>,
}

impl Agent {
    /// Starts it without a terminal; `stand_in` is the program, which cargo names to cases alone.
    #[must_use]
    pub fn start(world: &World, stand_in: &Path) -> Self {
        Self::start_in(world.program(stand_in), None)
    }

    /// Starts it in a terminal that is this case's to close, and that it survives; `None` where there are no terminals.
    ///
    /// # Panics
    /// Where a terminal that there is cannot be used.
    #[must_use]
    pub fn start_in_terminal(world: &World, stand_in: &Path) -> Option<Self> {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).ok()?;
        unlockpt(&terminal).expect("a terminal can be unlocked");
        let name = ptsname(&terminal, Vec::new()).expect("a terminal has a name");
        let name = name.into_string().expect("a terminal's name is text");
        if !Path::new(&name).exists() {
            return None;
        }
        // What a shell ignores stays ignored in what it becomes: the agent lives on when its terminal goes.
        let mut command = world.program("sh");
        command.args(["-c", "trap '' HUP; exec \"$0\" \"$1\""]).arg(stand_in).arg(name);
        Some(Self::start_in(command, Some(terminal)))
    }

    fn start_in(mut command: Command, terminal: Option<OwnedFd>) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("an agent can be started");
        let output = BufReader::new(child.stdout.take().expect("its output is a pipe"));
        Self { input: child.stdin.take(), child, output, terminal }
    }

    /// Runs a script in it.
    ///
    /// # Panics
    /// Where it is gone.
    pub fn run(&mut self, script: &str, input: &str, env: &Value) -> Said {
        let line = json!({ "script": script, "input": input, "env": env });
        writeln!(self.input.as_ref().expect("it was not closed"), "{line}").expect("the agent lives");
        let mut reply = String::new();
        self.output.read_line(&mut reply).expect("the agent answers");
        let reply: Value = serde_json::from_str(&reply).unwrap_or_else(|error| panic!("{error}: {reply:?}"));
        let text = |field: &str| reply[field].as_str().unwrap_or_default().to_owned();
        let code = reply["code"].as_i64().and_then(|code| i32::try_from(code).ok());
        Said { code, signal: None, out: text("out"), err: text("err") }
    }

    /// Runs a provider's hook in it, as an entry of a hook file is run; the one line that it reports.
    pub fn hook(&mut self, provider: &str, event: &str, payload: &Value) -> String {
        let program = majordomus().to_str().expect("paths of tests are UTF-8").replace('\'', r"'\''");
        let script = format!("'{program}' capture session --provider {provider} --event {event}");
        self.run(&script, &payload.to_string(), &json!({})).hook().to_owned()
    }

    /// Closes its terminal, as somebody does who closes the window.
    pub fn close_terminal(&mut self) {
        self.terminal = None;
    }

    /// Kills it as nobody can refuse, and waits until it is gone.
    pub fn kill9(mut self) {
        kill9(&mut self.child);
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
