//! The proof that declared once means once: one declaration, and every surface that a user meets has it.

use std::ffi::OsString;
use std::sync::Arc;

use majordomus_capability::project::mcp::{Call, Revision, Tools};
use majordomus_capability::project::{openapi, reference};
use majordomus_capability::{Context, Descriptor, Effect, Method, Reach, Refusal, Registry, Route, Shared, catalogue};
use majordomus_episodes_core::EpisodeBoard;
use majordomus_episodes_core::peers::{PeerBoard, Transport};
use majordomus_mcp_server::http::{Bound, Listen, Port};
use majordomus_mcp_server::{HttpOptions, serve_http};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Asked, parse};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Wish {
    /// Who is greeted.
    name: String,
    /// How often; once when absent.
    times: Option<u32>,
}

#[derive(Serialize, JsonSchema)]
struct Greeting {
    /// What is said.
    said: String,
}

fn greet(_: &Context, wish: Wish) -> Result<Greeting, Refusal> {
    Ok(Greeting { said: vec![format!("hello {}", wish.name); wish.times.unwrap_or(1) as usize].join(", ") })
}

/// The one place: everything below follows from it.
const GREET: Descriptor = Descriptor {
    id: "greetings.say",
    title: "Say hello",
    description: "Greets somebody by name.",
    effect: Effect::Read,
    idempotent: true,
    reach: Reach::Server,
    immutable: false,
    tool: Some("say_hello"),
    route: Some(Route { method: Method::Get, path: "/api/v1/greetings/{name}" }),
    cli: Some("greet"),
    errors: &[],
    tags: &[],
};

fn registry() -> Registry {
    let mut registry = catalogue();
    registry.add(GREET, greet).unwrap();
    registry
}

#[test]
fn what_is_declared_once_is_a_tool_a_route_a_description_a_page_and_a_command() {
    let registry = Arc::new(registry());
    let said = json!({"said": "hello you, hello you"});

    // A tool, listed and called.
    let shared = Arc::new(Shared::new(registry.clone(), EpisodeBoard::new(), PeerBoard::new()));
    let tools = Tools::new(registry.clone());
    assert!(tools.list(Revision::NEWEST_LEGACY).get().contains("\"say_hello\""));
    let arguments = serde_json::value::RawValue::from_string(r#"{"name":"you","times":2}"#.into()).unwrap();
    let call = Call { name: "say_hello", arguments: Some(&arguments), notice: None };
    let context = Context::of_peer(shared.clone(), shared.peers.attach(Transport::Stdio));
    let result: Value = serde_json::from_str(&tools.call(&context, Revision::NEWEST_LEGACY, call).unwrap()).unwrap();
    assert_eq!(result["structuredContent"], said);

    // A route of a real server, and a part of the description that it serves.
    let bound = Bound::new(&Listen { addresses: Listen::LOOPBACK.to_vec(), port: Port::Exactly(0) }).unwrap();
    let server = serve_http(bound, HttpOptions::new(shared, "0".repeat(32))).unwrap();
    let agent = ureq::Agent::new_with_config(ureq::Agent::config_builder().proxy(None).build());
    let get = |path: &str| {
        let mut answer = agent.get(format!("{}{path}", server.url())).call().unwrap();
        answer.body_mut().read_to_string().unwrap()
    };
    assert_eq!(serde_json::from_str::<Value>(&get("/api/v1/greetings/you?times=2")).unwrap(), said);
    let served = get("/openapi.json");
    assert_eq!(served, openapi::json(&registry));
    let served: Value = serde_json::from_str(&served).unwrap();
    assert_eq!(served["paths"]["/api/v1/greetings/{name}"]["get"]["operationId"], "greetings.say");
    assert!(get("/").contains("/api/v1/greetings/{name}"));

    // A page of the reference, and a command with its own.
    let pages = reference::pages(&registry);
    assert!(pages.iter().any(|page| page.path == "capabilities/greetings.say.md"));
    assert!(crate::reference::pages(&registry).iter().any(|page| page.path == "cli/greet.md"));
    let line = ["majordomus", "greet", "you", "--times", "2"].map(OsString::from);
    let Ok(Asked::Registered(asked)) = parse(self::registry(), &line) else { panic!("it is no command") };
    assert_eq!(asked.id, "greetings.say");
}
