//! Fields in another casing, renamed, missing, of another kind, and values that nobody has declared; and the prompt's text,
//! which is nobody's business.

use std::fs;

use majordomus_e2e::{
    CLAUDE_CODE, CODEX, COPILOT_CLI, CURSOR, Files, GEMINI_CLI, Said, Vendor, World, feed, files, holds, sample_of,
    session,
};
use serde_json::{Value, json};

const FIVE: [&Vendor; 5] = [&CLAUDE_CODE, &CODEX, &GEMINI_CLI, &CURSOR, &COPILOT_CLI];
const ID: &str = "51c0a9e7-8d42-4b6f-b3d5-66e1f20a9c78";
const ID_FIELDS: [&str; 3] = ["session_id", "sessionId", "conversation_id"];

fn run(world: &World, vendor: &Vendor, event: &str, payload: &Value) -> Said {
    feed(&mut vendor.capture(world, event), payload.to_string().as_bytes())
}

/// The sample of an event's ordinary kind.
fn name_of(vendor: &Vendor, event: &str) -> &'static str {
    match event {
        "start" => vendor.start,
        "activity" => vendor.activity,
        "compact" => vendor.compact,
        _ => vendor.end,
    }
}

fn without(mut payload: Value, fields: &[&str]) -> Value {
    let object = payload.as_object_mut().expect("a payload is an object");
    for field in fields {
        object.remove(*field);
    }
    payload
}

#[test]
fn both_casings_of_copilot_are_one_conversation() {
    let world = World::new();
    let line = COPILOT_CLI.fire(&world, "start", "01-start", ID);
    let opened = session(&line, " opened at ");
    for (event, name, what) in [
        ("activity", "22-pascal-prompt", "activity"),
        ("activity", "05-turn-end", "activity"),
        ("compact", "27-pascal-compact", "compact"),
        ("compact", "07-compact", "compact"),
    ] {
        assert_eq!(COPILOT_CLI.fire(&world, event, name, ID), format!("session {opened} marked ({what})"), "{name}");
    }
    let line = COPILOT_CLI.fire(&world, "end", "31-pascal-end", ID);
    assert!(line.starts_with(&COPILOT_CLI.ended()), "{line}");
    let record = world.record();
    // Told in both casings at once it is one and the same compaction.
    assert_eq!((record.text("session_id"), &record["compactions"]), (opened.as_str(), &json!(1)));
}

#[test]
fn a_start_of_copilot_twice_in_both_casings_is_one_attachment() {
    let world = World::new();
    COPILOT_CLI.fire(&world, "start", "01-start", ID);
    COPILOT_CLI.fire(&world, "start", "21-pascal-start", ID);
    COPILOT_CLI.works(&world, ID);
    COPILOT_CLI.ends(&world, ID);
    assert_eq!(world.record()["attachments"], json!(1));
}

#[test]
fn a_payload_without_an_id_records_nothing_and_the_line_names_what_was_there() {
    for vendor in FIVE {
        let world = World::new();
        for event in ["start", "activity", "compact", "end"] {
            let mut payload = without(sample_of(&world, vendor.id, name_of(vendor, event), ID), &ID_FIELDS);
            payload["lamp_id"] = json!("the-lamp-itself");
            let said = run(&world, vendor, event, &payload);
            let line = said.hook();
            assert!(line.starts_with("no episode was recorded: "), "{} {event}: {line}", vendor.id);
            assert!(line.contains("lamp_id"), "{} {event} names what was there: {line}", vendor.id);
            assert!(!line.contains("the-lamp-itself"), "and nothing of its value: {line}");
        }
        assert!(world.nothing_recorded(), "{}", vendor.id);
    }
}

#[test]
fn an_id_that_is_none_is_never_a_key_that_others_share() {
    for vendor in FIVE {
        let world = World::new();
        for id in [json!(null), json!(""), json!({ "a": 1 }), json!([]), json!(true), json!("a\nb")] {
            let mut payload = sample_of(&world, vendor.id, vendor.start, ID);
            for field in ID_FIELDS {
                if payload.get(field).is_some() {
                    payload[field] = id.clone();
                }
            }
            let said = run(&world, vendor, "start", &payload);
            assert!(said.hook().starts_with("no episode was recorded: "), "{} {id}: {said:?}", vendor.id);
        }
        assert!(world.nothing_recorded(), "{}", vendor.id);
    }
}

