//! What hooks tell: starts that come twice, processes that come and go, ends that come late.

use super::*;

fn process(pid: u32) -> ClientProcess {
    ClientProcess { pid, started: 7, boot: "b".into(), terminal: None }
}

/// A line of a hook that the client's process `pid` ran.
fn hook(id: &str, kind: Kind, up_ms: u64, pid: u32) -> Line {
    let source = matches!(kind, Kind::Start | Kind::Attach).then(|| "startup".into());
    Line { witness: Witness::Hook, connection: None, process: Some(process(pid)), source, ..line(id, kind, up_ms) }
}

fn left(id: &str, up_ms: u64, pid: u32) -> Line {
    Line { left: true, ..hook(id, Kind::Activity, up_ms, pid) }
}

#[test]
fn a_start_that_is_told_twice_is_one_attachment() {
    let again = hook("b", Kind::Start, 5_000, 1);
    let count = |second: Line| read(&[hook("a", Kind::Start, 0, 1), second]).attachments;
    assert_eq!(count(again.clone()), 1);
    assert_eq!(count(Line { process: None, ..again.clone() }), 1, "by whom could not be told");
    assert_eq!(count(hook("b", Kind::Start, 5_001, 1)), 2, "too long after the first");
    assert_eq!(count(Line { process: Some(process(2)), ..again.clone() }), 2, "another process came");
    assert_eq!(count(Line { source: Some("resume".into()), ..again }), 2, "it came back");
}

#[test]
fn a_client_that_had_left_and_comes_back_is_attached_once_more() {
    let start = hook("a", Kind::Start, 0, 1);
    let lines = [start, hook("b", Kind::Activity, 1, 1), left("c", 2, 1)];
    let log = read(&lines);
    assert!(log.left && log.processes.is_empty() && log.end.is_none());
    let back = read(&[&lines[..], &[hook("d", Kind::Attach, 3, 1)]].concat());
    assert_eq!((back.left, back.attachments, back.processes.len(), back.processes_gone.len()), (false, 2, 1, 0));
}

#[test]
fn one_of_two_processes_that_goes_leaves_the_other_in_it() {
    let nested = Line { source: Some("resume".into()), ..hook("b", Kind::Attach, 1, 2) };
    let log = read(&[hook("a", Kind::Start, 0, 1), nested, left("c", 2, 2), left("d", 3, 2)]);
    assert!(!log.left && log.processes.iter().all(|known| known.is(&process(1))));
    assert_eq!((log.attachments, log.processes_gone.len()), (2, 1));
}

#[test]
fn a_mark_that_opened_counts_and_its_start_is_no_second_attachment() {
    let opened = |by_mark| {
        let mut start = hook("a", Kind::Start, 0, 1);
        (start.source, start.opened.as_mut().unwrap().by_mark) = (Some("manual".into()), Some(by_mark));
        read(&[start, hook("b", Kind::Start, 4_000, 1)])
    };
    let of = |log: Log| (log.attachments, log.compactions);
    assert_eq!((of(opened(Kind::Compact)), of(opened(Kind::Activity))), ((1, 1), (1, 0)));
}

#[test]
fn a_compaction_that_is_told_twice_is_one() {
    let compact = |id, up_ms| hook(id, Kind::Compact, up_ms, 1);
    let log = read(&[hook("a", Kind::Start, 0, 1), compact("b", 10), compact("c", 5_010), compact("d", 10_011)]);
    assert_eq!(log.compactions, 2);
}

#[test]
fn a_connection_to_what_hooks_drew_is_a_witness_and_no_attachment() {
    let attach = Line { took_over: true, ..line("b", Kind::Attach, 1) };
    let log = read(&[hook("a", Kind::Start, 0, 1), attach, hook("c", Kind::Activity, 2, 1)]);
    assert_eq!((log.attachments, log.take_overs), (1, 0));
    assert_eq!(log.witnesses, [Witness::Hook, Witness::Connection]);
    assert_eq!(log.connection.as_deref(), Some("c-1"), "its messages are evidence");
}

#[test]
fn a_late_end_has_the_head_of_the_last_evidence_before_it() {
    let mut end = hook("c", Kind::End, 60_000, 1);
    end.ended = Some(Ended { late: true, ..Ended::new(EndOutcome::Interrupted, "other".into(), None) });
    let log = read(&[hook("a", Kind::Start, 0, 1), hook("b", Kind::Activity, 10, 1), end]);
    assert_eq!(log.end.map(|end| end.at.head), Some(Some("b".into())));
}
