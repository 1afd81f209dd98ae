//! The loop.

use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use majordomus_episodes_core::EpisodeBoard;
use majordomus_episodes_core::clock::Clock;
use majordomus_episodes_core::peers::Transport;
use rustix::event::{PollFd, PollFlags, Timespec};

use super::ends::End;
use super::lines::{Line, Lines};
use super::queue::{Flush, Queue};
use super::{Ended, Limits, StdioOptions, Streams};
use crate::protocol::watching::LOOK;
use crate::protocol::{Handled, Session};
use crate::sharing::host::Parting;
use crate::sharing::preamble::{Why, farewell};

/// How much is read at once.
const CHUNK: usize = 64 * 1024;
/// How many chunks are read before they are answered.
const CHUNKS: usize = 16;
/// How often a client that is gone is still read, at `CHUNKS` each, for what it said before it went.
const LAST_READS: usize = 64;
/// The least time between two looks at a deadline that stays due, such as one whose driver call still runs.
const BREATH: Duration = Duration::from_millis(20);
/// How long what poll said of a connection is believed.
const MOMENT: Duration = Duration::from_millis(5);

/// A descriptor on which nothing more will happen.
const BROKEN: PollFlags = PollFlags::ERR.union(PollFlags::HUP).union(PollFlags::NVAL);

pub(super) struct Server {
    session: Session,
    board: EpisodeBoard,
    judges: bool,
    clock: Arc<dyn Clock>,
    diagnostics: Box<dyn Fn(&str) + Send + Sync>,
    limits: Limits,
    parting: Option<Arc<Parting>>,
    input: End,
    output: End,
    stop: OwnedFd,
    lines: Lines,
    queue: Queue,
    chunk: Vec<u8>,
    /// The client has closed its side; there may still be bytes to read.
    hung_up: bool,
    /// There is nothing more to read.
    input_ended: bool,
    /// When the client last took something, while it has closed its side and something waits.
    taken_at: Option<Duration>,
    /// A bad line was reported.
    reported: bool,
    /// When poll returned last.
    woken_at: Duration,
    /// When was last looked for what the client wants to be told of.
    looked_at: Duration,
}

/// Why the loop woke up.
#[derive(Debug, Default)]
struct Woken {
    stop: bool,
    input: bool,
    hung_up: bool,
    output_broken: bool,
    /// By how much it was later than asked.
    late: Duration,
}

impl Server {
    pub(super) fn new(options: StdioOptions, streams: Streams) -> Self {
        let board = options.shared.board.clone();
        let begun = options.session;
        let session = begun.unwrap_or_else(|| {
            let session = Session::new(options.shared, options.tools, Transport::Stdio);
            match options.caller {
                Some(caller) => session.called_by(caller),
                None => session,
            }
        });
        Self {
            session,
            board,
            judges: options.judges,
            clock: options.clock,
            diagnostics: options.diagnostics,
            lines: Lines::new(options.limits.line_bytes),
            limits: options.limits,
            parting: options.parting,
            input: End::reader(streams.input),
            output: End::writer(streams.output),
            stop: streams.stop,
            queue: Queue::default(),
            chunk: vec![0; CHUNK],
            hung_up: false,
            input_ended: false,
            taken_at: None,
            reported: false,
            woken_at: Duration::ZERO,
            looked_at: Duration::ZERO,
        }
    }

    /// Serves to the end: answers what came, lets the peer go, and waits a bounded time for what still runs.
    pub(super) fn run(mut self) -> Ended {
        let ended = self.serve();
        match ended {
            Ended::InputClosed | Ended::Unserved => {}
            // What a bridge has sent and not been answered may have been done elsewhere.
            Ended::OutputClosed if self.parting.is_some() => {}
            Ended::OutputClosed => self.hear_out(),
            Ended::Stopped => self.leave(),
        }
        self.session.end();
        if !self.board.settle(self.limits.settle) {
            (self.diagnostics)("left while the repository was still being written to");
        }
        ended
    }

