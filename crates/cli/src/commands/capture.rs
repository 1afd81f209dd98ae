//! `majordomus capture session` and `majordomus capture status`.

mod status;

use std::os::fd::AsFd;
use std::process::ExitCode;

use majordomus_records::capture::Request;
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
    let line = match input::payload(std::io::stdin().as_fd()) {
        Ok(payload) => session(&Request {
            provider: &arguments.provider,
            kind: arguments.event.into(),
            payload: &payload,
            cwd: std::env::current_dir().ok().as_deref(),
            variable: super::folder_variable,
            policy,
        }),
        Err(error) => format!("no episode was recorded: standard input cannot be read: {error}"),
    };
    output::note(&line);
    ExitCode::SUCCESS
}
