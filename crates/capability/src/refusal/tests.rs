use std::collections::HashSet;

use super::{Code, Refusal, printable};

#[test]
fn the_table_has_one_word_per_code_and_an_error_status() {
    let words: HashSet<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(words.len(), Code::ALL.len());
    assert!(Code::ALL.iter().all(|code| (400..600).contains(&code.status())));
    assert!(Code::ALL.iter().filter(|code| code.retry()).eq([&Code::Unavailable]));
}

#[test]
fn a_message_is_one_printable_line_of_bounded_length() {
    let refusal = Refusal::new(Code::Refused, "a\nb\u{1b}[31m\u{202e}c");
    assert_eq!(refusal.message, "a\\u{a}b\\u{1b}[31m\\u{202e}c");
    assert_eq!(printable(&"é".repeat(10), 4), "éééé…");
}

#[test]
fn a_refusal_shows_its_code_message_and_hint() {
    let refusal = Refusal::new(Code::NotFound, "no such episode").hint("list them");
    assert_eq!(refusal.to_string(), "not_found: no such episode (hint: list them)");
}
