//! From the death of a server until its bridges' calls are answered.

use std::path::Path;
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::stdio_start::first_answer;
use crate::bed::Bed;
use crate::calls::{EPISODES, attach, client, detach, expect, is_served_by, until_nobody_serves};
use crate::pairs::{Effort, Paired, Spread, percentile};
use crate::repository;
use crate::table::{Report, time};
use crate::talker::Talker;

const BRIDGES: usize = 10;
/// The most that anybody may have to wait, in seconds.
const BOUND: f64 = 2.0;
/// Long enough for a call to arrive where nobody takes it, and too short for a bridge to doubt that somebody will.
const MOMENT: Duration = Duration::from_millis(20);
/// A new server has to come up.
const FLOOR: &str = "start to first initialize reply, one server";

pub(super) fn measure(bed: &Bed, effort: Effort, report: &mut Report) -> Result<()> {
    let (folder, other) = (repository::project(bed, "failover")?, repository::project(bed, "failover-floor")?);
    let rounds = effort.rounds(30);
    let (mut middle, mut slowest, mut all) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=rounds {
        let taken = kill(bed, &folder, round)?;
        let floor = first_answer(bed, &bed.majordomus, &["mcp"], &other, "protocolVersion")?;
        if round > 0 {
            let Spread { median, most, .. } = Spread::of(taken.clone());
            middle.push((median, floor));
            slowest.push((most, floor));
            all.extend(taken);
        }
    }
    report.row("failover, median of 10 bridges", FLOOR, Paired::of(&middle), None);
    report.bound("failover, slowest of 10 bridges", FLOOR, Paired::of(&slowest), BOUND);
    all.sort_unstable_by(f64::total_cmp);
    report.note(format!(
        "failover: {rounds} servers killed with a call of each of {BRIDGES} bridges in flight; p50 {}, p99 {}, worst {}",
        time(percentile(&all, 50)),
        time(percentile(&all, 99)),
        time(all[all.len() - 1]),
    ));
    Ok(())
}

/// Seconds from a server's death until the call that each bridge has in flight is answered.
fn kill(bed: &Bed, folder: &Path, round: usize) -> Result<Vec<f64>> {
    let mut holder = client(bed, folder)?;
    let bridges: Result<Vec<Talker>> = (0..BRIDGES).map(|_| client(bed, folder)).collect();
    let mut bridges = bridges?;
    is_served_by(bed, folder, &holder)?;
    for (number, bridge) in bridges.iter_mut().enumerate() {
        attach(bridge, &format!("bench-{round}-{number}"))?;
    }
    // Stopped first: it would answer everything before it could be killed.
    holder.stop()?;
    sleep(MOMENT);
    bridges.iter_mut().try_for_each(|bridge| bridge.tell(EPISODES.as_bytes()))?;
    let (killed, answered) = scope(|scope| {
        let hear = |bridge| scope.spawn(move || answer(bridge));
        let waiting: Vec<_> = bridges.iter_mut().map(hear).collect();
        sleep(MOMENT);
        let killed = Instant::now();
        let done = holder.kill().map(|()| killed);
        let answered: Result<Vec<Instant>> = waiting.into_iter().map(|bridge| joined(bridge.join())).collect();
        (done, answered)
    });
    let (killed, answered) = (killed?, answered?);
    drop(holder);
    let since = |answered: Instant| answered.checked_duration_since(killed).context("a stopped server answered");
    let taken: Result<Vec<f64>> = answered.into_iter().map(|answered| Ok(since(answered)?.as_secs_f64())).collect();
    // Each goes on with its own, and none is there twice.
    let listed = format!(r#""open":{BRIDGES},"detached":0,"#);
    bridges.iter_mut().try_for_each(|bridge| expect(bridge, EPISODES, &listed))?;
    bridges.iter_mut().try_for_each(detach)?;
    bridges.into_iter().try_for_each(Talker::leave)?;
    until_nobody_serves(bed, folder)?;
    taken
}

fn answer(bridge: &mut Talker) -> Result<Instant> {
    let heard = bridge.hear()?;
    let at = Instant::now();
    let text = String::from_utf8_lossy(heard);
    ensure!(text.contains(r#""structuredContent":{"open":"#), "not the answer to {EPISODES}{text}");
    Ok(at)
}

fn joined<T>(ended: std::thread::Result<Result<T>>) -> Result<T> {
    ended.unwrap_or_else(|_| anyhow::bail!("who listened to a bridge is gone"))
}
