//! What must be true after every step, each as a function whose name says it.

use std::collections::BTreeSet;
use std::time::Duration;

use majordomus_records::clock::Stamp;

use super::{Ended, Watch, Wrong};
use crate::truth::{At, BY_CONNECTION, Key, Truth};

type Check = fn(&Watch, &Truth) -> Result<(), String>;

/// Names functions together with themselves.
macro_rules! sentences {
    ($($sentence:ident),* $(,)?) => { &[$((stringify!($sentence), $sentence as Check)),*] };
}

const ALWAYS: &[(&str, Check)] = sentences![
    one_conversation_has_one_open_log,
    what_was_put_aside_has_ended,
    at_most_one_record_per_session,
    nothing_is_recorded_that_nobody_did,
    a_record_never_ends_before_it_started,
    a_record_says_what_the_log_said,
    closed_is_only_claimed_for_a_deliberate_reason,
    every_end_has_a_cause,
    an_episode_that_is_held_is_never_expired,
    nothing_expires_before_its_time,
    an_interrupted_episode_ends_at_its_last_evidence,
    what_was_acknowledged_survives,
    an_end_that_was_acknowledged_is_that_end,
    attachments_count_what_clients_did,
    a_client_that_comes_back_under_its_id_gets_its_own_episode,
    nothing_is_stolen_back,
];

const IN_THE_END: &[(&str, Check)] =
    sentences![every_session_has_exactly_one_record_in_the_end, nothing_is_left_over_in_the_end];

pub(super) fn hold(watch: &Watch, truth: &Truth) -> Result<(), Wrong> {
    all(ALWAYS, watch, truth)
}

pub(super) fn hold_in_the_end(watch: &Watch, truth: &Truth) -> Result<(), Wrong> {
    all(ALWAYS, watch, truth)?;
    all(IN_THE_END, watch, truth)
}

