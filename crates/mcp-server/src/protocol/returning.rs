//! A client that an earlier server knew: it goes on where it was, and nobody notices.

use std::sync::atomic::Ordering;

use majordomus_capability::Shared;
use majordomus_capability::project::mcp::{Era, Revision};
use majordomus_episodes_core::EpisodeKey;
use majordomus_episodes_core::board::BoardError;
use majordomus_episodes_core::peers::Announcement;
use majordomus_records::state::carrier_of;
use majordomus_records::{Returning, StoreError};
use serde::{Deserialize, Serialize};

use super::Session;

impl Session {
    /// Goes on where an earlier server was: gives the client back what it held, as the repository knows it, neither as an
    /// attachment nor as evidence; answers for what it ended; and takes its next `replays` messages for what they are.
    /// Where what it held is over, or somebody else's by now, its next result says so.
    pub fn come_back(&self, holds: Option<&str>, ended: Option<&str>, replays: usize) {
        self.replays.store(replays, Ordering::Relaxed);
        if let Some(why) = holds.and_then(|external_id| self.give_back(external_id)) {
            self.note(format!(
                "The server of this checkout was replaced, and this session's episode could not be given back: {why}. \
                 Call majordomus_session_attach again."
            ));
        }
        let Shared { board, provider, .. } = &*self.context.shared;
        if let Some(key) = ended.and_then(|external_id| EpisodeKey::new(provider, external_id).ok())
            && let Some(Ok(Returning::Ended(by))) = self.returning(&key)
        {
            board.recall(&self.peer, by.closed(&key));
        }
    }

    /// Tells the client with its next result that its episode was ended.
    pub fn tell_stopped(&self) {
        self.note(
            "An operator stopped the server of this checkout, which ended this session's episode; call \
             majordomus_session_attach again to go on with a new one."
                .into(),
        );
    }

    /// Gives one episode back, or says why not.
    fn give_back(&self, external_id: &str) -> Option<String> {
        let Shared { board, provider, records, .. } = &*self.context.shared;
        // An id that cannot be one was never attached.
        let own = EpisodeKey::new(provider, external_id).ok()?;
        let (store, carrier) = (records.as_ref()?, self.context.carrier.as_deref()?);
        // What hooks drew has the name that they gave it, whatever the model called it.
        let key = if store.has_log(&own) { own } else { store.drawn_and_carried_by(carrier).unwrap_or(own) };
        match self.returning(&key)? {
            Ok(Returning::Open(open)) => match board.restore(&self.peer, store.to_adopt(&key, &open), carrier) {
                Ok(_) => None,
                Err(BoardError::HeldByOther { peer, .. }) => Some(format!("connection {peer} has attached it since")),
                Err(BoardError::NotFound { .. }) => Some(OVER.into()),
                Err(error) => Some(error.to_string()),
            },
            Ok(Returning::Ended(by)) => {
                board.recall(&self.peer, by.closed(&key));
                None
            }
            Ok(Returning::Gone) if !store.checkout().git_dir.exists() => Some(MOVED.into()),
            Ok(Returning::Gone) => Some(OVER.into()),
            Err(error) => Some(error.without_place()),
        }
    }

    fn returning(&self, key: &EpisodeKey) -> Option<Result<Returning, StoreError>> {
        let (store, carrier) = (self.context.shared.records.as_ref()?, self.context.carrier.as_deref()?);
        Some(store.returning(key, carrier))
    }
}

const MOVED: &str = "this checkout is no longer where it was";
const OVER: &str = "it has ended, or was attached by somebody else since";

/// A session that another process goes on with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handed {
    /// Its id.
    pub(crate) id: String,
    revision: String,
    client: Option<String>,
    /// The external id of what it holds.
    holds: Option<String>,
    /// What it announced: an intent, and paths.
    announced: Option<(String, Vec<String>)>,
    /// The URIs of what it wants to be told of.
    #[serde(default)]
    subscribed: Vec<String>,
}

impl Session {
    /// Leaves the session to another process, under that id.
    pub(crate) fn hand_over(&self, id: String) -> Option<Handed> {
        let Shared { board, peers, .. } = &*self.context.shared;
        let info = peers.list().into_iter().find(|info| info.id == self.peer.id());
        let announced = info.and_then(|info| info.announcement);
        let handed = Handed {
            id,
            revision: self.revision?.as_str().into(),
            client: self.context.client.as_deref().map(Into::into),
            holds: board.of_peer(&self.peer).map(|episode| episode.external_id),
            announced: announced.map(|said| (said.intent, said.scope)),
            subscribed: self.watching.get().map(|watching| watching.subscribed()).unwrap_or_default(),
        };
        self.give_up();
        Some(handed)
    }

    /// Goes on with a session that another process has left; `None` where it is of a revision that is not spoken here.
    pub(crate) fn go_on(mut self, handed: &Handed) -> Option<Self> {
        self.revision = Some(Revision::named(Era::Legacy, &handed.revision)?);
        let peers = &self.context.shared.peers;
        if let Some(client) = &handed.client {
            peers.identify(&self.peer, client.clone());
            self.context.client = Some(client.as_str().into());
        }
        if let Some((intent, scope)) = handed.announced.clone() {
            peers.announce(&self.peer, Announcement { intent, scope });
        }
        let session = self.carried_by(&carrier_of(&handed.id));
        for uri in &handed.subscribed {
            session.watch(uri);
        }
        session.come_back(handed.holds.as_deref(), None, 0);
        Some(session)
    }
}
