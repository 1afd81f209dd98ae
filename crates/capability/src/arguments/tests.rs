use serde::Deserialize;

use super::parse;
use crate::refusal::Code;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    #[expect(dead_code, reason = "only read by serde")]
    name: String,
    #[expect(dead_code, reason = "only read by serde")]
    count: Option<u32>,
}

fn refused(text: &str) -> String {
    let refusal = parse::<Input>(text).unwrap_err();
    assert_eq!(refusal.code, Code::InvalidInput);
    refusal.message
}

#[test]
fn a_field_of_the_wrong_type_is_named() {
    assert_eq!(refused(r#"{"name":"x","count":"many"}"#), r#"count: invalid type: string "many", expected u32"#);
    assert_eq!(refused(r#"{"name":5}"#), "name: invalid type: integer `5`, expected a string");
    assert_eq!(refused(r#"{"count":-1,"name":"x"}"#), "count: invalid value: integer `-1`, expected u32");
}

#[test]
fn missing_unknown_and_doubled_fields_are_named() {
    assert_eq!(refused("{}"), "missing field `name`");
    assert_eq!(refused(r#"{"name":"x","naem":1}"#), "unknown field `naem`, expected `name` or `count`");
    assert_eq!(refused(r#"{"name":"x","name":"y"}"#), "duplicate field `name`");
}

#[test]
fn only_an_object_is_taken_for_the_arguments() {
    for text in [r#"["x",1]"#, "\"x\"", "5", "true", "null", ""] {
        assert_eq!(refused(text), "the arguments are not a JSON object", "{text}");
    }
    assert!(parse::<Input>(" \n{\"name\":\"x\",\"count\":null}").is_ok());
}

#[test]
fn a_refusal_quotes_no_more_than_a_line_of_the_callers_text() {
    let long = "x".repeat(1 << 20);
    let message = refused(&format!(r#"{{"name":"x","{long}\n":1}}"#));
    assert!(message.starts_with("unknown field `xxx") && message.chars().count() <= 401, "{}", message.len());
}

#[derive(Debug, Deserialize)]
struct Read {
    #[serde(default, deserialize_with = "super::whole")]
    count: Option<u32>,
    #[serde(default, deserialize_with = "super::word")]
    colour: Option<Colour>,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Colour {
    Red,
}

#[test]
fn a_whole_number_is_one_however_it_is_written() {
    let count = |text: &str| parse::<Read>(&format!(r#"{{"count":{text}}}"#)).map(|read| read.count);
    for (text, expected) in [("5", 5), ("5.0", 5), ("5e0", 5), ("50e-1", 5), ("-0.0", 0), ("4294967295.0", u32::MAX)] {
        assert_eq!(count(text), Ok(Some(expected)), "{text}");
    }
    assert_eq!((count("null"), parse::<Read>("{}").unwrap().count), (Ok(None), None));
    for text in ["5.5", "-1", "-1.0", "4294967296", "1e300", "\"5\"", "[5]", "true"] {
        assert!(count(text).unwrap_err().message.starts_with("count: "), "{text}");
    }
}

#[test]
fn a_word_of_a_choice_is_a_text() {
    assert_eq!(parse::<Read>(r#"{"colour":"red"}"#).unwrap().colour, Some(Colour::Red));
    assert_eq!(parse::<Read>(r#"{"colour":null}"#).unwrap().colour, None);
    for text in [r#"{"red":null}"#, "\"Red\"", "[]", "0"] {
        let refusal = parse::<Read>(&format!(r#"{{"colour":{text}}}"#)).unwrap_err();
        assert!(refusal.message.starts_with("colour: "), "{text}: {}", refusal.message);
    }
}
