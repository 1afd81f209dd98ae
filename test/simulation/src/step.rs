//! What can happen, each with one line of text: a run is a script, and a script is a run.
//!
//! ```text
//! c1 up                  its client starts `majordomus mcp`
//! c1 attach a            … and asks for the episode under the id `a`
//! c1 call                … and says something else
//! c1 detach              … and finishes its episode; `c1 detach a` names it
//! c1 leave               … and closes the connection
//! w1 attach a            the same by a session over HTTP: attach, call, detach, leave; `w1 stream`, `w1 unstream`
//! k1 attach a            the same by a handle: attach, call, detach, lose
//! h1 start startup       a hook fires: start, activity, compact, end
//! person sweep           a command: list, sweep, `close c a`, `close h 1`, stop
//! serve                  `serve ensure`
//! kill c1                the process ends at once; `kill serve`
//! stop c1                … is stopped; `continue c1`
//! cut c1 both            its connection is lost, on both sides or so far only on one: bridge, server
//! wait 30                seconds pass; sleep, jump
//! power 7 off 60 jump -5 the power is lost; 7 decides what survives of what was not synced
//! fault c1 kill 3        at its third step from now that changes the disk: kill, power, once, some; also h1, person, serve
//! full                   the disk is full until `room`
//! ~ c1 call              whatever follows: nobody answers before the next step
//! ```

use std::fmt;

use crate::disk::Fault;

/// A process that can be named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Who {
    /// The `majordomus mcp` of a client.
    Client(u8),
    /// The next hook of a sitting.
    Hook(u8),
    /// The next command of a person.
    Person,
    /// The server that nobody's client waits for.
    Serve,
}

/// What somebody who talks the protocol does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Does {
    Up,
    Attach(char),
    Call,
    Detach(Option<char>),
    Leave,
}

/// Which end notices that a connection is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Both,
    Bridge,
    Server,
}

/// What a caller over HTTP does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Calls {
    Attach(char),
    Call,
    Detach,
    /// The session is deleted.
    Leave,
    Stream,
    Unstream,
}

/// What a hook says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fires {
    Start(&'static str),
    Activity,
    Compact,
    End(&'static str),
}

pub(crate) const SOURCES: [&str; 4] = ["startup", "resume", "clear", "compact"];
pub(crate) const REASONS: [&str; 4] = ["prompt_input_exit", "other", "clear", "resume"];

/// What a person asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asks {
    List,
    Sweep,
    CloseConnection(char),
    CloseHook(u8),
    Stop,
}

/// One thing that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Client(u8, Does),
    Web(u8, Calls),
    Handle(u8, Calls),
    Hook(u8, Fires),
    Person(Asks),
    Serve,
    Kill(Who),
    Stop(Who),
    Continue(Who),
    Cut(u8, Side),
    Wait(u64),
    Sleep(u64),
    Jump(i64),
    Power { choice: u64, off: u64, jump: i64 },
    Fault(Who, Fault, usize),
    Full,
    Room,
}

/// One step of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) event: Event,
    /// Whether nobody answers before the next step.
    pub(crate) quiet: bool,
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Client(n) => write!(f, "c{n}"),
            Self::Hook(n) => write!(f, "h{n}"),
            Self::Person => f.write_str("person"),
            Self::Serve => f.write_str("serve"),
        }
    }
}

impl fmt::Display for Does {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Up => f.write_str("up"),
            Self::Attach(id) => write!(f, "attach {id}"),
            Self::Call => f.write_str("call"),
            Self::Detach(None) => f.write_str("detach"),
            Self::Detach(Some(id)) => write!(f, "detach {id}"),
            Self::Leave => f.write_str("leave"),
        }
    }
}

impl fmt::Display for Calls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Attach(id) => write!(f, "attach {id}"),
            Self::Call => f.write_str("call"),
            Self::Detach => f.write_str("detach"),
            Self::Leave => f.write_str("leave"),
            Self::Stream => f.write_str("stream"),
            Self::Unstream => f.write_str("unstream"),
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Client(n, does) => write!(f, "c{n} {does}"),
            Self::Web(n, calls) => write!(f, "w{n} {calls}"),
            Self::Handle(n, calls) => write!(f, "k{n} {calls}"),
            Self::Hook(n, Fires::Start(source)) => write!(f, "h{n} start {source}"),
            Self::Hook(n, Fires::Activity) => write!(f, "h{n} activity"),
            Self::Hook(n, Fires::Compact) => write!(f, "h{n} compact"),
            Self::Hook(n, Fires::End(reason)) => write!(f, "h{n} end {reason}"),
            Self::Person(Asks::List) => f.write_str("person list"),
            Self::Person(Asks::Sweep) => f.write_str("person sweep"),
            Self::Person(Asks::CloseConnection(id)) => write!(f, "person close c {id}"),
            Self::Person(Asks::CloseHook(n)) => write!(f, "person close h {n}"),
            Self::Person(Asks::Stop) => f.write_str("person stop"),
            Self::Serve => f.write_str("serve"),
            Self::Kill(who) => write!(f, "kill {who}"),
            Self::Stop(who) => write!(f, "stop {who}"),
            Self::Continue(who) => write!(f, "continue {who}"),
            Self::Cut(n, side) => {
                let side = match side {
                    Side::Both => "both",
                    Side::Bridge => "bridge",
                    Side::Server => "server",
                };
                write!(f, "cut c{n} {side}")
            }
            Self::Wait(seconds) => write!(f, "wait {seconds}"),
            Self::Sleep(seconds) => write!(f, "sleep {seconds}"),
            Self::Jump(seconds) => write!(f, "jump {seconds}"),
            Self::Power { choice, off, jump } => write!(f, "power {choice} off {off} jump {jump}"),
            Self::Fault(who, fault, at) => {
                let fault = match fault {
                    Fault::Kill => "kill",
                    Fault::Power => "power",
                    Fault::Once => "once",
                    Fault::Some => "some",
                };
                write!(f, "fault {who} {fault} {at}")
            }
            Self::Full => f.write_str("full"),
            Self::Room => f.write_str("room"),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", if self.quiet { "~ " } else { "" }, self.event)
    }
}

