//! The five clients as the cases replay them: which payload of theirs comes through which event of the hook's command.
//!
//! The tables say what was measured and documented of each client, and are written without a look at the project's own
//! declarations: two sources that agree prove something.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::{Said, World, feed, root};

/// Where the samples say that the person's home and project are; a case rewrites them to its own.
const HOME: &str = "/home/somebody";
const PROJECT: &str = "/home/somebody/src/lantern";

/// The names under which a client gives its conversation's id.
const ID_FIELDS: [&str; 3] = ["session_id", "sessionId", "conversation_id"];

/// A client whose payloads are replayed.
#[derive(Debug)]
pub struct Vendor {
    /// What `--provider` calls it.
    pub id: &'static str,
    /// The first of its samples of each kind: start, activity, compaction, end.
    pub start: &'static str,
    /// A sign of life that is no prompt.
    pub activity: &'static str,
    /// A compaction that a person asked for, or the only kind that the client tells.
    pub compact: &'static str,
    /// The end of an ordinary sitting, by the person's own command.
    pub end: &'static str,
    /// What the end's sample gives as its reason.
    pub reason: &'static str,
    /// Whether that reason was shown to be given on purpose and never otherwise.
    pub on_purpose: bool,
    /// Whether its end may come long after the sitting, so that it says nothing about when.
    pub ends_late: bool,
    /// The variable of its hooks that names the project's folder.
    pub project_variable: Option<&'static str>,
    /// Every sample and the event through which it comes.
    pub samples: &'static [(&'static str, &'static str)],
}

/// Claude Code: of all reasons only `prompt_input_exit` and `clear` were never seen with a killed or closed one.
pub static CLAUDE_CODE: Vendor = Vendor {
    id: "claude-code",
    start: "01-start",
    activity: "05-turn-end",
    compact: "07-compact",
    end: "11-end",
    reason: "prompt_input_exit",
    on_purpose: true,
    ends_late: false,
    project_variable: Some("CLAUDE_PROJECT_DIR"),
    samples: &[
        ("01-start", "start"),
        ("02-prompt", "activity"),
        ("03-before-tool", "activity"),
        ("04-after-tool", "activity"),
        ("05-turn-end", "activity"),
        ("06-turn-failed", "activity"),
        ("07-compact", "compact"),
        ("08-compact-auto", "compact"),
        ("09-start-compact", "start"),
        ("10-compacted", "activity"),
        ("11-end", "end"),
        ("12-end-clear", "end"),
        ("13-end-other", "end"),
        ("14-start-clear", "start"),
        ("15-start-resume", "start"),
        ("16-start-fork", "start"),
        ("17-end-resume", "end"),
        ("18-end-logout", "end"),
    ],
};

/// Codex: its one reason says nothing, and its default terminal ends a sitting a minute late, from a daemon.
pub static CODEX: Vendor = Vendor {
    id: "codex",
    start: "01-start",
    activity: "05-turn-end",
    compact: "07-compact",
    end: "11-end",
    reason: "other",
    on_purpose: false,
    ends_late: true,
    project_variable: None,
    samples: &[
        ("01-start", "start"),
        ("02-prompt", "activity"),
        ("03-before-tool", "activity"),
        ("04-after-tool", "activity"),
        ("05-turn-end", "activity"),
        ("06-interrupt", "activity"),
        ("07-compact", "compact"),
        ("09-start-compact", "start"),
        ("11-end", "end"),
        ("12-end-without-transcript", "end"),
        ("15-start-resume", "start"),
    ],
};

/// Gemini CLI: `exit` comes with every end but a killed one, and its compaction event before every single request.
pub static GEMINI_CLI: Vendor = Vendor {
    id: "gemini-cli",
    start: "01-start",
    activity: "05-turn-end",
    compact: "07-compact",
    end: "11-end",
    reason: "exit",
    on_purpose: false,
    ends_late: false,
    project_variable: Some("GEMINI_PROJECT_DIR"),
    samples: &[
        ("01-start", "start"),
        ("02-prompt", "activity"),
        ("03-before-tool", "activity"),
        ("04-after-tool", "activity"),
        ("05-turn-end", "activity"),
        ("07-compact", "compact"),
        ("08-compact-auto", "compact"),
        ("11-end", "end"),
        ("12-end-clear", "end"),
        ("14-start-clear", "start"),
        ("15-start-resume", "start"),
    ],
};

/// Cursor: nothing of it could be run, so no reason of its is known to be given on purpose.
pub static CURSOR: Vendor = Vendor {
    id: "cursor",
    start: "01-start",
    activity: "05-turn-end",
    compact: "07-compact",
    end: "11-end",
    reason: "user_close",
    on_purpose: false,
    ends_late: false,
    project_variable: Some("CURSOR_PROJECT_DIR"),
    samples: &[
        ("01-start", "start"),
        ("02-prompt", "activity"),
        ("05-turn-end", "activity"),
        ("07-compact", "compact"),
        ("11-end", "end"),
    ],
};

