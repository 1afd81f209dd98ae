//! One field of a capability's input as an argument, and back.

use clap::builder::{NonEmptyStringValueParser, PossibleValuesParser, ValueParser};
use clap::{Arg, ArgAction, ArgMatches, value_parser};
use majordomus_capability::Capability;
use serde_json::{Map, Value};

use crate::output::Hint;
use crate::variables::{self, EPISODE_HANDLE};

/// The field whose value is a secret and travels beside the others.
const HANDLE: &str = "episode_handle";

/// What a command line said.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Values {
    /// By the names of the input's fields, without the handle.
    pub(super) fields: Map<String, Value>,
    /// The handle, where the capability takes one and there is one.
    pub(super) handle: Option<String>,
}

/// How a field is written on a command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Integer,
    Number,
    Boolean,
    /// Whatever else: a JSON document.
    Json,
}

struct Field<'a> {
    name: &'a str,
    schema: &'a Value,
    required: bool,
}

impl<'a> Field<'a> {
    /// The fields of a capability's input, in their order.
    fn all(capability: &'a Capability) -> impl Iterator<Item = Self> {
        let required = capability.input()["required"].as_array().map_or(&[][..], Vec::as_slice);
        let properties = capability.input()["properties"].as_object().into_iter().flatten();
        properties.map(move |(name, schema)| Self {
            name,
            schema,
            required: required.iter().any(|field| field == name),
        })
    }

    fn is_list(&self) -> bool {
        self.schema["type"] == "array"
    }

    /// The schema of one value: of an array, of its items.
    fn one(&self) -> &'a Value {
        if self.is_list() { &self.schema["items"] } else { self.schema }
    }

    fn kind(&self) -> Kind {
        match self.one()["type"].as_str() {
            Some("string") => Kind::Text,
            Some("integer") => Kind::Integer,
            Some("number") => Kind::Number,
            Some("boolean") => Kind::Boolean,
            _ => Kind::Json,
        }
    }
}

/// The arguments of a capability's command: required ones by their place, the others as flags.
pub(super) fn all(capability: &Capability) -> Vec<Arg> {
    let fields: Vec<_> = Field::all(capability).collect();
    let last = fields.iter().rfind(|field| field.required).map(|field| field.name);
    // Only the last place can take several values.
    let has_place = |field: &Field<'_>| field.required && (!field.is_list() || Some(field.name) == last);
    let in_path = |name| capability.descriptor().route.is_some_and(|route| route.parameters().any(|one| one == name));
    fields.iter().map(|field| argument(field, has_place(field), in_path(field.name))).collect()
}

fn argument(field: &Field<'_>, has_place: bool, in_path: bool) -> Arg {
    let kind = field.kind();
    let shown = if kind == Kind::Json { "JSON".into() } else { field.name.to_uppercase() };
    let arg = Arg::new(field.name.to_owned())
        .value_name(shown)
        .value_parser(parser(field.one(), kind, in_path))
        .help(help(field))
        .required(field.required);
    let arg = if has_place { arg } else { arg.long(field.name.replace('_', "-")) };
    match (field.is_list(), has_place) {
        (true, true) => arg.action(ArgAction::Append).num_args(1..),
        (true, false) => arg.action(ArgAction::Append),
        // `--flag` is enough to say yes; `--flag=false` says no.
        (false, false) if kind == Kind::Boolean => {
            arg.num_args(0..=1).require_equals(true).default_missing_value("true")
        }
        (false, _) => arg.action(ArgAction::Set),
    }
}

/// The field's description as clap's own texts are written: without the period of a single sentence.
fn help(field: &Field<'_>) -> String {
    let text = field.schema["description"].as_str().unwrap_or_default();
    let text = text.strip_suffix('.').filter(|text| !text.contains(". ")).unwrap_or(text);
    if field.name != HANDLE {
        return text.to_owned();
    }
    format!("{text} [or {EPISODE_HANDLE}, which others on this machine cannot see]")
}

fn parser(schema: &Value, kind: Kind, in_path: bool) -> ValueParser {
    let bound = |name: &str, otherwise: i64| schema[name].as_i64().unwrap_or(otherwise);
    match (kind, schema["enum"].as_array()) {
        (Kind::Text, Some(words)) => {
            let words = words.iter().filter_map(Value::as_str).map(str::to_owned);
            PossibleValuesParser::new(words.collect::<Vec<_>>()).into()
        }
        // Nothing at all would make another path.
        (Kind::Text, None) if in_path => NonEmptyStringValueParser::new().into(),
        (Kind::Text, None) => value_parser!(String),
        (Kind::Integer, _) => value_parser!(i64).range(bound("minimum", i64::MIN)..=bound("maximum", i64::MAX)).into(),
        (Kind::Number, _) => value_parser!(f64).into(),
        (Kind::Boolean, _) => value_parser!(bool),
        (Kind::Json, _) => ValueParser::new(|text: &str| serde_json::from_str::<Value>(text)),
    }
}

/// What was said, as the capability's input; fields that were not named are left out.
///
/// # Errors
/// A handle that is none.
pub(super) fn values(capability: &Capability, matches: &ArgMatches) -> anyhow::Result<Values> {
    let mut values = Values::default();
    for field in Field::all(capability) {
        let name = field.name;
        let mut said = match field.kind() {
            Kind::Text => of::<String>(matches, name),
            Kind::Integer => of::<i64>(matches, name),
            Kind::Number => of::<f64>(matches, name),
            Kind::Boolean => of::<bool>(matches, name),
            Kind::Json => of::<Value>(matches, name),
        };
        if name == HANDLE {
            values.handle = handle(said.pop())?;
        } else if field.is_list() && !said.is_empty() {
            values.fields.insert(name.to_owned(), said.into());
        } else if let Some(value) = said.pop() {
            values.fields.insert(name.to_owned(), value);
        }
    }
    Ok(values)
}

/// The handle of the flag, else of the environment. What it is worth the server knows; it has to fit into a header.
fn handle(told: Option<Value>) -> anyhow::Result<Option<String>> {
    let told = told.and_then(|value| value.as_str().map(str::to_owned));
    let told = told.or_else(|| Some(variables::value(EPISODE_HANDLE)?.to_string_lossy().into_owned()));
    match told {
        Some(handle) if handle.is_empty() || !handle.bytes().all(|byte| byte.is_ascii_graphic()) => {
            let wrong = anyhow::anyhow!("what --episode-handle or {EPISODE_HANDLE} gives is no handle");
            Err(wrong).hint("give what `majordomus episodes attach` answered with, or none")
        }
        handle => Ok(handle),
    }
}

fn of<T: Clone + Send + Sync + Into<Value> + 'static>(matches: &ArgMatches, name: &str) -> Vec<Value> {
    matches.get_many::<T>(name).into_iter().flatten().cloned().map(Into::into).collect()
}
