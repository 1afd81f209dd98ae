//! YAML, edited where it stands: in brackets as JSON is, and in lines by whole lines at the end of a mapping.
//!
//! A mapping in lines cannot be empty: with its last line it becomes null, and a null becomes a mapping with its first one.

mod tree;

use granit_parser::ScalarStyle;
use serde_json::{Map, Value};

use self::tree::{Layout, Node, Place, Tree, What, after_colon};
use super::brackets::{Brackets, Comments};
use super::{EditError, Step, end_of_line, indent, named, newline, part, start_of_line};

/// What a text means; `None` where there is nothing but space, comments and marks.
pub(super) fn meaning(text: &str) -> Result<Option<Value>, EditError> {
    Tree::read(text)?.meaning(text)
}

/// Puts an item behind all others.
pub(super) fn insert(text: &str, way: &[Step], key: Option<&str>, value: &Value) -> Result<String, EditError> {
    let tree = Tree::read(text)?;
    if let (None, [], Some(key)) = (&tree.root, way, key) {
        return put(text, tree.end, &block(key, value, 0, 2));
    }
    let place = tree.find(text, way)?;
    match (&place.node.what, key) {
        (What::Map { items, .. }, _) if items.iter().any(|(key, _)| key.is_merge()) => {
            Err(EditError::Form(format!("{} takes members from elsewhere with <<; write them out", named(way))))
        }
        (What::Map { layout: Layout::Block { column }, items }, Some(key)) => {
            let last = items.last().map_or(place.node.range.end, |(key, value)| value.end(text, Some(key)));
            let end = match way {
                [] => tree.end,
                _ => behind(&text[..tree.end], end_of_lines(text, last), *column),
            };
            put(text, end, &block(key, value, *column, tree.unit(place.node)))
        }
        (What::Map { .. } | What::List { layout: Layout::Flow, .. }, _) => Ok(put_flow(text, &place, key, value)?),
        (What::Scalar { .. }, Some(key)) if place.node.is_null() => {
            let (start, end) = null(text, &place).ok_or_else(|| unwritten(way))?;
            let Layout::Block { column } = place.around else { return Err(unwritten(way)) };
            let bare = [&text[..start], &text[end..]].concat();
            let limit = tree.end - (end - start);
            let at = behind(&bare[..limit], end_of_line(&bare, start), column + 1);
            let unit = tree.unit(place.node);
            put(&bare, at, &block(key, value, column + unit, unit))
        }
        (What::List { .. }, _) => Err(EditError::Form(format!("the list at {} is not edited in YAML", named(way)))),
        (What::Scalar { .. } | What::Alias(_), _) => Err(unwritten(way)),
    }
}

fn unwritten(way: &[Step]) -> EditError {
    EditError::Form(format!("{} holds nothing; write {{}} there", named(way)))
}

/// Puts lines at the start of a line, or behind a last line that has no newline, where they have none either.
fn put(text: &str, at: usize, lines: &[String]) -> Result<String, EditError> {
    let newline = newline(text);
    let block = lines.join(newline);
    let (head, tail) = text.split_at(at);
    if head.is_empty() || head.ends_with('\n') {
        return Ok([head, &block, newline, tail].concat());
    }
    if Tree::is_open(text) {
        let why = "the text at its end has no newline, and readers differ in what it means; end it with one";
        return Err(EditError::Form(why.to_owned()));
    }
    Ok([head, newline, &block, tail].concat())
}

/// Puts an item into a container in brackets, on one line.
fn put_flow(text: &str, place: &Place<'_>, key: Option<&str>, value: &Value) -> Result<String, EditError> {
    let container = brackets(text, place.node).ok_or_else(|| EditError::Differs(named(&[])))?;
    let end = container.end(text);
    let before = match container.items.last() {
        None => container.space(text).to_owned(),
        Some(last) => {
            let count = container.items.len();
            let before = &text[container.gap(text, count - 1).end..last.start];
            let is_blank = before.trim().is_empty();
            if is_blank && before.contains('\n') {
                [newline(text), indent(text, last.start)].concat()
            } else if end.ends_in_line_comment {
                [newline(text), indent(text, last.start), "  "].concat()
            } else if is_blank && count > 1 {
                before.to_owned()
            } else {
                " ".to_owned()
            }
        }
    };
    let after = if end.comma.is_some() { "," } else { "" };
    let item = match key {
        Some(key) => format!("{}: {}", scalar(key), flow(value)),
        None => flow(value),
    };
    Ok(container.insert(text, &before, &item, after))
}

