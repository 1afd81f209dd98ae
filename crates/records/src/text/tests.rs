use super::*;

#[test]
fn a_quoted_string_is_read_back_by_json_and_yaml() {
    for text in [
        "plain",
        "a: b # c",
        "\"\\",
        "line\nline\r\u{2028}\u{85}",
        "\u{202e}evil\u{0}",
        "---",
        "\u{e0041}tag",
        "naïve ✓",
    ] {
        let quoted = quoted(text);
        assert_eq!(serde_json::from_str::<String>(&quoted).unwrap(), text);
        assert_eq!(serde_saphyr::from_str::<String>(&quoted).unwrap(), text, "{quoted}");
        assert!(!quoted.contains('\n') && !quoted.contains('\u{202e}'));
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
