use std::sync::Arc;

use majordomus_episodes_core::board::EpisodeBoard;
use majordomus_episodes_core::peers::{PeerBoard, Transport};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Parts, Reply, call, matches_tag, refused, refused_as};
use crate::context::{Context, Shared};
use crate::descriptor::{Descriptor, Effect, Method, Reach, Route};
use crate::refusal::{Code, Refusal};
use crate::registry::Registry;
use crate::testing::World;

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Everything {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    loud: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    words: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sizes: Option<Vec<i64>>,
}

fn echo(_: &Context, input: Everything) -> Result<Everything, Refusal> {
    Ok(input)
}

const QUERY: Descriptor = Descriptor {
    id: "echo.get",
    title: "Say it again",
    description: "Says again what it was told.",
    effect: Effect::Read,
    idempotent: true,
    reach: Reach::Declarations,
    immutable: true,
    tool: None,
    route: Some(Route { method: Method::Get, path: "/api/v1/echo/{name}" }),
    cli: None,
    errors: &[],
    tags: &[],
};

const CHANGE: Descriptor = Descriptor {
    id: "echo.post",
    effect: Effect::Add,
    immutable: false,
    route: Some(Route { method: Method::Post, path: "/api/v1/echo" }),
    ..QUERY
};

/// Sends a request to one of the two.
fn send(id: &str, parts: Parts<'_>) -> Reply {
    let mut registry = Registry::new();
    registry.add(QUERY, echo).unwrap().add(CHANGE, echo).unwrap();
    let shared = Shared::new(Arc::new(registry), EpisodeBoard::new(), PeerBoard::new());
    let peer = shared.peers.attach(Transport::Http);
    let registry = shared.registry.clone();
    call(registry.capability(id).unwrap(), &Context::of_peer(Arc::new(shared), peer), parts)
}

fn get(query: &str) -> Reply {
    send("echo.get", Parts { path: &[("name", "x")], query: Some(query), body: b"" })
}

fn post(body: &[u8]) -> Reply {
    send("echo.post", Parts { body, ..Parts::default() })
}

fn answer(reply: &Reply) -> Value {
    assert_eq!(reply.status, 200, "{}", reply.body);
    serde_json::from_str(&reply.body).unwrap()
}

/// The message of a refusal, which must be of the kind for wrong arguments.
fn message(reply: &Reply) -> String {
    let body: Value = serde_json::from_str(&reply.body).unwrap();
    assert_eq!((reply.status, &body["error"]["code"]), (400, &json!("invalid_input")), "{}", reply.body);
    body["error"]["message"].as_str().unwrap().to_owned()
}

#[test]
fn a_text_is_read_as_the_type_that_its_field_has() {
    let whole = answer(&get("count=-7&ratio=2.5&loud=true&words=1&words=true&sizes=1&sizes=-2"));
    let expected = json!({
        "name": "x", "count": -7, "ratio": 2.5, "loud": true, "words": ["1", "true"], "sizes": [1, -2],
    });
    assert_eq!(whole, expected);
    assert_eq!(answer(&get("words=a"))["words"], json!(["a"]), "one value is a list of one");
    assert_eq!(answer(&get("words=a%26b+c%C3%BC"))["words"], json!(["a&b cü"]));
    assert_eq!(answer(&get("")), json!({"name": "x"}));
    for (query, wanted) in [
        ("count=many", "count is not a whole number"),
        ("count=1.5", "count is not a whole number"),
        ("count=99999999999999999999", "count is not a whole number"),
        ("count=", "count is not a whole number"),
        ("ratio=inf", "ratio is not a number"),
        ("ratio=NaN", "ratio is not a number"),
        ("ratio=1,5", "ratio is not a number"),
        ("loud=yes", "loud is not true or false"),
        ("loud=1", "loud is not true or false"),
        ("sizes=1&sizes=x", "sizes is not a whole number"),
    ] {
        assert_eq!(message(&get(query)), wanted, "{query}");
    }
}

