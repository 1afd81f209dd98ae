//! The server's side of the socket: each connection is a client's whole session, served on a thread of its own.

use std::collections::HashMap;
use std::fmt;
use std::io::{self, PipeReader, PipeWriter, pipe};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use majordomus_capability::Shared;
use majordomus_capability::project::mcp::Tools;
use majordomus_episodes_core::peers::Transport;
use majordomus_records::state::carrier_of;
use rustix::event::{PollFd, PollFlags};

use super::folder;
use super::preamble::{self, FORMAT, Hello, Refused, Reply, Wants, Why};
use crate::protocol::Session;
use crate::stdio::{StdioOptions, Streams, serve_streams};

/// How long whoever connects may take to say what it wants.
const HELLO: Duration = Duration::from_secs(2);
/// The most connections at once; each has a thread.
const GUESTS_MOST: usize = 512;
/// How many descriptors each takes.
const DESCRIPTORS_EACH: usize = 4;
/// How many descriptors are left to everything else: logs, git, HTTP.
const DESCRIPTORS_LEFT: usize = 128;
/// The most that have connected and not said yet what they want.
const KNOCKING_MOST: usize = 64;
/// How long to wait where no connection can be accepted, for want of descriptors for example.
const BREATH: Duration = Duration::from_millis(50);
/// The stack of a connection's thread: what a call takes, several times over.
const STACK: usize = 512 * 1024;

/// Why a session of a connection ends that its client did not end.
#[derive(Debug, Default)]
pub struct Parting(AtomicU8);

impl Parting {
    /// The reason, once there is one.
    #[must_use]
    pub fn why(&self) -> Option<Why> {
        match self.0.load(Ordering::Acquire) {
            1 => Some(Why::Moved),
            2 => Some(Why::Stopped),
            _ => None,
        }
    }

    fn set(&self, why: Why) {
        let code = match why {
            Why::Moved => 1,
            Why::Stopped => 2,
        };
        // The first reason counts: whoever is stopped is not also moved.
        let _ = self.0.compare_exchange(0, code, Ordering::AcqRel, Ordering::Acquire);
    }
}

/// What a host serves with.
#[non_exhaustive]
pub struct HostOptions {
    /// The boards, and what calls to them have in common.
    pub shared: Arc<Shared>,
    /// What can be called.
    pub tools: Arc<Tools>,
    /// 32 hexadecimal digits that no other server has.
    pub instance: String,
    /// Which checkout it serves.
    pub checkout: String,
}

impl HostOptions {
    /// Joins what a host needs.
    #[must_use]
    pub fn new(shared: Arc<Shared>, instance: String, checkout: String) -> Self {
        let tools = Arc::new(Tools::new(shared.registry.clone()));
        Self { shared, tools, instance, checkout }
    }
}

/// Serves bridges. Clones are the same host.
#[derive(Clone)]
pub struct Host {
    inner: Arc<Inner>,
}

/// Somebody who has connected and not said yet what they want.
struct Knock(Arc<Inner>);

impl Knock {
    fn new(inner: &Arc<Inner>) -> Self {
        inner.knocking.fetch_add(1, Ordering::AcqRel);
        Self(inner.clone())
    }
}

impl Drop for Knock {
    fn drop(&mut self) {
        self.0.knocking.fetch_sub(1, Ordering::AcqRel);
    }
}

struct Inner {
    options: HostOptions,
    knocking: AtomicUsize,
    on_stop: OnceLock<Box<dyn Fn(UnixStream) + Send + Sync>>,
    guests: Mutex<Guests>,
    /// A connection has gone.
    gone: Condvar,
}

#[derive(Default)]
struct Guests {
    by_number: HashMap<u64, Guest>,
    numbers: u64,
    /// Nobody is let in any more.
    closed: bool,
    /// Closed, it ends the accepting.
    accepting: Option<PipeWriter>,
}

struct Guest {
    carrier: Option<String>,
    parting: Arc<Parting>,
    /// Closed, it ends the session.
    stop: Option<PipeWriter>,
}

