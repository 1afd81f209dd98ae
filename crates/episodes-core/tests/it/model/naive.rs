//! The rules once more, as plainly as they can be said: one list, searched from end to end, asking at once.

use std::time::Duration;

use majordomus_episodes_core::board::{Adopted, AttachRequest, Attached, BoardError, Closed, Touch};
use majordomus_episodes_core::clock::Moment;
use majordomus_episodes_core::driver::{Closing, Judged, Left, Opening, Outcome, Seen};
use majordomus_episodes_core::ids::PeerId;
use majordomus_episodes_core::peers::Transport;
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
    /// Whether the holder's process or a stream holds it.
    held: bool,
    process: bool,
    /// Since when its holder is silent, less what was excused.
    silent_since: Seconds,
    /// When its last stream ended, less what was excused, and whether that is taken for true.
    loss: Option<(Seconds, bool)>,
    /// When it is looked at, if silence or a loss stood as they did when it was looked at last.
    look: Option<Seconds>,
    evidence: Seconds,
    /// The first evidence since the last report.
    untold: Option<Seconds>,
    /// What is owed to the repository is due then.
    owed: Option<Seconds>,
    /// Evidence of a holder that went, or that came too soon after a report.
    owed_evidence: bool,
    /// Who left, and when, less what was excused.
    leaving: Option<(PeerId, Seconds)>,
    /// Whether the repository takes its holder for gone.
    gone: bool,
    told: Option<Seconds>,
    /// By which handle, whether again, by which carrier, whether it was taken over, and whether it was asked for once more.
    joining: (Option<String>, bool, Option<String>, bool, bool),
    /// When that was asked for.
    asked: Seconds,
    witnessed: bool,
    /// Its last evidence when its holder sat down.
    before: Seconds,
    record: Record,
    /// Why, who asked, whether by an operator, and when first.
    ending: Option<(CloseReason, Option<PeerId>, bool, Seconds)>,
    /// Without a holder: when it expires, by which length, and when it was lost, less what was excused.
    expires: Option<(Seconds, Seconds, Option<Seconds>)>,
    retry: Option<Seconds>,
    /// By whom, from whom, when, and how often in turn.
    takeover: Option<(PeerId, PeerId, Seconds, u32)>,
}

pub(crate) struct Naive {
    repository: Repository,
    episodes: Vec<Episode>,
    streams: Vec<PeerId>,
    carriers: Vec<PeerId>,
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
    Duration::from_secs(seconds.max(0) as u64)
}

/// Whether somebody takes its seat back without a word.
fn is_silent(request: &AttachRequest<'_>) -> bool {
    request.again && request.handle.is_none() && request.carrier.is_some()
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
    /// When it expires, by which length, and when it was lost.
    fn waits(&self) -> Option<(Seconds, Seconds, Option<Seconds>)> {
        let (grace, idle) = (length(LIMITS.grace), length(LIMITS.handle_idle));
        match (self.holder, self.loss) {
            (None, _) => self.expires,
            (Some(_), _) if self.held => None,
            (Some(_), Some((since, _))) => Some((since + grace, grace, Some(since))),
            (Some(_), None) => Some((self.silent_since + idle, idle, None)),
        }
    }

    fn overdue(&self, now: Seconds) -> bool {
        self.waits().is_some_and(|(expires, ..)| expires <= now)
    }

    /// Who is shown to hold it.
    fn shown(&self, now: Seconds, carriers: &[PeerId]) -> Option<PeerId> {
        let until = match self.loss {
            _ if self.held => Seconds::MAX,
            None if self.holder.is_some_and(|holder| carriers.contains(&holder)) => Seconds::MAX,
            Some((_, true)) => Seconds::MIN,
            Some((since, false)) => since + length(LIMITS.stream_patience),
            None => self.silent_since + length(LIMITS.grace),
        };
        self.holder.filter(|_| now < until)
    }

    fn look_again(&mut self) {
        self.look = match self.loss {
            Some((since, false)) if !self.held => Some(since + length(LIMITS.stream_patience)),
            _ => self.waits().map(|(expires, ..)| expires),
        };
    }

    fn heard(&mut self, now: Seconds) {
        self.evidence = now;
        self.untold = self.untold.or(Some(now));
        self.silent_since = self.silent_since.max(now);
        if self.loss.take().is_some() {
            self.leaving = None;
        }
    }

    /// Owes word of whom it waits for.
    fn say_again(&mut self, now: Seconds) {
        match (self.holder, self.loss, self.expires, self.last_holder) {
            (Some(holder), Some((since, true)), ..) if self.gone && !self.held => self.leaving = Some((holder, since)),
            (None, _, Some((.., Some(lost))), Some(last)) => self.leaving = Some((last, lost)),
            (None, _, Some(_), None) => self.owed_evidence = true,
            _ => return,
        }
        self.owed = Some(now);
    }

    fn stood_up(&mut self) {
        self.witnessed |= self.evidence != self.before;
    }

    fn owe_nothing(&mut self) {
        (self.untold, self.owed, self.owed_evidence) = (None, None, false);
        (self.leaving, self.gone, self.retry) = (None, false, None);
    }

    fn view(&self, now: Seconds, carriers: &[PeerId]) -> ConnectionEpisode {
        let holder = self.shown(now, carriers);
        let state = if holder.is_some() { ConnectionEpisodeState::Open } else { ConnectionEpisodeState::Detached };
        ConnectionEpisode {
            external_id: self.key.external_id.as_str().into(),
            provider: self.key.provider.as_str().into(),
            peer: holder,
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
            None => {
                let over = if self.holder.is_some() { self.look } else { self.expires.map(|(expires, ..)| expires) };
                [over, self.retry, self.owed].into_iter().flatten().min()
            }
        };
        let evidence = self.untold.map(|untold| (untold + length(LIMITS.seen_every), true));
        [deadline.map(|deadline| (deadline, false)), evidence].into_iter().flatten().min()
    }
}

