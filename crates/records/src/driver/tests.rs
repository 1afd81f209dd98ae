use super::*;

#[test]
fn what_the_command_reports_is_understood() {
    let opened = understood("session s-1 opened at 2027-01-15T08:00:00.000Z (head none)".into());
    assert_eq!(opened.outcome, Outcome::Recorded);
    assert_eq!(
        opened.known,
        Some(Known { opened_at: "2027-01-15T08:00:00.000Z".into(), attachments: None, resumed: false })
    );
    let kept = understood("session s-1 kept, open since 2027-01-15T08:00:00.000Z".into());
    assert_eq!(
        kept.known,
        Some(Known { opened_at: "2027-01-15T08:00:00.000Z".into(), attachments: None, resumed: true })
    );
    let outcome = |line: &str| understood(line.into()).outcome;
    assert_eq!(outcome("episode closed (closed, reason detach) into x.md"), Outcome::Recorded);
    assert_eq!(outcome("no open episode for generic x; nothing to close"), Outcome::Nothing);
    assert_eq!(outcome("no episode was recorded: /tmp is not in a git repository"), Outcome::Nothing);
    assert_eq!(outcome("no episode was recorded: cannot write x"), Outcome::Failed);
    assert_eq!(outcome("anything else"), Outcome::Failed);
}
