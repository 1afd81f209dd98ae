//! `/api/v1`: how arguments are read, how lists are paged, and what a program can tell from an answer.

use std::collections::BTreeSet;

use majordomus_e2e::{Reply, Request, Server, Session, World, session_id, until};
use serde_json::{Value, json};

fn get(server: &Server, target: &str) -> Reply {
    server.ask(&Request::get(target))
}

fn post(server: &Server, target: &str, body: &Value) -> Reply {
    server.ask(&Request::post(target, body))
}

/// Checks a refusal's shape, and returns its status, its code and all its words.
fn refusal(reply: &Reply) -> (u16, String, String) {
    assert_eq!(reply.header("content-type"), Some("application/json"), "{reply:?}");
    let body = reply.json();
    assert_eq!(body.as_object().map(serde_json::Map::len), Some(1), "{body}");
    let error = body["error"].as_object().unwrap_or_else(|| panic!("{body}"));
    assert!(error.keys().all(|key| ["code", "message", "hint"].contains(&key.as_str())), "{body}");
    assert!(error["message"].as_str().is_some_and(|message| !message.is_empty()), "{body}");
    let hint = error.get("hint").map_or("", |hint| hint.as_str().expect("a hint is text"));
    let code = error["code"].as_str().expect("a code is a word").to_owned();
    (reply.status, code, format!("{} {hint}", error["message"].as_str().unwrap_or_default()))
}

fn is(reply: &Reply, status: u16, code: &str, named: &str) {
    let (given, word, text) = refusal(reply);
    assert_eq!((given, word.as_str()), (status, code), "{reply:?}");
    assert!(text.contains(named), "{named}: {text}");
}

#[test]
fn a_query_is_read_as_its_fields_are_declared_and_what_is_wrong_is_named() {
    let world = World::new();
    let server = world.serve(&[]);
    for fine in ["limit=2", "limit=1&state=open", "state=detached", "limit=%32", ""] {
        assert_eq!(get(&server, &format!("/api/v1/episodes?{fine}")).status, 200, "{fine}");
    }
    for (wrong, named) in [
        ("limit=x", "limit"),
        ("limit=", "limit"),
        ("limit=1.5", "limit"),
        ("limit=0", "limit"),
        ("limit=-1", "limit"),
        ("limit=201", "limit"),
        ("limit=99999999999999999999", "limit"),
        ("limit=1&limit=2", "limit"),
        ("state=closed", "state"),
        ("cursor=nope", "cursor"),
        ("surprise=1", "surprise"),
        ("Limit=1", "Limit"),
        ("a%0ab=1", "a"),
    ] {
        is(&get(&server, &format!("/api/v1/episodes?{wrong}")), 400, "invalid_input", named);
    }
    is(&get(&server, "/api/v1/live?limit=1"), 400, "invalid_input", "limit");
}