/// Writes a script.
pub(crate) fn write(steps: &[Step]) -> String {
    steps.iter().map(|step| format!("{step}\n")).collect()
}

/// Reads a script: one step a line; what follows a `#` is for people.
///
/// # Errors
/// The line that is no step.
pub(crate) fn read(text: &str) -> Result<Vec<Step>, String> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    lines.filter(|line| !line.is_empty()).map(|line| read_step(line).ok_or_else(|| line.to_owned())).collect()
}

fn read_step(line: &str) -> Option<Step> {
    let (quiet, line) = match line.strip_prefix('~') {
        Some(rest) => (true, rest),
        None => (false, line),
    };
    let words: Vec<&str> = line.split_whitespace().collect();
    let event = match words.as_slice() {
        ["serve"] => Event::Serve,
        ["full"] => Event::Full,
        ["room"] => Event::Room,
        ["kill", who] => Event::Kill(read_who(who)?),
        ["stop", who] => Event::Stop(read_who(who)?),
        ["continue", who] => Event::Continue(read_who(who)?),
        ["cut", who, side] => {
            let Who::Client(n) = read_who(who)? else { return None };
            let side = match *side {
                "both" => Side::Both,
                "bridge" => Side::Bridge,
                "server" => Side::Server,
                _ => return None,
            };
            Event::Cut(n, side)
        }
        ["wait", seconds] => Event::Wait(seconds.parse().ok()?),
        ["sleep", seconds] => Event::Sleep(seconds.parse().ok()?),
        ["jump", seconds] => Event::Jump(seconds.parse().ok()?),
        ["power", choice, "off", off, "jump", jump] => {
            Event::Power { choice: choice.parse().ok()?, off: off.parse().ok()?, jump: jump.parse().ok()? }
        }
        ["fault", who, fault, at] => {
            let fault = match *fault {
                "kill" => Fault::Kill,
                "power" => Fault::Power,
                "once" => Fault::Once,
                "some" => Fault::Some,
                _ => return None,
            };
            Event::Fault(read_who(who)?, fault, at.parse().ok()?)
        }
        ["person", rest @ ..] => Event::Person(match rest {
            ["list"] => Asks::List,
            ["sweep"] => Asks::Sweep,
            ["stop"] => Asks::Stop,
            ["close", "c", id] => Asks::CloseConnection(read_id(id)?),
            ["close", "h", n] => Asks::CloseHook(n.parse().ok()?),
            _ => return None,
        }),
        [actor, rest @ ..] => return Some(Step { event: read_actor(actor, rest)?, quiet }),
        [] => return None,
    };
    Some(Step { event, quiet })
}

fn read_actor(actor: &str, words: &[&str]) -> Option<Event> {
    let n: u8 = actor.get(1..)?.parse().ok()?;
    Some(match (actor.get(..1)?, words) {
        ("c", ["up"]) => Event::Client(n, Does::Up),
        ("c", ["attach", id]) => Event::Client(n, Does::Attach(read_id(id)?)),
        ("c", ["call"]) => Event::Client(n, Does::Call),
        ("c", ["detach"]) => Event::Client(n, Does::Detach(None)),
        ("c", ["detach", id]) => Event::Client(n, Does::Detach(Some(read_id(id)?))),
        ("c", ["leave"]) => Event::Client(n, Does::Leave),
        ("w", words) => Event::Web(n, read_calls(words)?),
        ("k", words) => Event::Handle(n, read_calls(words)?),
        ("h", ["start", source]) => Event::Hook(n, Fires::Start(known(&SOURCES, source)?)),
        ("h", ["activity"]) => Event::Hook(n, Fires::Activity),
        ("h", ["compact"]) => Event::Hook(n, Fires::Compact),
        ("h", ["end", reason]) => Event::Hook(n, Fires::End(known(&REASONS, reason)?)),
        _ => return None,
    })
}

fn read_calls(words: &[&str]) -> Option<Calls> {
    Some(match words {
        ["attach", id] => Calls::Attach(read_id(id)?),
        ["call"] => Calls::Call,
        ["detach"] => Calls::Detach,
        ["leave"] => Calls::Leave,
        ["stream"] => Calls::Stream,
        ["unstream"] => Calls::Unstream,
        _ => return None,
    })
}

fn known(all: &[&'static str], word: &str) -> Option<&'static str> {
    all.iter().find(|known| **known == word).copied()
}

fn read_who(word: &str) -> Option<Who> {
    match word {
        "serve" => Some(Who::Serve),
        "person" => Some(Who::Person),
        _ if word.starts_with('h') => Some(Who::Hook(word.get(1..)?.parse().ok()?)),
        _ => Some(Who::Client(word.strip_prefix('c')?.parse().ok()?)),
    }
}

fn read_id(word: &str) -> Option<char> {
    let mut chars = word.chars();
    chars.next().filter(|id| id.is_ascii_lowercase() && chars.next().is_none())
}

#[cfg(test)]
mod tests;
