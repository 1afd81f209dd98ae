//! What messages mean to a bridge: whether a request may be asked again, and what its answer changes.

use majordomus_capability::project::mcp::Era;
use majordomus_capability::{DECLARED, Descriptor, Effect};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::protocol::Request;
use crate::sharing::preamble::Why;

/// The longest external id that is looked at, in bytes: 256 characters of four.
const EXTERNAL_ID_BYTES: usize = 1024;
/// The longest URI and the longest id of a subscription that is kept, in bytes.
const SUBSCRIPTION_BYTES: usize = 1024;

/// What a request asks, as far as its answer changes something here.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Asked {
    Other,
    /// The opening, and whether the client said already that it is ready.
    Initialize {
        initialized: bool,
    },
    /// Under an external id.
    Attach(Box<str>),
    /// Of an external id, or of whatever the connection holds.
    Detach(Option<Box<str>>),
    /// A stream, and whether its acknowledgement was passed on.
    Listen {
        acknowledged: bool,
    },
    /// To a URI.
    Subscribe(Box<str>),
    /// From a URI.
    Unsubscribe(Box<str>),
}

/// What a request asks, and whether asking it twice does what asking it once does.
pub(super) fn asked(request: &Request<'_>) -> (Asked, bool) {
    let subscription = || uri(request).filter(|uri| uri.len().max(request.id.len()) <= SUBSCRIPTION_BYTES);
    match request.method.as_ref() {
        "tools/call" => called(request),
        "initialize" => (Asked::Initialize { initialized: false }, true),
        "subscriptions/listen" => (Asked::Listen { acknowledged: false }, true),
        "resources/subscribe" => (subscription().map_or(Asked::Other, Asked::Subscribe), true),
        "resources/unsubscribe" => (subscription().map_or(Asked::Other, Asked::Unsubscribe), true),
        "ping" | "completion/complete" | "server/discover" => (Asked::Other, true),
        method => (Asked::Other, ["/list", "/get", "/read"].iter().any(|verb| method.ends_with(verb))),
    }
}

fn called(request: &Request<'_>) -> (Asked, bool) {
    let Some(called) = request.called() else { return (Asked::Other, false) };
    let Some(name) = called.name.as_deref() else { return (Asked::Other, false) };
    // A later revision's episode is held by its handle, whatever carries the call.
    let asked = match request.era() {
        Era::Modern => Asked::Other,
        Era::Legacy if is_tool(ATTACH, name) => external_id(called.arguments).map_or(Asked::Other, Asked::Attach),
        Era::Legacy if is_tool(DETACH, name) => Asked::Detach(external_id(called.arguments)),
        Era::Legacy => Asked::Other,
    };
    (asked, may_repeat(name))
}

/// Whether a tool may be called twice: it only reads, or it attaches or detaches.
pub(super) fn may_repeat(name: &str) -> bool {
    let reads = |declared: &Descriptor| declared.effect == Effect::Read && declared.tool == Some(name);
    DECLARED.iter().any(reads) || is_tool(ATTACH, name) || is_tool(DETACH, name)
}

/// Whether that is the name of the tool of a capability.
fn is_tool(id: &str, name: &str) -> bool {
    DECLARED.iter().any(|declared| declared.id == id && declared.tool == Some(name))
}

const ATTACH: &str = "episodes.attach";
const DETACH: &str = "episodes.detach";

fn external_id(arguments: Option<&RawValue>) -> Option<Box<str>> {
    #[derive(Deserialize)]
    struct Arguments {
        external_id: Option<Box<str>>,
    }
    let arguments: Arguments = object(arguments?)?;
    arguments.external_id.filter(|id| id.len() <= EXTERNAL_ID_BYTES)
}

fn uri(request: &Request<'_>) -> Option<Box<str>> {
    #[derive(Deserialize)]
    struct Params {
        uri: Box<str>,
    }
    object(request.params?).map(|params: Params| params.uri)
}

/// Subscribes once more.
pub(super) fn subscribe(id: &str, uri: &str) -> String {
    let uri = serde_json::Value::from(uri);
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"resources/subscribe","params":{{"uri":{uri}}}}}"#)
}

