//! Claude Code.

use serde_json::json;

use super::{Client, Hooks, grouped};
use crate::install::{Package, platform};
use crate::place::Place;

pub(super) const CLAUDE: Client = Client {
    name: "claude",
    provider: "claude-code",
    package: Package { folder: "claude", name: "@anthropic-ai/claude-code", version: "2.1.332" },
    program: |installed| {
        let package = format!("claude/node_modules/@anthropic-ai/claude-code-{}", platform());
        vec![installed.join(package).join("claude")]
    },
    environment: &[
        ("ANTHROPIC_BASE_URL", "http://127.0.0.1:9800"),
        ("ANTHROPIC_API_KEY", "stand-in"),
        ("ENABLE_TOOL_SEARCH", "false"),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ("DISABLE_AUTOUPDATER", "1"),
        ("DISABLE_TELEMETRY", "1"),
        ("DISABLE_ERROR_REPORTING", "1"),
    ],
    print: &["-p"],
    terminal: &[],
    ready: "❯",
    quit: "/exit",
    hooks: Hooks {
        id: "session_id",
        turn_over: "Stop",
        end: "SessionEnd",
        compacts: |fired| fired.event == "PreCompact",
    },
    deliberate: &["prompt_input_exit", "clear"],
    prepare,
};

fn prepare(place: &Place) -> anyhow::Result<()> {
    let work = place.work().display().to_string();
    let trusted = json!({"hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true});
    let answers = json!({
        "hasCompletedOnboarding": true,
        "theme": "dark",
        "customApiKeyResponses": {"approved": ["stand-in"], "rejected": []},
        "projects": {work: trusted},
    });
    place.put_json(&place.home().join(".claude.json"), &answers)?;
    let events = ["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "PreCompact", "SessionEnd"];
    let settings = json!({
        "enableAllProjectMcpServers": true,
        "permissions": {"allow": ["mcp__majordomus"]},
        "hooks": grouped(&events, 5, |event| place.witness_command(event)),
    });
    place.put_json(&place.home().join(".claude/settings.json"), &settings)
}