impl Naive {
    pub(crate) fn new(repository: Repository) -> Self {
        Self {
            repository,
            episodes: Vec::new(),
            streams: Vec::new(),
            carriers: Vec::new(),
            lost: Vec::new(),
            answers: Vec::new(),
        }
    }

    pub(crate) fn repository(&self) -> &Repository {
        &self.repository
    }

    pub(crate) fn attach(
        &mut self,
        request: &AttachRequest<'_>,
        key: &EpisodeKey,
        moment: Moment,
    ) -> Result<Attached, BoardError> {
        let (now, peer) = (at(moment), request.peer.id());
        let mut ended = None;
        if let Some(index) = self.find(key)
            && (self.episodes[index].ending.is_some() || self.episodes[index].overdue(now))
        {
            match self.end(index, CloseReason::Expired, (None, false), Some(peer), now) {
                Some(Ok(closed)) => ended = Some(closed.episode),
                Some(Err(kept)) => return Err(BoardError::NotRecorded { line: kept.repository }),
                None => {}
            }
        }
        if request.again && self.find(key).is_none() {
            return Err(BoardError::NotFound { key: key.clone() });
        }
        if let Some(index) = self.find(key)
            && self.episodes[index].holder == Some(peer)
        {
            if self.episodes[index].record == Record::Failed || request.handle.is_some() {
                if request.handle.is_some() {
                    self.episodes[index].joining = (None, request.again, request.carrier.map(Into::into), false, false);
                }
                self.sit(index, request, request.handle.is_some() && !request.again, now);
                self.episodes[index].asked = now;
                self.open(index, now);
                return Ok(self.attached(index, None, None, ended, now));
            }
            if !is_silent(request) {
                self.episodes[index].heard(now);
            }
            if self.episodes[index].record == Record::Recorded && !request.again {
                let episode = &mut self.episodes[index];
                episode.joining = (None, false, request.carrier.map(Into::into), false, true);
                episode.client = request.client.map(Into::into).or(episode.client.take());
                let untold = episode.untold;
                episode.owe_nothing();
                episode.untold = untold;
                episode.asked = now;
                self.open(index, now);
                return Ok(self.attached(index, None, None, ended, now));
            }
            let attached = self.attached(index, None, None, ended, now);
            // Whoever takes its seat back without a word has not been heard.
            if !is_silent(request) {
                self.tell_if_back(index, now);
            }
            return Ok(attached);
        }
        let takeover = match self.find(key).and_then(|index| self.episodes[index].shown(now, &self.carriers)) {
            Some(from) if request.again => return Err(BoardError::HeldByOther { key: key.clone(), peer: from }),
            Some(from) => Some(self.takeover(key, peer, from, now)?),
            None => None,
        };
        if let Some(episode) = self.find(key).map(|index| &self.episodes[index])
            && is_silent(request)
            && episode.last_holder.is_some()
            && episode.joining.2.as_deref() != request.carrier
        {
            return Err(BoardError::NotFound { key: key.clone() });
        }
        let index = self.find(key).unwrap_or_else(|| self.create(key, wall(moment), now));
        let left = self.episodes.iter().position(|episode| episode.holder == Some(peer));
        if let Some(left) = left {
            self.leave(left, now);
        }
        self.lost.retain(|(lost, _)| *lost != peer);
        self.answers.retain(|(answered, _, _)| *answered != peer);
        let episode = &mut self.episodes[index];
        if let Some(from) = episode.holder {
            self.lost.push((from, Some(peer)));
        }
        (episode.holder, episode.last_holder) = (Some(peer), Some(peer));
        episode.witnessed |= !is_silent(request);
        episode.before = episode.evidence;
        episode.takeover = takeover;
        episode.joining = (None, request.again, request.carrier.map(Into::into), takeover.is_some(), false);
        self.sit(index, request, !request.again, now);
        self.episodes[index].asked = now;
        self.open(index, now);
        let view = left.map(|left| self.episodes[left].view(now, &self.carriers));
        let attached = self.attached(index, takeover.map(|(_, from, _, _)| from), view, ended, now);
        if let Some(left) = left {
            self.tell_owed(left, now);
        }
        Ok(attached)
    }

