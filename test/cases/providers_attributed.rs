//! Clients that load another's hook files: an event is its own client's, whatever file its hook was written in.

use majordomus_e2e::{
    CLAUDE_CODE, COPILOT_CLI, CURSOR, Said, Vendor, World, feed, run_at_once, sample, sample_of, session,
};
use serde_json::{Value, json};

const ID: &str = "f2b8d6a0-1c37-4e95-8a4d-9c05e7713b6f";

/// What the environment of a hook of theirs holds.
const OF_CURSOR: &[(&str, &str)] =
    &[("CURSOR_VERSION", "2.9.4"), ("CURSOR_TRANSCRIPT_PATH", ""), ("CURSOR_AGENT", "1")];
const OF_COPILOT: &[(&str, &str)] = &[("COPILOT_CLI", "1"), ("COPILOT_CLI_BINARY_VERSION", "1.0.102")];
const OF_GROK: &[(&str, &str)] = &[("GROK_HOOK_EVENT", "session_start"), ("GROK_SESSION_ID", ID)];

/// Runs the hook that stands in `file`, which is another client's, with the variables of the one that runs it.
fn through(world: &World, file: &str, event: &str, payload: &Value, variables: &[(&str, &str)]) -> Said {
    let mut hook = world.capture(file, event);
    hook.env("CLAUDE_PROJECT_DIR", world.repository());
    hook.envs(variables.iter().copied());
    feed(&mut hook, payload.to_string().as_bytes())
}

/// A whole sitting of `vendor` through the hooks that were written for Claude Code.
fn a_sitting_through_claude_codes_file(vendor: &Vendor, names: [&str; 4], variables: &[(&str, &str)]) {
    let world = World::new();
    let [start, activity, compact, end] = names;
    let run = |event: &str, name: &str| {
        let payload = sample_of(&world, vendor.id, name, ID);
        through(&world, "claude-code", event, &payload, variables).hook().to_owned()
    };
    let opened = session(&run("start", start), " opened at ");
    assert_eq!(run("activity", activity), format!("session {opened} marked (activity)"));
    assert_eq!(run("compact", compact), format!("session {opened} marked (compact)"));
    assert!(run("end", end).starts_with(&vendor.ended()));
    let record = world.record();
    let told = (record.text("session_id"), record.text("provider"), record.text("external_id"));
    assert_eq!(told, (opened.as_str(), vendor.id, ID));
    assert_eq!(record.end(), (vendor.outcome(), vendor.reason, "hook"));
}

#[test]
fn a_sitting_of_cursor_through_claude_codes_file_is_cursors() {
    a_sitting_through_claude_codes_file(&CURSOR, ["01-start", "05-turn-end", "07-compact", "11-end"], OF_CURSOR);
}

#[test]
fn a_sitting_of_cursor_through_claude_codes_file_is_cursors_by_its_payload_alone() {
    a_sitting_through_claude_codes_file(&CURSOR, ["01-start", "05-turn-end", "07-compact", "11-end"], &[]);
}

#[test]
fn a_sitting_of_copilot_through_claude_codes_file_is_copilots() {
    let names = ["21-pascal-start", "22-pascal-prompt", "27-pascal-compact", "31-pascal-end"];
    a_sitting_through_claude_codes_file(&COPILOT_CLI, names, OF_COPILOT);
    let names = ["01-start", "05-turn-end", "07-compact", "11-end"];
    a_sitting_through_claude_codes_file(&COPILOT_CLI, names, OF_COPILOT);
}

#[test]
fn a_sitting_of_copilot_in_its_own_casing_is_copilots_by_its_payload_alone() {
    let names = ["01-start", "05-turn-end", "07-compact", "11-end"];
    a_sitting_through_claude_codes_file(&COPILOT_CLI, names, &[]);
}

