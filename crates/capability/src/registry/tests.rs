use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{DESCRIPTION_MAX, RegistrationError as Bad, Registry, TITLE_MAX};
use crate::context::{Context, Shared};
use crate::descriptor::{Descriptor, Effect, Method, Reach, Route};
use crate::refusal::{Code, Refusal};
use crate::resource::Resource;
use crate::testing::resource;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

#[derive(Serialize, JsonSchema)]
struct Word {
    word: &'static str,
}

const GOOD: Descriptor = Descriptor {
    id: "words.say",
    title: "Say a word",
    description: "Says a word.",
    effect: Effect::Add,
    idempotent: false,
    reach: Reach::Declarations,
    immutable: false,
    tool: Some("say"),
    route: Some(Route { method: Method::Post, path: "/api/v1/words" }),
    cli: Some("words say"),
    errors: &[Code::Refused],
    tags: &[],
};

const OTHER: Descriptor = Descriptor { id: "words.ask", tool: None, route: None, cli: None, ..GOOD };

/// The good one as a query.
fn query() -> Descriptor {
    let route = Some(Route { method: Method::Get, path: "/api/v1/words" });
    Descriptor { effect: Effect::Read, idempotent: true, route, ..GOOD }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ByName {
    #[expect(dead_code, reason = "only its schema is looked at")]
    name: String,
    #[expect(dead_code, reason = "only its schema is looked at")]
    other: String,
    #[expect(dead_code, reason = "only its schema is looked at")]
    count: Option<u32>,
}

fn by_name(_: &Context, _: ByName) -> Result<Word, Refusal> {
    Ok(Word { word: "hello" })
}

fn say(_: &Context, _: Nothing) -> Result<Word, Refusal> {
    Ok(Word { word: "hello" })
}

fn never<I, O>(_: &Context, _: I) -> Result<O, Refusal> {
    Err(Refusal::new(Code::Internal, "not called"))
}

/// Why `descriptor` is refused next to the good one, which must itself be taken.
fn refused(descriptor: Descriptor) -> Bad {
    let mut registry = Registry::new();
    registry.add(GOOD, say).unwrap();
    let error = registry.add(descriptor, say).unwrap_err();
    assert_eq!(registry.capabilities().len(), 1, "nothing is added");
    error
}

fn context() -> Context {
    use majordomus_episodes_core::board::EpisodeBoard;
    use majordomus_episodes_core::peers::{PeerBoard, Transport};

    let shared = Shared::new(Arc::default(), EpisodeBoard::new(), PeerBoard::new());
    let peer = shared.peers.attach(Transport::Stdio);
    Context::of_peer(Arc::new(shared), peer)
}

#[test]
fn good_declarations_keep_their_order() {
    let mut registry = Registry::new();
    registry.add(GOOD, say).unwrap().add(OTHER, say).unwrap();
    let ids: Vec<_> = registry.capabilities().iter().map(|capability| capability.descriptor().id).collect();
    assert_eq!(ids, ["words.say", "words.ask"]);
    assert!(registry.capability("words.ask").is_some() && registry.capability("words.tell").is_none());
}

#[test]
fn an_id_tool_route_or_command_belongs_to_one_capability() {
    assert_eq!(refused(GOOD), Bad::DuplicateId { id: "words.say" });
    let tool = Descriptor { tool: GOOD.tool, ..OTHER };
    assert_eq!(refused(tool), Bad::DuplicateTool { id: "words.ask", tool: "say", other: "words.say" });
    let route = Descriptor { route: GOOD.route, ..OTHER };
    assert_eq!(
        refused(route),
        Bad::DuplicateRoute { id: "words.ask", method: "POST", path: "/api/v1/words", other: "words.say" }
    );
    let cli = Descriptor { cli: GOOD.cli, ..OTHER };
    assert_eq!(refused(cli), Bad::DuplicateCli { id: "words.ask", cli: "words say", other: "words.say" });
}

#[test]
fn no_path_fits_two_routes() {
    let with = |path: &'static str| Descriptor { route: Some(Route { method: Method::Get, path }), ..query() };
    let other = |path| Descriptor { id: "words.ask", tool: None, cli: None, ..with(path) };
    let clash = |first, second| {
        let mut registry = Registry::new();
        registry.add(with(first), by_name).unwrap();
        registry.add(other(second), by_name).map(drop)
    };
    let ambiguous = |path| Err(Bad::AmbiguousRoute { id: "words.ask", path, other: "words.say" });
    assert_eq!(clash("/api/v1/words/{name}", "/api/v1/words/all"), ambiguous("/api/v1/words/all"));
    assert_eq!(clash("/api/v1/words/all", "/api/v1/words/{name}"), ambiguous("/api/v1/words/{name}"));
    assert_eq!(clash("/api/v1/{name}/all", "/api/v1/words/{name}"), ambiguous("/api/v1/words/{name}"));
    let path = "/api/v1/words/{other}";
    let duplicate = Bad::DuplicateRoute { id: "words.ask", method: "GET", path, other: "words.say" };
    assert_eq!(clash("/api/v1/words/{name}", path), Err(duplicate));
    for apart in ["/api/v1/words", "/api/v1/words/{name}/all", "/api/v1/other/{name}"] {
        assert_eq!(clash("/api/v1/words/{name}", apart), Ok(()), "{apart}");
    }
    // A router finds the path before it looks at the method.
    let mut registry = Registry::new();
    registry.add(with("/api/v1/{name}"), by_name).unwrap();
    let post = Descriptor { id: "words.ask", tool: None, cli: None, ..GOOD };
    let error = registry.add(post, say).unwrap_err();
    assert_eq!(error, Bad::AmbiguousRoute { id: "words.ask", path: "/api/v1/words", other: "words.say" });
}

#[test]
fn a_parameter_of_a_path_is_a_required_argument_of_a_query() {
    let with = |path| Descriptor { route: Some(Route { method: Method::Get, path }), ..query() };
    let add = |descriptor| Registry::new().add(descriptor, by_name).map(drop);
    assert_eq!(add(with("/api/v1/words/{name}")), Ok(()));
    assert_eq!(add(with("/api/v1/words/{nmae}")), Err(Bad::PathParameter { id: "words.say", name: "nmae" }));
    let optional = add(with("/api/v1/words/{count}"));
    assert_eq!(optional, Err(Bad::PathParameter { id: "words.say", name: "count" }));
    let post = Descriptor { route: Some(Route { method: Method::Post, path: "/api/v1/words/{name}" }), ..GOOD };
    assert_eq!(add(post), Err(Bad::PostParameter { id: "words.say", name: "name" }));
}

#[test]
fn a_query_takes_only_what_a_query_string_can_carry() {
    #[derive(Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Deep {
        #[expect(dead_code, reason = "only its schema is looked at")]
        deep: Vec<Vec<String>>,
    }

    #[derive(Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Inner {
        #[expect(dead_code, reason = "only its schema is looked at")]
        inner: Option<serde_json::Map<String, serde_json::Value>>,
    }

    let deep = |name: &str| Err(Bad::DeepQuery { id: "words.say", name: name.into() });
    assert_eq!(Registry::new().add(query(), never::<Deep, Word>).map(drop), deep("deep"));
    assert_eq!(Registry::new().add(query(), never::<Inner, Word>).map(drop), deep("inner"));
    assert_eq!(Registry::new().add(Descriptor { route: None, ..query() }, never::<Deep, Word>).map(drop), Ok(()));
    assert_eq!(Registry::new().add(GOOD, never::<Deep, Word>).map(drop), Ok(()), "a body can carry it");
}

