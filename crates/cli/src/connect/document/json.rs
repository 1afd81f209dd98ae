//! JSON with comments and trailing commas, edited where it stands.

use std::collections::BTreeSet;

use jsonc_parser::ast;
use jsonc_parser::common::{Range, Ranged};
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde_json::{Map, Number, Value};

use super::brackets::{Brackets, Comments, Gap};
use super::{EditError, Step, indent, named, newline, place};

/// What editors and the vendors' own readers of JSON with comments take, and nothing beyond.
const OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

fn parse(text: &str) -> Result<Option<ast::Value<'_>>, EditError> {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &OPTIONS);
    Ok(parsed.map_err(|error| syntax(text, error.range().start, error.kind().to_string()))?.value)
}

fn syntax(text: &str, offset: usize, what: String) -> EditError {
    let (line, column) = place(text, offset);
    EditError::Syntax { line, column, what }
}

/// What a text means; `None` where there is nothing but space and comments.
pub(super) fn meaning(text: &str) -> Result<Option<Value>, EditError> {
    parse(text)?.as_ref().map(|value| convert(text, value)).transpose()
}

fn convert(text: &str, value: &ast::Value<'_>) -> Result<Value, EditError> {
    Ok(match value {
        ast::Value::NullKeyword(_) => Value::Null,
        ast::Value::BooleanLit(literal) => Value::Bool(literal.value),
        ast::Value::StringLit(literal) => Value::String(literal.value.to_string()),
        // One that is too large for its type is only compared.
        ast::Value::NumberLit(literal) => {
            literal.value.parse::<Number>().map_or_else(|_| Value::String(literal.value.to_owned()), Value::Number)
        }
        ast::Value::Array(array) => {
            Value::Array(array.elements.iter().map(|value| convert(text, value)).collect::<Result<_, _>>()?)
        }
        ast::Value::Object(object) => {
            let mut seen = BTreeSet::new();
            let mut members = Map::new();
            for property in &object.properties {
                let key = property.name.as_str();
                if !seen.insert(key) {
                    let (line, column) = place(text, property.range.start);
                    return Err(EditError::Twice { key: key.to_owned(), line, column });
                }
                members.insert(key.to_owned(), convert(text, &property.value)?);
            }
            Value::Object(members)
        }
    })
}

fn find(text: &str, way: &[Step]) -> Result<Brackets, EditError> {
    let root = parse(text)?.ok_or_else(|| EditError::Differs(named(way)))?;
    let found = walk(&root, way).ok_or_else(|| EditError::Differs(named(way)))?;
    let range = |range: Range| range.start..range.end;
    let items = match found {
        ast::Value::Object(object) => object.properties.iter().map(|property| range(property.range)).collect(),
        ast::Value::Array(array) => array.elements.iter().map(|element| range(element.range())).collect(),
        ast::Value::StringLit(_)
        | ast::Value::NumberLit(_)
        | ast::Value::BooleanLit(_)
        | ast::Value::NullKeyword(_) => {
            return Err(EditError::Differs(named(way)));
        }
    };
    Ok(Brackets { range: range(found.range()), items, comments: Comments::Slashes })
}

fn walk<'a, 'b>(root: &'b ast::Value<'a>, way: &[Step]) -> Option<&'b ast::Value<'a>> {
    way.iter().try_fold(root, |value, step| match (value, step) {
        (ast::Value::Object(object), Step::Key(key)) => {
            object.properties.iter().find(|property| property.name.as_str() == key).map(|property| &property.value)
        }
        (ast::Value::Array(array), Step::Index(index)) => array.elements.get(*index),
        _ => None,
    })
}

/// How a document is laid out.
struct Layout<'a> {
    newline: &'static str,
    /// By how much one level is indented.
    unit: &'a str,
    /// What stands after a colon or a comma in one line.
    blank: &'static str,
    /// Whether it has more than one line.
    lines: bool,
}

impl<'a> Layout<'a> {
    fn of(text: &'a str, root: &std::ops::Range<usize>) -> Self {
        let inside = &text[root.clone()];
        let empty = inside[1..inside.len() - 1].trim().is_empty();
        let first = inside.find('\n').map(|end| root.start + end + 1);
        let unit = first.map(|line| indent(text, line)).filter(|unit| !unit.is_empty());
        let tight = inside.contains("\":") && !inside.contains("\": ") || inside.contains(",\"");
        Self {
            newline: newline(text),
            unit: unit.unwrap_or("  "),
            blank: if tight && first.is_none() { "" } else { " " },
            lines: empty || first.is_some(),
        }
    }

    /// What stands before an item behind `last`: what stands before that.
    fn behind(&self, text: &str, container: &Brackets, last: &std::ops::Range<usize>, end: &Gap) -> String {
        let count = container.items.len();
        let before = &text[container.gap(text, count - 1).end..last.start];
        if before.contains('\n') {
            [self.newline, indent(text, last.start)].concat()
        } else if end.ends_in_line_comment {
            [self.newline, indent(text, last.start), self.unit].concat()
        } else if count > 1 {
            before.to_owned()
        } else {
            self.blank.to_owned()
        }
    }

