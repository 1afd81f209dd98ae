//! What each peer holds, laid out so that a touch costs nearly the same however many there are.
//!
//! Peers are numbered in attachment order, so a peer's place is found by its number, without hashing. All that a touch
//! reads and writes of it is one word of four bytes, packed densely: a million peers take 4 MB, which caches still
//! hold, where a row of everything would take ten times that and miss them each time. The rest stands elsewhere. The
//! first touch after a report appends to a queue that already has the room, so that a touch allocates nothing.

use std::collections::VecDeque;

use crate::ids::PeerId;

#[cfg(test)]
mod tests;

/// Peers per page. A page goes with the last of them.
const PAGE: usize = 4096;
/// The unit of time in a word, in nanoseconds.
const UNIT: i64 = 1_000_000;

/// What a peer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seat {
    /// Nothing.
    Vacant,
    /// An episode.
    Held,
    /// It held one until it was taken or closed from elsewhere, and has not been told.
    Lost,
}

/// What a peer leaves behind when it gives up an episode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Remains {
    /// When its last evidence was, in nanoseconds awake.
    pub(super) evidence: i64,
    /// Whether there was evidence that the driver has not been told.
    pub(super) untold: bool,
}

/// When the last evidence was, in [`UNIT`]s since the base, and in the lowest bit whether it waits to be told.
/// Without a time it is a vacant or a lost seat. With one of the first times the evidence stands in [`Rest`]; which of
/// them says what a look at the seat may want to know of it, so that a touch has nothing to note but its own time.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Word(u32);

impl Word {
    const VACANT: Self = Self(0);
    const LOST: Self = Self(1);
    /// There was no evidence since somebody looked.
    const LOOKED_AT: u32 = 1;
    /// There was none since the driver was told that the peer is gone; the next one it must hear of at once.
    const GONE: u32 = 2;
    /// It moved out of the word as that was full.
    const MOVED: u32 = 3;
    const LATEST: u32 = u32::MAX >> 1;

    fn held(time: u32, waits: bool) -> Self {
        Self(time << 1 | u32::from(waits))
    }

    fn time(self) -> u32 {
        self.0 >> 1
    }

    fn waits(self) -> bool {
        self.time() > 0 && self.0 & 1 == 1
    }

    /// Whether the word has the time of the last evidence itself.
    fn tells_time(self) -> bool {
        self.time() > Self::MOVED
    }

    fn seat(self) -> Seat {
        match self {
            Self::VACANT => Seat::Vacant,
            Self::LOST => Seat::Lost,
            Self(_) => Seat::Held,
        }
    }
}

/// What a touch does not need.
#[derive(Clone, Copy)]
struct Rest {
    /// The last evidence in nanoseconds, where the word does not have it.
    evidence: i64,
    slot: u32,
    /// How many places this peer has in the queue that no longer count; they precede the one that does.
    stale: u32,
}

struct Page {
    words: Box<[Word]>,
    rest: Box<[Rest]>,
    /// How many peers of it hold something, are to be told of a loss, or have stale places.
    taken: usize,
}

impl Page {
    fn new() -> Self {
        Self {
            words: vec![Word::VACANT; PAGE].into(),
            rest: vec![Rest { evidence: 0, slot: 0, stale: 0 }; PAGE].into(),
            taken: 0,
        }
    }
}

/// All seats, and the queue of those with evidence that the driver has not been told.
#[derive(Default)]
pub(super) struct Seats {
    /// By peer number divided by [`PAGE`].
    pages: Vec<Option<Page>>,
    /// Who waits, by number, and since when. The first place always counts.
    waiting: VecDeque<(u64, i64)>,
    /// How many places in the queue no longer count.
    stale: usize,
    /// How many hold something and do not wait: so many may come to wait without another word.
    quiet: usize,
    /// Whom the driver was told to be gone and who was active again since, by number. Some may have left again.
    returned: Vec<u64>,
    /// How many seats are marked as gone, so that the list above has room for them.
    gone: usize,
    /// Where the words' time begins, in nanoseconds awake.
    base: i64,
}

impl Seats {
    /// The slot of the episode that the peer holds.
    pub(super) fn slot(&self, peer: PeerId) -> Option<u32> {
        let (page, offset) = self.find(peer.number())?;
        (page.words[offset].seat() == Seat::Held).then(|| page.rest[offset].slot)
    }

