//! TOML, edited where it stands. What is put in is a table of its own at the end, which no other line has to know of.

use std::fmt::Write as _;

use serde_json::{Map, Number, Value};
use toml_edit::{Array, Document, Item, Table, TableLike};

use super::{EditError, Step, end_of_line, named, newline, place, start_of_line};

fn parse(text: &str) -> Result<Document<&str>, EditError> {
    Document::parse(text).map_err(|error| {
        let (line, column) = place(text, error.span().map_or(0, |span| span.start));
        EditError::Syntax { line, column, what: error.message().lines().collect::<Vec<_>>().join(", ") }
    })
}

/// What a text means, as JSON would say it.
pub(super) fn meaning(text: &str) -> Result<Value, EditError> {
    Ok(table(parse(text)?.as_table()))
}

fn table(table: &dyn TableLike) -> Value {
    Value::Object(table.iter().map(|(key, item)| (key.to_owned(), convert(item))).collect())
}

fn convert(item: &Item) -> Value {
    match item {
        Item::None => Value::Null,
        Item::Value(value) => convert_value(value),
        Item::Table(inner) => table(inner),
        Item::ArrayOfTables(tables) => Value::Array(tables.iter().map(|inner| table(inner)).collect()),
    }
}

fn convert_value(value: &toml_edit::Value) -> Value {
    match value {
        toml_edit::Value::String(text) => Value::String(text.value().clone()),
        toml_edit::Value::Integer(number) => Value::from(*number.value()),
        // What JSON has no number for is only compared.
        toml_edit::Value::Float(number) => {
            let number = *number.value();
            Number::from_f64(number).map_or_else(|| Value::String(number.to_string()), Value::Number)
        }
        toml_edit::Value::Boolean(word) => Value::Bool(*word.value()),
        toml_edit::Value::Datetime(time) => Value::String(time.value().to_string()),
        toml_edit::Value::Array(elements) => Value::Array(Array::iter(elements).map(convert_value).collect()),
        toml_edit::Value::InlineTable(inner) => table(inner),
    }
}

fn find<'a>(root: &'a Item, way: &[Step]) -> Option<&'a Item> {
    way.iter().try_fold(root, |item, step| match step {
        Step::Key(key) => item.get(key.as_str()),
        Step::Index(index) => item.get(*index),
    })
}

fn keys<'a>(way: &'a [Step], last: Option<&'a str>) -> Option<Vec<&'a str>> {
    let keys = way.iter().map(|step| match step {
        Step::Key(key) => Some(key.as_str()),
        Step::Index(_) => None,
    });
    keys.chain(last.map(Some)).collect()
}

/// Puts a table at the end, or a value behind the others of a table. Returns what was put before it.
pub(super) fn insert(
    text: &str,
    way: &[Step],
    key: Option<&str>,
    value: &Value,
) -> Result<(String, String), EditError> {
    let document = parse(text)?;
    let (Some(key), Some(path)) = (key, keys(way, key)) else {
        return Err(EditError::Form(format!("a list at {} is not edited in TOML", named(way))));
    };
    let container = find(document.as_item(), way).ok_or_else(|| EditError::Differs(named(way)))?;
    let Item::Table(container) = container else {
        return Err(EditError::Form(format!("{0} is an inline table; write it as [{0}]", named(way))));
    };
    let newline = newline(text);
    if let Value::Object(members) = value {
        let mut block = String::new();
        write_table(&mut block, &path, members, newline);
        let lead = if text.is_empty() || text.ends_with(&newline.repeat(2)) {
            String::new()
        } else if text.ends_with('\n') {
            newline.to_owned()
        } else {
            newline.repeat(2)
        };
        return Ok(([text, &lead, &block].concat(), lead));
    }
    // Behind the last of the table's own values, or its header.
    let last = container.iter().filter_map(|(_, item)| item.as_value()?.span()).map(|span| span.end).max();
    let from = last.or_else(|| container.span().map(|span| span.end));
    let from = from.filter(|_| !container.is_dotted() && (last.is_some() || !container.is_implicit()));
    let from = from.ok_or_else(|| EditError::Form(format!("{} has no place for one more value", named(way))))?;
    let end = end_of_line(text, from);
    let (head, tail) = text.split_at(end);
    let missing = if head.ends_with('\n') { "" } else { newline };
    Ok(([head, missing, &name(key), " = ", &literal(value), newline, tail].concat(), String::new()))
}

/// Writes a table and those below it, each under its own header.
fn write_table(out: &mut String, path: &[&str], members: &Map<String, Value>, newline: &str) {
    let is_table = |value: &&Value| value.is_object();
    let plain: Vec<_> = members.iter().filter(|(_, value)| !is_table(value)).collect();
    if !plain.is_empty() || members.is_empty() {
        if !out.is_empty() {
            out.push_str(newline);
        }
        let path = path.iter().map(|key| name(key)).collect::<Vec<_>>().join(".");
        let _ = write!(out, "[{path}]{newline}");
        for (key, value) in plain {
            let _ = write!(out, "{} = {}{newline}", name(key), literal(value));
        }
    }
    for (key, value) in members {
        if let Value::Object(members) = value {
            write_table(out, &[path, &[key.as_str()]].concat(), members, newline);
        }
    }
}

fn name(key: &str) -> String {
    let bare = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    if bare { key.to_owned() } else { text_literal(key) }
}