/// The two files of a project that is wired for both fire for every event, at the same moment.
fn both_files_at_once(vendor: &Vendor, names: [[&str; 2]; 4], variables: &[(&str, &str)]) {
    for round in 0..3 {
        let world = World::new();
        let fire = |event: &str, [own, claudes]: [&str; 2]| {
            let hook = |file: &str, name: &str| {
                let mut hook = world.capture(file, event);
                hook.env("CLAUDE_PROJECT_DIR", world.repository()).envs(variables.iter().copied());
                (hook, sample_of(&world, vendor.id, name, ID).to_string().into_bytes())
            };
            let mut hooks = vec![hook(vendor.id, own), hook("claude-code", claudes)];
            if round % 2 == 1 {
                hooks.reverse();
            }
            run_at_once(hooks)
        };
        for (event, pair) in ["start", "activity", "compact", "end"].into_iter().zip(names) {
            for said in fire(event, pair) {
                let line = said.hook();
                assert!(!line.contains("claude-code"), "{line}");
                assert!(!line.starts_with("no episode was recorded"), "{line}");
            }
        }
        let record = world.record();
        assert_eq!((record.text("provider"), record.text("external_id")), (vendor.id, ID));
        assert_eq!(record["attachments"], json!(1));
        assert!(world.logs("open").is_empty());
    }
}

#[test]
fn a_sitting_of_cursor_that_two_files_report_is_one() {
    let twice = |name| [name, name];
    let names = [twice("01-start"), twice("05-turn-end"), twice("07-compact"), twice("11-end")];
    both_files_at_once(&CURSOR, names, OF_CURSOR);
}

#[test]
fn a_sitting_of_copilot_that_two_files_report_is_one() {
    let names = [
        ["01-start", "21-pascal-start"],
        ["02-prompt", "22-pascal-prompt"],
        ["07-compact", "27-pascal-compact"],
        ["11-end", "31-pascal-end"],
    ];
    both_files_at_once(&COPILOT_CLI, names, OF_COPILOT);
}

/// Whoever starts Claude Code inside another agent's shell hands it that agent's environment.
#[test]
fn an_environment_that_was_inherited_steals_no_event_of_claude_code() {
    let devin: &[(&str, &str)] = &[("DEVIN_PROJECT_DIR", "/somewhere/else")];
    for inherited in [OF_CURSOR, OF_COPILOT, OF_GROK, devin, &[("COPILOT_AGENT_SESSION_ID", "another")]] {
        let world = World::new();
        let run = |event: &str, name: &str| {
            let mut hook = CLAUDE_CODE.capture(&world, event);
            hook.envs(inherited.iter().copied()).env("CLAUDE_CODE_SESSION_ID", ID).env("CLAUDECODE", "1");
            let payload = sample_of(&world, "claude-code", name, ID).to_string();
            feed(&mut hook, payload.as_bytes()).hook().to_owned()
        };
        let opened = session(&run("start", "01-start"), " opened at ");
        assert_eq!(run("activity", "02-prompt"), format!("session {opened} marked (activity)"), "{inherited:?}");
        assert!(run("end", "11-end").starts_with(&CLAUDE_CODE.ended()), "{inherited:?}");
        let record = world.record();
        assert_eq!((record.text("provider"), record.text("session_id")), ("claude-code", opened.as_str()));
    }
}

/// And the other way about: an agent that was started inside Claude Code's shell has Claude's variable, of another sitting.
#[test]
fn the_variable_of_a_claude_code_around_it_steals_no_event_of_another_client() {
    for (vendor, start, activity, end, own) in [
        (&CURSOR, "01-start", "05-turn-end", "11-end", OF_CURSOR),
        (&COPILOT_CLI, "21-pascal-start", "22-pascal-prompt", "31-pascal-end", OF_COPILOT),
        (&COPILOT_CLI, "01-start", "02-prompt", "11-end", OF_COPILOT),
    ] {
        for file in ["claude-code", vendor.id] {
            let world = World::new();
            let around = [("CLAUDE_CODE_SESSION_ID", "of-the-claude-around-it"), ("CLAUDECODE", "1")];
            let variables: Vec<_> = own.iter().copied().chain(around).collect();
            for (event, name) in [("start", start), ("activity", activity), ("end", end)] {
                let payload = sample_of(&world, vendor.id, name, ID);
                let said = through(&world, file, event, &payload, &variables);
                assert!(!said.hook().starts_with("no episode was recorded"), "{file} {name}: {said:?}");
            }
            let record = world.record();
            assert_eq!((record.text("provider"), record.text("external_id")), (vendor.id, ID), "{file}");
        }
    }
}

