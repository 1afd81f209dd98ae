//! What a person or a script sees: the only place that prints.

use std::io::{self, Write};
use std::process::ExitCode;

use majordomus_records::text::visible;
use serde::Serialize;

/// The user can fix it.
pub(crate) const FAILED: u8 = 1;
/// The command line is wrong.
pub(crate) const USAGE: u8 = 2;
/// No server runs for this checkout.
pub(crate) const NO_SERVER: u8 = 3;

/// An error that comes with what to do about it.
#[derive(Debug)]
pub(crate) struct Hinted {
    error: anyhow::Error,
    hint: String,
    exit: u8,
}

impl std::fmt::Display for Hinted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#}", self.error)
    }
}

impl std::error::Error for Hinted {}

/// Adds a hint to an error.
pub(crate) trait Hint<T> {
    /// Says what to do, as a command to run or a thing to change.
    fn hint(self, hint: impl Into<String>) -> anyhow::Result<T>;
}

impl<T, E: Into<anyhow::Error>> Hint<T> for Result<T, E> {
    fn hint(self, hint: impl Into<String>) -> anyhow::Result<T> {
        self.map_err(|error| Hinted { error: error.into(), hint: hint.into(), exit: FAILED }.into())
    }
}

/// Makes the failure of a command that needs a server and found none.
pub(crate) fn no_server(error: impl Into<anyhow::Error>, hint: &str) -> anyhow::Error {
    Hinted { error: error.into(), hint: hint.into(), exit: NO_SERVER }.into()
}

/// Makes the failure that a capability's refusal is, of which neither text is ours.
pub(crate) fn refused(message: &str, hint: Option<&str>) -> anyhow::Error {
    let error = anyhow::anyhow!(visible(message));
    match hint {
        Some(hint) => Hinted { error, hint: visible(hint), exit: FAILED }.into(),
        None => error,
    }
}

/// Prints a failure: what failed, on what, then what to do.
pub(crate) fn failure(error: &anyhow::Error) -> ExitCode {
    let (said, exit) = match error.downcast_ref::<Hinted>() {
        Some(hinted) => (format!("error: {hinted}\nhint: {}", hinted.hint), hinted.exit),
        None => (format!("error: {error:#}"), FAILED),
    };
    note(&said);
    ExitCode::from(exit)
}

/// Prints lines to standard error. That nobody reads them is no reason to fail.
pub(crate) fn note(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Prints text to standard output; a reader who has gone away ends the command quietly.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        done => Ok(done?),
    }
}

/// Prints one JSON document.
pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    print(&(serde_json::to_string_pretty(value)? + "\n"))
}

/// Lays rows out in columns, two blanks apart.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    rows.iter().fold(String::new(), |mut text, row| {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            line.push_str(&format!("{cell:width$}  "));
        }
        text.push_str(line.trim_end());
        text.push('\n');
        text
    })
}
