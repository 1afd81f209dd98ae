//! Hostile text over HTTP: ids that look like paths, secrets, and what would break a log or a page.

use std::collections::BTreeSet;

use majordomus_e2e::{Files, Request, Server, World, files, holds, published};
use serde_json::{Value, json};

const HOSTILE: &[&str] = &[
    "../../../tmp/pwn",
    "a/b",
    "/etc/passwd",
    r"..\..\x",
    "C:x",
    "CON",
    ".",
    "..",
    "-rf",
    "%2e%2e",
    "%00",
    "😀",
    "e\u{301}",
    "é",
    "A",
    "a",
    " a ",
    "\"quoted\"",
    "{{x}} ${x} $(x) `x`",
    "---",
    "</script><script>alert(1)</script>",
    "# heading",
    "a: b",
    "*alias",
];

fn attach(server: &Server, id: &str) -> majordomus_e2e::Reply {
    server.ask(&Request::post("/api/v1/episodes/attach", &json!({ "external_id": id })))
}

/// Everything outside the state folder and the records.
fn outside(world: &World) -> Files {
    files(&world.folder(), &["work/.git/majordomus", "work/.ai"])
}

#[test]
fn hostile_ids_over_both_surfaces_are_kept_verbatim_apart_and_inside() {
    let world = World::new();
    let server = world.serve(&[]);
    let before = outside(&world);
    for (number, id) in HOSTILE.iter().enumerate() {
        if number % 2 == 0 {
            let mut session = server.session();
            assert_eq!(session.attach(id)["episode"]["external_id"], *id);
        } else {
            assert_eq!(attach(&server, id).done()["episode"]["external_id"], *id);
        }
    }
    assert_eq!(world.logs("open").len(), HOSTILE.len(), "each has its own");
    let listed = server.episodes();
    let ids: BTreeSet<&str> =
        listed["episodes"].as_array().expect("a list").iter().filter_map(|one| one["external_id"].as_str()).collect();
    assert_eq!(ids, HOSTILE.iter().copied().collect());
    for id in HOSTILE {
        let closed = server.ask(&Request::post("/api/v1/episodes/close", &json!({ "external_id": id })));
        assert_eq!(closed.done()["episode"]["external_id"], *id);
    }
    let records = world.records();
    let kept: BTreeSet<&str> = records.iter().map(|record| record.text("external_id")).collect();
    assert_eq!(kept, HOSTILE.iter().copied().collect());
    assert_eq!(records.len(), HOSTILE.len());
    assert_eq!(outside(&world), before);
    for path in world.record_files() {
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
        assert!(name.starts_with("s-") && name.ends_with("--main.md"), "{name}");
    }
}

#[test]
fn ids_that_are_no_line_of_text_are_refused_on_both_surfaces_and_nothing_is_written() {
    let world = World::new();
    let server = world.serve(&[]);
    let mut session = server.session();
    let long = "x".repeat(257);
    let wide = "é".repeat(300);
    for id in ["", "a\0b", "a\nb", "a\r", "\u{1b}[2J", "a\u{85}b", "a\u{2028}b", "\u{7f}", &long, &wide] {
        let reply = attach(&server, id);
        assert_eq!((reply.status, reply.code()), (400, json!("invalid_input")), "{id:?}: {reply:?}");
        let refused = session.tool("majordomus_session_attach", &json!({ "external_id": id }));
        assert_eq!(refused["isError"], true, "{id:?}: {refused}");
        let text = refused["content"][0]["text"].as_str().unwrap_or_default();
        assert!(text.starts_with("invalid_input: ") && !text.chars().any(char::is_control), "{text:?}");
    }
    assert_eq!(attach(&server, &"é".repeat(256)).status, 200, "256 characters are one line of text");
    assert_eq!(world.logs("open").len(), 1);
}

/// Secrets of well-known shapes, put together here so that nobody's scanner takes this file for a leak.
fn secrets() -> Vec<String> {
    let tail = "Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4zAb3d";
    vec![
        format!("ghp_{tail}"),
        format!("sk-ant-api03-{tail}{tail}"),
        format!("whsec_{}", &tail[..32]),
        format!("AKIA{}", "IOSFODNN7EXAMPLQ"),
    ]
}