/// The providers of the sittings that are open.
fn open_under(world: &World) -> Vec<String> {
    let listed = world.episodes();
    let episodes = listed["episodes"].as_array().expect("a list").iter();
    episodes.map(|episode| episode["provider"].as_str().expect("a provider is text").to_owned()).collect()
}

/// Grok and VS Code load the files of others too: what comes is theirs, through whichever file it comes.
#[test]
fn what_is_another_clients_is_its_own_through_every_file_that_it_reads() {
    let grok = ["01-start", "05-turn-end"].as_slice();
    let code = ["01-start", "02-prompt", "07-compact", "05-turn-end"].as_slice();
    let cases: [(&str, [&str; 2], &[&str]); 2] =
        [("grok", ["claude-code", "cursor"], grok), ("vscode-copilot", ["claude-code", "copilot-cli"], code)];
    for (client, files, names) in cases {
        let world = World::new();
        let mut sessions = Vec::new();
        for file in files {
            for name in names {
                let event = match *name {
                    "01-start" => "start",
                    "07-compact" => "compact",
                    _ => "activity",
                };
                let said = through(&world, file, event, &sample(&world, client, name), &[]);
                sessions.push(session(said.hook(), ""));
            }
        }
        sessions.dedup();
        assert_eq!((sessions.len(), open_under(&world)), (1, vec![client.to_owned()]));
    }
}

#[test]
fn an_end_of_grok_gives_no_reason_and_proves_nothing() {
    let world = World::new();
    for (event, name) in [("start", "01-start"), ("activity", "05-turn-end"), ("end", "11-end")] {
        let said = through(&world, "claude-code", event, &sample_of(&world, "grok", name, ID), OF_GROK);
        assert!(!said.hook().starts_with("no episode"), "{name}: {said:?}");
    }
    let record = world.record();
    assert_eq!((record.text("provider"), record.end()), ("grok", ("interrupted", "unknown", "hook")));
}

/// A client that only its environment shows: its payload may be word for word what Claude Code sends. Of Devin no field is
/// known, so nothing of it is recorded.
#[test]
fn a_client_that_only_its_environment_shows_is_not_claude_code() {
    let world = World::new();
    let project = world.repository().to_str().unwrap().to_owned();
    for (event, name) in
        [("start", "01-start"), ("activity", "05-turn-end"), ("compact", "08-compact-auto"), ("end", "11-end")]
    {
        let payload = sample_of(&world, "claude-code", name, ID);
        let said = through(&world, "claude-code", event, &payload, &[("DEVIN_PROJECT_DIR", &project)]);
        let line = said.hook();
        assert!(line.starts_with("no episode was recorded: "), "{name}: {line}");
        assert!(line.to_lowercase().contains("devin"), "{name}: {line}");
    }
    assert!(world.nothing_recorded());

    let said =
        through(&world, "claude-code", "start", &sample_of(&world, "claude-code", "01-start", ID), &OF_GROK[..1]);
    assert_eq!(said.code, Some(0));
    assert!(!open_under(&world).contains(&"claude-code".to_owned()), "{said:?}");
}

/// Of a client whose id happens to be another's, nobody takes the other's session for its own.
#[test]
fn the_same_id_of_two_clients_is_two_sessions() {
    let world = World::new();
    let vendors = [&CLAUDE_CODE, &majordomus_e2e::CODEX, &majordomus_e2e::GEMINI_CLI, &CURSOR, &COPILOT_CLI];
    for vendor in vendors {
        vendor.starts(&world, ID);
        vendor.works(&world, ID);
    }
    assert_eq!(world.logs("open").len(), vendors.len());
    for vendor in vendors {
        assert!(vendor.ends(&world, ID).starts_with(&vendor.ended()));
    }
    let mut providers: Vec<String> = world.records().iter().map(|record| record.text("provider").to_owned()).collect();
    providers.sort();
    assert_eq!(providers, ["claude-code", "codex", "copilot-cli", "cursor", "gemini-cli"]);
}
