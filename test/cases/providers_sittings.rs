//! Whole sittings of the five clients, and each payload of theirs by itself, against what is true of them.

use std::collections::BTreeSet;
use std::path::Path;

use majordomus_e2e::{
    Agent, CLAUDE_CODE, CODEX, COPILOT_CLI, CURSOR, GEMINI_CLI, Record, Vendor, World, answered, feed, now_ms, root,
    sample_of, session,
};
use serde_json::{Value, json};

const FIVE: [&Vendor; 5] = [&CLAUDE_CODE, &CODEX, &GEMINI_CLI, &CURSOR, &COPILOT_CLI];

fn stand_in() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_stand-in"))
}

/// Between which two moments something happened.
type Between = (i64, i64);

/// Runs one hook of the sitting in its agent's process; its line and when it ran.
fn at(agent: &mut Agent, world: &World, vendor: &Vendor, event: &str, name: &str) -> (String, Between) {
    let since = now_ms();
    let line = agent.hook(vendor.id, event, &sample_of(world, vendor.id, name, ID));
    (line, (since, now_ms()))
}

fn within(time: i64, (from, to): Between, what: &str) {
    assert!(from <= time && time <= to, "{what}: {time} is not in {from}..={to}");
}

const ID: &str = "0d4f8c1e-2b6a-4957-9e03-5a7bb1c6d204";

/// Start, prompt, tools, a commit, a file that stays uncommitted, a compaction, the turn's end, the end.
fn a_whole_sitting(vendor: &Vendor) {
    let world = World::new();
    let (before, mut agent) = (world.git(&["rev-parse", "HEAD"]), Agent::start(&world, stand_in()));
    let (line, started) = at(&mut agent, &world, vendor, "start", vendor.start);
    let session = session(&line, " opened at ");
    let activities = vendor.samples.iter().filter(|(name, event)| *event == "activity" && is_of_a_turn(name));
    for (name, _) in activities {
        let (line, _) = at(&mut agent, &world, vendor, "activity", name);
        assert_eq!(line, format!("session {session} marked (activity)"), "{name}");
    }
    let commit = world.commit("lamps.txt", "Sort the lamps");
    world.write("notes.txt", "not committed\n");
    let (line, _) = at(&mut agent, &world, vendor, "compact", vendor.compact);
    assert_eq!(line, format!("session {session} marked (compact)"));
    let (line, last) = at(&mut agent, &world, vendor, "activity", vendor.activity);
    assert_eq!(line, format!("session {session} marked (activity)"));
    let (line, ended) = at(&mut agent, &world, vendor, "end", vendor.end);
    let record = world.record();
    assert_eq!(
        line,
        format!("{}{}", vendor.ended(), record.path.strip_prefix(".ai/repo/sessions/").expect("records have a folder"))
    );

    within(record.time("started_at"), started, "started_at");
    within(record.time("last_activity_at"), if vendor.ends_late { last } else { ended }, "last_activity_at");
    let tree = world.git(&["rev-parse", "HEAD^{tree}"]);
    let expected = json!({
        "schema": "majordomus/session@1",
        "session_id": session,
        "provider": vendor.id,
        "external_id": ID,
        "client": null,
        "started_at": record["started_at"],
        "closed_at": record["last_activity_at"],
        "last_activity_at": record["last_activity_at"],
        "outcome": vendor.outcome(),
        "end_reason": vendor.reason,
        "end_witness": "hook",
        "end_process": "running",
        "end_terminal": null,
        "witnesses": ["hook"],
        "attachments": 1,
        "take_overs": 0,
        "compactions": 1,
        "repository_roots": [before],
        "worktree": "main",
        "branch": "main",
        "start_head": before,
        "head": commit,
        "head_tree": tree,
        "commits": [{
            "sha": commit,
            "tree": tree,
            "patch_id": patch_id(&world, &commit),
            "subject": "Sort the lamps",
        }],
        "changed_files": ["lamps.txt", "notes.txt"],
        "resumes": null,
        "clock_adjusted": false,
        "redactions": 0,
    });
    assert_eq!(record.front, expected);
    body(&record, vendor, &before, &commit);
}

/// Whether an activity is one of an ordinary turn, in one form.
fn is_of_a_turn(name: &str) -> bool {
    ["02-prompt", "03-before-tool", "04-after-tool"].contains(&name)
}

