use super::*;
use crate::clock::Stamp;
use crate::line::{Ended, Head, Opened};

const SHA: &str = "0123456789abcdef0123456789abcdef01234567";

fn stamp(seconds: i64) -> Stamp {
    Stamp { wall_ms: 1_800_000_000_000 + seconds * 1000, boot: "b".into(), up_ms: 0, asleep_ms: 0 }
}

fn log(outcome: EndOutcome, witness: Witness, reason: &str) -> Log {
    let at = Head { head: Some(SHA.into()), branch: Some("main".into()), reflog: None, unreadable: false };
    let opened = Opened {
        session_id: "s-20270115080000-ab000102".into(),
        key: "k".into(),
        provider: "generic".into(),
        external_id: "thread `7`\u{202e}".into(),
        resumes: None,
        by_mark: None,
        beside_resume: false,
    };
    let judged_ms = (witness == Witness::Reaper).then_some(900_000);
    let mut log = Log::default();
    log.start = Some(Start { opened, stamp: stamp(0), at: at.clone(), witness: Witness::Connection, source: None });
    log.last_evidence = Some((stamp(3_700), at.clone()));
    log.client = Some("client 1".into());
    log.attachments = 2;
    log.witnesses = vec![Witness::Connection];
    let ended = Ended::new(outcome, reason.into(), judged_ms);
    log.end = Some(End { ended, stamp: stamp(5_000), at, witness, connection: None, line_id: "e".into() });
    let subject = "Close the fence ``` and \"quote\"".into();
    let commits = Some(vec![Commit { sha: SHA.into(), tree: None, patch_id: None, subject }]);
    log.facts = Some(Facts { commits, changed_files: None, ..Facts::default() });
    log
}

#[test]
fn an_interrupted_session_ends_at_its_last_evidence() {
    let log = log(EndOutcome::Interrupted, Witness::Reaper, "expired");
    let times = times(&log).unwrap();
    assert_eq!(times.closed_ms, stamp(3_700).wall_ms);
    assert_eq!(times.last_activity_ms, times.closed_ms);
}

#[test]
fn an_end_that_a_hook_or_the_client_reports_is_itself_evidence() {
    for witness in [Witness::Hook, Witness::Connection] {
        let times = times(&log(EndOutcome::Interrupted, witness, "other")).unwrap();
        assert_eq!((times.closed_ms, times.last_activity_ms), (stamp(5_000).wall_ms, stamp(5_000).wall_ms));
    }
}

#[test]
fn an_end_that_may_come_late_says_nothing_of_when() {
    for outcome in [EndOutcome::Interrupted, EndOutcome::Closed] {
        let mut log = log(outcome, Witness::Hook, "other");
        log.end.as_mut().unwrap().ended.late = true;
        let times = times(&log).unwrap();
        assert_eq!((times.closed_ms, times.last_activity_ms), (stamp(3_700).wall_ms, stamp(3_700).wall_ms));
        let record = render(&log, &Setting { worktree: "main" }).unwrap();
        assert!(record.contains("the times end with the last sign of the client before it."), "{record}");
    }
}

#[test]
fn what_a_hook_saw_of_its_client_is_shown_and_decides_nothing() {
    let mut log = log(EndOutcome::Interrupted, Witness::Hook, "other");
    let ended = &mut log.end.as_mut().unwrap().ended;
    (ended.process, ended.terminal) = (Some(false), Some(true));
    let record = render(&log, &Setting { worktree: "main" }).unwrap();
    for part in [
        "\noutcome: \"interrupted\"\n",
        "\nend_process: \"gone\"\nend_terminal: \"there\"\n",
        " At that moment the client's process had gone and its terminal was there.\n",
    ] {
        assert!(record.contains(part), "{part}\n{record}");
    }
}

#[test]
fn a_server_that_stops_says_nothing_of_its_clients() {
    let times = times(&log(EndOutcome::Interrupted, Witness::Shutdown, "shutdown")).unwrap();
    assert_eq!(times.closed_ms, stamp(3_700).wall_ms);
}

