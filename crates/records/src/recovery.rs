//! Finishing what nobody is left to finish: episodes whose time is over, and ended sessions without a record.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use majordomus_episodes_core::EpisodeKey;

use crate::append::{Part, read};
use crate::compose::Composed;
use crate::ending::{EndedAs, Ending};
use crate::holder;
use crate::line::Witness;
use crate::log::Log;
use crate::state::key_hash;
use crate::store::{OpenEpisode, Silence, Store, StoreError};

/// The most episodes that one command finishes, so that none waits for an archive.
pub const AT_MOST: usize = 10;

/// What a sweep did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Sessions that it ended because their time was over.
    pub expired: Vec<String>,
    /// Records that it published, relative to the worktree's root.
    pub published: Vec<String>,
    /// Sessions whose records still wait.
    pub waiting: Vec<String>,
    /// What it could not do, for a person.
    pub troubles: Vec<String>,
}

/// Whose silence a sweep judges by the logs.
#[derive(Clone, Copy)]
pub enum Judges<'a> {
    /// Nobody's: that is for the checkout's server.
    Nothing,
    /// Everybody's.
    All,
    /// Everybody's but what this says is on the server's own board, by the key's hash ([`key_hash`]): the board judges that,
    /// and what it has excused the logs do not know.
    AllBut(&'a dyn Fn(&str) -> bool),
}

impl Judges<'_> {
    fn are_for(self, log: &Log) -> bool {
        match self {
            Self::Nothing => false,
            Self::All => true,
            Self::AllBut(on_board) => log.start.as_ref().is_some_and(|start| !on_board(&start.opened.key)),
        }
    }
}

impl Store {
    /// Ends what is past its time, unless that is for the checkout's server to judge, and composes what waits, at most
    /// [`AT_MOST`] of each and for at most `limit` in all. Trouble with one episode, or with a folder, keeps nothing else
    /// from being finished.
    pub fn sweep(&self, limit: Duration) -> Swept {
        let judges = if self.is_served() { Judges::Nothing } else { Judges::All };
        self.sweep_as(judges, limit)
    }

    /// The same by a process that knows what of silence it is for it to judge: one at a time does, the server or, without
    /// one, whatever command is run.
    pub fn sweep_as(&self, judges: Judges<'_>, limit: Duration) -> Swept {
        let until = Instant::now() + limit;
        let mut swept = Swept::default();
        self.sweep_here(judges, until, &mut swept);
        // What a board has is of this checkout.
        let there = if let Judges::AllBut(_) = judges { Judges::All } else { judges };
        for orphan in self.orphans() {
            orphan.sweep_here(there, until, &mut swept);
        }
        swept
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

    fn sweep_here(&self, judges: Judges<'_>, until: Instant, swept: &mut Swept) {
        match self.open_logs() {
            Ok((open, ended)) => {
                self.clear_up_holders(&open);
                self.put_aside(&ended, swept);
                self.expire_overdue(open, judges, swept);
            }
            Err(error) => swept.troubles.push(with_causes(&error)),
        }
        match self.waiting_records() {
            Ok(waiting) => self.compose_all(waiting, until, swept),
            Err(error) => swept.troubles.push(with_causes(&error)),
        }
    }

    fn clear_up_holders(&self, open: &[OpenEpisode]) {
        let names = |open: &OpenEpisode, id: &str| open.log.connection.as_deref().is_some_and(|of| of.starts_with(id));
        for root in self.state.roots() {
            holder::clear_up(&*self.disk, root, &|id| open.iter().any(|open| names(open, id)));
        }
    }

    fn expire_overdue(&self, open: Vec<OpenEpisode>, judges: Judges<'_>, swept: &mut Swept) {
        let is_over = |open: &OpenEpisode| matches!(open.silence, Silence::Over(_)) && judges.are_for(&open.log);
        let mut over: Vec<OpenEpisode> = open.into_iter().filter(is_over).collect();
        over.sort_by_key(|open| std::cmp::Reverse(open.silent_for));
        for open in over {
            if swept.expired.len() == AT_MOST {
                break;
            }
            match self.expire(&open) {
                Ok(Some(session_id)) => swept.expired.push(session_id),
                Ok(None) => {}
                Err(error) => swept.troubles.push(with_causes(&error)),
            }
        }
    }

    /// Composes what waits, oldest first. What fails costs its place in none of the others' count.
    fn compose_all(&self, waiting: Vec<String>, until: Instant, swept: &mut Swept) {
        let mut done = 0;
        for session_id in waiting {
            let left = until.saturating_duration_since(Instant::now());
            if done == AT_MOST || left.is_zero() {
                swept.waiting.push(session_id);
                continue;
            }
            match self.compose(&session_id, left) {
                Ok(Composed::Published(record)) => {
                    done += 1;
                    swept.published.push(record);
                }
                Ok(Composed::Unused | Composed::Gone) => done += 1,
                Ok(Composed::Later | Composed::NoWorktree) => swept.waiting.push(session_id),
                Ok(Composed::Bad) => {
                    swept.troubles.push(format!("the log of {session_id} cannot be composed and is in bad/"));
                }
                Err(error) => {
                    swept.troubles.push(with_causes(&error));
                    swept.waiting.push(session_id);
                }
            }
        }
    }

    fn expire(&self, open: &OpenEpisode) -> Result<Option<String>, StoreError> {
        // By its path and not by its key: an id with a redacted part is not the one that the path was made from.
        let ended = self.end_at(&open.path, Ending::Silence { own: None })?;
        Ok(match ended {
            EndedAs::Ended { session_id, .. } => Some(session_id),
            EndedAs::NothingOpen { .. } | EndedAs::NotOver(_) | EndedAs::HeldElsewhere | EndedAs::GoesOn { .. } => None,
        })
    }

    /// Puts aside logs that were ended by a process that died before it could.
    fn put_aside(&self, ended: &[PathBuf], swept: &mut Swept) {
        for path in ended {
            let done = self.appender_at(path).and_then(|at| {
                let Some(mut at) = at else { return Ok(()) };
                let (log, _) = read(&mut at, Part::Ends)?;
                self.retire_found(&mut at, &log)
            });
            if let Err(error) = done {
                swept.troubles.push(with_causes(&error));
            }
        }
    }

    /// Lists the open episodes that nobody holds and whose client may come back by its connection, for a server to adopt: those
    /// that connections drew, and those of hooks for which a handle is good.
    ///
    /// # Errors
    /// [`StoreError`] where the state folder cannot be read.
    pub fn adoptable(&self) -> Result<Vec<(EpisodeKey, OpenEpisode)>, StoreError> {
        let may_return = |open: &OpenEpisode| {
            let drawn = open.log.start.as_ref().is_some_and(|start| start.witness == Witness::Connection);
            (drawn || !open.log.handles.is_empty()) && open.silence != Silence::Held
        };
        let open = self.open_episodes()?.into_iter().filter(may_return);
        // An id with a redacted part is not the one that its client will come back under.
        let own = |open: &OpenEpisode| key_of(&open.log).filter(|key| Some(key_hash(key)) == hash_in(&open.log));
        Ok(open.filter_map(|open| Some((own(&open)?, open))).collect())
    }
}

fn hash_in(log: &Log) -> Option<String> {
    log.start.as_ref().map(|start| start.opened.key.clone())
}

/// Tells the key that a log's start names.
#[must_use]
pub fn key_of(log: &Log) -> Option<EpisodeKey> {
    let opened = &log.start.as_ref()?.opened;
    EpisodeKey::new(&opened.provider, &opened.external_id).ok()
}

/// Joins an error and its causes into one line.
#[must_use]
pub fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests;
