//! What callers were told, and whether the disk keeps it true.

use std::collections::BTreeSet;

use majordomus_records::clock::{Clock, rfc3339};
use serde_json::Value;

use crate::world::{World, field};

/// What an attach or a detach was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// It is durable.
    Recorded { session_id: String, attachments: u32 },
    /// It is not, and why.
    Unrecorded(String),
    /// It was refused: the code and why.
    Refused(String, String),
}

impl Said {
    pub(crate) fn of(answer: &Value) -> Self {
        let line = answer["episode"]["repository"].as_str().unwrap().to_owned();
        if answer["recorded"] == true {
            let session_id = line.split(['/', ' ']).find_map(|word| word.starts_with("s-").then(|| word.get(..25)));
            let session_id = session_id.flatten().unwrap_or_else(|| panic!("names no session: {line}")).to_owned();
            let attachments = answer["episode"]["attachments"].as_u64().unwrap();
            return Self::Recorded { session_id, attachments: attachments.try_into().unwrap() };
        }
        let says_why = ["no episode was recorded: ", "no open episode for "].iter().any(|why| line.starts_with(why));
        assert!(says_why && line.len() > 30, "an answer that is not recorded says why: {answer}");
        Self::Unrecorded(line)
    }

    pub(crate) fn refused(code: &Value, why: &Value) -> Self {
        let (code, why) = (code.as_str().unwrap(), why.as_str().unwrap());
        assert!(["unavailable", "not_found"].contains(&code) && why.len() > 10, "{code}: {why}");
        Self::Refused(code.into(), why.into())
    }

    pub(crate) fn is_recorded(&self) -> bool {
        matches!(self, Self::Recorded { .. })
    }
}

/// All that one client was told, and what it did.
#[derive(Debug, Default)]
pub(crate) struct Told {
    /// Sessions that it was told it has, with the attachments that it was told at last.
    attached: Vec<(String, u32)>,
    /// Sessions that it was told are closed.
    closed: Vec<String>,
    /// How often it attached as somebody new, recorded or not.
    pub(crate) attaches: u32,
    /// When it was last told that an attach is recorded, and when it was last heard at all.
    last_attach_ms: Option<i64>,
    last_heard_ms: i64,
    /// Sessions whose end was on the disk when the writers stopped, acknowledged or not.
    ended_on_disk: BTreeSet<String>,
}

impl Told {
    pub(crate) fn hears(&mut self, world: &World) {
        self.last_heard_ms = world.clock.now().wall_ms;
    }

    pub(crate) fn attach(&mut self, world: &World, said: &Said) {
        if let Said::Recorded { session_id, attachments } = said {
            self.attached.push((session_id.clone(), *attachments));
            self.last_attach_ms = Some(world.clock.now().wall_ms);
        }
    }

    pub(crate) fn detach(&mut self, said: &Said) {
        if let Said::Recorded { session_id, .. } = said {
            self.closed.push(session_id.clone());
        }
    }

    pub(crate) fn has_session(&self) -> bool {
        !self.attached.is_empty()
    }

    /// Notes what has ended by what is on the disk; tells whether anything has.
    pub(crate) fn look(&mut self, world: &World) -> bool {
        let logs = world.logs();
        let ended = logs.iter().filter(|log| log.end.is_some()).filter_map(|log| log.session_id().map(str::to_owned));
        self.ended_on_disk.extend(ended);
        self.ended_on_disk.extend(world.records().iter().map(|(_, record)| field(record, "session_id").to_owned()));
        !self.ended_on_disk.is_empty()
    }

    /// All of them, after everything was finished that can be.
    pub(crate) fn holds_true(&self, world: &World) {
        nothing_is_left_over(world);
        what_was_recorded_is_on_the_disk_after_the_restart(world, self);
        an_acknowledged_detach_is_a_closed_record(world, self);
        no_session_has_two_records(world);
        no_duration_is_negative(world);
        attachments_never_double_and_are_never_forgotten(world, self);
        nothing_is_closed_that_was_not_said_to_be_or_durably_ended(world, self);
        an_interrupted_record_ends_at_its_last_evidence(world, self);
    }
}

