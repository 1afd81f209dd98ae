//! What concerns many episodes at once: deadlines, shutdown.

use std::collections::VecDeque;
use std::time::Duration;

use crate::clock::Moment;
use crate::driver::CloseReason;
use crate::ids::EpisodeKey;
use crate::machine::{Call, Completion, Due, End, Machine, Work};

use super::flight::Flight;
use super::{BoardError, ConnectionEpisode, EpisodeBoard};

/// What a sweep does next.
enum Next {
    /// Makes this call.
    Call(Call),
    /// Waits until one of the calls that run is answered.
    Wait,
    /// Waits for its own calls only.
    Done,
}

impl EpisodeBoard {
    /// Does all that is due now: ends what has expired, tells the driver of evidence, repeats failed calls.
    ///
    /// Returns the episodes that have ended. It costs what is due. Several calls run at once if [`Run`](super::Run)
    /// allows that; those that take longer than the limit are left to end by themselves.
    pub fn reap(&self) -> Vec<ConnectionEpisode> {
        let until = self.shared.now();
        let completions = self.sweep(|machine, now| match machine.due(until, now) {
            Due::Call(call) => Next::Call(call),
            Due::NoRoom => Next::Wait,
            Due::Nothing => Next::Done,
        });
        completions.into_iter().filter_map(ended).collect()
    }

    /// The [`Moment::awake`] at which [`reap`](Self::reap) has something to do next, as things stand.
    ///
    /// Every call can bring it forward, down to the least of [`Limits`](super::Limits) from then, so look again at least
    /// that often. Where a silent peer has been active since, it may be earlier than anything has to be done; `reap`
    /// then looks and notes a later one.
    #[must_use]
    pub fn next_due(&self) -> Option<Duration> {
        self.shared.lock().next_due()
    }

    /// Moves every expiry and every retry by `gap`, for which this process could not hear its clients. Ages stay. The driver
    /// is told anew, with the next [`reap`](Self::reap), of what waits for its client.
    pub fn excuse(&self, gap: Duration) {
        self.shared.lock().excuse(gap);
    }

    /// Closes every episode, several at once; returns those that have left the board.
    ///
    /// What the driver does not answer within the limit, or fails to make durable, stays on the board.
    pub fn close_all(&self, reason: CloseReason) -> Vec<ConnectionEpisode> {
        let mut keys = self.shared.lock().keys();
        keys.sort();
        let mut completions = self.close_keys(keys, reason);
        // What had seemed overdue and is not, by the repository's knowledge, still ends for the given reason.
        let not_over = completions.iter().filter_map(|completion| match completion {
            Completion::NotOver(key, _) if reason != CloseReason::Expired => Some(key.clone()),
            Completion::NotOver(..) | Completion::Gone(_) | Completion::Ended(_) | Completion::Kept(_) => None,
            Completion::Opened { .. } | Completion::Told => None,
        });
        let again = not_over.collect();
        completions.extend(self.close_keys(again, reason));
        completions.into_iter().filter_map(ended).collect()
    }

    /// Waits until no driver call runs, at most `limit`; returns whether none does.
    #[must_use]
    pub fn settle(&self, limit: Duration) -> bool {
        !self.shared.wait(self.shared.lock(), limit, |machine| machine.running() > 0)
    }

    fn close_keys(&self, keys: Vec<EpisodeKey>, reason: CloseReason) -> Vec<Completion> {
        let mut keys = VecDeque::from(keys);
        self.sweep(|machine, now| {
            // Those that are busy go to the back; after one round there is nothing but to wait.
            for _ in 0..keys.len() {
                let Some(key) = keys.pop_front() else { break };
                match machine.close(&key, reason, false, now) {
                    Ok(End::Call(call)) => return Next::Call(call),
                    Ok(End::Wait(_)) => keys.push_back(key),
                    Err(BoardError::Unavailable { .. }) => {
                        keys.push_front(key);
                        break;
                    }
                    // Somebody else has ended it meanwhile.
                    Ok(End::Again(_)) | Err(_) => {}
                }
            }
            if keys.is_empty() { Next::Done } else { Next::Wait }
        })
    }

    /// Makes calls as long as there are some, and waits for them; gives up where none is answered within the limit.
    fn sweep(&self, mut next: impl FnMut(&mut Machine, Moment) -> Next) -> Vec<Completion> {
        let limit = self.shared.options.limits.driver_time;
        let mut flights: Vec<Flight> = Vec::new();
        let mut completions = Vec::new();
        loop {
            let mut machine = self.shared.lock();
            let step = next(&mut machine, self.shared.now());
            let answered = machine.completions();
            match step {
                Next::Call(call) => {
                    drop(machine);
                    let awaited = !matches!(call.work, Work::Tell(_));
                    let flight = self.launch(call);
                    if awaited {
                        flights.push(flight);
                    }
                }
                Next::Done if flights.is_empty() => break,
                Next::Wait | Next::Done => {
                    let landed = |flights: &[Flight]| flights.iter().any(|flight| flight.get().is_some());
                    let timed_out = self
                        .shared
                        .wait(machine, limit, |machine| machine.completions() == answered && !landed(&flights));
                    if timed_out {
                        break;
                    }
                }
            }
            flights.retain(|flight| match flight.get() {
                Some(completion) => {
                    completions.push(completion.clone());
                    false
                }
                None => true,
            });
        }
        completions
    }
}

/// Held ones first, then those that wait, each by when they were opened, then by key.
pub(super) fn sort(episodes: &mut [ConnectionEpisode]) {
    episodes.sort_by(|a, b| {
        let rank = |episode: &ConnectionEpisode| (episode.state, episode.peer.is_none());
        rank(a)
            .cmp(&rank(b))
            .then_with(|| a.opened_at.cmp(&b.opened_at))
            .then_with(|| a.provider.cmp(&b.provider))
            .then_with(|| a.external_id.cmp(&b.external_id))
    });
}

fn ended(completion: Completion) -> Option<ConnectionEpisode> {
    match completion {
        Completion::Ended(closed) => Some(closed.episode),
        Completion::Opened { .. } | Completion::Kept(_) | Completion::NotOver(..) => None,
        Completion::Gone(_) | Completion::Told => None,
    }
}
