use super::*;
use crate::line::EndOutcome;

mod hooks;

fn line(id: &str, kind: Kind, up_ms: u64) -> Line {
    let stamp =
        Stamp { wall_ms: 1_800_000_000_000 + i64::try_from(up_ms).unwrap(), boot: "b".into(), up_ms, asleep_ms: 0 };
    let opened = (kind == Kind::Start).then(|| Opened {
        session_id: format!("s-of-{id}"),
        key: "k".into(),
        provider: "generic".into(),
        external_id: "thread-7".into(),
        resumes: None,
        by_mark: None,
        beside_resume: false,
    });
    let ended = (kind == Kind::End).then(|| Ended::new(EndOutcome::Closed, "detach".into(), None));
    Line {
        v: 1,
        id: id.into(),
        kind,
        stamp,
        at: Head { head: Some(id.into()), branch: Some("main".into()), reflog: None, unreadable: false },
        witness: Witness::Connection,
        connection: Some("c-1".into()),
        grace_ms: None,
        client: None,
        source: None,
        took_over: false,
        handle: None,
        again: false,
        carrier: None,
        after: None,
        process: None,
        left: false,
        opened,
        ended,
        facts: (kind == Kind::Facts).then(Facts::default),
        redactions: 0,
    }
}

fn silence(id: &str, up_ms: u64, judged_ms: u64) -> Line {
    let ended = Ended::new(EndOutcome::Interrupted, "expired".into(), Some(judged_ms));
    Line { ended: Some(ended), witness: Witness::Reaper, ..line(id, Kind::End, up_ms) }
}

fn read(lines: &[Line]) -> Log {
    Log::parse(&lines.iter().flat_map(Line::to_bytes).collect::<Vec<_>>())
}

#[test]
fn the_first_start_counts_and_the_second_is_a_client_that_joined() {
    let other = Line { connection: Some("c-2".into()), ..line("b", Kind::Start, 1) };
    let log = read(&[line("a", Kind::Start, 0), other]);
    assert_eq!((log.session_id(), log.attachments), (Some("s-of-a"), 2));
}

#[test]
fn a_line_counts_once_however_often_it_was_written() {
    let attach = Line { connection: Some("c-2".into()), ..line("b", Kind::Attach, 1) };
    let log = read(&[line("a", Kind::Start, 0), attach.clone(), attach]);
    assert_eq!(log.attachments, 2);
}

#[test]
fn an_end_for_silence_is_void_where_younger_evidence_stands_before_it() {
    let lines = [line("a", Kind::Start, 0), line("b", Kind::Seen, 500), silence("c", 1_400, 900)];
    assert!(read(&lines).end.is_some());
    let lines = [line("a", Kind::Start, 0), line("b", Kind::Seen, 501), silence("c", 1_400, 900)];
    let log = read(&lines);
    assert!(log.end.is_none());
    assert!(!log.counts("c"));
}

#[test]
fn an_end_for_silence_stands_where_head_was_at_the_last_evidence() {
    let log = read(&[line("a", Kind::Start, 0), line("b", Kind::Seen, 5), silence("c", 2_000, 900)]);
    assert_eq!(log.end.unwrap().at.head.as_deref(), Some("b"));
}

#[test]
fn nothing_counts_after_the_first_counting_end_but_the_first_facts() {
    let mut second = line("f", Kind::Facts, 4);
    second.facts.as_mut().unwrap().record = "second".into();
    let lines = [
        line("early", Kind::Facts, 0),
        line("a", Kind::Start, 0),
        line("b", Kind::End, 1),
        line("c", Kind::Seen, 2),
        line("d", Kind::End, 2),
        line("e", Kind::Facts, 3),
        second,
    ];
    let log = read(&lines);
    assert_eq!(log.end.unwrap().line_id, "b");
    assert_eq!(log.last_evidence.unwrap().0.up_ms, 0);
    assert_eq!(log.facts.unwrap().record, "");
}

#[test]
fn after_a_take_over_the_losers_messages_are_no_evidence() {
    let winner = Line { connection: Some("c-2".into()), took_over: true, ..line("b", Kind::Attach, 10) };
    let log = read(&[line("a", Kind::Start, 0), winner, line("c", Kind::Seen, 20)]);
    assert_eq!((log.last_evidence.unwrap().0.up_ms, log.take_overs, log.attachments), (10, 1, 2));
}

