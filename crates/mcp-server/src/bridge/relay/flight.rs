//! What a client has asked and not been answered, in order.

use std::collections::VecDeque;
use std::collections::vec_deque::Iter;

use super::asked::{Asked, asked};
use super::{REPEATABLE_BYTES, REPEATABLE_LINES, WAITING, WAITING_ID_BYTES, fail};
use crate::protocol::{Frame, Line};

/// One request.
#[derive(Debug)]
pub(super) struct Ask {
    /// Byte for byte: two ids are the same if they are written alike.
    pub(super) id: Box<str>,
    pub(super) asked: Asked,
    cancelled: bool,
}

/// One line that asks; a batch is asked again as a whole or not at all.
#[derive(Debug)]
pub(super) struct Unit {
    /// Those that were not answered. None where the line will be refused without an id.
    asks: Vec<Ask>,
    /// Its bytes, if it may be asked again.
    pub(super) line: Option<Box<[u8]>>,
    batch: bool,
}

impl Unit {
    /// What a line asks; `None` where it is not answered.
    pub(super) fn of(message: &Line<'_>, line: &[u8]) -> Option<Self> {
        let batch = matches!(message, Line::Batch(_));
        let frames = match message {
            Line::Blank | Line::One(Frame::Notification { .. } | Frame::Response) => return None,
            Line::Broken | Line::TooMany(_) => &[],
            Line::One(frame) => std::slice::from_ref(frame),
            Line::Batch(frames) => frames.as_slice(),
        };
        let (asks, repeatable): (Vec<Ask>, Vec<bool>) = frames.iter().filter_map(ask).unzip();
        let repeatable = !asks.is_empty() && repeatable.into_iter().all(|repeatable| repeatable);
        Some(Self { asks, line: repeatable.then(|| line.into()), batch })
    }

    /// Answers each of its requests that the client still waits for with an error.
    pub(super) fn answer(&self, message: &'static str, out: &mut Vec<u8>) {
        let start = out.len();
        for ask in self.asks.iter().filter(|ask| !ask.cancelled) {
            if out.len() > start {
                out.push(b',');
            } else if self.batch {
                out.push(b'[');
            }
            fail(&ask.id, message, out);
        }
        if out.len() > start {
            out.extend_from_slice(if self.batch { b"]\n" } else { b"\n" });
        }
    }

    /// Whether the client said after this opening that it is ready.
    pub(super) fn is_initialized(&self) -> bool {
        self.asks.iter().any(|ask| ask.asked == Asked::Initialize { initialized: true })
    }

    /// Whether nobody waits for it, or nothing tells when it is answered.
    fn is_idle(&self) -> bool {
        self.asks.iter().all(|ask| ask.cancelled)
    }

    fn may_repeat(&self) -> bool {
        self.line.is_some() && self.asks.iter().all(|ask| !ask.cancelled)
    }

    fn size(&self) -> Size {
        let (lines, bytes) = self.line.as_ref().map_or((0, 0), |line| (1, line.len()));
        let id_bytes = self.asks.iter().map(|ask| ask.id.len()).sum();
        Size { lines, bytes, asks: self.asks.len().max(1), id_bytes }
    }
}

fn ask(frame: &Frame<'_>) -> Option<(Ask, bool)> {
    let (id, (asked, repeatable)) = match frame {
        Frame::Request(request) => (request.id, asked(request)),
        // It will be refused, however often it comes.
        Frame::Invalid { id: Some(id), .. } => (*id, (Asked::Other, true)),
        Frame::Invalid { id: None, .. } | Frame::Notification { .. } | Frame::Response => return None,
    };
    Some((Ask { id: id.into(), asked, cancelled: false }, repeatable))
}

/// What units take, each or all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Size {
    lines: usize,
    bytes: usize,
    asks: usize,
    id_bytes: usize,
}

impl Size {
    fn plus(self, other: Self) -> Self {
        Self {
            lines: self.lines + other.lines,
            bytes: self.bytes + other.bytes,
            asks: self.asks + other.asks,
            id_bytes: self.id_bytes + other.id_bytes,
        }
    }

    fn minus(self, other: Self) -> Self {
        Self {
            lines: self.lines - other.lines,
            bytes: self.bytes - other.bytes,
            asks: self.asks - other.asks,
            id_bytes: self.id_bytes - other.id_bytes,
        }
    }
}

/// The lines in flight.
#[derive(Debug, Default)]
pub(super) struct Flight {
    units: VecDeque<Unit>,
    size: Size,
}

