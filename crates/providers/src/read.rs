//! From a payload's bytes to an event.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::unreadable::{bounded, escaped};
use crate::{
    Adapter, EpisodeSource, EventKind, HookEvent, IdProblem, KeysPresent, Provider, Scan, Unreadable, value_end,
};

const ID_MAX_CHARS: usize = 256;
const TEXT_MAX_CHARS: usize = 256;
/// The longest JSON text of an id: every character a pair of escaped surrogates, and two quotes.
const ID_MAX_JSON_BYTES: usize = 12 * ID_MAX_CHARS + 2;

/// The names of the fields to keep. A connection's own payload needs no declaration: this product writes it.
struct Wanted {
    session_id: &'static [&'static str],
    cwd: &'static [&'static str],
    source: &'static [&'static str],
    reason: &'static [&'static str],
    event_name: &'static [&'static str],
    connection: &'static [&'static str],
    trigger: &'static [&'static str],
    subagent: &'static [&'static str],
}

const CONNECTION: Wanted = Wanted {
    session_id: &["session_id"],
    cwd: &[],
    source: &["source"],
    reason: &["reason"],
    event_name: &[],
    connection: &["connection"],
    trigger: &[],
    subagent: &[],
};

impl Wanted {
    fn of(adapter: &Adapter) -> Self {
        Self {
            session_id: adapter.session_id,
            cwd: adapter.cwd,
            source: adapter.source,
            reason: adapter.reason,
            event_name: adapter.event_name,
            connection: &[],
            trigger: adapter.trigger,
            subagent: adapter.subagent,
        }
    }
}

/// Reads one payload of `provider` as an event of `kind`.
///
/// The payload is one JSON object; what follows it is not looked at. Fields that are not needed are checked for their syntax and
/// dropped without being built. A null field is an absent one. Among repeated fields the last counts, but an id that is given twice
/// with two values is refused. Bytes that are no UTF-8 cost only the text they stand in.
///
/// # Errors
/// [`Unreadable`], whose text says what to do.
pub fn read(provider: &Provider, kind: EventKind, payload: &[u8]) -> Result<HookEvent, Unreadable> {
    let wanted = match (provider.adapter, provider.episode) {
        (Some(adapter), _) => Wanted::of(adapter),
        (None, EpisodeSource::Connection) => CONNECTION,
        (None, EpisodeSource::Hooks) => return Err(Unreadable::Unadapted { provider: provider.id }),
        (None, EpisodeSource::None) => return Err(Unreadable::NotOffered { provider: provider.id }),
    };
    let (text, bytes) = first_value(payload);
    let found = fields(&wanted, &text, bytes)?;

    let native_event = found.event_name.text().filter(|name| !name.is_empty());
    if let (Some(adapter), Some(name)) = (provider.adapter, &native_event) {
        check_event(adapter, kind, name)?;
    }
    let repaired = matches!(text, Cow::Owned(_));
    Ok(HookEvent {
        kind: effective(provider.adapter, kind, &found),
        external_id: external_id(&found, &wanted, repaired)?,
        cwd: found.cwd.0.and_then(|(_, raw)| folder(raw)),
        source: found.source.text().or_else(|| found.trigger.text().filter(|_| kind == EventKind::Compact)),
        reason: found.reason.text(),
        native_event,
        connection: found.connection.text(),
    })
}

/// Reads nothing but the id.
pub(crate) fn id_of(adapter: &Adapter, payload: &[u8]) -> Option<String> {
    let (wanted, (text, bytes)) = (Wanted::of(adapter), first_value(payload));
    let found = fields(&wanted, &text, bytes).ok()?;
    external_id(&found, &wanted, matches!(text, Cow::Owned(_))).ok()
}

/// Takes the first value as text, and says how many bytes it has or, where it does not end, how many there are.
pub(crate) fn first_value(payload: &[u8]) -> (Cow<'_, str>, usize) {
    let payload = match value_end(payload, &mut Scan::default()) {
        Some(end) => &payload[..end],
        None => payload,
    };
    let text = String::from_utf8_lossy(payload.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(payload));
    (text, payload.len())
}

