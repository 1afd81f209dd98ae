//! The declaration, its schema and the code that is made of it.

use jsonschema::Validator;
use majordomus_providers::{all, find};
use serde_json::{Value, json};

use crate::{declaration, project_file};

fn schema() -> Validator {
    let schema: Value = serde_json::from_str(&project_file("share/schemas/providers.schema.json")).unwrap();
    jsonschema::meta::validate(&schema).unwrap_or_else(|error| panic!("the schema itself: {error}"));
    jsonschema::validator_for(&schema).unwrap()
}

fn declared() -> Value {
    serde_saphyr::from_str(&project_file("share/providers.yaml")).unwrap()
}

/// Says what the build makes of `declared`; JSON is YAML.
fn build(declared: &Value) -> Result<String, String> {
    declaration::generate(&declared.to_string())
}

/// Collects a pointer to every object under `evidence`, and to every such claim inside it.
fn evidence_pointers(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                let pointer = format!("{at}/{key}");
                if key == "evidence" {
                    found.extend(member.as_object().unwrap().keys().map(|claim| format!("{pointer}/{claim}")));
                    found.push(pointer);
                } else {
                    evidence_pointers(member, &pointer, found);
                }
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                evidence_pointers(item, &format!("{at}/{index}"), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn remove(value: &mut Value, pointer: &str) {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    value.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(key).unwrap();
}

#[test]
fn the_declaration_is_valid() {
    let (schema, declared) = (schema(), declared());
    let errors: Vec<_> =
        schema.iter_errors(&declared).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert_eq!(errors, [""; 0]);
    build(&declared).unwrap();
}

#[test]
fn a_claim_without_evidence_is_invalid() {
    let (schema, declared) = (schema(), declared());
    let mut pointers = Vec::new();
    evidence_pointers(&declared, "", &mut pointers);
    assert!(pointers.len() >= 15, "{pointers:?}");
    for pointer in &pointers {
        let mut without = declared.clone();
        remove(&mut without, pointer);
        assert!(!schema.is_valid(&without), "the schema accepts the declaration without {pointer}");
        assert!(build(&without).is_err(), "the build accepts the declaration without {pointer}");
    }
    for claim in pointers.iter().filter(|pointer| !pointer.ends_with("/evidence")) {
        for (part, hollow) in [("says", json!("")), ("says", json!(" \n")), ("from", json!([]))] {
            let mut without = declared.clone();
            *without.pointer_mut(&format!("{claim}/{part}")).unwrap() = hollow;
            assert!(!schema.is_valid(&without), "the schema accepts a hollow {claim}/{part}");
            assert!(build(&without).is_err(), "the build accepts a hollow {claim}/{part}");
        }
    }
}

#[test]
fn every_source_is_named_by_evidence_and_every_named_source_is_there() {
    let declared = declared();
    let mut pointers = Vec::new();
    evidence_pointers(&declared, "", &mut pointers);
    let mut named = Vec::new();
    for claim in pointers.iter().filter(|pointer| !pointer.ends_with("/evidence")) {
        let from = declared.pointer(&format!("{claim}/from")).unwrap().as_array().unwrap();
        named.extend(from.iter().map(|key| (claim.as_str(), key.as_str().unwrap())));
    }
    let sources = declared["sources"].as_object().unwrap();
    for (claim, key) in &named {
        assert!(sources.contains_key(*key), "{claim} names {key}, which is no source");
    }
    for key in sources.keys() {
        assert!(named.iter().any(|(_, name)| name == key), "no evidence names {key}");
    }

    for (claim, key) in named {
        let mut renamed = declared.clone();
        let from = renamed.pointer_mut(&format!("{claim}/from")).unwrap().as_array_mut().unwrap();
        from.iter_mut().filter(|name| *name == key).for_each(|name| *name = json!("nowhere"));
        assert!(build(&renamed).unwrap_err().contains("nowhere"), "the build accepts {claim} from nowhere");
    }
}

#[test]
fn no_connection_offers_the_persons_prompt() {
    let (schema, declared) = (schema(), declared());
    for index in 0..declared["providers"].as_array().unwrap().len() {
        let mut claimed = declared.clone();
        claimed["providers"][index]["offers"]["prompts"] = json!("connection");
        assert!(!schema.is_valid(&claimed));
        assert!(build(&claimed).unwrap_err().contains("connection"));
    }
}

#[test]
fn an_unknown_member_is_refused_everywhere() {
    fn objects(value: &Value, at: &str, found: &mut Vec<String>) {
        if let Some(members) = value.as_object() {
            found.push(at.to_owned());
            members.iter().for_each(|(key, member)| objects(member, &format!("{at}/{key}"), found));
        }
        value
            .as_array()
            .into_iter()
            .flatten()
            .enumerate()
            .for_each(|(index, item)| objects(item, &format!("{at}/{index}"), found));
    }
    let (schema, declared) = (schema(), declared());
    let mut pointers = Vec::new();
    objects(&declared, "", &mut pointers);
    for pointer in pointers {
        let mut extended = declared.clone();
        extended.pointer_mut(&pointer).unwrap()["surprise"] = json!(1);
        assert!(!schema.is_valid(&extended), "the schema accepts a surprise in {pointer:?}");
        assert!(build(&extended).is_err(), "the build accepts a surprise in {pointer:?}");
    }
}

#[test]
fn what_contradicts_itself_fails_the_build_with_the_providers_name() {
    let claude = "/providers/1";
    let cases = [
        ("/schema", json!("majordomus/providers@2"), "majordomus/providers@1"),
        ("/sources/cc-hooks/asof", json!(""), "source cc-hooks"),
        ("/sources/cc-hooks/how", json!("read it"), "source cc-hooks"),
        ("/providers/0/id", json!("claude-code"), "provider claude-code: declared twice"),
        ("/providers/1/id", json!("Claude Code"), "provider Claude Code"),
        ("/providers/1/idle_seconds", json!(0), "idle_seconds"),
        ("/providers/1/switch", json!(["clear"]), "clear stands under"),
        ("/providers/1/offers/episode", json!("connection"), "only a provider"),
        ("/providers/0/offers/episode", json!("hooks"), "an adapter must be declared"),
        ("/providers/1/adapter/fields/session_id", json!([]), "session_id"),
        ("/providers/1/adapter/fields/reason", json!(["user_Prompt"]), "never read"),
        ("/providers/1/adapter/events/end", json!(["SessionStart"]), "SessionStart serves two"),
        ("/providers/1/adapter/configuration/0/events", json!(["Sessionstart"]), "Sessionstart"),
    ];
    let declared = declared();
    assert_eq!(declared.pointer(claude).unwrap()["id"], "claude-code");
    for (pointer, value, expected) in cases {
        let mut wrong = declared.clone();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        // Some of these members do not exist yet.
        wrong.pointer_mut(parent).unwrap()[key] = value;
        let error = build(&wrong).expect_err(pointer);
        assert!(error.contains(expected), "{pointer}: {error}");
    }
}

#[test]
fn the_library_holds_what_is_declared() {
    let declared = declared();
    let providers = declared["providers"].as_array().unwrap();
    assert_eq!(providers.len(), all().len());
    for written in providers {
        let provider = find(written["id"].as_str().unwrap()).unwrap();
        assert_eq!(written["title"], provider.title);
        assert_eq!(
            written["offers"],
            json!({"episode": provider.episode.as_str(), "prompts": provider.prompts.as_str()})
        );
        assert_eq!(written["deliberate"], json!(provider.deliberate));
        assert_eq!(written["switch"], json!(provider.switch));
        assert_eq!(written["idle_seconds"], provider.idle_seconds);
        for (claim, built) in [("episode", provider.episode_evidence), ("prompts", provider.prompts_evidence)] {
            let evidence = &written["evidence"][claim];
            assert!(built.starts_with(evidence["says"].as_str().unwrap().trim()), "{built}");
            for key in evidence["from"].as_array().unwrap() {
                let source = &declared["sources"][key.as_str().unwrap()];
                assert!(built.contains(source["asof"].as_str().unwrap()), "{built}");
            }
        }
        let Some(adapter) = provider.adapter else {
            assert_eq!(written.get("adapter"), None);
            continue;
        };
        let files: Vec<_> = adapter
            .configuration
            .iter()
            .map(|file| json!({"path": file.path, "root": file.root, "events": file.events}))
            .collect();
        let mut without_evidence = written["adapter"].clone();
        remove(&mut without_evidence, "/evidence");
        let built = json!({
            "fields": {
                "session_id": adapter.session_id, "cwd": adapter.cwd, "source": adapter.source, "reason": adapter.reason,
                "event_name": adapter.event_name,
            },
            "foreign_fields": adapter.foreign_fields,
            "events": {
                "start": adapter.start_events, "end": adapter.end_events, "compact": adapter.compact_events,
                "activity": adapter.activity_events,
            },
            "mark_sources": adapter.mark_sources,
            "project_variables": adapter.project_variables,
            "configuration": files,
            "stdout": "none",
        });
        assert_eq!(without_evidence, built);
    }
}
