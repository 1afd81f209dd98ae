//! What tests of several modules begin with.

use std::num::NonZeroUsize;
use std::sync::Arc;

use majordomus_episodes_core::board::{BoardOptions, EpisodeBoard};
use majordomus_episodes_core::clock::ManualClock;
use majordomus_episodes_core::peers::{Peer, PeerBoard, Transport};
use serde_json::Value;

use crate::catalogue::catalogue;
use crate::context::{Context, Shared};
use crate::descriptor::Reach;
use crate::handles::Handles;
use crate::project::rest::{self, Parts, Reply};
use crate::resource::{Contents, Kept, Resource, Watch};

/// A server without a repository whose time stands still.
pub(crate) struct World {
    pub(crate) shared: Arc<Shared>,
    pub(crate) clock: Arc<ManualClock>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(|_| ())
    }

    /// A server that knows at most so many handles.
    pub(crate) fn with_handles(most: usize) -> Self {
        Self::with(|shared| shared.handles = Handles::at_most(NonZeroUsize::new(most).unwrap()))
    }

    pub(crate) fn with(change: impl FnOnce(&mut Shared)) -> Self {
        let clock = Arc::new(ManualClock::default());
        let board = EpisodeBoard::with(BoardOptions { clock: clock.clone(), ..BoardOptions::default() });
        let mut shared = Shared::new(Arc::new(catalogue()), board, PeerBoard::with_clock(clock.clone()));
        change(&mut shared);
        Self { shared: Arc::new(shared), clock }
    }

    /// A new connection.
    pub(crate) fn peer(&self) -> Peer {
        self.shared.peers.attach(Transport::Stdio)
    }

    /// The body of a call as `peer` that must be answered.
    pub(crate) fn answer_as(&self, peer: &Peer, id: &str, arguments: &Value) -> Value {
        let reply = self.call_as(peer, id, arguments);
        assert_eq!(reply.status, 200, "{id} {arguments}: {}", reply.body);
        serde_json::from_str(&reply.body).unwrap()
    }

    /// Calls as `peer`.
    pub(crate) fn call_as(&self, peer: &Peer, id: &str, arguments: &Value) -> Reply {
        self.request(&Context::of_peer(self.shared.clone(), peer.clone()), id, arguments)
    }

    /// Calls without a connection.
    pub(crate) fn call(&self, id: &str, handle: Option<&str>, arguments: &Value) -> Reply {
        self.request(&Context::without_peer(self.shared.clone(), handle), id, arguments)
    }

    /// The body of a call without a connection that must be answered.
    pub(crate) fn answer(&self, id: &str, handle: Option<&str>, arguments: &Value) -> Value {
        let reply = self.call(id, handle, arguments);
        assert_eq!(reply.status, 200, "{id} {arguments}: {}", reply.body);
        serde_json::from_str(&reply.body).unwrap()
    }

    /// The status and message of a call without a connection that must be refused.
    pub(crate) fn refused(&self, id: &str, handle: Option<&str>, arguments: &Value) -> (u16, String) {
        let reply = self.call(id, handle, arguments);
        let body: Value = serde_json::from_str(&reply.body).unwrap();
        let error = body["error"]["message"].as_str();
        (reply.status, error.unwrap_or_else(|| panic!("{id} {arguments} is not refused: {body}")).to_owned())
    }

    /// Attaches without a connection and gives the handle.
    pub(crate) fn attach(&self, external_id: &str) -> String {
        let arguments = serde_json::json!({ "external_id": external_id });
        self.answer("episodes.attach", None, &arguments)["episode_handle"].as_str().unwrap().to_owned()
    }

    fn request(&self, context: &Context, id: &str, arguments: &Value) -> Reply {
        let capability = self.shared.registry.capability(id).unwrap();
        request(capability, context, arguments)
    }
}

/// Calls a capability over REST with flat arguments, wherever its route wants them.
pub(crate) fn request(capability: &crate::Capability, context: &Context, arguments: &Value) -> Reply {
    let route = capability.descriptor().route.unwrap();
    if route.method == crate::Method::Post {
        return rest::call(capability, context, Parts { body: arguments.to_string().as_bytes(), ..Parts::default() });
    }
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let given: Vec<(String, String)> = arguments
        .as_object()
        .unwrap()
        .iter()
        .flat_map(|(name, value)| {
            let values = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
            values.iter().map(|value| (name.clone(), text(value)))
        })
        .collect();
    let in_path = |name: &str| route.parameters().any(|part| part == name);
    let path: Vec<(&str, &str)> =
        given.iter().filter(|(name, _)| in_path(name)).map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let query = form_urlencoded::Serializer::new(String::new())
        .extend_pairs(given.iter().filter(|(name, _)| !in_path(name)))
        .finish();
    rest::call(capability, context, Parts { path: &path, query: Some(&query), body: b"" })
}

/// Something to read that says what its parameter was.
pub(crate) fn resource(uri: &'static str) -> Resource {
    Resource {
        uri,
        name: "one",
        title: "One",
        description: "One.",
        mime_type: "text/plain",
        kept: Kept::LIVE,
        reach: Reach::Server,
        read: |_, value| Ok(Contents::Text(value.to_owned())),
        complete: None,
        watch: Watch::Never,
    }
}
