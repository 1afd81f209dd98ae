//! A file of settings as text that is edited in place: what is not ours keeps every byte.
//!
//! A parser says what the text means and where each part stands; what changes is cut out of the text or put into it, never
//! printed anew. After each change the text is parsed again, and where it does not mean exactly what was meant the change is
//! refused.

mod brackets;
mod json;
mod toml;
mod yaml;

use majordomus_providers::Format;
use serde_json::{Map, Value};

/// One step from a value to a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// To the member of this name.
    Key(String),
    /// To the element at this place.
    Index(usize),
}

/// A way from the root to a part.
pub(super) type Way = Vec<Step>;

/// Makes a way of keys.
pub(super) fn way(keys: &[&str]) -> Way {
    keys.iter().map(|key| Step::Key((*key).to_owned())).collect()
}

/// Makes a longer way.
pub(super) fn to(way: &[Step], key: &str) -> Way {
    [way, &[Step::Key(key.to_owned())]].concat()
}

/// Makes a longer way to an element.
pub(super) fn at(way: &[Step], index: usize) -> Way {
    [way, &[Step::Index(index)]].concat()
}

/// Says why a file is left as it is.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum EditError {
    /// Not text in the only encoding that these files have.
    #[error("it is not UTF-8 text")]
    Encoding,
    /// Not a document of its format.
    #[error("line {line}, column {column}: {what}")]
    Syntax {
        /// Counted from 1.
        line: usize,
        /// Counted from 1, in characters.
        column: usize,
        /// In the parser's words.
        what: String,
    },
    /// What readers make of this differs.
    #[error("line {line}, column {column}: the key {key:?} stands there twice")]
    Twice {
        /// Which key.
        key: String,
        /// Of the second one.
        line: usize,
        /// Of the second one.
        column: usize,
    },
    /// Something else stands where ours belongs.
    #[error("{at} is {found}, not {wanted}")]
    Kind {
        /// Its keys, joined by dots.
        at: String,
        /// What belongs there.
        wanted: &'static str,
        /// What is there.
        found: &'static str,
    },
    /// A form that is valid and not edited here.
    #[error("{0}")]
    Form(String),
    /// A fault of ours, found before anything was written.
    #[error("the edit of {0} would have changed more than was meant")]
    Differs(String),
}

/// A document and what it means.
#[derive(Clone, Debug)]
pub(super) struct Document {
    format: Format,
    /// Whether a byte order mark stands before the text.
    marked: bool,
    text: String,
    /// What it means; `None` where there is nothing but space and comments.
    value: Option<Value>,
}

const MARK: &str = "\u{feff}";

impl Document {
    /// Reads a document.
    pub(super) fn parse(format: Format, bytes: &[u8]) -> Result<Self, EditError> {
        let text = std::str::from_utf8(bytes).map_err(|_| EditError::Encoding)?;
        let (marked, text) = text.strip_prefix(MARK).map_or((false, text), |rest| (true, rest));
        let value = meaning(format, text)?;
        Ok(Self { format, marked, text: text.to_owned(), value })
    }

