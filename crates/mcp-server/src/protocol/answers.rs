//! What both eras answer alike: everything that needs no session.

use std::borrow::Cow;

use majordomus_capability::Context;
use majordomus_capability::project::mcp::{Call, Completed, Era, ReadError, Reference, Revision, Tools};
use majordomus_capability::prompt::Arguments;
use majordomus_records::caller::Caller;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::frame::{Request, string};
use super::method::Method;
use super::reply::{Failure, Fault};
use super::{bad_params, params_of, unknown_method};

/// Answers a request of a method that needs no session; `notice` is told with the result of a call.
pub(super) fn answer<'a>(
    tools: &'a Tools,
    context: &Context,
    revision: Revision,
    (method, request): (Method, &Request<'_>),
    notice: Option<&str>,
) -> Result<Cow<'a, str>, Failure> {
    let list = |list: &'a RawValue| {
        one_page(request)?;
        Ok(Cow::Borrowed(list.get()))
    };
    match method {
        Method::ListTools => list(tools.list(revision)),
        Method::ListResources => list(tools.resources(revision)),
        Method::ListTemplates => list(tools.templates(revision)),
        Method::ListPrompts => list(tools.prompts(revision)),
        Method::CallTool => call(tools, context, revision, request, notice).map(Cow::Owned),
        Method::ReadResource => read(tools, context, revision, request).map(Cow::Owned),
        Method::GetPrompt => prompt(tools, revision, request).map(Cow::Owned),
        Method::Complete => complete(tools, context, revision, request).map(Cow::Owned),
        Method::Initialize
        | Method::Ping
        | Method::Discover
        | Method::Subscribe
        | Method::Unsubscribe
        | Method::Listen => Err(unknown_method()),
    }
}

#[derive(Default, Deserialize)]
struct ListParams<'a> {
    #[serde(borrow)]
    cursor: Option<&'a RawValue>,
}

/// Refuses a cursor: every list has one page.
fn one_page(request: &Request<'_>) -> Result<(), Failure> {
    let params: ListParams<'_> = params_of(request.params)?;
    match params.cursor {
        None => Ok(()),
        Some(_) => Err(wrong(format!("{} has one page and gives no cursor; leave it out", request.method))),
    }
}

fn wrong(message: impl Into<Cow<'static, str>>) -> Failure {
    Failure::new(Fault::InvalidParams, message)
}

fn call(
    tools: &Tools,
    context: &Context,
    revision: Revision,
    request: &Request<'_>,
    notice: Option<&str>,
) -> Result<String, Failure> {
    let called = request.called().ok_or_else(bad_params)?;
    let Some(name) = &called.name else { return Err(wrong("tools/call needs the name of a tool")) };
    let named = called.meta.and_then(|meta| Caller::named_by(context.client.as_deref(), meta));
    let context = match named {
        // One process of such a client has several conversations, and says with each call in which it is.
        Some(caller) => Cow::Owned(context.clone().called_by(caller)),
        None => Cow::Borrowed(context),
    };
    tools.call(&context, revision, Call { name, arguments: called.arguments, notice }).map_err(|unknown| {
        let names = tools.names().collect::<Vec<_>>().join(", ");
        wrong(format!("{unknown}; the tools are {names}"))
    })
}

/// What a `resources/read` reads, if it says so.
pub(crate) fn uri_of<'a>(request: &Request<'a>) -> Option<Cow<'a, str>> {
    #[derive(Default, Deserialize)]
    struct Params<'a> {
        #[serde(borrow)]
        uri: Option<&'a RawValue>,
    }
    let params: Params<'a> = super::frame::params(request.params)?;
    params.uri.and_then(string)
}

fn read(tools: &Tools, context: &Context, revision: Revision, request: &Request<'_>) -> Result<String, Failure> {
    let _: ListParams<'_> = params_of(request.params)?;
    let uri = uri_of(request).ok_or_else(|| wrong("resources/read needs a uri"))?;
    tools.read(context, revision, &uri).map_err(|error| match error {
        ReadError::NotFound(why) => nothing_at(revision, &uri, why),
        ReadError::Failed(refusal) => Failure::new(Fault::Internal, refusal.to_string()),
    })
}

