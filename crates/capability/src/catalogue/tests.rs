use std::collections::HashSet;

use super::{build, catalogue};
use crate::descriptor::Effect;

#[test]
fn the_catalogue_registers() {
    build().unwrap();
}

#[test]
fn the_catalogue_is_complete_and_in_its_fixed_order() {
    let declared: Vec<_> = catalogue()
        .capabilities()
        .iter()
        .map(|capability| capability.descriptor())
        .map(|one| (one.id, one.tool, one.route.map(|route| (route.method.as_str(), route.path))))
        .collect();
    let expected = [
        ("episodes.list", Some("majordomus_episodes"), Some(("GET", "/api/v1/episodes"))),
        ("peers.list", Some("majordomus_peers"), Some(("GET", "/api/v1/peers"))),
        ("sessions.list", Some("majordomus_session_records"), Some(("GET", "/api/v1/sessions"))),
        ("sessions.get", Some("majordomus_session_record"), Some(("GET", "/api/v1/sessions/{session_id}"))),
        ("episodes.attach", Some("majordomus_session_attach"), Some(("POST", "/api/v1/episodes/attach"))),
        ("episodes.detach", Some("majordomus_session_detach"), Some(("POST", "/api/v1/episodes/detach"))),
        ("peers.announce", Some("majordomus_announce"), Some(("POST", "/api/v1/peers/announce"))),
    ];
    assert_eq!(declared, expected);
}

#[test]
fn queries_come_first_and_the_first_one_needs_no_argument() {
    let registry = catalogue();
    let reads: Vec<_> = registry.capabilities().iter().map(|one| one.descriptor().effect == Effect::Read).collect();
    assert!(reads[0] && reads.is_sorted_by(|before, after| before >= after), "{reads:?}");
    assert!(registry.capabilities()[0].input()["required"].is_null());
}

#[test]
fn every_capability_is_idempotent_destroys_nothing_and_is_a_tool_of_its_own_title() {
    let registry = catalogue();
    let all: Vec<_> = registry.capabilities().iter().map(|one| one.descriptor()).collect();
    assert!(all.iter().all(|one| one.idempotent && one.effect != Effect::Destroy && one.tool.is_some()));
    assert_eq!(all.iter().map(|one| one.title).collect::<HashSet<_>>().len(), all.len());
}

#[test]
fn every_field_is_described() {
    for capability in catalogue().capabilities() {
        for schema in [capability.input(), capability.output()] {
            for (name, field) in schema["properties"].as_object().into_iter().flatten() {
                let id = capability.descriptor().id;
                assert!(field["description"].as_str().is_some_and(|text| text.ends_with('.')), "{id} {name}: {field}");
            }
        }
    }
}