    fn sit(&mut self, index: usize, request: &AttachRequest<'_>, counts: bool, now: Seconds) {
        let process = request.peer.transport() == Transport::Stdio;
        let held = process || self.streams.contains(&request.peer.id());
        let episode = &mut self.episodes[index];
        if counts || request.again {
            episode.resumed = episode.attachments > 0;
        }
        episode.attachments += u32::from(counts);
        if !is_silent(request) {
            episode.evidence = now;
        }
        (episode.silent_since, episode.loss) = (now, None);
        (episode.held, episode.process) = (held, process);
        episode.owe_nothing();
        episode.client = request.client.map(Into::into).or(episode.client.take());
        episode.joining.0 = request.handle.map(Into::into).or(episode.joining.0.take());
        episode.look_again();
    }

    pub(crate) fn touch(&mut self, peer: PeerId, moment: Moment) -> Touch {
        let now = at(moment);
        if let Some(index) = self.episodes.iter().position(|episode| episode.holder == Some(peer)) {
            self.episodes[index].heard(now);
            self.tell_if_back(index, now);
            return Touch::Held;
        }
        match self.lost.iter().position(|(lost, _)| *lost == peer) {
            Some(index) => Touch::Lost { by: self.lost.remove(index).1 },
            None => Touch::None,
        }
    }

    pub(crate) fn hold(&mut self, peer: PeerId, moment: Moment) {
        self.streams.push(peer);
        let Some(index) = self.episodes.iter().position(|episode| episode.holder == Some(peer)) else { return };
        let episode = &mut self.episodes[index];
        (episode.held, episode.loss, episode.leaving) = (true, None, None);
        if episode.gone {
            (episode.owed, episode.owed_evidence) = (Some(at(moment)), true);
            episode.look_again();
            self.tell_owed(index, at(moment));
        } else {
            episode.look_again();
        }
    }

    pub(crate) fn release(&mut self, peer: PeerId, moment: Moment) {
        let now = at(moment);
        let Some(stream) = self.streams.iter().position(|stream| *stream == peer) else { return };
        self.streams.remove(stream);
        if self.streams.contains(&peer) {
            return;
        }
        let carried = self.carriers.contains(&peer);
        if let Some(episode) = self.episodes.iter_mut().find(|episode| episode.holder == Some(peer) && !episode.process)
        {
            (episode.held, episode.loss) = (false, (!carried).then_some((now, false)));
            episode.silent_since = now;
            episode.look_again();
        }
    }

    pub(crate) fn carry(&mut self, peer: PeerId) {
        self.carriers.push(peer);
    }

