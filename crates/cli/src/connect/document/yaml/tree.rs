//! What a YAML text consists of, and where each part stands.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use granit_parser::{Event, Parser, ScalarStyle, Span, StrInput, StructureStyle, Tag};
use serde_json::{Map, Number, Value};

use super::super::{EditError, Step, named, place};

/// The most parts that aliases may stand for, all in all: a few lines can stand for more than any memory holds.
const MOST: usize = 100_000;
/// How deep containers may stand in each other, of either kind: no stack may be too small for a text.
const DEEPEST: usize = 100;

/// The tag of what is text, however it looks.
const STR: &str = "!!str";

/// One document.
pub(super) struct Tree {
    /// What it holds; `None` where there is nothing but space, comments and marks.
    pub(super) root: Option<Node>,
    /// Where it ends: at its end mark, or with the text.
    pub(super) end: usize,
    /// The anchors that aliases name.
    aliased: BTreeSet<usize>,
}

/// One part of it.
pub(super) struct Node {
    /// Where it stands, without anchor and tag; of a container in lines only where it begins.
    pub(super) range: Range<usize>,
    /// The number of its anchor; 0 where it has none.
    anchor: usize,
    /// Its tag, if it is none of those that say what a value is anyway.
    tag: Option<String>,
    pub(super) what: What,
}

/// What a part is.
pub(super) enum What {
    Scalar { text: String, style: ScalarStyle },
    Alias(usize),
    Map { layout: Layout, items: Vec<(Node, Node)> },
    List { layout: Layout, items: Vec<Node> },
}

/// How a container is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// In brackets.
    Flow,
    /// Each item on lines of its own; the keys of a mapping begin in this column, counted from 0.
    Block { column: usize },
}

/// A part, and where it is.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) node: &'a Node,
    /// Its key, where it is the value of one.
    pub(super) key: Option<&'a Node>,
    /// How the container around it is written.
    pub(super) around: Layout,
}

impl Tree {
    /// Reads a text that holds one document at most. Readers differ in what a block scalar means that ends with the text and
    /// without a newline: for most, and here, it has none.
    pub(super) fn read(text: &str) -> Result<Self, EditError> {
        Self::read_as(text, true)
    }

    /// Whether the text ends in a way that readers make different things of.
    pub(super) fn is_open(text: &str) -> bool {
        let strict = || Self::read_as(text, false).and_then(|tree| tree.meaning(text));
        !text.ends_with('\n') && strict() != Self::read(text).and_then(|tree| tree.meaning(text))
    }

    fn read_as(text: &str, open: bool) -> Result<Self, EditError> {
        let options = granit_parser::options! {
            block_scalar_eof_without_line_feed: open,
            emit_comments: false,
            flow_nesting_limit: DEEPEST,
            block_nesting_limit: DEEPEST,
        };
        let parser = Parser::new_from_str_with_options(text, options);
        let mut reader = Reader { text, parser, aliased: BTreeSet::new() };
        let mut tree = Self { root: None, end: text.len(), aliased: BTreeSet::new() };
        let mut documents = 0;
        while let Some((event, span)) = reader.next()? {
            let start = range(&span).start;
            if matches!(event, Event::DocumentStart(..)) {
                documents += 1;
                if documents > 1 {
                    return Err(EditError::Form("it holds several documents".to_owned()));
                }
                tree.root = Some(reader.node()?).filter(|root| !root.is_missing());
            } else if event == Event::DocumentEnd && text[start..].starts_with("...") {
                tree.end = start;
            }
        }
        Ok(Self { aliased: reader.aliased, ..tree })
    }

    /// What it means, as JSON would say it.
    pub(super) fn meaning(&self, text: &str) -> Result<Option<Value>, EditError> {
        let mut reading = Reading { text, known: BTreeMap::new(), left: MOST };
        self.root.as_ref().map(|root| Ok(reading.value(root)?.0)).transpose()
    }