fn all(checks: &[(&'static str, Check)], watch: &Watch, truth: &Truth) -> Result<(), Wrong> {
    checks.iter().try_for_each(|(sentence, check)| check(watch, truth).map_err(|what| Wrong { sentence, what }))
}

fn demand(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(otherwise()) }
}

fn one_conversation_has_one_open_log(watch: &Watch, _: &Truth) -> Result<(), String> {
    let mut keys = BTreeSet::new();
    for log in watch.logs.values().filter(|log| log.end.is_none()) {
        let key = super::key_of(log);
        demand(keys.insert(key.clone()), || format!("{key:?} has two"))?;
    }
    Ok(())
}

fn what_was_put_aside_has_ended(watch: &Watch, _: &Truth) -> Result<(), String> {
    for (path, log) in &watch.logs {
        let aside = path.parent().is_some_and(|folder| !folder.ends_with("open"));
        demand(!aside || log.end.is_some(), || format!("{} has no end", path.display()))?;
    }
    Ok(())
}

fn at_most_one_record_per_session(watch: &Watch, _: &Truth) -> Result<(), String> {
    let mut ids = BTreeSet::new();
    for (path, record) in &watch.records {
        let id = record.field("session_id");
        demand(!id.is_empty() && ids.insert(id), || format!("{} is another record of {id:?}", path.display()))?;
    }
    Ok(())
}

fn nothing_is_recorded_that_nobody_did(watch: &Watch, truth: &Truth) -> Result<(), String> {
    for (id, key) in &watch.seen {
        let asked = truth.conversations.get(key).is_some_and(|conversation| !conversation.attaches.is_empty());
        demand(asked, || format!("{id} is of {key:?}, for which nobody asked"))?;
    }
    Ok(())
}

fn a_record_never_ends_before_it_started(watch: &Watch, _: &Truth) -> Result<(), String> {
    for record in watch.records.values() {
        let [started, active, closed] = ["started_at", "last_activity_at", "closed_at"].map(|name| record.field(name));
        demand(started <= active && active <= closed, || format!("{started}, {active}, {closed}"))?;
    }
    Ok(())
}

fn a_record_says_what_the_log_said(watch: &Watch, _: &Truth) -> Result<(), String> {
    for record in watch.records.values() {
        let id = record.field("session_id");
        let ended = watch.ended.get(id).ok_or_else(|| format!("{id} has a record, and its log had no end"))?;
        let said = ["provider", "external_id", "outcome", "end_reason", "end_witness", "attachments"];
        let attachments = ended.attachments.to_string();
        let expected: [&str; 6] =
            [&ended.key.provider, &ended.key.id, ended.outcome, &ended.reason, ended.witness, &attachments];
        for (name, expected) in said.into_iter().zip(expected) {
            let found = record.field(name);
            demand(found == expected, || format!("{id}: {name} is {found}, and was {expected}"))?;
        }
        for (name, expected) in ["started_at", "last_activity_at", "closed_at"].into_iter().zip(&ended.times) {
            let found = record.field(name);
            demand(found == expected, || format!("{id}: {name} is {found}, and was {expected}"))?;
        }
    }
    Ok(())
}

fn closed_is_only_claimed_for_a_deliberate_reason(watch: &Watch, truth: &Truth) -> Result<(), String> {
    for (id, ended) in watch.ended.iter().filter(|(_, ended)| ended.outcome == "closed") {
        let deliberate = match &*ended.key.provider {
            BY_CONNECTION => ended.reason == "detach",
            _ if ended.witness == "operator" => ended.reason == "detach",
            _ => ["prompt_input_exit", "clear"].contains(&&*ended.reason),
        };
        demand(deliberate, || format!("{id} is closed for {:?}", ended.reason))?;
        let conversation = truth.conversations.get(&ended.key);
        let (from, to) = (ended.started_at, At::of(&ended.stamp));
        let asked = conversation.is_some_and(|one| {
            let mut all = one.ends_on_purpose.values().flatten();
            one.is_ending || all.any(|at| (from <= *at || from.is_about(*at)) && (*at <= to || to.is_about(*at)))
        });
        demand(asked, || format!("{id} is closed, and nobody asked for that"))?;
    }
    for (key, conversation) in &truth.conversations {
        let closed = watch.ended.values().filter(|ended| ended.key == *key && ended.outcome == "closed").count();
        let asked = conversation.ends_on_purpose.len();
        demand(closed <= asked, || format!("{closed} sessions of {key:?} are closed, and {asked} were asked for"))?;
    }
    Ok(())
}

fn every_end_has_a_cause(watch: &Watch, truth: &Truth) -> Result<(), String> {
    for (id, ended) in &watch.ended {
        let at = At::of(&ended.stamp);
        let conversation = truth.conversations.get(&ended.key).filter(|conversation| !conversation.is_contested);
        let known = match &*ended.reason {
            "detach" => ended.outcome == "closed",
            "expired" => ended.outcome == "interrupted" && ended.judged_ms.is_some() && ended.witness == "reaper",
            "shutdown" => ended.outcome == "interrupted" && truth.stops.iter().any(|stop| *stop <= at),
            reason => conversation
                .is_some_and(|one| one.hook_ends.iter().any(|(when, said)| *said == reason && when.is_about(at))),
        };
        demand(known, || format!("{id} ended as {}, {}, seen by {}", ended.outcome, ended.reason, ended.witness))?;
    }
    Ok(())
}

fn expired(watch: &Watch) -> impl Iterator<Item = (&String, &Ended)> {
    watch.fresh.iter().filter_map(|id| Some((id, watch.ended.get(id)?))).filter(|(_, ended)| ended.judged_ms.is_some())
}

fn an_episode_that_is_held_is_never_expired(watch: &Watch, truth: &Truth) -> Result<(), String> {
    for (id, ended) in expired(watch) {
        let conversation = truth.conversations.get(&ended.key).filter(|conversation| !conversation.is_contested);
        let Some(conversation) = conversation else { continue };
        let at = At::of(&ended.stamp);
        let open = conversation.held.map(|held| (held.since, At { boot: u64::MAX, up_ms: 0 }));
        let held = conversation.spans.iter().copied().chain(open).find(|(from, to)| *from < at && at < *to);
        demand(held.is_none(), || format!("{id} expired at {at:?} and was held {held:?}"))?;
    }
    Ok(())
}

/// How old something is: within a boot by the time awake, else by the wall clock or as it really was, whichever is more.
fn age(truth: &Truth, now: &Stamp, then: &Stamp) -> Duration {
    let ms = if now.boot == then.boot {
        i64::try_from(now.up_ms.saturating_sub(then.up_ms)).unwrap_or(i64::MAX)
    } else {
        (now.wall_ms - then.wall_ms).max(truth.between(then, now))
    };
    Duration::from_millis(u64::try_from(ms).unwrap_or(0))
}

fn nothing_expires_before_its_time(watch: &Watch, truth: &Truth) -> Result<(), String> {
    for (id, ended) in expired(watch) {
        let least = if ended.key.provider == BY_CONNECTION { 900 } else { 86_400 };
        let judged = Duration::from_millis(ended.judged_ms.unwrap_or_default());
        demand(judged >= Duration::from_secs(least), || format!("{id} expired after {judged:?} only"))?;
        let conversation = truth.conversations.get(&ended.key).filter(|conversation| !conversation.is_contested);
        let known = conversation.filter(|one| one.known_of.as_ref() == Some(id)).and_then(|one| one.known.as_ref());
        // What is known of a later moment is of the session that followed.
        let Some(known) = known.filter(|known| At::of(known) <= At::of(&ended.stamp)) else { continue };
        let silent = age(truth, &ended.stamp, known);
        let enough = silent + Duration::from_millis(10) >= judged;
        demand(enough, || {
            let (known, ended) = (known, &ended.stamp);
            format!(
                "{id} expired {silent:?} after it was known to be held or at work, by {judged:?}: {known:?}, {ended:?}"
            )
        })?;
    }
    Ok(())
}

fn an_interrupted_episode_ends_at_its_last_evidence(watch: &Watch, truth: &Truth) -> Result<(), String> {
    for (id, ended) in watch.ended.iter().filter(|(_, ended)| ended.outcome == "interrupted") {
        let at = ended.last_evidence;
        let mut evidence = truth.conversations.get(&ended.key).into_iter().flat_map(|one| &one.evidence);
        demand(evidence.any(|when| when.is_about(at)), || format!("{id} ends at {at:?}, when nobody did anything"))?;
        if let Some(told) = truth.told.get(id).and_then(|told| told.evidence) {
            demand(told <= at || told.is_about(at), || format!("{id} ends at {at:?}, before {told:?}"))?;
        }
    }
    Ok(())
}

fn may_be_unused(watch: &Watch, truth: &Truth, id: &str) -> bool {
    watch.ended.get(id).is_some_and(|ended| ended.may_be_unused(&truth.resumes))
}

fn what_was_acknowledged_survives(watch: &Watch, truth: &Truth) -> Result<(), String> {
    for id in truth.told.keys() {
        let there = watch.log_of(id).is_some() || watch.record_of(id).is_some() || may_be_unused(watch, truth, id);
        demand(there, || format!("{id} is nowhere"))?;
    }
    Ok(())
}

fn an_end_that_was_acknowledged_is_that_end(watch: &Watch, truth: &Truth) -> Result<(), String> {
    for (id, told) in truth.told.iter().filter_map(|(id, told)| Some((id, told.ended.as_ref()?))) {
        let found = watch.ended.get(id).map(|ended| ended.outcome);
        demand(found == Some(&**told), || format!("{id} was said to be {told}, and is {found:?}"))?;
    }
    Ok(())
}

fn attachments_count_what_clients_did(watch: &Watch, truth: &Truth) -> Result<(), String> {
    let open = |key: &Key| {
        let logs = watch.logs.values().filter(|log| log.end.is_none() && super::key_of(log).as_ref() == Some(key));
        logs.map(|log| log.attachments).sum::<u32>()
    };
    for (key, conversation) in truth.conversations.iter().filter(|(key, _)| key.provider == BY_CONNECTION) {
        let ended = watch.ended.values().filter(|ended| ended.key == *key).map(|ended| ended.attachments);
        let (counted, did) = (ended.sum::<u32>() + open(key), conversation.attaches.len());
        demand(counted as usize <= did, || {
            format!("{counted} are counted of {key:?}, where clients attached {did} times")
        })?;
    }
    for (id, told) in &truth.told {
        let ended = watch.ended.get(id).map(|ended| ended.attachments);
        let Some(counted) = ended.or_else(|| watch.log_of(id).map(|(_, log)| log.attachments)) else { continue };
        demand(counted >= told.attachments, || format!("{id} has {counted}, and {} were told", told.attachments))?;
    }
    Ok(())
}

fn a_client_that_comes_back_under_its_id_gets_its_own_episode(watch: &Watch, _: &Truth) -> Result<(), String> {
    for id in &watch.followed {
        demand(watch.ended.contains_key(id), || format!("{id} goes on, and its client was given another one"))?;
    }
    Ok(())
}

fn nothing_is_stolen_back(watch: &Watch, truth: &Truth) -> Result<(), String> {
    for log in watch.logs.values().filter(|log| log.end.is_none()) {
        let joined = log.carrier.as_ref().and_then(|carrier| truth.carriers.get(carrier));
        let (Some(joined), Some(key)) = (joined, super::key_of(log)) else { continue };
        let Some(conversation) = truth.conversations.get(&key) else { continue };
        let owners = &conversation.owners;
        demand(owners.contains(joined), || format!("{joined:?} has {key:?}, which is of {owners:?}"))?;
    }
    Ok(())
}

fn every_session_has_exactly_one_record_in_the_end(watch: &Watch, truth: &Truth) -> Result<(), String> {
    for id in watch.seen.keys() {
        let has = watch.record_of(id).is_some() || may_be_unused(watch, truth, id);
        demand(has, || format!("{id} has none"))?;
    }
    Ok(())
}

fn nothing_is_left_over_in_the_end(watch: &Watch, _: &Truth) -> Result<(), String> {
    let left: Vec<_> = watch.logs.keys().collect();
    demand(left.is_empty(), || format!("{left:?}"))
}