fn object<'a, T: Deserialize<'a>>(raw: &'a RawValue) -> Option<T> {
    // serde would also take an array for a struct, member by member.
    raw.get().starts_with('{').then(|| serde_json::from_str(raw.get()).ok()).flatten()
}

/// Whether a client says in this line that it is ready; most lines are only searched for the word.
pub(super) fn says_initialized(line: &[u8]) -> bool {
    const WORD: &[u8] = b"notifications/initialized";
    #[derive(Deserialize)]
    struct Said<'a> {
        #[serde(borrow)]
        method: Option<&'a RawValue>,
    }
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    if !line.windows(WORD.len()).any(|window| window == WORD) {
        return false;
    }
    let says = |text: &str| {
        let said = serde_json::from_str::<Said<'_>>(text).ok().and_then(|said| said.method);
        said.is_some_and(|method| method.get().as_bytes().get(1..=WORD.len()) == Some(WORD))
    };
    match serde_json::from_slice::<Vec<&RawValue>>(line) {
        Ok(batch) => batch.into_iter().any(|element| says(element.get())),
        Err(_) => std::str::from_utf8(line).is_ok_and(says),
    }
}

/// What a server says in one line.
#[derive(Debug)]
pub(super) enum Saying<'a> {
    One(Said<'a>),
    Batch(Vec<Said<'a>>),
    /// Nothing that could be read.
    Unknown,
}

/// The members of a server's message, unread.
#[derive(Debug, Deserialize)]
pub(super) struct Said<'a> {
    #[serde(borrow)]
    pub(super) id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) method: Option<&'a RawValue>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
}

impl<'a> Saying<'a> {
    pub(super) fn read(line: &'a [u8]) -> Self {
        let line = line.trim_ascii();
        match line.first() {
            Some(b'{') => serde_json::from_slice(line).map_or(Self::Unknown, Self::One),
            Some(b'[') => serde_json::from_slice(line).map_or(Self::Unknown, Self::Batch),
            _ => Self::Unknown,
        }
    }
}

impl<'a> Said<'a> {
    /// Whether a tool did not do it: by its own answer, or because there was an error and no result.
    pub(super) fn is_refusal(&self) -> bool {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Result {
            is_error: Option<bool>,
        }
        let result: Option<Result> = self.result.and_then(object);
        result.is_none_or(|result| result.is_error == Some(true))
    }

    /// The id of the stream that this acknowledges.
    pub(super) fn acknowledges(&self) -> Option<&'a str> {
        #[derive(Deserialize)]
        struct Params<'a> {
            #[serde(borrow, rename = "_meta")]
            meta: Meta<'a>,
        }
        #[derive(Deserialize)]
        struct Meta<'a> {
            #[serde(borrow, rename = "io.modelcontextprotocol/subscriptionId")]
            id: &'a RawValue,
        }
        let params: Params<'a> = object(self.params_of("\"notifications/subscriptions/acknowledged\"")?)?;
        Some(params.meta.id.get())
    }

    /// The id of the stream that this ends.
    pub(super) fn cancels(&self) -> Option<&'a str> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Params<'a> {
            #[serde(borrow)]
            request_id: &'a RawValue,
        }
        let params: Params<'a> = object(self.params_of("\"notifications/cancelled\"")?)?;
        Some(params.request_id.get())
    }

    fn params_of(&self, method: &str) -> Option<&'a RawValue> {
        self.params.filter(|_| self.method.is_some_and(|said| said.get() == method))
    }
}

/// Why a server leaves, if that is what it says to the bridge.
pub(super) fn farewell(line: &[u8]) -> Option<Why> {
    #[derive(Deserialize)]
    struct Words {
        majordomus: String,
        why: Option<String>,
    }
    let words: Words = serde_json::from_slice(line).ok()?;
    let why = if words.why.as_deref() == Some("stopped") { Why::Stopped } else { Why::Moved };
    (words.majordomus == "farewell").then_some(why)
}
