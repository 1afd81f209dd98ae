use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::{code, is_break, table, text};

/// Text that tries to break out, of ordinary characters and of those that mean something to Markdown.
fn hostile() -> impl Strategy<Value = String> {
    let pieces = select(vec![
        "|", "||", "\\", "\\|", "`", "``", "```", "`name`", "<", "<b>", "<!--", "-->", "&lt;", "[a](b)", "![", "]",
        "*", "_", "a_b", "~~", "$", "\n", "\r\n", "\n\n", "\t", "\u{85}", "\u{2028}", "\0", "# ", "- ", "1. ", "> ",
        "=", "a", "é", " ",
    ]);
    prop_oneof![vec(pieces, 0..12).prop_map(|pieces| pieces.concat()), any::<String>()]
}

/// The text on one line, with one blank for what would end it.
fn in_words(text: &str) -> String {
    text.split(is_break).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// What CommonMark shows of a line whose only markup is an escape before punctuation.
fn unescaped(line: &str) -> String {
    let (mut shown, mut chars) = (String::new(), line.chars().peekable());
    while let Some(char) = chars.next() {
        match char {
            '\\' if chars.peek().is_some_and(char::is_ascii_punctuation) => shown.extend(chars.next()),
            char => shown.push(char),
        }
    }
    shown
}

/// The line without what stands behind a backslash, and without plain words between backticks.
fn bare(line: &str) -> String {
    let (mut bare, mut chars) = (String::new(), line.chars());
    while let Some(char) = chars.next() {
        match char {
            '\\' => drop(chars.next()),
            '`' => {
                let name: String = chars.by_ref().take_while(|char| *char != '`').collect();
                assert!(!name.is_empty() && !name.contains(['\\', '|', '<', '&']), "{name:?} in {line}");
            }
            char => bare.push(char),
        }
    }
    bare
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_text_reads_as_itself_on_one_line(given in hostile()) {
        let line = text(&given);
        prop_assert!(!line.chars().any(|char| char.is_control() || matches!(char, '\u{2028}' | '\u{2029}')), "{:?}", line);
        prop_assert_eq!(unescaped(&line), in_words(&given));
        let bare = bare(&line);
        prop_assert!(!bare.contains(['|', '<', '`', '*', '[', ']', '&', '~', '$']), "{}", line);
        let begins = line.trim_start_matches(|char: char| char.is_ascii_digit());
        prop_assert!(!begins.starts_with(['#', '>', '-', '+', '=', '.', ')']), "{}", line);
    }

    #[test]
    fn code_is_one_span_that_holds_all_of_it(given in hostile()) {
        let line = code(&given);
        let fence = line.len() - line.trim_start_matches('`').len();
        let end = line.len() - line.trim_end_matches('`').len();
        prop_assert_eq!(fence, end, "{}", line);
        let inner = &line[fence..line.len() - fence];
        // No run of as many backticks ends it before.
        prop_assert!(inner.split(|char| char != '`').all(|run| run.len() != fence), "{}", line);
        prop_assert!(!inner.contains(char::is_control) && !inner.replace("\\|", "").contains('|'), "{}", line);
        let stripped = inner.strip_prefix(' ').and_then(|inner| inner.strip_suffix(' ')).unwrap_or(inner);
        let shown: String = given.chars().map(|char| if is_break(char) { ' ' } else { char }).collect();
        let unescaped = stripped.replace("\\|", "|");
        prop_assert_eq!(unescaped.trim(), shown.trim());
    }

    #[test]
    fn a_table_has_as_many_rows_and_cells_as_it_was_given(cells in vec((hostile(), hostile()), 1..4)) {
        let rows = cells.iter().map(|(one, other)| [text(one), code(other)]);
        let table = table(["one", "other"], rows);
        prop_assert_eq!(table.matches('\n').count(), cells.len() + 2);
        for line in table.lines() {
            // A table is cut at every bar that has no backslash right before it.
            let bars = line.match_indices('|').filter(|(at, _)| !line[..*at].ends_with('\\')).count();
            prop_assert_eq!(bars, 3, "{}", line);
        }
    }
}

#[test]
fn a_plain_name_stays_code_and_plain_text_stays_as_it_is() {
    assert_eq!(text("`next_cursor` of the page before, as it came."), "`next_cursor` of the page before, as it came.");
    assert_eq!(text("run `majordomus sessions list`, or `- a`"), "run `majordomus sessions list`, or `- a`");
    assert_eq!(text("an external_id, open (or not): 3-4, a/b."), "an external_id, open (or not): 3-4, a/b.");
    assert_eq!(text("`a|b` ``c`` `d"), "\\`a\\|b\\` \\`\\`c\\`\\` \\`d");
    assert_eq!(text(" a\n\n b \n"), "a b");
    assert_eq!(text("1. a"), "1\\. a");
    assert_eq!([code("a|b"), code("`"), code(""), code(" a ")], ["`a\\|b`", "`` ` ``", "`  `", "`  a  `"]);
    assert_eq!(table(["a"], []), "");
}
