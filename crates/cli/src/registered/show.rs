//! An answer as a person reads it, in the order of the output's schema.

use majordomus_records::text::visible;
use serde_json::{Map, Value};

use crate::output;

/// The most columns that a table of a list may have; a wider list is shown entry by entry.
const TABLE_MOST: usize = 120;
/// The most characters of a list that stands on one line.
const LINE_MOST: usize = 100;
/// What stands before what belongs to the line above.
const INDENT: &str = "  ";

/// Renders an answer. Nothing of it is left out, and what others wrote cannot look like something else.
pub(super) fn text(schema: &Value, answer: &Value) -> String {
    answer.as_object().map_or_else(String::new, |answer| fields(schema, answer))
}

/// One line or block per field: those of the schema in its order, then those that it does not know.
fn fields(schema: &Value, object: &Map<String, Value>) -> String {
    ordered(schema, object.keys())
        .into_iter()
        .map(|name| field(&schema["properties"][name], name, &object[name]))
        .collect()
}

/// The names of a schema's fields that are there, in its order; names that it does not know come last.
fn ordered<'a>(schema: &Value, names: impl Iterator<Item = &'a String>) -> Vec<&'a str> {
    let mut names: Vec<&str> = names.map(String::as_str).collect();
    let known: Vec<&String> = schema["properties"].as_object().into_iter().flat_map(Map::keys).collect();
    names.sort_by_key(|name| known.iter().position(|one| one == name).unwrap_or(known.len()));
    names
}

fn field(schema: &Value, name: &str, value: &Value) -> String {
    let name = visible(name);
    if let Some(line) = line(value) {
        return format!("{name}: {line}\n");
    }
    let block = match value {
        Value::Object(object) => fields(schema, object),
        Value::Array(values) => list(&schema["items"], values),
        Value::String(text) => text.lines().map(|line| visible(line) + "\n").collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    };
    format!("{name}:\n{}", indented(&block))
}

/// A value that fits on its field's line.
fn line(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => (!text.trim_end().contains('\n')).then(|| visible(text.trim_end_matches('\n'))),
        Value::Array(values) => {
            let joined = values.iter().map(scalar).collect::<Option<Vec<_>>>()?.join(", ");
            let joined = if values.is_empty() { "none".into() } else { joined };
            (joined.chars().count() <= LINE_MOST).then_some(joined)
        }
        Value::Object(object) => object.is_empty().then(|| "none".into()),
        Value::Null | Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
    }
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(visible(text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        Value::Array(_) | Value::Object(_) => None,
    }
}

fn list(schema: &Value, values: &[Value]) -> String {
    let objects: Option<Vec<_>> = values.iter().map(Value::as_object).collect();
    match objects {
        Some(objects) => table(schema, &objects).unwrap_or_else(|| entries(schema, &objects)),
        None => values.iter().map(|value| line(value).unwrap_or_else(|| value.to_string()) + "\n").collect(),
    }
}

/// A table with the fields' names above it; `None` where a value needs more than its cell or all need too many columns.
fn table(schema: &Value, objects: &[&Map<String, Value>]) -> Option<String> {
    let mut names: Vec<&String> = Vec::new();
    for name in objects.iter().flat_map(|object| object.keys()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let names = ordered(schema, names.into_iter());
    let cell = |object: &Map<String, Value>, name: &str| object.get(name).map_or_else(|| Some("-".into()), line);
    let row = |object: &&Map<String, Value>| names.iter().map(|name| cell(object, name)).collect::<Option<Vec<_>>>();
    let mut rows = vec![names.iter().map(|name| visible(name)).collect()];
    rows.extend(objects.iter().map(row).collect::<Option<Vec<_>>>()?);
    let table = output::table(&rows);
    table.lines().all(|line| line.chars().count() <= TABLE_MOST).then_some(table)
}

/// Entry by entry, each behind a hyphen.
fn entries(schema: &Value, objects: &[&Map<String, Value>]) -> String {
    objects.iter().map(|object| indented(&fields(schema, object)).replacen(INDENT, "- ", 1)).collect()
}

fn indented(block: &str) -> String {
    let line = |line: &str| if line.is_empty() { "\n".into() } else { format!("{INDENT}{line}\n") };
    block.lines().map(line).collect()
}

#[cfg(test)]
mod tests;
