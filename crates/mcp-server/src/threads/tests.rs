use std::sync::mpsc;
use std::thread::{self, ThreadId};

use majordomus_episodes_core::board::Run;

use super::Threads;

/// Runs a call that says which thread it is on.
fn ask(threads: &Threads) -> ThreadId {
    let (tell, told) = mpsc::channel();
    threads.run(Box::new(move || tell.send(thread::current().id()).unwrap())).unwrap();
    told.recv().unwrap()
}

fn wait_until_idle(threads: &Threads, count: usize) {
    while threads.shared.lock().idle != count {
        thread::yield_now();
    }
}

#[test]
fn a_call_runs_on_a_thread_of_its_own_which_then_takes_the_next() {
    let threads = Threads::default();
    let first = ask(&threads);
    assert_ne!(first, thread::current().id());
    wait_until_idle(&threads, 1);
    assert_eq!(ask(&threads), first);
}

#[test]
fn a_call_that_hangs_keeps_nobody_elses_thread() {
    let threads = Threads::default();
    let (release, hang) = mpsc::channel::<()>();
    let (tell, told) = mpsc::channel();
    threads
        .run(Box::new(move || {
            tell.send(thread::current().id()).unwrap();
            hang.recv().unwrap();
        }))
        .unwrap();
    let hanging = told.recv().unwrap();
    let others: Vec<_> = (0..3).map(|_| ask(&threads)).collect();
    assert!(others.iter().all(|other| *other != hanging));
    release.send(()).unwrap();
}

#[test]
fn a_call_that_panics_takes_only_its_own_thread_with_it() {
    let threads = Threads::default();
    let (tell, told) = mpsc::channel::<()>();
    threads
        .run(Box::new(move || {
            let _told_when_dropped = tell;
            panic!("as a driver should not");
        }))
        .unwrap();
    assert!(told.recv().is_err());
    ask(&threads);
}
