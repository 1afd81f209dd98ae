//! Codex.

use serde_json::json;

use super::{Client, Hooks, grouped};
use crate::install::{Package, platform, target};
use crate::place::Place;

pub(super) const CODEX: Client = Client {
    name: "codex",
    provider: "codex",
    package: Package { folder: "codex", name: "@openai/codex", version: "0.171.0" },
    program: |installed| {
        let package = format!("codex/node_modules/@openai/codex-{}/vendor", platform());
        vec![installed.join(package).join(target()).join("bin/codex")]
    },
    environment: &[("STAND_IN_KEY", "stand-in")],
    print: &["exec", "--dangerously-bypass-hook-trust"],
    terminal: &["--dangerously-bypass-hook-trust"],
    ready: "›",
    quit: "/quit",
    hooks: Hooks {
        id: "session_id",
        turn_over: "Stop",
        end: "SessionEnd",
        compacts: |fired| fired.event == "PreCompact",
    },
    deliberate: &[],
    prepare,
};

fn prepare(place: &Place) -> anyhow::Result<()> {
    let configuration = format!(
        r#"model = "gpt-5.1-codex"
model_provider = "stand-in"
check_for_update_on_startup = false
approval_policy = "never"

[analytics]
enabled = false

[model_providers.stand-in]
name = "stand-in"
base_url = "http://127.0.0.1:9800/v1"
wire_api = "responses"
env_key = "STAND_IN_KEY"
request_max_retries = 0
stream_max_retries = 0

[projects."{}"]
trust_level = "trusted"
"#,
        place.work().display()
    );
    place.put(&place.home().join(".codex/config.toml"), &configuration)?;
    let events = [
        "SessionStart",
        "UserPromptSubmit",
        "PreToolUse",
        "PostToolUse",
        "Stop",
        "Interrupt",
        "PreCompact",
        "SessionEnd",
    ];
    let hooks = json!({"hooks": grouped(&events, 3, |event| place.witness_command(event))});
    place.put_json(&place.home().join(".codex/hooks.json"), &hooks)
}
