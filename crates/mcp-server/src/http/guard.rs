//! Who may call at all: pages of other sites may not, whatever name they have found for this machine.
//!
//! A page can make a browser send requests to loopback, and a hostile name server can make its own name mean loopback. So
//! the `Host` must be one of ours, and an `Origin` that is there must be ours too: a page of another local port is foreign.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use axum::http::header::{HOST, HeaderMap, ORIGIN};
use axum::http::{HeaderValue, Uri};
use majordomus_capability::{Code, Refusal};
use majordomus_records::Store;
use majordomus_records::token::Token;

/// The request header that carries the token, where the server wants one.
pub const TOKEN_HEADER: &str = "majordomus-token";

/// What the user allowed beyond loopback.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    /// Hosts under which a proxy forwards to this server: `name` or `name:port`.
    pub hosts: Vec<String>,
    /// Origins whose pages may call: `https://name` or `https://name:port`.
    pub origins: Vec<String>,
}

/// What of a request was let through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Caller {
    /// A program, or a page of this server.
    Own,
    /// A page of an origin that the user allowed; browsers want to be told so.
    Page(HeaderValue),
}

impl Allowed {
    /// Judges the headers of one request to a server on `port`.
    ///
    /// # Errors
    /// [`Code::Forbidden`].
    pub(super) fn judge(&self, uri: &Uri, headers: &HeaderMap, port: u16) -> Result<Caller, Refusal> {
        let host = one(headers, HOST).ok_or_else(|| foreign_host("the request has no Host, or several"))?;
        // A request line can carry a host of its own, which counts more than the header.
        for host in uri.authority().map(|authority| authority.as_str()).into_iter().chain([host]) {
            if !self.is_ours(host) {
                return Err(foreign_host(format!("the Host {host:?} is not this server's")));
            }
        }
        if !headers.contains_key(ORIGIN) {
            return same_site(headers).map(|()| Caller::Own);
        }
        let origin = one(headers, ORIGIN).ok_or_else(|| foreign_origin("several or unreadable origins"))?;
        if self.origins.iter().any(|allowed| allowed.trim_end_matches('/').eq_ignore_ascii_case(origin)) {
            let value = HeaderValue::from_str(origin).map_err(|_| foreign_origin(origin))?;
            return Ok(Caller::Page(value));
        }
        if !is_own(origin, host, port) {
            return Err(foreign_origin(origin));
        }
        same_site(headers).map(|()| Caller::Own)
    }

    fn is_ours(&self, host: &str) -> bool {
        let name = without_port(host);
        is_loopback(name)
            || self.hosts.iter().any(|allowed| allowed.eq_ignore_ascii_case(host) || allowed.eq_ignore_ascii_case(name))
    }
}

/// What a call that changes something has to show.
pub(super) enum Proof {
    /// Nothing: only connections of this server's own user get as far as this.
    Nothing,
    /// What is in a file that only that user reads.
    Token(Token),
    /// What nobody has, for want of a place for it: why.
    Missing(String),
}

impl Proof {
    /// A token, new for this server.
    pub(super) fn token(store: Option<&Store>, instance: &str, diagnostics: &dyn Fn(&str)) -> Self {
        let made = match store {
            Some(store) => store.make_token(instance).map_err(|error| error.to_string()),
            None => Err("outside a repository there is no place for one".into()),
        };
        let begin = "the system does not tell whose connections these are; over HTTP";
        match made {
            Ok(token) => {
                let path = token.path.display();
                diagnostics(&format!("{begin} calls that change something need {TOKEN_HEADER}, which is in {path}"));
                Self::Token(token)
            }
            Err(why) => {
                diagnostics(&format!("{begin} nothing can be changed, as there is no token: {why}"));
                Self::Missing(why)
            }
        }
    }

    /// Judges a call that changes something.
    ///
    /// # Errors
    /// [`Code::Forbidden`].
    pub(super) fn judge(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let why = "this server cannot tell whose connection this is";
        match self {
            Self::Nothing => Ok(()),
            Self::Token(Token { token, path }) => {
                let given = headers.get_all(TOKEN_HEADER);
                let mut given = given.iter();
                let (first, more) = (given.next(), given.next());
                if more.is_none() && first.is_some_and(|first| is_same(first.as_bytes(), token.as_bytes())) {
                    return Ok(());
                }
                let what = format!("{why}, so a call that changes something needs the header {TOKEN_HEADER}");
                Err(Refusal::new(Code::Forbidden, what)
                    .hint(format!("send what is in {}; it is new at each start", path.display())))
            }
            Self::Missing(missing) => {
                let what = format!("{why}, and has no token to know it by: {missing}");
                Err(Refusal::new(Code::Forbidden, what).hint("nothing can be changed over HTTP; use stdio"))
            }
        }
    }

    /// Takes the token away from where callers find it.
    pub(super) fn forget(&self, store: Option<&Store>) {
        if let (Self::Token(token), Some(store)) = (self, store) {
            store.forget_token(token);
        }
    }
}

/// Whether both are the same, in a time that does not tell how much of them is.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |differs, (one, other)| differs | (one ^ other)) == 0
}

/// Whether a page of that origin came from this server, under the name that it is called by or another one of ours.
fn is_own(origin: &str, host: &str, port: u16) -> bool {
    let Some((scheme @ ("http" | "https"), authority)) = origin.split_once("://") else { return false };
    let our_port = authority.rsplit_once(':').is_some_and(|(_, given)| given == port.to_string());
    // Other loopback addresses may be other programs'.
    let name = without_port(authority);
    let ours = name.eq_ignore_ascii_case("localhost") || matches!(name, "127.0.0.1" | "[::1]");
    authority.eq_ignore_ascii_case(host) || (scheme == "http" && our_port && ours)
}

/// A browser says where a request comes from even where it sends no origin.
fn same_site(headers: &HeaderMap) -> Result<(), Refusal> {
    let sites = headers.get_all("sec-fetch-site");
    match sites.iter().find(|site| !matches!(site.as_bytes(), b"same-origin" | b"none")) {
        None => Ok(()),
        Some(_) => Err(foreign_origin("another site")),
    }
}

fn one(headers: &HeaderMap, name: axum::http::HeaderName) -> Option<&str> {
    let mut all = headers.get_all(name).iter();
    let first = all.next()?;
    all.next().is_none().then(|| first.to_str().ok()).flatten()
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        // The colons of a bare IPv6 address are none in front of a port.
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !name.ends_with(':') => name,
        _ => host,
    }
}

fn is_loopback(name: &str) -> bool {
    let address = match name.strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
        Some(inner) => inner.parse::<Ipv6Addr>().map(IpAddr::V6),
        None => name.parse::<Ipv4Addr>().map(IpAddr::V4),
    };
    name.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

fn foreign_host(what: impl std::fmt::Display) -> Refusal {
    Refusal::new(Code::Forbidden, what).hint(
        "call http://127.0.0.1, http://localhost or http://[::1] at its port; for a proxy that forwards under another \
         name start the server with --allow-host NAME, or set MAJORDOMUS_ALLOWED_HOSTS",
    )
}

fn foreign_origin(origin: impl std::fmt::Display) -> Refusal {
    Refusal::new(Code::Forbidden, format!("pages of {origin} may not call this server"))
        .hint("start the server with --allow-origin ORIGIN, or set MAJORDOMUS_ALLOWED_ORIGINS, if that page is yours")
}

#[cfg(test)]
mod tests;