#[test]
fn a_post_takes_one_json_object_in_its_body_and_no_query() {
    let world = World::new();
    let server = world.serve(&[]);
    let attach = "/api/v1/episodes/attach";
    let with_query = format!("{attach}?external_id=a");
    is(&post(&server, &with_query, &json!({ "external_id": "a" })), 400, "invalid_input", "query");
    for (body, named) in [
        ("", "external_id"),
        ("{}", "external_id"),
        ("[]", "object"),
        ("null", "object"),
        ("nonsense", ""),
        ("\u{1}", ""),
        (r#"{"external_id":7}"#, "external_id"),
        (r#"{"external_id":null}"#, "external_id"),
        (r#"{"external_id":"a","external_id":"b"}"#, "external_id"),
        (r#"{"external_id":"a","surprise":1}"#, "surprise"),
        (r#"{"external_id":""}"#, "external"),
        (r#"{"external_id":"a"} x"#, ""),
    ] {
        is(&server.ask(&Request::text(attach, body)), 400, "invalid_input", named);
    }
    is(&server.ask(&Request::text(attach, b"{\"external_id\":\"\xff\"}")), 400, "invalid_input", "UTF-8");
    assert_eq!(server.episodes()["episodes"], json!([]));
    assert!(world.logs("open").is_empty());
}

/// Goes through all pages of a list and returns the entries of each.
fn pages(server: &Server, target: &str, list: &str, limit: usize) -> Vec<Vec<Value>> {
    let (mut pages, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = get(server, &format!("{target}?limit={limit}{cursor}")).done();
        pages.push(page[list].as_array().unwrap_or_else(|| panic!("{page}")).clone());
        let Some(next) = page["next_cursor"].as_str() else { return pages };
        assert!(next.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte)), "{next}");
        assert!(pages.len() < 50, "it never ends");
        cursor = format!("&cursor={next}");
    }
}

fn check_pages(server: &Server, target: &str, list: &str, id: &str, count: usize) {
    let whole = get(server, target).done();
    let all: Vec<&Value> = whole[list].as_array().expect("a list").iter().map(|entry| &entry[id]).collect();
    assert_eq!(all.len(), count, "{whole}");
    for limit in [1, 3, count, count + 1] {
        let pages = pages(server, target, list, limit);
        assert_eq!(pages.len(), count.div_ceil(limit), "{target} by {limit}");
        assert!(pages[..pages.len() - 1].iter().all(|page| page.len() == limit), "{target} by {limit}");
        let found: Vec<&Value> = pages.iter().flatten().map(|entry| &entry[id]).collect();
        assert_eq!(found, all, "{target} by {limit}: no gap, no repeat, the same order");
    }
}

#[test]
fn lists_are_paged_without_gap_or_repeat() {
    let world = World::new();
    let server = world.serve(&[]);
    for number in 0..7 {
        let id = json!({ "external_id": format!("done-{number}") });
        for target in ["/api/v1/episodes/attach", "/api/v1/episodes/close"] {
            assert_eq!(post(&server, target, &id).status, 200);
        }
    }
    let sessions: Vec<Session> = (0..7)
        .map(|number| {
            let mut session = server.session();
            session.attach(&format!("ünder-way-{number}"));
            session
        })
        .collect();
    // The callers of what was closed go a moment later.
    until("only the sessions are left", || (server.status()["peers"] == 7).then_some(()));
    check_pages(&server, "/api/v1/episodes", "episodes", "external_id", 7);
    check_pages(&server, "/api/v1/peers", "peers", "id", sessions.len());
    check_pages(&server, "/api/v1/sessions", "sessions", "session_id", 7);
    let cursor = get(&server, "/api/v1/episodes?limit=1").done()["next_cursor"].as_str().expect("more").to_owned();
    is(&get(&server, &format!("/api/v1/sessions?cursor={cursor}")), 400, "invalid_input", "cursor");
}

#[test]
fn entries_that_come_and_go_between_pages_shift_nothing() {
    let world = World::new();
    let server = world.serve(&[]);
    let attach =
        |number: u32| post(&server, "/api/v1/episodes/attach", &json!({ "external_id": format!("e{number}") })).done();
    let close =
        |number: u32| post(&server, "/api/v1/episodes/close", &json!({ "external_id": format!("e{number}") })).done();
    for number in 0..6 {
        attach(number);
    }
    let first = get(&server, "/api/v1/episodes?limit=3").done();
    close(0);
    close(2);
    attach(6);
    let cursor = first["next_cursor"].as_str().expect("there is more");
    let second = get(&server, &format!("/api/v1/episodes?limit=9&cursor={cursor}")).done();
    let ids = |page: &Value| -> Vec<String> {
        let entries = page["episodes"].as_array().expect("a list").iter();
        entries.map(|entry| entry["external_id"].as_str().unwrap_or_default().to_owned()).collect()
    };
    assert_eq!(
        (ids(&first), ids(&second)),
        (vec!["e0".into(), "e1".into(), "e2".into()], vec!["e3".into(), "e4".into(), "e5".into(), "e6".into()])
    );
}

/// Leaves one record and returns its id.
fn one_record(server: &Server) -> String {
    let mut session = server.session();
    let id = session_id(&session.attach("my-thread"));
    session.detach();
    id
}

#[test]
fn a_record_has_a_tag_by_which_it_is_not_sent_twice() {
    let world = World::new();
    let server = world.serve(&[]);
    let id = one_record(&server);
    let target = format!("/api/v1/sessions/{id}");
    let first = get(&server, &target);
    assert_eq!(first.done()["session"]["session_id"], id.as_str());
    let tag = first.header("etag").expect("a record has a tag").to_owned();
    assert!(tag.starts_with('"') && tag.ends_with('"') && tag.len() > 10, "{tag}");
    for known in [tag.clone(), format!("W/{tag}"), format!("\"other\", {tag}"), "*".into()] {
        let reply = server.ask(&Request::get(&target).header("If-None-Match", &known));
        assert_eq!((reply.status, reply.body.len(), reply.header("etag")), (304, 0, Some(tag.as_str())), "{known}");
    }
    for other in ["\"other\"", "nonsense", ""] {
        let reply = server.ask(&Request::get(&target).header("If-None-Match", other));
        assert_eq!((reply.status, &reply.body), (200, &first.body), "{other}");
    }
    // The file is the user's; what was changed is sent anew.
    let path = world.record().path;
    let text = std::fs::read_to_string(world.path(&path)).expect("a record can be read");
    world.write(&path, &format!("{text}\nA remark of the user.\n"));
    let reply = server.ask(&Request::get(&target).header("If-None-Match", &tag));
    assert!(reply.done()["text"].as_str().is_some_and(|text| text.contains("A remark of the user.")), "{reply:?}");
    let live = get(&server, "/api/v1/episodes");
    assert_eq!((live.header("etag"), live.header("cache-control")), (None, Some("no-store")), "what is true now");
}

#[test]
fn every_answer_carries_its_requests_id_or_a_new_one() {
    let world = World::new();
    let server = world.serve(&[]);
    let mut minted = BTreeSet::new();
    let targets = ["/", "/mcp", "/api/v1/episodes", "/api/v1/episodes?limit=x", "/nothing", "/openapi.json", "/docs/"];
    for target in targets {
        let with = |id: &str| server.ask(&Request::get(target).header("X-Request-Id", id));
        for id in ["abc", "A-b_c.9", &"x".repeat(64)] {
            assert_eq!(with(id).header("x-request-id"), Some(id), "{target}");
        }
        for id in ["", "a b", "a\"b", "é", &"x".repeat(65)] {
            let reply = with(id);
            let given = reply.header("x-request-id").expect("there is one");
            assert!(given != id && given.len() >= 4, "{target} {id}: {given}");
            assert!(minted.insert(given.to_owned()), "{given} twice");
        }
        let foreign = server.ask(&Request::get(target).header("Origin", "null").header("X-Request-Id", "abc"));
        assert_eq!((foreign.status, foreign.header("x-request-id")), (403, Some("abc")), "refusals too");
        assert_eq!(foreign.header("x-content-type-options"), Some("nosniff"));
    }
}

#[test]
fn what_is_not_there_is_404_and_a_method_that_is_not_taken_405_with_what_is() {
    let world = World::new();
    let server = world.serve(&[]);
    for path in [
        "/nothing",
        "/api/v1",
        "/api/v1/",
        "/api/v2/episodes",
        "/api/v1/episodes/",
        "/docs/nothing.js",
        "//mcp",
        "/mcp/",
    ] {
        is(&get(&server, path), 404, "not_found", path);
    }
    for id in ["s-20260102030405-0a1b2c3d", "s-99999999999999-ffffffff"] {
        is(&get(&server, &format!("/api/v1/sessions/{id}")), 404, "not_found", id);
    }
    for id in ["x", "..%2f..%2fREADME.md", "s-20260102030405-0a1b2c3d%00", "%2e%2e", "s-20260102030405-0A1B2C3D"] {
        let reply = get(&server, &format!("/api/v1/sessions/{id}"));
        assert!(matches!(reply.status, 400 | 404) && !reply.text().contains("Begin"), "{reply:?}");
        refusal(&reply);
    }
    is(&get(&server, "/api/v1/sessions/%ff"), 400, "invalid_input", "");
    is(&get(&server, "/api/v1/capabilities/no.such"), 404, "not_found", "no.such");
    for (method, path, allowed) in [
        ("PUT", "/api/v1/episodes", "GET"),
        ("POST", "/api/v1/episodes", "GET"),
        ("DELETE", "/api/v1/sessions/s-20260102030405-0a1b2c3d", "GET"),
        ("GET", "/api/v1/episodes/attach", "POST"),
        ("DELETE", "/api/v1/episodes/attach", "POST"),
        ("POST", "/", "GET"),
        ("OPTIONS", "/api/v1/peers", "GET"),
        ("BREW", "/api/v1/peers", "GET"),
    ] {
        let reply = server.ask(&Request::new(method, path));
        let allow = reply.header("allow").unwrap_or_default();
        assert!(allow.split(',').any(|method| method.trim() == allowed), "{method} {path}: {reply:?}");
        is(&reply, 405, "invalid_input", path);
    }
}

/// What one answer says that depends on who asks, or when.
fn without(mut answer: Value, fields: &[&str]) -> Value {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                fields.remove("last_activity_seconds_ago");
                fields.values_mut().for_each(strip);
            }
            Value::Array(values) => values.iter_mut().for_each(strip),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    strip(&mut answer);
    for field in fields {
        answer.as_object_mut().expect("an answer is an object").remove(*field);
    }
    answer
}

#[test]
fn a_tool_and_its_route_give_the_same_answer_field_by_field() {
    let world = World::new();
    let server = world.serve(&[]);
    let record = one_record(&server);
    let (mut session, mut other) = (server.session(), server.session());
    session.attach("here");
    other.attach("there");
    assert_eq!(other.delete().status, 204);
    session.done("majordomus_announce", &json!({ "intent": "compare", "scope": ["src/a.rs"] }));
    let target = format!("/api/v1/sessions/{record}");
    for (tool, arguments, target, callers) in [
        ("majordomus_episodes", json!({}), "/api/v1/episodes", &["mine"][..]),
        (
            "majordomus_episodes",
            json!({ "state": "detached", "limit": 1 }),
            "/api/v1/episodes?state=detached&limit=1",
            &["mine"],
        ),
        ("majordomus_episodes", json!({ "limit": 1 }), "/api/v1/episodes?limit=1", &["mine"]),
        ("majordomus_peers", json!({}), "/api/v1/peers", &["you"]),
        ("majordomus_session_records", json!({}), "/api/v1/sessions", &[]),
        ("majordomus_session_record", json!({ "session_id": record }), &target, &[]),
    ] {
        let by_tool = session.done(tool, &arguments);
        assert!(callers.iter().all(|field| by_tool.get(*field).is_some()), "{tool}: {by_tool}");
        let by_route = get(&server, target).done();
        assert_eq!(without(by_tool, callers), without(by_route, &[]), "{tool}");
    }
    for (tool, arguments, reply) in [
        (
            "majordomus_session_record",
            json!({ "session_id": "s-20260102030405-0a1b2c3d" }),
            get(&server, "/api/v1/sessions/s-20260102030405-0a1b2c3d"),
        ),
        ("majordomus_session_record", json!({ "session_id": "x" }), get(&server, "/api/v1/sessions/x")),
        ("majordomus_episodes", json!({ "limit": 0 }), get(&server, "/api/v1/episodes?limit=0")),
        ("majordomus_episodes", json!({ "surprise": "1" }), get(&server, "/api/v1/episodes?surprise=1")),
        ("majordomus_session_attach", json!({}), post(&server, "/api/v1/episodes/attach", &json!({}))),
        (
            "majordomus_session_detach",
            json!({ "external_id": "never" }),
            post(&server, "/api/v1/episodes/detach", &json!({ "external_id": "never" })),
        ),
    ] {
        let refused = session.tool(tool, &arguments);
        assert_eq!(refused["isError"], true, "{refused}");
        let error = reply.json()["error"].clone();
        let hint = error["hint"].as_str().map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
        let text = format!(
            "{}: {}{hint}",
            error["code"].as_str().unwrap_or_default(),
            error["message"].as_str().unwrap_or_default()
        );
        assert_eq!(refused["content"][0]["text"], text.as_str(), "{tool} {arguments}");
    }
}
