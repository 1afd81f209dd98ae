//! One call after another over a bridge, beside the same call of the client that the server itself serves.

use anyhow::Result;

use crate::bed::Bed;
use crate::calls::{Call, EPISODES, PING, attach, client, expect, is_served_by, until_nobody_serves};
use crate::pairs::{Effort, Spread, in_turns, percentile, seconds};
use crate::repository;
use crate::table::{Report, time};
use crate::talker::Talker;

/// How many calls of one client follow each other before it is the other's turn.
const BATCH: u32 = 50;
/// Clients beside the two that call: each has an episode in the answer.
const OTHERS: usize = 3;

pub(super) fn measure(bed: &Bed, effort: Effort, report: &mut Report) -> Result<()> {
    let folder = repository::project(bed, "bridge")?;
    let mut holder = client(bed, &folder)?;
    let mut bridge = client(bed, &folder)?;
    let others: Result<Vec<Talker>> = (0..OTHERS).map(|_| client(bed, &folder)).collect();
    let mut others = others?;
    is_served_by(bed, &folder, &holder)?;
    for (number, talker) in others.iter_mut().chain([&mut bridge, &mut holder]).enumerate() {
        attach(talker, &format!("bench-{number}"))?;
    }
    expect(&mut bridge, EPISODES, &format!(r#""open":{}"#, OTHERS + 2))?;
    let floor = "the server answers its own client over stdio";
    let rows =
        [("bridge round trip, majordomus_episodes", EPISODES, Some(1.5)), ("bridge round trip, ping", PING, None)];
    for (what, line, budget) in rows {
        let (mut over, mut local) = (Vec::new(), Vec::new());
        let ours = || batch(&mut bridge, line, &mut over);
        let paired = in_turns(effort.rounds(300), ours, || batch(&mut holder, line, &mut local))?;
        report.row(what, floor, paired, budget);
        report.note(format!("{what}: {}; local: {}", describe(over), describe(local)));
    }
    is_served_by(bed, &folder, &holder)?;
    bridge.leave()?;
    others.into_iter().try_for_each(Talker::leave)?;
    holder.leave()?;
    until_nobody_serves(bed, &folder)
}

/// The median of the seconds of a call; `all` is given each.
fn batch(talker: &mut Talker, line: &str, all: &mut Vec<f64>) -> Result<f64> {
    let mut taken = Vec::new();
    for call in Call::numbered(line, BATCH) {
        let (seconds, done) = seconds(|| call.ask(talker));
        done?;
        taken.push(seconds);
    }
    all.extend(&taken);
    Ok(Spread::of(taken).median)
}

fn describe(mut latencies: Vec<f64>) -> String {
    latencies.sort_unstable_by(f64::total_cmp);
    format!("p50 {}, p99 {}", time(percentile(&latencies, 50)), time(percentile(&latencies, 99)))
}
