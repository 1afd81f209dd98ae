//! Asking another program, and not for longer than it is worth.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

/// The most bytes of an answer that are read.
const MOST: u64 = 16 * 1024;
/// How long between two looks at a program that has said everything and is still there.
const PAUSE: Duration = Duration::from_millis(5);

/// What a program prints that gets nothing on its standard input; `None` where it fails, or has not ended after `limit`.
pub(super) fn output(command: &mut Command, limit: Duration) -> Option<String> {
    let until = Instant::now() + limit;
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    // Its own group, so that what it starts ends with it.
    let mut child = command.process_group(0).spawn().ok()?;
    let out = child.stdout.take()?;
    let (send, said) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = out.take(MOST).read_to_end(&mut bytes);
        // Nobody may be waiting any more.
        let _ = send.send(bytes);
    });
    let said = said.recv_timeout(limit).ok();
    let mut ended = None;
    while said.is_some() && ended.is_none() && Instant::now() < until {
        ended = child.try_wait().ok().flatten();
        if ended.is_none() {
            thread::sleep(PAUSE);
        }
    }
    if ended.is_none() {
        if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
            // Nobody may be left in it.
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = child.wait();
    }
    said.filter(|_| ended.is_some_and(|status| status.success()))
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}
