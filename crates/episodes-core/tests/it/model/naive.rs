//! The rules once more, as plainly as they can be said: one list, searched from end to end, asking at once.

use std::time::Duration;

use majordomus_episodes_core::board::{Adopted, Attached, BoardError, Closed, Touch};
use majordomus_episodes_core::clock::Moment;
use majordomus_episodes_core::driver::{Closing, Opening, Outcome, Seen};
use majordomus_episodes_core::ids::PeerId;
use majordomus_episodes_core::{CloseReason, ConnectionEpisode, ConnectionEpisodeState, EpisodeKey};

use super::{LIMITS, Repository};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Record {
    Recorded,
    Nothing,
    Failed,
}

/// Time awake in seconds; may be before the process began.
type Seconds = i64;

struct Episode {
    key: EpisodeKey,
    opened_at: String,
    attachments: u32,
    resumed: bool,
    repository: String,
    client: Option<String>,
    holder: Option<PeerId>,
    last_holder: Option<PeerId>,
    evidence: Seconds,
    /// The first evidence since the last report.
    untold: Option<Seconds>,
    /// Evidence of a holder that went, or that came too soon after a report, is due then.
    owed: Option<Seconds>,
    told: Option<Seconds>,
    witnessed: bool,
    record: Record,
    ending: Option<(CloseReason, Option<PeerId>)>,
    expires: Option<Seconds>,
    retry: Option<Seconds>,
    /// By whom, from whom, when, and how often in turn.
    takeover: Option<(PeerId, PeerId, Seconds, u32)>,
}

pub(crate) struct Naive {
    repository: Repository,
    episodes: Vec<Episode>,
    lost: Vec<(PeerId, Option<PeerId>)>,
    answers: Vec<(PeerId, EpisodeKey, Closed)>,
}

fn at(now: Moment) -> Seconds {
    now.awake.as_secs() as i64
}

fn length(duration: Duration) -> Seconds {
    duration.as_secs() as i64
}

fn span(seconds: Seconds) -> Duration {
    Duration::from_secs(seconds as u64)
}

fn wall(now: Moment) -> String {
    // The test's clock stays within a few days of its beginning.
    let start = 1_767_225_600_000_i64;
    let ms = now.wall_ms - start;
    let (date, ms) = if ms < 0 { (String::from("2025-12-31"), ms + 86_400_000) } else { (day(ms), ms % 86_400_000) };
    let (s, ms) = (ms / 1000, ms % 1000);
    format!("{date}T{:02}:{:02}:{:02}.{ms:03}Z", s / 3600, s / 60 % 60, s % 60)
}

fn day(ms: i64) -> String {
    format!("2026-01-{:02}", 1 + ms / 86_400_000)
}

impl Episode {
    fn overdue(&self, now: Seconds) -> bool {
        self.holder.is_none() && self.expires.is_some_and(|expires| expires <= now)
    }

    fn view(&self, now: Seconds) -> ConnectionEpisode {
        let state = if self.holder.is_some() { ConnectionEpisodeState::Open } else { ConnectionEpisodeState::Detached };
        ConnectionEpisode {
            external_id: self.key.external_id.as_str().into(),
            provider: self.key.provider.as_str().into(),
            peer: self.holder,
            opened_at: self.opened_at.clone(),
            last_activity_seconds_ago: (now - self.evidence) as u64,
            attachments: self.attachments,
            state,
            repository: self.repository.clone(),
        }
    }

    /// When something is due for it, and whether that is untold evidence of a holder.
    fn due(&self) -> Option<(Seconds, bool)> {
        let deadline = match self.ending {
            Some(_) => self.retry,
            None => [self.expires, self.retry, self.owed].into_iter().flatten().min(),
        };
        let evidence = self.untold.map(|untold| (untold + length(LIMITS.seen_every), true));
        [deadline.map(|deadline| (deadline, false)), evidence].into_iter().flatten().min()
    }
}

impl Naive {
    pub(crate) fn new(repository: Repository) -> Self {
        Self { repository, episodes: Vec::new(), lost: Vec::new(), answers: Vec::new() }
    }

    pub(crate) fn repository(&self) -> &Repository {
        &self.repository
    }