    fn serve(&mut self) -> Ended {
        // A named pipe whose writers have all gone before we came never wakes poll; reading it tells.
        self.read();
        loop {
            let more = self.answer();
            let answered = self.input_ended && self.lines.is_done();
            if answered {
                self.session.end_streams(self.queue.bytes());
                // Whether the client takes the answers changes nothing for its episode.
                self.session.end();
            }
            let now = self.clock.now().awake;
            self.tell(now);
            match self.queue.flush(&self.output) {
                Flush::Done if answered => return Ended::InputClosed,
                Flush::Waits(0) => {}
                Flush::Done | Flush::Waits(_) => self.taken_at = None,
                Flush::Gone(kind) => return self.gone(kind),
            }
            if more && self.has_room() {
                continue;
            }
            if self.stalls(now) {
                (self.diagnostics)("the client closed its side and does not read the rest of the answers");
                return Ended::OutputClosed;
            }
            let woken = self.wait(now);
            self.woken_at = self.clock.awake();
            if woken.stop {
                return Ended::Stopped;
            }
            if woken.output_broken {
                return Ended::OutputClosed;
            }
            self.hung_up |= woken.hung_up;
            if woken.input {
                self.read();
            }
            self.judge(woken.late);
        }
    }

    /// Tells the client what has changed of what it wants to be told of, once in a while, and not while it does not read.
    fn tell(&mut self, now: Duration) {
        let looks = now.saturating_sub(self.looked_at) >= LOOK;
        if looks && self.has_room() && self.session.is_watching() {
            self.looked_at = now;
            self.session.news(&|uri| self.session.mark(uri), self.queue.bytes());
        }
    }

    /// Lets the board act on what is due. A process that was itself stopped must not take that for its clients' silence:
    /// it hears them first, then moves every deadline.
    fn judge(&mut self, late: Duration) {
        if !self.judges {
            return;
        }
        if late > self.limits.late {
            self.read();
            self.answer();
            self.board.excuse(late);
            (self.diagnostics)("this process was stopped for a while; that is not counted as silence of its clients");
        }
        if self.board.next_due().is_some_and(|due| due <= self.clock.now().awake) {
            self.board.reap();
        }
    }

    /// Waits until something happens.
    fn wait(&self, now: Duration) -> Woken {
        let reads = !self.input_ended && self.has_room();
        let waits = self.queue.waiting() > 0;
        let wanted = |flag, wanted| if wanted { flag } else { PollFlags::empty() };
        let mut polled = Vec::with_capacity(3);
        polled.push(PollFd::new(&self.stop, PollFlags::IN));
        polled.push(PollFd::new(&self.output, wanted(PollFlags::OUT, waits)));
        // Without room, only the client's going is waited for, and only until it is known: it stays readable.
        if reads || !self.hung_up {
            polled.push(PollFd::new(&self.input, wanted(PollFlags::IN, reads)));
        }
        let due = self.judges.then(|| self.board.next_due()).flatten();
        let stall = self.taken_at.map(|at| at + self.limits.stall);
        let look = self.session.is_watching().then(|| self.looked_at.max(now.saturating_sub(LOOK)) + LOOK);
        let asked = due.into_iter().chain(stall).chain(look.filter(|_| self.has_room())).min();
        let timeout = asked.map(|asked| asked.checked_sub(now).filter(|time| !time.is_zero()).unwrap_or(BREATH));
        let timeout = timeout.and_then(|time| Timespec::try_from(time).ok());
        if rustix::event::poll(&mut polled, timeout.as_ref()).is_err() {
            return Woken::default();
        }
        let happened = |at: usize| polled.get(at).map_or(PollFlags::empty(), PollFd::revents);
        Woken {
            stop: !happened(0).is_empty(),
            output_broken: happened(1).intersects(BROKEN),
            input: reads && !happened(2).is_empty(),
            hung_up: happened(2).intersects(BROKEN),
            late: asked.map_or(Duration::ZERO, |asked| self.clock.now().since(asked.max(now))),
        }
    }

