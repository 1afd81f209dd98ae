//! Whose a payload is, where several clients run the hooks of one.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::read::{Key, decoded, first_value, id_of};
use crate::{Provider, Shape, Signs, find};

/// Looks up an environment variable of the hook's process.
pub type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// A value that tells clients apart is the name of an event or a word; what is longer is none of them.
const VALUE_MAX_JSON_BYTES: usize = 256;

/// Says whose `payload` is that a hook got which was declared for `declared`.
///
/// It belongs to `declared` itself unless a client that loads its hook files too shows its own signs: a payload of a shape, or a
/// variable in the hook's environment, that only that client has. An agent that runs inside another one inherits the outer one's
/// variables, so an id that `declared` itself names to the hook, and that the payload has, comes first.
///
/// Total: what cannot be parsed has no shape, and [`read`](crate::read) says what is wrong with it.
#[must_use]
pub fn attribute(declared: &'static Provider, payload: &[u8], variable: Lookup<'_>) -> &'static Provider {
    let Some(adapter) = declared.adapter else { return declared };
    let readers =
        || adapter.also_read_by.iter().filter_map(|id| find(id)).filter_map(|reader| Some((reader, reader.signs?)));
    if readers().next().is_none() {
        return declared;
    }
    // A variable that is set to nothing counts as one that is not set.
    let is_set = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
    let own = declared.signs.and_then(|signs| signs.session_variable).and_then(variable);
    if own.is_some_and(|own| id_of(adapter, payload).is_some_and(|id| id == own)) {
        return declared;
    }
    let met = Met::of(payload, readers().flat_map(|(_, signs)| signs.shapes));
    let shows = |signs: &Signs| {
        signs.shapes.iter().any(|shape| met.fits(shape)) || signs.variables.iter().any(|name| is_set(name))
    };
    readers().find(|(_, signs)| shows(signs)).map_or(declared, |(reader, _)| reader)
}

/// The fields of a payload that some shape names, and their texts where one asks for them.
#[derive(Default)]
struct Met<'s>(BTreeMap<&'s str, Option<String>>);

impl<'s> Met<'s> {
    fn of(payload: &[u8], shapes: impl Iterator<Item = &'s Shape>) -> Self {
        let mut named = BTreeMap::new();
        for shape in shapes {
            for field in shape.present.iter().chain(shape.absent) {
                named.entry(field.as_bytes()).or_insert((*field, false));
            }
            for (field, _) in shape.values {
                named.insert(field.as_bytes(), (*field, true));
            }
        }
        let (text, _) = first_value(payload);
        serde_json::Deserializer::from_str(&text).deserialize_map(Object(&named)).unwrap_or_default()
    }

    fn fits(&self, shape: &Shape) -> bool {
        let is_there = |field: &&str| self.0.contains_key(field);
        let has = |(field, values): &(&str, &[&str])| {
            self.0.get(field).and_then(Option::as_deref).is_some_and(|value| values.contains(&value))
        };
        shape.present.iter().all(is_there) && !shape.absent.iter().any(is_there) && shape.values.iter().all(has)
    }
}

struct Object<'n, 's>(&'n BTreeMap<&'s [u8], (&'s str, bool)>);

impl<'de, 's> Visitor<'de> for Object<'_, 's> {
    type Value = Met<'s>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut met = Met::default();
        while let Some(key) = map.next_key_seed(Key)? {
            match self.0.get(&*key) {
                Some((field, true)) => {
                    let raw = map.next_value::<&RawValue>()?.get();
                    let short = (raw.len() <= VALUE_MAX_JSON_BYTES).then_some(raw);
                    met.0.insert(field, short.and_then(|raw| decoded(raw).ok()));
                }
                Some((field, false)) => {
                    map.next_value::<IgnoredAny>()?;
                    met.0.insert(field, None);
                }
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(met)
    }
}