/// Puts another value in a value's place.
pub(super) fn replace(text: &str, way: &[Step], value: &Value) -> Result<String, EditError> {
    let tree = Tree::read(text)?;
    let place = tree.find(text, way)?;
    let range = match &place.node.what {
        What::Scalar { .. } if place.node.is_missing() => {
            let (start, end) = null(text, &place).ok_or_else(|| unwritten(way))?;
            return Ok([&text[..start], " ", &flow(value), &text[end..]].concat());
        }
        What::Scalar { style, .. } if !matches!(style, ScalarStyle::Literal | ScalarStyle::Folded) => {
            place.node.range.clone()
        }
        What::Scalar { .. } | What::Alias(_) | What::Map { .. } | What::List { .. } => {
            return Err(EditError::Form(format!("{} is no value on one line; take it out by hand", named(way))));
        }
    };
    Ok([&text[..range.start], &flow(value), &text[range.end..]].concat())
}

/// Takes an item out: the exact opposite of [`insert`] for the last one, and for one that others were put behind.
pub(super) fn remove(text: &str, way: &[Step]) -> Result<String, EditError> {
    let differs = || EditError::Differs(named(way));
    let (last, above) = way.split_last().ok_or_else(differs)?;
    let tree = Tree::read(text)?;
    let place = tree.find(text, above)?;
    let item = tree.look(way).ok_or_else(differs)?;
    let (What::Map { layout: Layout::Block { .. }, .. }, Some(key)) = (&place.node.what, item.key) else {
        let container = brackets(text, place.node);
        let container = container.ok_or_else(|| EditError::Form(format!("{} is not edited in YAML", named(above))))?;
        let index = match (last, &place.node.what) {
            (Step::Index(index), _) => Some(*index),
            (Step::Key(_), What::Map { items, .. }) => {
                items.iter().position(|(key, _)| item.key.is_some_and(|ours| ours.range == key.range))
            }
            (Step::Key(_), _) => None,
        };
        return index.and_then(|index| container.remove(text, index)).ok_or_else(differs);
    };
    let start = start_of_line(text, key.range.start);
    if text[start..key.range.start].trim().starts_with('-') {
        return Err(EditError::Form(format!("{} begins on a line of a list; take it out by hand", named(way))));
    }
    let end = end_of_lines(text, item.node.end(text, Some(key)));
    let mut head = &text[..start];
    if end == text.len() && !text.ends_with('\n') {
        // Its newline came with it, unless what stands before needs that now.
        let bare = head.strip_suffix('\n').map(|head| head.strip_suffix('\r').unwrap_or(head));
        head = bare.filter(|bare| !Tree::is_open(bare) && meaning(bare) == meaning(head)).unwrap_or(head);
    }
    let mut tail = &text[end..];
    if meaning(head) != meaning(&[head, "\n"].concat()) {
        // Empty lines would go over to the text before, which keeps all of them.
        tail = without_empty_lines(tail);
    }
    Ok([head, tail].concat())
}

/// What stands where an empty container has nothing: between its brackets, or the null that it is.
pub(super) fn space(text: &str, way: &[Step]) -> Option<String> {
    let tree = Tree::read(text).ok()?;
    let place = tree.look(way)?;
    if let Some(container) = brackets(text, place.node) {
        return Some(container.space(text).to_owned());
    }
    let (start, end) = null(text, &place)?;
    Some(text[start..end].to_owned())
}

/// Whether a comment stands in an empty container.
pub(super) fn is_commented(text: &str, way: &[Step]) -> bool {
    let Ok(tree) = Tree::read(text) else { return false };
    let Some(place) = tree.look(way) else { return false };
    if let Some(container) = brackets(text, place.node) {
        return container.is_commented(text);
    }
    let (Some((_, end)), Layout::Block { column }) = (null(text, &place), place.around) else { return false };
    let line = end_of_line(text, end);
    text[end..line].trim_start().starts_with('#') || behind(&text[..tree.end], line, column + 1) > line
}

/// Gives an empty container back what [`space`] says, as far as it is still written in that way.
pub(super) fn set_space(text: &str, way: &[Step], space: &str) -> Result<String, EditError> {
    let differs = || EditError::Differs(named(way));
    let tree = Tree::read(text)?;
    let place = tree.look(way).ok_or_else(differs)?;
    if let Some(container) = brackets(text, place.node) {
        return Ok(container.set_space(text, space).unwrap_or_else(|| text.to_owned()));
    }
    let (start, end) = null(text, &place).ok_or_else(differs)?;
    let space = if matches!(space.trim(), "~" | "null" | "Null" | "NULL") { space } else { "" };
    Ok([&text[..start], space, &text[end..]].concat())
}