#[test]
fn a_command_is_words_with_one_blank_between_them() {
    for cli in ["", " ", "Words", "words  ask", " words", "words ", "words\task", "words_ask", "words 1"] {
        assert_eq!(refused(Descriptor { cli: Some(cli), ..OTHER }), Bad::Cli { id: "words.ask", cli });
    }
    Registry::new().add(Descriptor { cli: Some("words say-it loud"), ..GOOD }, say).unwrap();
}

#[test]
fn only_a_query_is_immutable() {
    for effect in [Effect::Add, Effect::Destroy] {
        assert_eq!(refused(Descriptor { immutable: true, effect, ..OTHER }), Bad::ImmutableChange { id: "words.ask" });
    }
    Registry::new().add(Descriptor { immutable: true, ..query() }, say).unwrap();
}

#[test]
fn what_a_capability_belongs_to_is_described() {
    let tags = &["episodes", "words"];
    assert_eq!(refused(Descriptor { tags, ..OTHER }), Bad::UnknownTag { id: "words.ask", tag: "words" });
}

#[test]
fn one_path_can_have_both_methods() {
    let route = Some(Route { method: Method::Get, path: "/api/v1/words" });
    let query = Descriptor { effect: Effect::Read, idempotent: true, route, ..OTHER };
    Registry::new().add(GOOD, say).unwrap().add(query, say).unwrap();
}

