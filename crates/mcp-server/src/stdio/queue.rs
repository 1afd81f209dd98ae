//! What waits to be written.

use std::io::ErrorKind;

use super::ends::End;

/// How much memory an idle queue keeps.
const KEPT: usize = 64 * 1024;

/// Answers in order, from the first byte that was not yet taken.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    bytes: Vec<u8>,
    written: usize,
}

/// How far writing went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flush {
    /// Nothing waits.
    Done,
    /// Something waits, and this much was taken.
    Waits(usize),
    /// Nobody will read any more.
    Gone(ErrorKind),
}

impl Queue {
    /// Where answers are appended.
    pub(crate) fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// How many bytes wait.
    pub(crate) fn waiting(&self) -> usize {
        self.bytes.len() - self.written
    }

    /// Gives up what waits.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(KEPT);
        self.written = 0;
    }

    /// Writes what fits.
    pub(crate) fn flush(&mut self, end: &End) -> Flush {
        let mut taken = 0;
        while self.waiting() > 0 {
            match end.write(&self.bytes[self.written..]) {
                Ok(count) => {
                    self.written += count;
                    taken += count;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Flush::Gone(error.kind()),
            }
        }
        if self.waiting() == 0 {
            self.clear();
            return Flush::Done;
        }
        if self.written > KEPT {
            self.bytes.drain(..self.written);
            self.written = 0;
        }
        Flush::Waits(taken)
    }
}