    /// When the last evidence of a peer that holds an episode was, to a millisecond.
    pub(super) fn evidence(&self, peer: PeerId) -> Option<i64> {
        let (page, offset) = self.find(peer.number())?;
        match page.words[offset].time() {
            0 => None,
            1..=Word::MOVED => Some(page.rest[offset].evidence),
            time => Some(self.base + i64::from(time) * UNIT),
        }
    }

    /// Notes a message: evidence at `now` if the peer holds something. The first since the last report waits to be
    /// told.
    pub(super) fn touch(&mut self, peer: PeerId, now: i64) -> Seat {
        let time = self.time(now);
        let number = peer.number();
        let (page, offset) = place(number);
        let Some(Some(page)) = self.pages.get_mut(page) else { return Seat::Vacant };
        let word = &mut page.words[offset];
        let seat = word.seat();
        if seat == Seat::Held {
            if !word.waits() {
                if word.time() == Word::GONE {
                    self.returned.push(number);
                    self.gone -= 1;
                }
                self.waiting.push_back((number, now));
                self.quiet -= 1;
            }
            *word = Word::held(time, true);
        }
        seat
    }

    /// Seats the peer at an episode; its attachment is the first evidence, and the driver hears of it by itself.
    pub(super) fn hold(&mut self, peer: PeerId, slot: u32, now: i64) {
        self.vacate(peer);
        self.tidy();
        self.quiet += 1;
        self.waiting.reserve(self.quiet);
        let (page, offset) = self.take(peer);
        page.words[offset] = Word::held(Word::LOOKED_AT, false);
        (page.rest[offset].evidence, page.rest[offset].slot) = (now, slot);
    }

    /// Notes that somebody has looked at the evidence of a peer that holds something: [`active`](Self::active) tells
    /// from then on whether there was another.
    pub(super) fn look(&mut self, peer: PeerId) {
        if self.active(peer) {
            self.mark(peer, Word::LOOKED_AT);
        }
    }

    /// Whether a peer that holds something has been active since [`hold`](Self::hold), [`look`](Self::look) or
    /// [`gone`](Self::gone).
    pub(super) fn active(&self, peer: PeerId) -> bool {
        self.word(peer.number()).time() >= Word::MOVED
    }

    /// Whether there is evidence of the peer that the driver has not been told.
    pub(super) fn untold(&self, peer: PeerId) -> bool {
        self.word(peer.number()).waits()
    }

    /// Notes that the driver is told now that the peer is gone: its next message is not left to wait.
    pub(super) fn gone(&mut self, peer: PeerId) {
        self.told(peer);
        self.back(peer);
        if self.word(peer.number()).seat() == Seat::Held {
            self.gone += 1;
            self.returned.reserve(self.gone);
            self.mark(peer, Word::GONE);
        }
    }

    /// Notes that the peer is not gone after all; whether the driver was told so and nothing else since.
    pub(super) fn back(&mut self, peer: PeerId) -> bool {
        let gone = self.word(peer.number()).time() == Word::GONE;
        if gone {
            self.gone -= 1;
            self.mark(peer, Word::LOOKED_AT);
        }
        gone
    }

    /// Takes out one that was told to be gone, was active again, and still holds something.
    pub(super) fn take_returned(&mut self) -> Option<(PeerId, u32)> {
        loop {
            let peer = PeerId(self.returned.pop()?);
            if let Some(slot) = self.slot(peer) {
                return Some((peer, slot));
            }
        }
    }

    /// Whether there may be such a one.
    pub(super) fn has_returned(&self) -> bool {
        !self.returned.is_empty()
    }

    /// Moves the evidence of a peer that holds something out of its word.
    fn mark(&mut self, peer: PeerId, mark: u32) {
        let evidence = self.evidence(peer);
        if let (Some(evidence), Some((page, offset))) = (evidence, self.find_mut(peer.number())) {
            page.rest[offset].evidence = evidence;
            page.words[offset] = Word::held(mark, page.words[offset].waits());
        }
    }

    /// Takes the peer's episode away, so that its next touch says so.
    pub(super) fn lose(&mut self, peer: PeerId) -> Option<Remains> {
        let left = self.vacate(peer);
        let (page, offset) = self.take(peer);
        page.words[offset] = Word::LOST;
        left
    }