    pub(crate) fn attach(
        &mut self,
        peer: PeerId,
        key: &EpisodeKey,
        client: Option<&str>,
        moment: Moment,
    ) -> Result<Attached, BoardError> {
        let now = at(moment);
        let mut ended = None;
        if let Some(index) = self.find(key)
            && (self.episodes[index].ending.is_some() || self.episodes[index].overdue(now))
        {
            match self.end(index, CloseReason::Expired, None, now) {
                Some(Ok(closed)) => ended = Some(closed.episode),
                Some(Err(kept)) => return Err(BoardError::NotRecorded { line: kept.repository }),
                None => {}
            }
        }
        if let Some(index) = self.find(key)
            && self.episodes[index].holder == Some(peer)
        {
            let episode = &mut self.episodes[index];
            episode.evidence = now;
            if episode.record == Record::Failed {
                episode.untold = None;
                self.open(index, now);
            } else {
                episode.untold = episode.untold.or(Some(now));
            }
            return Ok(self.attached(index, None, None, ended, now));
        }
        let takeover = match self.find(key).and_then(|index| self.episodes[index].holder) {
            Some(from) => Some(self.takeover(key, peer, from, now)?),
            None => None,
        };
        let index = self.find(key).unwrap_or_else(|| self.create(key, wall(moment), now));
        let left = self.episodes.iter().position(|episode| episode.holder == Some(peer));
        if let Some(left) = left {
            self.leave(left, now);
        }
        self.lost.retain(|(lost, _)| *lost != peer);
        self.answers.retain(|(answered, _, _)| *answered != peer);
        if let Some((_, from, _, _)) = takeover {
            self.lost.push((from, Some(peer)));
        }
        let episode = &mut self.episodes[index];
        episode.resumed = episode.attachments > 0;
        episode.attachments += 1;
        (episode.holder, episode.last_holder) = (Some(peer), Some(peer));
        (episode.evidence, episode.witnessed) = (now, true);
        (episode.untold, episode.owed, episode.expires, episode.retry) = (None, None, None, None);
        episode.takeover = takeover;
        episode.client = client.map(Into::into).or(episode.client.take());
        self.open(index, now);
        let left = left.map(|left| {
            self.tell_owed(left, now);
            self.episodes[left].view(now)
        });
        Ok(self.attached(index, takeover.map(|(_, from, _, _)| from), left, ended, now))
    }

    pub(crate) fn touch(&mut self, peer: PeerId, moment: Moment) -> Touch {
        let now = at(moment);
        if let Some(episode) = self.episodes.iter_mut().find(|episode| episode.holder == Some(peer)) {
            episode.evidence = now;
            episode.untold = episode.untold.or(Some(now));
            return Touch::Held;
        }
        match self.lost.iter().position(|(lost, _)| *lost == peer) {
            Some(index) => Touch::Lost { by: self.lost.remove(index).1 },
            None => Touch::None,
        }
    }

    pub(crate) fn detach(&mut self, peer: PeerId, moment: Moment) -> Option<ConnectionEpisode> {
        let now = at(moment);
        self.lost.retain(|(lost, _)| *lost != peer);
        self.answers.retain(|(answered, _, _)| *answered != peer);
        let index = self.episodes.iter().position(|episode| episode.holder == Some(peer))?;
        self.leave(index, now);
        self.tell_owed(index, now);
        Some(self.episodes[index].view(now))
    }

    pub(crate) fn finish(
        &mut self,
        peer: PeerId,
        key: Option<&EpisodeKey>,
        moment: Moment,
    ) -> Result<Closed, BoardError> {
        let now = at(moment);
        let held = self.episodes.iter().position(|episode| episode.holder == Some(peer));
        let held = held.filter(|index| key.is_none_or(|key| self.episodes[*index].key == *key));
        let answer = self.answers.iter().find(|(answered, of, _)| *answered == peer && key.is_none_or(|key| of == key));
        let index = match (held, answer) {
            (Some(index), _) => index,
            (None, Some((_, _, answer))) => return Ok(answer.clone()),
            (None, None) => {
                let key = key.ok_or(BoardError::NotHeld)?;
                self.find(key).ok_or_else(|| BoardError::NotFound { key: key.clone() })?
            }
        };
        let episode = &mut self.episodes[index];
        if let Some(holder) = episode.holder.filter(|holder| *holder != peer) {
            return Err(BoardError::HeldByOther { key: episode.key.clone(), peer: holder });
        }
        if episode.ending.is_none() && !episode.overdue(now) {
            (episode.evidence, episode.witnessed) = (now, true);
        }
        let key = episode.key.clone();
        self.answers.retain(|(answered, _, _)| *answered != peer);
        let ended = match self.end(index, CloseReason::Detach, Some(peer), now) {
            Some(ended) => ended,
            // Not over after all, so now it ends on purpose.
            None => {
                let index = self.find(&key).expect("it is not over");
                let episode = &mut self.episodes[index];
                (episode.evidence, episode.witnessed) = (now, true);
                self.end(index, CloseReason::Detach, Some(peer), now).expect("no longer overdue")
            }
        };
        let closed = ended.unwrap_or_else(|kept| Closed { episode: kept, recorded: false });
        self.answers.push((peer, key, closed.clone()));
        Ok(closed)
    }