#[test]
fn an_id_is_a_noun_and_a_verb() {
    for id in ["", "words", "words.", ".say", "Words.say", "words.say.loud", "words say"] {
        assert_eq!(refused(Descriptor { id, ..OTHER }), Bad::Id { id });
    }
}

#[test]
fn a_title_says_something_in_a_few_words() {
    for title in ["", " \n"] {
        assert_eq!(refused(Descriptor { title, ..OTHER }), Bad::BlankTitle { id: "words.ask" });
    }
    let title = "x".repeat(TITLE_MAX + 1).leak();
    assert_eq!(refused(Descriptor { title, ..OTHER }), Bad::LongTitle { id: "words.ask", chars: TITLE_MAX + 1 });
}

#[test]
fn a_description_is_finished_sentences_of_bounded_length() {
    for description in ["", "  "] {
        assert_eq!(refused(Descriptor { description, ..OTHER }), Bad::BlankDescription { id: "words.ask" });
    }
    for description in ["Says a word", "Says a word. ", "Says a word!"] {
        assert_eq!(refused(Descriptor { description, ..OTHER }), Bad::UnfinishedDescription { id: "words.ask" });
    }
    let long = format!("{}.", "x".repeat(DESCRIPTION_MAX)).leak();
    let chars = DESCRIPTION_MAX + 1;
    assert_eq!(refused(Descriptor { description: long, ..OTHER }), Bad::LongDescription { id: "words.ask", chars });
}

#[test]
fn a_tool_has_a_name_that_every_client_takes() {
    for tool in ["", "say it", "words.say", "säg", "x".repeat(65).leak()] {
        assert_eq!(refused(Descriptor { tool: Some(tool), ..OTHER }), Bad::Tool { id: "words.ask", tool });
    }
    let longest = Descriptor { tool: Some("x".repeat(64).leak()), ..OTHER };
    Registry::new().add(longest, say).unwrap();
}

#[test]
fn a_path_is_below_the_root_of_the_api() {
    let (twice, open) = ("/api/v1/{name}/{name}", "/api/v1/{name");
    let odd =
        ["/api/v1/words/", "/api/v1//words", "/api/v1/Words", "/api/v1/a b", "/api/v1/{}", "/api/v1/a?b", open, twice];
    for path in ["", "words", "/words", "/api/v1/", "/api/v2/words"].into_iter().chain(odd) {
        let route = Some(Route { method: Method::Post, path });
        assert_eq!(refused(Descriptor { route, ..OTHER }), Bad::Path { id: "words.ask", path });
    }
}

#[test]
fn queries_and_only_they_are_served_by_get() {
    let route = |method| Some(Route { method, path: "/api/v1/other" });
    let query = Descriptor { effect: Effect::Read, idempotent: true, ..OTHER };
    let wrong = Descriptor { route: route(Method::Post), ..query };
    assert_eq!(refused(wrong), Bad::MethodOfEffect { id: "words.ask", method: "POST" });
    for effect in [Effect::Add, Effect::Destroy] {
        let wrong = Descriptor { effect, route: route(Method::Get), ..OTHER };
        assert_eq!(refused(wrong), Bad::MethodOfEffect { id: "words.ask", method: "GET" });
    }
}

#[test]
fn a_query_is_idempotent() {
    let query = Descriptor { effect: Effect::Read, ..OTHER };
    assert_eq!(refused(query), Bad::QueryNotIdempotent { id: "words.ask" });
}

#[test]
fn an_error_is_listed_once() {
    let errors = &[Code::Refused, Code::Conflict, Code::Refused];
    assert_eq!(refused(Descriptor { errors, ..OTHER }), Bad::DuplicateError { id: "words.ask", code: "refused" });
}

#[test]
fn an_input_is_an_object_without_room_for_unknown_fields() {
    #[derive(Deserialize, JsonSchema)]
    struct Open {}

    let add = |result: Result<&mut Registry, Bad>| result.map(drop).unwrap_err();
    let mut registry = Registry::new();
    assert_eq!(add(registry.add(GOOD, never::<String, Word>)), Bad::InputNotObject { id: "words.say" });
    assert_eq!(add(registry.add(GOOD, never::<Vec<u8>, Word>)), Bad::InputNotObject { id: "words.say" });
    assert_eq!(add(registry.add(GOOD, never::<Open, Word>)), Bad::OpenInput { id: "words.say" });
}