/// What git itself calls the change.
fn patch_id(world: &World, commit: &str) -> Value {
    let script = "git --no-optional-locks diff-tree --patch \"$0\" | git patch-id --stable";
    let said = world.program("sh").args(["-c", script, commit]).output().expect("git can be run");
    let text = String::from_utf8(said.stdout).expect("git prints text");
    json!(text.split(' ').next())
}

/// What a person reads about how it ended, and of what.
fn body(record: &Record, vendor: &Vendor, before: &str, commit: &str) {
    let text = &record.body;
    let (is, is_not) = ("**Closed on purpose:**", "**Interrupted:**");
    let (is, is_not) = if vendor.on_purpose { (is, is_not) } else { (is_not, is) };
    let sentence = text.lines().find(|line| line.contains(is)).unwrap_or_else(|| panic!("no {is} in {text}"));
    assert!(sentence.contains(&format!("(reason `{}`)", vendor.reason)) && sentence.contains("hook"), "{sentence}");
    assert!(!text.contains(is_not), "{text}");
    for part in [
        "# Session on `main`, ",
        &format!("in the conversation `{ID}` (provider `{}`)", vendor.id),
        "attached once",
        "**Context discarded:** 1 time",
        &format!("`{}` at the start, `{}` at the end", &before[..7], &commit[..7]),
        &format!("- `{}` `Sort the lamps`", &commit[..7]),
        "- `lamps.txt`\n",
        "- `notes.txt` (not committed at the end)",
    ] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
}

#[test]
fn a_whole_sitting_of_claude_code_is_told_as_it_was() {
    a_whole_sitting(&CLAUDE_CODE);
}

#[test]
fn a_whole_sitting_of_codex_is_told_as_it_was() {
    a_whole_sitting(&CODEX);
}

#[test]
fn a_whole_sitting_of_gemini_cli_is_told_as_it_was() {
    a_whole_sitting(&GEMINI_CLI);
}

#[test]
fn a_whole_sitting_of_cursor_is_told_as_it_was() {
    a_whole_sitting(&CURSOR);
}

#[test]
fn a_whole_sitting_of_copilot_cli_is_told_as_it_was() {
    a_whole_sitting(&COPILOT_CLI);
}

/// What a sample alone does.
#[derive(Clone, Copy)]
enum Does {
    /// Opens a session where none is.
    Opens,
    /// Shows the client at work.
    Marks,
    /// Is a compaction.
    Compacts,
    /// Ends the session: outcome and reason.
    Ends(&'static str, &'static str),
    /// Leaves it open, because the person went to another conversation.
    Leaves,
}

fn replay(vendor: &Vendor, name: &str, does: Does) {
    let world = World::new();
    let event = vendor.samples.iter().find(|(sample, _)| *sample == name).expect("it is declared").1;
    if let Does::Opens = does {
        let (mut hook, payload) = vendor.hook(&world, event, name, ID);
        let said = feed(&mut hook, &payload);
        let session = session(answered(&said).1, " opened at ");
        // Only who tells its client where it stands after a compaction may print anything.
        assert!(said.out.is_empty() || name == "09-start-compact", "{said:?}");
        vendor.works(&world, ID);
        assert!(vendor.ends(&world, ID).starts_with(&vendor.ended()));
        let record = world.record();
        let told = (record.text("session_id"), record.text("external_id"), record.text("provider"));
        assert_eq!(told, (session.as_str(), ID, vendor.id));
        assert_eq!((&record["attachments"], &record["resumes"]), (&json!(1), &Value::Null));
        return;
    }
    let session = vendor.starts(&world, ID);
    vendor.works(&world, ID);
    let line = vendor.fire(&world, event, name, ID);
    match does {
        Does::Opens => unreachable!("seen above"),
        Does::Marks => assert_eq!(line, format!("session {session} marked (activity)")),
        Does::Compacts => assert_eq!(line, format!("session {session} marked (compact)")),
        Does::Leaves => {
            assert_eq!(line, format!("session {session} left open: its client went on in another conversation"));
        }
        Does::Ends(outcome, reason) => {
            let into = format!("episode closed ({outcome}, reason {reason}) into .ai/repo/sessions/");
            assert!(line.starts_with(&into), "{line}");
            let record = world.record();
            assert_eq!((record.text("session_id"), record.end()), (session.as_str(), (outcome, reason, "hook")));
            return;
        }
    }
    assert!(vendor.ends(&world, ID).starts_with(&vendor.ended()));
    let (record, compactions) = (world.record(), u8::from(matches!(does, Does::Compacts)));
    let counted = (&record["attachments"], &record["compactions"]);
    assert_eq!((record.text("session_id"), counted), (session.as_str(), (&json!(1), &json!(compactions))));
}

