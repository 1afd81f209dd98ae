//! `majordomus demo`: the whole lifecycle, with real processes over real pipes, in a repository that is gone afterwards.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use serde_json::{Value, json};

use crate::output;

/// How long the last step waits for a client that does not come back, in seconds.
const GRACE_SECONDS: u64 = 1;

pub(super) fn run() -> anyhow::Result<ExitCode> {
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let repository = folder.path();
    git(repository, &["init", "--quiet", "--initial-branch=main"])?;
    commit(repository, "README.md", "Begin")?;
    say("A repository of its own, with one commit. A client without hooks attaches under its own name:")?;

    let mut first = Client::start(repository)?;
    say(&format!("   {}", first.attach("thread-7")?))?;
    say("Its connection is lost. The work is not over, so the episode only loses its holder:")?;
    first.lose_connection()?;
    say(&format!("   {}", listed(repository)?))?;

    say("It comes back over another connection, under the same name, and gets its own episode:")?;
    let mut second = Client::start(repository)?;
    say(&format!("   {}", second.attach("thread-7")?))?;
    say("It commits, and is killed with SIGKILL in the middle of its work:")?;
    commit(repository, "answer.txt", "Answer the question")?;
    second.kill()?;
    say(&format!("   {}", listed(repository)?))?;

    say("Back once more, it finishes and says so:")?;
    let mut third = Client::start(repository)?;
    say(&format!("   {}", third.attach("thread-7")?))?;
    say(&format!("   {}", third.detach()?))?;
    third.lose_connection()?;

    say("Another client attaches, is killed, and never comes back:")?;
    let mut lost = Client::start(repository)?;
    say(&format!("   {}", lost.attach("thread-8")?))?;
    lost.kill()?;
    say(&format!("Nobody waits for it longer than the grace, here {GRACE_SECONDS} s. The next command notices:"))?;
    std::thread::sleep(Duration::from_secs(GRACE_SECONDS) + Duration::from_millis(50));
    let list = majordomus(repository, &["sessions", "list", "--json", "--grace-seconds", &GRACE_SECONDS.to_string()])?;
    let list: Value = serde_json::from_str(&list).context("the list is not JSON")?;
    let records = list["sessions"].as_array().context("the list has no sessions")?;
    for record in records {
        say(&format!(
            "   {} {} ({})",
            text(&record["session_id"]),
            text(&record["outcome"]),
            text(&record["end_reason"])
        ))?;
    }
    if records.len() != 2 {
        bail!("there are {} records where two were expected", records.len());
    }
    say("These are the two records, as they now stand in the repository:")?;
    for record in records.iter().rev() {
        let path = text(&record["path"]);
        let record = std::fs::read_to_string(repository.join(&path)).with_context(|| format!("cannot read {path}"))?;
        say(&format!("\n----- {path} -----\n{record}"))?;
    }
    folder.close().context("cannot remove the temporary folder")?;
    Ok(ExitCode::SUCCESS)
}

fn say(line: &str) -> anyhow::Result<()> {
    output::print(&format!("{line}\n"))
}

/// A client without hooks: a real `majordomus mcp` at the other end of real pipes.
struct Client {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    next_id: u64,
}

impl Client {
    fn start(repository: &Path) -> anyhow::Result<Self> {
        let mut process = program()?
            .arg("mcp")
            .current_dir(repository)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start `majordomus mcp`")?;
        let output = BufReader::new(process.stdout.take().context("the server has no standard output")?);
        let input = process.stdin.take();
        let mut client = Self { process, input, output, next_id: 1 };
        let about = json!({ "name": "demo", "version": env!("CARGO_PKG_VERSION") });
        client
            .call("initialize", &json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": about }))?;
        client.write(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
        Ok(client)
    }

    fn attach(&mut self, external_id: &str) -> anyhow::Result<String> {
        self.tool("majordomus_session_attach", &json!({ "external_id": external_id }))
    }

    fn detach(&mut self) -> anyhow::Result<String> {
        self.tool("majordomus_session_detach", &json!({}))
    }

    /// Calls a tool and returns what the repository says of the episode.
    fn tool(&mut self, name: &str, arguments: &Value) -> anyhow::Result<String> {
        let result = self.call("tools/call", &json!({ "name": name, "arguments": arguments }))?;
        let episode = &result["structuredContent"]["episode"];
        let attachments = &episode["attachments"];
        Ok(format!("{} (attachments {attachments})", text(&episode["repository"])))
    }

    fn call(&mut self, method: &str, params: &Value) -> anyhow::Result<Value> {
        let id = self.next_id;
        self.next_id += 1;
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))?;
        let mut line = String::new();
        self.output.read_line(&mut line).context("the server's answer cannot be read")?;
        let mut answer: Value =
            serde_json::from_str(&line).with_context(|| format!("not an answer to {method}: {line:?}"))?;
        let result = answer["result"].take();
        if result.is_null() {
            bail!("{method} was answered with {line}");
        }
        Ok(result)
    }

    fn write(&mut self, message: &Value) -> anyhow::Result<()> {
        let input = self.input.as_mut().context("the connection is gone")?;
        writeln!(input, "{message}").context("the server does not read")
    }

    fn lose_connection(mut self) -> anyhow::Result<()> {
        drop(self.input.take());
        let status = self.process.wait().context("the server cannot be waited for")?;
        if !status.success() {
            bail!("the server ended with {status}");
        }
        Ok(())
    }

    fn kill(mut self) -> anyhow::Result<()> {
        self.process.kill().context("the server cannot be killed")?;
        self.process.wait().context("the server cannot be waited for")?;
        Ok(())
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // A step that failed leaves no process behind; one that has ended already cannot be killed, which is fine.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn listed(repository: &Path) -> anyhow::Result<String> {
    Ok(majordomus(repository, &["episodes"])?.trim_end().to_owned())
}

fn majordomus(repository: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    run_in(program()?.args(arguments).current_dir(repository))
}

/// This same program, with nothing in the environment that would change what is shown.
fn program() -> anyhow::Result<Command> {
    let mut program = Command::new(std::env::current_exe().context("cannot tell which program this is")?);
    program.env_remove(crate::variables::GRACE_SECONDS).env_remove(crate::variables::IDLE_SECONDS);
    Ok(program)
}

fn git(repository: &Path, arguments: &[&str]) -> anyhow::Result<()> {
    let mut git = Command::new("git");
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"GIT_")) {
        git.env_remove(name);
    }
    // Neither the person's settings nor their name have a place in a demonstration.
    git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    git.args(["-c", "user.name=demo", "-c", "user.email=demo@localhost", "-c", "commit.gpgSign=false"]);
    run_in(git.args(arguments).current_dir(repository)).map(drop)
}

fn commit(repository: &Path, file: &str, subject: &str) -> anyhow::Result<()> {
    std::fs::write(repository.join(file), format!("{subject}\n")).with_context(|| format!("cannot write {file}"))?;
    git(repository, &["add", file])?;
    git(repository, &["commit", "--quiet", "--no-verify", "--message", subject])
}

fn run_in(command: &mut Command) -> anyhow::Result<String> {
    let output = command.output().with_context(|| format!("cannot run {:?}", command.get_program()))?;
    if !output.status.success() {
        bail!("{:?} failed: {}", command, String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
