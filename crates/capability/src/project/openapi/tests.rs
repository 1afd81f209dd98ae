use std::collections::{BTreeMap, HashSet};

use serde_json::{Map, Value, json};

use super::document;
use crate::catalogue::catalogue;
use crate::descriptor::TAGS;
use crate::handles;
use crate::project::rest;
use crate::refusal::{Code, Refusal};
use crate::registry::Registry;

/// All operations, by method and path.
fn operations(document: &Value) -> BTreeMap<(String, String), &Map<String, Value>> {
    let paths = document["paths"].as_object().unwrap();
    let of_path = |(path, item): (&String, &'_ Value)| {
        let path = path.clone();
        let operations = item.as_object().unwrap().clone();
        operations.into_iter().map(move |(method, _)| (method.to_uppercase(), path.clone())).collect::<Vec<_>>()
    };
    let keys = paths.iter().flat_map(of_path);
    keys.map(|(method, path)| {
        let operation = document["paths"][&path][method.to_lowercase()].as_object().unwrap();
        ((method, path), operation)
    })
    .collect()
}

fn each_value(value: &Value, look: &mut impl FnMut(&Value)) {
    look(value);
    match value {
        Value::Array(values) => values.iter().for_each(|value| each_value(value, look)),
        Value::Object(fields) => fields.values().for_each(|value| each_value(value, look)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn every_route_is_in_the_document_once_and_nothing_else_is() {
    let registry = catalogue();
    let document = document(&registry);
    let operations = operations(&document);
    let routes: BTreeMap<_, _> = registry
        .capabilities()
        .iter()
        .filter_map(|one| one.descriptor().route.map(|route| (route, one.descriptor().id)))
        .map(|(route, id)| ((route.method.as_str().to_owned(), route.path.to_owned()), id))
        .collect();
    let shown: BTreeMap<_, _> =
        operations.iter().map(|(key, operation)| (key.clone(), operation["operationId"].as_str().unwrap())).collect();
    assert_eq!(shown, routes);
    assert_eq!(shown.values().collect::<HashSet<_>>().len(), registry.capabilities().len());
}

#[test]
fn paths_stand_in_the_order_of_the_registry() {
    let registry = catalogue();
    let shown: Vec<_> = document(&registry)["paths"].as_object().unwrap().keys().cloned().collect();
    let routes: Vec<_> = registry.capabilities().iter().filter_map(|one| Some(one.descriptor().route?.path)).collect();
    assert_eq!(shown, routes);
}

#[test]
fn every_schema_is_the_declared_one_unchanged() {
    let registry = catalogue();
    let document = document(&registry);
    let operations = operations(&document);
    for capability in registry.capabilities() {
        let route = capability.descriptor().route.unwrap();
        let operation = operations[&(route.method.as_str().into(), route.path.into())];
        assert_eq!(operation["summary"], capability.descriptor().title);
        assert_eq!(operation["description"], capability.descriptor().description);
        assert_eq!(operation["tags"], json!(capability.descriptor().tags));
        assert_eq!(&operation["responses"]["200"]["content"]["application/json"]["schema"], capability.output());
        if route.method.as_str() == "POST" {
            assert_eq!(&operation["requestBody"]["content"]["application/json"]["schema"], capability.input());
            let required = !capability.input()["required"].is_null();
            assert_eq!(operation["requestBody"]["required"], required, "{}", route.path);
            continue;
        }
        assert!(operation.get("requestBody").is_none());
        let shown: Vec<Value> =
            operation.get("parameters").map_or_else(Vec::new, |all| all.as_array().unwrap().clone());
        let expected: Vec<Value> = capability.input()["properties"]
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(name, _)| *name != handles::ARGUMENT)
            .map(|(name, schema)| {
                let in_path = route.parameters().any(|part| part == name);
                json!({
                    "name": name,
                    "in": if in_path { "path" } else { "query" },
                    "description": schema["description"],
                    "required": in_path,
                    "schema": schema,
                })
            })
            .collect();
        assert_eq!(shown.into_iter().filter(|one| one.get("name").is_some()).collect::<Vec<_>>(), expected);
    }
}

#[test]
fn what_utoipa_cannot_say_is_not_lost() {
    use crate::descriptor::{Descriptor, Effect};
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};

    #[derive(Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Input {
        #[expect(dead_code, reason = "only its schema is looked at")]
        pair: (u8, String),
        #[expect(dead_code, reason = "only its schema is looked at")]
        anything: Value,
    }

    #[derive(Serialize, JsonSchema)]
    struct Output {
        #[schemars(extend("const" = "yes"))]
        word: &'static str,
    }

    let declared = Descriptor {
        effect: Effect::Add,
        tags: &[],
        ..*catalogue().capability("peers.announce").unwrap().descriptor()
    };
    let mut registry = Registry::new();
    registry.add(declared, |_, _: Input| Ok(Output { word: "yes" })).unwrap();
    let document = document(&registry);
    let operation = &document["paths"]["/api/v1/peers/announce"]["post"];
    let input = &operation["requestBody"]["content"]["application/json"]["schema"];
    assert_eq!(input, registry.capabilities()[0].input());
    assert!(input["properties"]["pair"]["prefixItems"].is_array());
    assert_eq!(input["properties"]["anything"], true);
    let output = &operation["responses"]["200"]["content"]["application/json"]["schema"];
    assert_eq!(output["properties"]["word"]["const"], "yes");
    assert_eq!(document["tags"], json!([]));
}

