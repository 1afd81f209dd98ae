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

/// How far a capability's handler reaches, from the least to the most.
///
/// What only reads declarations is answered by any process, with or without a server. What reaches the repository may
/// wait for a disk, so a server never runs it where others would wait for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reach {
    /// The declarations themselves.
    Declarations,
    /// The memory of the running server.
    Server,
    /// The files of the checkout.
    Repository,
}

/// Where a capability is served over HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Route {
    /// The method.
    pub method: Method,
    /// The path, with `{name}` for a parameter.
    pub path: &'static str,
}

impl Route {
    /// The names of the path's parameters, in order.
    pub fn parameters(self) -> impl Iterator<Item = &'static str> {
        self.path.split('/').filter_map(parameter)
    }

    /// Whether the paths differ in nothing but parameters' names.
    #[must_use]
    pub fn has_shape_of(self, other: Self) -> bool {
        let shape =
            |path: &'static str| path.split('/').map(|part| if parameter(part).is_some() { "{}" } else { part });
        shape(self.path).eq(shape(other.path))
    }

    /// Whether some request's path would fit both.
    #[must_use]
    pub fn overlaps(self, other: Self) -> bool {
        let fits = |(one, other): (&'static str, &'static str)| {
            one == other || parameter(one).is_some() || parameter(other).is_some()
        };
        let parts = |path: &'static str| path.split('/');
        parts(self.path).count() == parts(other.path).count() && parts(self.path).zip(parts(other.path)).all(fits)
    }
}

/// The name of a parameter, if that part of a path is one.
fn parameter(part: &'static str) -> Option<&'static str> {
    part.strip_prefix('{')?.strip_suffix('}')
}

/// What capabilities can belong to, each with a description.
pub const TAGS: &[(&str, &str)] = &[
    ("episodes", "The sittings of agents that have not ended: who is at work, and when a record begins and ends."),
    ("peers", "The connections to this server, and what each announced that it is doing."),
    ("sessions", "The records of sessions that have ended, as they lie in the repository."),
    ("server", "The server itself: what can be called, and how it stands."),
];

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
    /// How far its handler reaches.
    pub reach: Reach,
    /// Whether what a query once answered to its arguments hardly ever changes, so that caches may ask by its tag.
    pub immutable: bool,
    /// The tool's name where models can call it.
    pub tool: Option<&'static str>,
    /// The route where programs can call it.
    pub route: Option<Route>,
    /// The words after `majordomus` where people can call it. The required arguments follow in their order, the others
    /// are flags.
    pub cli: Option<&'static str>,
    /// The refusals that its handler can give; every capability can also answer [`Code::InvalidInput`] and
    /// [`Code::Internal`].
    pub errors: &'static [Code],
    /// What it belongs to, for grouping in reference pages: names of [`TAGS`].
    pub tags: &'static [&'static str],
}