macro_rules! samples {
    ($($client:ident $vendor:ident { $($case:ident $name:literal $does:expr;)* })*) => {
        $(mod $client {
            use super::*;
            $(#[test]
            fn $case() {
                replay(&$vendor, $name, $does);
            })*
        })*

        /// The samples that have a case, by their clients.
        const REPLAYED: &[(&str, &[&str])] = &[$(($vendor.id, &[$($name),*])),*];
    };
}

samples! {
    claude_code CLAUDE_CODE {
        a_first_start_opens "01-start" Does::Opens;
        a_prompt_marks "02-prompt" Does::Marks;
        a_tool_that_is_called_marks "03-before-tool" Does::Marks;
        a_tool_that_answered_marks "04-after-tool" Does::Marks;
        a_turn_that_ends_marks "05-turn-end" Does::Marks;
        a_turn_that_fails_marks "06-turn-failed" Does::Marks;
        a_compaction_that_somebody_asked_for_is_one "07-compact" Does::Compacts;
        a_compaction_of_its_own_is_one "08-compact-auto" Does::Compacts;
        a_start_after_a_compaction_opens_where_nothing_is_known "09-start-compact" Does::Opens;
        what_comes_after_a_compaction_marks "10-compacted" Does::Marks;
        leaving_at_the_prompt_closes "11-end" Does::Ends("closed", "prompt_input_exit");
        clearing_closes "12-end-clear" Does::Ends("closed", "clear");
        any_other_end_proves_nothing "13-end-other" Does::Ends("interrupted", "other");
        a_start_after_clearing_opens "14-start-clear" Does::Opens;
        a_resume_of_what_nobody_knows_opens "15-start-resume" Does::Opens;
        a_fork_opens "16-start-fork" Does::Opens;
        going_to_another_conversation_leaves_it_open "17-end-resume" Does::Leaves;
        logging_out_proves_nothing "18-end-logout" Does::Ends("interrupted", "logout");
    }
    codex CODEX {
        a_first_start_opens "01-start" Does::Opens;
        a_prompt_marks "02-prompt" Does::Marks;
        a_tool_that_is_called_marks "03-before-tool" Does::Marks;
        a_tool_that_answered_marks "04-after-tool" Does::Marks;
        a_turn_that_ends_marks "05-turn-end" Does::Marks;
        an_interrupted_turn_marks "06-interrupt" Does::Marks;
        a_compaction_is_one "07-compact" Does::Compacts;
        a_start_after_a_compaction_opens_where_nothing_is_known "09-start-compact" Does::Opens;
        its_end_proves_nothing "11-end" Does::Ends("interrupted", "other");
        its_end_without_a_transcript_proves_nothing "12-end-without-transcript" Does::Ends("interrupted", "other");
        a_resume_of_what_nobody_knows_opens "15-start-resume" Does::Opens;
    }
    gemini_cli GEMINI_CLI {
        a_first_start_opens "01-start" Does::Opens;
        a_prompt_marks "02-prompt" Does::Marks;
        a_tool_that_is_called_marks "03-before-tool" Does::Marks;
        a_tool_that_answered_marks "04-after-tool" Does::Marks;
        a_turn_that_ends_marks "05-turn-end" Does::Marks;
        a_compaction_that_somebody_asked_for_is_one "07-compact" Does::Compacts;
        what_comes_before_every_request_is_no_compaction "08-compact-auto" Does::Marks;
        an_exit_proves_nothing "11-end" Does::Ends("interrupted", "exit");
        clearing_closes "12-end-clear" Does::Ends("closed", "clear");
        a_start_after_clearing_opens "14-start-clear" Does::Opens;
        a_resume_of_what_nobody_knows_opens "15-start-resume" Does::Opens;
    }
    cursor CURSOR {
        a_first_start_opens "01-start" Does::Opens;
        a_prompt_marks "02-prompt" Does::Marks;
        a_turn_that_ends_marks "05-turn-end" Does::Marks;
        a_compaction_is_one "07-compact" Does::Compacts;
        closing_it_proves_nothing "11-end" Does::Ends("interrupted", "user_close");
    }
    copilot_cli COPILOT_CLI {
        a_first_start_opens "01-start" Does::Opens;
        a_prompt_marks "02-prompt" Does::Marks;
        a_tool_that_is_called_marks "03-before-tool" Does::Marks;
        a_tool_that_answered_marks "04-after-tool" Does::Marks;
        a_turn_that_ends_marks "05-turn-end" Does::Marks;
        a_compaction_is_one "07-compact" Does::Compacts;
        an_exit_proves_nothing "11-end" Does::Ends("interrupted", "user_exit");
        a_completed_run_proves_nothing "12-end-complete" Does::Ends("interrupted", "complete");
        a_first_start_in_the_other_casing_opens "21-pascal-start" Does::Opens;
        a_prompt_in_the_other_casing_marks "22-pascal-prompt" Does::Marks;
        a_compaction_in_the_other_casing_is_one "27-pascal-compact" Does::Compacts;
        an_exit_in_the_other_casing_proves_nothing "31-pascal-end" Does::Ends("interrupted", "user_exit");
    }
}