/// Cursor gives the conversation twice, and the sitting's own name is the same; either is enough.
#[test]
fn either_of_the_names_that_cursor_gives_its_conversation_is_enough() {
    let world = World::new();
    let start = without(sample_of(&world, "cursor", "01-start", ID), &["session_id"]);
    let opened = session(run(&world, &CURSOR, "start", &start).hook(), " opened at ");
    CURSOR.works(&world, ID);
    let end = without(sample_of(&world, "cursor", "11-end", ID), &["conversation_id"]);
    let said = run(&world, &CURSOR, "end", &end);
    assert!(said.hook().starts_with(&CURSOR.ended()), "{said:?}");
    assert_eq!(world.record().text("session_id"), opened);
}

#[test]
fn what_else_is_missing_costs_nothing_but_itself() {
    for vendor in FIVE {
        let world = World::new();
        let least = |event: &str| -> Value {
            let payload = sample_of(&world, vendor.id, name_of(vendor, event), ID);
            let of_the_id = |name: &str| ID_FIELDS.contains(&name) || name == "cursor_version";
            let kept = payload.as_object().unwrap().iter().filter(|(name, _)| of_the_id(name));
            Value::Object(kept.map(|(name, value)| (name.clone(), value.clone())).collect())
        };
        let said = run(&world, vendor, "start", &least("start"));
        let opened = session(said.hook(), " opened at ");
        let said = run(&world, vendor, "activity", &least("activity"));
        assert_eq!(said.hook(), format!("session {opened} marked (activity)"), "{}", vendor.id);
        let said = run(&world, vendor, "end", &least("end"));
        assert!(said.hook().starts_with("episode closed (interrupted, reason unknown) into "), "{said:?}");
        let record = world.record();
        assert_eq!(record.end(), ("interrupted", "unknown", "hook"), "{}", vendor.id);
        assert_eq!((record.text("session_id"), record.text("external_id")), (opened.as_str(), ID));
    }
}

#[test]
fn fields_of_a_kind_that_nobody_expects_cost_nothing_but_themselves() {
    let kinds = [json!(17), json!({ "a": [1, 2] }), json!([]), json!(true), json!(null), json!("\u{7}")];
    for vendor in FIVE {
        let world = World::new();
        let ours = |field: &str| ID_FIELDS.contains(&field) || field == "cursor_version" || is_event_name(field);
        for (nr, kind) in kinds.iter().enumerate() {
            let id = format!("id-{nr}");
            for event in ["start", "activity", "compact", "end"] {
                let mut payload = sample_of(&world, vendor.id, name_of(vendor, event), &id);
                for (_, value) in payload.as_object_mut().unwrap().iter_mut().filter(|(field, _)| !ours(field)) {
                    *value = kind.clone();
                }
                let said = run(&world, vendor, event, &payload);
                let line = said.hook();
                let taken = line.starts_with("session s-") || line.starts_with("episode closed (interrupted, reason ");
                assert!(taken, "{} {event} {kind}: {line}", vendor.id);
            }
        }
        assert_eq!(world.records().len(), kinds.len(), "{}", vendor.id);
    }
}

fn is_event_name(field: &str) -> bool {
    ["hook_event_name", "hookEventName"].contains(&field)
}

#[test]
fn fields_that_nobody_knows_change_nothing() {
    for vendor in FIVE {
        let world = World::new();
        for event in ["start", "activity", "end"] {
            let mut payload = sample_of(&world, vendor.id, name_of(vendor, event), ID);
            payload["a_new_field"] = json!({ "session_id": "another", "reason": "clear", "agent_id": "x" });
            payload["Source"] = json!("resume");
            let line = run(&world, vendor, event, &payload).hook().to_owned();
            assert!(line.starts_with("session s-") || line.starts_with(&vendor.ended()), "{}: {line}", vendor.id);
        }
        let record = world.record();
        assert_eq!((record.text("external_id"), &record["attachments"]), (ID, &json!(1)));
    }
}

