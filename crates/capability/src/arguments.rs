//! From a caller's JSON to a typed input, with refusals that name the field.

use std::fmt;

use serde::de::{DeserializeOwned, Error, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Number;
use serde_json::value::RawValue;

use crate::refusal::{Code, Refusal, printable};

/// Reads an input from the JSON object `text`.
///
/// # Errors
/// [`Code::InvalidInput`], naming the field that is wrong, missing or unknown.
pub(crate) fn parse<I: DeserializeOwned>(text: &str) -> Result<I, Refusal> {
    // serde would also take an array for a struct, field by field.
    if !text.trim_start().starts_with('{') {
        return Err(Refusal::new(Code::InvalidInput, "the arguments are not a JSON object"));
    }
    serde_json::from_str(text).map_err(|error| Refusal::new(Code::InvalidInput, explain::<I>(text, &error)))
}

/// Says what is wrong, and with which field: serde names only those that are missing, unknown or doubled.
fn explain<I: DeserializeOwned>(text: &str, error: &serde_json::Error) -> String {
    let whole = message(error);
    if whole.contains(" field `") {
        return whole;
    }
    let Ok(Fields(fields)) = serde_json::from_str::<Fields<'_>>(text) else {
        return whole;
    };
    fields.into_iter().find_map(|(name, value)| blame::<I>(&name, value)).unwrap_or(whole)
}

/// Reads an input that has this one field and says what is wrong with it, if it is this one.
fn blame<I: DeserializeOwned>(name: &str, value: &RawValue) -> Option<String> {
    let alone = format!("{{{}:{}}}", serde_json::to_string(name).ok()?, value.get());
    let error = message(&serde_json::from_str::<I>(&alone).err()?);
    (!error.starts_with("missing field")).then(|| format!("{}: {error}", shown(name)))
}

/// A field's name as a message shows it.
pub(crate) fn shown(name: &str) -> String {
    printable(name, 64)
}

/// The error's text without the position, which means nothing to who sent an object inside a message.
fn message(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    text.strip_suffix(&position).map_or(text.clone(), str::to_owned)
}

/// Reads a whole number, also one written as `5.0`: for JSON Schema that is an integer too.
pub(crate) fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    let Some(number) = Option::<Number>::deserialize(deserializer)? else { return Ok(None) };
    let written = number.as_u64().and_then(|number| u32::try_from(number).ok());
    let whole = |number: &f64| number.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(number);
    let read = written.or_else(|| number.as_f64().filter(whole).map(|number| number as u32));
    read.map(Some).ok_or_else(|| D::Error::custom(format_args!("{number} is not a whole number that can be meant")))
}

/// Reads one word of a choice, from a text only: serde would also take an object with that name.
pub(crate) fn word<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    let word = Option::<String>::deserialize(deserializer)?;
    word.map(|word| T::deserialize(word.into_deserializer())).transpose()
}

/// An object's fields in order, values unread.
struct Fields<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;

        impl<'de> Visitor<'de> for Collect {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }

        deserializer.deserialize_map(Collect)
    }
}

#[cfg(test)]
mod tests;
