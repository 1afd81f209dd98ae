//! JSON with comments and trailing commas, edited where it stands.

use std::collections::BTreeSet;

use jsonc_parser::ast;
use jsonc_parser::common::{Range, Ranged};
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde_json::{Map, Number, Value};

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

/// Where a container's brackets and its items stand.
struct Container {
    range: Range,
    items: Vec<Range>,
}

impl Container {
    fn find(text: &str, way: &[Step]) -> Result<Self, EditError> {
        let root = parse(text)?.ok_or_else(|| EditError::Differs(named(way)))?;
        let found = walk(&root, way).ok_or_else(|| EditError::Differs(named(way)))?;
        let items = match found {
            ast::Value::Object(object) => object.properties.iter().map(|property| property.range).collect(),
            ast::Value::Array(array) => array.elements.iter().map(Ranged::range).collect(),
            ast::Value::StringLit(_)
            | ast::Value::NumberLit(_)
            | ast::Value::BooleanLit(_)
            | ast::Value::NullKeyword(_) => {
                return Err(EditError::Differs(named(way)));
            }
        };
        Ok(Self { range: found.range(), items })
    }

    /// Where what is inside begins.
    fn inside(&self) -> usize {
        self.range.start + 1
    }

    /// Where the closing bracket stands.
    fn close(&self) -> usize {
        self.range.end - 1
    }

