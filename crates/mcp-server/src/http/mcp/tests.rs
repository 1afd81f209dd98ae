use axum::http::HeaderMap;
use axum::http::header::ACCEPT;

use super::{EVENTS, JSON, accepts};

fn takes(accept: &[&str], wanted: &str) -> bool {
    let mut headers = HeaderMap::new();
    for value in accept {
        headers.append(ACCEPT, value.parse().unwrap());
    }
    accepts(&headers, wanted)
}

#[test]
fn a_client_that_says_nothing_or_anything_takes_json() {
    let lenient: [&[&str]; 8] = [
        &[],
        &["*/*"],
        &["application/json"],
        &["application/json, text/event-stream"],
        &["text/event-stream", "application/json"],
        &["APPLICATION/JSON;charset=utf-8;q=0.5"],
        &["application/*"],
        &["text/html, */*;q=0.1"],
    ];
    for accept in lenient {
        assert!(takes(accept, JSON), "{accept:?}");
    }
}

#[test]
fn a_client_that_rules_it_out_does_not() {
    for accept in ["text/html", "text/event-stream", "application/json;q=0", "application/jsonp", "", "json"] {
        assert!(!takes(&[accept], JSON), "{accept:?}");
    }
    assert!(takes(&["text/event-stream"], EVENTS) && takes(&["text/*"], EVENTS) && !takes(&[JSON], EVENTS));
}
