use majordomus_providers::{Format, all, find};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::connect::document::named;

const BINARY: &str = "/opt/it's ü/majordomus";

fn hooks(provider: &str) -> Hooks {
    let provider = find(provider).unwrap();
    Hooks { provider, adapter: provider.adapter.unwrap(), at: &["hooks"] }
}

fn parse(text: &str) -> Document {
    Document::parse(Format::Json, text.as_bytes()).unwrap()
}

fn text(document: &Document) -> String {
    String::from_utf8(document.bytes()).unwrap()
}

fn events(hooks: Hooks) -> Vec<&'static Written> {
    hooks.adapter.written.iter().collect()
}

fn connect(hooks: Hooks, document: &mut Document, note: &mut FileNote) -> Result<Vec<Change>, EditError> {
    hooks.connect(document, note, BINARY, &events(hooks), &|_| true)
}

/// Whether all of `part` stands in `whole`, in this order.
fn is_within(part: &str, whole: &str) -> bool {
    let mut whole = whole.chars();
    part.chars().all(|char| whole.any(|other| other == char))
}

/// Connects and removes again, with and without a note, and returns what stood there meanwhile.
fn there_and_back(hooks: Hooks, before: &str) -> String {
    let mut document = parse(before);
    let mut note = FileNote::of("x");
    let changes = connect(hooks, &mut document, &mut note).unwrap();
    assert_eq!(changes.len(), hooks.adapter.written.len(), "{before:?}");
    let after = text(&document);
    assert!(is_within(before, &after), "{before:?}\n{after}");
    assert_eq!(connect(hooks, &mut document, &mut note), Ok(Vec::new()), "the second time nothing is left to do");
    assert_eq!(text(&document), after);
    assert!(hooks.find(&document).iter().all(|found| hooks.is_current(found, BINARY)));

    let mut alone = document.clone();
    hooks.remove(&mut alone, None).unwrap();
    assert!(hooks.find(&alone).is_empty());
    hooks.remove(&mut document, Some(&mut note)).unwrap();
    assert_eq!(text(&document), before);
    after
}

const WILD: &[&str] = &[
    "",
    "\n",
    "{}",
    "{}\n",
    "{ }",
    "{\n}\n",
    "{\n  // nothing yet\n}\n",
    "\u{feff}{\r\n  \"model\": \"x\"\r\n}",
    "{\"a\":1,\"b\":[1,2]}",
    "{\"hooks\": {}, \"z\": 1}",
    "{\n\t\"hooks\": {\n\t\t\"SessionStart\": [],\n\t\t\"sessionStart\": [ ]\n\t},\n\t\"z\": null,\n}",
    "{\n  \"hooks\": {\n    // mine\n    \"Stop\": [\n      {\"matcher\": \"\", \"hooks\": [{\"type\": \"command\", \"command\": \"say done\"}]}, // loud\n    ],\n  },\n}\n",
    "{\n    \"z\": 1,\n    \"hooks\": { \"Stop\": [ { \"hooks\": [] } ] }, \"env\": { \"TOKEN\": \"s\" }\n}",
    "{\"hooks\":{\"Stop\":[{\"hooks\":[{\"command\":\"majordomus capture session --provider other --event end\"}]}]}}",
    "/* head */ {\n  \"hooks\": null_is_no_word\n}",
    "{\n  \"a\": \"// no \\\" comment, }\", /* b\n */ \"c\": 1e400 // d\n  // e\n}\n// f\n",
];

#[test]
fn settings_as_they_are_found_come_back_as_they_were() {
    for provider in all().iter().filter(|provider| provider.adapter.is_some_and(|adapter| !adapter.written.is_empty()))
    {
        let mut gone_through = 0;
        for before in WILD.iter().filter(|text| Document::parse(Format::Json, text.as_bytes()).is_ok()) {
            there_and_back(hooks(provider.id), before);
            gone_through += 1;
        }
        assert_eq!(gone_through, WILD.len() - 1, "{}", provider.id);
    }
}