    /// What stands between the item before `index` and the item at `index`, or the bracket.
    fn gap(&self, text: &str, index: usize) -> Gap {
        let from = if index == 0 { self.inside() } else { self.items[index - 1].end };
        let to = self.items.get(index).map_or(self.close(), |item| item.start);
        Gap::read(text, from, to)
    }
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

/// What stands between two items: space, comments and at most one comma.
struct Gap {
    /// Where the comma stands.
    comma: Option<usize>,
    /// Where the last comment or the comma ends; where the gap begins, if it has neither.
    end: usize,
    /// Whether that was a comment up to the end of its line.
    ends_in_line_comment: bool,
    has_comment: bool,
}

impl Gap {
    fn read(text: &str, from: usize, to: usize) -> Self {
        let mut gap = Self { comma: None, end: from, ends_in_line_comment: false, has_comment: false };
        let mut at = from;
        while at < to {
            let rest = &text[at..to];
            let long = if rest.starts_with("//") {
                let line = rest.find('\n').unwrap_or(rest.len());
                rest[..line].trim_end_matches('\r').len()
            } else if rest.starts_with("/*") {
                rest.find("*/").map_or(rest.len(), |end| end + 2)
            } else if rest.starts_with(',') {
                gap.comma = Some(at);
                1
            } else {
                at += rest.chars().next().map_or(1, char::len_utf8);
                continue;
            };
            gap.ends_in_line_comment = rest.starts_with("//");
            gap.has_comment |= rest.starts_with('/');
            at += long;
            gap.end = at;
        }
        gap
    }
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
    fn of(text: &'a str, root: Range) -> Self {
        let inside = &text[root.start..root.end];
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
    fn behind(&self, text: &str, container: &Container, last: Range, end: &Gap) -> String {
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
    fn inside(&self, text: &str, container: &Container, end: &Gap) -> (String, String) {
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
    let container = Container::find(text, way)?;
    let layout = Layout::of(text, Container::find(text, &[])?.range);
    let end = container.gap(text, container.items.len());
    let (before, after) = match container.items.last() {
        Some(last) => (layout.behind(text, &container, *last, &end), if end.comma.is_some() { "," } else { "" }.into()),
        None => layout.inside(text, &container, &end),
    };
    let deep = before.rfind('\n').map(|line| &before[line + 1..]);
    let mut item = String::new();
    layout.item(&mut item, key, value, deep);
    // A comma for the last one that has none; what stands behind that on its line stays there.
    let last = container.items.last().filter(|_| end.comma.is_none()).map(|last| last.end);
    let (head, rest) = text[..end.end].split_at(last.unwrap_or(end.end));
    let comma = if last.is_some() { "," } else { "" };
    let rest_of_container = &text[end.end..];
    // Where it was empty the new line takes the place of the blanks, which whoever empties it again knows.
    let blanks = container.close() - end.end;
    let takes_place = container.items.is_empty() && !after.is_empty();
    let tail = if takes_place { &rest_of_container[blanks..] } else { rest_of_container };
    Ok([head, comma, rest, &before, &item, &after, tail].concat())
}

/// Puts another value in a value's place.
pub(super) fn replace(text: &str, way: &[Step], value: &Value) -> Result<String, EditError> {
    let root = parse(text)?.ok_or_else(|| EditError::Differs(named(way)))?;
    let range = walk(&root, way).ok_or_else(|| EditError::Differs(named(way)))?.range();
    Ok([&text[..range.start], &value.to_string(), &text[range.end..]].concat())
}

/// Takes an item out: the exact opposite of [`insert`] for the last one, and for one that others were put behind.
pub(super) fn remove(text: &str, way: &[Step]) -> Result<String, EditError> {
    let (last, way) = way.split_last().ok_or_else(|| EditError::Differs(named(way)))?;
    let container = Container::find(text, way)?;
    let index = match last {
        Step::Index(index) => *index,
        Step::Key(key) => {
            let root = parse(text)?.ok_or_else(|| EditError::Differs(named(way)))?;
            let object = walk(&root, way).and_then(ast::Value::as_object);
            let found = object.and_then(|object| object.properties.iter().position(|item| item.name.as_str() == key));
            found.ok_or_else(|| EditError::Differs(named(way)))?
        }
    };
    let item = container.items.get(index).copied().ok_or_else(|| EditError::Differs(named(way)))?;
    let (before, behind) = (container.gap(text, index), container.gap(text, index + 1));
    // The comma behind it, or where it is the last one and has none, the one before it.
    let comma = behind.comma.or(before.comma);
    let mut cuts = vec![(before.end, item.end)];
    let rest =
        behind.comma.filter(|comma| text[item.end..*comma].trim().is_empty()).map_or(item.end, |comma| comma + 1);
    if before.ends_in_line_comment && !text[rest..].trim_start_matches([' ', '\t', '\r']).starts_with('\n') {
        // What follows must not become a part of that comment.
        cuts[0].0 = item.start;
    }
    match comma {
        Some(comma) if comma < before.end => {
            // Where nothing stands between them it is one cut.
            if comma + 1 == before.end { cuts[0].0 = comma } else { cuts.insert(0, (comma, comma + 1)) }
        }
        Some(comma) => cuts.push((comma, comma + 1)),
        None => {}
    }
    let mut kept = String::with_capacity(text.len());
    let mut from = 0;
    for (start, end) in cuts {
        kept.push_str(&text[from..start]);
        from = end;
    }
    kept.push_str(&text[from..]);
    Ok(kept)
}

/// The space before the closing bracket of an empty container.
pub(super) fn space(text: &str, way: &[Step]) -> Option<String> {
    let container = Container::find(text, way).ok()?;
    Some(text[container.gap(text, 0).end..container.close()].to_owned())
}

/// Whether a comment stands in an empty container.
pub(super) fn is_commented(text: &str, way: &[Step]) -> bool {
    Container::find(text, way).is_ok_and(|container| container.gap(text, 0).has_comment)
}

/// Gives an empty container this space before its closing bracket.
pub(super) fn set_space(text: &str, way: &[Step], space: &str) -> Result<String, EditError> {
    let container = Container::find(text, way)?;
    if !container.items.is_empty() || !space.trim().is_empty() {
        return Err(EditError::Differs(named(way)));
    }
    Ok([&text[..container.gap(text, 0).end], space, &text[container.close()..]].concat())
}

/// Takes out the root, its newline, and what was put before it.
pub(super) fn without_root(text: &str, before: &str) -> Result<String, EditError> {
    let root = Container::find(text, &[])?;
    let head = &text[..root.range.start];
    let head = head.strip_suffix(before).unwrap_or(head);
    let tail = &text[root.range.end..];
    let tail = tail.strip_prefix("\r\n").or(tail.strip_prefix('\n')).unwrap_or(tail);
    Ok([head, tail].concat())
}
