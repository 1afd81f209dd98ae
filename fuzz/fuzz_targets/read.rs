//! Any bytes, as any event of any provider, give an event that keeps its promises or one line that says what to do.

#![no_main]

use libfuzzer_sys::fuzz_target;
use majordomus_providers::{EventKind, HookEvent, Unreadable, all, read};

fuzz_target!(|payload: &[u8]| {
    for provider in all() {
        for kind in EventKind::ALL {
            match read(provider, kind, payload) {
                Ok(event) => event_is_bounded(&event, kind),
                Err(error) => error_is_one_line(&error),
            }
        }
    }
});

fn event_is_bounded(event: &HookEvent, asked: EventKind) {
    assert!(event.kind == asked || event.kind == EventKind::Activity, "{event:?}");
    let id = &event.external_id;
    assert!((1..=256).contains(&id.chars().count()), "{event:?}");
    assert!(!id.contains(|c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')), "{event:?}");
    for text in [&event.source, &event.reason, &event.native_event, &event.connection].into_iter().flatten() {
        assert!(text.chars().count() <= 256, "{event:?}");
    }
}

fn error_is_one_line(error: &Unreadable) {
    let line = error.to_string();
    assert!(!line.contains(|c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')), "{line:?}");
    assert!(line.chars().count() < 4000, "{line:?}");
}