#[test]
fn an_output_is_an_object_without_null_that_leaves_the_notice_to_the_registry() {
    #[derive(Serialize, JsonSchema)]
    struct Own {
        notice: String,
    }

    #[derive(Serialize, JsonSchema)]
    struct Null {
        word: Option<String>,
    }

    let add = |result: Result<&mut Registry, Bad>| result.map(drop).unwrap_err();
    let mut registry = Registry::new();
    assert_eq!(add(registry.add(GOOD, never::<Nothing, Null>)), Bad::NullInOutput { id: "words.say" });
    assert_eq!(add(registry.add(GOOD, never::<Nothing, Vec<u8>>)), Bad::OutputNotObject { id: "words.say" });
    assert_eq!(add(registry.add(GOOD, never::<Nothing, Option<Word>>)), Bad::OutputNotObject { id: "words.say" });
    assert_eq!(add(registry.add(GOOD, never::<Nothing, Own>)), Bad::ReservedField { id: "words.say" });
    registry.add(GOOD, say).unwrap();
    assert_eq!(registry.capabilities()[0].output()["properties"]["notice"]["type"], "string");
}

#[test]
fn a_call_answers_on_one_line_and_carries_a_notice_at_the_end() {
    let mut registry = Registry::new();
    registry.add(GOOD, say).unwrap();
    let say = registry.capability("words.say").unwrap();
    assert_eq!(say.call(&context(), "{}", None).unwrap(), r#"{"word":"hello"}"#);
    let answer = say.call(&context(), "{}", Some("a\nb")).unwrap();
    assert_eq!(answer.as_str(), r#"{"word":"hello","notice":"a\nb"}"#);
    assert_eq!(say.call(&context(), r#"{"x":1}"#, None).unwrap_err().code, Code::InvalidInput);
}

#[test]
fn a_handler_that_panics_refuses_only_its_own_call() {
    fn explode(_: &Context, _: Nothing) -> Result<Word, Refusal> {
        panic!("{}", json!("a bug"));
    }

    let mut registry = Registry::new();
    registry.add(GOOD, explode).unwrap();
    let refusal = registry.capability("words.say").unwrap().call(&context(), "{}", None).unwrap_err();
    assert_eq!((refusal.code, refusal.message.as_str()), (Code::Internal, "words.say failed; this is a bug"));
}

#[test]
fn a_refusal_that_was_not_declared_is_a_bug() {
    fn refuse(_: &Context, _: Nothing) -> Result<Word, Refusal> {
        Err(Refusal::new(Code::NotFound, "no"))
    }

    let mut registry = Registry::new();
    registry.add(GOOD, refuse).unwrap();
    let say = registry.capability("words.say").unwrap();
    assert!(say.may_refuse(Code::Refused) && say.may_refuse(Code::Internal) && !say.may_refuse(Code::NotFound));
    let call = std::panic::AssertUnwindSafe(|| say.call(&context(), "{}", None));
    assert_eq!(std::panic::catch_unwind(call).is_err(), cfg!(debug_assertions));
}

#[test]
fn what_is_read_has_a_uri_that_nothing_else_fits() {
    let add =
        |registry: &mut Registry, name, uri| registry.add_resource(Resource { name, ..resource(uri) }).map(|_| ());
    let mut registry = Registry::new();
    for (name, uri) in [
        ("one", "test://things"),
        ("two", "test://things/{id}"),
        ("three", "test://things/{id}/parts"),
        ("four", "test://things/{id}/parts/{"),
        ("five", "test://things/all/of/{id}"),
    ] {
        let expected = if name == "four" { Err(Bad::Uri { id: uri }) } else { Ok(()) };
        assert_eq!(add(&mut registry, name, uri), expected, "{uri}");
    }
    for id in
        ["test://things", "test://things/all", "test://things/{name}", "test://{kind}/1/parts", "test://{id}/all/of/x"]
    {
        assert_eq!(add(&mut registry, "six", id), Err(Bad::Ambiguous { id }), "{id}");
    }
    for id in
        ["things", "test://a b", "test://{id", "test://id}", "test://{}", "test://{Id}", "test://a{id}", "test://{id}b"]
    {
        assert_eq!(add(&mut registry, "six", id), Err(Bad::Uri { id }), "{id}");
    }
    assert_eq!(add(&mut registry, "one", "test://else"), Err(Bad::Ambiguous { id: "test://else" }));
}
