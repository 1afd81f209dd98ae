//! Declared once means once: what is added to a registry in one place is on every surface, and means the same there.

use std::sync::Arc;

use majordomus_episodes_core::board::EpisodeBoard;
use majordomus_episodes_core::peers::{PeerBoard, Transport};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use super::mcp::{Call, ERROR_META, Revision, Tools};
use super::{openapi, reference};
use crate::catalogue::catalogue;
use crate::context::{Context, Shared};
use crate::descriptor::{Descriptor, Effect, Method, Reach, Route};
use crate::refusal::{Code, Refusal};
use crate::registry::Registry;
use crate::testing::{World, request};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// Whom to greet.
    name: String,
}

#[derive(Serialize, JsonSchema)]
struct Output {
    /// The greeting.
    greeting: String,
}

fn greet(_: &Context, input: Input) -> Result<Output, Refusal> {
    if input.name == "nobody" {
        return Err(Refusal::new(Code::Refused, "nobody is not greeted"));
    }
    Ok(Output { greeting: format!("Good day, {}.", input.name) })
}

/// The one place in which the new capability is declared.
fn with_one_more() -> Registry {
    let mut registry = catalogue();
    let declared = Descriptor {
        id: "guests.greet",
        title: "Greet a guest",
        description: "Greets a guest by name.",
        effect: Effect::Read,
        idempotent: true,
        reach: Reach::Declarations,
        immutable: false,
        tool: Some("majordomus_greet"),
        route: Some(Route { method: Method::Get, path: "/api/v1/guests/{name}" }),
        cli: Some("guests greet"),
        errors: &[Code::Refused],
        tags: &["server"],
    };
    registry.add(declared, greet).unwrap();
    registry
}

fn context(registry: &Arc<Registry>) -> Context {
    let shared = Shared::new(registry.clone(), EpisodeBoard::new(), PeerBoard::new());
    let peer = shared.peers.attach(Transport::Stdio);
    Context::of_peer(Arc::new(shared), peer)
}

/// The result of a tool's call.
fn call_tool(tools: &Tools, context: &Context, name: &str, arguments: &Value) -> Value {
    let raw = to_raw_value(arguments).unwrap();
    let call = Call { name, arguments: Some(&raw), notice: None };
    serde_json::from_str(&tools.call(context, Revision::NEWEST_LEGACY, call).unwrap()).unwrap()
}

#[test]
fn what_is_declared_in_one_place_is_on_every_surface() {
    let registry = Arc::new(with_one_more());
    let (context, tools) = (context(&registry), Tools::new(registry.clone()));

    let list: Value = serde_json::from_str(tools.list(Revision::NEWEST_LEGACY).get()).unwrap();
    let tool = list["tools"].as_array().unwrap().last().unwrap();
    assert_eq!((&tool["name"], &tool["title"]), (&json!("majordomus_greet"), &json!("Greet a guest")));
    let called = call_tool(&tools, &context, "majordomus_greet", &json!({"name": "Ada"}));
    assert_eq!(called["structuredContent"], json!({"greeting": "Good day, Ada."}));

    let reply = request(registry.capability("guests.greet").unwrap(), &context, &json!({"name": "Ada"}));
    assert_eq!((reply.status, reply.body.as_str()), (200, r#"{"greeting":"Good day, Ada."}"#));

    let operation = &openapi::document(&registry)["paths"]["/api/v1/guests/{name}"]["get"];
    assert_eq!((&operation["operationId"], &operation["summary"]), (&json!("guests.greet"), &json!("Greet a guest")));
    assert!(operation["responses"]["422"].is_object());

    let pages = reference::pages(&registry);
    let page = |path: &str| pages.iter().find(|page| page.path == path).unwrap().text.clone();
    assert!(page("capabilities/guests.greet.md").contains("Greets a guest by name."));
    assert!(page("capabilities/guests.greet.md").contains("curl 'http://127.0.0.1:8741/api/v1/guests/NAME'"));
    assert!(page("tools.md").contains("`majordomus_greet`"));
    assert!(page("README.md").contains("`majordomus guests greet`"));

    let all = request(registry.capability("capabilities.list").unwrap(), &context, &json!({}));
    assert!(all.body.contains("guests.greet"), "{}", all.body);
}

#[test]
fn a_call_gives_the_same_as_a_tool_and_as_a_route() {
    let script = [
        ("episodes.attach", json!({"external_id": "a"})),
        ("episodes.attach", json!({"external_id": "a\nb"})),
        ("episodes.attach", json!({"external_id": "a", "external_di": 1})),
        ("episodes.list", json!({"state": "open", "limit": 1})),
        ("episodes.list", json!({"limit": 0})),
        ("episodes.list", json!({"cursor": "x"})),
        ("peers.announce", json!({"intent": "rename", "scope": ["src/a.rs", "b"]})),
        ("peers.announce", json!({"intent": " "})),
        ("peers.list", json!({"limit": 1})),
        ("sessions.list", json!({})),
        ("sessions.get", json!({"session_id": "s-20270101080000-00000000"})),
        ("episodes.detach", json!({"external_id": "b"})),
        ("episodes.detach", json!({})),
        ("episodes.detach", json!({"external_id": "a"})),
    ];
    // Two servers that stand at the same time: one is asked through its tools, the other one through its routes.
    let (by_tool, by_route) = (World::new(), World::new());
    let contexts = [&by_tool, &by_route].map(|world| Context::of_peer(world.shared.clone(), world.peer()));
    let tools = Tools::new(by_tool.shared.registry.clone());
    let mut called: Vec<&str> = Vec::new();
    for (id, arguments) in script {
        let capability = by_route.shared.registry.capability(id).unwrap();
        let tool = capability.descriptor().tool.unwrap();
        called.push(tool);
        let result = call_tool(&tools, &contexts[0], tool, &arguments);
        let reply = request(capability, &contexts[1], &arguments);
        let body: Value = serde_json::from_str(&reply.body).unwrap();
        if result["isError"] == true {
            let code = Code::ALL.into_iter().find(|code| result["_meta"][ERROR_META]["code"] == code.as_str()).unwrap();
            assert_eq!(
                (reply.status, &body["error"]["code"]),
                (code.status(), &json!(code.as_str())),
                "{id} {arguments}"
            );
            let text = result["content"][0]["text"].as_str().unwrap();
            assert!(text.contains(body["error"]["message"].as_str().unwrap()), "{id} {arguments}: {text}\n{body}");
            continue;
        }
        assert_eq!((reply.status, &body), (200, &result["structuredContent"]), "{id} {arguments}");
    }
    let missing: Vec<_> = tools.names().filter(|name| !called.contains(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn a_call_that_may_take_a_disk_is_known_before_it_is_made() {
    let tools = Tools::new(Arc::new(catalogue()));
    for name in ["majordomus_session_attach", "majordomus_session_detach", "majordomus_session_record"] {
        assert!(tools.may_wait(name, "{}"), "{name}");
    }
    for name in ["majordomus_episodes", "majordomus_peers", "majordomus_announce", "unknown"] {
        assert!(!tools.may_wait(name, "{}"), "{name}");
        assert!(tools.may_wait(name, r#"{"episode_handle": "ep_x"}"#), "{name}");
    }
    let refused: Value =
        serde_json::from_str(&tools.refuse(Revision::NEWEST_LEGACY, &Refusal::new(Code::Unavailable, "busy"))).unwrap();
    assert_eq!(refused["_meta"][ERROR_META], json!({"code": "unavailable", "retry": true}));
}
