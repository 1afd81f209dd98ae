//! Payloads that were cut off at any byte, as a client leaves them that is killed or runs out of time.

use std::fs;

use majordomus_e2e::{CLAUDE_CODE, CODEX, COPILOT_CLI, CURSOR, GEMINI_CLI, Vendor, World, feed, sample_of};

const ID: &str = "c95a7d10-6e3b-4f21-8b94-03d7f6a1e582";

/// Cuts the payload of an event after each of its bytes, beside a session that is open under its id.
fn cut_anywhere(vendor: &Vendor, event: &str) {
    let world = World::new();
    let name = match event {
        "start" => vendor.start,
        "activity" => vendor.activity,
        "compact" => vendor.compact,
        _ => vendor.end,
    };
    if event != "start" {
        vendor.starts(&world, ID);
    }
    let logs = || -> Vec<Vec<u8>> {
        world.logs("open").iter().map(|log| fs::read(log).expect("an open log can be read")).collect()
    };
    let (before, payload) = (logs(), sample_of(&world, vendor.id, name, ID).to_string());
    for length in 0..payload.len() {
        let cut = &payload.as_bytes()[..length];
        let said = feed(&mut vendor.capture(&world, event), cut);
        let line = said.hook();
        assert!(line.starts_with("no episode was recorded: the payload "), "after {length} bytes: {line}");
    }
    assert_eq!(logs(), before);
    assert!(world.record_files().is_empty() && world.logs("ended").is_empty());
    // It is the cut that was refused: whole, and with whatever comes after it, the payload is taken.
    let whole = format!("{payload}{}", &payload[..payload.len() / 2]);
    let said = feed(&mut vendor.capture(&world, event), whole.as_bytes());
    let line = said.hook();
    let taken = line.starts_with("session s-") || line.starts_with(&vendor.ended());
    assert!(taken, "{line}");
    assert_ne!(logs(), before);
}

macro_rules! cut {
    ($($client:ident $vendor:ident;)*) => {
        $(mod $client {
            use super::*;
            #[test]
            fn a_start_that_is_cut_anywhere_records_nothing() {
                cut_anywhere(&$vendor, "start");
            }
            #[test]
            fn an_activity_that_is_cut_anywhere_records_nothing() {
                cut_anywhere(&$vendor, "activity");
            }
            #[test]
            fn a_compaction_that_is_cut_anywhere_records_nothing() {
                cut_anywhere(&$vendor, "compact");
            }
            #[test]
            fn an_end_that_is_cut_anywhere_ends_nothing() {
                cut_anywhere(&$vendor, "end");
            }
        })*
    };
}

cut! {
    claude_code CLAUDE_CODE;
    codex CODEX;
    gemini_cli GEMINI_CLI;
    cursor CURSOR;
    copilot_cli COPILOT_CLI;
}
