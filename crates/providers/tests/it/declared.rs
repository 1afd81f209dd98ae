//! The declaration, its schema and the code that is made of it.

use jsonschema::Validator;
use majordomus_providers::{Adapter, ConfigFile, EntryShape, Format, HookOutput, Provider, Shape, TimeUnit, all, find};
use serde::Deserialize;
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

/// Says what the build makes of `declared`. Not through YAML, which takes too long for so many declarations.
fn build(declared: &Value) -> Result<String, String> {
    declaration::code(&Deserialize::deserialize(declared).map_err(|error: serde_json::Error| error.to_string())?)
}

/// Collects a pointer to every object under `evidence`, to every such claim inside it, and to every limit.
fn evidence_pointers(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                let pointer = format!("{at}/{key}");
                if key == "evidence" {
                    found.extend(member.as_object().unwrap().keys().map(|claim| format!("{pointer}/{claim}")));
                    found.push(pointer);
                } else if key == "limits" {
                    found.extend((0..member.as_array().unwrap().len()).map(|index| format!("{pointer}/{index}")));
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

/// The declaration's pointer to a provider.
fn at(declared: &Value, id: &str) -> String {
    let index = declared["providers"].as_array().unwrap().iter().position(|provider| provider["id"] == id);
    format!("/providers/{}", index.unwrap())
}

#[test]
fn the_declaration_is_valid() {
    let (schema, declared) = (schema(), declared());
    let errors: Vec<_> =
        schema.iter_errors(&declared).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert_eq!(errors, [""; 0]);
    assert_eq!(declaration::generate(&project_file("share/providers.yaml")), build(&declared));
    build(&declared).unwrap();
}

#[test]
fn a_claim_without_evidence_is_invalid() {
    let (schema, declared) = (schema(), declared());
    let mut pointers = Vec::new();
    evidence_pointers(&declared, "", &mut pointers);
    assert!(pointers.len() >= 150, "{pointers:?}");
    // A limit itself may be dropped: it is what cannot be had.
    for pointer in pointers.iter().filter(|pointer| !pointer.contains("/limits/")) {
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
fn what_is_not_known_is_written_as_null_and_not_left_out() {
    let (schema, declared) = (schema(), declared());
    let (codex, cursor) = (at(&declared, "codex"), at(&declared, "cursor"));
    for member in [
        "identity/server_variable",
        "identity/shell_variable",
        "mcp/approval",
        "signs/session_variable",
        "adapter/trust",
        "adapter/written/0/since",
    ] {
        let provider = if member.starts_with("signs") { &cursor } else { &codex };
        let mut without = declared.clone();
        *without.pointer_mut(&format!("{provider}/{member}")).unwrap() = Value::Null;
        assert!(schema.is_valid(&without) && build(&without).is_ok(), "{member} may be unknown");
        remove(&mut without, &format!("{provider}/{member}"));
        assert!(!schema.is_valid(&without), "the schema accepts the declaration without {member}");
        assert!(build(&without).is_err(), "the build accepts the declaration without {member}");
    }
}

#[test]
fn a_provider_whose_payloads_nobody_can_read_yet_needs_no_adapter() {
    let (schema, mut declared) = (schema(), declared());
    let claude = at(&declared, "claude-code");
    remove(&mut declared, &format!("{claude}/adapter"));
    assert!(schema.is_valid(&declared));
    build(&declared).unwrap();
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
    // What a client's own file holds is the client's matter.
    let foreign = ["/mcp/members", "/entry/members", "/entry/document"];
    for pointer in pointers.iter().filter(|pointer| !foreign.iter().any(|end| pointer.ends_with(end))) {
        let mut extended = declared.clone();
        extended.pointer_mut(pointer).unwrap()["surprise"] = json!(1);
        assert!(!schema.is_valid(&extended), "the schema accepts a surprise in {pointer:?}");
        assert!(build(&extended).is_err(), "the build accepts a surprise in {pointer:?}");
    }
}

/// Provider, what is changed in it, to what, and what the build says of it.
type Contradiction = (&'static str, &'static str, Value, &'static str);

fn contradictions() -> Vec<Contradiction> {
    let shape = |present: &[&str], absent: &[&str], values: Value| json!([{"present": present, "absent": absent, "values": values}]);
    let file = |path: &str, write: bool| json!({"path": path, "format": "json", "at": ["hooks"], "write": write});
    let written = |name: &str, event: &str| json!([{"name": name, "event": event, "since": null}]);
    let twice = || json!([{"name": "Stop", "event": "activity", "since": null}, {"name": "Stop", "event": "activity", "since": "2"}]);
    vec![
        ("generic", "id", json!("claude-code"), "provider claude-code: declared twice"),
        ("claude-code", "id", json!("Claude Code"), "provider Claude Code"),
        ("claude-code", "title", json!(" "), "title"),
        ("claude-code", "idle_seconds", json!(0), "idle_seconds"),
        ("claude-code", "switch", json!(["clear"]), "clear stands under deliberate and under switch"),
        ("claude-code", "finished", json!(["clear"]), "clear stands under deliberate and under finished"),
        ("claude-code", "finished", json!(["resume"]), "resume stands under finished and under switch"),
        ("claude-code", "offers/episode", json!("connection"), "only a provider"),
        ("claude-code", "offers/episode", json!("none"), "only a provider"),
        ("claude-code", "adapter/fields/session_id", json!([]), "session_id"),
        ("claude-code", "adapter/fields/reason", json!(["user_Prompt"]), "never read"),
        ("claude-code", "adapter/fields/cwd", json!(["cwd", "input.PROMPT.text"]), "never read"),
        ("claude-code", "adapter/events/start", json!([]), "an event that starts"),
        ("claude-code", "adapter/events/end", json!(["SessionStart"]), "SessionStart is named twice"),
        ("claude-code", "adapter/events/end", json!(["session_start"]), "session_start is named twice"),
        ("claude-code", "adapter/events/end", json!(["SessionEnd", "sessionEnd"]), "sessionEnd is named twice"),
        ("claude-code", "adapter/also_read_by", json!(["nobody"]), "also_read_by nobody"),
        ("claude-code", "adapter/also_read_by", json!(["claude-code"]), "also_read_by claude-code"),
        ("claude-code", "adapter/also_read_by", json!(["cursor", "cursor"]), "also_read_by cursor"),
        ("claude-code", "adapter/also_read_by", json!(["generic"]), "no signs"),
        ("claude-code", "adapter/also_read_by", json!(["gemini-cli"]), "no signs"),
        ("claude-code", "adapter/files", json!([file(".a", true), file(".b", true)]), "two files of one scope"),
        ("claude-code", "adapter/files", json!([file("~/.a", true), file("~/.b", true)]), "two files of one scope"),
        ("claude-code", "adapter/files", json!([file(".a", false)]), "come together"),
        ("claude-code", "adapter/written", json!([]), "come together"),
        ("claude-code", "adapter/written", written("SessionStart", "end"), "written SessionStart does not serve End"),
        (
            "claude-code",
            "adapter/written",
            written("Sessionstart", "start"),
            "written Sessionstart does not serve Start",
        ),
        ("claude-code", "adapter/written", written("Tomorrow", "activity"), "written Tomorrow does not serve Activity"),
        ("claude-code", "adapter/written", twice(), "written Stop stands there twice"),
        ("claude-code", "adapter/entry/timeout_seconds", json!(0), "timeout_seconds"),
        ("codex", "mcp/files", json!([file(".a", true), file(".b", true)]), "two files of one scope"),
        ("cursor", "signs/shapes", shape(&[], &[], json!({})), "names no field"),
        ("cursor", "signs/shapes", shape(&[], &["a"], json!({})), "names no field"),
        ("cursor", "signs/shapes", shape(&["a"], &["a"], json!({})), "fits nothing: a is both"),
        ("cursor", "signs/shapes", shape(&[], &["a"], json!({"a": ["x"]})), "fits nothing: a is both"),
        ("cursor", "signs/shapes", shape(&[], &[], json!({"a": []})), "fits nothing: a has no value"),
        ("cursor", "signs/shapes", shape(&["prompt_id"], &[], json!({})), "never read"),
        ("cursor", "signs/shapes", shape(&[], &[], json!({"Prompt": ["x"]})), "never read"),
        ("cursor", "signs/variables", json!(["GROK_HOOK_EVENT"]), "GROK_HOOK_EVENT is a sign of more"),
        ("cursor", "signs/session_variable", json!("CLAUDE_CODE_SESSION_ID"), "is a sign of more"),
    ]
}

#[test]
fn what_contradicts_itself_fails_the_build_with_the_providers_name() {
    let declared = declared();
    for (id, member, value, expected) in contradictions() {
        let mut wrong = declared.clone();
        let pointer = format!("{}/{member}", at(&declared, id));
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        wrong.pointer_mut(parent).unwrap()[key] = value.clone();
        let error = build(&wrong).expect_err(&format!("{id} with {member} {value}"));
        assert!(error.contains(expected) && error.contains("provider "), "{id} with {member} {value}: {error}");
    }
}

#[test]
fn what_the_schema_can_see_of_it_is_invalid_too() {
    let (schema, declared) = (schema(), declared());
    // The rest compares places that a schema looks at one by one.
    let unseen =
        ["declared twice", "stands under", "named twice", "also_read_by", "no signs", "two files", "come together"];
    let unseen = unseen.iter().chain(&["does not serve", "stands there twice", "both", "sign of more"]);
    for (id, member, value, expected) in contradictions() {
        if unseen.clone().any(|part| expected.contains(part)) {
            continue;
        }
        let mut wrong = declared.clone();
        let pointer = format!("{}/{member}", at(&declared, id));
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        wrong.pointer_mut(parent).unwrap()[key] = value.clone();
        assert!(!schema.is_valid(&wrong), "the schema accepts {id} with {member} {value}");
    }
}

#[test]
fn a_source_says_either_where_it_is_or_how_it_was_found_and_of_when() {
    let (schema, declared) = (schema(), declared());
    for (pointer, value) in [
        ("/schema", json!("majordomus/providers@2")),
        ("/sources/cc-hooks/asof", json!("")),
        ("/sources/cc-hooks/how", json!("read it")),
        ("/sources/cc-measured/how", Value::Null),
    ] {
        let mut wrong = declared.clone();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        wrong.pointer_mut(parent).unwrap()[key] = value;
        assert!(!schema.is_valid(&wrong), "{pointer}");
        build(&wrong).expect_err(pointer);
    }
}

/// A list of files as it is declared.
fn files(files: &[ConfigFile]) -> Value {
    let format = |format| match format {
        Format::Json => "json",
        Format::Toml => "toml",
        Format::Yaml => "yaml",
    };
    let files = files.iter().map(|file| {
        assert_eq!(file.is_users(), file.path.starts_with("~/"));
        json!({"path": file.path, "format": format(file.format), "at": file.at, "write": file.write})
    });
    files.collect()
}

fn members(members: &[(&str, &str)]) -> Value {
    members.iter().map(|(key, value)| ((*key).to_owned(), serde_json::from_str::<Value>(value).unwrap())).collect()
}

fn adapter(adapter: &Adapter) -> Value {
    let entry = &adapter.entry;
    let written = adapter
        .written
        .iter()
        .map(|hook| json!({"name": hook.name, "event": hook.event.as_str(), "since": hook.since}));
    json!({
        "fields": {
            "session_id": adapter.session_id, "cwd": adapter.cwd, "source": adapter.source, "reason": adapter.reason,
            "event_name": adapter.event_name, "trigger": adapter.trigger, "subagent": adapter.subagent,
        },
        "events": {
            "start": adapter.start_events, "end": adapter.end_events, "compact": adapter.compact_events,
            "activity": adapter.activity_events,
        },
        "mark_sources": adapter.mark_sources,
        "compact_triggers": adapter.compact_triggers,
        "also_read_by": adapter.also_read_by,
        "project_variables": adapter.project_variables,
        "stdout": match adapter.stdout { HookOutput::None => "none", HookOutput::Context => "context" },
        "files": files(adapter.files),
        "entry": {
            "shape": match entry.shape { EntryShape::Nested => "nested", EntryShape::Flat => "flat" },
            "command_key": entry.command_key,
            "members": members(entry.members),
            "timeout_key": entry.timeout_key,
            "timeout_unit": match entry.timeout_unit { TimeUnit::Seconds => "seconds", TimeUnit::Milliseconds => "milliseconds" },
            "timeout_seconds": entry.timeout_seconds,
            "document": members(entry.document),
        },
        "written": written.collect::<Value>(),
        "trust": adapter.trust,
    })
}

/// A provider as it is declared, without its evidence and its limits.
fn provider(provider: &Provider) -> Value {
    let mut value = json!({
        "id": provider.id,
        "title": provider.title,
        "offers": {"episode": provider.episode.as_str(), "prompts": provider.prompts.as_str()},
        "deliberate": provider.deliberate,
        "finished": provider.finished,
        "switch": provider.switch,
        "late_end": provider.late_end,
        "idle_seconds": provider.idle_seconds,
    });
    if !provider.programs.is_empty() || !provider.folders.is_empty() {
        value["found_by"] = json!({"programs": provider.programs, "folders": provider.folders});
    }
    if let Some(identity) = provider.identity {
        value["identity"] = json!({
            "client_names": identity.client_names, "server_variable": identity.server_variable,
            "shell_variable": identity.shell_variable, "meta": identity.meta,
        });
    }
    if let Some(mcp) = provider.mcp {
        value["mcp"] = json!({
            "files": files(mcp.files), "command_key": mcp.command_key, "members": members(mcp.members),
            "approval": mcp.approval,
        });
    }
    if let Some(signs) = provider.signs {
        let shape = |shape: &Shape| {
            let values =
                shape.values.iter().map(|(field, values)| ((*field).to_owned(), json!(values))).collect::<Value>();
            json!({"present": shape.present, "absent": shape.absent, "values": values})
        };
        value["signs"] = json!({
            "shapes": signs.shapes.iter().map(shape).collect::<Value>(), "variables": signs.variables,
            "session_variable": signs.session_variable,
        });
    }
    if let Some(declared) = provider.adapter {
        value["adapter"] = adapter(declared);
    }
    value
}

/// Every line of evidence that the library has of a provider, by the declaration's pointer to it.
fn evidence(provider: &Provider) -> Vec<(String, &str)> {
    let claims = |part: &str, claims: &'static [(&'static str, &'static str)]| {
        claims.iter().map(|(about, line)| (format!("/{part}/evidence/{about}"), *line)).collect::<Vec<_>>()
    };
    let own = [
        ("episode", provider.episode_evidence),
        ("prompts", provider.prompts_evidence),
        ("ends", provider.ends_evidence),
    ];
    let mut lines: Vec<_> = own.iter().map(|(about, line)| (format!("/evidence/{about}"), *line)).collect();
    lines.extend(provider.identity.into_iter().flat_map(|identity| claims("identity", identity.claims)));
    lines.extend(provider.mcp.into_iter().flat_map(|mcp| claims("mcp", mcp.claims)));
    lines.extend(provider.signs.into_iter().flat_map(|signs| claims("signs", signs.claims)));
    lines.extend(provider.adapter.into_iter().flat_map(|adapter| claims("adapter", adapter.claims)));
    lines.extend(provider.limits.iter().enumerate().map(|(index, line)| (format!("/limits/{index}"), *line)));
    lines
}

#[test]
fn the_library_holds_what_is_declared() {
    fn without_evidence(value: &mut Value) {
        if let Some(members) = value.as_object_mut() {
            members.retain(|key, _| key != "evidence" && key != "limits");
            members.values_mut().for_each(without_evidence);
        }
    }
    let declared = declared();
    let providers = declared["providers"].as_array().unwrap();
    assert_eq!(providers.len(), all().len());
    for written in providers {
        let built = find(written["id"].as_str().unwrap()).unwrap();
        let mut facts = written.clone();
        without_evidence(&mut facts);
        assert_eq!(facts, provider(built));
    }
}

#[test]
fn the_library_holds_the_evidence_of_every_claim_with_its_sources() {
    let declared = declared();
    for written in declared["providers"].as_array().unwrap() {
        let mut pointers = Vec::new();
        evidence_pointers(written, "", &mut pointers);
        pointers.retain(|pointer| !pointer.ends_with("/evidence"));
        pointers.sort();
        let mut built = evidence(find(written["id"].as_str().unwrap()).unwrap());
        built.sort();
        assert_eq!(pointers, built.iter().map(|(pointer, _)| pointer.clone()).collect::<Vec<_>>());
        for (pointer, line) in built {
            let claim = written.pointer(&pointer).unwrap();
            assert!(line.starts_with(claim["says"].as_str().unwrap().trim()), "{line}");
            for key in claim["from"].as_array().unwrap() {
                let source = &declared["sources"][key.as_str().unwrap()];
                let place = source.get("url").or(source.get("how")).and_then(Value::as_str).unwrap();
                assert!(line.contains(place) && line.contains(source["asof"].as_str().unwrap()), "{line}");
            }
        }
    }
}