#[test]
fn lines_that_do_not_parse_are_counted_and_skipped_wherever_they_stand() {
    let mut bytes = b"\x00\xffgarbage\n".to_vec();
    bytes.extend(line("a", Kind::Start, 0).to_bytes());
    bytes.extend(br#"{"v":1,"id":"torn","#);
    bytes.extend(line("b", Kind::Seen, 7).to_bytes());
    bytes.extend(b"\n{\"v\":9,\"kind\":\"of another version\"}\n[1]\n");
    let log = Log::parse(&bytes);
    assert_eq!((log.skipped, log.last_evidence.unwrap().0.up_ms), (4, 7));
}

#[test]
fn times_never_run_backwards_in_file_order() {
    let mut back = line("b", Kind::Seen, 60_000);
    back.stamp.wall_ms -= 7_200_000;
    let log = read(&[line("a", Kind::Start, 0), back, line("c", Kind::End, 61_000)]);
    assert!(log.clock_adjusted);
    assert!(log.last_evidence.unwrap().0.wall_ms >= log.start.unwrap().stamp.wall_ms);
}

#[test]
fn reading_in_pieces_is_reading_at_once() {
    let lines =
        [line("a", Kind::Start, 0), line("b", Kind::Attach, 1), line("c", Kind::Compact, 2), line("d", Kind::End, 3)];
    let mut log = Log::default();
    lines.iter().for_each(|line| log.extend(&line.to_bytes()));
    assert_eq!(format!("{log:?}").len(), format!("{:?}", read(&lines)).len());
    assert_eq!(log.compactions, 1);
}

#[test]
fn the_handles_that_are_good_are_those_since_somebody_else_joined() {
    let minted = |id: &str, connection: &str| Line {
        connection: Some(connection.into()),
        handle: Some(format!("h-{id}")),
        ..line(id, Kind::Attach, 1)
    };
    let mut lines = vec![Line { handle: Some("h-a".into()), ..line("a", Kind::Start, 0) }, minted("b", "c-1")];
    let log = read(&lines);
    assert_eq!((log.handles, log.attachments), (vec!["h-a".into(), "h-b".into()], 2));

    lines.push(Line { connection: Some("d-1".into()), again: true, took_over: true, ..line("c", Kind::Attach, 2) });
    lines.push(line("d", Kind::Seen, 9));
    let log = read(&lines);
    assert_eq!((log.handles.len(), log.attachments, log.take_overs), (2, 2, 0));
    assert_eq!(log.connection.as_deref(), Some("d-1"));
    assert_eq!(log.last_evidence.unwrap().0.up_ms, 2, "the connection before is not heard any more");

    lines.push(Line { connection: Some("e-1".into()), took_over: true, ..line("e", Kind::Attach, 3) });
    let log = read(&lines);
    assert_eq!((log.handles.len(), log.attachments, log.take_overs), (0, 3, 1));
    lines.push(minted("f", "e-1"));
    assert_eq!(read(&lines).handles, ["h-f"]);
}

#[test]
fn a_line_without_a_handle_is_written_as_before() {
    let text = String::from_utf8(line("a", Kind::Attach, 0).to_bytes()).unwrap();
    assert!(!text.contains("handle") && !text.contains("again"), "{text}");
}

#[test]
fn who_only_takes_its_seat_back_shows_nothing_whatever_its_line_says() {
    let carried = |line: Line| Line { carrier: Some("c".into()), ..line };
    let silent = |id: &str, after: &str| Line {
        connection: Some("d-1".into()),
        again: true,
        after: Some(after.into()),
        ..carried(line(id, Kind::Attach, 900))
    };
    let mut lines = vec![carried(line("a", Kind::Start, 10)), silent("b", "a")];
    let log = read(&lines);
    assert_eq!((log.connection.as_deref(), log.attachments, log.evidence_after_start), (Some("d-1"), 1, 0));
    let (stamp, at) = log.last_evidence.unwrap();
    assert_eq!((stamp.up_ms, at.head.as_deref()), (10, Some("a")));

    // One that was decided on before that does not count, nor does an end, nor one of another carrier.
    lines.push(Line {
        connection: Some("c-1".into()),
        after: Some("a".into()),
        ..carried(line("c", Kind::Attach, 901))
    });
    lines.push(Line { connection: Some("c-1".into()), after: Some("a".into()), ..line("d", Kind::End, 902) });
    lines.push(Line { carrier: Some("e".into()), ..silent("e", "b") });
    let log = read(&lines);
    assert_eq!((log.connection.as_deref(), log.attachments, log.end.is_none()), (Some("d-1"), 1, true));
    assert!(log.counts("b") && !["c", "d", "e"].iter().any(|id| log.counts(id)));
    lines.push(Line { connection: Some("d-1".into()), after: Some("b".into()), ..line("f", Kind::End, 903) });
    assert!(read(&lines).end.is_some());
}
