//! The loop of a bridge: it waits in `poll` for the client, the server, a signal, and for nothing else.

mod doubt;
mod moving;

use std::fmt;
use std::io::{self, ErrorKind, IsTerminal};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use majordomus_episodes_core::clock::{Clock, SystemClock};
use majordomus_records::{Serving, Store};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::FileType;

use super::place::Place;
use super::relay::{Relay, Told};
use crate::house::House;
use crate::sharing::preamble::{Hello, Why};
use crate::stdio::ends::End;
use crate::stdio::lines::{Line, Lines};
use crate::stdio::queue::{Flush, Queue};
use crate::stdio::{Ended, Limits, Streams};
use doubt::Probe;

/// How much is read at once.
const CHUNK: usize = 16 * 1024;

/// A descriptor on which nothing more will happen.
const BROKEN: PollFlags = PollFlags::ERR.union(PollFlags::HUP).union(PollFlags::NVAL);

/// Makes this process a server: with the right to be the checkout's, or without for its own client alone.
pub type Open = Box<dyn FnMut(Option<Serving>) -> io::Result<House>>;

/// What a bridge needs.
#[non_exhaustive]
pub struct BridgeOptions {
    /// Whose clients are served by one server.
    pub store: Store,
    /// Who this is: its connection id is that of the client's whole life.
    pub hello: Hello,
    /// How this process becomes a server.
    pub open: Open,
    /// Takes one line for a person, rarely.
    pub diagnostics: Arc<dyn Fn(&str) + Send + Sync>,
    /// How much and how long.
    pub limits: Limits,
}

impl BridgeOptions {
    /// Joins what a bridge needs.
    #[must_use]
    pub fn new(store: Store, hello: Hello, open: Open) -> Self {
        Self { store, hello, open, diagnostics: Arc::new(|_| {}), limits: Limits::default() }
    }
}

impl fmt::Debug for BridgeOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BridgeOptions").field("hello", &self.hello).finish_non_exhaustive()
    }
}

/// Serves one client, beginning at `place`, until it goes or is told to go. Returns how it ended, and the house where this
/// process has become a server.
#[must_use]
pub fn run_bridge(options: BridgeOptions, place: Place, streams: Streams) -> (Ended, Option<House>) {
    let mut bridge = Bridge::new(options, streams);
    bridge.settle_at(place);
    let ended = bridge.run();
    (ended, bridge.house)
}

struct Bridge {
    options: BridgeOptions,
    relay: Relay,
    clock: SystemClock,
    input: End,
    output: End,
    stop: OwnedFd,
    from_client: Lines,
    to_client: Queue,
    /// No whole line of the client's waits, so that only more of it helps.
    starved: bool,
    /// There is nothing more to read from the client.
    input_ended: bool,
    /// The client has closed its side; there may still be bytes to read.
    hung_up: bool,
    /// When the client last took something, while it has closed its side and something waits.
    taken_at: Option<Duration>,
    server: Option<Server>,
    /// There is nothing to say about the next one.
    quiet: bool,
    /// There is nobody who could serve, not even this process.
    unserved: bool,
    /// This process, where it is the server.
    house: Option<House>,
    /// When a client that is served alone looks for others next.
    look_at: Option<Duration>,
    chunk: Vec<u8>,
}

/// The connection to whoever serves.
struct Server {
    end: End,
    lines: Lines,
    queue: Queue,
    /// Where it answers and which it is, for one that is another process.
    theirs: Option<(PathBuf, String)>,
    /// Since when nothing more is sent to it.
    shut: Option<Duration>,
    why: Option<Why>,
    /// When it last said something, or was last shown to be there.
    heard: Duration,
    probe: Option<Probe>,
}

/// Why the loop woke up.
#[derive(Default)]
struct Woken {
    stop: bool,
    input: bool,
    hung_up: bool,
    output_broken: bool,
    server: bool,
    probe: bool,
}

impl Server {
    /// Says that nothing more comes.
    fn shut(&mut self, now: Duration) {
        self.shut = Some(now);
        let _ = rustix::net::shutdown(&self.end, rustix::net::Shutdown::Write);
    }
}

impl Bridge {
    fn new(options: BridgeOptions, streams: Streams) -> Self {
        Self {
            relay: Relay::new(),
            clock: SystemClock,
            input: End::reader(streams.input),
            output: End::writer(streams.output),
            stop: streams.stop,
            from_client: Lines::new(options.limits.line_bytes),
            to_client: Queue::default(),
            starved: false,
            input_ended: false,
            hung_up: false,
            taken_at: None,
            server: None,
            quiet: false,
            unserved: false,
            house: None,
            look_at: None,
            chunk: vec![0; CHUNK],
            options,
        }
    }