    pub(crate) fn close(
        &mut self,
        key: &EpisodeKey,
        reason: CloseReason,
        moment: Moment,
    ) -> Result<ConnectionEpisode, BoardError> {
        let now = at(moment);
        loop {
            let index = self.find(key).ok_or_else(|| BoardError::NotFound { key: key.clone() })?;
            if let Some(holder) = self.episodes[index].holder {
                self.lost.push((holder, None));
            }
            match self.end(index, reason, None, now) {
                Some(Ok(closed)) => return Ok(closed.episode),
                Some(Err(kept)) => return Err(BoardError::NotRecorded { line: kept.repository }),
                None if reason == CloseReason::Expired => {
                    let line = self.episodes[index].repository.clone();
                    return Err(BoardError::NotRecorded { line });
                }
                None => {}
            }
        }
    }

    pub(crate) fn close_all(&mut self, reason: CloseReason, moment: Moment) -> Vec<ConnectionEpisode> {
        let keys: Vec<EpisodeKey> = self.episodes.iter().map(|episode| episode.key.clone()).collect();
        keys.iter().filter_map(|key| self.close(key, reason, moment).ok()).collect()
    }

    pub(crate) fn reap(&mut self, moment: Moment) -> Vec<ConnectionEpisode> {
        let now = at(moment);
        let mut gone = Vec::new();
        loop {
            let due = self.episodes.iter().enumerate().find_map(|(index, episode)| {
                let (deadline, evidence) = episode.due()?;
                (deadline <= now).then_some((index, evidence))
            });
            let Some((index, evidence)) = due else { return gone };
            let episode = &mut self.episodes[index];
            let passed = |deadline: Option<Seconds>| deadline.is_some_and(|deadline| deadline <= now);
            if evidence {
                episode.untold = None;
                episode.owed = Some(now);
                self.tell_if_not_too_soon(index, now);
            } else if episode.ending.is_some() || episode.overdue(now) {
                gone.extend(self.end(index, CloseReason::Expired, None, now).and_then(Result::ok).map(|c| c.episode));
            } else if passed(episode.retry) {
                self.open(index, now);
            } else {
                self.tell_if_not_too_soon(index, now);
            }
        }
    }

    pub(crate) fn excuse(&mut self, gap: Duration) {
        for episode in &mut self.episodes {
            for deadline in [&mut episode.expires, &mut episode.retry, &mut episode.owed] {
                *deadline = deadline.map(|deadline| deadline + length(gap));
            }
        }
    }

    pub(crate) fn adopt(&mut self, adopted: Adopted, moment: Moment) {
        if self.find(&adopted.key).is_some() {
            return;
        }
        let now = at(moment);
        let index = self.create(&adopted.key, adopted.opened_at, now - length(adopted.silent_for));
        let episode = &mut self.episodes[index];
        episode.attachments = adopted.attachments;
        episode.repository = adopted.line;
        episode.expires = Some(now + (length(LIMITS.grace) - length(adopted.waiting_for)).max(0));
    }

    pub(crate) fn list(&self, moment: Moment) -> Vec<ConnectionEpisode> {
        let mut all: Vec<_> = self.episodes.iter().map(|episode| episode.view(at(moment))).collect();
        all.sort_by_key(|episode| {
            let detached = episode.state == ConnectionEpisodeState::Detached;
            (detached, episode.opened_at.clone(), episode.provider.clone(), episode.external_id.clone())
        });
        all
    }

    pub(crate) fn of_peer(&self, peer: PeerId, moment: Moment) -> Option<ConnectionEpisode> {
        self.episodes.iter().find(|episode| episode.holder == Some(peer)).map(|episode| episode.view(at(moment)))
    }

    pub(crate) fn next_due(&self) -> Option<Duration> {
        self.episodes.iter().filter_map(Episode::due).map(|(deadline, _)| span(deadline)).min()
    }

    fn find(&self, key: &EpisodeKey) -> Option<usize> {
        self.episodes.iter().position(|episode| episode.key == *key)
    }

    fn create(&mut self, key: &EpisodeKey, opened_at: String, evidence: Seconds) -> usize {
        self.episodes.push(Episode {
            key: key.clone(),
            opened_at,
            attachments: 0,
            resumed: false,
            repository: String::new(),
            client: None,
            holder: None,
            last_holder: None,
            evidence,
            untold: None,
            owed: None,
            told: None,
            witnessed: false,
            record: Record::Recorded,
            ending: None,
            expires: None,
            retry: None,
            takeover: None,
        });
        self.episodes.len() - 1
    }

