//! Which sitting follows which: resume, clear, fork, switch, compaction, subagents, nested runs and starts that mean nothing.

use std::path::Path;

use majordomus_e2e::{
    Agent, CLAUDE_CODE, COPILOT_CLI, GEMINI_CLI, Record, Vendor, World, answered, feed, run_at_once, sample_of,
    session, until,
};
use serde_json::{Value, json};

const A: &str = "11d7a0f3-5be2-4c89-90b1-f4c6d8e2a573";
const B: &str = "22e8b104-6cf3-4d9a-81c2-05d7e9f3b684";

fn stand_in() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_stand-in"))
}

fn claude(world: &World, event: &str, name: &str, id: &str) -> String {
    CLAUDE_CODE.fire(world, event, name, id)
}

/// A payload of Claude Code with more in it.
fn claude_with(world: &World, event: &str, name: &str, id: &str, fields: &[(&str, Value)]) -> String {
    let mut payload = sample_of(world, "claude-code", name, id);
    for (field, value) in fields {
        payload[*field] = value.clone();
    }
    feed(&mut CLAUDE_CODE.capture(world, event), payload.to_string().as_bytes()).hook().to_owned()
}

/// The record of a session.
fn of<'a>(records: &'a [Record], session: &str) -> &'a Record {
    let found: Vec<&Record> = records.iter().filter(|record| record["session_id"] == json!(session)).collect();
    assert_eq!(found.len(), 1, "of {session} in {records:#?}");
    found[0]
}

#[test]
fn a_resume_of_a_sitting_that_has_ended_is_another_one_that_names_it() {
    let world = World::new();
    let first = CLAUDE_CODE.starts(&world, A);
    CLAUDE_CODE.works(&world, A);
    CLAUDE_CODE.ends(&world, A);
    let second = session(&claude(&world, "start", "15-start-resume", A), " opened at ");
    CLAUDE_CODE.works(&world, A);
    CLAUDE_CODE.ends(&world, A);
    let records = world.records();
    assert_eq!(records.len(), 2);
    assert_eq!((&of(&records, &first)["resumes"], &of(&records, &second)["resumes"]), (&Value::Null, &json!(first)));
    assert!(records.iter().all(|record| record["external_id"] == A && record["attachments"] == 1));
}

#[test]
fn a_resume_of_a_sitting_that_is_open_continues_it() {
    let world = World::new();
    let first = CLAUDE_CODE.starts(&world, A);
    CLAUDE_CODE.works(&world, A);
    let line = claude(&world, "start", "15-start-resume", A);
    assert_eq!(session(&line, " kept, open since "), first);
    CLAUDE_CODE.ends(&world, A);
    let record = world.record();
    assert_eq!((record.text("session_id"), &record["attachments"]), (first.as_str(), &json!(2)));
    assert_eq!(record["resumes"], Value::Null);
}

/// Claude Code: an end and a start, of two conversations, in one process.
#[test]
fn clearing_closes_one_sitting_and_begins_another_that_continues_nothing() {
    for vendor in [&CLAUDE_CODE, &GEMINI_CLI] {
        let world = World::new();
        let first = vendor.starts(&world, A);
        vendor.works(&world, A);
        let line = vendor.fire(&world, "end", "12-end-clear", A);
        assert!(line.starts_with("episode closed (closed, reason clear) into "), "{line}");
        let second = session(&vendor.fire(&world, "start", "14-start-clear", B), " opened at ");
        vendor.works(&world, B);
        assert!(vendor.ends(&world, B).starts_with(&vendor.ended()));
        let records = world.records();
        assert_eq!(records.len(), 2);
        assert_eq!(of(&records, &first).end(), ("closed", "clear", "hook"));
        assert_eq!(of(&records, &second).end(), (vendor.outcome(), vendor.reason, "hook"));
        assert!(records.iter().all(|record| record["resumes"] == Value::Null), "{}", vendor.id);
    }
}