    /// Frees the peer's seat; returns what it leaves of an episode that it held.
    pub(super) fn vacate(&mut self, peer: PeerId) -> Option<Remains> {
        let left = self.evidence(peer).map(|evidence| Remains { evidence, untold: self.word(peer.number()).waits() });
        self.told(peer);
        self.back(peer);
        if left.is_some() {
            self.quiet -= 1;
        }
        let (page, offset) = self.find_mut(peer.number())?;
        if page.words[offset] != Word::VACANT {
            page.words[offset] = Word::VACANT;
            self.release(peer.number());
        }
        left
    }

    /// The held slot whose evidence has waited longest to be told, and since when, in time awake.
    pub(super) fn oldest_untold(&self) -> Option<(u32, i64)> {
        let (number, since) = *self.waiting.front()?;
        self.find(number).map(|(page, offset)| (page.rest[offset].slot, since))
    }

    /// Takes the peer out of that queue, as its evidence is told now.
    pub(super) fn told(&mut self, peer: PeerId) {
        let Some((page, offset)) = self.find_mut(peer.number()) else { return };
        let word = page.words[offset];
        if !word.waits() {
            return;
        }
        page.words[offset] = Word::held(word.time(), false);
        page.rest[offset].stale += 1;
        self.stale += 1;
        self.quiet += 1;
        while let Some(&(number, _)) = self.waiting.front()
            && self.drop_stale(number)
        {
            self.waiting.pop_front();
        }
    }

    /// Throws stale places out of the queue where they have become most of it.
    fn tidy(&mut self) {
        if self.stale <= PAGE.max(self.waiting.len() / 2) {
            return;
        }
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.retain(|(number, _)| !self.drop_stale(*number));
        self.waiting = waiting;
    }

    /// Forgets one stale place of that peer, if it has any: whether its first one is.
    fn drop_stale(&mut self, number: u64) -> bool {
        let Some((page, offset)) = self.find_mut(number) else { return false };
        if page.rest[offset].stale == 0 {
            return false;
        }
        page.rest[offset].stale -= 1;
        self.stale -= 1;
        self.release(number);
        true
    }

    /// Now in a word's time. Where that is full, all times move out of the words first, once in 24 days.
    fn time(&mut self, now: i64) -> u32 {
        let units = now.saturating_sub(self.base) / UNIT;
        match u32::try_from(units) {
            Ok(time) if (Word::MOVED + 1..=Word::LATEST).contains(&time) => time,
            Ok(_) | Err(_) => {
                self.move_base(now);
                Word::MOVED + 1
            }
        }
    }

    fn move_base(&mut self, now: i64) {
        for page in self.pages.iter_mut().flatten() {
            for (word, rest) in page.words.iter_mut().zip(&mut page.rest) {
                if word.tells_time() {
                    rest.evidence = self.base + i64::from(word.time()) * UNIT;
                    *word = Word::held(Word::MOVED, word.waits());
                }
            }
        }
        self.base = now - i64::from(Word::MOVED + 1) * UNIT;
    }

    /// Makes a place for a peer whose seat is vacant, and counts it as taken.
    fn take(&mut self, peer: PeerId) -> (&mut Page, usize) {
        let (index, offset) = place(peer.number());
        if self.pages.len() <= index {
            self.pages.resize_with(index + 1, || None);
        }
        let page = self.pages[index].get_or_insert_with(Page::new);
        page.taken += usize::from(page.rest[offset].stale == 0);
        (page, offset)
    }

    /// Frees the peer's place, and perhaps its page, if nothing is left of it.
    fn release(&mut self, number: u64) {
        let (index, offset) = place(number);
        let Some(slot) = self.pages.get_mut(index) else { return };
        let Some(page) = slot else { return };
        if page.words[offset] == Word::VACANT && page.rest[offset].stale == 0 {
            page.taken -= 1;
            if page.taken == 0 {
                *slot = None;
            }
        }
    }

    fn word(&self, number: u64) -> Word {
        self.find(number).map_or(Word::VACANT, |(page, offset)| page.words[offset])
    }

    fn find(&self, number: u64) -> Option<(&Page, usize)> {
        let (page, offset) = place(number);
        self.pages.get(page)?.as_ref().map(|page| (page, offset))
    }

    fn find_mut(&mut self, number: u64) -> Option<(&mut Page, usize)> {
        let (page, offset) = place(number);
        self.pages.get_mut(page)?.as_mut().map(|page| (page, offset))
    }
}

fn place(number: u64) -> (usize, usize) {
    let number = usize::try_from(number).expect("peers are numbered from 1 upwards, one by one");
    (number / PAGE, number % PAGE)
}
