//! Ending a process that a test has started, and no other.

use std::os::unix::process::ExitStatusExt;
use std::process::Child;

use rustix::process::{Pid, Signal, kill_process};

pub(crate) fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).expect("the server lives");
}

/// Kills it as nobody can refuse, and waits until it is gone.
pub(crate) fn kill9(child: &mut Child) {
    let _ = child.kill();
    let status = child.wait().expect("a child can be waited for");
    assert_eq!(status.signal(), Some(9), "it was killed: {status}");
}