#[test]
fn a_reason_that_nobody_has_declared_is_kept_word_for_word() {
    for vendor in FIVE {
        let world = World::new();
        vendor.starts(&world, ID);
        vendor.works(&world, ID);
        let mut payload = sample_of(&world, vendor.id, vendor.end, ID);
        payload["reason"] = json!("Sunset_of the-lamp ü");
        let said = run(&world, vendor, "end", &payload);
        let into = "episode closed (interrupted, reason Sunset_of the-lamp ü) into ";
        assert!(said.hook().starts_with(into), "{}: {said:?}", vendor.id);
        let record = world.record();
        assert_eq!(record.end(), ("interrupted", "Sunset_of the-lamp ü", "hook"), "{}", vendor.id);
        assert!(record.body.contains("(reason `Sunset_of the-lamp ü`)"), "{}", record.body);
    }
}

/// A deliberate reason is that word and no other that looks like it.
#[test]
fn a_reason_that_only_looks_like_one_given_on_purpose_closes_nothing() {
    let world = World::new();
    for reason in ["Clear", "clear ", " clear", "CLEAR", "clear\u{200b}", "prompt_input_exit2", "promptInputExit"] {
        CLAUDE_CODE.starts(&world, reason);
        CLAUDE_CODE.works(&world, reason);
        let mut payload = sample_of(&world, "claude-code", "11-end", reason);
        payload["reason"] = json!(reason);
        let said = run(&world, &CLAUDE_CODE, "end", &payload);
        assert!(said.hook().starts_with("episode closed (interrupted, reason "), "{reason:?}: {said:?}");
    }
    assert!(world.records().iter().all(|record| record.text("outcome") == "interrupted"));
}

#[test]
fn a_source_that_nobody_has_declared_opens_and_is_kept_word_for_word() {
    for vendor in [&CLAUDE_CODE, &CODEX, &GEMINI_CLI, &COPILOT_CLI] {
        let world = World::new();
        let mut payload = sample_of(&world, vendor.id, vendor.start, ID);
        payload["source"] = json!("Moonrise ü");
        let said = run(&world, vendor, "start", &payload);
        session(said.hook(), " opened at ");
        let log = fs::read_to_string(&world.logs("open")[0]).unwrap();
        assert!(log.contains("\"Moonrise ü\""), "{}: {log}", vendor.id);
        vendor.works(&world, ID);
        assert!(vendor.ends(&world, ID).starts_with(&vendor.ended()));
        assert_eq!(world.record()["attachments"], json!(1));
    }
}

/// Every field that may hold what a person or a model wrote, filled with a text that is looked for afterwards.
const TEXTS: [&str; 16] = [
    "prompt",
    "initialPrompt",
    "initial_prompt",
    "last_assistant_message",
    "prompt_response",
    "tool_input",
    "tool_response",
    "toolArgs",
    "toolResult",
    "compact_summary",
    "custom_instructions",
    "customInstructions",
    "attachments",
    "error",
    "model",
    "user_email",
];

const MARKER: &str = "GREEN-LANTERN-ON-THE-PIER";

fn nothing_of_what_was_written_is_kept(vendor: &Vendor) {
    let world = World::new();
    let mut seen: Vec<(String, Files)> = Vec::new();
    let mut filled = 0;
    for (name, event) in vendor.samples.iter().filter(|(_, event)| *event != "end").chain([&(vendor.end, "end")]) {
        let mut payload = sample_of(&world, vendor.id, name, ID);
        for field in TEXTS {
            if let Some(value) = payload.get_mut(field) {
                filled += 1;
                *value = json!(MARKER);
            }
        }
        let said = run(&world, vendor, event, &payload);
        assert_eq!(said.code, Some(0));
        seen.push((format!("{}{}", said.out, said.err), files(&world.folder(), &[])));
    }
    assert!(filled >= 2, "there is something to be kept: {filled}");
    let record = world.record();
    let shown = world.run(&["sessions", "show", record.text("session_id")]);
    let status = world.run(&["capture", "status"]);
    let texts = [record.front.to_string(), record.body, shown.out, shown.err, status.out, status.err];
    assert!(texts.iter().all(|text| !text.contains(MARKER)), "{texts:?}");
    for (said, files) in seen.iter().chain([&(String::new(), files(&world.folder(), &[]))]) {
        assert!(!said.contains(MARKER), "{said}");
        assert_eq!(holds(files, MARKER), Vec::<std::path::PathBuf>::new());
    }
}

