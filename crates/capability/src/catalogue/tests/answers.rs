//! What the capabilities answer that no tool reaches.

use std::sync::{Arc, Mutex};

use majordomus_episodes_core::board::{BoardOptions, EpisodeBoard, Touch};
use majordomus_episodes_core::driver::{Closing, Opening, Report};
use majordomus_episodes_core::{EpisodeDriver, NullDriver};
use majordomus_records::{Checkout, Policy, Store};
use serde_json::{Value, json};

use super::catalogue;
use crate::context::{Context, Standing};
use crate::testing::{World, request};

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

/// A server of the checkout in a folder called `project`.
fn in_a_repository(folder: &std::path::Path) -> World {
    let git = folder.join("project/.git");
    for part in ["objects", "refs"] {
        std::fs::create_dir_all(git.join(part)).unwrap();
    }
    std::fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    let checkout = Checkout::find(&folder.join("project")).unwrap();
    World::with(|shared| shared.records = Some(Store::open(checkout, Policy::default())))
}

#[test]
fn who_attaches_is_told_which_repository_that_is_recorded_into() {
    let folder = tempfile::tempdir().unwrap();
    let world = in_a_repository(folder.path());
    let status = world.answer("server.status", None, &json!({}));
    fits("server.status", &status);
    let checkout = world.shared.records.as_ref().unwrap().checkout();
    assert_eq!((&status["checkout"], &status["worktree"]), (&json!(checkout.id()), &json!("main")));
    let attached = world.answer_as(&world.peer(), "episodes.attach", &json!({"external_id": "a"}));
    fits("episodes.attach", &attached);
    assert_eq!(attached["records_into"], "project", "its name, and not where it is");

    let nowhere = World::new();
    assert_eq!(nowhere.answer("server.status", None, &json!({})).get("checkout"), None);
    let attached = nowhere.answer_as(&nowhere.peer(), "episodes.attach", &json!({"external_id": "a"}));
    assert_eq!(attached.get("records_into"), None);
}

/// Notes by which carrier it is asked to open.
#[derive(Default)]
struct Carriers(Mutex<Vec<Option<String>>>);

impl EpisodeDriver for Carriers {
    fn open(&self, opening: &Opening) -> Report {
        self.0.lock().unwrap().push(opening.carrier.clone());
        NullDriver.open(opening)
    }

    fn close(&self, closing: &Closing) -> Report {
        NullDriver.close(closing)
    }
}

#[test]
fn the_carrier_of_a_connection_is_passed_on_and_a_handle_has_none() {
    let driver = Arc::new(Carriers::default());
    let board = EpisodeBoard::with(BoardOptions { driver: driver.clone(), ..BoardOptions::default() });
    let world = World::with(|shared| shared.board = board);
    let mut context = Context::of_peer(world.shared.clone(), world.peer());
    context.carrier = Some("c".into());
    let attach = world.shared.registry.capability("episodes.attach").unwrap();
    let call = |context: &Context, arguments: Value| request(attach, context, &arguments).status;
    assert_eq!(call(&context, json!({"external_id": "a"})), 200);
    let handle = world.attach("b");
    // A connection that speaks for a handle does not lend it its own id.
    assert_eq!(call(&context, json!({"external_id": "b", "episode_handle": handle})), 200);
    assert_eq!(*driver.0.lock().unwrap(), [Some("c".to_owned()), None]);
}
