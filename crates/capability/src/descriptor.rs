//! What is declared of a capability besides its types.

use crate::refusal::Code;

/// What a capability does to what it finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Nothing: a query.
    Read,
    /// It adds or moves something; nothing that was there is lost.
    Add,
    /// It can remove or overwrite something.
    Destroy,
}

/// The HTTP method of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// Of every query, and of nothing else.
    Get,
    /// Of everything else.
    Post,
}

impl Method {
    /// The word on the request line.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
        }
    }
}

/// Where a capability is served over HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Route {
    /// The method.
    pub method: Method,
    /// The path, with `{name}` for a parameter.
    pub path: &'static str,
}

/// A capability's declaration.
#[derive(Clone, Copy, Debug)]
pub struct Descriptor {
    /// `noun.verb`; never changes once it was released.
    pub id: &'static str,
    /// A few words for a person.
    pub title: &'static str,
    /// Sentences for a model: what it does, when to call it, what it does not do.
    pub description: &'static str,
    /// What it does to what it finds.
    pub effect: Effect,
    /// Whether the same call made again changes nothing more.
    pub idempotent: bool,
    /// The tool's name where models can call it.
    pub tool: Option<&'static str>,
    /// The route where programs can call it.
    pub route: Option<Route>,
    /// The words after `majordomus` where people can call it.
    pub cli: Option<&'static str>,
    /// The refusals that its handler can give; every capability can also answer [`Code::InvalidInput`] and
    /// [`Code::Internal`].
    pub errors: &'static [Code],
    /// What it belongs to, for grouping in reference pages.
    pub tags: &'static [&'static str],
}
