use super::*;

#[test]
fn a_word_is_quoted_only_where_the_shell_would_do_something_with_it() {
    for (word, line) in [
        ("/usr/local/bin/majordomus", "/usr/local/bin/majordomus"),
        ("/opt/a-b_c+1.2/majordomus", "/opt/a-b_c+1.2/majordomus"),
        ("/opt/My Dir/majordomus", "'/opt/My Dir/majordomus'"),
        ("/opt/ü/majordomus", "'/opt/ü/majordomus'"),
        ("/opt/it's/majordomus", r"'/opt/it'\''s/majordomus'"),
        ("/opt/a=b/majordomus", "'/opt/a=b/majordomus'"),
        ("/opt/$(id)`id`\"\\!*~/majordomus", "'/opt/$(id)`id`\"\\!*~/majordomus'"),
        ("", "''"),
    ] {
        assert_eq!(quoted(word), line);
        if !word.is_empty() {
            let line = hook_line(word, "x", EventKind::Start);
            assert_eq!(hook_program(&line, "x").as_deref(), Some(word), "{line}");
            let shell = std::process::Command::new("sh").args(["-c", &format!("printf %s {}", quoted(word))]).output();
            assert_eq!(String::from_utf8(shell.unwrap().stdout).unwrap(), word);
        }
    }
}

#[test]
fn only_a_line_that_runs_nothing_else_is_ours() {
    for line in [
        "majordomus capture session --provider x --event start",
        "/a/majordomus  capture session --event end --provider x",
        "\"/a b/majordomus\" capture session --provider=x --event=start",
        "~/bin/majordomus capture session --provider x --event start --idle-seconds 60",
        "$HOME/bin/majordomus capture session --provider x --event start",
        r"/a\ b/majordomus capture session --provider x --event start",
    ] {
        assert!(hook_program(line, "x").is_some(), "{line}");
        assert!(hook_program(line, "y").is_none(), "{line}");
    }
    for line in [
        "majordomus capture session --provider x --event start || true",
        "majordomus capture session --provider x --event start; rm -r /",
        "majordomus capture session --provider x --event start;true",
        "majordomus capture session --provider x --event start&",
        "majordomus capture session --provider x --event start 2>/dev/null",
        "env A=1 majordomus capture session --provider x --event start",
        "not-majordomus capture session --provider x --event start",
        "majordomus capture status --provider x",
        "majordomus capture session --provider x --event",
        "majordomus capture session --event start",
        "echo 'majordomus capture session --provider x --event start'",
        "majordomus capture session --provider x --event start $(id)",
        "'majordomus capture session --provider x --event start",
        "",
    ] {
        assert!(hook_program(line, "x").is_none(), "{line}");
    }
}

#[test]
fn what_a_shell_fills_in_is_told() {
    for (line, expected) in [
        ("/usr/bin/majordomus capture session", Filled::Nothing),
        ("'/opt/$HOME/`x` $(y)/majordomus' capture", Filled::Nothing),
        (r"/opt/\$x/\~/majordomus \`y", Filled::Nothing),
        ("/opt/a~b/majordomus", Filled::Nothing),
        ("\"~/majordomus\"", Filled::Nothing),
        ("~/bin/majordomus capture", Filled::Home),
        ("$HOME/bin/majordomus capture", Filled::Home),
        ("\"${HOME}/My Dir/majordomus\" capture", Filled::Home),
        ("\"$HOME\"/bin/majordomus capture", Filled::Home),
        ("$HOMES/majordomus", Filled::Other),
        ("~root/majordomus", Filled::Other),
        ("\"$(touch x)/majordomus\" capture", Filled::Other),
        ("\"`touch x`/majordomus\" capture", Filled::Other),
        ("$HOME/bin/majordomus --idle-seconds \"$(touch x)\"", Filled::Other),
        ("\"$CLAUDE_PROJECT_DIR\"/majordomus", Filled::Other),
        ("'a'\"'$x\"", Filled::Other),
    ] {
        assert_eq!(filled(line), expected, "{line}");
    }
}