    fn attached(
        &self,
        index: usize,
        taken_over_from: Option<PeerId>,
        left: Option<ConnectionEpisode>,
        ended: Option<ConnectionEpisode>,
        now: Seconds,
    ) -> Attached {
        let episode = &self.episodes[index];
        let recorded = episode.record == Record::Recorded;
        Attached { episode: episode.view(now), resumed: episode.resumed, recorded, taken_over_from, left, ended }
    }

    fn takeover(
        &self,
        key: &EpisodeKey,
        peer: PeerId,
        from: PeerId,
        now: Seconds,
    ) -> Result<(PeerId, PeerId, Seconds, u32), BoardError> {
        let index = self.find(key).expect("somebody holds it");
        let returns = match self.episodes[index].takeover {
            Some((by, whose, when, returns)) if by == from && whose == peer && now - when < length(LIMITS.grace) => {
                returns + 1
            }
            _ => 0,
        };
        if returns == 2 {
            return Err(BoardError::Conflict { key: key.clone(), peer: from });
        }
        Ok((peer, from, now, returns))
    }

    fn leave(&mut self, index: usize, now: Seconds) {
        let episode = &mut self.episodes[index];
        (episode.holder, episode.takeover) = (None, None);
        episode.expires = Some(now + length(LIMITS.grace));
        if episode.untold.take().is_some() {
            episode.owed = Some(now);
        }
    }

    fn open(&mut self, index: usize, now: Seconds) {
        let episode = &mut self.episodes[index];
        let peer = episode.last_holder.expect("somebody attached");
        let opening = Opening { key: episode.key.clone(), peer, client: episode.client.clone() };
        let report = self.repository.open(&opening);
        episode.repository = report.line;
        if let Some(known) = report.known {
            episode.opened_at = known.opened_at;
            episode.attachments = known.attachments.unwrap_or(episode.attachments);
            episode.resumed = known.resumed;
        }
        episode.retry = None;
        episode.record = match report.outcome {
            Outcome::Recorded => Record::Recorded,
            Outcome::Nothing => Record::Nothing,
            Outcome::Failed | Outcome::NotOver(_) => {
                episode.retry = Some(now + length(LIMITS.retry_every));
                Record::Failed
            }
        };
    }

    /// Ends it: gone, kept because that failed, or none of both because it is not over.
    fn end(
        &mut self,
        index: usize,
        reason: CloseReason,
        by: Option<PeerId>,
        now: Seconds,
    ) -> Option<Result<Closed, ConnectionEpisode>> {
        let episode = &mut self.episodes[index];
        let (reason, by) = match episode.ending {
            Some((first, before)) => (first, by.or(before)),
            None if episode.overdue(now) => (CloseReason::Expired, by),
            None => (reason, by),
        };
        episode.ending = Some((reason, by));
        (episode.holder, episode.takeover) = (None, None);
        (episode.untold, episode.owed, episode.retry) = (None, None, None);
        let last_evidence_ago = episode.witnessed.then(|| span(now - episode.evidence));
        let report = self.repository.close(&Closing { key: episode.key.clone(), reason, last_evidence_ago });
        episode.repository = report.line;
        let view = episode.view(now);
        let answer = match report.outcome {
            Outcome::Recorded | Outcome::Nothing => {
                let recorded = report.outcome == Outcome::Recorded;
                self.episodes.remove(index);
                Ok(Closed { episode: view, recorded })
            }
            Outcome::NotOver(wait) if reason == CloseReason::Expired => {
                episode.ending = None;
                episode.record = Record::Recorded;
                episode.expires = Some(now + length(wait).max(1));
                let key = episode.key.clone();
                self.answers.retain(|(answered, of, _)| Some(*answered) != by || *of != key);
                return None;
            }
            Outcome::Failed | Outcome::NotOver(_) => {
                episode.retry = Some(now + length(LIMITS.retry_every));
                Err(view)
            }
        };
        let told = answer.clone().unwrap_or_else(|kept| Closed { episode: kept, recorded: false });
        for (answered, key, given) in &mut self.answers {
            let same = key.external_id.as_str() == told.episode.external_id && Some(*answered) == by;
            if same {
                *given = told.clone();
            }
        }
        Some(answer)
    }

    fn tell_if_not_too_soon(&mut self, index: usize, now: Seconds) {
        let episode = &mut self.episodes[index];
        match episode.told.map(|told| told + length(LIMITS.seen_every)) {
            Some(earliest) if earliest > now => episode.owed = Some(earliest),
            _ => self.tell_owed(index, now),
        }
    }

    fn tell_owed(&mut self, index: usize, now: Seconds) {
        let episode = &mut self.episodes[index];
        if episode.owed.take().is_some() && episode.record == Record::Recorded {
            episode.told = Some(now);
            let ago = span(now - episode.evidence);
            self.repository.seen(&Seen { key: episode.key.clone(), peer: episode.last_holder, ago });
        }
    }
}
