//! `majordomus capture session` and `majordomus capture status`.

mod status;

use std::os::fd::AsFd;
use std::process::ExitCode;

use majordomus_records::capture::{Request, Said};
use majordomus_records::session;

use crate::args::{Capture, CaptureSession};
use crate::{input, output};

pub(super) fn run(arguments: &Capture) -> anyhow::Result<ExitCode> {
    match arguments {
        Capture::Session(arguments) => Ok(record(arguments)),
        Capture::Status(reading) => status::run(reading),
    }
}

/// Records one event and exits 0 whatever became of it: an agent is never harmed by what we could not record.
fn record(arguments: &CaptureSession) -> ExitCode {
    let (policy, bad) = arguments.silence.policy();
    if let Some(bad) = bad {
        output::note(&format!("warning: {bad}; the default is used"));
    }
    let cwd = std::env::current_dir().ok();
    if cwd.is_none() {
        // An agent may have removed the folder that it started us in. Finding the payload's repository goes by absolute
        // paths, but what finds it wants the process to be somewhere.
        let _ = std::env::set_current_dir("/");
    }
    let said = match input::payload(std::io::stdin().as_fd()) {
        Ok(payload) => session(&Request {
            provider: &arguments.provider,
            kind: arguments.event.into(),
            payload: &payload,
            cwd: cwd.as_deref(),
            variable: super::folder_variable,
            policy,
            process: Some(std::process::id()),
        }),
        Err(error) => {
            let line = format!("no episode was recorded: standard input cannot be read: {error}");
            Said { line, context: None }
        }
    };
    output::note(&said.line);
    if let Some(context) = said.context {
        // A client that does not read it has lost nothing.
        let _ = output::print(&format!("{context}\n"));
    }
    ExitCode::SUCCESS
}
