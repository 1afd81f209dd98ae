//! What unit tests share.

use std::thread;

use rustix::process::{Uid, geteuid};
use rustix::thread::set_thread_res_uid;

/// A user who is nobody on any machine.
pub(crate) const ANOTHER: u32 = 61_234;

/// Does something as another user; `None` where the tests do not run as root, and says so.
pub(crate) fn as_another<T: Send>(act: impl FnOnce() -> T + Send) -> Option<T> {
    if !geteuid().is_root() {
        eprintln!("not run as root: there is no second user");
        return None;
    }
    let act = || {
        let another = Uid::from_raw(ANOTHER);
        // This thread's alone, and there is no way back from it.
        set_thread_res_uid(another, another, another).unwrap();
        act()
    };
    Some(thread::scope(|scope| scope.spawn(act).join().unwrap()))
}