/// Copilot CLI: `user_exit` also comes with a signal and a closed terminal, `complete` also with a turn that was cut off.
pub static COPILOT_CLI: Vendor = Vendor {
    id: "copilot-cli",
    start: "01-start",
    activity: "05-turn-end",
    compact: "07-compact",
    end: "11-end",
    reason: "user_exit",
    on_purpose: false,
    ends_late: false,
    project_variable: Some("COPILOT_PROJECT_DIR"),
    samples: &[
        ("01-start", "start"),
        ("02-prompt", "activity"),
        ("03-before-tool", "activity"),
        ("04-after-tool", "activity"),
        ("05-turn-end", "activity"),
        ("07-compact", "compact"),
        ("11-end", "end"),
        ("12-end-complete", "end"),
        ("21-pascal-start", "start"),
        ("22-pascal-prompt", "activity"),
        ("27-pascal-compact", "compact"),
        ("31-pascal-end", "end"),
    ],
};

impl Vendor {
    /// The outcome that its ordinary end is worth.
    #[must_use]
    pub fn outcome(&self) -> &'static str {
        if self.on_purpose { "closed" } else { "interrupted" }
    }

    /// Prepares the hook of an event.
    #[must_use]
    pub fn capture(&self, world: &World, event: &str) -> Command {
        let mut command = world.capture(self.id, event);
        if let Some(variable) = self.project_variable {
            command.env(variable, world.repository());
        }
        command
    }

    /// Its hook of an event with a payload, to be run with others.
    #[must_use]
    pub fn hook(&self, world: &World, event: &str, name: &str, id: &str) -> (Command, Vec<u8>) {
        (self.capture(world, event), sample_of(world, self.id, name, id).to_string().into_bytes())
    }

    /// Runs its hook of an event with a sample of the conversation `id`; the one line that it reports.
    pub fn fire(&self, world: &World, event: &str, name: &str, id: &str) -> String {
        let (mut command, payload) = self.hook(world, event, name, id);
        feed(&mut command, &payload).hook().to_owned()
    }

    /// Starts a conversation and returns its session.
    pub fn starts(&self, world: &World, id: &str) -> String {
        session(&self.fire(world, "start", self.start, id), " opened at ")
    }

    /// Shows a conversation at work.
    ///
    /// # Panics
    /// Where it is none that is open.
    pub fn works(&self, world: &World, id: &str) {
        let line = self.fire(world, "activity", self.activity, id);
        assert!(line.ends_with(" marked (activity)"), "{line}");
    }

    /// Ends a conversation in its ordinary way; the line.
    pub fn ends(&self, world: &World, id: &str) -> String {
        self.fire(world, "end", self.end, id)
    }

    /// How the line of its ordinary end begins.
    #[must_use]
    pub fn ended(&self) -> String {
        format!("episode closed ({}, reason {}) into .ai/repo/sessions/", self.outcome(), self.reason)
    }

    /// The line of an end that finds nothing open.
    #[must_use]
    pub fn nothing_open(&self, id: &str) -> String {
        format!("no open episode for {} {id}; nothing to close", self.id)
    }
}

/// The session that a line names, which must hold `how`.
///
/// # Panics
/// Where it does not.
pub fn session(line: &str, how: &str) -> String {
    assert!(line.starts_with("session s-") && line.contains(how), "{line:?} is not {how:?}");
    line.split(' ').nth(1).unwrap_or_default().to_owned()
}

/// What a hook said that may answer on standard output: exit 0 and one line on standard error; both outputs.
///
/// # Panics
/// Where it did not.
#[must_use]
pub fn answered(said: &Said) -> (&str, &str) {
    assert_eq!((said.code, said.err.lines().count()), (Some(0), 1), "{said:?}");
    (said.out.as_str(), said.line())
}

/// A sample payload with its paths in `world`, under the id that it has.
///
/// # Panics
/// Where there is none.
#[must_use]
pub fn sample(world: &World, provider: &str, name: &str) -> Value {
    let path = root().join("test/fixtures/replay").join(provider).join(format!("{name}.json"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let within = |path: &std::path::Path| {
        let text = json!(path.to_str().expect("paths of tests are UTF-8")).to_string();
        text.trim_matches('"').to_owned()
    };
    let text = text.replace(PROJECT, &within(world.repository()));
    let text = text.replace(HOME, &within(&world.folder().join("home")));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{} is no JSON: {error}", path.display()))
}

/// A sample payload of the conversation `id`, whatever the client calls that.
///
/// # Panics
/// Where there is none.
#[must_use]
pub fn sample_of(world: &World, provider: &str, name: &str, id: &str) -> Value {
    let mut payload = sample(world, provider, name);
    for field in ID_FIELDS {
        if payload.get(field).is_some() {
            payload[field] = json!(id);
        }
    }
    payload
}
