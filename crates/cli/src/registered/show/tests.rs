use serde_json::json;

use super::text;

#[test]
fn fields_stand_in_the_schemas_order_and_absent_ones_are_left_out() {
    let schema = json!({ "properties": { "first": {}, "second": {}, "third": {}, "fourth": {} } });
    let answer = json!({ "notice": "n", "fourth": null, "third": 3, "first": true });
    assert_eq!(text(&schema, &answer), "first: true\nthird: 3\nfourth: null\nnotice: n\n");
}

#[test]
fn an_object_and_a_text_of_several_lines_stand_indented() {
    let answer =
        json!({ "episode": { "id": "x", "inner": { "a": 1 } }, "text": "one\n\ntwo\u{1b}\n", "last": "one\n" });
    let expected = "episode:\n  id: x\n  inner:\n    a: 1\ntext:\n  one\n\n  two\\u{1b}\nlast: one\n";
    assert_eq!(text(&json!({}), &answer), expected);
}

#[test]
fn a_list_of_objects_is_a_table_where_it_fits() {
    let schema =
        json!({ "properties": { "peers": { "items": { "properties": { "id": {}, "intent": {}, "scope": {} } } } } });
    let answer = json!({ "peers": [{ "scope": ["a", "b"], "id": "p1" }, { "id": "p10", "intent": "x" }], "none": [] });
    let expected = "peers:\n  id   intent  scope\n  p1   -       a, b\n  p10  x       -\nnone: none\n";
    assert_eq!(text(&schema, &answer), expected);
}

#[test]
fn a_wider_list_is_shown_entry_by_entry_and_whole() {
    let long = "word ".repeat(30).trim_end().to_owned();
    let answer = json!({ "peers": [{ "id": "p1", "intent": long }, { "id": "p2" }] });
    let expected = format!("peers:\n  - id: p1\n    intent: {long}\n  - id: p2\n");
    assert_eq!(text(&json!({}), &answer), expected);
}

#[test]
fn a_list_in_which_an_entry_has_a_list_of_its_own_is_shown_entry_by_entry() {
    let answer = json!({ "peers": [{ "id": "p1" }, { "id": "p2", "of": [{ "a": 1 }, { "a": 2 }] }] });
    let expected = "peers:\n  - id: p1\n  - id: p2\n    of:\n      a\n      1\n      2\n";
    assert_eq!(text(&json!({}), &answer), expected);
}

#[test]
fn a_long_list_of_words_has_a_line_each() {
    let paths: Vec<_> = (0..9).map(|number| format!("src/some/folder/file{number}.rs")).collect();
    let expected = format!("scope:\n{}", paths.iter().map(|path| format!("  {path}\n")).collect::<String>());
    assert_eq!(text(&json!({}), &json!({ "scope": paths })), expected);
}

#[test]
fn what_others_wrote_ends_no_line_and_hides_nothing() {
    let answer = json!({ "intent": "a\rb\u{202e}c", "x\u{7}": ["\u{1b}[2J"], "peers": [{ "id": "\u{2028}" }] });
    let shown = text(&json!({}), &answer);
    assert!(
        shown.chars().all(|char| char == '\n' || (!char.is_control() && char != '\u{202e}' && char != '\u{2028}')),
        "{shown:?}"
    );
}
