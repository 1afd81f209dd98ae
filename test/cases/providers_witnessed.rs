//! What a hook sees of its client when it reports an end: whether the process still runs and its terminal is still there.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use majordomus_e2e::{
    Agent, CLAUDE_CODE, CODEX, COPILOT_CLI, CURSOR, GEMINI_CLI, Record, Vendor, World, majordomus, named_pipe,
    sample_of, until,
};
use serde_json::{Value, json};

const ID: &str = "6ac1f94d-0e87-4b35-a2d0-3f58c7e961b2";

fn stand_in() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_stand-in"))
}

fn begins(agent: &mut Agent, world: &World, vendor: &Vendor) {
    let line = agent.hook(vendor.id, "start", &sample_of(world, vendor.id, vendor.start, ID));
    assert!(line.contains(" opened at "), "{line}");
    agent.hook(vendor.id, "activity", &sample_of(world, vendor.id, vendor.activity, ID));
}

fn ends(agent: &mut Agent, world: &World, vendor: &Vendor) -> Record {
    let line = agent.hook(vendor.id, "end", &sample_of(world, vendor.id, vendor.end, ID));
    assert!(line.starts_with(&vendor.ended()), "{line}");
    world.record()
}

fn seen(record: &Record) -> (&Value, &Value) {
    (&record["end_process"], &record["end_terminal"])
}

/// What is seen changes nothing of the outcome, either way.
fn judged_by_its_reason(record: &Record, vendor: &Vendor) {
    assert_eq!(record.end(), (vendor.outcome(), vendor.reason, "hook"), "{}", vendor.id);
}

#[test]
fn a_client_that_runs_without_a_terminal_is_seen_running_and_nothing_is_claimed_of_a_terminal() {
    for vendor in [&CLAUDE_CODE, &CODEX, &CURSOR] {
        let world = World::new();
        let mut agent = Agent::start(&world, stand_in());
        begins(&mut agent, &world, vendor);
        let record = ends(&mut agent, &world, vendor);
        assert_eq!(seen(&record), (&json!("running"), &Value::Null), "{}", vendor.id);
        judged_by_its_reason(&record, vendor);
    }
}

#[test]
fn a_client_in_a_terminal_that_is_there_is_seen_in_it() {
    for vendor in [&CLAUDE_CODE, &COPILOT_CLI, &GEMINI_CLI] {
        let world = World::new();
        let Some(mut agent) = Agent::start_in_terminal(&world, stand_in()) else { return };
        begins(&mut agent, &world, vendor);
        let record = ends(&mut agent, &world, vendor);
        assert_eq!(seen(&record), (&json!("running"), &json!("there")), "{}", vendor.id);
        judged_by_its_reason(&record, vendor);
        assert!(record.body.contains("terminal"), "it is shown: {}", record.body);
    }
}

#[test]
fn a_client_whose_terminal_was_closed_is_seen_without_it() {
    for vendor in [&CLAUDE_CODE, &COPILOT_CLI, &GEMINI_CLI] {
        let world = World::new();
        let Some(mut agent) = Agent::start_in_terminal(&world, stand_in()) else { return };
        begins(&mut agent, &world, vendor);
        agent.close_terminal();
        let record = ends(&mut agent, &world, vendor);
        assert_eq!(seen(&record), (&json!("running"), &json!("gone")), "{}", vendor.id);
        judged_by_its_reason(&record, vendor);
        assert!(record.body.contains("terminal"), "it is shown: {}", record.body);
    }
}

/// A hook that its client started and did not wait for.
#[test]
fn a_client_that_was_killed_before_its_end_hook_ran_is_seen_to_be_gone() {
    for vendor in [&CLAUDE_CODE, &COPILOT_CLI, &CURSOR] {
        let world = World::new();
        let mut agent = Agent::start(&world, stand_in());
        begins(&mut agent, &world, vendor);
        let (go, payload) = (world.temporary().join("go"), world.temporary().join("payload"));
        named_pipe(&go);
        std::fs::write(&payload, sample_of(&world, vendor.id, vendor.end, ID).to_string()).unwrap();
        // The shell waits for the pipe, then becomes the hook; nobody waits for the shell.
        let script = "(read line <\"$GO\"; exec \"$HOOK\" capture session --provider \"$BY\" --event end <\"$PAYLOAD\") \
                      >/dev/null 2>&1 &";
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        let env = json!({ "GO": text(&go), "PAYLOAD": text(&payload), "HOOK": text(majordomus()), "BY": vendor.id });
        assert_eq!(agent.run(script, "", &env).code, Some(0));
        agent.kill9();
        writeln!(File::create(&go).unwrap(), "now").unwrap();
        until("the hook has ended the session", || world.logs("open").is_empty().then_some(()));
        let record = world.record();
        assert_eq!(seen(&record), (&json!("gone"), &Value::Null), "{}", vendor.id);
        judged_by_its_reason(&record, vendor);
    }
}

#[test]
fn where_no_hook_reported_the_end_nothing_is_claimed_to_have_been_seen() {
    let world = World::new();
    let mut agent = Agent::start(&world, stand_in());
    begins(&mut agent, &world, &CLAUDE_CODE);
    let record = until("the idle time ends", || world.records_with(&["--idle-seconds", "1"]).pop());
    assert_eq!((record.text("end_witness"), seen(&record)), ("reaper", (&Value::Null, &Value::Null)));

    let world = World::new();
    let mut client = world.client();
    client.attach("thread");
    client.detach();
    assert_eq!(client.lose().code, Some(0));
    let record = world.record();
    assert_eq!((record.text("end_witness"), seen(&record)), ("connection", (&Value::Null, &Value::Null)));
}

/// Nothing of the machine or its person is told by the way: no process number, no terminal's name.
#[test]
fn what_was_seen_names_no_process_and_no_terminal() {
    let world = World::new();
    let Some(mut agent) = Agent::start_in_terminal(&world, stand_in()) else { return };
    begins(&mut agent, &world, &CLAUDE_CODE);
    let record = ends(&mut agent, &world, &CLAUDE_CODE);
    let text = format!("{}{}", record.front, record.body);
    assert!(!text.contains("/dev/") && !text.contains("pts/") && !text.contains("stand-in"), "{text}");
}