    /// Finds a part; `None` where it is not there, or an alias stands on the way.
    pub(super) fn look(&self, way: &[Step]) -> Option<Place<'_>> {
        let root = Place { node: self.root.as_ref()?, key: None, around: Layout::Block { column: 0 } };
        way.iter().try_fold(root, |place, step| match (&place.node.what, step) {
            (What::Map { layout, items }, Step::Key(name)) => {
                let (key, node) = items.iter().find(|(key, _)| key.is_text(name))?;
                Some(Place { node, key: Some(key), around: *layout })
            }
            (What::List { layout, items }, Step::Index(index)) => {
                Some(Place { node: items.get(*index)?, key: None, around: *layout })
            }
            (What::Map { .. } | What::List { .. } | What::Scalar { .. } | What::Alias(_), _) => None,
        })
    }

    /// Finds a part that is to be changed.
    ///
    /// # Errors
    /// [`EditError::Form`] where more than that part would change, or nobody can say what does.
    pub(super) fn find(&self, text: &str, way: &[Step]) -> Result<Place<'_>, EditError> {
        for depth in 0..=way.len() {
            let Some(Place { node, .. }) = self.look(&way[..depth]) else { break };
            let at = named(&way[..depth]);
            if let What::Alias(_) = node.what {
                let alias = &text[node.range.clone()];
                return Err(EditError::Form(format!("{at} is the alias {alias}; write out what it stands for")));
            }
            if self.aliased.contains(&node.anchor) {
                return Err(EditError::Form(format!("{at} is what an alias stands for, which would change too")));
            }
            if let Some(tag) = node.tag.as_ref().filter(|tag| *tag != STR) {
                return Err(EditError::Form(format!("{at} has the tag {tag}, which only its reader knows")));
            }
        }
        self.look(way).ok_or_else(|| EditError::Differs(named(way)))
    }

    /// By how much one level is indented: below this part, else anywhere.
    pub(super) fn unit(&self, node: &Node) -> usize {
        node.unit().or_else(|| self.root.as_ref()?.unit()).unwrap_or(2)
    }
}

impl Node {
    /// Whether nothing is written where it would stand.
    pub(super) fn is_missing(&self) -> bool {
        self.is_null() && self.range.is_empty()
    }

    /// Whether it is null, and nothing besides.
    pub(super) fn is_null(&self) -> bool {
        let is_null = matches!(&self.what, What::Scalar { text, style: ScalarStyle::Plain } if is_null(text));
        is_null && self.anchor == 0 && self.tag.is_none()
    }

    fn is_text(&self, name: &str) -> bool {
        matches!(&self.what, What::Scalar { text, style } if text == name && scalar(text, *style, None).is_string())
    }

    /// Whether it is a key that takes over the members of another mapping.
    pub(super) fn is_merge(&self) -> bool {
        matches!(&self.what, What::Scalar { text, style: ScalarStyle::Plain } if text == "<<")
    }

    /// Where the last of it ends, and of an item whose value is missing its colon.
    pub(super) fn end(&self, text: &str, key: Option<&Self>) -> usize {
        match &self.what {
            What::Map { layout: Layout::Block { .. }, items } => {
                items.last().map_or(self.range.end, |(key, value)| value.end(text, Some(key)))
            }
            What::List { layout: Layout::Block { .. }, items } => {
                items.last().map_or(self.range.end, |item| item.end(text, None))
            }
            What::Scalar { style: ScalarStyle::Literal | ScalarStyle::Folded, .. } => {
                // The blanks before what follows are none of it.
                let head = text[..self.range.end].trim_end_matches(' ');
                if head.ends_with('\n') { head.len() } else { self.range.end }
            }
            What::Scalar { .. } if self.is_missing() => {
                let colon = key.and_then(|key| after_colon(text, key));
                colon.unwrap_or(self.range.end).max(self.range.end)
            }
            What::Scalar { .. } | What::Alias(_) | What::Map { .. } | What::List { .. } => self.range.end,
        }
    }

    fn unit(&self) -> Option<usize> {
        match &self.what {
            What::Map { layout: Layout::Block { column }, items } => {
                let deeper = |value: &Self| match value.what {
                    What::Map { layout: Layout::Block { column: inner }, .. } => inner.checked_sub(*column),
                    What::Map { .. } | What::List { .. } | What::Scalar { .. } | What::Alias(_) => None,
                };
                let all = || items.iter().map(|(_, value)| value);
                all().find_map(deeper).filter(|unit| *unit > 0).or_else(|| all().find_map(Self::unit))
            }
            What::List { items, .. } => items.iter().find_map(Self::unit),
            What::Map { .. } | What::Scalar { .. } | What::Alias(_) => None,
        }
    }
}

/// Where the colon behind a key ends.
pub(super) fn after_colon(text: &str, key: &Node) -> Option<usize> {
    let rest = text[key.range.end..].trim_start();
    rest.starts_with(':').then(|| text.len() - rest.len() + 1)
}

fn range(span: &Span) -> Range<usize> {
    // A text that is in memory has byte offsets.
    span.byte_range().unwrap_or_default()
}