/// Says that a URI names nothing.
pub(super) fn nothing_at(revision: Revision, uri: &str, why: impl Into<Cow<'static, str>>) -> Failure {
    let fault = if revision.era() == Era::Legacy { Fault::NoResource } else { Fault::InvalidParams };
    Failure::new(fault, why).with(json!({ "uri": uri }))
}

fn prompt(tools: &Tools, revision: Revision, request: &Request<'_>) -> Result<String, Failure> {
    #[derive(Default, Deserialize)]
    struct Params<'a> {
        #[serde(borrow)]
        name: Option<&'a RawValue>,
        #[serde(default)]
        arguments: Option<Arguments>,
    }
    let params: Params<'_> = super::frame::params(request.params)
        .ok_or_else(|| wrong("params needs the name of a prompt, and arguments, an object of texts"))?;
    let name = params.name.and_then(string).ok_or_else(|| wrong("prompts/get needs the name of a prompt"))?;
    tools.prompt(revision, &name, &params.arguments.unwrap_or_default()).map_err(|error| wrong(error.to_string()))
}

fn complete(tools: &Tools, context: &Context, revision: Revision, request: &Request<'_>) -> Result<String, Failure> {
    #[derive(Default, Deserialize)]
    struct Params<'a> {
        #[serde(borrow, rename = "ref")]
        reference: Option<&'a RawValue>,
        #[serde(borrow)]
        argument: Option<&'a RawValue>,
    }
    #[derive(Default, Deserialize)]
    struct Ref {
        #[serde(rename = "type")]
        kind: String,
        name: Option<String>,
        uri: Option<String>,
    }
    #[derive(Default, Deserialize)]
    struct Argument {
        name: String,
        value: String,
    }
    let form = "completion/complete needs ref (of the type ref/prompt or ref/resource) and argument (name and value)";
    let params: Params<'_> = super::frame::params(request.params).ok_or_else(|| wrong(form))?;
    let reference: Option<Ref> = params.reference.and_then(|given| super::frame::params(Some(given)));
    let argument: Option<Argument> = params.argument.and_then(|given| super::frame::params(Some(given)));
    let (Some(Ref { kind, name, uri }), Some(argument)) = (reference, argument) else { return Err(wrong(form)) };
    let reference = match (&*kind, &name, &uri) {
        ("ref/prompt", Some(name), _) => Reference::Prompt(name),
        ("ref/resource", _, Some(uri)) => Reference::Resource(uri),
        _ => return Err(wrong(form)),
    };
    match tools.complete(context, revision, reference, (&argument.name, &argument.value)) {
        Completed::Result(result) => Ok(result),
        Completed::UnknownReference => Err(wrong("there is no prompt or template of that name")),
        Completed::UnknownArgument => Err(wrong("it has no argument of that name")),
    }
}

/// Whether answering may take a disk, so that it must not be done where others would wait for it.
pub(crate) fn may_wait(tools: &Tools, request: &Request<'_>) -> bool {
    match Method::named(request.era(), &request.method) {
        Some(Method::CallTool) => request.called().is_some_and(|called| {
            let arguments = called.arguments.map_or("", RawValue::get);
            called.name.as_ref().is_some_and(|name| tools.may_wait(name, arguments))
        }),
        Some(Method::ReadResource) => uri_of(request).is_some_and(|uri| tools.read_may_wait(&uri)),
        Some(Method::Complete | Method::Subscribe | Method::Listen) => true,
        Some(
            Method::Initialize
            | Method::Ping
            | Method::Discover
            | Method::ListTools
            | Method::ListResources
            | Method::ListTemplates
            | Method::ListPrompts
            | Method::GetPrompt
            | Method::Unsubscribe,
        )
        | None => false,
    }
}