#[test]
fn a_new_file_is_laid_out_as_the_vendor_would() {
    assert_eq!(
        there_and_back(hooks("cursor"), "").lines().take(9).collect::<Vec<_>>().join("\n"),
        "{\n  \"version\": 1,\n  \"hooks\": {\n    \"sessionStart\": [\n      {\n        \"command\": \"'/opt/it'\\\\''s ü/majordomus' \
         capture session --provider cursor --event start\",\n        \"timeout\": 5\n      }\n    ],"
    );
    let value: Value = serde_json::from_str(&there_and_back(hooks("gemini-cli"), "")).unwrap();
    assert_eq!(value["hooks"]["SessionEnd"][0]["hooks"][0]["timeout"], 5000, "in its own unit");
}

#[test]
fn a_stale_entry_is_mended_where_it_stands() {
    let stale = "{\n  \"hooks\": {\n    \"Stop\": [\n      { \"hooks\": [ { \"timeout\": 60, \"async\": true, \"type\": \"command\", \
                 \"command\": \"/old/majordomus capture session --provider claude-code --event start\" }, {\"command\": \"x\"} ] }, {\"hooks\": [{\"type\": \
                 \"command\", \"command\": \"majordomus capture session --provider claude-code --event activity\", \"timeout\": 5}]}\n    ]\n  }\n}\n";
    let mut document = parse(stale);
    let hooks = hooks("claude-code");
    let changes = connect(hooks, &mut document, &mut FileNote::of("x")).unwrap();
    assert_eq!(changes.iter().filter(|change| matches!(change, Change::Updated(event) if event == "Stop")).count(), 1);
    assert_eq!(changes.iter().filter(|change| matches!(change, Change::Removed(event) if event == "Stop")).count(), 1);
    assert!(text(&document).contains(
        "{ \"hooks\": [ { \"timeout\": 5, \"async\": true, \"type\": \"command\", \"command\": \"'/opt/it'\\\\''s ü/majordomus' \
         capture session --provider claude-code --event activity\" }, {\"command\": \"x\"} ] }\n    ],"
    ));
}

#[test]
fn what_the_version_does_not_know_is_taken_back() {
    let hooks = hooks("claude-code");
    let (mut document, mut note) = (parse("{}"), FileNote::of("x"));
    connect(hooks, &mut document, &mut note).unwrap();
    let fewer: Vec<_> = events(hooks).into_iter().filter(|written| written.name != "PreCompact").collect();
    let changes = hooks.connect(&mut document, &mut note, BINARY, &fewer, &|_| true).unwrap();
    assert_eq!(changes, [Change::Removed("PreCompact".into())]);
    assert!(!text(&document).contains("PreCompact"));
    hooks.remove(&mut document, Some(&mut note)).unwrap();
    assert_eq!(text(&document), "{}");
}

#[test]
fn what_others_did_since_stays() {
    let hooks = hooks("claude-code");
    let (mut document, mut note) = (parse("{\n  \"a\": 1\n}\n"), FileNote::of("x"));
    connect(hooks, &mut document, &mut note).unwrap();
    document.insert(&way(&["hooks", "Stop"]), None, &json!({ "hooks": [] })).unwrap();
    document.insert(&[], Some("b"), &json!({ "c": [] })).unwrap();
    hooks.remove(&mut document, Some(&mut note)).unwrap();
    let value: Value = serde_json::from_slice(&document.bytes()).unwrap();
    assert_eq!(value, json!({ "a": 1, "hooks": { "Stop": [{ "hooks": [] }] }, "b": { "c": [] } }));
}