    fn run(&mut self) -> Ended {
        self.read_client();
        loop {
            let more = self.carry_on();
            if let Some(ended) = self.flush() {
                return ended;
            }
            if self.is_over() {
                return if self.unserved { Ended::Unserved } else { Ended::InputClosed };
            }
            if more {
                continue;
            }
            let now = self.clock.awake();
            if self.stalls(now) {
                return Ended::OutputClosed;
            }
            let woken = self.wait(now);
            if woken.output_broken {
                self.let_go();
                return Ended::OutputClosed;
            }
            if woken.stop {
                self.leave();
                return Ended::Stopped;
            }
            self.hung_up |= woken.hung_up;
            if woken.input || woken.hung_up {
                self.read_client();
            }
            if woken.server {
                self.read_server();
            }
            if woken.probe {
                self.hear_probe();
            }
            self.doubt();
            self.look_around();
        }
    }

    /// Hands what the client has said to the server, while there is room; whether it stopped for want of it.
    fn carry_on(&mut self) -> bool {
        self.starved = false;
        loop {
            if self.server.is_none() {
                // Nobody serves since an operator stopped the server: the client's next word begins another one.
                let asked = self.from_client.waiting() > 0 || self.relay.in_flight() > 0;
                if !asked || !self.connect(None, None) {
                    return false;
                }
            }
            let Some(server) = &mut self.server else { return false };
            if server.queue.waiting() > self.options.limits.queue_bytes || server.shut.is_some() {
                return false;
            }
            match self.from_client.next() {
                Some(Line::Whole(line)) => {
                    if self.relay.in_flight() == 0 {
                        server.heard = self.clock.awake();
                    }
                    self.relay.client_line(line, server.queue.bytes(), self.to_client.bytes());
                }
                Some(Line::TooLong) => {
                    // The server says so as it would to a client of its own.
                    let bytes = server.queue.bytes();
                    bytes.resize(bytes.len() + self.options.limits.line_bytes + 1, b'x');
                    bytes.push(b'\n');
                }
                None => {
                    self.starved = true;
                    return false;
                }
            }
        }
    }

    /// Whether to read more of what the client says: not where whole lines wait already.
    fn wants_more(&self) -> bool {
        !self.input_ended && (self.starved || self.from_client.waiting() <= self.options.limits.queue_bytes)
    }

    /// Writes what fits, both ways; says how it ended where the client takes nothing more.
    fn flush(&mut self) -> Option<Ended> {
        match self.to_client.flush(&self.output) {
            Flush::Gone(_) => {
                self.let_go();
                return Some(Ended::OutputClosed);
            }
            Flush::Waits(0) => {}
            Flush::Done | Flush::Waits(_) => self.taken_at = None,
        }
        let done = self.input_ended && self.from_client.is_done();
        if let Some(server) = &mut self.server {
            match server.queue.flush(&server.end) {
                Flush::Done if done && server.shut.is_none() => server.shut(self.clock.awake()),
                // What it has said before it went is still read.
                Flush::Done | Flush::Waits(_) | Flush::Gone(_) => {}
            }
        }
        None
    }

    /// Whether the client has gone, everything is answered and the answers are written. The server has a moment to let the
    /// client go, so that whoever starts another one finds nobody there.
    fn is_over(&self) -> bool {
        let handed_over = match self.over_at() {
            Some(at) => self.clock.awake() >= at,
            None => self.server.is_none() && self.relay.in_flight() == 0,
        };
        self.input_ended && self.from_client.is_done() && handed_over && self.to_client.waiting() == 0
    }

    /// Until when the server has time to let the client go, once nothing else is waited for.
    fn over_at(&self) -> Option<Duration> {
        let shut = self.server.as_ref()?.shut.filter(|_| self.relay.in_flight() == 0)?;
        Some(shut + self.options.limits.leave)
    }

    fn wait(&self, now: Duration) -> Woken {
        let wanted = |flag, wanted| if wanted { flag } else { PollFlags::empty() };
        let room = self.to_client.waiting() <= self.options.limits.queue_bytes;
        let reads = self.wants_more();
        let mut polled = Vec::with_capacity(5);
        polled.push(PollFd::new(&self.stop, PollFlags::IN));
        polled.push(PollFd::new(&self.output, wanted(PollFlags::OUT, self.to_client.waiting() > 0)));
        let mut at = [None; 3];
        if reads || !self.hung_up {
            at[0] = Some(polled.len());
            polled.push(PollFd::new(&self.input, wanted(PollFlags::IN, reads)));
        }
        if let Some(server) = &self.server {
            let events = wanted(PollFlags::IN, room) | wanted(PollFlags::OUT, server.queue.waiting() > 0);
            if !events.is_empty() {
                at[1] = Some(polled.len());
                polled.push(PollFd::new(&server.end, events));
            }
            if let Some(probe) = &server.probe {
                at[2] = Some(polled.len());
                polled.push(PollFd::new(&probe.answer, PollFlags::IN));
            }
        }
        let due =
            [self.doubt_at(), self.look_at, self.over_at(), self.taken_at.map(|at| at + self.options.limits.stall)];
        let due = due.into_iter().flatten().min();
        let timeout = due.map(|due| due.saturating_sub(now).max(Duration::from_millis(1)));
        let timeout = timeout.and_then(|time| Timespec::try_from(time).ok());
        if rustix::event::poll(&mut polled, timeout.as_ref()).is_err() {
            return Woken::default();
        }
        let happened = |at: Option<usize>| at.map_or(PollFlags::empty(), |at| polled[at].revents());
        Woken {
            stop: !polled[0].revents().is_empty(),
            output_broken: polled[1].revents().intersects(BROKEN),
            input: reads && !happened(at[0]).is_empty(),
            hung_up: happened(at[0]).intersects(BROKEN),
            server: happened(at[1]).intersects(PollFlags::IN | BROKEN),
            probe: !happened(at[2]).is_empty(),
        }
    }

