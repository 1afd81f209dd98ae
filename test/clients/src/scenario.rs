//! What is done to the clients, and what each of them is known to do then.

use rustix::process::Signal;

use crate::client::Client;

/// One thing that is done.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    /// A prompt is typed, and its turn waited for.
    Turn,
    /// A prompt is typed whose turn never finishes.
    Hang,
    /// A line is typed.
    Line(&'static str),
    /// The line is typed that leaves.
    Quit,
    /// Ctrl-C is pressed, and again when the client says that this leaves.
    CtrlCTwice,
    /// A key is pressed.
    Key(&'static str),
    /// This is waited for on the screen.
    Shows(&'static str),
    /// One more call of this hook is waited for, with its reason, source or trigger where one is named.
    Fires(&'static str, Option<&'static str>),
    /// Nothing moves on the screen any more.
    Steady,
    Signal(Signal),
    /// The terminal is closed.
    Close,
}

/// How the client is run.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Way {
    /// In a terminal; these come after the first turn.
    Terminal(&'static [Act]),
    /// In a terminal as it is started by default, with a background server.
    Daemon(&'static [Act]),
    /// With its prompt as an argument, until it ends or, in the middle of its turn, a signal comes.
    Print(Option<Signal>),
    /// With its prompt as an argument, and a model that calls no tool.
    Talk,
}

/// How a sitting ends, in the order in which they began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// A hook says this reason, and somebody chose it.
    Closed(&'static str),
    /// A hook says this reason, and it says nothing.
    Interrupted(&'static str),
    /// No hook says anything.
    Silent,
}

/// One cell of the matrix.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) way: Way,
    pub(crate) ends: &'static [End],
    /// How often context is discarded in the first sitting.
    pub(crate) compactions: usize,
}

use Act::{Close, CtrlCTwice, Fires, Hang, Key, Line, Quit, Shows, Steady, Turn};
use End::{Closed, Interrupted, Silent};
use Way::{Daemon, Print, Talk, Terminal};

const fn scenario(name: &'static str, way: Way, ends: &'static [End]) -> Scenario {
    Scenario { name, way, ends, compactions: 0 }
}

const fn compacting(name: &'static str, way: Way, ends: &'static [End]) -> Scenario {
    Scenario { name, way, ends, compactions: 1 }
}

const TERM: Act = Act::Signal(Signal::TERM);
const KILL: Act = Act::Signal(Signal::KILL);

const CLAUDE: &[Scenario] = &[
    scenario("print-talk", Talk, &[Interrupted("other")]),
    scenario("print", Print(None), &[Interrupted("other")]),
    scenario("print-term", Print(Some(Signal::TERM)), &[Interrupted("other")]),
    scenario("quit", Terminal(&[Quit]), &[Closed("prompt_input_exit")]),
    scenario("ctrl-c", Terminal(&[CtrlCTwice]), &[Closed("prompt_input_exit")]),
    scenario("term", Terminal(&[TERM]), &[Interrupted("other")]),
    scenario("term-mid-turn", Terminal(&[Hang, TERM]), &[Interrupted("other")]),
    scenario("kill", Terminal(&[KILL]), &[Silent]),
    scenario("close", Terminal(&[Close]), &[Interrupted("other")]),
    scenario(
        "clear",
        Terminal(&[Line("/clear"), Fires("SessionStart", Some("clear")), Turn, Quit]),
        &[Closed("clear"), Closed("prompt_input_exit")],
    ),
    compacting(
        "compact",
        Terminal(&[Line("/compact"), Fires("SessionStart", Some("compact")), Turn, Quit]),
        &[Closed("prompt_input_exit")],
    ),
];

const CODEX: &[Scenario] = &[
    scenario("print-talk", Talk, &[Interrupted("other")]),
    scenario("print", Print(None), &[Interrupted("other")]),
    scenario("print-term", Print(Some(Signal::TERM)), &[Silent]),
    scenario("quit", Terminal(&[Quit]), &[Interrupted("other")]),
    scenario("ctrl-c", Terminal(&[Key("C-c")]), &[Interrupted("other")]),
    scenario("term", Terminal(&[TERM]), &[Silent]),
    scenario("term-mid-turn", Terminal(&[Hang, TERM]), &[Silent]),
    scenario("kill", Terminal(&[KILL]), &[Silent]),
    scenario("close", Terminal(&[Close]), &[Silent]),
    scenario(
        "new",
        Terminal(&[Line("/new"), Shows("Where should the new"), Key("Enter"), Steady, Turn, Quit]),
        &[Interrupted("other"), Interrupted("other")],
    ),
    compacting("compact", Terminal(&[Line("/compact"), Fires("PreCompact", None), Quit]), &[Interrupted("other")]),
    scenario("daemon-quit", Daemon(&[Quit]), &[Interrupted("other")]),
    scenario("daemon-kill", Daemon(&[KILL]), &[Interrupted("other")]),
    scenario("daemon-ctrl-c", Daemon(&[Key("C-c")]), &[Interrupted("other")]),
    scenario("daemon-term", Daemon(&[TERM]), &[Interrupted("other")]),
    scenario("daemon-close", Daemon(&[Close]), &[Interrupted("other")]),
];

const GEMINI: &[Scenario] = &[
    scenario("print-talk", Talk, &[Interrupted("exit")]),
    scenario("print", Print(None), &[Interrupted("exit")]),
    scenario("print-term", Print(Some(Signal::TERM)), &[Interrupted("exit")]),
    scenario("quit", Terminal(&[Quit]), &[Interrupted("exit")]),
    scenario("ctrl-c", Terminal(&[CtrlCTwice]), &[Interrupted("exit")]),
    scenario("term", Terminal(&[TERM]), &[Interrupted("exit")]),
    scenario("term-mid-turn", Terminal(&[Hang, TERM]), &[Interrupted("exit")]),
    scenario("kill", Terminal(&[KILL]), &[Silent]),
    scenario("close", Terminal(&[Close]), &[Interrupted("exit")]),
    scenario(
        "clear",
        Terminal(&[Line("/clear"), Fires("SessionStart", Some("clear")), Turn, Quit]),
        &[Closed("clear"), Interrupted("exit")],
    ),
    compacting(
        "compress",
        Terminal(&[Line("/compress"), Fires("PreCompress", Some("manual")), Quit]),
        &[Interrupted("exit")],
    ),
];

const COPILOT: &[Scenario] = &[
    scenario("print-talk", Talk, &[Interrupted("complete")]),
    scenario("print", Print(None), &[Interrupted("complete")]),
    scenario("print-term", Print(Some(Signal::TERM)), &[Interrupted("complete")]),
    scenario("quit", Terminal(&[Quit]), &[Interrupted("user_exit")]),
    scenario("ctrl-c", Terminal(&[CtrlCTwice]), &[Interrupted("user_exit")]),
    scenario("term", Terminal(&[TERM]), &[Interrupted("user_exit")]),
    scenario("term-mid-turn", Terminal(&[Hang, TERM]), &[Interrupted("user_exit")]),
    scenario("kill", Terminal(&[KILL]), &[Silent]),
    scenario("close", Terminal(&[Close]), &[Interrupted("user_exit")]),
    scenario(
        "clear",
        Terminal(&[Line("/clear"), Fires("sessionEnd", None), Turn, Quit]),
        &[Interrupted("user_exit"), Interrupted("user_exit")],
    ),
    compacting("compact", Terminal(&[Line("/compact"), Fires("preCompact", None), Quit]), &[Interrupted("user_exit")]),
];

/// What is done to a client.
pub(crate) fn scenarios(client: &Client) -> &'static [Scenario] {
    match client.name {
        "claude" => CLAUDE,
        "codex" => CODEX,
        "gemini" => GEMINI,
        _ => COPILOT,
    }
}

/// What cannot be shown, and why.
pub(crate) const UNSHOWN: [(&str, &str); 3] = [
    ("a logout", "there is no account offline"),
    (
        "a compaction that a client decides on by itself",
        "the stand-in says one sentence, so that no context is ever full",
    ),
    (
        "a signal to the launcher that npm puts before some programs",
        "the program itself is run: what a launcher passes on is no matter of hooks",
    ),
];
