//! From chunks of bytes to lines of bounded length.

/// How much memory an idle buffer keeps.
const KEPT: usize = 64 * 1024;

/// Bytes that were read and not yet handled.
#[derive(Debug)]
pub(crate) struct Lines {
    buffer: Vec<u8>,
    /// Where the next line begins.
    start: usize,
    /// Up to where there is no newline after `start`.
    scanned: usize,
    limit: usize,
    skipping: bool,
    ended: bool,
}

/// What is next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line<'a> {
    /// A whole line without its newline, or what stood after the last one when the input ended.
    Whole(&'a [u8]),
    /// A line over the limit, said once; the rest of it is skipped.
    TooLong,
}

impl Lines {
    pub(crate) fn new(limit: usize) -> Self {
        Self { buffer: Vec::new(), start: 0, scanned: 0, limit, skipping: false, ended: false }
    }

    /// Adds what was read.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.compact();
        self.buffer.extend_from_slice(bytes);
    }

    /// Notes that nothing more comes.
    pub(crate) fn end(&mut self) {
        self.ended = true;
    }

    /// Forgets what waits.
    pub(crate) fn clear(&mut self) {
        self.start = self.buffer.len();
        self.scanned = self.start;
        self.compact();
    }

    /// Whether nothing more comes, now or later.
    pub(crate) fn is_done(&self) -> bool {
        self.ended && self.start == self.buffer.len()
    }

    /// How many bytes wait.
    pub(crate) fn waiting(&self) -> usize {
        self.buffer.len() - self.start
    }

    /// Takes the next line, if there is a whole one.
    pub(crate) fn next(&mut self) -> Option<Line<'_>> {
        loop {
            let rest = &self.buffer[self.scanned..];
            let newline = rest.iter().position(|byte| *byte == b'\n').map(|at| self.scanned + at);
            let Some(end) = newline.or((self.ended && self.start < self.buffer.len()).then_some(self.buffer.len()))
            else {
                return self.unfinished();
            };
            let begin = self.start;
            self.start = (end + 1).min(self.buffer.len());
            self.scanned = self.start;
            if std::mem::take(&mut self.skipping) {
                continue;
            }
            return Some(if end - begin > self.limit { Line::TooLong } else { Line::Whole(&self.buffer[begin..end]) });
        }
    }

    /// Notes that there is no newline yet, and gives up a line that cannot become one.
    fn unfinished(&mut self) -> Option<Line<'_>> {
        self.scanned = self.buffer.len();
        let over = self.waiting() > self.limit;
        if self.skipping || over {
            self.start = self.buffer.len();
            self.compact();
        }
        let said = self.skipping;
        self.skipping |= over;
        (over && !said).then_some(Line::TooLong)
    }

    fn compact(&mut self) {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.scanned -= self.start;
            self.start = 0;
            if self.buffer.len() < KEPT {
                self.buffer.shrink_to(KEPT);
            }
        }
    }
}

#[cfg(test)]
mod tests;
