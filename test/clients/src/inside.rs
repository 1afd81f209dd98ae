//! What runs within the walls: the stand-in for the model, the client, and the hands at its keyboard.

use std::fs::{self, File};
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::client::{Client, connect, tool};
use crate::namespace::{self, lives, others};
use crate::place::Place;
use crate::scenario::{Act, End, Scenario, Way};
use crate::service::{Mode, Service};
use crate::terminal::Terminal;
use crate::witness::{Fired, fired};

const PROMPT: &str = "Please begin.";
/// How long a client may take for anything.
const PATIENCE: Duration = Duration::from_secs(90);
/// How long what a client leaves behind may still run.
const AFTERWARDS: Duration = Duration::from_secs(10);
/// How long the background server of a client waits for it to come back, and more.
const BACKGROUND: Duration = Duration::from_secs(100);
/// How long a client takes to answer a key.
const SOON: Duration = Duration::from_secs(4);
/// How long nothing moves on a screen that has settled.
const STEADY: Duration = Duration::from_millis(500);
/// The grace that a connection promises where the run ends without a word.
pub(crate) const SHORT_GRACE_SECONDS: u32 = 20;

/// Plays one scenario; what happened is in the notes of the place.
pub(crate) fn play(client: &Client, scenario: &Scenario, place: &Place, installed: &Path) -> anyhow::Result<()> {
    namespace::enter(place)?;
    connect(client, place, installed)?;
    let mode = match scenario.way {
        Way::Talk => Mode::Text,
        Way::Print(Some(_)) | Way::Terminal([Act::Hang, ..]) | Way::Daemon([Act::Hang, ..]) => Mode::Slow,
        Way::Print(None) | Way::Terminal(_) | Way::Daemon(_) => Mode::Tool,
    };
    let hangs = mode == Mode::Slow;
    let service = Service::start(mode, tool(), &place.model())?;
    let stage = Stage { client, scenario, place, installed, service };
    match scenario.way {
        Way::Talk => stage.print(None)?,
        Way::Print(signal) => stage.print(signal)?,
        Way::Terminal(acts) => stage.terminal(acts, hangs, false)?,
        Way::Daemon(acts) => stage.terminal(acts, hangs, true)?,
    }
    Ok(())
}

struct Stage<'a> {
    client: &'a Client,
    scenario: &'a Scenario,
    place: &'a Place,
    installed: &'a Path,
    service: Service,
}