/// Both hooks are their own processes, and may be seen in either order.
#[test]
fn clearing_is_the_same_where_its_two_events_come_together() {
    for round in 0..6 {
        let world = World::new();
        let first = CLAUDE_CODE.starts(&world, A);
        CLAUDE_CODE.works(&world, A);
        let mut hooks = vec![
            CLAUDE_CODE.hook(&world, "end", "12-end-clear", A),
            CLAUDE_CODE.hook(&world, "start", "14-start-clear", B),
        ];
        if round % 2 == 1 {
            hooks.reverse();
        }
        assert!(run_at_once(hooks).iter().all(|said| said.code == Some(0)));
        CLAUDE_CODE.works(&world, B);
        CLAUDE_CODE.ends(&world, B);
        let records = world.records();
        assert_eq!((records.len(), of(&records, &first).end()), (2, ("closed", "clear", "hook")));
    }
}

/// Copilot ends the old conversation while its process goes on, and starts the new one with the next prompt.
#[test]
fn clearing_in_copilot_proves_nothing_and_the_next_prompt_begins_another() {
    let world = World::new();
    let first = COPILOT_CLI.starts(&world, A);
    COPILOT_CLI.works(&world, A);
    assert!(COPILOT_CLI.ends(&world, A).starts_with("episode closed (interrupted, reason user_exit) into "));
    let second = COPILOT_CLI.starts(&world, B);
    COPILOT_CLI.works(&world, B);
    COPILOT_CLI.ends(&world, B);
    let records = world.records();
    assert_eq!(records.len(), 2);
    assert!(of(&records, &first)["resumes"].is_null() && of(&records, &second)["resumes"].is_null());
}

#[test]
fn a_fork_begins_another_sitting_and_leaves_the_first_one_open() {
    let world = World::new();
    let first = CLAUDE_CODE.starts(&world, A);
    CLAUDE_CODE.works(&world, A);
    let second = session(&claude(&world, "start", "16-start-fork", B), " opened at ");
    CLAUDE_CODE.works(&world, B);
    assert_eq!(world.logs("open").len(), 2);
    CLAUDE_CODE.ends(&world, B);
    CLAUDE_CODE.works(&world, A);
    CLAUDE_CODE.ends(&world, A);
    let records = world.records();
    assert_eq!(records.len(), 2);
    for (session, id) in [(&first, A), (&second, B)] {
        let record = of(&records, session);
        assert_eq!(
            (record.text("external_id"), &record["resumes"], &record["attachments"]),
            (id, &Value::Null, &json!(1))
        );
    }
}

#[test]
fn going_to_another_conversation_and_back_is_one_sitting_of_each() {
    let world = World::new();
    let first = CLAUDE_CODE.starts(&world, A);
    CLAUDE_CODE.works(&world, A);
    let left = format!("session {first} left open: its client went on in another conversation");
    assert_eq!(claude(&world, "end", "17-end-resume", A), left);
    let second = session(&claude(&world, "start", "15-start-resume", B), " opened at ");
    CLAUDE_CODE.works(&world, B);
    assert!(claude(&world, "end", "17-end-resume", B).starts_with(&format!("session {second} left open: ")));
    let line = claude(&world, "start", "15-start-resume", A);
    assert_eq!(session(&line, " kept, open since "), first);
    CLAUDE_CODE.works(&world, A);
    assert!(CLAUDE_CODE.ends(&world, A).starts_with(&CLAUDE_CODE.ended()));
    let records = world.records();
    assert_eq!(records.len(), 1, "the other one waits");
    let record = of(&records, &first);
    assert_eq!((&record["attachments"], record.end()), (&json!(2), ("closed", "prompt_input_exit", "hook")));
    assert_eq!(world.logs("open").len(), 1);
}

#[test]
fn a_conversation_that_was_left_and_never_taken_up_again_is_interrupted_where_it_was_last_seen() {
    let world = World::new();
    let first = CLAUDE_CODE.starts(&world, A);
    CLAUDE_CODE.works(&world, A);
    claude(&world, "end", "17-end-resume", A);
    let left = majordomus_e2e::now_ms();
    let record = until("the idle time ends", || world.records_with(&["--idle-seconds", "1"]).pop());
    assert_eq!((record.text("session_id"), record.end()), (first.as_str(), ("interrupted", "expired", "reaper")));
    assert_eq!(record["closed_at"], record["last_activity_at"]);
    assert!(record.time("closed_at") <= left);
    assert_eq!((&record["end_process"], &record["end_terminal"]), (&Value::Null, &Value::Null));
}