    /// The file's bytes.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mark = if self.marked { MARK } else { "" };
        [mark, &self.text].concat().into_bytes()
    }

    /// Whether the document has no value at all and needs one before something can be put into it.
    pub(super) fn is_blank(&self) -> bool {
        self.value.is_none() && self.format != Format::Yaml
    }

    /// A part of what it means.
    pub(super) fn get(&self, way: &[Step]) -> Option<&Value> {
        way.iter().try_fold(self.value.as_ref()?, |value, step| match step {
            Step::Key(key) => value.get(key),
            Step::Index(index) => value.get(index),
        })
    }

    /// The members of the object there; an empty list where nothing is there.
    ///
    /// # Errors
    /// Where something else is there, or on the way.
    pub(super) fn members(&self, way: &[Step]) -> Result<Vec<String>, EditError> {
        for depth in 0..=way.len() {
            match self.get(&way[..depth]) {
                None => return Ok(Vec::new()),
                // A mapping in lines that has none.
                Some(Value::Null) if self.format == Format::Yaml => return Ok(Vec::new()),
                Some(Value::Object(members)) if depth == way.len() => return Ok(members.keys().cloned().collect()),
                Some(Value::Object(_)) => {}
                Some(Value::Array(_)) if matches!(way.get(depth), Some(Step::Index(_))) => {}
                Some(other) => return Err(kind_error(&way[..depth], "an object", other)),
            }
        }
        Ok(Vec::new())
    }

    /// How many elements the list there has; 0 where nothing is there.
    ///
    /// # Errors
    /// Where something else is there.
    pub(super) fn length(&self, way: &[Step]) -> Result<usize, EditError> {
        match self.get(way) {
            None => Ok(0),
            Some(Value::Array(elements)) => Ok(elements.len()),
            Some(other) => Err(kind_error(way, "a list", other)),
        }
    }

    /// Gives a blank document an empty object, and returns what it had to put before it.
    pub(super) fn begin(&mut self) -> Result<String, EditError> {
        let newline = newline(&self.text);
        let before = if self.text.is_empty() || self.text.ends_with('\n') { "" } else { newline };
        let text = [&self.text, before, "{}", newline].concat();
        self.accept(&[], text, Some(Value::Object(Map::new())))?;
        Ok(before.to_owned())
    }

    /// Takes out what [`Self::begin`] put in, the object being empty again.
    pub(super) fn unbegin(&mut self, before: &str) -> Result<(), EditError> {
        let text = json::without_root(&self.text, before)?;
        self.accept(&[], text, None)
    }

    /// Puts a member, or without a key an element, behind all others in the container there. Returns what has to be known to
    /// take it out again: what stood before it and is ours too (TOML).
    pub(super) fn insert(&mut self, way: &[Step], key: Option<&str>, value: &Value) -> Result<String, EditError> {
        let mut meant = self.value.clone();
        if self.format == Format::Yaml {
            let none = if key.is_some() { Value::Object(Map::new()) } else { Value::Array(Vec::new()) };
            match part(&mut meant, way) {
                Some(null @ Value::Null) => *null = none,
                None if way.is_empty() => meant = Some(none),
                _ => {}
            }
        }
        let container = part(&mut meant, way);
        match (container, key) {
            (Some(Value::Object(members)), Some(key)) => _ = members.insert(key.to_owned(), value.clone()),
            (Some(Value::Array(elements)), None) => elements.push(value.clone()),
            _ => return Err(EditError::Differs(named(way))),
        }
        let (text, lead) = match self.format {
            Format::Json => (json::insert(&self.text, way, key, value)?, String::new()),
            Format::Toml => toml::insert(&self.text, way, key, value)?,
            Format::Yaml => (yaml::insert(&self.text, way, key, value)?, String::new()),
        };
        self.accept(way, text, meant)?;
        Ok(lead)
    }

    /// Puts another value in the place of one that is no container.
    pub(super) fn replace(&mut self, way: &[Step], value: &Value) -> Result<(), EditError> {
        let mut meant = self.value.clone();
        match part(&mut meant, way) {
            Some(place) => *place = value.clone(),
            None => return Err(EditError::Differs(named(way))),
        }
        let text = match self.format {
            Format::Json => json::replace(&self.text, way, value)?,
            Format::Toml => toml::replace(&self.text, way, value)?,
            Format::Yaml => yaml::replace(&self.text, way, value)?,
        };
        self.accept(way, text, meant)
    }

    /// Takes out a part. `lead` is what [`Self::insert`] returned for it; `None` where nobody knows.
    pub(super) fn remove(&mut self, way: &[Step], lead: Option<&str>) -> Result<(), EditError> {
        let mut meant = self.value.clone();
        let (last, container) = way.split_last().ok_or_else(|| EditError::Differs(named(way)))?;
        match (part(&mut meant, container), last) {
            (Some(Value::Object(members)), Step::Key(key)) => _ = members.shift_remove(key),
            (Some(Value::Array(elements)), Step::Index(index)) if *index < elements.len() => {
                _ = elements.remove(*index)
            }
            _ => return Err(EditError::Differs(named(way))),
        }
        let text = match self.format {
            Format::Json => json::remove(&self.text, way)?,
            Format::Toml => toml::remove(&self.text, way, lead)?,
            Format::Yaml => yaml::remove(&self.text, way)?,
        };
        match self.format {
            Format::Json => {}
            Format::Toml => toml::forget_implied(&mut meant, container, &text),
            Format::Yaml => yaml::forget_empty(&mut meant, container, &text),
        }
        self.accept(way, text, meant)
    }

    /// What stands where the container there has nothing, if it is empty: the space before its closing bracket, or the null that
    /// it is in YAML. `None` where it is not empty.
    pub(super) fn space(&self, way: &[Step]) -> Option<String> {
        let empty = match self.get(way)? {
            Value::Object(members) => members.is_empty(),
            Value::Array(elements) => elements.is_empty(),
            Value::Null => self.format == Format::Yaml,
            Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        };
        match self.format {
            Format::Json if empty => json::space(&self.text, way),
            Format::Yaml if empty => yaml::space(&self.text, way),
            Format::Json | Format::Toml | Format::Yaml => None,
        }
    }

    /// Whether a comment stands in the empty container there.
    pub(super) fn is_commented(&self, way: &[Step]) -> bool {
        match self.format {
            Format::Json => json::is_commented(&self.text, way),
            Format::Toml => false,
            Format::Yaml => yaml::is_commented(&self.text, way),
        }
    }

    /// Whether there is nothing but space.
    pub(super) fn is_empty(&self) -> bool {
        self.text.trim().is_empty()
    }

    /// Gives the empty container there back what [`Self::space`] said.
    pub(super) fn set_space(&mut self, way: &[Step], space: &str) -> Result<(), EditError> {
        let text = match self.format {
            Format::Json | Format::Toml => json::set_space(&self.text, way, space)?,
            Format::Yaml => yaml::set_space(&self.text, way, space)?,
        };
        let meant = self.value.clone();
        self.accept(way, text, meant)
    }

    /// Takes a text over if it means what was meant.
    fn accept(&mut self, way: &[Step], text: String, meant: Option<Value>) -> Result<(), EditError> {
        let differs = || EditError::Differs(named(way));
        if meaning(self.format, &text).map_err(|_| differs())? != meant {
            return Err(differs());
        }
        (self.text, self.value) = (text, meant);
        Ok(())
    }
}

