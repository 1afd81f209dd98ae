//! Who wants to be told of what has changed: the subscriptions of a session, and the streams of requests that are complete in
//! themselves.
//!
//! Nobody is told by whom something was changed, so a change made elsewhere, by a hook or another process, is seen too: marks
//! are compared, at most once a second, and only while somebody wants to know.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use majordomus_capability::handles::Holding;
use majordomus_capability::project::mcp::{Revision, complete};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::frame::{Request, params};
use super::reply::{self, Failure, Fault};

/// How often is looked for changes: so often is a URI told of at most.
pub(crate) const LOOK: Duration = Duration::from_secs(1);
/// The most URIs of one session, and of one stream.
const URIS_MAX: usize = 64;
/// The longest URI that is watched, in bytes.
const URI_BYTES: usize = 1024;
/// The most streams of one connection.
const STREAMS_MAX: usize = 16;

/// The member of `_meta` that says for which stream something is told.
const SUBSCRIPTION_META: &str = "io.modelcontextprotocol/subscriptionId";

/// Some URIs and what was last seen of each.
#[derive(Debug, Default)]
struct Marks(Vec<(Box<str>, u64)>);

/// What was seen just now, by URI.
type Seen = BTreeMap<Box<str>, u64>;

impl Marks {
    /// The URIs that have changed since, of those that were looked at.
    fn changed(&mut self, seen: &Seen) -> Vec<&str> {
        let is_news =
            |(uri, mark): &mut (Box<str>, u64)| seen.get(uri).is_some_and(|now| std::mem::replace(mark, *now) != *now);
        let news: Vec<bool> = self.0.iter_mut().map(is_news).collect();
        self.0.iter().zip(news).filter(|(_, news)| *news).map(|((uri, _), _)| &**uri).collect()
    }

    fn uris(&self) -> impl Iterator<Item = Box<str>> {
        self.0.iter().map(|(uri, _)| uri.clone())
    }
}

/// Looks at URIs, each once.
fn look(uris: BTreeSet<Box<str>>, mark: &dyn Fn(&str) -> Option<u64>) -> Seen {
    let seen = |uri: Box<str>| {
        let mark = mark(&uri).unwrap_or_default();
        (uri, mark)
    };
    uris.into_iter().map(seen).collect()
}

/// One open stream.
#[derive(Debug)]
pub(crate) struct Stream {
    /// The id of the request that opened it, byte for byte.
    id: Box<str>,
    marks: Marks,
    revision: Revision,
    /// What whoever opened it holds by it, if they said who they are.
    _holding: Option<Holding>,
}