#[test]
fn what_cannot_be_told_from_ours_is_refused() {
    let hooks = hooks("claude-code");
    for (before, said) in [
        ("[]", "the document is a list, not an object"),
        ("3", "the document is a number, not an object"),
        (r#"{"hooks": []}"#, "hooks is a list, not an object"),
        (r#"{"hooks": {"Stop": {}}}"#, "hooks.Stop is an object, not a list"),
        (r#"{"hooks": {"Stop": ["x"]}}"#, "hooks.Stop.0 is text, not an object"),
        (r#"{"hooks": {"Stop": [{"hooks": 1}]}}"#, "hooks.Stop.0.hooks is a number, not a list"),
    ] {
        let mut document = parse(before);
        assert_eq!(connect(hooks, &mut document, &mut FileNote::of("x")).unwrap_err().to_string(), said);
    }
    let mut document = parse(r#"{"version": 2}"#);
    let refused = connect(super::tests::hooks("cursor"), &mut document, &mut FileNote::of("x")).unwrap_err();
    assert_eq!(refused.to_string(), "version is not 1, the only form that is known");
    assert_eq!(named(&way(&["a", "b"])), "a.b");
}

/// Values as settings hold them, with the names that ours have too.
fn settings() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[ -~ü\\n]{0,8}".prop_map(Value::from),
    ];
    let key = || prop_oneof!["[a-z]{1,3}", Just("hooks".to_owned()), Just("Stop".to_owned()), Just("".to_owned())];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key(), inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
    .prop_flat_map(move |value| {
        let entry = prop::collection::vec(Just(json!({ "command": "x", "hooks": [] })), 0..3).prop_map(Value::from);
        let lists = prop::collection::btree_map("[A-Z][a-z]{0,2}|Stop|SessionStart|SessionEnd", entry, 0..4);
        (Just(value), prop::option::of(lists))
    })
    .prop_map(|(value, lists)| {
        let mut members = match value.as_object() {
            Some(members) => members.clone(),
            None => Map::from_iter([("other".to_owned(), value)]),
        };
        members.remove("hooks");
        if let Some(lists) = lists {
            members.insert("hooks".into(), Value::Object(lists.into_iter().collect()));
        }
        Value::Object(members)
    })
}

/// Writes a value as somebody might, by the whims of `noise`.
fn scribble(out: &mut String, value: &Value, noise: &mut impl Iterator<Item = u8>) {
    let mut space = |out: &mut String| {
        out.push_str(match noise.next().unwrap_or(0) % 16 {
            0..6 => "",
            6 | 7 => " ",
            8 => "\n",
            9 => "\n\t",
            10 => "\r\n  ",
            11 => "  ",
            12 => "/* c, } ] */",
            13 => " // d, { [ \"\n    ",
            14 => "//\r\n",
            _ => "\n\n  ",
        });
    };
    let (open, close, items): (char, char, Vec<(Option<&String>, &Value)>) = match value {
        Value::Object(members) => ('{', '}', members.iter().map(|(key, value)| (Some(key), value)).collect()),
        Value::Array(elements) => ('[', ']', elements.iter().map(|value| (None, value)).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return out.push_str(&value.to_string()),
    };
    out.push(open);
    let last = items.len();
    for (index, (key, value)) in items.into_iter().enumerate() {
        let mut pad = String::new();
        space(&mut pad);
        out.push_str(&pad);
        if let Some(key) = key {
            out.push_str(&Value::from(key.as_str()).to_string());
            space(out);
            out.push(':');
            space(out);
        }
        // The closure holds the noise for as long as it is used.
        let mut inner = String::new();
        let taken: Vec<u8> = (0..40).map(|turn| (pad.len() + index * 7 + turn * 3) as u8 ^ (last as u8)).collect();
        scribble(&mut inner, value, &mut taken.into_iter());
        out.push_str(&inner);
        space(out);
        if index + 1 < last || pad.len() % 2 == 1 {
            out.push(',');
        }
    }
    space(out);
    out.push(close);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn removing_undoes_connecting_in_any_document(value in settings(), noise in prop::collection::vec(any::<u8>(), 0..60), nested in any::<bool>()) {
        let mut before = String::new();
        scribble(&mut before, &value, &mut noise.into_iter());
        let hooks = hooks(if nested { "claude-code" } else { "copilot-cli" });
        let read = parse(&before);
        prop_assert_eq!(read.get(&[]), Some(&value));
        let after = there_and_back(hooks, &before);
        // What others read in it besides ours is what they read before.
        let mut rest = parse(&after);
        for found in hooks.find(&rest).iter().rev() {
            hooks.take(&mut rest, found).unwrap();
        }
        let mut rest = rest.get(&[]).unwrap().clone();
        let was = value.get("hooks").and_then(Value::as_object).cloned().unwrap_or_default();
        if let Some(lists) = rest.get_mut("hooks").and_then(Value::as_object_mut) {
            lists.retain(|event, list| was.contains_key(event) || list != &json!([]));
        }
        if !value.as_object().unwrap().contains_key("hooks") {
            rest.as_object_mut().unwrap().remove("hooks");
        }
        if !nested {
            rest.as_object_mut().unwrap().remove("version");
        }
        prop_assert_eq!(rest, value);
    }
}