#[test]
fn leaving_a_conversation_in_which_nothing_happened_leaves_no_record() {
    let world = World::new();
    CLAUDE_CODE.starts(&world, A);
    let line = claude(&world, "end", "17-end-resume", A);
    assert!(!line.contains("left open"), "{line}");
    let second = session(&claude(&world, "start", "15-start-resume", B), " opened at ");
    CLAUDE_CODE.works(&world, B);
    CLAUDE_CODE.ends(&world, B);
    assert_eq!(world.record().text("session_id"), second);
    assert!(world.logs("open").is_empty());
}

/// A commit is something that happened, also where no other event of the client came.
#[test]
fn leaving_a_conversation_in_which_a_commit_was_made_loses_nothing() {
    let world = World::new();
    let first = CLAUDE_CODE.starts(&world, A);
    world.commit("lamps.txt", "Sort the lamps");
    claude(&world, "end", "17-end-resume", A);
    claude(&world, "start", "15-start-resume", B);
    let records = until("both idle times end", || {
        let records = world.records_with(&["--idle-seconds", "1"]);
        world.logs("open").is_empty().then_some(records)
    });
    assert_eq!(of(&records, &first).subjects(), ["Sort the lamps"]);
}

#[test]
fn a_left_conversation_that_goes_on_without_a_start_is_the_same_sitting() {
    let world = World::new();
    let first = CLAUDE_CODE.starts(&world, A);
    CLAUDE_CODE.works(&world, A);
    claude(&world, "end", "17-end-resume", A);
    CLAUDE_CODE.works(&world, A);
    CLAUDE_CODE.ends(&world, A);
    let record = world.record();
    assert_eq!((record.text("session_id"), record.text("outcome")), (first.as_str(), "closed"));
}

/// A resume of some versions fires two starts: one as it should be, one of an id that is never used and never ends.
#[test]
fn the_start_that_a_resume_brings_along_leaves_no_record_whichever_comes_first() {
    for phantom_first in [false, true] {
        let world = World::new();
        let first = CLAUDE_CODE.starts(&world, A);
        CLAUDE_CODE.works(&world, A);
        CLAUDE_CODE.ends(&world, A);
        let mut starts = [("15-start-resume", A), ("01-start", B)];
        if phantom_first {
            starts.reverse();
        }
        for (name, id) in starts {
            session(&claude(&world, "start", name, id), " opened at ");
        }
        CLAUDE_CODE.works(&world, A);
        CLAUDE_CODE.ends(&world, A);
        let records = until("the empty one expires", || {
            let records = world.records_with(&["--idle-seconds", "1"]);
            world.logs("open").is_empty().then_some(records)
        });
        assert!(records.iter().all(|record| record["external_id"] == A), "{records:#?}");
        assert_eq!(records.len(), 2, "phantom first: {phantom_first}");
        assert_eq!(of(&records, &first)["resumes"], Value::Null);
    }
}

#[test]
fn a_start_beside_a_resume_that_is_used_after_all_has_its_record() {
    let world = World::new();
    claude(&world, "start", "15-start-resume", A);
    let second = CLAUDE_CODE.starts(&world, B);
    CLAUDE_CODE.works(&world, B);
    CLAUDE_CODE.ends(&world, B);
    let records = world.records();
    assert_eq!((records.len(), of(&records, &second).end().0), (1, "closed"));
}

/// What a subagent's hooks say is of the conversation that runs it, and neither its beginning nor its end.
#[test]
fn events_inside_a_subagent_only_show_that_the_conversation_is_at_work() {
    let world = World::new();
    let first = CLAUDE_CODE.starts(&world, A);
    let inside = [("agent_id", json!("agent-5f2c")), ("agent_type", json!("reviewer"))];
    for (event, name) in [
        ("start", "01-start"),
        ("start", "15-start-resume"),
        ("activity", "03-before-tool"),
        ("activity", "05-turn-end"),
        ("compact", "08-compact-auto"),
        ("end", "11-end"),
        ("end", "12-end-clear"),
        ("end", "17-end-resume"),
    ] {
        let line = claude_with(&world, event, name, A, &inside);
        assert_eq!(line, format!("session {first} marked (activity)"), "{event} {name}");
    }
    CLAUDE_CODE.ends(&world, A);
    let record = world.record();
    assert_eq!((record.text("session_id"), record.end()), (first.as_str(), ("closed", "prompt_input_exit", "hook")));
    assert_eq!((&record["attachments"], &record["compactions"]), (&json!(1), &json!(0)));
}

