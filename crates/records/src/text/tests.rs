use super::*;

#[test]
fn a_quoted_string_is_read_back_by_yaml_and_in_the_basic_plane_by_json() {
    for text in [
        "plain",
        "a: b # c",
        "\"\\",
        "line\nline\r\u{2028}\u{85}",
        "\u{202e}evil\u{0}\u{7f}",
        "---",
        "\u{e0041}tag",
        "no \u{fffe}\u{ffff}\u{fdd0}\u{1fffe}\u{10ffff} characters",
        "soft\u{ad}\u{e0100}",
        "naïve ✓ 🦀",
    ] {
        let quoted = quoted(text);
        assert_eq!(serde_saphyr::from_str::<String>(&quoted).unwrap(), text, "{quoted}");
        if !quoted.contains("\\U") {
            assert_eq!(serde_json::from_str::<String>(&quoted).unwrap(), text);
        }
        assert!(!quoted.chars().any(is_hidden), "{quoted}");
    }
    assert_eq!(quoted("\u{e0041}\u{ffff}🦀"), "\"\\U000e0041\\uffff🦀\"");
}

/// A second reader, written from the specification, for what serde-saphyr is more lenient about: YAML 1.2, 5.1 allows
/// these characters and no others, and 5.7 these escapes.
#[test]
fn a_quoted_string_holds_only_what_yaml_calls_printable() {
    let printable =
        |char: char| matches!(char, ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
    for char in ('\0'..=char::MAX).filter(|char| !char.is_alphanumeric()) {
        let quoted = quoted(char.encode_utf8(&mut [0; 4]));
        assert!(quoted.chars().all(printable), "{quoted}");
        let escape = quoted[1..quoted.len() - 1].strip_prefix('\\');
        let hex = |escape: &str| match escape.as_bytes()[0] {
            b'u' => escape.len() == 5,
            b'U' => escape.len() == 9,
            _ => matches!(escape, "\"" | "\\" | "n" | "r" | "t"),
        };
        assert!(escape.is_none_or(hex), "{quoted}");
    }
}

#[test]
fn a_code_span_cannot_be_closed_from_inside() {
    assert_eq!(code("plain"), "`plain`");
    assert_eq!(code("a `b` c"), "``a `b` c``");
    assert_eq!(code("``"), "``` `` ```");
    assert_eq!(code("`"), "`` ` ``");
    assert_eq!(code(""), "`  `");
    assert_eq!(code("two\nlines\u{202e}"), "`two\\u{a}lines\\u{202e}`");
}
