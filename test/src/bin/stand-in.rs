//! Stands in for an agent's process: it lives, and runs the hooks that it is told to as a client does.
//!
//! One JSON object a line on its input: `script` for the shell, `input` for the script's own, `env` to add. One a line on
//! its output: `code`, `out` and `err`. It ends with its input. It is in a session of its own, without a terminal or with
//! the one that its first argument names.

use std::io::{BufRead, Write};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

fn main() -> std::io::Result<()> {
    rustix::process::setsid()?;
    // A terminal stays the session's as long as somebody has it open; whoever leads the session has.
    let terminal = match std::env::args_os().nth(1) {
        Some(path) => {
            let terminal = std::fs::File::options().read(true).write(true).open(path)?;
            rustix::process::ioctl_tiocsctty(&terminal)?;
            Some(terminal)
        }
        None => None,
    };
    let mut output = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let asked: Value = serde_json::from_str(&line?)?;
        writeln!(output, "{}", run(&asked)?)?;
        output.flush()?;
    }
    drop(terminal);
    Ok(())
}

fn run(asked: &Value) -> std::io::Result<Value> {
    let mut command = Command::new("sh");
    command.arg("-c").arg(asked["script"].as_str().unwrap_or_default());
    for (name, value) in asked["env"].as_object().into_iter().flatten() {
        command.env(name, value.as_str().unwrap_or_default());
    }
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    if let Some(mut input) = child.stdin.take() {
        // A hook that does not read is for the case to judge.
        let _ = input.write_all(asked["input"].as_str().unwrap_or_default().as_bytes());
    }
    let said = child.wait_with_output()?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok(json!({ "code": said.status.code(), "out": text(&said.stdout), "err": text(&said.stderr) }))
}