#[test]
fn a_subagents_end_after_its_conversations_end_opens_and_ends_nothing() {
    let world = World::new();
    CLAUDE_CODE.starts(&world, A);
    CLAUDE_CODE.works(&world, A);
    CLAUDE_CODE.ends(&world, A);
    for (event, name) in [("start", "01-start"), ("activity", "05-turn-end"), ("end", "13-end-other")] {
        let line = claude_with(&world, event, name, A, &[("agent_id", json!("agent-5f2c"))]);
        assert!(line.contains("has just ended"), "{event}: {line}");
    }
    assert!(world.logs("open").is_empty());
    assert_eq!(world.records().len(), 1);
}

/// A field that is there and says nothing is no subagent.
#[test]
fn an_empty_or_absent_agent_is_the_conversation_itself() {
    let world = World::new();
    for (nr, agent) in [json!(null), json!("")].into_iter().enumerate() {
        let id = format!("id-{nr}");
        CLAUDE_CODE.starts(&world, &id);
        CLAUDE_CODE.works(&world, &id);
        let line = claude_with(&world, "end", "11-end", &id, &[("agent_id", agent.clone())]);
        assert!(line.starts_with(&CLAUDE_CODE.ended()), "{agent}: {line}");
    }
    assert_eq!(world.records().len(), 2);
}

/// `claude mcp list` fires an end of an id that nobody has seen before or will again.
#[test]
fn an_end_of_an_unknown_id_changes_nothing_for_those_that_are_open() {
    let world = World::new();
    let first = CLAUDE_CODE.starts(&world, A);
    assert_eq!(claude(&world, "end", "13-end-other", B), CLAUDE_CODE.nothing_open(B));
    CLAUDE_CODE.works(&world, A);
    CLAUDE_CODE.ends(&world, A);
    assert_eq!(world.record().text("session_id"), first);
}

/// A compaction that the client's start alone tells, or that comes under another id, is no failure.
#[test]
fn a_compaction_that_changes_the_id_begins_another_sitting_and_one_that_is_only_started_is_inside() {
    let world = World::new();
    let first = CLAUDE_CODE.starts(&world, A);
    CLAUDE_CODE.works(&world, A);
    let compacted = |id: &str| {
        let (mut hook, payload) = CLAUDE_CODE.hook(&world, "start", "09-start-compact", id);
        let said = feed(&mut hook, &payload);
        answered(&said).1.to_owned()
    };
    assert_eq!(session(&compacted(A), " kept, open since "), first);
    let second = session(&compacted(B), " opened at ");
    CLAUDE_CODE.works(&world, B);
    CLAUDE_CODE.ends(&world, B);
    CLAUDE_CODE.ends(&world, A);
    let records = world.records();
    assert_eq!((records.len(), &of(&records, &first)["attachments"]), (2, &json!(1)));
    assert_eq!(of(&records, &second)["attachments"], json!(1));
}

/// One conversation in two client processes: a person's own, and a headless run that resumed it from inside.
fn nested(world: &World) -> (Agent, Agent, String) {
    let (mut parent, mut run) = (Agent::start(world, stand_in()), Agent::start(world, stand_in()));
    let hook = |agent: &mut Agent, event: &str, name: &str| {
        agent.hook("claude-code", event, &sample_of(world, "claude-code", name, A))
    };
    let first = session(&hook(&mut parent, "start", "01-start"), " opened at ");
    hook(&mut parent, "activity", "02-prompt");
    let line = hook(&mut run, "start", "15-start-resume");
    assert_eq!(session(&line, " kept, open since "), first);
    hook(&mut run, "activity", "05-turn-end");
    (parent, run, first)
}

fn ends_in(agent: &mut Agent, world: &World, name: &str) -> String {
    agent.hook("claude-code", "end", &sample_of(world, "claude-code", name, A))
}