    pub(super) fn read_client(&mut self) {
        if !self.wants_more() {
            return;
        }
        match self.input.read(&mut self.chunk) {
            Ok(0) => self.input_ends(),
            Ok(count) => self.from_client.push(&self.chunk[..count]),
            Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => {}
            Err(_) => self.input_ends(),
        }
    }

    fn input_ends(&mut self) {
        self.from_client.end();
        self.input_ended = true;
        self.hung_up = true;
    }

    fn read_server(&mut self) {
        let Some(server) = &mut self.server else { return };
        match server.end.read(&mut self.chunk) {
            Ok(0) => self.lost(None),
            Ok(count) => {
                server.heard = self.clock.awake();
                server.lines.push(&self.chunk[..count]);
                self.pass_on();
            }
            Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => {}
            Err(_) => self.lost(None),
        }
    }

    fn pass_on(&mut self) {
        let Some(server) = &mut self.server else { return };
        while let Some(line) = server.lines.next() {
            // Nothing that a server of ours answers is as long as that.
            let Line::Whole(line) = line else { continue };
            match self.relay.server_line(line, self.to_client.bytes()) {
                Told::Farewell(why) => server.why = Some(why),
                Told::Passed | Told::Swallowed => {}
            }
        }
    }

    /// Whether the client has closed its side and takes nothing any more.
    fn stalls(&mut self, now: Duration) -> bool {
        if !self.hung_up || self.to_client.waiting() == 0 {
            return false;
        }
        now.saturating_sub(*self.taken_at.get_or_insert(now)) >= self.options.limits.stall
    }

    /// Nobody reads the answers any more: what the client said is still done.
    fn let_go(&mut self) {
        self.read_client();
        self.carry_on();
        self.finish(self.options.limits.settle);
    }

    /// Hands over what came before a signal, and writes what is answered to it within a moment.
    fn leave(&mut self) {
        self.read_client();
        self.carry_on();
        self.finish(self.options.limits.leave);
        let _ = self.to_client.flush(&self.output);
    }

    /// Says that nothing more comes, and hears the server out until it has let the client go, at most for `limit`: where the
    /// connection goes before, what it has not read yet is not done.
    fn finish(&mut self, limit: Duration) {
        let until = self.clock.awake() + limit;
        if let Some(server) = &mut self.server {
            let _ = server.queue.flush(&server.end);
            server.shut(self.clock.awake());
        }
        while self.server.is_some() {
            let left = until.saturating_sub(self.clock.awake());
            let Some(server) = self.server.as_ref().filter(|_| !left.is_zero()) else { break };
            let timeout = Timespec::try_from(left).ok();
            let mut polled = [PollFd::new(&server.end, PollFlags::IN)];
            if rustix::event::poll(&mut polled, timeout.as_ref()) == Ok(0) {
                break;
            }
            self.hear_last();
        }
    }

    fn hear_last(&mut self) {
        let Some(server) = &mut self.server else { return };
        match server.end.read(&mut self.chunk) {
            Ok(count) if count > 0 => {
                server.lines.push(&self.chunk[..count]);
                self.pass_on();
                let _ = self.to_client.flush(&self.output);
            }
            Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => {}
            Ok(_) | Err(_) => self.server = None,
        }
    }
}

/// Whether a client at the start of its session is not worth waiting for a server: it was told to end, or has gone, or its
/// input is none that anybody writes to, such as a file or nothing at all.
#[must_use]
pub fn is_leaving(streams: &Streams) -> bool {
    is_ready(&streams.stop) || has_hung_up(streams.input.as_fd()) || !has_writer(&streams.input)
}

fn is_ready(fd: &OwnedFd) -> bool {
    let mut polled = [PollFd::from_borrowed_fd(fd.as_fd(), PollFlags::IN)];
    rustix::event::poll(&mut polled, Some(&Timespec::default())) == Ok(1)
}

fn has_hung_up(fd: BorrowedFd<'_>) -> bool {
    let mut polled = [PollFd::from_borrowed_fd(fd, PollFlags::empty())];
    rustix::event::poll(&mut polled, Some(&Timespec::default())) == Ok(1) && polled[0].revents().intersects(BROKEN)
}

fn has_writer(fd: &OwnedFd) -> bool {
    let kind = rustix::fs::fstat(fd).map(|stat| FileType::from_raw_mode(stat.st_mode));
    matches!(kind, Ok(FileType::Fifo | FileType::Socket)) || fd.is_terminal()
}
