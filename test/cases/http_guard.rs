//! Who may call: no page of another site, under whatever name it has found for this machine.

use majordomus_e2e::{Reply, Request, Server, World, initialize};
use serde_json::{Value, json};

/// Every route that the server lists, and those that are no capability.
fn routes(server: &Server) -> Vec<Request> {
    let listed = server.ask(&Request::get("/").header("Accept", "application/json")).done();
    let api = listed["api"].as_array().expect("a list of routes");
    assert!(api.len() >= 10, "{listed}");
    let of_api = api.iter().map(|route| {
        let (method, path) = (route["method"].as_str().expect("a method"), route["path"].as_str().expect("a path"));
        let path = path.replace("{session_id}", "s-20260102030405-0a1b2c3d").replace("{id}", "episodes.list");
        if method == "GET" { Request::get(&path) } else { Request::post(&path, &json!({ "external_id": "never" })) }
    });
    let mut routes: Vec<Request> = of_api.collect();
    routes.extend(["/", "/docs", "/docs/", "/docs/index.css", "/openapi.json", "/mcp", "/nothing"].map(Request::get));
    routes.push(Request::post("/mcp", &initialize("2025-06-18")));
    routes.push(Request::new("DELETE", "/mcp"));
    routes.push(Request::new("OPTIONS", "/mcp"));
    routes
}

fn forbidden(reply: &Reply) -> String {
    assert_eq!(reply.status, 403, "{reply:?}");
    assert_eq!(reply.header("access-control-allow-origin"), None, "{reply:?}");
    let error = &reply.json()["error"];
    assert!(error["code"] == "forbidden" || error["code"] == -32600, "{reply:?}");
    format!("{} {}", error["message"], error["hint"])
}

/// Nothing of what was refused has happened.
fn untouched(world: &World, server: &Server) {
    assert_eq!(server.episodes()["episodes"], json!([]));
    assert_eq!(server.status()["peers"], 0);
    assert!(world.logs("open").is_empty() && world.records().is_empty());
}

#[test]
fn every_route_refuses_a_foreign_or_missing_host_and_says_how_to_allow_one() {
    let world = World::new();
    let server = world.serve(&[]);
    let port = server.address().port();
    let hosts = [
        "evil.example".to_owned(),
        format!("evil.example:{port}"),
        format!("127.0.0.1.evil.example:{port}"),
        format!("localhost.evil.example:{port}"),
        format!("evil.example@127.0.0.1:{port}"),
        "0.0.0.0".into(),
        "192.168.0.7".into(),
        "[::2]".into(),
    ];
    for route in routes(&server) {
        let mut foreign: Vec<Request> =
            hosts.iter().map(|host| route.clone().without("Host").header("Host", host)).collect();
        foreign.push(route.clone().without("Host"));
        for request in foreign {
            let text = forbidden(&server.ask(&request));
            assert!(text.contains("--allow-host") && text.contains("MAJORDOMUS_ALLOWED_HOSTS"), "{request:?}: {text}");
        }
    }
    untouched(&world, &server);
}

#[test]
fn two_hosts_or_a_foreign_one_in_the_request_line_are_refused() {
    let world = World::new();
    let server = world.serve(&[]);
    let own = server.address().to_string();
    let two = Request::get("/api/v1/episodes").header("Host", &own).header("Host", "evil.example");
    let line = Request::get("http://evil.example/api/v1/episodes").header("Host", &own);
    for request in [two, line] {
        let reply = server.ask(&request);
        assert!(matches!(reply.status, 400 | 403), "{request:?}: {reply:?}");
    }
}

#[test]
fn every_route_refuses_the_pages_of_others() {
    let world = World::new();
    let server = world.serve(&[]);
    let port = server.address().port();
    let foreign = [
        ("Origin", "http://evil.example".to_owned()),
        ("Origin", "null".into()),
        ("Origin", String::new()),
        ("Origin", format!("http://127.0.0.1:{}", if port == 65_535 { 1024 } else { port + 1 })),
        ("Origin", "http://localhost:3000".into()),
        ("Origin", "http://localhost".into()),
        ("Origin", format!("http://127.0.0.1.evil.example:{port}")),
        ("Origin", format!("http://evil.example:{port}")),
        ("Origin", "file://".into()),
        ("Origin", "chrome-extension://abcdef".into()),
        ("Sec-Fetch-Site", "cross-site".into()),
        ("Sec-Fetch-Site", "same-site".into()),
    ];
    for route in routes(&server) {
        for (name, value) in &foreign {
            let text = forbidden(&server.ask(&route.clone().header(name, value)));
            assert!(text.contains("--allow-origin") && text.contains("MAJORDOMUS_ALLOWED_ORIGINS"), "{value}: {text}");
        }
        let both = route.header("Origin", &format!("http://127.0.0.1:{port}")).header("Sec-Fetch-Site", "cross-site");
        forbidden(&server.ask(&both));
    }
    untouched(&world, &server);
}

