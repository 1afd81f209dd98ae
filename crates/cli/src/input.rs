//! Reading a hook's payload from a standard input that may never end.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use majordomus_providers::{Scan, value_end};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// How long the next byte may take before what is there has to do.
const IDLE: Duration = Duration::from_secs(1);
/// How long reading may take in all, however slowly bytes come.
const TOTAL: Duration = Duration::from_secs(3);
/// How long to look for more where something follows the payload, so that a parent that still writes meets no closed pipe.
const DRAIN_IDLE: Duration = Duration::from_millis(5);
/// The most bytes that a payload may have; what comes after them is drained, not kept.
const MOST: usize = 16 << 20;
/// The most bytes that are drained.
const DRAIN_MOST: usize = 64 << 20;

/// Reads up to the end of the first JSON value, or until the stream ends or stands still.
///
/// # Errors
/// The operating system's, where standard input cannot be read at all.
pub(crate) fn payload(input: BorrowedFd<'_>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut scan = Scan::default();
    let mut chunk = vec![0; 64 << 10];
    let until = Instant::now() + TOTAL;
    while bytes.len() < MOST {
        let left = until.saturating_duration_since(Instant::now());
        let read = read_within(input, IDLE.min(left), &mut chunk)?;
        if read == 0 {
            return Ok(bytes);
        }
        let end = value_end(&chunk[..read], &mut scan);
        bytes.extend_from_slice(&chunk[..end.unwrap_or(read)]);
        if let Some(end) = end {
            // The usual case, also where the parent never closes the pipe: one value in one write that a pipe takes
            // whole (PIPE_BUF), and at most a newline after it.
            if bytes.len() <= 4096 && read <= 4096 && chunk[end..read].iter().all(u8::is_ascii_whitespace) {
                return Ok(bytes);
            }
            break;
        }
    }
    drain(input);
    Ok(bytes)
}

/// Reads on for a moment and forgets it, so that a parent that still writes meets no closed pipe.
pub(crate) fn drain(input: BorrowedFd<'_>) {
    let mut chunk = vec![0; 64 << 10];
    let mut drained = 0;
    let until = Instant::now() + TOTAL;
    while drained < DRAIN_MOST && Instant::now() < until {
        match read_within(input, DRAIN_IDLE, &mut chunk) {
            Ok(read) if read > 0 => drained += read,
            _ => break,
        }
    }
}

/// Reads what is there. 0 means the end, or that nothing came within `idle`.
fn read_within(input: BorrowedFd<'_>, idle: Duration, chunk: &mut [u8]) -> io::Result<usize> {
    let timeout = Timespec { tv_sec: i64::try_from(idle.as_secs()).unwrap_or(1), tv_nsec: idle.subsec_nanos().into() };
    let mut waits = [PollFd::new(&input, PollFlags::IN)];
    let ready = rustix::io::retry_on_intr(|| poll(&mut waits, Some(&timeout)))?;
    if ready == 0 {
        return Ok(0);
    }
    match rustix::io::retry_on_intr(|| rustix::io::read(input, &mut *chunk)) {
        Err(rustix::io::Errno::AGAIN) => Ok(0),
        read => Ok(read?),
    }
}