impl Flight {
    pub(super) fn has_room_for(&self, unit: &Unit) -> bool {
        let size = self.size.plus(unit.size());
        size.asks <= WAITING && size.id_bytes <= WAITING_ID_BYTES
    }

    /// Adds a line that is sent; one whose bytes find no room is not asked again.
    pub(super) fn push(&mut self, mut unit: Unit) {
        let size = self.size.plus(unit.size());
        if size.lines > REPEATABLE_LINES || size.bytes > REPEATABLE_BYTES {
            unit.line = None;
        }
        self.size = self.size.plus(unit.size());
        self.units.push_back(unit);
    }

    pub(super) fn iter(&self) -> Iter<'_, Unit> {
        self.units.iter()
    }

    /// How many requests somebody waits for.
    pub(super) fn waiting(&self) -> usize {
        self.units.iter().flat_map(|unit| &unit.asks).filter(|ask| !ask.cancelled).count()
    }

    /// Removes the request that an answer with that id answers; the line comes with it, if it asked nothing else.
    pub(super) fn take(&mut self, id: &str) -> Option<(Ask, Option<Box<[u8]>>)> {
        let place = |unit: &Unit| unit.asks.iter().position(|ask| *ask.id == *id);
        let (at, within) = self.units.iter().enumerate().find_map(|(at, unit)| Some((at, place(unit)?)))?;
        let mut unit = self.remove(at)?;
        let ask = unit.asks.remove(within);
        if unit.asks.is_empty() {
            self.forget_idle(at);
            return Some((ask, unit.line.filter(|_| !unit.batch)));
        }
        // Asked again as a whole it would be answered twice in part.
        unit.line = None;
        self.size = self.size.plus(unit.size());
        self.units.insert(at, unit);
        Some((ask, None))
    }

    /// Takes in an error without an id: the first line is done that can be refused like that.
    pub(super) fn refused(&mut self) {
        if let Some(at) = self.units.iter().position(|unit| unit.batch || unit.asks.is_empty()) {
            self.remove(at);
        }
    }

    /// Marks the request of that id as one that nobody waits for.
    pub(super) fn cancel(&mut self, id: &str) {
        let mut asks = self.units.iter_mut().flat_map(|unit| &mut unit.asks);
        if let Some(ask) = asks.find(|ask| *ask.id == *id) {
            ask.cancelled = true;
        }
    }

    /// Whether the client has said that it is ready, of the last opening in flight.
    pub(super) fn opening(&mut self) -> Option<&mut bool> {
        let mut asks = self.units.iter_mut().rev().flat_map(|unit| unit.asks.iter_mut().rev());
        asks.find_map(
            |ask| {
                if let Asked::Initialize { initialized } = &mut ask.asked { Some(initialized) } else { None }
            },
        )
    }

    /// Whether the stream of that id was acknowledged, if there is one.
    pub(super) fn listen(&mut self, id: &str) -> Option<&mut bool> {
        let asks = self.units.iter_mut().flat_map(|unit| &mut unit.asks);
        asks.filter(|ask| *ask.id == *id)
            .find_map(|ask| if let Asked::Listen { acknowledged } = &mut ask.asked { Some(acknowledged) } else { None })
    }

    /// The external id in the first attach or detach.
    pub(super) fn names(&self) -> Option<&str> {
        self.units.iter().flat_map(|unit| &unit.asks).find_map(|ask| {
            if let Asked::Attach(id) | Asked::Detach(Some(id)) = &ask.asked { Some(&**id) } else { None }
        })
    }

    /// Removes what may not be asked again, in order.
    pub(super) fn give_up(&mut self) -> VecDeque<Unit> {
        let (kept, gone): (VecDeque<Unit>, VecDeque<Unit>) =
            std::mem::take(&mut self.units).into_iter().partition(Unit::may_repeat);
        self.units = kept;
        self.size = self.units.iter().map(Unit::size).fold(Size::default(), Size::plus);
        gone
    }

    /// Removes all that waits, in order.
    pub(super) fn take_all(&mut self) -> VecDeque<Unit> {
        self.size = Size::default();
        std::mem::take(&mut self.units)
    }

    fn remove(&mut self, at: usize) -> Option<Unit> {
        let unit = self.units.remove(at)?;
        self.size = self.size.minus(unit.size());
        Some(unit)
    }

    /// Removes the lines before that place which nobody waits for: answers come in order, so theirs has come or never will.
    fn forget_idle(&mut self, before: usize) {
        for at in (0..before).rev() {
            if self.units[at].is_idle() {
                self.remove(at);
            }
        }
    }
}