#[test]
fn loopback_names_with_and_without_port_and_its_own_pages_are_let_in() {
    let world = World::new();
    let server = world.serve(&[]);
    let port = server.address().port();
    let get = || Request::get("/api/v1/live");
    for name in ["localhost", "LocalHost", "127.0.0.1", "127.0.0.2", "[::1]"] {
        for host in [name.to_owned(), format!("{name}:{port}")] {
            assert_eq!(server.ask(&get().header("Host", &host)).status, 200, "{host}");
        }
        let own = get().header("Host", &format!("{name}:{port}")).header("Origin", &format!("http://{name}:{port}"));
        assert_eq!(server.ask(&own).status, 200, "{name}");
    }
    for site in ["same-origin", "none"] {
        assert_eq!(server.ask(&get().header("Sec-Fetch-Site", site)).status, 200, "{site}");
    }
}

#[test]
fn a_host_and_an_origin_that_the_user_allowed_are_let_in_by_argument_and_by_environment() {
    let world = World::new();
    let by_argument = world.serve(&["--allow-host", "tools.example.com", "--allow-origin", "https://page.example.com"]);
    let mut command = world.majordomus(&["serve", "--port", "0"]);
    command.env("MAJORDOMUS_ALLOWED_HOSTS", "other.example.com, tools.example.com");
    command.env("MAJORDOMUS_ALLOWED_ORIGINS", "https://page.example.com");
    let by_environment = Server::start(&mut command);
    for server in [by_argument, by_environment] {
        let get = Request::get("/api/v1/live");
        assert_eq!(server.ask(&get.clone().header("Host", "tools.example.com")).status, 200);
        assert_eq!(server.ask(&get.clone().header("Host", "nottools.example.com")).status, 403);
        let page = get.clone().header("Origin", "https://page.example.com").header("Sec-Fetch-Site", "cross-site");
        let reply = server.ask(&page);
        assert_eq!(reply.status, 200, "{reply:?}");
        assert_eq!(reply.header("access-control-allow-origin"), Some("https://page.example.com"), "{reply:?}");
        let asks_first = Request::new("OPTIONS", "/mcp").header("Origin", "https://page.example.com");
        let reply = server.ask(&asks_first.header("Access-Control-Request-Method", "POST"));
        assert_eq!(reply.status, 204, "{reply:?}");
        assert!(reply.header("access-control-allow-headers").is_some_and(|names| names.contains("mcp-session-id")));
        assert_eq!(server.ask(&get.header("Origin", "https://page.example.org")).status, 403);
    }
}

#[test]
fn a_post_that_a_page_can_send_without_asking_is_415_and_nothing_is_executed() {
    let world = World::new();
    let server = world.serve(&[]);
    let mut session = server.session();
    let call = json!({ "name": "majordomus_session_attach", "arguments": { "external_id": "never" } });
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call });
    let plain = |target: &str, body: &Value| Request::new("POST", target).body(body.to_string());
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/json", ""]
    {
        let mcp = session.message(message.to_string()).without("Content-Type");
        let begins = plain("/mcp", &initialize("2025-06-18"));
        let rest = plain("/api/v1/episodes/attach", &json!({ "external_id": "never" }));
        for request in [mcp, begins, rest] {
            let request = if kind.is_empty() { request } else { request.header("Content-Type", kind) };
            let reply = server.ask(&request);
            assert_eq!(reply.status, 415, "{kind}: {reply:?}");
            assert!(reply.text().contains("application/json"), "{reply:?}");
            let foreign = server.ask(&request.header("Origin", "http://evil.example"));
            assert_eq!(foreign.status, 403, "{kind}: {foreign:?}");
        }
    }
    assert_eq!(server.episodes()["episodes"], json!([]));
    assert_eq!(server.status()["peers"], 1);
    session.ping();
    let with_charset = session.message(message.to_string()).without("Content-Type");
    let reply = server.ask(&with_charset.header("Content-Type", "Application/JSON; charset=utf-8"));
    assert_eq!(reply.status, 200, "{reply:?}");
}

#[test]
fn an_accept_is_taken_as_widely_as_clients_send_it_and_406_is_for_what_cannot_be_given() {
    let world = World::new();
    let server = world.serve(&[]);
    let message = Request::post("/mcp", &initialize("2025-06-18"));
    for accept in
        ["*/*", "application/json", "text/event-stream", "application/*", "text/html, */*;q=0.1", "APPLICATION/JSON"]
    {
        let reply = server.ask(&message.clone().header("Accept", accept));
        assert_eq!(
            (reply.status, reply.header("content-type")),
            (200, Some("application/json")),
            "{accept}: {reply:?}"
        );
    }
    assert_eq!(server.ask(&message).status, 200, "no Accept at all");
    for accept in ["text/html", "application/xml", "image/*", "application/json;q=0"] {
        let reply = server.ask(&message.clone().header("Accept", accept));
        assert_eq!(
            (reply.status, reply.code(), reply.header("mcp-session-id")),
            (406, json!(-32600), None),
            "{accept}"
        );
    }
}