#[test]
fn a_headless_run_under_its_parents_id_does_not_end_it() {
    let world = World::new();
    let (mut parent, mut run, first) = nested(&world);
    let kept = format!("session {first} kept: another process of its client is still in it");
    for name in ["13-end-other", "11-end", "12-end-clear"] {
        assert_eq!(ends_in(&mut run, &world, name), kept, "{name}");
    }
    assert_eq!((world.records().len(), world.logs("open").len()), (0, 1));
    let line = ends_in(&mut parent, &world, "11-end");
    assert!(line.starts_with(&CLAUDE_CODE.ended()), "{line}");
    let record = world.record();
    assert_eq!((record.text("session_id"), record.end()), (first.as_str(), ("closed", "prompt_input_exit", "hook")));
    assert_eq!((&record["attachments"], &record["end_process"]), (&json!(2), &json!("running")));
}

#[test]
fn a_headless_run_whose_parent_is_gone_ends_the_conversation() {
    let world = World::new();
    let (parent, mut run, first) = nested(&world);
    parent.kill9();
    let line = ends_in(&mut run, &world, "13-end-other");
    assert!(line.starts_with("episode closed (interrupted, reason other) into "), "{line}");
    assert_eq!(world.record().text("session_id"), first);
}

/// Whichever of them goes first: while another one is in it, the sitting is not over.
#[test]
fn a_conversation_in_two_processes_ends_with_the_last_of_them() {
    let world = World::new();
    let (mut parent, mut run, first) = nested(&world);
    let kept = format!("session {first} kept: another process of its client is still in it");
    assert_eq!(ends_in(&mut parent, &world, "11-end"), kept);
    let line = run.hook("claude-code", "activity", &sample_of(&world, "claude-code", "05-turn-end", A));
    assert_eq!(line, format!("session {first} marked (activity)"));
    let line = ends_in(&mut run, &world, "13-end-other");
    assert!(line.starts_with("episode closed (interrupted, reason other) into "), "{line}");
    assert_eq!(ends_in(&mut parent, &world, "11-end"), CLAUDE_CODE.nothing_open(A));
    let record = world.record();
    assert_eq!((record.text("session_id"), &record["attachments"]), (first.as_str(), &json!(2)));
}

#[test]
fn two_processes_that_leave_a_conversation_at_the_same_moment_end_it_between_them() {
    let world = World::new();
    let (mut one, mut other) = (Agent::start(&world, stand_in()), Agent::start(&world, stand_in()));
    for round in 0..12 {
        let id = format!("both-{round}");
        let payload = |name: &str| sample_of(&world, "claude-code", name, &id);
        one.hook("claude-code", "start", &payload("01-start"));
        other.hook("claude-code", "start", &payload("15-start-resume"));
        let end = payload("11-end");
        let lines = std::thread::scope(|scope| {
            let ending = scope.spawn(|| other.hook("claude-code", "end", &end));
            [one.hook("claude-code", "end", &end), ending.join().expect("a hook ends")]
        });
        assert!(lines.iter().any(|line| line.starts_with("episode closed (closed, ")), "{round}: {lines:?}");
    }
    assert_eq!((world.records().len(), world.logs("open").len()), (12, 0));
}

/// The same start from two processes is two attachments; twice from one it is one.
#[test]
fn a_start_that_comes_twice_is_one_attachment_only_where_one_process_sent_it() {
    let attachments = |vendor: &Vendor, several: bool| {
        let world = World::new();
        let (mut one, mut other) = (Agent::start(&world, stand_in()), Agent::start(&world, stand_in()));
        let start = sample_of(&world, vendor.id, vendor.start, A);
        one.hook(vendor.id, "start", &start);
        if several {
            other.hook(vendor.id, "start", &start)
        } else {
            one.hook(vendor.id, "start", &start)
        };
        one.hook(vendor.id, "activity", &sample_of(&world, vendor.id, vendor.activity, A));
        let end = sample_of(&world, vendor.id, vendor.end, A);
        let line = if several {
            other.hook(vendor.id, "end", &end);
            one.hook(vendor.id, "end", &end)
        } else {
            one.hook(vendor.id, "end", &end)
        };
        assert!(line.starts_with(&vendor.ended()), "{} {several}: {line}", vendor.id);
        world.record()["attachments"].clone()
    };
    for vendor in [&CLAUDE_CODE, &GEMINI_CLI, &COPILOT_CLI] {
        assert_eq!((attachments(vendor, false), attachments(vendor, true)), (json!(1), json!(2)), "{}", vendor.id);
    }
}
