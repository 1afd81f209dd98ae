//! Copilot CLI.

use serde_json::{Map, json};

use super::{Client, Hooks};
use crate::install::{Package, platform};
use crate::place::Place;

pub(super) const COPILOT: Client = Client {
    name: "copilot",
    provider: "copilot-cli",
    package: Package { folder: "copilot", name: "@github/copilot", version: "1.0.102" },
    program: |installed| {
        let package = format!("copilot/node_modules/@github/copilot-{}", platform());
        vec![installed.join(package).join("copilot")]
    },
    environment: &[
        ("COPILOT_OFFLINE", "true"),
        ("COPILOT_PROVIDER_BASE_URL", "http://127.0.0.1:9800/v1"),
        ("COPILOT_MODEL", "stand-in"),
        ("COPILOT_AUTO_UPDATE", "false"),
    ],
    print: &["--allow-all-tools", "-p"],
    terminal: &["--allow-all-tools"],
    ready: "❯",
    quit: "/exit",
    hooks: Hooks {
        id: "sessionId",
        turn_over: "agentStop",
        end: "sessionEnd",
        compacts: |fired| fired.event == "preCompact",
    },
    deliberate: &[],
    prepare,
};

fn prepare(place: &Place) -> anyhow::Result<()> {
    let trusted = [place.work()];
    let settings = json!({"trusted_folders": trusted, "trustedFolders": trusted, "banner": "never"});
    place.put_json(&place.home().join(".copilot/config.json"), &settings)?;
    let events =
        ["sessionStart", "userPromptSubmitted", "preToolUse", "postToolUse", "agentStop", "preCompact", "sessionEnd"];
    let entry = |event: &str| json!([{"type": "command", "bash": place.witness_command(event), "timeoutSec": 5}]);
    let hooks: Map<_, _> = events.iter().map(|event| ((*event).to_owned(), entry(event))).collect();
    place.put_json(&place.work().join(".github/hooks/witness.json"), &json!({"version": 1, "hooks": hooks}))
}
