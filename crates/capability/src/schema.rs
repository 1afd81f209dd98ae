//! The JSON Schema (2020-12) of an input or output type, in the plain form that clients of every kind understand.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

/// The schema of what a caller sends.
pub(crate) fn input<I: JsonSchema>() -> Value {
    schema::<I>(SchemaSettings::draft2020_12().for_deserialize())
}

/// The schema of what a caller gets.
pub(crate) fn output<O: JsonSchema>() -> Value {
    schema::<O>(SchemaSettings::draft2020_12().for_serialize())
}

fn schema<T: JsonSchema>(mut settings: SchemaSettings) -> Value {
    // Several clients resolve no references, and none needs the dialect's name in every tool.
    settings.meta_schema = None;
    settings.inline_subschemas = true;
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    if let Value::Object(root) = &mut schema {
        root.shift_remove("title");
        root.shift_remove("description");
        tidy(root);
    }
    schema
}

/// Leaves out what only Rust has: integer widths as formats, and `null` as the value of an absent field.
fn tidy(schema: &mut Map<String, Value>) {
    let width =
        |format: &Value| format.as_str().is_some_and(|name| name.starts_with("int") || name.starts_with("uint"));
    if schema.get("format").is_some_and(width) {
        schema.shift_remove("format");
    }
    words(schema);
    let required: Vec<Value> = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        for (name, property) in properties.iter_mut() {
            if let Value::Object(property) = property {
                if !required.iter().any(|field| field == name) {
                    drop_null(property);
                }
                tidy(property);
            }
        }
    }
    for keyword in ["items", "additionalProperties"] {
        if let Some(Value::Object(inner)) = schema.get_mut(keyword) {
            tidy(inner);
        }
    }
    for keyword in ["anyOf", "oneOf", "allOf"] {
        for inner in schema.get_mut(keyword).and_then(Value::as_array_mut).into_iter().flatten() {
            if let Value::Object(inner) = inner {
                tidy(inner);
            }
        }
    }
}

/// Writes a choice of words as the list that it is, not as one schema per word.
fn words(schema: &mut Map<String, Value>) {
    let Some(Value::Array(choices)) = schema.get("oneOf") else { return };
    let words: Option<Vec<Value>> = choices.iter().map(|choice| choice.get("const").cloned()).collect();
    if let Some(words) = words.filter(|words| words.iter().all(Value::is_string)) {
        schema.shift_remove("oneOf");
        schema.insert("type".into(), "string".into());
        schema.insert("enum".into(), words.into());
    }
}

/// Takes `null` out of an optional field's schema: the field is left out instead.
fn drop_null(schema: &mut Map<String, Value>) {
    if schema.get("default").is_some_and(Value::is_null) {
        schema.shift_remove("default");
    }
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            schema.insert("type".into(), only);
        }
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if let Some(Value::Array(choices)) = schema.get_mut("anyOf") {
        choices.retain(|choice| choice.get("type").is_none_or(|name| name != "null"));
        if let [Value::Object(only)] = choices.as_slice() {
            let only = only.clone();
            schema.shift_remove("anyOf");
            for (keyword, value) in only {
                schema.entry(keyword).or_insert(value);
            }
        }
    }
}

/// Whether `null` is among the values that a schema made here allows, at any depth.
pub(crate) fn has_null(schema: &Value) -> bool {
    let named =
        |name: &Value| name == "null" || name.as_array().is_some_and(|names| names.iter().any(|name| name == "null"));
    let inner = ["items", "additionalProperties"].into_iter().filter_map(|keyword| schema.get(keyword));
    let choices =
        ["anyOf", "oneOf", "allOf"].into_iter().filter_map(|keyword| schema.get(keyword)?.as_array()).flatten();
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::values);
    schema.get("type").is_some_and(named) || inner.chain(choices).chain(properties).any(has_null)
}

#[cfg(test)]
mod tests;
