//! What a client says, line by line.

use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::bed::{Bed, run};
use crate::talker::Talker;

/// The opening message of a client.
pub(crate) const INITIALIZE: &str = concat!(
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"#,
    r#""clientInfo":{"name":"bench","version":"0"}}}"#,
    "\n"
);
const INITIALIZED: &str = concat!(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, "\n");
pub(crate) const PING: &str = concat!(r#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#, "\n");
pub(crate) const EPISODES: &str = concat!(
    r#"{"jsonrpc":"2.0","id":0,"method":"tools/call","params":{"name":"majordomus_episodes","arguments":{}}}"#,
    "\n"
);
const DETACH: &str = concat!(
    r#"{"jsonrpc":"2.0","id":0,"method":"tools/call","params":{"name":"majordomus_session_detach","arguments":{}}}"#,
    "\n"
);
/// How long a server may take to go after its last client.
const LIMIT: Duration = Duration::from_secs(10);

/// A call and the id that its answer must name: an answer that comes one call late is none.
pub(crate) struct Call {
    line: String,
    id: String,
}

impl Call {
    /// That many of one call, each with an id of its own.
    pub(crate) fn numbered(line: &str, count: u32) -> Vec<Self> {
        let numbered = |number| {
            let id = format!(r#""id":{number},"#);
            Self { line: line.replacen(r#""id":0,"#, &id, 1), id }
        };
        (1000..1000 + count).map(numbered).collect()
    }

    /// Has it answered.
    pub(crate) fn ask(&self, talker: &mut Talker) -> Result<()> {
        let answer = talker.ask(self.line.as_bytes())?;
        let named = answer.windows(self.id.len()).take(64).any(|part| part == self.id.as_bytes());
        ensure!(named, "not the answer to {}{}", self.line, String::from_utf8_lossy(answer));
        Ok(())
    }
}

/// Starts a client of a checkout: the first is its server, each other one a bridge to it.
pub(crate) fn client(bed: &Bed, folder: &Path) -> Result<Talker> {
    let mut client = Talker::start(bed.majordomus(folder, &["mcp"]))?;
    expect(&mut client, INITIALIZE, "protocolVersion")?;
    client.tell(INITIALIZED.as_bytes())?;
    expect(&mut client, PING, r#""id":0,"result""#)?;
    Ok(client)
}

/// Makes sure of what an answer says.
pub(crate) fn expect(talker: &mut Talker, line: &str, part: &str) -> Result<()> {
    let answer = String::from_utf8_lossy(talker.ask(line.as_bytes())?).into_owned();
    ensure!(answer.contains(part), "not the answer to {line}{answer}");
    Ok(())
}

/// Opens an episode.
pub(crate) fn attach(talker: &mut Talker, external_id: &str) -> Result<()> {
    let line = format!(
        r#"{{"jsonrpc":"2.0","id":0,"method":"tools/call","params":{{"name":"majordomus_session_attach","arguments":{{"external_id":"{external_id}"}}}}}}"#
    );
    expect(talker, &format!("{line}\n"), " opened at ")
}

/// Ends the episode that it has.
pub(crate) fn detach(talker: &mut Talker) -> Result<()> {
    expect(talker, DETACH, "episode closed (")
}

/// Makes sure who the server of a checkout is: else a bridge that serves itself would be taken for one.
pub(crate) fn is_served_by(bed: &Bed, folder: &Path, server: &Talker) -> Result<()> {
    let status = run(&mut bed.majordomus(folder, &["serve", "status", "--json"]), b"")?.stdout;
    let told: Value = serde_json::from_str(&status).with_context(|| format!("not JSON: {status}"))?;
    ensure!(told["standing"] == "serving" && told["pid"] == server.pid(), "not {} but {status}", server.pid());
    Ok(())
}

/// Waits until a checkout has no server: the one whose own client has left goes once the last of the others has.
pub(crate) fn until_nobody_serves(bed: &Bed, folder: &Path) -> Result<()> {
    let begun = Instant::now();
    loop {
        match run(&mut bed.majordomus(folder, &["serve", "status"]), b"") {
            Err(error) if error.to_string().contains("no server runs for this checkout") => return Ok(()),
            Err(error) if begun.elapsed() > LIMIT => return Err(error),
            Ok(said) if begun.elapsed() > LIMIT => bail!("a server stays: {}", said.stdout),
            Ok(_) | Err(_) => sleep(Duration::from_millis(5)),
        }
    }
}
