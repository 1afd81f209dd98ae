//! How episodes end: on purpose, from elsewhere, and by nobody coming back.

use crate::board::{BoardError, Closed};
use crate::clock::Moment;
use crate::driver::{CloseReason, Closing, Judged};
use crate::ids::{EpisodeKey, PeerId};

use super::calls::{Call, Completion, Work};
use super::entry::Ending;
use super::{Machine, duration};

/// What a peer ended last, to give the first answer again.
#[derive(Debug)]
pub(super) struct Memory {
    key: EpisodeKey,
    /// Absent while the driver is asked.
    answer: Option<Closed>,
}

/// Who asks for an end.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Asked {
    /// The peer that is owed the same answer again.
    by: Option<PeerId>,
    by_operator: bool,
    /// Whether no client waits for it.
    background: bool,
}

impl Asked {
    /// The deadline list.
    pub(super) fn background() -> Self {
        Self { background: true, ..Self::default() }
    }
}

/// What comes next for somebody who ends an episode.
#[derive(Debug)]
pub(crate) enum End {
    /// The first answer, again.
    Again(Closed),
    /// A call runs for that key.
    Wait(EpisodeKey),
    /// The driver is to be asked.
    Call(Call),
}

impl Machine {
    /// Ends what the peer holds, or what nobody holds.
    pub(crate) fn finish(&mut self, peer: PeerId, key: Option<&EpisodeKey>, now: Moment) -> Result<End, BoardError> {
        let now = self.tick(now);
        let slot = match (key, self.held_by(peer)) {
            (None, Some(slot)) => slot,
            (Some(key), Some(slot)) if self.entries.of(slot).key == *key => slot,
            (key, _) => match self.told_before(peer, key) {
                Some(answer) => return Ok(answer),
                None => self.slot_of(key.ok_or(BoardError::NotHeld)?)?,
            },
        };
        let entry = self.entries.of(slot);
        if let Some(holder) = self.shown_holder(slot).filter(|holder| *holder != peer) {
            return Err(BoardError::HeldByOther { key: entry.key.clone(), peer: holder });
        }
        if entry.call.is_some() {
            return Ok(End::Wait(entry.key.clone()));
        }
        self.demand_room()?;
        let memory = Memory { key: entry.key.clone(), answer: None };
        self.memories.insert(peer, memory);
        // The message that ends an episode is the last evidence for it, unless it came too late, or from somebody who
        // never held it: then it is not its client that was seen.
        let is_client = self.entries.of(slot).last_holder == Some(peer);
        let in_time = !self.overdue(slot, self.counted()) && self.entries.of(slot).ending.is_none();
        self.unseat(slot, Some(peer));
        if in_time && is_client {
            self.note_evidence(slot, now);
        }
        let asked = Asked { by: Some(peer), by_operator: !is_client, ..Asked::default() };
        Ok(End::Call(self.begin_close(slot, CloseReason::Detach, asked)))
    }

    /// Ends an episode whoever holds it.
    pub(crate) fn close(
        &mut self,
        key: &EpisodeKey,
        reason: CloseReason,
        by_operator: bool,
        now: Moment,
    ) -> Result<End, BoardError> {
        self.tick(now);
        let slot = self.slot_of(key)?;
        let entry = self.entries.of(slot);
        if entry.call.is_some() {
            return Ok(End::Wait(key.clone()));
        }
        self.demand_room()?;
        self.unseat(slot, None);
        Ok(End::Call(self.begin_close(slot, reason, Asked { by_operator, ..Asked::default() })))
    }

    /// Marks the episode as ending and asks the driver. The first reason wins, and what is overdue has expired: by
    /// the times, not by which call noticed it. The caller has unseated the holder.
    pub(super) fn begin_close(&mut self, slot: u32, reason: CloseReason, asked: Asked) -> Call {
        let (latest, counted) = (self.latest, self.counted());
        let overdue = self.overdue(slot, counted);
        let entry = self.entries.of_mut(slot);
        let (reason, by_operator) = match entry.ending {
            Some(ending) => (ending.reason, ending.by_operator),
            None if overdue => (CloseReason::Expired, false),
            None => (reason, asked.by_operator),
        };
        let by = asked.by.or(entry.ending.and_then(|ending| ending.by));
        let asked_at = entry.ending.map_or(latest, |ending| ending.asked_at);
        entry.ending = Some(Ending { reason, by, asked_at, by_operator });
        (entry.retry_at, entry.tell_at, entry.untold, entry.takeover) = (None, None, false, None);
        let last_evidence_ago = entry.witnessed.then(|| duration(latest.saturating_sub(entry.evidence)));
        let judged = entry.wait.filter(|_| reason == CloseReason::Expired);
        let judged = judged.map(|wait| Judged {
            limit: duration(wait.limit),
            since_loss: wait.lost_at.map(|at| duration(counted.saturating_sub(at))),
        });
        let (key, asked_ago) = (entry.key.clone(), duration(latest.saturating_sub(asked_at)));
        let closing = Closing { key, reason, by_operator, last_evidence_ago, asked_ago, judged };
        self.begin(slot, Work::Close(closing), asked.background)
    }

    /// Brings what `peer` is told again up to what became of its end.
    pub(super) fn remember(&mut self, peer: PeerId, completion: &Completion) {
        let answer = match completion {
            Completion::Ended(closed) => closed.clone(),
            Completion::Kept(episode) => Closed { episode: episode.clone(), recorded: false },
            Completion::NotOver(key, _) | Completion::Gone(key) => {
                if self.memories.get(&peer).is_some_and(|memory| memory.key == *key) {
                    self.memories.remove(&peer);
                }
                return;
            }
            Completion::Opened { .. } | Completion::Told => return,
        };
        // A peer that has left or ended another one since is owed nothing.
        if let Some(memory) = self.memories.get_mut(&peer)
            && memory.key.external_id.as_str() == answer.episode.external_id
            && memory.key.provider.as_str() == answer.episode.provider
        {
            memory.answer = Some(answer);
        }
    }

    /// The answer that the peer was given, if it asks to end the same episode again.
    fn told_before(&self, peer: PeerId, key: Option<&EpisodeKey>) -> Option<End> {
        let memory = self.memories.get(&peer)?;
        if key.is_some_and(|key| *key != memory.key) {
            return None;
        }
        Some(match &memory.answer {
            Some(closed) => End::Again(closed.clone()),
            None => End::Wait(memory.key.clone()),
        })
    }

    /// Notes what a peer ended at an earlier server.
    pub(crate) fn recall(&mut self, peer: PeerId, closed: Closed) {
        if let Ok(key) = EpisodeKey::new(&closed.episode.provider, &closed.episode.external_id) {
            self.memories.insert(peer, Memory { key, answer: Some(closed) });
        }
    }

    fn slot_of(&self, key: &EpisodeKey) -> Result<u32, BoardError> {
        self.by_key.get(key).copied().ok_or_else(|| BoardError::NotFound { key: key.clone() })
    }

    /// Moves the last evidence of an episode that nobody is seated at to `now`.
    fn note_evidence(&mut self, slot: u32, now: i64) {
        let entry = self.entries.of_mut(slot);
        entry.evidence = now;
        entry.witnessed = true;
    }

    /// The slot that the peer holds.
    pub(super) fn held_by(&self, peer: PeerId) -> Option<u32> {
        self.seats.slot(peer)
    }
}