impl Host {
    /// Makes a host without any connection.
    #[must_use]
    pub fn new(options: HostOptions) -> Self {
        Self {
            inner: Arc::new(Inner {
                options,
                knocking: AtomicUsize::new(0),
                on_stop: OnceLock::new(),
                guests: Mutex::default(),
                gone: Condvar::new(),
            }),
        }
    }

    /// Says what happens when an operator stops the server; it is given the connection of whoever asked. To be said once.
    pub fn on_stop(&self, stop: impl Fn(UnixStream) + Send + Sync + 'static) {
        let _ = self.inner.on_stop.set(Box::new(stop));
    }

    /// Serves whoever connects from now on.
    ///
    /// # Errors
    /// The operating system's, for want of threads or descriptors.
    pub fn listen(&self, listener: UnixListener) -> io::Result<()> {
        let (stop, hold) = pipe()?;
        listener.set_nonblocking(true)?;
        let host = self.clone();
        thread::Builder::new().name("socket".into()).stack_size(STACK).spawn(move || host.accept(&listener, &stop))?;
        self.inner.guests().accepting = Some(hold);
        Ok(())
    }

    /// Serves one client whose bridge is in this process.
    ///
    /// # Errors
    /// The operating system's, for want of threads or descriptors.
    pub fn take_in(&self, stream: UnixStream, hello: Hello) -> io::Result<()> {
        let host = self.clone();
        let serve = move || host.serve(stream, &hello);
        thread::Builder::new().name("guest".into()).stack_size(STACK).spawn(serve).map(drop)
    }

    /// How many connections there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.inner.guests().by_number.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Lets nobody in any more.
    pub fn close(&self) {
        let mut guests = self.inner.guests();
        guests.closed = true;
        guests.accepting = None;
    }

    /// Lets every connection go, each with the reason, once what it has sent is answered; waits for that at most `limit`.
    pub fn part(&self, why: Why, limit: Duration) {
        self.close();
        let mut guests = self.inner.guests();
        for guest in guests.by_number.values_mut() {
            guest.part(why);
        }
        let waited = self.inner.gone.wait_timeout_while(guests, limit, |guests| !guests.by_number.is_empty());
        drop(waited);
    }

    fn accept(&self, listener: &UnixListener, stop: &PipeReader) {
        loop {
            let mut polled =
                [PollFd::new(listener, PollFlags::IN), PollFd::from_borrowed_fd(stop.as_fd(), PollFlags::IN)];
            if rustix::event::poll(&mut polled, None).is_err() {
                continue;
            }
            if !polled[1].revents().is_empty() {
                return;
            }
            match listener.accept() {
                Ok((stream, _)) if self.has_room() => {
                    let knock = Knock::new(&self.inner);
                    let host = self.clone();
                    let thread = thread::Builder::new().name("guest".into()).stack_size(STACK);
                    // Without a thread the connection is dropped, and its bridge tries again.
                    let _ = thread.spawn(move || host.welcome(stream, knock));
                }
                // A bridge that finds nobody serves its client alone.
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => thread::sleep(BREATH),
            }
        }
    }

