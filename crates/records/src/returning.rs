//! Coming back to a new server: what a connection that has outlived the last one still has.

use majordomus_episodes_core::board::{Adopted, Closed, ConnectionEpisode, ConnectionEpisodeState};
use majordomus_episodes_core::{CloseReason, EpisodeKey};

use crate::append::{Part, read};
use crate::capture::ended_line;
use crate::clock::rfc3339;
use crate::holder;
use crate::line::{EndOutcome, Witness};
use crate::log::Log;
use crate::state;
use crate::store::{OpenEpisode, Silence, Store, StoreError};

/// What a connection that an earlier server knew by its carrier finds of the episode that it held.
#[derive(Clone, Debug)]
pub enum Returning {
    /// It is open, and nobody else has joined since.
    Open(Box<OpenEpisode>),
    /// The connection itself has ended it on purpose, which it may not have been told.
    Ended(EndedBy),
    /// Neither: somebody else has it or had it since, or its time is over.
    Gone,
}

/// What a connection was told, or was about to be, that ended its episode on purpose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedBy {
    /// When it was opened, in milliseconds since the epoch.
    pub opened_ms: i64,
    /// How often a client had attached.
    pub attachments: u32,
    /// By the provider's list.
    pub outcome: EndOutcome,
    /// Where its record goes, relative to the worktree's root.
    pub record: String,
}

impl EndedBy {
    /// What the log of an ended episode says, if it was this carrier that ended it.
    pub(crate) fn of(log: &Log, carrier: &str) -> Option<Self> {
        let (start, end) = (log.start.as_ref()?, log.end.as_ref()?);
        let own =
            log.carrier.as_deref() == Some(carrier) && log.connection.is_some() && end.connection == log.connection;
        let on_purpose = end.witness == Witness::Connection && end.ended.reason == CloseReason::Detach.as_str();
        (own && on_purpose).then(|| Self {
            opened_ms: start.stamp.wall_ms,
            attachments: log.attachments,
            outcome: end.ended.outcome,
            record: state::record_path(start.stamp.wall_ms, &start.opened.session_id, end.at.branch_in_name()),
        })
    }

    /// The answer to the detach that ended it, to be given again.
    #[must_use]
    pub fn closed(&self, key: &EpisodeKey) -> Closed {
        let episode = ConnectionEpisode {
            external_id: key.external_id.as_str().into(),
            provider: key.provider.as_str().into(),
            peer: None,
            opened_at: rfc3339(self.opened_ms),
            last_activity_seconds_ago: 0,
            attachments: self.attachments,
            state: ConnectionEpisodeState::Detached,
            repository: ended_line(self.outcome, CloseReason::Detach.as_str(), &self.record),
        };
        Closed { episode, recorded: true }
    }
}

impl Store {
    /// Finds what a connection still has of the episode of a key, by its carrier.
    ///
    /// # Errors
    /// [`StoreError::Io`] where a log is there and cannot be read.
    pub fn returning(&self, key: &EpisodeKey, carrier: &str) -> Result<Returning, StoreError> {
        if let Some(open) = self.find(key)? {
            let its = open.log.carrier.as_deref() == Some(carrier);
            if its {
                let over = matches!(open.silence, Silence::Over(_));
                return Ok(if over { Returning::Gone } else { Returning::Open(Box::new(open)) });
            }
        } else if let Some(mut at) = self.open_for_append(key, false)? {
            // Its server died before it could put the log aside.
            let (log, _) = read(&mut at, Part::Whole)?;
            if let Some(ended) = EndedBy::of(&log, carrier) {
                return Ok(Returning::Ended(ended));
            }
        }
        Ok(self.ended_by(key, carrier).map_or(Returning::Gone, Returning::Ended))
    }

    /// Notes that a process was seen to die just now, by whoever was connected to it: the grace of what it held runs from
    /// here, however long it had been stopped before. No-op while it lives.
    ///
    /// # Errors
    /// The operating system's; then the grace runs from its last beat.
    pub fn note_death(&self, holder: &str) -> std::io::Result<()> {
        holder::note_death(&*self.disk, self.state.roots(), holder, &self.now())
    }

    /// How a board takes an open episode over: as detached, with what is left of its grace by the board's own.
    #[must_use]
    pub fn to_adopt(&self, key: &EpisodeKey, open: &OpenEpisode) -> Adopted {
        let grace = self.policy.own_grace();
        let since = open.log.start.as_ref().map_or_else(String::new, |start| rfc3339(start.stamp.wall_ms));
        Adopted {
            key: key.clone(),
            attachments: open.log.attachments,
            silent_for: open.silent_for,
            waiting_for: match open.silence {
                Silence::Held => std::time::Duration::ZERO,
                Silence::Waiting(left) => grace.saturating_sub(left),
                Silence::Over(_) => grace,
            },
            line: format!("session {} kept, open since {since}", open.log.session_id().unwrap_or_default()),
            opened_at: since,
        }
    }
}
