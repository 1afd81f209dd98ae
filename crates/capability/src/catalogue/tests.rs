mod answers;
mod inputs;

use std::collections::HashSet;

use super::{DECLARED, catalogue, fill};
use crate::descriptor::{Descriptor, Effect, Reach, TAGS};
use crate::registry::Registry;

/// The declarations, in order.
fn declared(registry: &Registry) -> Vec<&Descriptor> {
    registry.capabilities().iter().map(|capability| capability.descriptor()).collect()
}

#[test]
fn the_catalogue_registers() {
    fill(Registry::new()).unwrap();
}

#[test]
fn what_is_declared_is_what_is_registered() {
    let registry = catalogue();
    let all: Vec<String> = declared(&registry).into_iter().map(|one| format!("{one:?}")).collect();
    let table: Vec<String> = DECLARED.iter().map(|one| format!("{one:?}")).collect();
    assert_eq!(table, all);
}

#[test]
fn the_catalogue_is_complete_and_in_its_fixed_order() {
    let registry = catalogue();
    let shown: Vec<_> = declared(&registry)
        .into_iter()
        .map(|one| (one.id, one.tool, one.route.map(|route| (route.method.as_str(), route.path))))
        .collect();
    let expected = [
        ("episodes.list", Some("majordomus_episodes"), Some(("GET", "/api/v1/episodes"))),
        ("peers.list", Some("majordomus_peers"), Some(("GET", "/api/v1/peers"))),
        ("sessions.list", Some("majordomus_session_records"), Some(("GET", "/api/v1/sessions"))),
        ("sessions.get", Some("majordomus_session_record"), Some(("GET", "/api/v1/sessions/{session_id}"))),
        ("capabilities.list", None, Some(("GET", "/api/v1/capabilities"))),
        ("capabilities.describe", None, Some(("GET", "/api/v1/capabilities/{id}"))),
        ("server.status", None, Some(("GET", "/api/v1/server"))),
        ("health.live", None, Some(("GET", "/api/v1/live"))),
        ("health.ready", None, Some(("GET", "/api/v1/ready"))),
        ("episodes.attach", Some("majordomus_session_attach"), Some(("POST", "/api/v1/episodes/attach"))),
        ("episodes.detach", Some("majordomus_session_detach"), Some(("POST", "/api/v1/episodes/detach"))),
        ("peers.announce", Some("majordomus_announce"), Some(("POST", "/api/v1/peers/announce"))),
        ("episodes.close", None, Some(("POST", "/api/v1/episodes/close"))),
    ];
    assert_eq!(shown, expected);
}

#[test]
fn queries_come_first_and_the_first_one_needs_no_argument() {
    let registry = catalogue();
    let reads: Vec<_> = declared(&registry).into_iter().map(|one| one.effect == Effect::Read).collect();
    assert!(reads[0] && reads.is_sorted_by(|before, after| before >= after), "{reads:?}");
    assert!(registry.capabilities()[0].input()["required"].is_null());
}

#[test]
fn every_capability_is_idempotent_destroys_nothing_and_has_a_title_of_its_own() {
    let registry = catalogue();
    let all = declared(&registry);
    assert!(all.iter().all(|one| one.idempotent && one.effect != Effect::Destroy));
    assert_eq!(all.iter().map(|one| one.title).collect::<HashSet<_>>().len(), all.len());
}

#[test]
fn what_an_operator_may_do_is_no_tool() {
    assert_eq!(catalogue().capability("episodes.close").unwrap().descriptor().tool, None);
}

#[test]
fn every_capability_belongs_to_something_and_everything_described_has_one() {
    let registry = catalogue();
    let tags: HashSet<_> = declared(&registry).into_iter().flat_map(|one| one.tags.iter().copied()).collect();
    assert!(declared(&registry).iter().all(|one| !one.tags.is_empty()));
    assert_eq!(tags, TAGS.iter().map(|(name, _)| *name).collect());
}

#[test]
fn what_a_server_may_run_where_others_wait_takes_no_disk() {
    let registry = catalogue();
    let at_once: Vec<_> =
        declared(&registry).into_iter().filter(|one| one.reach < Reach::Repository).map(|one| one.id).collect();
    let expected = [
        "episodes.list",
        "peers.list",
        "capabilities.list",
        "capabilities.describe",
        "server.status",
        "health.live",
        "health.ready",
        "peers.announce",
    ];
    assert_eq!(at_once, expected);
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