fn records(world: &World) -> Vec<String> {
    world.records().into_iter().map(|(_, record)| record).collect()
}

fn record_of(world: &World, session_id: &str) -> String {
    let found = records(world).into_iter().find(|record| field(record, "session_id") == session_id);
    found.unwrap_or_else(|| panic!("there is no record of {session_id}, which was said to be recorded"))
}

pub(crate) fn exactly_one_record_for_each_sitting(world: &World, sittings: usize) {
    let found = records(world).len();
    assert_eq!(found, sittings, "there are {found} records of {sittings} sittings");
}

pub(crate) fn at_most_one_record(world: &World) {
    assert!(records(world).len() <= 1, "there are {} records of one sitting", records(world).len());
}

fn nothing_is_left_over(world: &World) {
    assert!(world.logs().is_empty(), "a log is left over: {:?}", world.logs());
    let left = world.disk.below(world.root());
    // A log that nobody could begin may stay: the next one of its key begins it.
    let expected = |path: &std::path::PathBuf| {
        let text = path.to_string_lossy();
        text.contains("/history/") || text.contains("/open/") || path.extension().is_some_and(|end| end == "md")
    };
    let left: Vec<_> = left.iter().filter(|path| !expected(path)).collect();
    assert!(left.is_empty(), "left over: {left:?}");
}

fn what_was_recorded_is_on_the_disk_after_the_restart(world: &World, told: &Told) {
    for (session_id, _) in &told.attached {
        record_of(world, session_id);
    }
}

fn an_acknowledged_detach_is_a_closed_record(world: &World, told: &Told) {
    for session_id in &told.closed {
        let record = record_of(world, session_id);
        let end = (field(&record, "outcome"), field(&record, "end_reason"), field(&record, "end_witness"));
        assert_eq!(end, ("closed", "detach", "connection"), "{session_id} was said to be closed");
    }
}

fn no_session_has_two_records(world: &World) {
    let records = records(world);
    let ids: BTreeSet<&str> = records.iter().map(|record| field(record, "session_id")).collect();
    assert_eq!(ids.len(), records.len(), "a session has two records");
}

fn no_duration_is_negative(world: &World) {
    for record in records(world) {
        let [started, active, closed] =
            ["started_at", "last_activity_at", "closed_at"].map(|name| field(&record, name).to_owned());
        assert!(started <= active && active <= closed, "{started}, {active}, {closed}");
    }
}

fn attachments_never_double_and_are_never_forgotten(world: &World, told: &Told) {
    let of = |record: &String| field(record, "attachments").parse::<u32>().unwrap();
    let all: u32 = records(world).iter().map(of).sum();
    assert!(all <= told.attaches, "{all} attachments of a client that attached {} times", told.attaches);
    for (session_id, attachments) in &told.attached {
        let kept = of(&record_of(world, session_id));
        assert!(kept >= *attachments, "{kept} attachments where the client was told {attachments}");
    }
}

fn nothing_is_closed_that_was_not_said_to_be_or_durably_ended(world: &World, told: &Told) {
    for record in records(world).iter().filter(|record| field(record, "outcome") == "closed") {
        let session_id = field(record, "session_id").to_owned();
        let known = told.closed.contains(&session_id) || told.ended_on_disk.contains(&session_id);
        assert!(known, "{session_id} became closed, and nobody was told so nor was its end on the disk");
    }
}

fn an_interrupted_record_ends_at_its_last_evidence(world: &World, told: &Told) {
    for record in records(world).iter().filter(|record| field(record, "outcome") == "interrupted") {
        let closed_at = field(record, "closed_at");
        assert_eq!(closed_at, field(record, "last_activity_at"));
        assert!(closed_at <= rfc3339(told.last_heard_ms).as_str(), "{closed_at} is after the client was last heard");
        if let Some(at) = told.last_attach_ms {
            assert!(closed_at >= rfc3339(at).as_str(), "{closed_at} is before the attach that was said to be recorded");
        }
    }
}
