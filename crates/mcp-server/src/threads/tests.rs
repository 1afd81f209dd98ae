use std::sync::mpsc;
use std::thread;

use majordomus_episodes_core::board::Run;

use super::Threads;

#[test]
fn a_call_runs_on_a_thread_of_its_own() {
    let (tell, told) = mpsc::channel();
    Threads.run(Box::new(move || tell.send(thread::current().id()).unwrap())).unwrap();
    assert_ne!(told.recv().unwrap(), thread::current().id());
}
