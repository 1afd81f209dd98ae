//! The era in which every request is complete in itself: it has no session, and who calls is told by a handle.

use std::borrow::Cow;
use std::sync::Arc;

use majordomus_capability::project::mcp::{Era, Revision, Tools, complete};
use majordomus_capability::resource::Kept;
use majordomus_capability::{Context, Shared};
use majordomus_records::caller::Caller;
use serde_json::{Map, Value, json};

use super::frame::{Meta, Request, string};
use super::initialize::{INSTRUCTIONS, capabilities, client};
use super::method::Method;
use super::reply::{Failure, Fault};
use super::watching::Stream;
use super::{answers, unknown_method};

/// What such a request says of itself, once it was found to be whole.
#[derive(Debug)]
pub(crate) struct Modern<'a> {
    /// The revision that it is of, as it says.
    pub(crate) version: Cow<'a, str>,
    meta: Meta<'a>,
}

impl<'a> Modern<'a> {
    /// Reads it.
    ///
    /// # Errors
    /// Where a member is missing that every such request has, or is not what it should be.
    pub(crate) fn read(request: &Request<'a>) -> Result<Self, Failure> {
        let wrong = |what| Failure::new(Fault::InvalidParams, what);
        let meta = *request.meta().ok_or_else(|| {
            wrong("params._meta needs io.modelcontextprotocol/protocolVersion and .../clientCapabilities")
        })?;
        let version = meta.version.and_then(string);
        let version = version.ok_or_else(|| wrong("io.modelcontextprotocol/protocolVersion is no string"))?;
        if !meta.capabilities.is_some_and(|capabilities| capabilities.get().starts_with('{')) {
            return Err(wrong("params._meta needs io.modelcontextprotocol/clientCapabilities, an object"));
        }
        Ok(Self { version, meta })
    }

    /// The revision.
    ///
    /// # Errors
    /// Where it is none of this era's that is spoken here; the error says which are.
    pub(crate) fn revision(&self) -> Result<Revision, Failure> {
        Revision::named(Era::Modern, &self.version).ok_or_else(|| {
            let requested: String = self.version.chars().take(VERSION_MAX).collect();
            Failure::new(Fault::UnsupportedVersion, "this revision of the protocol is not spoken here")
                .with(json!({ "supported": supported(), "requested": requested }))
        })
    }

    /// The handle that it shows besides its arguments.
    pub(crate) fn handle(&self) -> Option<Cow<'a, str>> {
        self.meta.handle.and_then(string)
    }

    /// Who calls, as far as it says.
    pub(crate) fn context(&self, shared: Arc<Shared>, caller: Option<&Arc<Caller>>) -> Context {
        let mut context = Context::without_peer(shared, self.handle().as_deref());
        context.client = client(self.meta.client).map(Into::into);
        context.caller = caller.cloned();
        context
    }
}

/// The most characters of an unknown revision that are given back.
const VERSION_MAX: usize = 64;

fn supported() -> Vec<&'static str> {
    Revision::of(Era::Modern).map(Revision::as_str).collect()
}

/// Opens the stream that a request asks for.
pub(crate) fn listen(
    tools: &Tools,
    context: &Context,
    revision: Revision,
    request: &Request<'_>,
) -> Result<Stream, Failure> {
    let holding = context.hold().map_err(|refusal| Failure::new(Fault::InvalidParams, refusal.to_string()))?;
    Stream::open(request, revision, holding, &|uri| tools.mark(context, uri))
}

/// Answers one request, other than one for a stream.
pub(crate) fn answer<'a>(
    tools: &'a Tools,
    context: &Context,
    revision: Revision,
    request: &Request<'_>,
) -> Result<Cow<'a, str>, Failure> {
    let method = Method::named(Era::Modern, &request.method).ok_or_else(unknown_method)?;
    if method == Method::CallTool {
        declares(tools, request)?;
    } else {
        // Whatever it asks, who shows a handle is at work; a call's own handler looks at it.
        let _ = context.show_handle();
    }
    if method == Method::Discover {
        return Ok(Cow::Owned(discover(revision)));
    }
    answers::answer(tools, context, revision, (method, request), None)
}

/// Refuses a call of a tool that needs what the client does not declare.
fn declares(tools: &Tools, request: &Request<'_>) -> Result<(), Failure> {
    let called = request.called().and_then(|called| called.name.as_deref());
    let needs = called.map_or(&[][..], |name| tools.needs(name));
    if needs.is_empty() {
        return Ok(());
    }
    let declared = request.meta().and_then(|meta| serde_json::from_str::<Value>(meta.capabilities?.get()).ok());
    let is_missing = |need: &&&str| !declared.as_ref().is_some_and(|declared| declared[**need].is_object());
    let missing: Map<String, Value> =
        needs.iter().filter(is_missing).map(|need| ((*need).to_owned(), json!({}))).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let message = "the tool needs what the client does not declare among its capabilities";
    Err(Failure::new(Fault::MissingCapability, message).with(json!({ "requiredCapabilities": missing })))
}

fn discover(revision: Revision) -> String {
    let result = json!({
        "supportedVersions": supported(),
        "capabilities": capabilities(revision),
        "instructions": INSTRUCTIONS,
    });
    complete(revision, Some(Kept::DECLARATIONS), &result.to_string()).into_owned()
}
