use super::{KeysPresent, bounded, escaped};

#[test]
fn twenty_names_are_shown_and_the_rest_is_counted() {
    let mut keys = KeysPresent::default();
    for at in 0..25 {
        keys.push(format!("k{at}").as_bytes());
    }
    assert_eq!((keys.names().len(), keys.more()), (20, 5));
    assert!(keys.to_string().ends_with("k18, k19 and 5 more"), "{keys}");
    assert_eq!(KeysPresent::default().to_string(), "no fields");
}

#[test]
fn a_name_cannot_break_the_line_or_steer_a_terminal() {
    let mut keys = KeysPresent::default();
    keys.push("a\nsession s-1 opened\u{1b}[2J\u{202e}\u{2028}".as_bytes());
    keys.push(b"\xff\xfe");
    keys.push("é".repeat(4000).as_bytes());
    let shown = keys.to_string();
    assert!(shown.chars().all(|c| !c.is_control() && c != '\u{202e}' && c != '\u{2028}'), "{shown}");
    assert!(keys.names().iter().all(|name| name.chars().count() <= 64), "{shown}");
}

#[test]
fn a_text_that_fits_is_left_alone_and_a_longer_one_shows_that_it_was_cut() {
    assert_eq!(bounded("abc", 3), "abc");
    assert_eq!(bounded("abcd", 3), "ab…");
    assert_eq!(escaped("a\tb", 4), "a\\tb");
    assert_eq!(escaped("a\tbc", 4), "a\\t…");
}
