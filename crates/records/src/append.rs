//! Writing one line into an episode's log, so that it either happened or did not.
//!
//! One write of newline, JSON, newline, then fsync; then a look whether the path still names the file that was
//! written and whether no end that counts stands before the line. If not, the line did not happen and the whole
//! decision is made again on what is there now.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::clock::Stamp;
use crate::disk::File;
use crate::line::{Head, Kind, LINE_VERSION, Line, Witness};
use crate::log::Log;
use crate::redact::redact;
use crate::store::{Appender, Store, StoreError};

/// The most bytes of a log that are read.
pub(crate) const READ_MOST: u64 = 256 << 20;

/// How long a lock that others only hold for a moment is waited for.
const LOCK_SOON: Duration = Duration::from_millis(100);

/// Takes a lock that others hold for a moment at most, unless one of them is stopped.
pub(crate) fn lock_soon(file: &dyn File) -> io::Result<()> {
    let began = Instant::now();
    while !file.try_lock()? {
        if began.elapsed() > LOCK_SOON {
            return Err(io::Error::new(io::ErrorKind::WouldBlock, "somebody else has its lock"));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// How often a decision is made again before giving up.
pub(crate) const ATTEMPTS: u32 = 16;

impl Store {
    pub(crate) fn line(&self, kind: Kind, stamp: Stamp, witness: Witness) -> Result<Line, StoreError> {
        let mut at = self.head();
        let (branch, redactions) = at.branch.take().map_or((None, 0), |branch| {
            let (branch, count) = redact(&branch);
            (Some(branch), count)
        });
        let at = Head { branch, ..at };
        let id: [u8; 8] = random()?;
        Ok(Line {
            v: LINE_VERSION,
            id: crate::clock::hex_prefix(&id, 8),
            kind,
            stamp,
            at,
            witness,
            connection: None,
            grace_ms: None,
            client: None,
            source: None,
            took_over: false,
            handle: None,
            again: false,
            carrier: None,
            after: None,
            process: None,
            left: false,
            opened: None,
            ended: None,
            facts: None,
            redactions,
        })
    }

    /// Appends a line that must last and returns the log as it then is; `None` where the line did not happen.
    pub(crate) fn append(
        &self,
        at: &mut Appender,
        mut log: Log,
        read: u64,
        line: &Line,
        durable: Durable,
    ) -> Result<Option<Log>, StoreError> {
        let bytes = line.to_bytes();
        // A short write leaves a torn line, which readers skip; the same line under the same id follows it.
        if at.file.append(&bytes).and_then(|()| at.file.sync()).is_err() {
            at.file.append(&bytes).and_then(|()| at.file.sync()).map_err(StoreError::io("cannot write", &at.path))?;
        }
        if durable == Durable::WithName {
            let folder = at.path.parent().unwrap_or(&at.root);
            self.disk.sync_folder(folder).map_err(StoreError::io("cannot write", folder))?;
        }
        let ours = at.file.identity().map_err(StoreError::io("cannot read", &at.path))?;
        let now = self.disk.identity(&at.path).map_err(StoreError::io("cannot read", &at.path))?;
        let tail = at.file.read_at(read, READ_MOST).map_err(StoreError::io("cannot read", &at.path))?;
        log.extend(&tail);
        // A log that has ended has been, or will be, renamed; what stands before its end happened all the same. Any
        // other that the path does not name any more was taken away, and nobody will read it.
        let kept = now == Some(ours) || log.end.is_some();
        Ok((kept && log.counts(&line.id)).then_some(log))
    }
}

/// What of a line has to last.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durable {
    /// The bytes, in a file whose name already lasts.
    Content,
    /// The file's name too.
    WithName,
}

impl Line {
    /// Fills in foreign text through a function that replaces credentials, and counts what it replaced.
    pub(crate) fn redacting(&mut self, fill: impl FnOnce(&mut Self, &mut dyn FnMut(&str) -> String)) {
        let mut replaced = 0;
        fill(self, &mut |text| {
            let (text, count) = redact(text);
            replaced += count;
            text
        });
        self.redactions += replaced;
    }
}

/// How much of a log is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// All of it.
    Whole,
    /// Of a log that hooks drew, its first line and its last ones: who it is, and whether and since when it is silent or over. Whoever appends
    /// looks at these, so no line after an end is ever further from it than this; a long sitting costs no more than a
    /// short one.
    Ends,
}

/// The most bytes of a log's beginning that [`Part::Ends`] reads.
const HEAD_MOST: u64 = 8 << 10;
/// The most bytes of its end.
const TAIL_MOST: u64 = 64 << 10;

/// Reads a log, and tells how long it was.
pub(crate) fn read(at: &mut Appender, part: Part) -> Result<(Log, u64), StoreError> {
    let length = at.file.length().map_err(StoreError::io("cannot read", &at.path))?;
    let mut piece = |offset, most| at.file.read_at(offset, most).map_err(StoreError::io("cannot read", &at.path));
    if part == Part::Whole || length <= HEAD_MOST + TAIL_MOST {
        let bytes = piece(0, READ_MOST)?;
        return Ok((Log::parse(&bytes), bytes.len() as u64));
    }
    let mut log = Log::parse(&piece(0, HEAD_MOST)?);
    // Which connection's messages are evidence is said by the last line that joined, wherever it stands.
    if log.start.as_ref().is_none_or(|start| start.witness == Witness::Connection) {
        return read(at, Part::Whole);
    }
    let tail = piece(length - TAIL_MOST, READ_MOST)?;
    log.extend(&tail);
    Ok((log, length - TAIL_MOST + tail.len() as u64))
}

pub(crate) fn random<const N: usize>() -> Result<[u8; N], StoreError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|_| StoreError::Random)?;
    Ok(bytes)
}

/// Whole milliseconds.
pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Makes the id of a process that holds connections: 32 hexadecimal digits.
///
/// # Errors
/// [`StoreError::Random`] where the machine has no random bytes.
pub fn holder_id() -> Result<String, StoreError> {
    Ok(crate::clock::hex_prefix(&random::<16>()?, 16))
}

/// Tells whether a disk's refusal is about the whole disk or folder rather than one file.
pub(crate) fn is_environment(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::ReadOnlyFilesystem
            | io::ErrorKind::PermissionDenied
            | io::ErrorKind::FileTooLarge
            | io::ErrorKind::NotFound
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::AlreadyExists
    )
}

/// Names the folder that holds a path, for messages.
pub(crate) fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}
