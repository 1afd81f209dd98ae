//! Every input's schema says exactly what its handler takes.

use std::cell::RefCell;
use std::collections::HashMap;

use majordomus_records::{Checkout, Policy, Store};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::TestRunner;
use serde_json::{Map, Value, json};

use super::catalogue;
use crate::context::Context;
use crate::page;
use crate::refusal::Code;
use crate::testing::World;

/// Characters that some pattern or some check treats in its own way.
const ODD: &[char] = &[
    '\0', '\t', '\n', '\r', '\u{1f}', ' ', '/', ':', '\\', '~', '\u{7f}', '\u{85}', '\u{9f}', '\u{a0}', '\u{ad}', 'é',
    '\u{1680}', '\u{180e}', '\u{200a}', '\u{200b}', '\u{2028}', '\u{2029}', '\u{202e}', '\u{202f}', '\u{205f}',
    '\u{3000}', '\u{feff}', '\u{fffd}', '😀', 'C', '.', '0', 'x',
];

fn text() -> impl Strategy<Value = String> {
    let odd = vec(select(ODD), 0..6).prop_map(|chars| chars.into_iter().collect());
    let long = (select(vec!['x', ' ', 'é', '😀']), select(vec![64, 65, 256, 257, 300, 301]));
    // Each is good for one check and not for another one.
    let sharp = ["é:x", ":x", "C:/x", "x:", "/x", "~", "\\x", "a/b", "\u{feff}", "\u{85}", "\u{a0}", " x", "x\u{2028}"];
    prop_oneof![
        2 => select(sharp.map(str::to_owned).to_vec()),
        3 => odd,
        2 => "[a-z./ ~:-]{1,12}",
        1 => any::<String>(),
        1 => long.prop_map(|(char, length)| String::from(char).repeat(length)),
    ]
}

/// What the argument of that name may well be.
fn likely(name: &str) -> BoxedStrategy<String> {
    let cursor = prop_oneof![
        any::<u64>().prop_map(|number| page::cursor("peers", &[&number.to_string()])),
        "s-[0-9]{14}-[0-9a-f]{8}".prop_map(|id| page::cursor("sessions", &[&id])),
        vec(text(), 4)
            .prop_map(|place| page::cursor("episodes", &place.iter().map(String::as_str).collect::<Vec<_>>())),
        "(episodes|peers|sessions)(\\.[0-9a-f]{0,8}){1,5}",
    ];
    match name {
        "cursor" => cursor.boxed(),
        "episode_handle" => "ep_[A-Za-z0-9_-]{22}".boxed(),
        "session_id" => "s-[0-9]{14}-[0-9a-f]{8}".boxed(),
        "id" => "[a-z_]{1,5}\\.[a-z_]{1,5}".boxed(),
        "provider" => "[a-z0-9][a-z0-9-]{0,8}".boxed(),
        "state" => select(vec!["open".to_owned(), "detached".to_owned()]).boxed(),
        _ => text().boxed(),
    }
}

/// The same, sometimes damaged in one place.
fn formed(name: &str) -> impl Strategy<Value = String> + use<> {
    let damage = (any::<prop::sample::Index>(), select(ODD), 0..3_u8);
    (likely(name), prop::option::weighted(0.2, damage)).prop_map(|(whole, damage)| {
        let mut chars: Vec<char> = whole.chars().collect();
        match damage {
            Some((at, char, 0)) => chars.insert(at.index(chars.len() + 1), char),
            Some((at, char, 1)) if !chars.is_empty() => {
                let at = at.index(chars.len());
                chars[at] = char;
            }
            Some((at, ..)) if !chars.is_empty() => drop(chars.remove(at.index(chars.len()))),
            Some(_) | None => {}
        }
        chars.into_iter().collect()
    })
}

/// Any JSON but `null`, which may stand for an absent field although no schema says so: models write that.
fn value(name: &str) -> impl Strategy<Value = Value> + use<> {
    let number =
        select(vec![json!(1), json!(200), json!(5.0), json!(0), json!(201), json!(-1), json!(5.5), json!(1e300)]);
    let list = prop_oneof![
        4 => vec(text(), 0..3).prop_map(Value::from),
        1 => select(vec![0, 50, 51]).prop_map(|length| vec!["a"; length].into()),
        1 => select(vec![json!([1]), json!([null]), json!([["a"]])]),
    ];
    let other = select(vec![json!("Open"), json!({"open": null}), json!({}), json!(true)]);
    let weights = match name {
        "limit" => [1, 9, 1],
        "scope" => [1, 1, 9],
        "state" => [3, 0, 0],
        _ => [16, 1, 1],
    };
    prop_oneof![
        weights[0] => formed(name).prop_map(Value::from),
        weights[1] => number,
        weights[2] => list,
        1 => other,
    ]
}

