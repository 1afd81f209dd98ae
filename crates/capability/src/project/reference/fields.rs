//! The fields of a schema as rows of a table.

use serde_json::Value;

use crate::project::markdown::{code, text};

/// One field.
pub(super) struct Field<'a> {
    /// Where it stands: `episodes[].peer`.
    pub(super) path: String,
    /// Whether it is there in every object that it belongs to.
    pub(super) required: bool,
    schema: &'a Value,
}

/// The fields of an object and of the objects within, in the order in which they are declared.
pub(super) fn fields(schema: &Value) -> Vec<Field<'_>> {
    let mut found = Vec::new();
    gather("", schema, &mut found);
    found
}

fn gather<'a>(above: &str, schema: &'a Value, found: &mut Vec<Field<'a>>) {
    let required = |name: &str| schema["required"].as_array().is_some_and(|all| all.iter().any(|field| field == name));
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{above}{name}");
        let (inner, of_list) = schema.get("items").map_or((schema, ""), |items| (items, "[]"));
        let below = format!("{path}{of_list}.");
        found.push(Field { path, required: required(name), schema });
        gather(&below, inner, found);
    }
}

impl Field<'_> {
    /// What it is, in the words of JSON Schema.
    pub(super) fn kind(&self) -> String {
        let kind = |schema: &Value| schema["type"].as_str().unwrap_or("any").to_owned();
        let of = self.schema.get("items").map(|items| format!(" of {}", kind(items)));
        kind(self.schema) + &of.unwrap_or_default()
    }

    /// What it may hold, as Markdown for a cell.
    pub(super) fn limits(&self) -> String {
        let mut limits = limits(self.schema);
        if let items @ Value::Object(_) = &self.schema["items"] {
            limits.extend(self::limits(items).into_iter().map(|limit| format!("each {limit}")));
        }
        limits.join("; ")
    }

    /// What it means, as Markdown for a cell.
    pub(super) fn meaning(&self) -> String {
        text(self.schema["description"].as_str().unwrap_or_default())
    }
}

fn limits(schema: &Value) -> Vec<String> {
    let mut limits = Vec::new();
    if let Value::Array(words) = &schema["enum"] {
        let words: Vec<String> = words.iter().map(|word| code(word.as_str().unwrap_or(&word.to_string()))).collect();
        limits.push(words.join(" or "));
    }
    limits.extend(range(&schema["minimum"], &schema["maximum"], ""));
    limits.extend(range(&schema["minLength"], &schema["maxLength"], " characters"));
    limits.extend(range(&schema["minItems"], &schema["maxItems"], " entries"));
    if let Some(pattern) = schema["pattern"].as_str() {
        limits.push(format!("matches {}", code(pattern)));
    }
    limits
}

fn range(least: &Value, most: &Value, unit: &str) -> Option<String> {
    match (least, most) {
        (Value::Null, Value::Null) => None,
        // No number of anything is below 0.
        (least, Value::Null) if *least == 0 => None,
        (least, Value::Null) => Some(format!("at least {least}{unit}")),
        (Value::Null, most) => Some(format!("at most {most}{unit}")),
        (least, most) if least == most => Some(format!("{least}{unit}")),
        (least, most) => Some(format!("{least} to {most}{unit}")),
    }
}