/// Makes null in what is meant of a mapping in lines that has lost its last one.
pub(super) fn forget_empty(meant: &mut Option<Value>, way: &[Step], text: &str) {
    let Ok(mut is) = meaning(text) else { return };
    let is_empty = part(meant, way).is_some_and(|value| value.as_object().is_some_and(Map::is_empty));
    match part(&mut is, way) {
        None if is_empty && way.is_empty() => *meant = None,
        Some(Value::Null) if is_empty => {
            if let Some(place) = part(meant, way) {
                *place = Value::Null;
            }
        }
        _ => {}
    }
}

/// Where the null is written that is the value of a key, from behind the colon.
fn null(text: &str, place: &Place<'_>) -> Option<(usize, usize)> {
    let colon = after_colon(text, place.key.filter(|_| place.node.is_null())?)?;
    Some((colon, place.node.range.end.max(colon)))
}

/// A container in brackets.
fn brackets(text: &str, node: &Node) -> Option<Brackets> {
    let items = match &node.what {
        What::Map { layout: Layout::Flow, items } => {
            items.iter().map(|(key, value)| key.range.start..value.end(text, Some(key))).collect()
        }
        What::List { layout: Layout::Flow, items } => {
            items.iter().map(|item| item.range.start..item.end(text, None)).collect()
        }
        What::Map { .. } | What::List { .. } | What::Scalar { .. } | What::Alias(_) => return None,
    };
    Some(Brackets { range: node.range.clone(), items, comments: Comments::Hash })
}

/// The end of the last line of something that ends there, its newline included. A block scalar has that already.
fn end_of_lines(text: &str, end: usize) -> usize {
    if text[..end].ends_with('\n') { end } else { end_of_line(text, end) }
}

fn without_empty_lines(text: &str) -> &str {
    let blank = text.len() - text.trim_start().len();
    &text[text[..blank].rfind('\n').map_or(0, |end| end + 1)..]
}

/// Behind the comments that follow in this column, or further in.
fn behind(text: &str, from: usize, column: usize) -> usize {
    let (mut at, mut end) = (from, from);
    while at < text.len() {
        let next = end_of_line(text, at);
        let line = text[at..next].trim_start_matches(' ');
        match line.trim() {
            "" => {}
            comment if comment.starts_with('#') && next - at - line.len() >= column => end = next,
            _ => break,
        }
        at = next;
    }
    end
}

/// The lines of a member that begins in this column.
fn block(key: &str, value: &Value, column: usize, unit: usize) -> Vec<String> {
    let start = [&" ".repeat(column), &scalar(key), ":"].concat();
    if let Some(members) = value.as_object().filter(|members| !members.is_empty()) {
        let inner = members.iter().flat_map(|(key, value)| block(key, value, column + unit, unit));
        return std::iter::once(start).chain(inner).collect();
    }
    // A list of words reads best on one line.
    vec![[&start, " ", &flow(value)].concat()]
}

/// A value on one line.
fn flow(value: &Value) -> String {
    match value {
        Value::String(text) => scalar(text),
        Value::Array(elements) => format!("[{}]", elements.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Value::Object(members) => {
            let members = members.iter().map(|(key, value)| format!("{}: {}", scalar(key), flow(value)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

/// The words that readers of YAML 1.1 or 1.2 take for something else than text.
const WORDS: &[&str] = &["y", "n", "yes", "no", "on", "off", "true", "false", "null"];

/// Text that every reader takes for text: as it stands only where no reader could see anything else in it.
fn scalar(text: &str) -> String {
    let begins = text.starts_with(|char: char| char.is_ascii_alphabetic() || char == '/');
    let is_plain = begins && text.chars().all(|char| char.is_ascii_alphanumeric() || "_-./".contains(char));
    if is_plain && !WORDS.iter().any(|word| text.eq_ignore_ascii_case(word)) {
        return text.to_owned();
    }
    // A JSON string is one of YAML, but for what is a line break to YAML 1.1 or cannot be printed.
    let mut quoted = String::new();
    for char in Value::from(text).to_string().chars() {
        match char {
            '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => {
                quoted.push_str(&format!("\\u{:04x}", u32::from(char)));
            }
            char => quoted.push(char),
        }
    }
    quoted
}