fn meaning(format: Format, text: &str) -> Result<Option<Value>, EditError> {
    match format {
        Format::Json => json::meaning(text),
        Format::Toml => toml::meaning(text).map(Some),
        Format::Yaml => yaml::meaning(text),
    }
}

fn part<'a>(root: &'a mut Option<Value>, way: &[Step]) -> Option<&'a mut Value> {
    way.iter().try_fold(root.as_mut()?, |value, step| match step {
        Step::Key(key) => value.get_mut(key),
        Step::Index(index) => value.get_mut(index),
    })
}

/// Names a way for people.
pub(super) fn named(way: &[Step]) -> String {
    let steps = way.iter().map(|step| match step {
        Step::Key(key) => key.clone(),
        Step::Index(index) => index.to_string(),
    });
    let steps = steps.collect::<Vec<_>>().join(".");
    if steps.is_empty() { "the document".to_owned() } else { steps }
}

/// Says that something else is there.
pub(super) fn kind_error(way: &[Step], wanted: &'static str, found: &Value) -> EditError {
    let found = match found {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    };
    EditError::Kind { at: named(way), wanted, found }
}

/// How the lines of a text end.
fn newline(text: &str) -> &'static str {
    match text.find('\n') {
        Some(end) if text[..end].ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

/// Line and column of a place, from 1.
fn place(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.rfind('\n').map_or(0, |end| end + 1);
    (before.matches('\n').count() + 1, before[line..].chars().count() + 1)
}

fn start_of_line(text: &str, offset: usize) -> usize {
    text[..offset].rfind('\n').map_or(0, |end| end + 1)
}

/// The end of the line, its newline included.
fn end_of_line(text: &str, offset: usize) -> usize {
    text[offset..].find('\n').map_or(text.len(), |end| offset + end + 1)
}

/// The blanks at the start of the line that holds a place.
fn indent(text: &str, offset: usize) -> &str {
    let rest = &text[start_of_line(text, offset)..];
    &rest[..rest.find(|char| char != ' ' && char != '\t').unwrap_or(rest.len())]
}

#[cfg(test)]
mod tests;