struct Reader<'a> {
    text: &'a str,
    parser: Parser<'a, StrInput<'a>>,
    aliased: BTreeSet<usize>,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Result<Option<(Event<'a>, Span)>, EditError> {
        self.parser.next_event().transpose().map_err(|error| {
            let (line, column) = place(self.text, error.marker().byte_offset().unwrap_or_default());
            EditError::Syntax { line, column, what: error.info() }
        })
    }

    fn node(&mut self) -> Result<Node, EditError> {
        let next = self.next()?;
        self.node_of(next)
    }

    fn node_of(&mut self, next: Option<(Event<'a>, Span)>) -> Result<Node, EditError> {
        // The parser says where its events end.
        let (event, span) = next.ok_or_else(|| EditError::Differs(named(&[])))?;
        let mut range = range(&span);
        let (anchor, tag, what) = match event {
            Event::Scalar(text, style, anchor, tag) => (anchor, tag, What::Scalar { text: text.into_owned(), style }),
            Event::Alias(of) => {
                self.aliased.insert(of);
                (0, None, What::Alias(of))
            }
            Event::SequenceStart(style, anchor, tag) => {
                let mut items = Vec::new();
                let end = loop {
                    match self.next()? {
                        Some((Event::SequenceEnd, end)) => break end,
                        next => items.push(self.node_of(next)?),
                    }
                };
                if style == StructureStyle::Flow {
                    range.end = self::range(&end).end;
                }
                (anchor, tag, What::List { layout: layout(style, None), items })
            }
            Event::MappingStart(style, anchor, tag) => {
                let (mut items, mut column) = (Vec::new(), None);
                let end = loop {
                    match self.next()? {
                        Some((Event::MappingEnd, end)) => break end,
                        next => {
                            column = column.or(next.as_ref().and_then(|(_, span)| span.indent));
                            items.push((self.node_of(next)?, self.node()?));
                        }
                    }
                };
                if style == StructureStyle::Flow {
                    range.end = self::range(&end).end;
                }
                (anchor, tag, What::Map { layout: layout(style, column), items })
            }
            Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(..)
            | Event::DocumentEnd
            | Event::UnresolvedAlias(_)
            | Event::Anchor(..)
            | Event::SequenceEnd
            | Event::MappingEnd
            | _ => return Err(EditError::Differs(named(&[]))),
        };
        let says_nothing = |tag: &Tag| matches!(tag.core_suffix(), Some("map" | "seq"));
        let tag = tag.map(Cow::into_owned).filter(|tag| !says_nothing(tag)).map(|tag| tag.original());
        Ok(Node { range, anchor, tag, what })
    }
}

fn layout(style: StructureStyle, column: Option<usize>) -> Layout {
    match style {
        StructureStyle::Flow => Layout::Flow,
        StructureStyle::Block => Layout::Block { column: column.unwrap_or_default() },
    }
}

/// What is known of a text's values so far.
struct Reading<'a> {
    text: &'a str,
    /// What anchors stand for, and of how many parts that is.
    known: BTreeMap<usize, (Value, usize)>,
    /// How many parts aliases may still stand for.
    left: usize,
}

impl Reading<'_> {
    fn value(&mut self, node: &Node) -> Result<(Value, usize), EditError> {
        let (value, size) = match &node.what {
            What::Scalar { text, style } => (scalar(text, *style, node.tag.as_deref()), 1),
            What::Alias(of) => {
                let (line, column) = place(self.text, node.range.start);
                let at = || format!("line {line}, column {column}: ");
                let (value, size) =
                    self.known.get(of).ok_or_else(|| EditError::Form(at() + "an alias stands for what it is in"))?;
                let left = self.left.checked_sub(*size);
                self.left = left.ok_or_else(|| EditError::Form(at() + "its aliases stand for too much"))?;
                (value.clone(), *size)
            }
            What::List { items, .. } => {
                let mut size = 1;
                let mut elements = Vec::new();
                for item in items {
                    let (element, long) = self.value(item)?;
                    elements.push(element);
                    size += long;
                }
                (Value::Array(elements), size)
            }
            What::Map { items, .. } => {
                let mut size = 1;
                let mut members = Map::new();
                for (key, value) in items {
                    let name = match self.value(key)?.0 {
                        Value::String(name) => name,
                        // The number 1 is another key than the text 1.
                        other @ (Value::Null
                        | Value::Bool(_)
                        | Value::Number(_)
                        | Value::Array(_)
                        | Value::Object(_)) => {
                            format!("\0{other}")
                        }
                    };
                    let (value, long) = self.value(value)?;
                    size += long;
                    if members.contains_key(&name) {
                        let (line, column) = place(self.text, key.range.start);
                        return Err(EditError::Twice { key: name, line, column });
                    }
                    members.insert(name, value);
                }
                (Value::Object(members), size)
            }
        };
        if node.anchor != 0 {
            self.known.insert(node.anchor, (value.clone(), size));
        }
        Ok((value, size))
    }
}

/// What a scalar means by the core schema of YAML 1.2. A number that JSON writes in another way is only compared.
fn scalar(text: &str, style: ScalarStyle, tag: Option<&str>) -> Value {
    match tag {
        Some(STR | "!") => return Value::String(text.to_owned()),
        Some(tag) if !tag.starts_with("!!") => return Value::String(format!("{tag} {text}")),
        _ => {}
    }
    match text {
        _ if style != ScalarStyle::Plain => Value::String(text.to_owned()),
        null if is_null(null) => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        text => text.parse::<Number>().map_or_else(|_| Value::String(text.to_owned()), Value::Number),
    }
}

fn is_null(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
}
