//! The durable side: event logs, session records, git facts and recovery. The only writer of durable bytes.
//!
//! An open episode is one append-only log in the repository's common git directory; an ended one becomes one Markdown
//! record in the worktree. What was acknowledged survives `kill -9` and a loss of power, and a reader sees a whole
//! record or none. No record is a matter of what a process remembers: everything here is decided again from the log.
//!
//! Start with [`store::Store`]: [`joining`] and [`ending`] decide on lines, [`append`] writes them, [`log`] reads them,
//! [`compose`] makes records of what has
//! ended, [`recovery`] finishes what nobody is left to finish, [`returning`] gives back what a server's death has taken
//! from a connection. [`capture`] is the command that hooks run, and
//! [`driver`] is how a server's board gets here.

pub mod line;
pub mod log;

pub mod append;
pub mod compose;
pub mod ending;
pub mod joining;
pub mod listing;
pub mod recovery;
pub mod returning;
pub mod store;

pub mod serving;
#[cfg(test)]
mod testing;
pub mod token;
pub mod witnessed;

pub mod caller;

pub mod capture;
pub mod driver;

pub mod facts;
pub mod git;
pub mod record;
pub mod redact;
pub mod text;

pub mod checkout;
pub mod clock;
pub mod disk;
mod fired;
mod history;
pub mod holder;
pub mod inside;
pub mod state;

mod reflog;

pub use capture::session;
pub use checkout::{Checkout, NotInGit};
pub use driver::{RecordDriver, ToolDriver, Unrecorded};
pub use returning::{EndedBy, Returning};
pub use serving::{Published, Serving};
pub use store::{Policy, Store, StoreError};