    /// Whether one more can be served, with the descriptors that this process may have.
    fn has_room(&self) -> bool {
        let descriptors = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        let descriptors = descriptors.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX);
        let most = (descriptors.saturating_sub(DESCRIPTORS_LEFT) / DESCRIPTORS_EACH).clamp(1, GUESTS_MOST);
        self.len() < most && self.inner.knocking.load(Ordering::Acquire) < KNOCKING_MOST
    }

    /// Hears what somebody who has connected wants, and does it.
    fn welcome(&self, stream: UnixStream, knock: Knock) {
        // Neither the folder's mode alone decides who may call, nor does its owner always stay the same.
        if !folder::is_same_user(&stream).unwrap_or(false) || stream.set_nonblocking(false).is_err() {
            return;
        }
        let hello = match preamble::receive::<Hello>(&stream, HELLO) {
            Ok(hello) => hello,
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                refuse(&stream, Refused::Format, "the first line is none that this server understands");
                return;
            }
            Err(_) => return,
        };
        let options = &self.inner.options;
        drop(knock);
        if hello.format != FORMAT {
            let message = format!(
                "the running server is majordomus {}, which this version does not understand; end it with `majordomus \
                 serve stop`, or end its clients",
                env!("CARGO_PKG_VERSION")
            );
            refuse(&stream, Refused::Format, &message);
            return;
        }
        if hello.checkout != options.checkout {
            refuse(&stream, Refused::Checkout, "this server is another checkout's");
            return;
        }
        if self.inner.guests().closed {
            refuse(&stream, Refused::Stopping, "this server is about to end");
            return;
        }
        let served = Reply::Served {
            instance: options.instance.clone(),
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").into(),
        };
        if preamble::send(&stream, &served, HELLO).is_err() {
            return;
        }
        match hello.wants {
            Wants::Bridge => self.serve(stream, &hello),
            Wants::Probe => {}
            Wants::Stop => {
                if let Some(stop) = self.inner.on_stop.get() {
                    stop(stream);
                }
            }
        }
    }

    fn serve(&self, stream: UnixStream, hello: &Hello) {
        let carrier = hello.connection.as_deref().map(carrier_of);
        let Ok((stop, hold)) = pipe() else { return };
        let parting = Arc::new(Parting::default());
        let Some(number) = self.enter(carrier.clone(), parting.clone(), hold) else {
            // It came while the others were let go.
            let _ = io::Write::write_all(&mut &stream, preamble::farewell(Why::Moved));
            return;
        };
        // Whatever happens in a session, its place is given back.
        let place = Place { host: self, number };
        let options = &self.inner.options;
        let session = Session::new(options.shared.clone(), options.tools.clone(), Transport::Stdio);
        let session = match &carrier {
            Some(carrier) => session.carried_by(carrier),
            None => session,
        };
        let session = match &hello.caller {
            Some(caller) => session.called_by(caller.clone()),
            None => session,
        };
        if hello.stopped {
            session.tell_stopped();
        }
        session.come_back(hello.holds.as_deref(), hello.ended.as_deref(), hello.replays);
        if let Ok(input) = stream.try_clone() {
            let mut stdio = StdioOptions::new(options.shared.clone());
            stdio.tools = options.tools.clone();
            stdio.session = Some(session);
            stdio.judges = false;
            stdio.parting = Some(parting);
            let _ = serve_streams(stdio, Streams { input: input.into(), output: stream.into(), stop: stop.into() });
        }
        drop(place);
    }

    /// Counts a connection in; `None` where nobody is let in any more. A connection that is known already is the same
    /// client whose earlier one nobody has seen to go: that one ends first, so that it does not look taken over.
    fn enter(&self, carrier: Option<String>, parting: Arc<Parting>, stop: PipeWriter) -> Option<u64> {
        let mut guests = self.inner.guests();
        let earlier = |guests: &Guests| {
            let same = |guest: &Guest| carrier.is_some() && guest.carrier == carrier;
            guests.by_number.iter().find(|(_, guest)| same(guest)).map(|(number, _)| *number)
        };
        if let Some(guest) = earlier(&guests).and_then(|number| guests.by_number.get_mut(&number)) {
            guest.stop = None;
            let waited = self.inner.gone.wait_timeout_while(guests, HELLO, |guests| earlier(guests).is_some());
            guests = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        if guests.closed {
            return None;
        }
        guests.numbers += 1;
        let number = guests.numbers;
        guests.by_number.insert(number, Guest { carrier, parting, stop: Some(stop) });
        Some(number)
    }
}

impl Guest {
    fn part(&mut self, why: Why) {
        self.parting.set(why);
        self.stop = None;
    }
}

impl Inner {
    fn guests(&self) -> MutexGuard<'_, Guests> {
        // Every change is one step, so a panic elsewhere leaves the table whole.
        self.guests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection's place in the table.
struct Place<'a> {
    host: &'a Host,
    number: u64,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.host.inner.guests().by_number.remove(&self.number);
        self.host.inner.gone.notify_all();
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").field("guests", &self.len()).finish_non_exhaustive()
    }
}

fn refuse(stream: &UnixStream, why: Refused, message: &str) {
    // Whoever does not hear it has gone.
    let _ = preamble::send(stream, &Reply::Refused { why, message: message.into() }, HELLO);
}
