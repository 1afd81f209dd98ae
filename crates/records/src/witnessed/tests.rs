//! Processes as the kernel shows them.

use super::*;

const LINE: &str = "4242 (a (b) c) S 17 4242 4242 34816 4242 4194304 1 2 3 4 5 6 7 8 20 0 1 0 987654 1 2 3 4 5 6 7 8 9";

#[test]
fn a_name_with_parentheses_does_not_move_the_fields() {
    let stat = Stat::parse(LINE).unwrap();
    assert_eq!((stat.name.as_str(), stat.parent, stat.started), ("a (b) c", 17, 987_654));
    assert_eq!(stat.terminal.and_then(device).as_deref(), Some("/dev/pts/0"));
    assert!(!stat.is_dead && Stat::parse(&LINE.replace(") S", ") Z")).unwrap().is_dead);
}

#[test]
fn what_is_no_such_line_says_nothing() {
    for end in 0..LINE.len() - 30 {
        let _ = Stat::parse(&LINE[..end]);
    }
    assert!(Stat::parse("").is_none() && Stat::parse("1 (x").is_none() && Stat::parse("1 (x) S").is_none());
}

#[test]
fn a_high_pseudo_terminal_has_its_number() {
    assert_eq!(device(0x8800 | 0x2a).as_deref(), Some("/dev/pts/42"));
    // 136, 0x12c: the minor number's upper bits stand above the major one.
    assert_eq!(device(0x0010_882c).as_deref(), Some("/dev/pts/300"));
    assert_eq!(device(0x0401), None, "a console");
}

#[cfg(target_os = "linux")]
#[test]
fn this_process_runs_and_another_start_of_its_number_is_another_one() {
    let pid = std::process::id();
    let own = ClientProcess { pid, started: Stat::of(pid).unwrap().started, boot: "b".into(), terminal: None };
    assert!(own.is_running("b") && !own.is_running("c"));
    let earlier = ClientProcess { started: own.started - 1, ..own.clone() };
    assert!(!earlier.is_running("b") && !earlier.is(&own));
    assert_eq!(own.has_terminal("b"), None);
}