/// Which capability, a value for each of its arguments or none, and one for an argument that there is not.
fn call() -> impl Strategy<Value = (usize, Map<String, Value>)> {
    let registry = catalogue();
    let calls = registry.capabilities().iter().enumerate().map(|(at, one)| {
        let names = one.input()["properties"].as_object().into_iter().flat_map(Map::keys);
        let required = |name: &str| one.input()["required"].as_array().is_some_and(|all| all.contains(&name.into()));
        let values: Vec<_> = names
            .map(|name| {
                let there = if required(name) { 0.9 } else { 0.4 };
                (Just(name.clone()), prop::option::weighted(there, value(name)))
            })
            .collect();
        let unknown = prop::option::weighted(0.1, (text(), value("")));
        (values, unknown).prop_map(move |(values, unknown)| {
            let known = values.into_iter().filter_map(|(name, value)| Some((name, value?)));
            (at, known.chain(unknown).collect())
        })
    });
    prop::strategy::Union::new(calls.collect::<Vec<_>>())
}

#[test]
fn a_schema_takes_what_its_handler_takes_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    for part in [".git/objects", ".git/refs/heads", ".ai/repo/sessions"] {
        std::fs::create_dir_all(folder.path().join(part)).unwrap();
    }
    std::fs::write(folder.path().join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    let store = Store::open(Checkout::find(folder.path()).unwrap(), Policy::default());
    let world = World::with(|shared| shared.records = Some(store));
    let context = Context::of_peer(world.shared.clone(), world.peer());
    let all = world.shared.registry.capabilities();
    let validators: Vec<_> = all.iter().map(|one| jsonschema::draft202012::new(one.input()).unwrap()).collect();
    // How often each was taken and refused by its schema: a property that never saw one of them says nothing.
    let seen: RefCell<HashMap<(&str, bool), u32>> = RefCell::default();
    let config = ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() };
    TestRunner::new(config)
        .run(&call(), |(at, arguments)| {
            let id = all[at].descriptor().id;
            let arguments = Value::Object(arguments);
            let fits = validators[at].is_valid(&arguments);
            let answer = all[at].call(&context, &arguments.to_string(), None);
            match answer {
                Err(refusal) if fits => {
                    prop_assert_ne!(refusal.code, Code::InvalidInput, "{} {}: {}", id, arguments, refusal)
                }
                Ok(_) => prop_assert!(fits, "{} takes {}", id, arguments),
                Err(_) => {}
            }
            *seen.borrow_mut().entry((id, fits)).or_default() += 1;
            Ok(())
        })
        .unwrap();
    let seen = seen.into_inner();
    assert!(seen.len() == 2 * all.len() && seen.values().all(|times| *times >= 10), "{seen:?}");
}

#[test]
fn every_short_text_is_judged_alike_by_schema_and_handler() {
    let world = World::new();
    let context = Context::of_peer(world.shared.clone(), world.peer());
    let pairs = ODD.iter().flat_map(|one| ODD.iter().map(move |other| format!("{one}{other}")));
    let texts: Vec<String> = ODD.iter().map(char::to_string).chain(pairs).collect();
    type With = fn(&str) -> Value;
    let calls: [(&str, With); 3] = [
        ("episodes.detach", |text| json!({"external_id": text})),
        ("peers.announce", |text| json!({"intent": text})),
        ("peers.announce", |text| json!({"intent": "x", "scope": [text]})),
    ];
    for (id, with) in calls {
        let capability = world.shared.registry.capability(id).unwrap();
        let validator = jsonschema::draft202012::new(capability.input()).unwrap();
        for text in &texts {
            let arguments = with(text);
            let answer = capability.call(&context, &arguments.to_string(), None);
            let taken = answer.err().is_none_or(|refusal| refusal.code != Code::InvalidInput);
            assert_eq!(taken, validator.is_valid(&arguments), "{id} {arguments}");
        }
    }
}

#[test]
fn what_a_list_gives_fits_its_own_schema() {
    let registry = catalogue();
    for (id, place) in [
        ("episodes.list", vec!["0", "2026-01-01T00:00:00.000Z", "generic", "grün\u{a0}✓"]),
        ("peers.list", vec!["1234567890123456789"]),
        ("sessions.list", vec!["s-20270101080001-00000001"]),
    ] {
        let cursor = page::cursor(id.strip_suffix(".list").unwrap(), &place);
        let schema = &registry.capability(id).unwrap().input()["properties"]["cursor"];
        assert!(jsonschema::draft202012::new(schema).unwrap().is_valid(&json!(cursor)), "{id} {cursor}");
    }
}