fn part(secret: &str) -> &str {
    &secret[secret.len() - 16..]
}

#[test]
fn a_secret_in_an_id_is_in_no_file_and_its_episode_is_still_its_own() {
    let world = World::new();
    let server = world.serve(&[]);
    let _ = published(&world);
    for secret in secrets() {
        let id = format!("thread {secret}");
        let opened = attach(&server, &id).done();
        let again = attach(&server, &id).done();
        assert_eq!(majordomus_e2e::session_id(&again), majordomus_e2e::session_id(&opened));
        assert_eq!(holds(&files(&world.folder(), &[]), part(&secret)), Vec::<std::path::PathBuf>::new());
        let handle = &again["episode_handle"];
        let closed = server.ask(&Request::post("/api/v1/episodes/detach", &json!({ "episode_handle": handle })));
        assert_eq!(closed.done()["recorded"], true);
        assert_eq!(holds(&files(&world.folder(), &[]), part(&secret)), Vec::<std::path::PathBuf>::new());
    }
    let records = world.records();
    assert_eq!(records.len(), secrets().len());
    for record in records {
        assert_eq!(record.text("external_id"), "thread [redacted]");
        assert!(record["redactions"].as_u64() >= Some(1), "{:#}", record.front);
    }
}

#[test]
fn a_secret_that_somebody_announces_or_calls_himself_by_is_in_no_file() {
    let world = World::new();
    let server = world.serve(&[]);
    let _ = published(&world);
    let secret = secrets().remove(0);
    let request = Request::post("/api/v1/episodes/attach", &json!({ "external_id": "my-thread" }));
    let attached = server.ask(&request.header("User-Agent", &format!("tool {secret}"))).done();
    let handle = &attached["episode_handle"];
    let said =
        json!({ "intent": format!("use {secret}"), "scope": [format!("src/{secret}")], "episode_handle": handle });
    assert_eq!(server.ask(&Request::post("/api/v1/peers/announce", &said)).status, 200);
    assert_eq!(holds(&files(&world.folder(), &[]), part(&secret)), Vec::<std::path::PathBuf>::new());
    let closed = server.ask(&Request::post("/api/v1/episodes/close", &json!({ "external_id": "my-thread" })));
    assert_eq!((closed.status, world.records().len()), (200, 1));
    assert_eq!(holds(&files(&world.folder(), &[]), part(&secret)), Vec::<std::path::PathBuf>::new());
}

#[test]
fn a_secret_in_an_id_an_intent_or_a_clients_name_is_not_shown_to_others() {
    let world = World::new();
    let server = world.serve(&[]);
    let secret = secrets().remove(0);
    let request = Request::post("/api/v1/episodes/attach", &json!({ "external_id": format!("thread {secret}") }));
    let attached = server.ask(&request.header("User-Agent", &format!("tool {secret}")));
    assert_eq!(attached.status, 200, "{attached:?}");
    let mut session = server.session();
    let intent = json!({ "intent": format!("use {secret}"), "scope": [format!("src/{secret}")] });
    session.done("majordomus_announce", &intent);
    let seen = ["/api/v1/episodes", "/api/v1/peers"].map(|target| server.ask(&Request::get(target)).text());
    assert!(seen.iter().all(|seen| !seen.contains(part(&secret))), "{seen:#?}");
}

#[test]
fn pages_for_people_run_nothing_that_callers_wrote() {
    let world = World::new();
    let server = world.serve(&[]);
    let evil = "<img src=x onerror=alert(1)>";
    assert_eq!(attach(&server, evil).status, 200);
    for path in ["/", "/docs/"] {
        let page = server.ask(&Request::get(path).header("Accept", "text/html"));
        assert_eq!(page.status, 200, "{page:?}");
        assert!(page.header("content-type").is_some_and(|kind| kind.starts_with("text/html")), "{page:?}");
        assert!(page.header("content-security-policy").is_some_and(|policy| policy.contains("default-src 'self'")));
        assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
        assert!(!page.text().contains(evil));
    }
    let reply =
        server.ask(&Request::get(&format!("/{}", evil.replace('<', "%3C").replace(' ', "%20").replace('>', "%3E"))));
    let body: Value = reply.json();
    assert_eq!((reply.status, reply.header("content-type")), (404, Some("application/json")), "{body}");
}
