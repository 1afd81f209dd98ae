//! Many connections at once, each of which asks again as soon as it was answered, until enough was answered.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::wire::{Answer, Connection};

/// How long a batch may take, whatever comes.
const LIMIT: Duration = Duration::from_secs(60);
/// How long nothing at all may come.
const SILENCE: Duration = Duration::from_secs(10);
const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// Whether a body answers the request of that place.
pub(crate) type IsAnswer = dyn Fn(usize, &[u8]) -> bool;

/// Requests and what their answers have to be.
pub(crate) struct Calls {
    pub(crate) requests: Vec<Vec<u8>>,
    /// How many bytes the body of every answer has.
    pub(crate) length: usize,
    pub(crate) is_answer: Box<IsAnswer>,
}

impl Calls {
    fn check(&self, place: usize, answer: Answer<'_>) -> Result<()> {
        let (status, length) = (answer.status, self.length);
        let good = status == 200 && answer.body.len() == length && (self.is_answer)(place, answer.body);
        ensure!(good, "not an answer of {length} bytes to request {place}: {}{}", answer.head, answer.text());
        Ok(())
    }
}

/// What a batch took.
pub(crate) struct Taken {
    pub(crate) seconds: f64,
    /// Of each call, in seconds.
    pub(crate) latencies: Vec<f64>,
}

/// Asks `count` times; each connection goes through requests of its own, so that no two ask the same at once.
pub(crate) fn run(connections: &mut [Connection], calls: &Calls, count: usize) -> Result<Taken> {
    let (lanes, all) = (connections.len(), calls.requests.len());
    let mut latencies = Vec::with_capacity(count);
    // Per connection: which request is on its way, and since when.
    let mut asked: Vec<(usize, Instant)> = Vec::with_capacity(lanes);
    let mut ready = Vec::with_capacity(lanes);
    let begun = Instant::now();
    for (lane, connection) in connections.iter_mut().enumerate() {
        asked.push((lane % all, Instant::now()));
        connection.send(&calls.requests[lane % all])?;
    }
    let mut sent = lanes;
    while latencies.len() < count {
        ensure!(begun.elapsed() < LIMIT, "{} of {count} calls were answered within {LIMIT:?}", latencies.len());
        wait(connections, &mut ready)?;
        for lane in ready.drain(..) {
            let Some(answer) = connections[lane].receive()? else { continue };
            let (place, since) = asked[lane];
            calls.check(place, answer)?;
            let now = Instant::now();
            latencies.push(now.duration_since(since).as_secs_f64());
            if sent < count {
                let next = (place + lanes) % all;
                asked[lane] = (next, now);
                connections[lane].send(&calls.requests[next])?;
                sent += 1;
            }
        }
    }
    Ok(Taken { seconds: begun.elapsed().as_secs_f64(), latencies })
}

/// Looks until there is something to read, and tells where. It never sleeps: a server that had to wake who asks would
/// pay for that with every answer, and the slower one of two more often.
fn wait(connections: &[Connection], ready: &mut Vec<usize>) -> Result<()> {
    let begun = Instant::now();
    let mut waits: Vec<PollFd<'_>> =
        connections.iter().map(|connection| PollFd::new(&connection.stream, PollFlags::IN)).collect();
    while rustix::io::retry_on_intr(|| poll(&mut waits, Some(&AT_ONCE))).context("cannot look for answers")? == 0 {
        ensure!(begun.elapsed() < SILENCE, "no answer came for {SILENCE:?}");
        std::hint::spin_loop();
    }
    ready.extend(waits.iter().enumerate().filter(|(_, wait)| !wait.revents().is_empty()).map(|(lane, _)| lane));
    Ok(())
}
