//! One call after another over a connection that stands, beside a line that comes back from the echo.

use anyhow::{Result, ensure};

use super::stdio_start::INITIALIZE;
use crate::bed::Bed;
use crate::pairs::{Effort, in_turns, seconds};
use crate::repository;
use crate::table::Report;
use crate::talker::Talker;

const PING: &str = concat!(r#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#, "\n");
const EPISODES: &str = concat!(
    r#"{"jsonrpc":"2.0","id":0,"method":"tools/call","params":{"name":"majordomus_episodes","arguments":{}}}"#,
    "\n"
);
const ATTACH: &str = concat!(
    r#"{"jsonrpc":"2.0","id":0,"method":"tools/call","params":{"name":"majordomus_session_attach","#,
    r#""arguments":{"external_id":"bench"}}}"#,
    "\n"
);
const INITIALIZED: &str = concat!(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, "\n");
/// How many calls are timed together.
const BATCH: u32 = 500;

pub(super) fn measure(bed: &Bed, effort: Effort, report: &mut Report) -> Result<()> {
    let folder = repository::project(bed, "stdio-round-trip")?;
    let mut echo = Talker::start(bed.command(&bed.floor_echo, &folder))?;
    let mut server = Talker::start(bed.majordomus(&folder, &["mcp"]))?;
    expect(&mut server, INITIALIZE, "protocolVersion")?;
    server.tell(INITIALIZED.as_bytes())?;
    // With an episode every message is evidence, as it is for a client at work.
    expect(&mut server, ATTACH, " opened at ")?;
    expect(&mut server, PING, r#""id":0,"result""#)?;
    expect(&mut server, EPISODES, r#""open":1"#)?;
    for (what, line) in [("stdio round trip, ping", PING), ("stdio round trip, majordomus_episodes", EPISODES)] {
        let paired = in_turns(effort.rounds(60), || batch(&mut server, line), || batch(&mut echo, line))?;
        report.row(what, "the bare tokio program echoes the line", paired, None);
    }
    server.leave()?;
    echo.leave()
}

fn expect(server: &mut Talker, line: &str, part: &str) -> Result<()> {
    let answer = String::from_utf8_lossy(server.ask(line.as_bytes())?).into_owned();
    ensure!(answer.contains(part), "not the answer to {line}{answer}");
    Ok(())
}

/// Seconds of one call. Each has an id of its own, which its answer must name: an answer that comes one call late is
/// none.
fn batch(talker: &mut Talker, line: &str) -> Result<f64> {
    let calls: Vec<(String, String)> = (1000..1000 + BATCH)
        .map(|number| {
            let id = format!(r#""id":{number},"#);
            (line.replacen(r#""id":0,"#, &id, 1), id)
        })
        .collect();
    let (seconds, done) = seconds(|| {
        calls.iter().try_for_each(|(line, id)| {
            let answer = talker.ask(line.as_bytes())?;
            let named = answer.windows(id.len()).take(64).any(|part| part == id.as_bytes());
            ensure!(named, "not the answer to {line}{}", String::from_utf8_lossy(answer));
            Ok(())
        })
    });
    done?;
    Ok(seconds / f64::from(BATCH))
}
