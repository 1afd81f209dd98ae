//! A server over HTTP that is killed at any moment of a client's cycle: every sitting has one record, and only those
//! that were ended on purpose are closed.

use std::collections::BTreeMap;
use std::io;
use std::thread;
use std::time::Duration;

use majordomus_e2e::{Connection, DEADLINE, Dice, REVISION, Reply, Request, Server, World, initialize, until};
use serde_json::{Value, json};

/// How often a server is killed.
const KILLS: u64 = 48;
/// How long it may live, in microseconds: far longer than a cycle takes.
const LIFE: u64 = 60_000;

/// What a client knows of its sittings.
#[derive(Default)]
struct Known {
    /// Acknowledged sittings by their session's id, and whether their end was acknowledged.
    sittings: BTreeMap<String, bool>,
    /// Sittings whose end was asked for without an answer: it may have become durable, and then is no mistake.
    asked_to_end: Vec<String>,
    attaches: u32,
    /// Whether it is in one: it was told that it attached, and not that the sitting has ended.
    inside: bool,
}

/// A client of the session protocol over one connection, until the server hangs up.
struct Caller {
    connection: Connection,
    session: String,
}

impl Caller {
    fn begin(server: &Server) -> io::Result<Self> {
        let mut connection = Connection::try_open(server.address())?;
        let reply = ask(&mut connection, &Request::post("/mcp", &initialize(REVISION)))?;
        let session = reply.header("mcp-session-id").expect("a session has an id").to_owned();
        Ok(Self { connection, session })
    }

    fn tool(&mut self, name: &str, arguments: &Value) -> io::Result<Value> {
        let message = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": name, "arguments": arguments}});
        let request = Request::post("/mcp", &message).header("Mcp-Session-Id", &self.session);
        let reply = ask(&mut self.connection, &request)?;
        Ok(reply.done()["result"]["structuredContent"].clone())
    }

    fn attach(&mut self, known: &mut Known) -> io::Result<String> {
        known.attaches += 1;
        let answer = self.tool("majordomus_session_attach", &json!({ "external_id": "a" }))?;
        assert_eq!(answer["recorded"], true, "{answer}");
        let id = session_in(&answer);
        known.sittings.entry(id.clone()).or_insert(false);
        known.inside = true;
        Ok(id)
    }

    fn delete(mut self) -> io::Result<()> {
        let request = Request::new("DELETE", "/mcp").header("Mcp-Session-Id", &self.session);
        ask(&mut self.connection, &request).map(|reply| assert_eq!(reply.status, 204, "{reply:?}"))
    }
}

fn ask(connection: &mut Connection, request: &Request) -> io::Result<Reply> {
    connection.try_write(&request.bytes(connection.address()))?;
    connection.try_reply()
}

fn session_in(answer: &Value) -> String {
    let line = answer["episode"]["repository"].as_str().expect("an answer says what was recorded");
    let named = line.split([' ', '/']).find(|word| word.starts_with("s-") && word.len() >= 25);
    named.unwrap_or_else(|| panic!("{line}"))[..25].to_owned()
}

/// Attach, DELETE, attach again, detach, and so on, until the server is gone.
fn cycle(server: &Server, known: &mut Known) -> io::Result<()> {
    loop {
        let mut first = Caller::begin(server)?;
        let sitting = first.attach(known)?;
        first.delete()?;
        let mut second = Caller::begin(server)?;
        assert_eq!(second.attach(known)?, sitting, "the same sitting, for it was not ended");
        known.asked_to_end.push(sitting.clone());
        let ended = second.tool("majordomus_session_detach", &json!({}))?;
        assert_eq!(ended["recorded"], true, "{ended}");
        assert_eq!(session_in(&ended), sitting);
        known.asked_to_end.pop();
        known.sittings.insert(sitting, true);
        known.inside = false;
    }
}

#[test]
fn a_server_that_is_killed_at_any_moment_loses_no_sitting_and_closes_none() {
    let (world, mut dice, mut known) = (World::new(), Dice::new(77), Known::default());
    let mut within = 0;
    for _ in 0..KILLS {
        let server = world.serve(&[]);
        let (pid, life) = (server.pid(), dice.below(LIFE));
        let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
        let killer = thread::spawn(move || {
            thread::park_timeout(Duration::from_micros(life));
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        });
        let gone = cycle(&server, &mut known).unwrap_err();
        assert_ne!(gone.kind(), io::ErrorKind::TimedOut, "no call hangs longer than {DEADLINE:?}");
        within += u32::from(known.inside);
        killer.join().unwrap();
        server.kill9();
    }
    // The client comes back once more and finishes what it can.
    let server = world.serve(&[]);
    let mut last = Caller::begin(&server).unwrap();
    let sitting = last.attach(&mut known).unwrap();
    assert_eq!(last.tool("majordomus_session_detach", &json!({})).unwrap()["recorded"], true);
    known.sittings.insert(sitting, true);
    let done = until("every end has its record", || {
        let done = world.records();
        (world.logs("open").is_empty() && world.logs("ended").is_empty()).then_some(done)
    });
    drop(server);
    let mut attachments = 0;
    let mut found: BTreeMap<&str, u32> = BTreeMap::new();
    for record in &done {
        let id = record.text("session_id");
        *found.entry(id).or_default() += 1;
        attachments += record["attachments"].as_u64().unwrap();
        assert!(record.time("closed_at") >= record.time("started_at"), "{record:?}");
        let said = known.sittings.get(id).copied();
        let asked = known.asked_to_end.iter().any(|asked| asked == id);
        assert_eq!(record.end(), ("closed", "detach", "connection"), "one cycle, one sitting: {record:?}");
        assert!(said == Some(true) || asked, "{id} was closed by nobody");
    }
    for id in known.sittings.keys() {
        assert_eq!(found.get(id.as_str()), Some(&1), "{id} was said to be recorded");
    }
    assert!(found.values().all(|count| *count == 1), "{found:?}");
    assert!(attachments <= u64::from(known.attaches), "{attachments} of {}", known.attaches);
    println!("{KILLS} kills, {} sittings, {within} of the kills within one", known.sittings.len());
    assert!(within >= 5, "it was killed within a sitting {within} times only");
}