    pub(crate) fn put_down(&mut self, peer: PeerId, moment: Moment) {
        let now = at(moment);
        let Some(carrier) = self.carriers.iter().position(|carried| *carried == peer) else { return };
        self.carriers.remove(carrier);
        if self.carriers.contains(&peer) || self.streams.contains(&peer) {
            return;
        }
        let held = |episode: &Episode| episode.holder == Some(peer) && !episode.process;
        let Some(index) = self.episodes.iter().position(held) else { return };
        let episode = &mut self.episodes[index];
        (episode.loss, episode.leaving, episode.owed) = (Some((now, true)), Some((peer, now)), Some(now));
        episode.look_again();
        self.tell_owed(index, now);
    }

    pub(crate) fn detach(&mut self, peer: PeerId, moment: Moment) -> Option<ConnectionEpisode> {
        let now = at(moment);
        self.lost.retain(|(lost, _)| *lost != peer);
        self.answers.retain(|(answered, _, _)| *answered != peer);
        self.streams.retain(|stream| *stream != peer);
        self.carriers.retain(|carried| *carried != peer);
        let index = self.episodes.iter().position(|episode| episode.holder == Some(peer))?;
        self.leave(index, now);
        let view = self.episodes[index].view(now, &self.carriers);
        self.tell_owed(index, now);
        Some(view)
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
        if let Some(holder) = episode.shown(now, &self.carriers).filter(|holder| *holder != peer) {
            return Err(BoardError::HeldByOther { key: episode.key.clone(), peer: holder });
        }
        let is_client = episode.last_holder == Some(peer);
        if is_client && episode.ending.is_none() && !episode.overdue(now) {
            (episode.evidence, episode.witnessed) = (now, true);
        }
        let key = episode.key.clone();
        self.answers.retain(|(answered, _, _)| *answered != peer);
        let by = (Some(peer), !is_client);
        let ended = match self.end(index, CloseReason::Detach, by, Some(peer), now) {
            Some(ended) => ended,
            // Not over after all, so now it ends on purpose; or not here.
            None => {
                let index = self.find(&key).ok_or_else(|| BoardError::NotFound { key: key.clone() })?;
                let episode = &mut self.episodes[index];
                if is_client {
                    (episode.evidence, episode.witnessed) = (now, true);
                }
                let ended = self.end(index, CloseReason::Detach, by, Some(peer), now);
                ended.ok_or_else(|| BoardError::NotFound { key: key.clone() })?
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
        operator: bool,
        moment: Moment,
    ) -> Result<ConnectionEpisode, BoardError> {
        let now = at(moment);
        loop {
            let index = self.find(key).ok_or_else(|| BoardError::NotFound { key: key.clone() })?;
            match self.end(index, reason, (None, operator), None, now) {
                Some(Ok(closed)) => return Ok(closed.episode),
                Some(Err(kept)) => return Err(BoardError::NotRecorded { line: kept.repository }),
                None if reason == CloseReason::Expired && self.find(key).is_some() => {
                    let line = self.episodes[index].repository.clone();
                    return Err(BoardError::NotRecorded { line });
                }
                None => {}
            }
        }
    }

    pub(crate) fn close_all(&mut self, reason: CloseReason, moment: Moment) -> Vec<ConnectionEpisode> {
        let keys: Vec<EpisodeKey> = self.episodes.iter().map(|episode| episode.key.clone()).collect();
        keys.iter().filter_map(|key| self.close(key, reason, false, moment).ok()).collect()
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
                episode.owed_evidence = true;
                self.tell_if_not_too_soon(index, now);
            } else if episode.ending.is_some() || episode.overdue(now) {
                let ended = self.end(index, CloseReason::Expired, (None, false), None, now);
                gone.extend(ended.and_then(Result::ok).map(|c| c.episode));
            } else if passed(episode.retry) {
                self.open(index, now);
            } else {
                if let (Some(holder), Some((since, confirmed @ false))) = (episode.holder, &mut episode.loss)
                    && *since + length(LIMITS.stream_patience) <= now
                {
                    *confirmed = true;
                    episode.leaving = Some((holder, *since));
                    episode.owed = Some(now);
                }
                episode.look_again();
                if episode.owed.is_some_and(|owed| owed <= now) {
                    self.tell_if_not_too_soon(index, now);
                }
            }
        }
    }

