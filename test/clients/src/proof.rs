//! Holds what majordomus left in the repository against what was witnessed.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use majordomus_e2e::{Record, record_files};
use serde_json::{Value, json};

use crate::client::Client;
use crate::inside::SHORT_GRACE_SECONDS;
use crate::place::{Place, noted};
use crate::scenario::{Act, End, Scenario, Way};
use crate::witness::{Sitting, fired, sittings};

/// By how much two hooks of one event, or a hook and a connection, may be apart on a machine that is busy.
const SLACK_MS: i64 = 5_000;

/// What came of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Proof {
    pub(crate) found: Vec<String>,
    pub(crate) wrong: Vec<String>,
}

impl Proof {
    fn check(&mut self, holds: bool, otherwise: impl FnOnce() -> String) {
        if !holds {
            self.wrong.push(otherwise());
        }
    }

    fn same<T: PartialEq + std::fmt::Debug>(&mut self, what: &str, found: T, expected: T) {
        self.check(found == expected, || format!("{what} is {found:?} and should be {expected:?}"));
    }

    fn within(&mut self, what: &str, found: i64, from: i64, to: i64) {
        self.check((from..=to).contains(&found), || {
            let beside = if found < from { found - from } else { found - to };
            format!("{what} is {beside} ms outside of when it was")
        });
    }
}

/// What a sitting should have left.
pub(crate) fn expected(scenario: &Scenario) -> String {
    let ends = scenario.ends.iter().map(|end| match end {
        End::Closed(reason) => format!("closed {reason}"),
        End::Interrupted(reason) => format!("interrupted {reason}"),
        End::Silent => "open, then interrupted expired".to_owned(),
    });
    ends.collect::<Vec<_>>().join("; ")
}