impl Stage<'_> {
    fn words(&self, arguments: &[&str]) -> Vec<String> {
        let program = (self.client.program)(self.installed);
        let program = program.iter().map(|word| word.display().to_string());
        program.chain(arguments.iter().map(|word| (*word).to_owned())).collect()
    }

    fn environment(&self) -> Vec<(String, String)> {
        let own = self.client.environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let mut environment: Vec<_> = own.collect();
        if self.scenario.ends.contains(&End::Silent) {
            environment.push(("MAJORDOMUS_GRACE_SECONDS".into(), SHORT_GRACE_SECONDS.to_string()));
        }
        environment
    }

    fn print(&self, signal: Option<Signal>) -> anyhow::Result<()> {
        let words = self.words(&[self.client.print, &[PROMPT]].concat());
        let (program, arguments) = words.split_first().context("a client is a program")?;
        let mut command = self.place.program(program.as_ref());
        command.args(arguments).envs(self.environment()).stdin(Stdio::null());
        command.stdout(File::create(self.place.root().join("printed.txt"))?);
        command.stderr(File::create(self.place.root().join("complained.txt"))?);
        self.place.mark("launch", &json!(words))?;
        let mut child = command.spawn().context("the client cannot be run")?;
        if let Some(signal) = signal {
            self.wait("a turn that hangs", PATIENCE, || self.service.is_hanging())?;
            self.place.mark("signal", &json!(format!("{signal:?}")))?;
            kill_process(Pid::from_child(&child), signal)?;
        }
        let mut status = None;
        self.wait("the client's end", PATIENCE, || {
            status = child.try_wait().ok().flatten();
            status.is_some()
        })?;
        self.place.mark("gone", &json!(status.map(|status| status.to_string())))?;
        self.settle()
    }

    fn terminal(&self, acts: &[Act], hangs: bool, daemon: bool) -> anyhow::Result<()> {
        // A word of its own, so that there are two and tmux puts no shell between.
        let arguments = if daemon { &[] } else { self.client.terminal };
        let words = [vec!["env".to_owned()], self.words(arguments)].concat();
        self.place.mark("launch", &json!(words))?;
        let terminal = Terminal::start(self.place, &words, &self.environment())?;
        let played = self.act(&terminal, acts, hangs, daemon);
        let screen = terminal.screen();
        fs::write(self.place.root().join("screen.txt"), &screen)?;
        let settled = match played {
            Ok(()) => self.settle(),
            Err(error) => Err(error.context(format!("the screen shows:\n{}", screen.trim()))),
        };
        terminal.close();
        settled
    }

    fn act(&self, terminal: &Terminal, acts: &[Act], hangs: bool, daemon: bool) -> anyhow::Result<()> {
        if daemon {
            // Hooks of a repository are trusted by hand, once.
            self.wait_for_screen(terminal, "Hooks need review")?;
            self.steady(terminal);
            terminal.key("Down")?;
            self.wait_for_screen(terminal, "› 2. Trust all")?;
            terminal.key("Enter")?;
        }
        self.wait_for_screen(terminal, self.client.ready)?;
        self.steady(terminal);
        if !hangs {
            self.turn(terminal, false)?;
        }
        for act in acts {
            self.place.mark("act", &json!(format!("{act:?}")))?;
            match *act {
                Act::Turn => self.turn(terminal, false)?,
                Act::Hang => self.turn(terminal, true)?,
                Act::Line(text) => self.line(terminal, text)?,
                Act::Quit => self.line(terminal, self.client.quit)?,
                Act::CtrlCTwice => self.ctrl_c_twice(terminal)?,
                Act::Key(key) => terminal.key(key)?,
                Act::Shows(text) => self.wait_for_screen(terminal, text)?,
                Act::Fires(event, word) => {
                    let is_it = |fired: &Fired| {
                        fired.event == event && word.is_none_or(|word| fired.word.as_deref() == Some(word))
                    };
                    self.wait(event, PATIENCE, || self.fired().iter().any(is_it))?;
                    self.steady(terminal);
                }
                Act::Steady => self.steady(terminal),
                Act::Signal(signal) => {
                    kill_process(Pid::from_raw(terminal.pid).context("a client has a pid")?, signal)?;
                }
                Act::Close => terminal.close(),
            }
        }
        self.wait("the client's end", PATIENCE, || !lives(terminal.pid))?;
        self.place.mark("gone", &Value::Null)
    }

    fn fired(&self) -> Vec<Fired> {
        fired(&self.place.witness(), self.client)
    }

    /// Types a prompt and waits until the client's own hook says that its turn is over, or where it is to hang, until it
    /// does. A client may take a prompt before its servers are there; then a person asks again.
    fn turn(&self, terminal: &Terminal, hangs: bool) -> anyhow::Result<()> {
        let over = || self.fired().iter().filter(|fired| fired.event == self.client.hooks.turn_over).count();
        for _ in 0..3 {
            let (ended, offers) = (over(), self.service.offers());
            self.line(terminal, PROMPT)?;
            self.wait("the end of a turn", PATIENCE, || over() > ended || self.service.is_hanging())?;
            if self.service.is_hanging() {
                return Ok(());
            }
            self.steady(terminal);
            if !hangs && self.service.offers() > offers {
                return Ok(());
            }
        }
        bail!("the client never offers the tool to the model")
    }

    /// Types a line, and sends it when it is to be seen: some clients take what comes at once for something pasted.
    fn line(&self, terminal: &Terminal, text: &str) -> anyhow::Result<()> {
        let shown = || terminal.screen().matches(text).count();
        let before = shown();
        terminal.text(text)?;
        self.wait(&format!("{text:?} on the screen"), PATIENCE, || shown() > before)?;
        self.steady(terminal);
        terminal.key("Enter")
    }

    /// Leaves by two interrupts in a row. One that comes while a turn still winds up is taken for that turn's, and what the
    /// client says to the first is gone after a second or so: then a person begins again.
    fn ctrl_c_twice(&self, terminal: &Terminal) -> anyhow::Result<()> {
        for _ in 0..5 {
            terminal.key("C-c")?;
            let asked = || terminal.screen().contains("again to exit");
            if self.wait("what it says to an interrupt", SOON, asked).is_ok() {
                terminal.key("C-c")?;
                if self.wait("its end", SOON, || !lives(terminal.pid)).is_ok() {
                    return Ok(());
                }
            }
            self.steady(terminal);
        }
        bail!("two interrupts in a row do not end it")
    }

    fn wait_for_screen(&self, terminal: &Terminal, text: &str) -> anyhow::Result<()> {
        self.wait(&format!("{text:?} on the screen"), PATIENCE, || terminal.screen().contains(text))
    }

    /// Waits until nothing moves on the screen any more, or until it is plain that something always will.
    fn steady(&self, terminal: &Terminal) {
        let since = Instant::now();
        let (mut seen, mut at) = (terminal.screen(), Instant::now());
        while at.elapsed() < STEADY && since.elapsed() < 10 * STEADY {
            pause();
            let screen = terminal.screen();
            if screen != seen {
                (seen, at) = (screen, Instant::now());
            }
        }
    }

    /// Waits until nothing of the client runs any more, and notes what still does.
    fn settle(&self) -> anyhow::Result<()> {
        if matches!(self.scenario.way, Way::Daemon(_)) {
            let over = || self.fired().iter().any(|fired| fired.event == self.client.hooks.end);
            self.wait("the end that the background server tells", BACKGROUND, over)?;
        }
        let since = Instant::now();
        let left = loop {
            let left: Vec<String> = others().into_iter().filter(|words| !words.starts_with("tmux")).collect();
            if left.is_empty() || since.elapsed() > AFTERWARDS {
                break left;
            }
            pause();
        };
        self.place.mark("settled", &json!(left))
    }

    fn wait(&self, what: &str, most: Duration, mut is: impl FnMut() -> bool) -> anyhow::Result<()> {
        let since = Instant::now();
        while !is() {
            if since.elapsed() > most {
                bail!("{what}: not within {most:?}");
            }
            pause();
        }
        Ok(())
    }
}

fn pause() {
    thread::park_timeout(Duration::from_millis(40));
}
