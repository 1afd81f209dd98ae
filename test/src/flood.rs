//! A client that asks without end and reads nothing.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};

use serde_json::json;

use crate::{Client, INITIALIZE, until};

/// Requests on their way, each of about a kilobyte.
#[derive(Debug)]
pub struct Flood {
    written: Arc<AtomicUsize>,
    writer: JoinHandle<()>,
}

impl Client {
    /// Opens the session and asks for the tools, with the ids up to `last`, while nobody reads the answers.
    #[must_use]
    pub fn flood(&mut self, last: usize) -> Flood {
        let mut input = self.take_input();
        let written = Arc::new(AtomicUsize::new(0));
        let count = written.clone();
        let writer = thread::spawn(move || {
            input.write_all(format!("{INITIALIZE}\n").as_bytes()).expect("it reads");
            for id in 2..=last {
                let params = json!({ "_meta": { "padding": "x".repeat(1000) } });
                let request = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list", "params": params });
                if input.write_all(format!("{request}\n").as_bytes()).is_err() {
                    return;
                }
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
        Flood { written, writer }
    }
}

impl Flood {
    /// Waits until nothing more is taken; how many requests were.
    #[must_use]
    pub fn until_it_stands(&self) -> usize {
        let mut seen = (0, 0);
        until("nothing more is taken", || {
            let now = self.written.load(Ordering::Relaxed);
            seen = if now == seen.0 { (now, seen.1 + 1) } else { (now, 0) };
            (now > 0 && seen.1 == 50).then_some(now)
        })
    }

    /// Waits until everything is taken, or refused.
    ///
    /// # Panics
    /// Where the client could not even begin.
    pub fn join(self) {
        self.writer.join().expect("it began");
    }
}
