//! What a server that answers over HTTP can be told.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use clap::Args;

use crate::variables::{self, ALLOWED_HOSTS, ALLOWED_ORIGINS};

/// Who may call besides what runs on this machine under this server's own address.
#[derive(Debug, Default, Args)]
pub(crate) struct HttpArgs {
    /// Hosts under which a proxy forwards to this server, such as tools.example.com [or MAJORDOMUS_ALLOWED_HOSTS,
    /// separated by commas].
    #[arg(long, value_name = "HOST", num_args = 1.., value_parser = host)]
    allow_host: Vec<String>,
    /// Origins whose pages may call this server, such as https://tools.example.com [or MAJORDOMUS_ALLOWED_ORIGINS,
    /// separated by commas].
    #[arg(long, value_name = "ORIGIN", num_args = 1.., value_parser = origin)]
    allow_origin: Vec<String>,
}

/// Says that an environment variable holds something else than it should.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name}: {wrong}")]
pub(crate) struct BadList {
    pub(crate) name: &'static str,
    wrong: String,
}

impl HttpArgs {
    /// The hosts of the arguments, else those of the environment: in lower case, a port only where one was given.
    pub(crate) fn allowed_hosts(&self) -> Result<Vec<String>, BadList> {
        allowed(&self.allow_host, ALLOWED_HOSTS, host)
    }

    /// The origins of the arguments, else those of the environment: `scheme://host` in lower case, a port only where
    /// one was given.
    pub(crate) fn allowed_origins(&self) -> Result<Vec<String>, BadList> {
        allowed(&self.allow_origin, ALLOWED_ORIGINS, origin)
    }
}

fn allowed(
    arguments: &[String],
    name: &'static str,
    read: fn(&str) -> Result<String, String>,
) -> Result<Vec<String>, BadList> {
    if !arguments.is_empty() {
        return Ok(arguments.to_vec());
    }
    let value = variables::value(name).unwrap_or_default();
    let text = value.to_str().ok_or_else(|| BadList { name, wrong: "it is no text".into() })?;
    list(text, read).map_err(|wrong| BadList { name, wrong })
}

/// Reads a list that is separated by commas; blanks and empty places count for nothing.
fn list(text: &str, read: fn(&str) -> Result<String, String>) -> Result<Vec<String>, String> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(read).collect()
}

/// Reads `host` or `host:port`.
fn host(text: &str) -> Result<String, String> {
    let wrong = |why| format!("{text:?} is no host such as tools.example.com: {why}");
    if text.contains('/') {
        return Err(wrong("give neither a scheme nor a path"));
    }
    let (name, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, rest)) => {
            address.parse::<Ipv6Addr>().map_err(|_| wrong("between the brackets is no IPv6 address"))?;
            (&text[..address.len() + 2], rest)
        }
        None => text.split_at(text.find(':').unwrap_or(text.len())),
    };
    let of_name = |char: char| char.is_ascii_alphanumeric() || matches!(char, '-' | '.' | '_');
    if !name.starts_with('[') && (name.is_empty() || !name.chars().all(of_name)) {
        return Err(wrong("a name has letters, digits, dots and hyphens"));
    }
    if !port.is_empty() && port.strip_prefix(':').is_none_or(|port| port.parse::<u16>().is_err()) {
        return Err(wrong("the port is no number"));
    }
    Ok(text.to_ascii_lowercase())
}

/// Reads `scheme://host` or `scheme://host:port`, as a browser sends it.
fn origin(text: &str) -> Result<String, String> {
    let wrong = |why: &str| format!("{text:?} is no origin such as https://tools.example.com: {why}");
    let (scheme, rest) = text.split_once("://").ok_or_else(|| wrong("there is no scheme"))?;
    let of_scheme = |char: char| char.is_ascii_alphanumeric() || matches!(char, '+' | '-' | '.');
    if !scheme.starts_with(|char: char| char.is_ascii_alphabetic()) || !scheme.chars().all(of_scheme) {
        return Err(wrong("the scheme is none"));
    }
    if rest.contains('/') {
        return Err(wrong("an origin has no path, nor a slash at its end"));
    }
    host(rest).map_err(|_| wrong("the host is none"))?;
    Ok(text.to_ascii_lowercase())
}

/// The addresses to answer at: of this machine, and of no other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listen(Vec<IpAddr>);

impl Listen {
    /// The addresses, IPv4 first. Of the two of `localhost` one may be missing on a machine.
    pub(crate) fn addresses(&self) -> &[IpAddr] {
        &self.0
    }
}

impl Default for Listen {
    fn default() -> Self {
        Self(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()])
    }
}

impl FromStr for Listen {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.eq_ignore_ascii_case("localhost") {
            return Ok(Self::default());
        }
        let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
        match bare.parse::<IpAddr>() {
            Ok(address) if address.is_loopback() => Ok(Self(vec![address])),
            Ok(_) => Err("it is not a loopback address; put a proxy in front to serve other machines"),
            Err(_) => Err("it is neither an address nor localhost"),
        }
    }
}

#[cfg(test)]
mod tests;