#[test]
fn every_refusal_that_can_come_is_announced_with_the_shared_body() {
    let registry = catalogue();
    let document = document(&registry);
    let operations = operations(&document);
    for capability in registry.capabilities() {
        let route = capability.descriptor().route.unwrap();
        let responses = &operations[&(route.method.as_str().into(), route.path.into())]["responses"];
        let mut expected: HashSet<u16> = capability.refusals().map(Code::status).collect();
        expected.extend([200, 403]);
        if capability.descriptor().immutable {
            expected.insert(304);
        }
        if route.method.as_str() == "POST" {
            expected.extend([413, 415]);
        }
        let shown: HashSet<u16> = responses.as_object().unwrap().keys().map(|status| status.parse().unwrap()).collect();
        assert_eq!(shown, expected, "{}", capability.descriptor().id);
        for (status, response) in responses.as_object().unwrap() {
            assert_eq!(response["headers"]["X-Request-Id"], json!({"$ref": "#/components/headers/RequestId"}));
            if status == "200" || status == "304" {
                assert_eq!(response["headers"].get("ETag").is_some(), capability.descriptor().immutable);
                assert_eq!(response.get("content").is_some(), status == "200");
                continue;
            }
            let shared = json!({"$ref": "#/components/schemas/Refusal"});
            assert_eq!(response["content"]["application/json"]["schema"], shared);
        }
        for code in capability.refusals() {
            let text = responses[code.status().to_string()]["description"].as_str().unwrap();
            assert!(text.contains(&format!("`{}`", code.as_str())), "{text}");
        }
    }
}

#[test]
fn a_refusal_is_what_its_schema_says() {
    let document = document(&catalogue());
    let schema = &document["components"]["schemas"]["Refusal"];
    let validator = jsonschema::draft202012::new(schema).unwrap();
    for code in Code::ALL {
        for refusal in [Refusal::new(code, "no"), Refusal::new(code, "no").hint("yes")] {
            let body = serde_json::from_str(&rest::refused(&refusal).body).unwrap();
            assert!(validator.is_valid(&body), "{body}");
        }
    }
    for wrong in [json!({}), json!({"error": {"code": "no", "message": "no"}}), json!({"error": {"code": "refused"}})] {
        assert!(!validator.is_valid(&wrong), "{wrong}");
    }
    assert_eq!(schema["properties"]["error"]["properties"]["code"]["enum"], json!(Code::ALL.map(Code::as_str)));
}

#[test]
fn a_handle_is_a_header_of_those_that_take_one_and_never_part_of_a_url() {
    let registry = catalogue();
    let document = document(&registry);
    let header = &document["components"]["parameters"]["EpisodeHandle"];
    assert_eq!(header["name"].as_str().unwrap().to_lowercase(), rest::HANDLE_HEADER);
    assert_eq!((&header["in"], &header["required"]), (&json!("header"), &json!(false)));
    assert_eq!(header["schema"]["pattern"], handles::PATTERN);
    for (key, operation) in operations(&document) {
        let id = operation["operationId"].as_str().unwrap();
        let takes = !registry.capability(id).unwrap().input()["properties"][handles::ARGUMENT].is_null();
        let parameters = operation.get("parameters").unwrap_or(&Value::Null).to_string();
        assert_eq!(parameters.contains("#/components/parameters/EpisodeHandle"), takes, "{key:?}");
        assert!(!parameters.contains("\"episode_handle\""), "{key:?}");
    }
}

#[test]
fn the_document_is_whole_and_the_same_every_time() {
    let registry = catalogue();
    let whole = document(&registry);
    assert_eq!((&whole["openapi"], &whole["info"]["title"]), (&json!("3.1.0"), &json!("majordomus")));
    assert_eq!(
        (&whole["info"]["version"], &whole["servers"]),
        (&json!(env!("CARGO_PKG_VERSION")), &json!([{"url": "/"}]))
    );
    let tags: Vec<_> = TAGS.iter().map(|(name, text)| json!({"name": name, "description": text})).collect();
    assert_eq!(whole["tags"], json!(tags));
    each_value(&whole, &mut |value| {
        assert!(!value.is_null());
        if let Some(place) = value.get("$ref").and_then(Value::as_str) {
            assert!(whole.pointer(place.strip_prefix('#').unwrap()).is_some(), "{place} leads nowhere");
        }
    });
    let text = super::json(&registry);
    assert!(text.ends_with("}\n") && text.starts_with("{\n  \"openapi\": \"3.1.0\""));
    assert_eq!(text, super::json(&catalogue()));
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), whole);
}