    /// What stands before and after the only item of a container.
    fn inside(&self, text: &str, container: &Brackets, end: &Gap) -> (String, String) {
        let space = &text[end.end..container.close()];
        if !self.lines && !end.ends_in_line_comment {
            return (space.to_owned(), String::new());
        }
        let base = indent(text, container.range.start);
        let after = if space.contains('\n') { String::new() } else { [self.newline, base].concat() };
        ([self.newline, base, self.unit].concat(), after)
    }

    /// Writes a value, over several lines where `indent` says where they begin.
    fn write(&self, out: &mut String, value: &Value, indent: Option<&str>) {
        let (open, close, items): (char, char, Vec<(Option<&str>, &Value)>) = match value {
            Value::Object(members) => ('{', '}', members.iter().map(|(key, value)| (Some(&**key), value)).collect()),
            Value::Array(elements) => ('[', ']', elements.iter().map(|value| (None, value)).collect()),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                out.push_str(&value.to_string());
                return;
            }
        };
        // A list of words reads best in one line.
        let plain = items.iter().all(|(key, value)| key.is_none() && !value.is_object() && !value.is_array());
        let indent = indent.filter(|_| !plain);
        let deeper = indent.map(|indent| [indent, self.unit].concat());
        out.push(open);
        for (index, (key, value)) in items.iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            match &deeper {
                Some(deeper) => out.extend([self.newline, deeper]),
                None if index > 0 => out.push_str(self.blank),
                None => {}
            }
            self.item(out, *key, value, deeper.as_deref());
        }
        if let Some(indent) = indent.filter(|_| !items.is_empty()) {
            out.extend([self.newline, indent]);
        }
        out.push(close);
    }

    fn item(&self, out: &mut String, key: Option<&str>, value: &Value, indent: Option<&str>) {
        if let Some(key) = key {
            out.push_str(&Value::from(key).to_string());
            out.push(':');
            out.push_str(if indent.is_some() { " " } else { self.blank });
        }
        self.write(out, value, indent);
    }
}

/// Puts an item behind all others.
pub(super) fn insert(text: &str, way: &[Step], key: Option<&str>, value: &Value) -> Result<String, EditError> {
    let container = find(text, way)?;
    let layout = Layout::of(text, &find(text, &[])?.range);
    let end = container.end(text);
    let (before, after) = match container.items.last() {
        Some(last) => (layout.behind(text, &container, last, &end), if end.comma.is_some() { "," } else { "" }.into()),
        None => layout.inside(text, &container, &end),
    };
    let deep = before.rfind('\n').map(|line| &before[line + 1..]);
    let mut item = String::new();
    layout.item(&mut item, key, value, deep);
    Ok(container.insert(text, &before, &item, &after))
}

/// Puts another value in a value's place.
pub(super) fn replace(text: &str, way: &[Step], value: &Value) -> Result<String, EditError> {
    let root = parse(text)?.ok_or_else(|| EditError::Differs(named(way)))?;
    let range = walk(&root, way).ok_or_else(|| EditError::Differs(named(way)))?.range();
    Ok([&text[..range.start], &value.to_string(), &text[range.end..]].concat())
}

/// Takes an item out, as [`Brackets::remove`] does.
pub(super) fn remove(text: &str, way: &[Step]) -> Result<String, EditError> {
    let (last, way) = way.split_last().ok_or_else(|| EditError::Differs(named(way)))?;
    let container = find(text, way)?;
    let index = match last {
        Step::Index(index) => *index,
        Step::Key(key) => {
            let root = parse(text)?.ok_or_else(|| EditError::Differs(named(way)))?;
            let object = walk(&root, way).and_then(ast::Value::as_object);
            let found = object.and_then(|object| object.properties.iter().position(|item| item.name.as_str() == key));
            found.ok_or_else(|| EditError::Differs(named(way)))?
        }
    };
    container.remove(text, index).ok_or_else(|| EditError::Differs(named(way)))
}

/// The space before the closing bracket of an empty container.
pub(super) fn space(text: &str, way: &[Step]) -> Option<String> {
    Some(find(text, way).ok()?.space(text).to_owned())
}

/// Whether a comment stands in an empty container.
pub(super) fn is_commented(text: &str, way: &[Step]) -> bool {
    find(text, way).is_ok_and(|container| container.is_commented(text))
}

/// Gives an empty container this space before its closing bracket.
pub(super) fn set_space(text: &str, way: &[Step], space: &str) -> Result<String, EditError> {
    find(text, way)?.set_space(text, space).ok_or_else(|| EditError::Differs(named(way)))
}

/// Takes out the root, its newline, and what was put before it.
pub(super) fn without_root(text: &str, before: &str) -> Result<String, EditError> {
    let root = find(text, &[])?;
    let head = &text[..root.range.start];
    let head = head.strip_suffix(before).unwrap_or(head);
    let tail = &text[root.range.end..];
    let tail = tail.strip_prefix("\r\n").or(tail.strip_prefix('\n')).unwrap_or(tail);
    Ok([head, tail].concat())
}
