use std::io::{PipeWriter, Read, Write, pipe};
use std::sync::mpsc::channel;
use std::time::Duration;

use super::{STUCK, Watchdog};

fn watchdog(patience: Duration, exit: impl FnOnce(i32) + Send + 'static) -> (Watchdog, PipeWriter) {
    let (receive, signal) = pipe().unwrap();
    (Watchdog::start(receive, patience, exit).unwrap(), signal)
}

#[test]
fn a_signal_tells_the_loop_and_ends_the_process_when_the_loop_hangs() {
    let (tell, exits) = channel();
    let (mut watchdog, mut signal) = watchdog(Duration::from_millis(1), move |code| tell.send(code).unwrap());
    signal.write_all(b"X").unwrap();
    let mut byte = [0];
    watchdog.stop().unwrap().read_exact(&mut byte).unwrap();
    assert_eq!(exits.recv(), Ok(STUCK));
}

#[test]
fn a_loop_that_ends_in_time_is_left_alone() {
    let (mut watchdog, mut signal) = watchdog(Duration::from_secs(600), |code| panic!("exit {code}"));
    let mut stop = watchdog.stop().unwrap();
    signal.write_all(b"X").unwrap();
    stop.read_exact(&mut [0]).unwrap();
    drop(watchdog);
    // The thread has gone, and with it the other end.
    assert_eq!(stop.read(&mut [0]).unwrap(), 0);
}

#[test]
fn without_a_signal_the_thread_goes_when_the_loop_is_done() {
    let (mut watchdog, _signal) = watchdog(Duration::from_secs(600), |code| panic!("exit {code}"));
    let mut stop = watchdog.stop().unwrap();
    drop(watchdog);
    assert_eq!(stop.read(&mut [0]).unwrap(), 0);
}

#[test]
fn each_of_term_int_and_hup_tells_the_loop() {
    use rustix::process::{Signal, getpid, kill_process};

    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let mut watchdog = Watchdog::install(Duration::from_secs(600)).unwrap();
        let mut stop = watchdog.stop().unwrap();
        kill_process(getpid(), signal).unwrap();
        stop.read_exact(&mut [0]).unwrap();
    }
}