#[test]
fn nothing_that_is_written_in_claude_code_is_kept_or_said() {
    nothing_of_what_was_written_is_kept(&CLAUDE_CODE);
}

#[test]
fn nothing_that_is_written_in_codex_is_kept_or_said() {
    nothing_of_what_was_written_is_kept(&CODEX);
}

#[test]
fn nothing_that_is_written_in_gemini_cli_is_kept_or_said() {
    nothing_of_what_was_written_is_kept(&GEMINI_CLI);
}

#[test]
fn nothing_that_is_written_in_cursor_is_kept_or_said() {
    nothing_of_what_was_written_is_kept(&CURSOR);
}

#[test]
fn nothing_that_is_written_in_copilot_cli_is_kept_or_said() {
    nothing_of_what_was_written_is_kept(&COPILOT_CLI);
}

/// Whatever makes a payload unusable, the text in it stays out of the line that says so.
#[test]
fn a_refusal_repeats_nothing_that_was_written() {
    for vendor in FIVE {
        let world = World::new();
        let whole =
            json!({ "prompt": MARKER, "session_id": [7], "conversation_id": [MARKER], "sessionId": { MARKER: 1 } });
        let whole = whole.to_string();
        let torn = format!("{{\"prompt\": \"{MARKER}");
        let wrong = format!("{{\"prompt\": {MARKER}}}");
        let named = format!("{{\"session_id\": \"{MARKER}\\u0000\"}}");
        for payload in [whole.as_str(), &torn, &wrong, MARKER, &named] {
            let said = feed(&mut vendor.capture(&world, "activity"), payload.as_bytes());
            let line = said.hook();
            assert!(line.starts_with("no episode was recorded: "), "{}: {line}", vendor.id);
            assert!(!line.contains(MARKER), "{}: {line}", vendor.id);
        }
    }
}

/// A session in a subfolder, in a folder that is gone, or in none that is named: each client has its own way to say where.
#[test]
fn each_client_is_recorded_where_its_payload_its_variable_or_its_process_says() {
    for vendor in FIVE {
        let (world, elsewhere) = (World::new(), World::plain());
        fs::create_dir(world.path("below")).unwrap();
        let below = world.path("below");
        let place = |payload: &mut Value, path: &str| {
            if payload.get("cwd").is_some() {
                payload["cwd"] = json!(path);
            } else {
                payload["workspace_roots"] = json!([path]);
            }
        };
        // By the payload, from a process that is nowhere.
        let mut payload = sample_of(&world, vendor.id, vendor.start, "by-payload");
        place(&mut payload, below.to_str().unwrap());
        let mut hook = world.capture(vendor.id, "start");
        hook.current_dir(elsewhere.repository());
        session(feed(&mut hook, payload.to_string().as_bytes()).hook(), " opened at ");
        // By the variable, where the payload's folder is gone.
        if let Some(variable) = vendor.project_variable {
            let mut payload = sample_of(&world, vendor.id, vendor.start, "by-variable");
            place(&mut payload, world.path("gone").to_str().unwrap());
            let mut hook = world.capture(vendor.id, "start");
            hook.current_dir(elsewhere.repository()).env(variable, &below);
            session(feed(&mut hook, payload.to_string().as_bytes()).hook(), " opened at ");
        }
        // By the process, where nothing else says.
        let payload = without(sample_of(&world, vendor.id, vendor.start, "by-process"), &["cwd", "workspace_roots"]);
        let mut hook = world.capture(vendor.id, "start");
        hook.current_dir(&below);
        session(feed(&mut hook, payload.to_string().as_bytes()).hook(), " opened at ");
        assert_eq!(world.logs("open").len(), if vendor.project_variable.is_some() { 3 } else { 2 }, "{}", vendor.id);
        assert!(!elsewhere.path(".git").exists() && !elsewhere.path(".ai").exists());
    }
}
