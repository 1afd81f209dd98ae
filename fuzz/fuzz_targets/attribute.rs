//! Any bytes belong to whom they were declared for or to one who runs that hook too, and reading them there cannot fail otherwise than
//! with a reason. The last byte says which variables the hook has.

#![no_main]

use libfuzzer_sys::fuzz_target;
use majordomus_providers::{EventKind, Scan, all, attribute, find, read, value_end};

const VARIABLES: [&str; 7] = [
    "CLAUDE_CODE_SESSION_ID",
    "CURSOR_VERSION",
    "GROK_HOOK_EVENT",
    "COPILOT_PROJECT_DIR",
    "COPILOT_HOOK_DIR",
    "DEVIN_PROJECT_DIR",
    "GEMINI_SESSION_ID",
];

fuzz_target!(|data: &[u8]| {
    let Some((chosen, payload)) = data.split_last() else { return };
    let claude = find("claude-code").expect("declared");
    let id = read(claude, EventKind::Activity, payload).map(|event| event.external_id);
    // With the highest bit the variables name the payload's own session, as its client's would.
    let value = if chosen & 0x80 == 0 { "outer".to_owned() } else { id.clone().unwrap_or_default() };
    let is_set = |name: &str| VARIABLES.iter().position(|known| *known == name).is_some_and(|at| chosen >> at & 1 == 1);
    let variable = |name: &str| is_set(name).then(|| value.clone());

    for declared in all() {
        let owner = attribute(declared, payload, &variable);
        let readers = declared.adapter.map_or(&[][..], |adapter| adapter.also_read_by);
        assert!(owner.id == declared.id || readers.contains(&owner.id), "{} for {}", owner.id, declared.id);
        for kind in EventKind::ALL {
            let _ = read(owner, kind, payload);
        }
        if value_end(payload, &mut Scan::default()).is_some() {
            let more = [payload, br#" {"cursor_version": 1, "conversation_id": 1, "generation_id": 1}"#].concat();
            assert_eq!(attribute(declared, &more, &variable).id, owner.id, "what follows the value changes nothing");
        }
    }
    if is_set("CLAUDE_CODE_SESSION_ID") && id.is_ok_and(|id| id == value) {
        assert_eq!(attribute(claude, payload, &variable).id, "claude-code", "its own id is in its hook's environment");
    }
});
