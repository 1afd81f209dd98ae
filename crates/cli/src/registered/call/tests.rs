#[path = "../../../tests/it/canned.rs"]
mod canned;

use canned::Canned;
use majordomus_capability::Code;
use serde_json::json;

use super::super::tests::{asked, registry};
use super::super::{Asked, argument};
use super::*;

const INSTANCE: &str = "0123456789abcdef0123456789abcdef";
const OURS: (&str, &str) = ("200 OK", r#"{"instance":"0123456789abcdef0123456789abcdef"}"#);

fn published(url: &str) -> Published {
    Published { format: 2, url: url.into(), instance: INSTANCE.into(), version: "0.1.0".into(), pid: 7, socket: None }
}

fn request(line: &[&str]) -> Request {
    let Ok(Asked::Registered(registered)) = asked(line) else { panic!("{line:?} calls no capability") };
    let registry = registry();
    let capability = registry.capability(registered.id).unwrap();
    Request::new(capability, &argument::values(capability, &registered.matches).unwrap())
}

/// Asks who answers, then calls.
fn call(canned: &Canned, request: &Request) -> anyhow::Result<Value> {
    Server::named(&published(&canned.url))?.call(request)
}

#[test]
fn arguments_go_where_the_route_takes_them() {
    let canned = Canned::answering(&[OURS, ("200 OK", r#"{"seen":true}"#), OURS, ("200 OK", r#"{"seen":false}"#)]);
    let look =
        ["shelves", "look", "a/b?c d%é", "3", "--kinds=map", "--kinds=book", "--deep", "--episode-handle", "ep_x"];
    assert_eq!(call(&canned, &request(&look)).unwrap(), json!({ "seen": true }));
    let fill = ["shelves", "fill", "a&b", "--labels", r#"{"x":"y"}"#];
    assert_eq!(call(&canned, &request(&fill)).unwrap(), json!({ "seen": false }));
    let asked = canned.asked();
    let lines: Vec<_> = asked.iter().map(|asked| asked.line.as_str()).collect();
    let target = "/api/v1/shelves/a%2Fb%3Fc%20d%25%C3%A9?height=3&kinds=map&kinds=book&deep=true";
    let named = "GET /api/v1/server";
    assert_eq!(lines, [named, &format!("GET {target}"), named, "POST /api/v1/filling"]);
    assert_eq!(asked[0].header(HANDLE_HEADER), None, "nobody is told a handle before it said who it is");
    assert_eq!((asked[1].header(HANDLE_HEADER), asked[1].body.as_str()), (Some("ep_x"), ""));
    assert_eq!(asked[3].header("content-type"), Some("application/json"));
    assert_eq!(
        serde_json::from_str::<Value>(&asked[3].body).unwrap(),
        json!({ "things": ["a&b"], "labels": { "x": "y" } })
    );
}

#[test]
fn a_token_is_shown_where_something_is_changed_and_to_nobody_who_is_a_stranger() {
    let canned = Canned::answering(&[OURS, ("200 OK", "{}"), ("200 OK", "{}")]);
    let server = Server::named(&published(&canned.url)).unwrap();
    let server = Server { token: Some("0123".into()), ..server };
    server.call(&request(&["shelves", "look", "a", "1"])).unwrap();
    server.call(&request(&["shelves", "fill", "a"])).unwrap();
    let shown: Vec<_> = canned.asked().iter().map(|asked| asked.header(TOKEN_HEADER).map(str::to_owned)).collect();
    assert_eq!(shown, [None, None, Some("0123".into())]);
}

#[test]
fn whoever_answers_there_and_is_not_the_one_that_was_named_is_not_called() {
    for stranger in [
        ("200 OK", r#"{"instance":"another"}"#),
        ("200 OK", "hello"),
        ("404 Not Found", ""),
        ("302 Found\r\nLocation: /", ""),
    ] {
        let canned = Canned::answering(&[stranger, OURS]);
        let refused = Server::named(&published(&canned.url)).err();
        assert!(matches!(refused, Some(NoServer::None)), "{stranger:?}: {refused:?}");
        assert_eq!(canned.asked().len(), 1);
    }
    let mute = Canned::answering(&[("", "")]);
    assert!(matches!(Server::named(&published(&mute.url)).err(), Some(NoServer::Mute { .. })));
}

#[test]
fn only_an_address_of_this_machine_is_asked() {
    for url in ["http://127.0.0.1:8741", "http://127.3.2.1:1", "http://[::1]:8741", "http://localhost:8741"] {
        assert!(is_of_this_machine(url), "{url}");
    }
    for url in [
        "http://192.0.2.1:8741",
        "http://example.com",
        "https://127.0.0.1",
        "http://localhost.example.com",
        "127.0.0.1",
        "",
    ] {
        assert!(!is_of_this_machine(url), "{url}");
    }
    assert!(matches!(Server::named(&published("http://example.com")).err(), Some(NoServer::None)));
}

#[test]
fn a_refusal_is_an_error_in_the_servers_words_made_visible() {
    let refused =
        json!({ "error": { "code": Code::Conflict.as_str(), "message": "no\u{1b}[31m", "hint": "wait" } }).to_string();
    let canned = Canned::answering(&[OURS, ("409 Conflict", &refused), OURS, ("502 Bad Gateway", "<html>")]);
    let error = call(&canned, &request(&["shelves", "fill", "a"])).unwrap_err();
    assert_eq!(error.to_string(), "no\\u{1b}[31m");
    let error = call(&canned, &request(&["shelves", "fill", "a"])).unwrap_err();
    assert!(error.to_string().contains("502"), "{error:#}");
}

#[test]
fn an_answer_without_end_or_none_at_all_is_an_error() {
    let long = format!("\"{}\"", "x".repeat(9 << 20));
    let canned = Canned::answering(&[
        OURS,
        ("200 OK", &long),
        OURS,
        ("", ""),
        OURS,
        ("302 Found\r\nLocation: http://127.0.0.1:1/", ""),
    ]);
    for expected in ["gave no answer", "gave no answer", "302"] {
        let error = call(&canned, &request(&["shelves", "look", "a", "1"])).unwrap_err();
        assert!(format!("{error:#}").contains(expected), "{error:#}");
    }
}