#[test]
fn every_sample_that_there_is_has_its_case() {
    for vendor in FIVE {
        let folder = root().join("test/fixtures/replay").join(vendor.id);
        let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let there: BTreeSet<String> = names.map(|name| name.trim_end_matches(".json").to_owned()).collect();
        let declared: BTreeSet<String> = vendor.samples.iter().map(|(name, _)| (*name).to_owned()).collect();
        let (_, replayed) = REPLAYED.iter().find(|(id, _)| *id == vendor.id).unwrap();
        let replayed: BTreeSet<String> = replayed.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!((&there, &there), (&declared, &replayed), "{}", vendor.id);
    }
}

/// Every reason that is documented of a client and has no sample: none was shown to be given on purpose alone.
#[test]
fn a_reason_that_was_never_shown_to_be_on_purpose_closes_nothing() {
    let documented: [(&Vendor, &[&str]); 5] = [
        (&CLAUDE_CODE, &["bypass_permissions_disabled", "logout", "other"]),
        (&CODEX, &["other", "user_exit", "clear"]),
        (&GEMINI_CLI, &["logout", "prompt_input_exit", "other", "exit"]),
        (&CURSOR, &["completed", "aborted", "error", "window_close", "user_close"]),
        (&COPILOT_CLI, &["error", "abort", "timeout", "complete", "user_exit"]),
    ];
    let world = World::new();
    let mut sittings = 0;
    for (vendor, reasons) in documented {
        for reason in reasons {
            let id = format!("{}-{reason}", vendor.id);
            vendor.starts(&world, &id);
            vendor.works(&world, &id);
            let mut payload = sample_of(&world, vendor.id, vendor.end, &id);
            payload["reason"] = json!(reason);
            let said = feed(&mut vendor.capture(&world, "end"), payload.to_string().as_bytes());
            let into = format!("episode closed (interrupted, reason {reason}) into .ai/repo/sessions/");
            assert!(said.hook().starts_with(&into), "{id}: {said:?}");
            sittings += 1;
        }
    }
    let records = world.records();
    assert_eq!(records.len(), sittings);
    for record in records {
        let id = format!("{}-{}", record.text("provider"), record.text("end_reason"));
        assert_eq!((record.text("external_id"), record.text("outcome")), (id.as_str(), "interrupted"));
    }
}

/// A client that takes context from its start hook is told, after a compaction, where it stands; nobody else is told
/// anything, and at no other time.
#[test]
fn only_a_start_after_a_compaction_of_claude_code_and_codex_answers_its_client_in_one_line() {
    for vendor in FIVE {
        let world = World::new();
        let session = vendor.starts(&world, ID);
        for (name, event) in vendor.samples.iter().filter(|(_, event)| *event != "end") {
            let (mut hook, payload) = vendor.hook(&world, event, name, ID);
            let said = feed(&mut hook, &payload);
            let (out, line) = answered(&said);
            assert!(line.contains(&session), "{} {name}: {line}", vendor.id);
            if *name == "09-start-compact" {
                assert!(out.ends_with('\n') && out.lines().count() == 1, "{} {out:?}", vendor.id);
                let told = out.starts_with("majordomus records this conversation as ") && out.contains(&session);
                assert!(told, "{} {out:?}", vendor.id);
            } else {
                assert_eq!(out, "", "{} {name}", vendor.id);
            }
        }
    }
}