fn literal(value: &Value) -> String {
    match value {
        // TOML has no null; nothing that is declared has one.
        Value::Null => "\"\"".to_owned(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => text_literal(text),
        Value::Array(elements) => format!("[{}]", elements.iter().map(literal).collect::<Vec<_>>().join(", ")),
        Value::Object(members) => {
            let members = members.iter().map(|(key, value)| format!("{} = {}", name(key), literal(value)));
            format!("{{ {} }}", members.collect::<Vec<_>>().join(", "))
        }
    }
}

/// A JSON string is a basic string, but for one character that TOML wants escaped.
fn text_literal(text: &str) -> String {
    Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

/// Puts another value in a value's place.
pub(super) fn replace(text: &str, way: &[Step], value: &Value) -> Result<String, EditError> {
    let document = parse(text)?;
    let span = find(document.as_item(), way).and_then(Item::as_value).and_then(toml_edit::Value::span);
    let span = span.ok_or_else(|| EditError::Form(format!("{} is no single value", named(way))))?;
    Ok([&text[..span.start], &literal(value), &text[span.end..]].concat())
}

/// Takes a table out, wherever its parts stand, or a line with a value.
pub(super) fn remove(text: &str, way: &[Step], lead: Option<&str>) -> Result<String, EditError> {
    let document = parse(text)?;
    let item = find(document.as_item(), way).ok_or_else(|| EditError::Differs(named(way)))?;
    let mut cuts = Vec::new();
    match item {
        Item::Table(table) => blocks(text, table, &mut cuts),
        Item::Value(value) => {
            let (Some((Step::Key(key), above)), Some(span)) = (way.split_last(), value.span()) else {
                return Err(EditError::Differs(named(way)));
            };
            let above = find(document.as_item(), above).and_then(Item::as_table);
            let start = above.and_then(|table| table.key(key)).and_then(toml_edit::Key::span);
            let start = start.ok_or_else(|| {
                EditError::Form(format!("{} stands in an inline table; take it out there by hand", named(way)))
            })?;
            cuts.push((start_of_line(text, start.start), end_of_line(text, span.end)));
        }
        Item::None | Item::ArrayOfTables(_) => {
            return Err(EditError::Form(format!("{} is a list of tables", named(way))));
        }
    }
    cuts.sort_unstable();
    if let Some((start, end)) = cuts.first_mut()
        && matches!(item, Item::Table(_))
    {
        *start -= before(&text[..*start], &text[*end..], lead);
    }
    let mut kept = String::with_capacity(text.len());
    let mut from = 0;
    for (start, end) in cuts {
        // The lines of a dotted key are among those of its table.
        kept.push_str(text.get(from..start).unwrap_or_default());
        from = from.max(end);
    }
    kept.push_str(&text[from..]);
    Ok(kept)
}

/// How much of what stands before a table goes with it: what was put there with it, or one empty line.
fn before(head: &str, tail: &str, lead: Option<&str>) -> usize {
    let newline = newline(head);
    let closed = tail.is_empty() || tail.starts_with('\n') || tail.starts_with("\r\n");
    let own = match lead {
        Some(lead) => lead,
        None if closed && head.ends_with(&newline.repeat(2)) => newline,
        None => "",
    };
    if !head.ends_with(own) {
        return 0;
    }
    // What follows must not be joined to the line before.
    if closed || own.len() <= newline.len() { own.len() } else { own.len() - newline.len() }
}

/// The lines of a table and of those below it.
fn blocks(text: &str, table: &Table, cuts: &mut Vec<(usize, usize)>) {
    let mut own = Vec::new();
    if let Some(span) = table.span().filter(|_| !table.is_implicit()) {
        own.push((start_of_line(text, span.start), end_of_line(text, span.end)));
    }
    for (key, item) in table.iter() {
        match item {
            Item::Table(below) => blocks(text, below, cuts),
            Item::ArrayOfTables(tables) => tables.iter().for_each(|below| blocks(text, below, cuts)),
            Item::Value(value) => {
                let start = table.key(key).and_then(toml_edit::Key::span).or(value.span());
                if let (Some(start), Some(span)) = (start, value.span()) {
                    own.push((start_of_line(text, start.start), end_of_line(text, span.end)));
                }
            }
            Item::None => {}
        }
    }
    // Comments between its lines go with it, as far as the lines are in one piece.
    own.sort_unstable();
    let whole = own.first().zip(own.last()).map(|(first, last)| (first.0, last.1));
    cuts.extend(whole.filter(|_| !table.is_implicit()));
    if table.is_implicit() {
        cuts.extend(own);
    }
}

/// Takes out of what is meant the tables that no header names and that are gone with their last member.
pub(super) fn forget_implied(meant: &mut Option<Value>, way: &[Step], text: &str) {
    let Ok(is) = meaning(text) else { return };
    for depth in (1..=way.len()).rev() {
        let (last, above) = (&way[depth - 1], &way[..depth - 1]);
        let there = super::part(&mut Some(is.clone()), &way[..depth]).is_some();
        let empty = super::part(meant, &way[..depth]).is_some_and(|value| value.as_object().is_some_and(Map::is_empty));
        if let (false, true, Step::Key(key)) = (there, empty, last)
            && let Some(Value::Object(members)) = super::part(meant, above)
        {
            members.shift_remove(key);
        }
    }
}
