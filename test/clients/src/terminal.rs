//! A terminal that a client runs in, held by tmux.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, ensure};

use crate::place::Place;

pub(crate) struct Terminal {
    place: Place,
    /// The pid of the client: the terminal's first process becomes it.
    pub(crate) pid: i32,
}

impl Terminal {
    /// Starts a program in a terminal of its own.
    pub(crate) fn start(place: &Place, words: &[String], environment: &[(String, String)]) -> anyhow::Result<Self> {
        let mut terminal = Self { place: place.clone(), pid: 0 };
        let mut tmux = terminal.tmux();
        tmux.envs(environment.iter().map(|(name, value)| (name, value)));
        tmux.args(["new-session", "-d", "-x", "140", "-y", "48", "-c"]).arg(place.work());
        // With more than one word tmux runs the program itself, and no shell that could outlive it.
        tmux.args(words).args([";", "set-option", "-g", "remain-on-exit", "on"]);
        run(&mut tmux)?;
        terminal.pid = run(terminal.tmux().args(["display-message", "-p", "#{pane_pid}"]))?.trim().parse()?;
        Ok(terminal)
    }

    /// What is to be seen.
    pub(crate) fn screen(&self) -> String {
        run(self.tmux().args(["capture-pane", "-p"])).unwrap_or_default()
    }

    /// Types text as it stands.
    pub(crate) fn text(&self, text: &str) -> anyhow::Result<()> {
        run(self.tmux().args(["send-keys", "-l", "--", text])).map(drop)
    }

    /// Presses a key, by tmux's name for it.
    pub(crate) fn key(&self, key: &str) -> anyhow::Result<()> {
        run(self.tmux().args(["send-keys", key])).map(drop)
    }

    /// Closes the terminal, whatever still runs in it.
    pub(crate) fn close(&self) {
        // Where nothing runs any more there is nothing to close.
        let _ = run(self.tmux().arg("kill-server"));
    }

    fn tmux(&self) -> Command {
        let socket = PathBuf::from("/tmp/terminal");
        let mut tmux = self.place.program("tmux".as_ref());
        tmux.args(["-f", "/dev/null", "-S"]).arg(socket);
        tmux
    }
}

fn run(command: &mut Command) -> anyhow::Result<String> {
    let output = command.output().context("tmux cannot be run")?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
