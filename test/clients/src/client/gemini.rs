//! Gemini CLI.

use serde_json::json;

use super::{Client, Hooks, grouped};
use crate::install::{Package, node};
use crate::place::Place;

pub(super) const GEMINI: Client = Client {
    name: "gemini",
    provider: "gemini-cli",
    package: Package { folder: "gemini", name: "@google/gemini-cli", version: "0.61.0" },
    program: |installed| {
        vec![node(installed), installed.join("gemini/node_modules/@google/gemini-cli/bundle/gemini.js")]
    },
    environment: &[
        ("GEMINI_API_KEY", "stand-in"),
        ("GOOGLE_GEMINI_BASE_URL", "http://127.0.0.1:9800"),
        // It would go on as a child of itself, and the signals would meet the parent.
        ("GEMINI_CLI_NO_RELAUNCH", "true"),
        ("GEMINI_TELEMETRY_ENABLED", "false"),
    ],
    print: &["--yolo", "-p"],
    terminal: &["--yolo"],
    ready: "Type your message",
    quit: "/quit",
    hooks: Hooks {
        id: "session_id",
        turn_over: "AfterAgent",
        end: "SessionEnd",
        // The automatic one fires before every request, with nothing compressed.
        compacts: |fired| fired.event == "PreCompress" && fired.word.as_deref() == Some("manual"),
    },
    deliberate: &["clear"],
    prepare,
};

fn prepare(place: &Place) -> anyhow::Result<()> {
    let events = ["SessionStart", "BeforeAgent", "BeforeTool", "AfterTool", "AfterAgent", "PreCompress", "SessionEnd"];
    let settings = json!({
        "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": false}},
        "general": {"disableAutoUpdate": true, "enableAutoUpdate": false},
        "privacy": {"usageStatisticsEnabled": false},
        "telemetry": {"enabled": false},
        "ui": {"theme": "GitHub"},
        "hooksConfig": {"enabled": true},
        "tools": {"enableHooks": true},
        "hooks": grouped(&events, 5000, |event| place.witness_command(event)),
    });
    place.put_json(&place.home().join(".gemini/settings.json"), &settings)
}
