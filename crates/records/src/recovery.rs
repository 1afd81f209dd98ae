//! Finishing what nobody is left to finish: episodes whose time is over, and ended sessions without a record.

use std::time::Duration;

use majordomus_episodes_core::EpisodeKey;

use crate::compose::Composed;
use crate::ending::{EndedAs, Ending};
use crate::holder;
use crate::line::Witness;
use crate::log::Log;
use crate::store::{OpenEpisode, Silence, Store, StoreError};

/// The most episodes that one command finishes, so that none waits for an archive.
pub const AT_MOST: usize = 10;

/// How long git may take for one record here.
const LIMIT: Duration = Duration::from_secs(10);

/// What a sweep did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Sessions that it ended because their time was over.
    pub expired: Vec<String>,
    /// Records that it published, relative to the worktree's root.
    pub published: Vec<String>,
    /// What it could not do, for a person.
    pub troubles: Vec<String>,
}

impl Store {
    /// Ends what is past its time and composes what waits, at most [`AT_MOST`] of each.
    ///
    /// # Errors
    /// [`StoreError`] where the state folder cannot be read; trouble with single episodes is in the answer.
    pub fn sweep(&self) -> Result<Swept, StoreError> {
        let mut swept = self.sweep_here()?;
        for orphan in self.orphans() {
            let more = orphan.sweep_here()?;
            swept.expired.extend(more.expired);
            swept.published.extend(more.published);
            swept.troubles.extend(more.troubles);
        }
        Ok(swept)
    }

    /// The states of linked worktrees that are gone, which nobody can finish from where they were.
    fn orphans(&self) -> Vec<Self> {
        let mut names: Vec<String> = Vec::new();
        for root in self.state.roots() {
            let all = root.parent().and_then(|all| self.disk.names(all).ok()).unwrap_or_default();
            names.extend(all.into_iter().filter_map(|name| name.into_string().ok()));
        }
        names.sort_unstable();
        names.dedup();
        let removed = names.into_iter().filter(|name| self.checkout.is_removed(name));
        removed
            .map(|name| Self {
                checkout: self.checkout.removed(&name),
                state: self.state.sibling(&name),
                ..self.clone()
            })
            .collect()
    }

    fn sweep_here(&self) -> Result<Swept, StoreError> {
        let mut swept = Swept::default();
        let open = self.open_episodes()?;
        let named =
            |id: &str| open.iter().any(|open| open.log.connection.as_deref().is_some_and(|of| of.starts_with(id)));
        for root in self.state.roots() {
            holder::clear_up(&*self.disk, root, &named);
        }
        let over = open.into_iter().filter(|open| matches!(open.silence, Silence::Over(_)));
        for open in over.take(AT_MOST) {
            match self.expire(&open) {
                Ok(Some(session_id)) => swept.expired.push(session_id),
                Ok(None) => {}
                Err(error) => swept.troubles.push(with_causes(&error)),
            }
        }
        self.retire_left_over()?;
        for session_id in self.waiting_records()?.into_iter().take(AT_MOST) {
            match self.compose(&session_id, LIMIT) {
                Ok(Composed::Published(record)) => swept.published.push(record),
                Ok(Composed::Later | Composed::NoWorktree | Composed::Unused | Composed::Gone) => {}
                Ok(Composed::Bad) => {
                    swept.troubles.push(format!("the log of {session_id} cannot be composed and is in bad/"))
                }
                Err(error) => swept.troubles.push(with_causes(&error)),
            }
        }
        Ok(swept)
    }

    fn expire(&self, open: &OpenEpisode) -> Result<Option<String>, StoreError> {
        // By its path and not by its key: an id with a redacted part is not the one that the path was made from.
        let ended = self.end_at(&open.path, Ending::Silence { own: None })?;
        Ok(match ended {
            EndedAs::Ended { session_id, .. } => Some(session_id),
            EndedAs::NothingOpen { .. } | EndedAs::NotOver(_) | EndedAs::HeldElsewhere => None,
        })
    }

    /// Puts aside logs that were ended by a process that died before it could.
    fn retire_left_over(&self) -> Result<(), StoreError> {
        for path in self.logs("open")? {
            let Ok(bytes) = self.disk.read(&path) else { continue };
            let log = Log::parse(&bytes);
            if log.end.is_none() {
                continue;
            }
            if let Some(mut at) = self.appender_at(&path)? {
                self.retire(&mut at, &log)?;
            }
        }
        Ok(())
    }

    /// Lists the open episodes that connections drew and that nobody holds, for a server to adopt.
    ///
    /// # Errors
    /// [`StoreError`] where the state folder cannot be read.
    pub fn adoptable(&self) -> Result<Vec<(EpisodeKey, OpenEpisode)>, StoreError> {
        let by_connection = |open: &OpenEpisode| {
            open.log.start.as_ref().is_some_and(|start| start.witness == Witness::Connection)
                && open.silence != Silence::Held
        };
        let open = self.open_episodes()?.into_iter().filter(by_connection);
        Ok(open.filter_map(|open| Some((key_of(&open.log)?, open))).collect())
    }
}

/// Tells the key that a log's start names.
#[must_use]
pub fn key_of(log: &Log) -> Option<EpisodeKey> {
    let opened = &log.start.as_ref()?.opened;
    EpisodeKey::new(&opened.provider, &opened.external_id).ok()
}

/// Joins an error and its causes into one line.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
