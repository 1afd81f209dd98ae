//! Calling the server of this checkout over HTTP.

use std::io;
use std::time::Duration;

use anyhow::Context;
use majordomus_capability::project::rest::HANDLE_HEADER;
use majordomus_capability::{Capability, Method};
use majordomus_mcp_server::http::TOKEN_HEADER;
use majordomus_records::serving::Published;
use majordomus_records::{Policy, Store};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde_json::Value;
use ureq::http;

use super::argument::Values;
use crate::output::{self, Hint};

/// How long a server may take to say which one it is.
const NAMING: Duration = Duration::from_secs(5);
/// How long a call may take: a capability may wait for a disk that is slow.
const CALLING: Duration = Duration::from_secs(60);
/// The most bytes of an answer.
const ANSWER_MOST: u64 = 8 << 20;
/// What a part of a path or of a query cannot hold as it is (RFC 3986, section 2.3).
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// One call, as it goes over the wire.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) method: Method,
    /// The path with its query.
    pub(super) target: String,
    pub(super) body: Option<String>,
    pub(super) handle: Option<String>,
}

impl Request {
    /// Puts arguments where the capability's route takes them.
    pub(super) fn new(capability: &Capability, arguments: &Values) -> Self {
        let route = capability.descriptor().route.expect("a command that needs a server has a route");
        let mut fields = arguments.fields.clone();
        let mut target = route.path.to_owned();
        for name in route.parameters() {
            let value = fields.shift_remove(name).map(|value| encoded(&value)).unwrap_or_default();
            target = target.replace(&format!("{{{name}}}"), &value);
        }
        let handle = arguments.handle.clone();
        if route.method == Method::Post {
            return Self { method: route.method, target, body: Some(Value::Object(fields).to_string()), handle };
        }
        let mut mark = '?';
        for (name, value) in &fields {
            // A list is its name several times.
            for value in value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice) {
                target.push_str(&format!("{mark}{name}={}", encoded(value)));
                mark = '&';
            }
        }
        Self { method: route.method, target, body: None, handle }
    }
}

fn encoded(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    utf8_percent_encode(&text, RESERVED).to_string()
}

/// Says that nobody answers for this checkout.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoServer {
    #[error("no server runs for this checkout")]
    None,
    #[error("the server of this checkout does not answer at {url}")]
    Mute { url: String, source: ureq::Error },
}

/// What to do where nobody does.
pub(crate) const START_ONE: &str = "start one in this checkout: majordomus serve ensure";

/// A server that has shown that it is the one of this checkout.
pub(super) struct Server {
    agent: ureq::Agent,
    url: String,
    /// What shows it that a call that changes something is its own user's, where it wants to see that.
    token: Option<String>,
}

impl Server {
    /// Finds the server of the checkout that the command runs in.
    pub(super) fn of_this_checkout() -> anyhow::Result<Self> {
        let store = Store::open(crate::commands::here()?, Policy::default());
        let found = match store.published() {
            Some(published) => Self::named(&published).map(|server| Self { token: store.token(), ..server }),
            None => Err(NoServer::None),
        };
        found.map_err(|error| output::no_server(error, START_ONE))
    }

    fn named(published: &Published) -> Result<Self, NoServer> {
        Self::told(published, NAMING).map(|(server, _)| server)
    }

    /// Asks who answers there, and how it stands: the port may be another program's by now, or another checkout's
    /// server.
    pub(super) fn told(published: &Published, patience: Duration) -> Result<(Self, Value), NoServer> {
        let server = Self { agent: agent(), url: published.url.trim_end_matches('/').to_owned(), token: None };
        if !is_of_this_machine(&server.url) {
            return Err(NoServer::None);
        }
        let status = Request { method: Method::Get, target: "/api/v1/server".into(), body: None, handle: None };
        let (_, answer) = match server.send(&status, patience) {
            // It has gone without taking back what it published.
            Err(ureq::Error::Io(error)) if error.kind() == io::ErrorKind::ConnectionRefused => Err(NoServer::None),
            sent => sent.map_err(|source| NoServer::Mute { url: server.url.clone(), source }),
        }?;
        let said = serde_json::from_str::<Value>(&answer).unwrap_or_default();
        if said["instance"] == *published.instance { Ok((server, said)) } else { Err(NoServer::None) }
    }

    /// Calls a capability; what it refuses is an error with its hint.
    pub(super) fn call(&self, request: &Request) -> anyhow::Result<Value> {
        let sent = self.send(request, CALLING).with_context(|| format!("the server at {} gave no answer", self.url));
        let (status, body) = match request.method {
            Method::Get => sent?,
            Method::Post => sent.hint("it may have done it nevertheless; look before you repeat it")?,
        };
        if status.is_success() {
            return serde_json::from_str(&body).context("the server's answer is not JSON");
        }
        let Ok(Refused { error }) = serde_json::from_str::<Refused>(&body) else {
            anyhow::bail!("the server answered with the status {status}");
        };
        Err(output::refused(&error.message, error.hint.as_deref()))
    }

    fn send(&self, request: &Request, limit: Duration) -> Result<(http::StatusCode, String), ureq::Error> {
        let mut made = http::Request::builder()
            .method(request.method.as_str())
            .uri(format!("{}{}", self.url, request.target))
            .header("Accept", "application/json");
        if let Some(handle) = &request.handle {
            made = made.header(HANDLE_HEADER, handle);
        }
        if request.method == Method::Post
            && let Some(token) = &self.token
        {
            made = made.header(TOKEN_HEADER, token);
        }
        let mut answer = match &request.body {
            Some(body) => {
                let made = made.header("Content-Type", "application/json").body(body.as_str())?;
                self.agent.run(self.agent.configure_request(made).timeout_global(Some(limit)).build())
            }
            None => self.agent.run(self.agent.configure_request(made.body(())?).timeout_global(Some(limit)).build()),
        }?;
        let body = answer.body_mut().with_config().limit(ANSWER_MOST).read_to_string()?;
        Ok((answer.status(), body))
    }
}

/// A client that goes nowhere but where it is told: no proxy of the environment, no redirection.
fn agent() -> ureq::Agent {
    ureq::Agent::config_builder()
        .proxy(None)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .http_status_as_error(false)
        .timeout_connect(Some(NAMING))
        .user_agent(concat!("majordomus/", env!("CARGO_PKG_VERSION")))
        .build()
        .into()
}

/// Whether an address is one that only this machine answers at: handles are sent there.
fn is_of_this_machine(url: &str) -> bool {
    let Ok(uri) = url.parse::<http::Uri>() else { return false };
    let host = uri.host().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    uri.scheme_str() == Some("http")
        && (host == "localhost" || bare.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback()))
}

/// The body of a refusal.
#[derive(Deserialize)]
struct Refused {
    error: Said,
}

#[derive(Deserialize)]
struct Said {
    message: String,
    hint: Option<String>,
}

#[cfg(test)]
mod tests;
