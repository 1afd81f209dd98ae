use axum::http::{HeaderMap, HeaderValue};

use super::{NAME, decoded, mirrors};

#[test]
fn a_value_stands_for_itself_or_for_bytes_in_base64() {
    for (value, meant) in [
        ("Hello", Some("Hello")),
        ("  Hello\t", Some("Hello")),
        ("=?base64?SGVsbG8=?=", Some("Hello")),
        ("=?base64?w7x4?=", Some("üx")),
        ("=?base64??=", Some("")),
        // Neither mark alone says anything.
        ("=?base64?SGVsbG8=", Some("=?base64?SGVsbG8=")),
        ("SGVsbG8=?=", Some("SGVsbG8=?=")),
        ("=?BASE64?SGVsbG8=?=", Some("=?BASE64?SGVsbG8=?=")),
        // Not the padding, nor the characters.
        ("=?base64?SGVsbG8?=", None),
        ("=?base64?SGVs!!!bG8=?=", None),
    ] {
        assert_eq!(decoded(value.as_bytes()).as_deref(), meant.map(str::as_bytes), "{value}");
    }
}

#[test]
fn a_header_has_to_be_there_once_and_say_what_the_message_says() {
    let with = |values: &[&'static str]| {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(NAME, HeaderValue::from_static(value));
        }
        mirrors(&headers, &NAME, "a").map_err(|failure| failure.message.into_owned())
    };
    assert_eq!(with(&["a"]), Ok(()));
    for (values, why) in [
        (&[][..], "is missing"),
        (&["a", "a"], "is there twice"),
        (&["A"], "is not what the message says"),
        (&["=?base64?YQ?="], "is no base64"),
    ] {
        assert_eq!(with(values), Err(format!("the header mcp-name {why}")));
    }
}