#[test]
fn a_record_reads_like_this() {
    let record =
        render(&log(EndOutcome::Closed, Witness::Connection, "detach"), &Setting { worktree: "main" }).unwrap();
    let expected = "---\n\
        schema: \"majordomus/session@1\"\n\
        session_id: \"s-20270115080000-ab000102\"\n\
        provider: \"generic\"\n\
        external_id: \"thread `7`\\u202e\"\n\
        client: \"client 1\"\n\
        started_at: \"2027-01-15T08:00:00.000Z\"\n\
        closed_at: \"2027-01-15T09:23:20.000Z\"\n\
        last_activity_at: \"2027-01-15T09:23:20.000Z\"\n\
        outcome: \"closed\"\n\
        end_reason: \"detach\"\n\
        end_witness: \"connection\"\n\
        end_process: null\n\
        end_terminal: null\n\
        witnesses: [\"connection\"]\n\
        attachments: 2\n\
        take_overs: 0\n\
        compactions: 0\n\
        repository_roots: null\n\
        worktree: \"main\"\n\
        branch: \"main\"\n\
        start_head: \"0123456789abcdef0123456789abcdef01234567\"\n\
        head: \"0123456789abcdef0123456789abcdef01234567\"\n\
        head_tree: null\n\
        commits:\n  - sha: \"0123456789abcdef0123456789abcdef01234567\"\n    tree: null\n    patch_id: null\n    \
        subject: \"Close the fence ``` and \\\"quote\\\"\"\n\
        changed_files: null\n\
        resumes: null\n\
        clock_adjusted: false\n\
        redactions: 0\n\
        ---\n\
        \n\
        # Session on `main`, 15 January 2027\n\
        \n\
        **Closed on purpose:** the client detached over its own connection (reason `detach`).\n\
        \n\
        - **Client:** `client 1`, in the conversation ``thread `7`\\u{202e}`` (provider `generic`)\n\
        - **Time:** 08:00:00 to 09:23:20 UTC (1 hour and 23 minutes)\n\
        - **Connections:** attached 2 times\n\
        - **HEAD:** `0123456` at the start, `0123456` at the end\n\
        \n\
        ## Commits that appeared here\n\
        \n\
        - `0123456` ````Close the fence ``` and \"quote\"````\n\
        \n\
        ## Files that changed\n\
        \n\
        Unknown: git could not say.\n";
    assert_eq!(record, expected);
}

#[test]
fn what_could_not_be_read_is_not_called_absent() {
    let mut log = log(EndOutcome::Closed, Witness::Connection, "detach");
    let unreadable = Head { unreadable: true, ..Head::default() };
    (log.start.as_mut().unwrap().at, log.end.as_mut().unwrap().at) = (unreadable.clone(), unreadable);
    let missing = vec!["commits: HEAD could not be read".into()];
    log.facts = Some(Facts { missing, ..Facts::default() });
    let record = render(&log, &Setting { worktree: "main" }).unwrap();
    for part in [
        "\nbranch: null\nstart_head: null\nhead: null\n",
        "# Session on a branch that could not be read, ",
        "- **HEAD:** unknown at the start, unknown at the end\n",
        "## What is not known\n\n- `commits: HEAD could not be read`\n",
    ] {
        assert!(record.contains(part), "{part}\n{record}");
    }
}

#[test]
fn a_worktree_named_after_a_credential_is_not_named() {
    let log = log(EndOutcome::Closed, Witness::Connection, "detach");
    let record = render(&log, &Setting { worktree: "ghp_0123456789abcdefghijABCDEFGHIJ012345" }).unwrap();
    assert!(record.contains("\nworktree: \"[redacted]\"\n") && record.contains("\nredactions: 1\n"), "{record}");
    assert!(record.ends_with("\n1 credential was replaced before anything was written.\n"), "{record}");
}
