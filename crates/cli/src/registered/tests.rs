use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;

use clap::CommandFactory;
use majordomus_capability::{Descriptor, Effect, Method, Refusal, Registry, Route, catalogue};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::argument::{self, Values};
use super::*;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is looked at")]
struct Look {
    /// Which shelf it is.
    shelf: String,
    /// How high | it stands.
    #[schemars(range(min = 1, max = 9))]
    height: u32,
    /// Which kinds. All of them when absent.
    kinds: Option<Vec<Kind>>,
    /// Whether to look behind.
    deep: Option<bool>,
    /// How sure to be.
    sure_enough: Option<f64>,
    /// What attach gave.
    episode_handle: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Book,
    Map,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is looked at")]
struct Fill {
    /// With what.
    things: Vec<String>,
    /// What to write on it.
    labels: Option<BTreeMap<String, String>>,
    /// How often.
    times: Option<Vec<i64>>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

#[derive(Serialize, JsonSchema)]
struct Seen {
    /// Whether.
    seen: bool,
}

const LOOK: Descriptor = Descriptor {
    id: "shelves.look",
    title: "Look at a shelf",
    description: "Looks at one shelf\nfrom <below>.",
    effect: Effect::Read,
    idempotent: true,
    reach: Reach::Server,
    immutable: false,
    tool: None,
    route: Some(Route { method: Method::Get, path: "/api/v1/shelves/{shelf}" }),
    cli: Some("shelves look"),
    errors: &[],
    tags: &[],
};

/// A registry of its own: what follows a word is declared before the word itself.
pub(crate) fn registry() -> Registry {
    let post = Some(Route { method: Method::Post, path: "/api/v1/filling" });
    let fill = Descriptor { id: "shelves.fill", effect: Effect::Add, route: post, cli: Some("shelves fill"), ..LOOK };
    let get = Some(Route { method: Method::Get, path: "/api/v1/shelves" });
    let list = Descriptor { id: "shelves.list", reach: Reach::Declarations, route: get, cli: Some("shelves"), ..LOOK };
    let paint = Descriptor { id: "house.paint", route: None, cli: Some("house wall paint"), ..LOOK };
    let mut registry = Registry::new();
    registry.add(LOOK, |_, _: Look| Ok(Seen { seen: true })).unwrap();
    registry.add(fill, |_, _: Fill| Ok(Seen { seen: true })).unwrap();
    registry.add(list, |_, _: Nothing| Ok(Seen { seen: true })).unwrap();
    registry
        .add(paint, |_, _: Nothing| Err::<Seen, _>(Refusal::new(majordomus_capability::Code::Internal, "no")))
        .unwrap();
    registry
}

pub(super) fn asked(line: &[&str]) -> Result<Asked, clap::Error> {
    let arguments: Vec<OsString> = [&["majordomus"], line].concat().into_iter().map(OsString::from).collect();
    parse(registry(), &arguments)
}

/// The capability that a command line calls, and with what.
fn called(line: &[&str]) -> (&'static str, Value, Option<String>) {
    let Ok(Asked::Registered(registered)) = asked(line) else { panic!("{line:?} calls no capability") };
    let capability = registered.registry.capability(registered.id).unwrap();
    let Values { fields, handle } = argument::values(capability, &registered.matches).unwrap();
    (registered.id, Value::Object(fields), handle)
}

#[test]
fn a_capability_is_a_command_with_its_arguments() {
    let least = called(&["shelves", "look", "the upper", "3"]);
    assert_eq!(least, ("shelves.look", json!({ "shelf": "the upper", "height": 3 }), None));
    let handle = "ep_y_hjSuTQrgDQPjq1Zsas5Q";
    let most = ["--kinds", "map", "--kinds=book", "--deep", "--sure-enough", "0.5", "--episode-handle", handle];
    let fields = json!({ "shelf": "-", "height": 1, "kinds": ["map", "book"], "deep": true, "sure_enough": 0.5 });
    let expected = ("shelves.look", fields, Some(handle.to_owned()));
    assert_eq!(called(&[&["shelves", "look", "-", "1"], &most[..]].concat()), expected);
    assert_eq!(called(&["shelves", "look", "a", "1", "--deep=false"]).1["deep"], false);
}

#[test]
fn a_required_list_takes_what_follows_and_an_object_is_json() {
    let line = ["shelves", "fill", "a", "b c", "--labels", r#"{"x":"y"}"#, "--times", "1", "--times=-2"];
    let fields = json!({ "things": ["a", "b c"], "labels": { "x": "y" }, "times": [1, -2] });
    assert_eq!(called(&line), ("shelves.fill", fields, None));
}

#[test]
fn what_does_not_fit_its_schema_is_a_wrong_command_line() {
    for line in [
        &["shelves", "look"][..],
        &["shelves", "look", "a"],
        &["shelves", "look", "", "1"],
        &["shelves", "look", "a", "0"],
        &["shelves", "look", "a", "10"],
        &["shelves", "look", "a", "high"],
        &["shelves", "look", "a", "1", "--kinds", "plate"],
        &["shelves", "look", "a", "1", "--deep=maybe"],
        &["shelves", "look", "a", "1", "--deep", "--deep"],
        &["shelves", "look", "a", "1", "--unknown"],
        &["shelves", "fill"],
        &["shelves", "fill", "a", "--labels", "{"],
        &["shelves", "--json", "fill", "a"],
        &["house"],
        &["house", "wall"],
    ] {
        assert!(asked(line).is_err_and(|error| error.exit_code() == 2), "{line:?}");
    }
}

#[test]
fn a_word_can_be_a_command_and_stand_in_front_of_others() {
    assert_eq!(called(&["shelves", "--json"]), ("shelves.list", json!({}), None));
    assert_eq!(called(&["house", "wall", "paint"]).0, "house.paint");
    let command = command(&registry());
    let below = |word: &str| command.find_subcommand(word).unwrap().clone();
    assert_eq!(
        below("house").get_about().unwrap().to_string(),
        "Look at a shelf",
        "a word in between says what follows"
    );
    assert!(below("house").is_subcommand_required_set() && !below("shelves").is_subcommand_required_set());
    let names: Vec<_> = below("shelves").get_subcommands().map(|one| one.get_name().to_owned()).collect();
    assert_eq!(names, ["look", "fill"], "in the registry's order");
    let help = below("shelves").find_subcommand_mut("look").unwrap().render_long_help().to_string();
    for text in [
        "Look at a shelf.",
        "from <below>",
        "Which shelf it is",
        "Which kinds. All of them when absent.",
        "[possible values: book, map]",
    ] {
        assert!(help.contains(text), "{text} is not in {help}");
    }
}

#[test]
fn every_word_of_the_catalogue_parses_and_the_command_line_is_whole() {
    let registry = catalogue();
    let mut command = command(&registry);
    command.build();
    command.clone().debug_assert();
    for capability in registry.capabilities() {
        let Some(cli) = capability.descriptor().cli else { continue };
        let found = cli.split(' ').try_fold(&command, |command, word| command.find_subcommand(word));
        let flags: BTreeSet<_> = found
            .unwrap_or_else(|| panic!("{cli} is no command"))
            .get_arguments()
            .map(|arg| arg.get_id().as_str())
            .collect();
        let fields = capability.input()["properties"].as_object();
        let missing =
            fields.into_iter().flatten().find(|(name, _)| !is_local(capability) && !flags.contains(name.as_str()));
        assert!(missing.is_none(), "{cli} cannot be told {missing:?}");
        assert!(flags.contains(JSON), "{cli} has no --json");
        let reaches = capability.descriptor().reach == Reach::Declarations || capability.descriptor().route.is_some();
        assert!(reaches || is_local(capability), "{cli} cannot be called without a route");
    }
}

#[test]
fn a_command_that_is_written_by_hand_has_no_capabilitys_words_but_those_of_the_table() {
    let own = Cli::command();
    let is_own = |cli: &&str| cli.split(' ').try_fold(&own, |command, word| command.find_subcommand(word)).is_some();
    let registry = catalogue();
    let both: BTreeSet<_> =
        registry.capabilities().iter().filter_map(|one| one.descriptor().cli).filter(is_own).collect();
    assert_eq!(both, LOCAL.iter().map(|local| local.words).collect());
    assert!(LOCAL.iter().all(|local| !local.because.is_empty()));
}

#[test]
fn what_only_reads_declarations_is_answered_here() {
    let registry = Arc::new(catalogue());
    let describe =
        |id: &str| here(registry.capability("capabilities.describe").unwrap(), &registry, &json!({ "id": id }));
    assert_eq!(describe("peers.list").unwrap()["capability"]["path"], "/api/v1/peers");
    assert!(describe("peers.none").unwrap_err().to_string().contains("peers.none"));
}