#[test]
fn an_argument_that_is_not_declared_is_refused_by_name() {
    assert!(message(&get("cuont=1")).starts_with("unknown field `cuont`"));
    assert!(message(&get("=1")).starts_with("unknown field ``"));
    assert!(message(&post(br#"{"name":"x","cuont":1}"#)).starts_with("unknown field `cuont`"));
    let long = message(&get(&format!("{}=1", "x".repeat(1 << 16))));
    assert!(long.len() < 500, "{long}");
}

#[test]
fn a_single_value_is_given_once() {
    assert_eq!(message(&get("count=1&count=1")), "count is there twice");
    assert_eq!(message(&get("name=y")), "name is there twice", "the path has it already");
    assert!(message(&post(br#"{"name":"x","name":"y"}"#)).starts_with("duplicate field `name`"));
}

#[test]
fn the_path_gives_its_parameters() {
    let parts = Parts { path: &[("name", "a/b ü")], ..Parts::default() };
    assert_eq!(answer(&send("echo.get", parts)), json!({"name": "a/b ü"}));
    assert!(message(&send("echo.get", Parts::default())).starts_with("missing field `name`"));
}

#[test]
fn a_post_takes_one_object_from_its_body() {
    assert_eq!(answer(&post(br#" {"name":"x","sizes":[1]} "#)), json!({"name": "x", "sizes": [1]}));
    assert!(message(&post(b"")).starts_with("missing field `name`"), "nothing is the shortest empty object");
    assert!(message(&post(b" \r\n")).starts_with("missing field `name`"));
    assert_eq!(message(&post(b"{\"name\":\"\xff\"}")), "the body is not UTF-8");
    for body in ["[\"x\"]", "null", "\"x\"", "1"] {
        assert_eq!(message(&post(body.as_bytes())), "the arguments are not a JSON object", "{body}");
    }
    for body in ["{", "{\"name\":\"x\"} {}", "{\"name\":\"x\",}", "{name:1}"] {
        message(&post(body.as_bytes()));
    }
    let both = Parts { query: Some("name=x"), body: br#"{"name":"x"}"#, ..Parts::default() };
    assert!(message(&send("echo.post", both)).contains("not a query"));
    let empty = Parts { query: Some(""), ..both };
    answer(&send("echo.post", empty));
}

#[test]
fn a_query_has_no_body() {
    let parts = Parts { path: &[("name", "x")], query: None, body: br#"{"name":"y"}"# };
    assert_eq!(answer(&send("echo.get", parts)), json!({"name": "x"}));
}

#[test]
fn a_handle_never_comes_in_a_url() {
    let world = World::new();
    let token = world.attach("a");
    let (status, message) = world.refused("episodes.list", None, &json!({ "episode_handle": token }));
    assert_eq!((status, message.as_str()), (400, "episode_handle does not belong into an address"));
    assert_eq!(world.answer("episodes.list", Some(&token), &json!({}))["mine"]["external_id"], "a");
}

#[test]
fn who_has_neither_connection_nor_handle_cannot_announce() {
    let world = World::new();
    let reply = world.call("peers.announce", None, &json!({"intent": "x"}));
    assert!(reply.status == 403 && reply.body.contains("attach first, and give the episode_handle"), "{}", reply.body);
    assert!(world.shared.peers.list().is_empty());
    let token = world.attach("a");
    let said = world.answer("peers.announce", Some(&token), &json!({"intent": "x"}));
    assert_eq!((&said["peer"]["transport"], &said["others"]), (&json!("handle"), &json!(0)));
}

#[test]
fn every_code_has_its_status_and_a_body_that_says_why() {
    let statuses: Vec<u16> = Code::ALL.into_iter().map(|code| refused(&Refusal::new(code, "no")).status).collect();
    assert_eq!(statuses, [400, 404, 422, 403, 409, 503, 500]);
    for code in Code::ALL {
        let reply = refused(&Refusal::new(code, "\"no\"\n"));
        let body: Value = serde_json::from_str(&reply.body).unwrap();
        assert_eq!(body, json!({"error": {"code": code.as_str(), "message": "\"no\"\\u{a}"}}));
        assert_eq!(reply.tag, None);
    }
    let hinted = refused_as(413, &Refusal::new(Code::InvalidInput, "too long").hint("send less"));
    let expected = r#"{"error":{"code":"invalid_input","message":"too long","hint":"send less"}}"#;
    assert_eq!((hinted.status, hinted.body.as_str()), (413, expected));
}

#[test]
fn only_what_hardly_ever_changes_has_a_tag() {
    let (first, same, other) = (get("count=1"), get("count=1"), get("count=2"));
    let tag = first.tag.unwrap();
    assert!(tag.len() == 34 && tag.starts_with('"') && tag.ends_with('"'), "{tag}");
    assert_eq!(same.tag.as_ref(), Some(&tag));
    assert_ne!(other.tag, Some(tag));
    assert_eq!((post(br#"{"name":"x"}"#).tag, get("count=x").tag), (None, None));
}

#[test]
fn a_tag_is_matched_wherever_it_stands_in_the_header() {
    for header in ["\"a\"", " \"a\" ", "W/\"a\"", "\"b\", \"a\"", "\"b\",W/\"a\",\"c\"", "*", " * "] {
        assert!(matches_tag(header, "\"a\""), "{header}");
    }
    for header in ["", "a", "\"b\"", "\"aa\"", "\"b\", \"c\"", "\"a", "\"*\""] {
        assert!(!matches_tag(header, "\"a\""), "{header}");
    }
}
