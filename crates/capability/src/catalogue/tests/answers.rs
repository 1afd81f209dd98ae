//! What the capabilities answer that no tool reaches.

use majordomus_episodes_core::board::Touch;
use serde_json::{Value, json};

use super::catalogue;
use crate::context::Standing;
use crate::testing::World;

/// Checks an answer against the schema that its capability declares.
fn fits(id: &str, answer: &Value) {
    let registry = catalogue();
    let validator = jsonschema::draft202012::new(registry.capability(id).unwrap().output()).unwrap();
    let errors: Vec<_> = validator.iter_errors(answer).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{id}: {errors:?}\n{answer}");
    assert!(!answer.to_string().contains(":null"), "an absent field is left out: {answer}");
}

#[test]
fn the_capabilities_are_listed_in_order_with_their_surfaces() {
    let world = World::new();
    let answer = world.answer("capabilities.list", None, &json!({}));
    fits("capabilities.list", &answer);
    let listed: Vec<&Value> = answer["capabilities"].as_array().unwrap().iter().collect();
    let declared = world.shared.registry.capabilities();
    assert_eq!(listed.len(), declared.len());
    for (listed, declared) in listed.iter().zip(declared) {
        let declared = declared.descriptor();
        let field = |value: Option<&str>| value.map_or(Value::Null, Value::from);
        assert_eq!(listed["id"], declared.id);
        assert_eq!((&listed["tool"], &listed["command"]), (&field(declared.tool), &field(declared.cli)));
        assert_eq!(listed["path"], field(declared.route.map(|route| route.path)));
        assert_eq!(listed["method"], field(declared.route.map(|route| route.method.as_str())));
    }
}

#[test]
fn one_capability_is_described_with_its_schemas() {
    let world = World::new();
    for declared in world.shared.registry.capabilities() {
        let answer = world.answer("capabilities.describe", None, &json!({"id": declared.descriptor().id}));
        fits("capabilities.describe", &answer);
        assert_eq!((&answer["input"], &answer["output"]), (declared.input(), declared.output()));
        let codes: Vec<_> = declared.refusals().map(|code| code.as_str()).collect();
        assert_eq!(answer["capability"]["errors"], json!(codes));
    }
    let (status, message) = world.refused("capabilities.describe", None, &json!({"id": "no.such"}));
    assert_eq!((status, message.as_str()), (404, "there is no capability no.such"));
}

#[test]
fn a_server_tells_how_it_stands() {
    let world = World::new();
    let token = world.attach("a");
    world.shared.board.detach(&world.peer());
    let answer = world.answer("server.status", None, &json!({}));
    fits("server.status", &answer);
    assert_eq!((&answer["standing"], &answer["url"]), (&json!("serving"), &Value::Null));
    assert_eq!((&answer["peers"], &answer["open"], &answer["detached"]), (&json!(2), &json!(1), &json!(0)));
    assert_eq!(world.answer("health.live", None, &json!({}))["status"], "live");
    assert_eq!(world.answer("health.ready", None, &json!({}))["status"], "ready");
    let url = "http://127.0.0.1:8741".to_owned();
    let standing = Standing { instance: "0".repeat(32), url, started_at: "2026-01-01T00:00:00Z".into() };
    world.shared.standing.set(standing).unwrap();
    world.shared.stop();
    let answer = world.answer("server.status", None, &json!({}));
    fits("server.status", &answer);
    assert_eq!((&answer["standing"], &answer["url"]), (&json!("stopping"), &json!("http://127.0.0.1:8741")));
    assert_eq!(world.answer("health.live", None, &json!({}))["status"], "live");
    assert_eq!(world.refused("health.ready", None, &json!({})).0, 503);
    world.answer("episodes.list", Some(&token), &json!({}));
}

#[test]
fn an_operator_ends_an_episode_whoever_holds_it() {
    let world = World::new();
    let holder = world.peer();
    world.answer_as(&holder, "episodes.attach", &json!({"external_id": "a"}));
    let other = json!({"external_id": "a", "provider": "codex"});
    assert_eq!(world.refused("episodes.close", None, &other).0, 404);
    let closed = world.answer("episodes.close", None, &json!({"external_id": "a", "provider": "generic"}));
    fits("episodes.close", &closed);
    let episode = &closed["episode"];
    assert_eq!(
        (&episode["external_id"], &episode["state"], &episode["peer"]),
        (&json!("a"), &Value::Null, &Value::Null)
    );
    assert_eq!(closed["recorded"], false, "there is no repository");
    assert_eq!(world.shared.board.touch(&holder), Touch::Lost { by: None }, "its holder can be told");
    assert_eq!(world.refused("episodes.close", None, &json!({"external_id": "a"})).0, 404);
}

#[test]
fn who_attaches_without_a_connection_is_told_to_keep_the_handle() {
    let world = World::new();
    let attached = world.answer("episodes.attach", None, &json!({"external_id": "a"}));
    fits("episodes.attach", &attached);
    assert!(attached["next"].as_str().unwrap().contains("give episode_handle with every call"), "{attached}");
    let by_connection = world.answer_as(&world.peer(), "episodes.attach", &json!({"external_id": "b"}));
    assert_eq!(by_connection.get("episode_handle"), None);
    assert!(by_connection["next"].as_str().unwrap().contains("within 15 minutes"), "{by_connection}");
}