fn effective(adapter: Option<&Adapter>, asked: EventKind, found: &Fields<'_>) -> EventKind {
    let discards = |adapter: &Adapter| {
        let named = adapter.compact_triggers;
        named.is_empty() || found.trigger.text().is_some_and(|trigger| named.contains(&trigger.as_str()))
    };
    let keeps = asked != EventKind::Compact || adapter.is_none_or(discards);
    let inside = found.subagent.text().is_some_and(|id| !id.is_empty());
    if keeps && !inside { asked } else { EventKind::Activity }
}

/// Refuses an event that is known to be another than the one asked for. What is not known is what the person's settings say.
fn check_event(adapter: &Adapter, asked: EventKind, name: &str) -> Result<(), Unreadable> {
    let names = |kind: EventKind| match kind {
        EventKind::Start => adapter.start_events,
        EventKind::End => adapter.end_events,
        EventKind::Compact => adapter.compact_events,
        EventKind::Activity => adapter.activity_events,
    };
    match EventKind::ALL.into_iter().find(|kind| names(*kind).iter().any(|known| same_event(known, name))) {
        Some(serves) if serves != asked => {
            Err(Unreadable::OtherEvent { asked, found: escaped(name, TEXT_MAX_CHARS), serves })
        }
        Some(_) | None => Ok(()),
    }
}

/// `SessionStart`, `sessionStart` and `session_start` are one event.
fn same_event(known: &str, met: &str) -> bool {
    known == met || folded(known).eq(folded(met))
}

fn folded(name: &str) -> impl Iterator<Item = char> {
    name.chars().filter(|char| !matches!(char, '_' | '-')).map(|char| char.to_ascii_lowercase())
}

fn external_id(found: &Fields<'_>, wanted: &Wanted, repaired: bool) -> Result<String, Unreadable> {
    let Some((rank, raw)) = found.session_id.0 else {
        return Err(Unreadable::NoId { looked_for: wanted.session_id, keys_present: found.keys.clone() });
    };
    let bad = |problem| Unreadable::BadId { field: wanted.session_id[rank], problem };
    if found.id_twice {
        return Err(bad(IdProblem::Twice));
    }
    if raw.len() > ID_MAX_JSON_BYTES && !raw.starts_with(['{', '[']) {
        return Err(bad(IdProblem::TooLong));
    }
    let id = decoded(raw).map_err(bad)?;
    if id.is_empty() {
        return Err(bad(IdProblem::Empty));
    }
    if id.chars().nth(ID_MAX_CHARS).is_some() {
        return Err(bad(IdProblem::TooLong));
    }
    if let Some(control) = id.chars().find(|char| char.is_control() || matches!(char, '\u{2028}' | '\u{2029}')) {
        return Err(bad(IdProblem::Control { code: control.into() }));
    }
    if repaired && id.contains(char::REPLACEMENT_CHARACTER) {
        return Err(bad(IdProblem::NotUnicode));
    }
    Ok(id)
}

/// Decodes a string, or takes a number as it is written.
pub(crate) fn decoded(raw: &str) -> Result<String, IdProblem> {
    match raw.as_bytes().first() {
        Some(b'"') => serde_json::from_str(raw).map_err(|_| IdProblem::NotUnicode),
        Some(b'-' | b'0'..=b'9') => Ok(raw.to_owned()),
        _ => Err(IdProblem::NotText { found: kind_of(raw) }),
    }
}

/// The text, or the first of a list of texts.
fn folder(raw: &str) -> Option<String> {
    if !raw.starts_with('[') {
        return decoded(raw).ok();
    }
    let items: Vec<&RawValue> = serde_json::from_str(raw).ok()?;
    items.iter().find(|item| item.get().starts_with('"')).and_then(|item| decoded(item.get()).ok())
}

fn kind_of(value: &str) -> &'static str {
    match value.as_bytes().first() {
        Some(b'{') => "an object",
        Some(b'[') => "an array",
        Some(b'"') => "a string",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        _ => "a number",
    }
}

/// One wanted field: which of its names was met, and its JSON text.
#[derive(Default)]
struct Field<'a>(Option<(usize, &'a str)>);

