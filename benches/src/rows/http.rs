//! How many calls over HTTP one core answers, beside a server that answers with the same bytes whatever it is asked.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::bed::Bed;
use crate::cores::Cores;
use crate::load::{self, Calls};
use crate::pairs::{Effort, Paired, in_turns, percentile};
use crate::repository;
use crate::served::Served;
use crate::sessions::Session;
use crate::table::{Report, time};
use crate::wire::{Connection, get};

/// Connections, each with one call on its way.
const CONNECTIONS: usize = 16;
/// Sessions that they speak for in turns: one alone may make 1,000 calls a second.
const SESSIONS: usize = 200;
/// Calls of one batch: less for each connection than it may make at once, which is how the API is bounded.
const CALLS: usize = 16_000;
/// The id of the first session's calls; all have as many digits.
const FIRST_ID: usize = 1000;
const FLOOR: &str = "axum returns as many bytes, on the same core";

pub(super) fn measure(bed: &Bed, effort: Effort, report: &mut Report) -> Result<()> {
    let folder = repository::project(bed, "http")?;
    let cores = Cores::take_two()?;
    let server = cores.for_server(|| Served::majordomus(bed, &folder))?;
    let mut connection = Connection::open(server.address)?;
    // With an episode the answer is a real one. Who holds it is none of those who ask, so all are answered alike.
    let holder = Session::begin(&mut connection, server.address)?;
    let attach = holder.call(1, "majordomus_session_attach", r#"{"external_id":"bench"}"#);
    let answer = connection.ask(&attach, 200)?;
    ensure!(answer.text().contains(" opened at "), "an attach opened nothing: {}", answer.text());
    let connection = RefCell::new(connection);
    // Seconds of silence have one digit as long as it speaks before each batch.
    let speak = || holder.ping(&mut connection.borrow_mut());
    report.note(format!("http: {}; {CONNECTIONS} connections with one call each on its way", cores.describe()));
    let contest = Contest { bed, folder: &folder, cores: &cores, server: &server, effort };
    speak()?;
    let (name, tools) =
        ("tools/call over HTTP, majordomus_episodes", tools(server.address, &mut connection.borrow_mut())?);
    let (paired, said) = contest.hold(&tools, &speak)?;
    report.rate(name, FLOOR, paired, 0.6);
    report.note(format!("{name}, {SESSIONS} sessions: {said}"));
    speak()?;
    let (name, api) = ("GET /api/v1/episodes", api(server.address, &mut connection.borrow_mut())?);
    let (paired, said) = contest.hold(&api, &speak)?;
    report.rate(name, FLOOR, paired, None);
    report.note(format!("{name}: {said}"));
    Ok(())
}

/// Calls of a tool by many sessions.
fn tools(address: SocketAddr, connection: &mut Connection) -> Result<Calls> {
    let mut requests = Vec::with_capacity(SESSIONS);
    for number in 0..SESSIONS {
        let session = Session::begin(connection, address)?;
        requests.push(session.call(FIRST_ID + number, "majordomus_episodes", "{}"));
    }
    let answer = connection.ask(&requests[0], 200)?;
    let (length, text) = (answer.body.len(), answer.text());
    // A refusal has none.
    let part = r#","structuredContent":{"open":1,"#;
    let at = text.find(part).with_context(|| format!("not the list of one episode: {text}"))?;
    let begins: Vec<String> =
        (0..SESSIONS).map(|number| format!(r#"{{"jsonrpc":"2.0","id":{},"result":"#, FIRST_ID + number)).collect();
    let is_answer = move |place: usize, body: &[u8]| {
        body.starts_with(begins[place].as_bytes()) && body[at..].starts_with(part.as_bytes())
    };
    Ok(Calls { requests, length, is_answer: Box::new(is_answer) })
}

/// Calls by nobody in particular.
fn api(address: SocketAddr, connection: &mut Connection) -> Result<Calls> {
    let requests = vec![get(address, "/api/v1/episodes")];
    let answer = connection.ask(&requests[0], 200)?;
    let (length, text) = (answer.body.len(), answer.text());
    let begin = r#"{"open":1,"detached":0,"episodes":[{"#;
    ensure!(text.starts_with(begin), "not the list of one episode: {text}");
    let is_answer = |_: usize, body: &[u8]| body.starts_with(begin.as_bytes());
    Ok(Calls { requests, length, is_answer: Box::new(is_answer) })
}

/// The server and a floor in turns.
struct Contest<'a> {
    bed: &'a Bed,
    folder: &'a Path,
    cores: &'a Cores,
    server: &'a Served,
    effort: Effort,
}

impl Contest<'_> {
    /// Asks both, the floor for answers as long as the server's; `first` is done before each batch of the server's.
    fn hold(&self, calls: &Calls, first: &impl Fn() -> Result<()>) -> Result<(Paired, String)> {
        let floor = self.cores.for_server(|| Served::floor(self.bed, self.folder, calls.length))?;
        let anything = Calls {
            requests: calls.requests.clone(),
            length: calls.length,
            is_answer: Box::new(|_, body| body.iter().all(|byte| *byte == b'x')),
        };
        let (mut ours, mut theirs) = (Side::new(self.server, calls), Side::new(&floor, &anything));
        let ask = || {
            first()?;
            ours.batch()
        };
        let paired = in_turns(self.effort.rounds(60), ask, || theirs.batch())?;
        Ok((paired, format!("{} bytes; {}; floor: {}", calls.length, ours.describe(), theirs.describe())))
    }
}

/// One of the two, and what it has taken so far.
struct Side<'a> {
    served: &'a Served,
    calls: &'a Calls,
    latencies: Vec<f64>,
    seconds: f64,
    computed: f64,
}

impl<'a> Side<'a> {
    fn new(served: &'a Served, calls: &'a Calls) -> Self {
        Self { served, calls, latencies: Vec::new(), seconds: 0.0, computed: 0.0 }
    }

    /// Has a batch answered over connections of its own, and returns how many calls a second that makes.
    fn batch(&mut self) -> Result<f64> {
        let connections: Result<Vec<Connection>> =
            (0..CONNECTIONS).map(|_| Connection::open(self.served.address)).collect();
        let mut connections = connections?;
        // The first call waits until the connection is accepted.
        load::run(&mut connections, self.calls, CONNECTIONS)?;
        let computed = || self.served.computed().unwrap_or(f64::NAN);
        let before = computed();
        let taken = load::run(&mut connections, self.calls, CALLS)?;
        self.computed += computed() - before;
        self.seconds += taken.seconds;
        self.latencies.extend(taken.latencies);
        Ok(CALLS as f64 / taken.seconds)
    }

    /// Says how long a call took, and who was busy: only a core that always is can answer no more.
    fn describe(&mut self) -> String {
        self.latencies.sort_unstable_by(f64::total_cmp);
        let count = self.latencies.len();
        let at = |percent| time(percentile(&self.latencies, percent));
        format!(
            "p50 {}, p99 {}, {} of processor per call, busy {:.0} % of the time",
            at(50),
            at(99),
            time(self.computed / count as f64),
            100.0 * self.computed / self.seconds,
        )
    }
}