/// Looks at the repository as anybody else would, outside of the client.
pub(crate) fn of(client: &Client, scenario: &Scenario, place: &Place) -> anyhow::Result<Proof> {
    let mut proof = Proof::default();
    let launched_ms = at(place, "launch").context("the client was never launched")?;
    let fired = fired(&place.witness(), client);
    let sittings = sittings(&fired, client);
    proof.same("the number of sittings that the hooks tell", sittings.len(), scenario.ends.len());
    for (sitting, end) in sittings.iter().zip(scenario.ends) {
        let told = sitting.ended.as_ref().map(|(reason, _)| reason.as_str());
        let (reason, is_closed) = match *end {
            End::Closed(reason) => (Some(reason), true),
            End::Interrupted(reason) => (Some(reason), false),
            End::Silent => (None, false),
        };
        proof.same("the reason that the hook of the end tells", told, reason);
        let deliberate = reason.is_some_and(|reason| client.deliberate.contains(&reason));
        proof.same("whether that reason is a decision", deliberate, is_closed);
    }
    let compactions: usize = sittings.iter().map(|sitting| sitting.compactions).sum();
    proof.same("the number of compactions that the hooks tell", compactions, scenario.compactions);
    let left = noted(&place.marks()).iter().rev().find(|mark| mark["what"] == "settled").cloned().unwrap_or_default();
    let left: Vec<&str> = left["more"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if !matches!(scenario.way, Way::Daemon(_)) {
        proof.same("what still runs afterwards", left, Vec::new());
    }
    let is_talk = matches!(scenario.way, Way::Talk);
    let calls = if is_talk { Vec::new() } else { joined_calls(place, &sittings, &mut proof) };

    let open: Value = serde_json::from_str(&place.majordomus(&["episodes", "--json"])?)?;
    let open: Vec<(&str, &str)> = open["episodes"].as_array().into_iter().flatten().map(key).collect();
    let silent = sittings.iter().filter(|sitting| sitting.ended.is_none());
    let expected: Vec<_> = silent.map(|sitting| (client.provider, sitting.id.as_str())).collect();
    proof.same("what `majordomus episodes` shows", open, expected.clone());
    let records = records(place, sittings.len(), !expected.is_empty())?;
    for record in &records {
        let (outcome, reason, witness) = record.end();
        proof.found.push(format!("{outcome} {reason}"));
        let provider = record.text("provider");
        let id = record.text("external_id");
        let Some(sitting) = sittings.iter().find(|sitting| provider == client.provider && sitting.id == id) else {
            proof
                .wrong
                .push(format!("a record of {provider} {id}, {outcome} {reason} by {witness}, that no hook told of"));
            continue;
        };
        // One client came; its connection is a second witness of the same sitting.
        let called = calls.iter().any(|at_ms| is_in(sitting, *at_ms));
        let witnesses = if called { json!(["hook", "connection"]) } else { json!(["hook"]) };
        proof.same("provider", provider, client.provider);
        proof.same("compactions", record["compactions"].as_u64(), u64::try_from(sitting.compactions).ok());
        proof.same("attachments", record["attachments"].as_u64(), Some(1));
        proof.same("witnesses", &record["witnesses"], &witnesses);
        proof.same("take_overs", record["take_overs"].as_u64(), Some(0));
        let began_ms = launched_ms.max(sitting.began_ms - SLACK_MS);
        proof.within("started_at", record.time("started_at"), began_ms, sitting.began_ms + SLACK_MS);
        let closed = record.time("closed_at");
        match &sitting.ended {
            Some((told, at_ms)) => {
                let outcome = if client.deliberate.contains(&told.as_str()) { "closed" } else { "interrupted" };
                proof.same("the end", record.end(), (outcome, told, "hook"));
                if let Some(terminal) = terminal(scenario) {
                    proof.same("end_terminal", &record["end_terminal"], &terminal);
                }
                // What a background server tells long afterwards is not when the sitting ended.
                let late = matches!(scenario.way, Way::Daemon(_));
                let (from, to) = if late { (sitting.last_ms, sitting.last_ms) } else { (*at_ms, *at_ms) };
                let from = if outcome == "closed" { from } else { sitting.last_ms };
                proof.within("closed_at", closed, from - SLACK_MS, to + SLACK_MS);
            }
            None => {
                proof.same("the end", record.end(), ("interrupted", "expired", "reaper"));
                proof.within("closed_at", closed, sitting.last_ms - SLACK_MS, sitting.last_ms + SLACK_MS);
            }
        }
    }
    for sitting in &sittings {
        let its = records.iter().filter(|record| record["external_id"] == sitting.id.as_str()).count();
        proof.same(&format!("the number of records of {}", sitting.id), its, 1);
    }
    Ok(proof)
}

/// When the model was given what majordomus answered to its call, as the model's service noted it.
fn joined_calls(place: &Place, sittings: &[Sitting], proof: &mut Proof) -> Vec<i64> {
    let asked = noted(&place.model());
    let answers: Vec<(i64, &str)> = asked
        .iter()
        .filter_map(|asked| Some((asked["at_ms"].as_i64()?, asked["results"].as_array()?.first()?.as_str()?)))
        .collect();
    proof.check(!answers.is_empty(), || "the model never got an answer of the tool that it called".into());
    for (_, answer) in &answers {
        let plain: String = answer.chars().filter(|char| !char.is_whitespace() && *char != '\\').collect();
        let is_joined = sittings.iter().any(|sitting| plain.contains(&format!("\"external_id\":\"{}\"", sitting.id)));
        proof.check(is_joined && plain.contains("\"recorded\":true"), || format!("the tool answered {answer:.300}"));
    }
    answers.into_iter().map(|(at_ms, _)| at_ms).collect()
}

/// What the hook of the end saw of the client's terminal; `None` where a background server ran it.
fn terminal(scenario: &Scenario) -> Option<Value> {
    match scenario.way {
        Way::Print(_) | Way::Talk => Some(Value::Null),
        Way::Terminal(acts) if acts.iter().any(|act| matches!(act, Act::Close)) => Some(json!("gone")),
        Way::Terminal(_) => Some(json!("there")),
        Way::Daemon(_) => None,
    }
}

fn is_in(sitting: &Sitting, at_ms: i64) -> bool {
    at_ms >= sitting.began_ms && sitting.ended.as_ref().is_none_or(|(_, ended_ms)| at_ms <= *ended_ms)
}

fn at(place: &Place, what: &str) -> Option<i64> {
    noted(&place.marks()).iter().find(|mark| mark["what"] == what)?["at_ms"].as_i64()
}

fn key(episode: &Value) -> (&str, &str) {
    let text = |field: &str| episode[field].as_str().unwrap_or_default();
    (text("provider"), text("external_id"))
}

/// Reads all records, the oldest first; where some sitting ended without a word, once its silence is over.
fn records(place: &Place, expected: usize, silence: bool) -> anyhow::Result<Vec<Record>> {
    let mut arguments = vec!["sessions", "list", "--json", "--limit", "1000"];
    if silence {
        arguments.extend(["--idle-seconds", "1", "--grace-seconds", "1"]);
    }
    let most = Duration::from_secs(if silence { u64::from(SHORT_GRACE_SECONDS) + 10 } else { 2 });
    let since = Instant::now();
    loop {
        let listed: Value = serde_json::from_str(&place.majordomus(&arguments)?)?;
        let listed: Vec<&str> = listed["sessions"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|session| session["path"].as_str())
            .collect();
        let files = record_files(&place.work()).len();
        if (listed.len() >= expected && listed.len() == files) || since.elapsed() > most {
            return Ok(listed.iter().rev().map(|path| Record::read(&place.work(), path)).collect());
        }
        thread::park_timeout(Duration::from_millis(200));
    }
}