    /// Reads what is there, within bounds.
    fn read(&mut self) {
        for _ in 0..CHUNKS {
            if self.input_ended {
                return;
            }
            match self.input.read(&mut self.chunk) {
                Ok(0) => self.input_ends(),
                Ok(count) => {
                    self.lines.push(&self.chunk[..count]);
                    if self.input.is_drained(count, self.chunk.len()) {
                        return;
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) => {
                    if error.kind() != ErrorKind::ConnectionReset {
                        (self.diagnostics)(&format!("the input cannot be read: {error}"));
                    }
                    self.input_ends();
                }
            }
        }
    }

    fn input_ends(&mut self) {
        self.lines.end();
        self.input_ended = true;
        self.hung_up = true;
    }

    /// Answers whole lines while there is room; whether it stopped for want of it.
    fn answer(&mut self) -> bool {
        while self.has_room() {
            if self.lines.waiting() > 0 && self.is_left() {
                self.drop_unread();
            }
            let Some(line) = self.lines.next() else {
                return false;
            };
            let bad = match line {
                Line::Whole(line) => self.session.handle(line, self.queue.bytes()) == Handled::Malformed,
                Line::TooLong => {
                    self.session.too_long(self.limits.line_bytes, self.queue.bytes());
                    true
                }
            };
            if bad && !std::mem::replace(&mut self.reported, true) {
                (self.diagnostics)("a line that is no message was answered with an error; others will not be reported");
            }
        }
        true
    }

    /// Whether this is a bridge's connection and the bridge is gone altogether. It may have passed this server by as one
    /// that does not answer, and have had everything done elsewhere by now. One whose client has gone closes its side
    /// only, and hears the answers.
    fn is_left(&self) -> bool {
        // Asked once a while has passed since poll said that it is there: then this process may have been stopped.
        let late = || self.clock.awake().saturating_sub(self.woken_at) > MOMENT;
        if self.parting.is_none() || !late() {
            return false;
        }
        let mut polled = [PollFd::new(&self.output, PollFlags::empty())];
        rustix::event::poll(&mut polled, Some(&Timespec::default())) == Ok(1) && polled[0].revents().intersects(BROKEN)
    }

    fn drop_unread(&mut self) {
        self.lines.clear();
        self.input_ends();
    }

    fn has_room(&self) -> bool {
        self.queue.waiting() <= self.limits.queue_bytes
    }

    /// Whether the client has closed its side and takes nothing any more.
    fn stalls(&mut self, now: Duration) -> bool {
        if !self.hung_up || self.queue.waiting() == 0 {
            return false;
        }
        now.saturating_sub(*self.taken_at.get_or_insert(now)) >= self.limits.stall
    }

    fn gone(&self, kind: ErrorKind) -> Ended {
        if !matches!(kind, ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) {
            (self.diagnostics)(&format!("the output cannot be written: {kind}"));
        }
        Ended::OutputClosed
    }

    /// Acts on what a client said before it went, although nobody reads the answers: it may have finished its work.
    fn hear_out(&mut self) {
        for _ in 0..LAST_READS {
            while self.answer() {
                self.queue.clear();
            }
            self.queue.clear();
            let before = (self.lines.waiting(), self.input_ended);
            self.read();
            if before == (self.lines.waiting(), self.input_ended) {
                return;
            }
        }
    }

    /// Answers what came before a signal, lets the peer go, and writes what the client still takes.
    fn leave(&mut self) {
        if self.has_room() {
            self.read();
            self.answer();
        }
        let mut flush = self.queue.flush(&self.output);
        let why = self.parting.as_ref().and_then(|parting| parting.why());
        if why == Some(Why::Moved) {
            self.session.give_up();
        } else {
            self.session.end_streams(self.queue.bytes());
            flush = self.queue.flush(&self.output);
        }
        self.session.end();
        if let Some(why) = why {
            self.queue.bytes().extend_from_slice(farewell(why));
            flush = self.queue.flush(&self.output);
            if why == Why::Moved {
                // Somebody's own client waits for this process to be gone; a bridge that hears no word sees that it is.
                return;
            }
        }
        let patience = Timespec::try_from(self.limits.leave).ok();
        while let Flush::Waits(_) = flush {
            let mut polled = [PollFd::new(&self.output, PollFlags::OUT)];
            if rustix::event::poll(&mut polled, patience.as_ref()) == Ok(0) {
                return;
            }
            flush = self.queue.flush(&self.output);
        }
    }
}