impl Stream {
    /// Opens one for what a request asks for, as far as there is such a thing.
    ///
    /// # Errors
    /// Where the request does not say what it wants to be told of.
    pub(crate) fn open(
        request: &Request<'_>,
        revision: Revision,
        holding: Option<Holding>,
        mark: &dyn Fn(&str) -> Option<u64>,
    ) -> Result<Self, Failure> {
        #[derive(Default, Deserialize)]
        struct Params<'a> {
            #[serde(borrow)]
            notifications: Option<&'a RawValue>,
        }
        #[derive(Default, Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Filter {
            #[serde(default)]
            resource_subscriptions: Vec<Box<str>>,
        }
        let wrong = || Failure::new(Fault::InvalidParams, "subscriptions/listen needs notifications, an object");
        let Params { notifications } = params(request.params).ok_or_else(wrong)?;
        let filter: Filter = notifications.and_then(|asked| params(Some(asked))).ok_or_else(wrong)?;
        let mut marks = Marks::default();
        for uri in filter.resource_subscriptions {
            let is_new = !marks.0.iter().any(|(known, _)| *known == uri);
            if is_new
                && marks.0.len() < URIS_MAX
                && uri.len() <= URI_BYTES
                && let Some(mark) = mark(&uri)
            {
                marks.0.push((uri, mark));
            }
        }
        Ok(Self { id: request.id.into(), marks, revision, _holding: holding })
    }

    /// What it is told first: what it will be told of.
    pub(crate) fn acknowledgement(&self) -> String {
        let uris: Vec<&str> = self.marks.0.iter().map(|(uri, _)| &**uri).collect();
        let wanted = if uris.is_empty() { json!({}) } else { json!({ "resourceSubscriptions": uris }) };
        told("notifications/subscriptions/acknowledged", Some(&self.id), &format!(r#""notifications":{wanted}"#))
    }

    /// What it is told of what has changed, a message each.
    pub(crate) fn news(&mut self, mark: &dyn Fn(&str) -> Option<u64>) -> Vec<String> {
        let seen = look(self.marks.uris().collect(), mark);
        self.told(&seen)
    }

    fn told(&mut self, seen: &Seen) -> Vec<String> {
        self.marks.changed(seen).into_iter().map(|uri| updated(uri, Some(&self.id))).collect()
    }

    /// The answer to the request, once nothing more will be told.
    pub(crate) fn end(&self) -> String {
        let tagged = format!(r#""_meta":{{"{SUBSCRIPTION_META}":{},"#, self.id);
        let result = complete(self.revision, None, "{}").replacen(r#""_meta":{"#, &tagged, 1);
        let mut out = Vec::new();
        reply::result(&mut out, &self.id, &result);
        String::from_utf8(out).expect("JSON is written in UTF-8")
    }

    /// Whether anything can change of what it is told of.
    pub(crate) fn is_quiet(&self) -> bool {
        self.marks.0.is_empty()
    }
}

fn updated(uri: &str, stream: Option<&str>) -> String {
    told("notifications/resources/updated", stream, &format!(r#""uri":{}"#, Value::from(uri)))
}

/// A note, for the stream of that id if it is for one. Ids are written as they came: not each is a number of 64 bits.
fn told(method: &str, stream: Option<&str>, about: &str) -> String {
    let meta = stream.map_or_else(String::new, |id| format!(r#""_meta":{{"{SUBSCRIPTION_META}":{id}}},"#));
    format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{{{meta}{about}}}}}"#)
}

/// What one connection wants to be told.
#[derive(Debug, Default)]
pub(crate) struct Watching {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    subscribed: Marks,
    streams: Vec<Stream>,
}

impl Watching {
    /// Subscribes the session to a URI that there is; repeated, it does nothing.
    pub(crate) fn subscribe(&self, uri: &str, mark: u64) -> Result<(), Failure> {
        let marks = &mut self.lock().subscribed.0;
        if marks.iter().any(|(known, _)| **known == *uri) {
            return Ok(());
        }
        if marks.len() == URIS_MAX || uri.len() > URI_BYTES {
            let message = format!("a session can subscribe to {URIS_MAX} resources; unsubscribe from one first");
            return Err(Failure::new(Fault::InvalidParams, message));
        }
        marks.push((uri.into(), mark));
        Ok(())
    }

    /// Takes a subscription back, if there is one.
    pub(crate) fn unsubscribe(&self, uri: &str) {
        self.lock().subscribed.0.retain(|(known, _)| **known != *uri);
    }

    /// What the session is subscribed to.
    pub(crate) fn subscribed(&self) -> Vec<String> {
        self.lock().subscribed.0.iter().map(|(uri, _)| uri.to_string()).collect()
    }

    /// Keeps a stream open, and returns what it is told first.
    pub(crate) fn listen(&self, stream: Stream) -> Result<String, Failure> {
        let streams = &mut self.lock().streams;
        if streams.len() == STREAMS_MAX {
            let message = format!("{STREAMS_MAX} streams are open already; cancel one of them first");
            return Err(Failure::new(Fault::InvalidParams, message));
        }
        if streams.iter().any(|open| open.id == stream.id) {
            return Err(Failure::new(Fault::InvalidRequest, "a stream of that id is open already"));
        }
        let acknowledgement = stream.acknowledgement();
        streams.push(stream);
        Ok(acknowledgement)
    }

    /// Ends the stream that the request of that id opened; whether there was one.
    pub(crate) fn cancel(&self, id: &str) -> bool {
        let streams = &mut self.lock().streams;
        let at = streams.iter().position(|open| *open.id == *id);
        at.map(|at| streams.remove(at)).is_some()
    }

    /// Whether anything is to be looked for.
    pub(crate) fn is_active(&self) -> bool {
        let inner = self.lock();
        !inner.subscribed.0.is_empty() || inner.streams.iter().any(|stream| !stream.is_quiet())
    }

    /// What the session is told of what has changed, a message each. Nobody waits while it looks.
    pub(crate) fn news(&self, mark: &dyn Fn(&str) -> Option<u64>) -> Vec<String> {
        let uris = {
            let inner = self.lock();
            inner.subscribed.uris().chain(inner.streams.iter().flat_map(|stream| stream.marks.uris())).collect()
        };
        let seen = look(uris, mark);
        let inner = &mut *self.lock();
        let mut told: Vec<String> = inner.subscribed.changed(&seen).into_iter().map(|uri| updated(uri, None)).collect();
        told.extend(inner.streams.iter_mut().flat_map(|stream| stream.told(&seen)));
        told
    }

    /// Ends all streams, and returns the answers to what opened them.
    pub(crate) fn end(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().streams).iter().map(Stream::end).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