    pub(crate) fn excuse(&mut self, gap: Duration, moment: Moment) {
        let (gap, now) = (length(gap), at(moment));
        for episode in &mut self.episodes {
            episode.look_again();
            for deadline in [&mut episode.look, &mut episode.retry, &mut episode.owed] {
                *deadline = deadline.map(|deadline| deadline + gap);
            }
            let moved = |lost: Option<Seconds>| lost.map(|lost| lost + gap);
            episode.expires = episode.expires.map(|(expires, limit, lost)| (expires + gap, limit, moved(lost)));
            episode.loss = episode.loss.map(|(since, confirmed)| (since + gap, confirmed));
            episode.leaving = episode.leaving.map(|(peer, at)| (peer, at + gap));
            episode.silent_since += gap;
            if episode.record == Record::Recorded && episode.ending.is_none() {
                episode.say_again(now);
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
        let left = (length(LIMITS.grace) - length(adopted.waiting_for)).max(0);
        episode.expires = Some((now + left, length(LIMITS.grace), None));
    }

    pub(crate) fn list(&self, moment: Moment) -> Vec<ConnectionEpisode> {
        let mut all: Vec<_> = self.episodes.iter().map(|episode| episode.view(at(moment), &self.carriers)).collect();
        all.sort_by_key(|episode| {
            let detached = episode.state == ConnectionEpisodeState::Detached;
            (detached, episode.opened_at.clone(), episode.provider.clone(), episode.external_id.clone())
        });
        all
    }

    pub(crate) fn of_peer(&self, peer: PeerId, moment: Moment) -> Option<ConnectionEpisode> {
        self.episodes
            .iter()
            .find(|episode| episode.holder == Some(peer))
            .map(|episode| episode.view(at(moment), &self.carriers))
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
            held: false,
            process: false,
            silent_since: evidence,
            loss: None,
            look: None,
            evidence,
            untold: None,
            owed: None,
            owed_evidence: false,
            leaving: None,
            gone: false,
            told: None,
            joining: (None, false, None, false, false),
            asked: 0,
            witnessed: false,
            before: evidence,
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
        Attached {
            episode: episode.view(now, &self.carriers),
            resumed: episode.resumed,
            recorded,
            taken_over_from,
            left,
            ended,
        }
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
        let peer = episode.holder.take().expect("somebody leaves");
        episode.stood_up();
        (episode.loss, episode.takeover, episode.gone) = (None, None, false);
        episode.expires = Some((now + length(LIMITS.grace), length(LIMITS.grace), Some(now)));
        episode.owed_evidence |= episode.untold.take().is_some();
        episode.leaving = Some((peer, now));
        episode.owed = Some(now);
    }

    fn open(&mut self, index: usize, now: Seconds) {
        let episode = &mut self.episodes[index];
        let peer = episode.last_holder.expect("somebody attached");
        let (handle, again, carrier, took_over, repeated) = episode.joining.clone();
        let (key, client) = (episode.key.clone(), episode.client.clone());
        let ago = Duration::from_secs((now - episode.evidence).unsigned_abs());
        let asked_ago = span(now - episode.asked);
        let opening = Opening { key, peer, client, handle, again, carrier, took_over, repeated, ago, asked_ago };
        let report = self.repository.open(&opening);
        if report.outcome == Outcome::Gone {
            return self.forget(index);
        }
        if report.outcome != Outcome::Unchanged {
            episode.repository = report.line;
        }
        if let Some(known) = report.known {
            episode.opened_at = known.opened_at;
            episode.attachments = known.attachments.unwrap_or(episode.attachments);
            episode.resumed = known.resumed;
        }
        episode.retry = None;
        episode.record = match report.outcome {
            Outcome::Recorded | Outcome::Unchanged => Record::Recorded,
            Outcome::Nothing => Record::Nothing,
            Outcome::Failed | Outcome::NotOver(_) | Outcome::Gone => {
                episode.retry = Some(now + length(LIMITS.retry_every));
                Record::Failed
            }
        };
        if episode.record != Record::Failed {
            episode.joining = (None, false, episode.joining.2.take(), false, false);
        }
        if episode.record == Record::Recorded && episode.leaving.is_some() {
            episode.owed = Some(now);
        }
    }

    /// Ends it: gone, kept because that failed, or none of both because it is not over, or another process's.
    fn end(
        &mut self,
        index: usize,
        reason: CloseReason,
        (by, operator): (Option<PeerId>, bool),
        asks: Option<PeerId>,
        now: Seconds,
    ) -> Option<Result<Closed, ConnectionEpisode>> {
        let episode = &mut self.episodes[index];
        let (reason, by, by_operator, asked) = match episode.ending {
            Some((first, before, operator, asked)) => (first, by.or(before), operator, asked),
            None if episode.overdue(now) => (CloseReason::Expired, by, false, now),
            None => (reason, by, operator, now),
        };
        episode.ending = Some((reason, by, by_operator, asked));
        episode.expires = episode.waits();
        if episode.holder.is_some() {
            episode.stood_up();
        }
        if let Some(holder) = episode.holder.take().filter(|holder| asks != Some(*holder)) {
            self.lost.push((holder, None));
        }
        episode.takeover = None;
        (episode.untold, episode.owed, episode.owed_evidence, episode.retry) = (None, None, false, None);
        let last_evidence_ago = episode.witnessed.then(|| span(now - episode.evidence));
        let judged = episode
            .expires
            .filter(|_| reason == CloseReason::Expired)
            .map(|(_, limit, lost)| Judged { limit: span(limit), since_loss: lost.map(|lost| span(now - lost)) });
        let (key, asked_ago) = (episode.key.clone(), span(now - asked));
        let closing = Closing { key, reason, by_operator, last_evidence_ago, asked_ago, judged };
        let report = self.repository.close(&closing);
        episode.repository = report.line;
        let view = episode.view(now, &self.carriers);
        let answer = match report.outcome {
            Outcome::Recorded | Outcome::Nothing => {
                let recorded = report.outcome == Outcome::Recorded;
                self.episodes.remove(index);
                Ok(Closed { episode: view, recorded })
            }
            Outcome::NotOver(wait) if reason == CloseReason::Expired => {
                episode.ending = None;
                episode.record = Record::Recorded;
                let (_, limit, lost) = episode.expires.unwrap_or((0, length(LIMITS.grace), None));
                episode.expires = Some((now + length(wait).max(1), limit, lost));
                episode.owed = episode.leaving.map(|_| now);
                let key = episode.key.clone();
                self.answers.retain(|(answered, of, _)| Some(*answered) != by || *of != key);
                return None;
            }
            Outcome::Gone => {
                let key = episode.key.clone();
                self.episodes.remove(index);
                self.answers.retain(|(answered, of, _)| Some(*answered) != by || *of != key);
                return None;
            }
            Outcome::Failed | Outcome::NotOver(_) | Outcome::Unchanged => {
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

    /// Says at once that somebody is there who was said to be gone.
    fn tell_if_back(&mut self, index: usize, now: Seconds) {
        let episode = &mut self.episodes[index];
        if episode.gone {
            (episode.untold, episode.owed, episode.owed_evidence) = (None, Some(now), true);
            self.tell_owed(index, now);
        }
    }

    fn tell_if_not_too_soon(&mut self, index: usize, now: Seconds) {
        let episode = &mut self.episodes[index];
        match episode.told.map(|told| told + length(LIMITS.seen_every)) {
            Some(earliest) if earliest > now && episode.leaving.is_none() => episode.owed = Some(earliest),
            _ => self.tell_owed(index, now),
        }
    }

    fn tell_owed(&mut self, index: usize, now: Seconds) {
        let episode = &mut self.episodes[index];
        episode.look_again();
        episode.owed = None;
        if episode.record != Record::Recorded {
            episode.owed_evidence = false;
            if episode.record == Record::Nothing {
                episode.leaving = None;
            }
            return;
        }
        let left = episode.leaving.take();
        let mut evidence = std::mem::take(&mut episode.owed_evidence);
        if left.is_some() {
            evidence |= episode.untold.take().is_some();
        }
        episode.gone = left.is_some() && episode.holder.is_some();
        if evidence {
            episode.told = Some(now);
            let ago = span(now - episode.evidence);
            if !self.repository.seen(&Seen { key: episode.key.clone(), peer: episode.last_holder, ago }) {
                return self.forget(index);
            }
        }
        if let Some((peer, at)) = left
            && !self.repository.left(&Left { key: episode.key.clone(), peer, ago: span(now - at) })
        {
            self.forget(index);
        }
    }

    /// It is another process's.
    fn forget(&mut self, index: usize) {
        let episode = self.episodes.remove(index);
        self.lost.extend(episode.holder.map(|holder| (holder, None)));
    }
}