impl Field<'_> {
    /// The field's text, bounded; `None` where it is neither a string nor a number.
    fn text(&self) -> Option<String> {
        let (_, raw) = self.0?;
        decoded(raw).ok().map(|text| bounded(&text, TEXT_MAX_CHARS))
    }
}

#[derive(Default)]
struct Fields<'a> {
    session_id: Field<'a>,
    cwd: Field<'a>,
    source: Field<'a>,
    reason: Field<'a>,
    event_name: Field<'a>,
    connection: Field<'a>,
    trigger: Field<'a>,
    subagent: Field<'a>,
    id_twice: bool,
    keys: KeysPresent,
}

/// Takes the wanted fields out of the first JSON value of `text`.
fn fields<'a>(wanted: &Wanted, text: &'a str, bytes: usize) -> Result<Fields<'a>, Unreadable> {
    let value = text.trim_start_matches([' ', '\t', '\n', '\r']);
    if value.is_empty() {
        return Err(Unreadable::Empty);
    }
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let outcome = if value.starts_with('{') {
        deserializer.deserialize_map(Object(wanted))
    } else {
        // Checked first, so that a torn or broken value is not called a value of another kind.
        let checked: Result<IgnoredAny, _> = serde::Deserialize::deserialize(&mut deserializer);
        match checked {
            Ok(IgnoredAny) => {
                return Err(Unreadable::NotAnObject { found: kind_of(value) });
            }
            Err(error) => Err(error),
        }
    };
    outcome.map_err(|error| fault(&error, bytes))
}

fn fault(error: &serde_json::Error, bytes: usize) -> Unreadable {
    if error.is_eof() {
        return Unreadable::Truncated { bytes };
    }
    let (line, column) = (error.line(), error.column());
    let message = error.to_string();
    let place = format!(" at line {line} column {column}");
    Unreadable::Invalid { fault: message.strip_suffix(&place).unwrap_or(&message).to_owned(), line, column }
}

struct Object<'w>(&'w Wanted);

impl<'de> Visitor<'de> for Object<'_> {
    type Value = Fields<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let Self(wanted) = self;
        let mut found = Fields::default();
        while let Some(key) = map.next_key_seed(Key)? {
            found.keys.push(&key);
            let rank = |names: &[&str]| names.iter().position(|name| name.as_bytes() == &*key);
            let mut slots = [
                (rank(wanted.session_id), &mut found.session_id),
                (rank(wanted.cwd), &mut found.cwd),
                (rank(wanted.source), &mut found.source),
                (rank(wanted.reason), &mut found.reason),
                (rank(wanted.event_name), &mut found.event_name),
                (rank(wanted.connection), &mut found.connection),
                (rank(wanted.trigger), &mut found.trigger),
                (rank(wanted.subagent), &mut found.subagent),
            ];
            if slots.iter().all(|(rank, _)| rank.is_none()) {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let raw = map.next_value::<&RawValue>()?.get();
            // A list without a folder says as little as a null.
            if raw == "null" || (slots[1].0.is_some() && raw.starts_with('[') && folder(raw).is_none()) {
                continue;
            }
            if let (Some(rank), Field(Some((held, before)))) = (slots[0].0, &*slots[0].1) {
                // Only the name that is preferred in the end must be unambiguous.
                found.id_twice = rank >= *held && (found.id_twice || (rank == *held && raw != *before));
            }
            for (rank, field) in &mut slots {
                if let Some(rank) = *rank
                    && field.0.is_none_or(|(held, _)| rank <= held)
                {
                    field.0 = Some((rank, raw));
                }
            }
        }
        Ok(found)
    }
}

/// A field's name as bytes: one that is not valid Unicode must not cost the event.
pub(crate) struct Key;

impl<'de> DeserializeSeed<'de> for Key {
    type Value = Cow<'de, [u8]>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_bytes(self)
    }
}

impl<'de> Visitor<'de> for Key {
    type Value = Cow<'de, [u8]>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_borrowed_bytes<E>(self, bytes: &'de [u8]) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(bytes))
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Self::Value, E> {
        Ok(Cow::Owned(bytes.to_owned()))
    }
}

#[cfg(test)]
mod tests;
