//! What `majordomus capture status` says of the five clients: what was seen, and nothing that was only written down.

use std::fs;

use majordomus_e2e::{CLAUDE_CODE, CODEX, COPILOT_CLI, CURSOR, GEMINI_CLI, Vendor, World, feed, sample_of};
use serde_json::{Value, json};

const FIVE: [&Vendor; 5] = [&CLAUDE_CODE, &CODEX, &GEMINI_CLI, &CURSOR, &COPILOT_CLI];
const ID: &str = "8e02b7d5-49ac-4f16-9d73-b1c5a0f8e264";

/// Writes the entry that makes a client call the hook of its start, in the file and the form that its documentation gives.
fn wire(world: &World, vendor: &Vendor) {
    let command = format!("majordomus capture session --provider {} --event start", vendor.id);
    let nested =
        |event: &str| json!({ "hooks": { event: [{ "hooks": [{ "type": "command", "command": command }] }] } });
    let (file, entry) = match vendor.id {
        "claude-code" => (".claude/settings.json", nested("SessionStart")),
        "codex" => (".codex/hooks.json", nested("SessionStart")),
        "gemini-cli" => (".gemini/settings.json", nested("SessionStart")),
        "cursor" => {
            (".cursor/hooks.json", json!({ "version": 1, "hooks": { "sessionStart": [{ "command": command }] } }))
        }
        _ => {
            let entry = json!({ "type": "command", "bash": command, "timeoutSec": 5 });
            (".github/hooks/majordomus.json", json!({ "version": 1, "hooks": { "sessionStart": [entry] } }))
        }
    };
    let path = world.path(file);
    fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("a folder can be made");
    world.write(file, &entry.to_string());
}

/// The row of a client's sessions.
fn row(world: &World, vendor: &Vendor) -> Value {
    let status = world.run(&["capture", "status", "--json"]).json();
    let name = format!("{}:session", vendor.id);
    let mut rows = status.as_array().expect("status is a list").iter();
    rows.find(|row| row["name"] == name).unwrap_or_else(|| panic!("no {name} in {status}")).clone()
}

fn state(world: &World, vendor: &Vendor) -> String {
    row(world, vendor)["state"].as_str().expect("a state is text").to_owned()
}

#[test]
fn each_of_the_five_is_there_and_none_is_verified_before_it_was_seen() {
    let world = World::new();
    for vendor in FIVE {
        let row = row(&world, vendor);
        assert_eq!((row["capability"].as_str(), row["state"].as_str()), (Some("hooks"), Some("unconfigured")), "{row}");
    }
    assert!(world.nothing_recorded());
}

#[test]
fn what_is_only_written_down_is_wired_and_one_real_event_verifies_it_and_no_other() {
    for vendor in FIVE {
        let world = World::new();
        FIVE.iter().for_each(|vendor| wire(&world, vendor));
        assert_eq!(state(&world, vendor), "wired", "{}", vendor.id);
        vendor.starts(&world, ID);
        for other in FIVE {
            let expected = if other.id == vendor.id { "verified" } else { "wired" };
            assert_eq!(state(&world, other), expected, "{} after {}", other.id, vendor.id);
        }
    }
}

#[test]
fn an_event_that_is_attributed_to_another_client_verifies_that_one() {
    let world = World::new();
    FIVE.iter().for_each(|vendor| wire(&world, vendor));
    for (event, name) in [("start", CURSOR.start), ("activity", CURSOR.activity), ("end", CURSOR.end)] {
        let payload = sample_of(&world, "cursor", name, ID).to_string();
        let said = feed(&mut CLAUDE_CODE.capture(&world, event), payload.as_bytes());
        assert!(!said.hook().starts_with("no episode was recorded"), "{said:?}");
    }
    assert_eq!((state(&world, &CURSOR).as_str(), state(&world, &CLAUDE_CODE).as_str()), ("verified", "wired"));
}

#[test]
fn what_was_refused_verifies_nobody() {
    let world = World::new();
    for vendor in FIVE {
        wire(&world, vendor);
        for payload in ["", "{}", "{\"session_id\": \"\"}", "not json", "[1]"] {
            let said = feed(&mut vendor.capture(&world, "start"), payload.as_bytes());
            assert!(said.hook().starts_with("no episode was recorded: "), "{said:?}");
        }
        assert_eq!(state(&world, vendor), "wired", "{}", vendor.id);
    }
}

/// Another tool rewrote the file, or took it away: that the hook fired once proves nothing of the next time.
#[test]
fn an_entry_that_has_gone_since_it_fired_is_not_called_verified_and_the_last_firing_is_told() {
    for vendor in FIVE {
        let world = World::new();
        wire(&world, vendor);
        vendor.starts(&world, ID);
        assert_eq!(state(&world, vendor), "verified", "{}", vendor.id);
        for folder in [".claude", ".codex", ".gemini", ".cursor", ".github"] {
            let _ = fs::remove_dir_all(world.path(folder));
        }
        let row = row(&world, vendor);
        assert_ne!(row["state"], "verified", "{row}");
        assert!(row["reason"].as_str().unwrap().contains("last seen firing at 20"), "{row}");
    }
}

#[test]
fn the_last_end_that_was_seen_is_told_with_its_reason() {
    for vendor in FIVE {
        let world = World::new();
        wire(&world, vendor);
        vendor.starts(&world, ID);
        vendor.works(&world, ID);
        let before = row(&world, vendor).to_string();
        assert!(!before.contains(&format!("reason {}", vendor.reason)), "{before}");
        vendor.ends(&world, ID);
        let after = row(&world, vendor);
        assert_eq!(after["state"], "verified", "{after}");
        assert!(after.to_string().contains(vendor.reason), "{after}");
    }
}
