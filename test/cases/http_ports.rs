//! Where a server answers: on both loopbacks, at another port where one is taken, and at the one that it tells.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::thread;

use majordomus_e2e::{Connection, Request, Running, Server, Session, World, address, published};
use rustix::process::Signal;
use serde_json::{Value, json};

const V4: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const V6: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);

/// Somebody else's port.
fn taken() -> (TcpListener, u16) {
    let listener = TcpListener::bind((V4, 0)).expect("there is a free port");
    let port = listener.local_addr().expect("it has an address").port();
    (listener, port)
}

/// Whether this machine has IPv6 at all.
fn has_v6() -> bool {
    TcpListener::bind((V6, 0)).is_ok()
}

fn live(at: SocketAddr) -> u16 {
    Connection::open(at).ask(&Request::get("/api/v1/live")).status
}

#[test]
fn mcp_at_a_port_that_is_taken_serves_stdio_and_says_which_port_it_has() {
    let world = World::new();
    let (listener, port) = taken();
    let mut client = world.server(&["mcp", "--http-port", &port.to_string()]);
    client.initialize();
    client.attach("my-thread");
    let at = published(&world);
    assert_ne!(at.port(), port);
    let mut session = Session::begin(at, "2025-06-18");
    assert_eq!(session.done("majordomus_episodes", &json!({}))["open"], 1);
    client.detach();
    let left = client.lose();
    assert_eq!(left.code, Some(0), "{left:?}");
    assert!(left.err.contains(&port.to_string()) && left.err.contains(&format!("http://{at}")), "{left:?}");
    assert_eq!(world.records().len(), 1);
    drop(listener);
}

#[test]
fn two_windows_of_one_configuration_are_both_served() {
    let world = World::new();
    let (listener, port) = taken();
    drop(listener);
    let port = port.to_string();
    let mut clients: Vec<_> = (0..3).map(|_| world.server(&["mcp", "--http-port", &port])).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        client.initialize();
        client.attach(&format!("window-{number}"));
        client.detach();
    }
    for client in clients {
        assert_eq!(client.lose().code, Some(0));
    }
    assert_eq!(world.records().len(), 3);
}

#[test]
fn serve_without_a_port_goes_to_another_one_where_the_usual_one_is_taken() {
    let world = World::new();
    // Where somebody has it already it is as taken as it has to be.
    let usual = [TcpListener::bind((V4, 8741)), TcpListener::bind((V6, 8741))];
    let server = Server::start(&mut world.majordomus(&["serve"]));
    assert_ne!(server.address().port(), 8741);
    server.session().ping();
    drop(usual);
}

#[test]
fn serve_at_a_port_that_is_taken_fails_with_a_hint_and_leaves_nothing() {
    let world = World::new();
    let (listener, port) = taken();
    let said = world.run(&["serve", "--port", &port.to_string()]);
    assert_eq!((said.code, said.out.as_str()), (Some(1), ""), "{said:?}");
    assert!(said.err.contains(&port.to_string()) && said.err.contains("in use"), "{said:?}");
    assert!(said.err.contains("hint:") && said.err.contains("--port"), "{said:?}");
    assert!(!world.state().join("server.json").exists());
    drop(listener);
    let server = Server::start(&mut world.majordomus(&["serve", "--port", &port.to_string()]));
    assert_eq!(server.address().port(), port);
}

#[test]
fn both_loopbacks_answer_at_the_port_that_is_told() {
    let world = World::new();
    let server = world.serve(&[]);
    let port = server.address().port();
    assert_eq!(live(SocketAddr::new(V4, port)), 200);
    if !has_v6() {
        return;
    }
    let at = SocketAddr::new(V6, port);
    assert_eq!(live(at), 200);
    let mut session = Session::begin(at, "2025-06-18");
    session.attach("my-thread");
    // One server: what began over one family goes on over the other.
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }).to_string();
    let reply = server.ask(&session.message(ping));
    assert_eq!(reply.done()["result"], json!({}));
    let mut connection = Connection::open(at);
    let by_name = Request::get("/api/v1/episodes").header("Host", &format!("localhost:{port}"));
    assert_eq!(connection.ask(&by_name).done()["open"], 1);
}

#[test]
fn a_server_that_is_told_one_family_answers_at_no_other() {
    let world = World::new();
    let server = world.serve(&["--host", "127.0.0.1"]);
    let port = server.address().port();
    assert_eq!(live(SocketAddr::new(V4, port)), 200);
    assert!(Connection::try_open(SocketAddr::new(V6, port)).is_err());
    if has_v6() {
        let server = world.serve(&["--host", "::1"]);
        assert_eq!(server.address().ip(), V6, "{}", server.url());
        server.session().ping();
    }
    for outside in ["0.0.0.0", "::", "192.168.0.7", "example.org"] {
        let said = world.run(&["serve", "--port", "0", "--host", outside]);
        assert_eq!(said.code, Some(2), "{outside}: {said:?}");
    }
}

#[test]
fn a_server_tells_where_it_answers_on_one_line_in_its_file_and_over_http() {
    let world = World::new();
    let server = world.serve(&[]);
    let file = world.state().join("server.json");
    assert_eq!(published(&world), server.address());
    let told: Value = serde_json::from_slice(&std::fs::read(&file).expect("it is there")).expect("it is JSON");
    let status = server.status();
    assert_eq!((&told["url"], &told["instance"]), (&json!(server.url()), &status["instance"]), "{told} {status}");
    assert_eq!((&status["url"], &status["pid"]), (&json!(server.url()), &json!(server.pid())), "{status}");
    assert_eq!((&status["standing"], &status["worktree"]), (&json!("serving"), &json!("main")), "{status}");
    let left = server.end(Signal::TERM);
    assert_eq!((left.code, left.err.as_str()), (Some(0), ""), "one line, and that was read: {left:?}");
    assert!(!file.exists(), "nobody is sent to where nobody answers");
}

#[test]
fn a_second_server_of_a_checkout_serves_too_and_does_not_pass_for_the_first() {
    let world = World::new();
    let first = world.serve(&[]);
    assert_eq!(published(&world), first.address());
    let second = world.serve(&[]);
    second.session().ping();
    assert_eq!(second.end(Signal::TERM).code, Some(0));
    assert_eq!(published(&world), first.address());
    first.session().ping();
}

/// An HTTP server that is no majordomus: it answers everything as if all were well.
fn stranger() -> (SocketAddr, thread::JoinHandle<Vec<String>>) {
    let (listener, port) = taken();
    let asked = thread::spawn(move || {
        let mut asked = Vec::new();
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { break };
            let mut bytes = [0; 4096];
            let read = stream.read(&mut bytes).unwrap_or(0);
            let text = String::from_utf8_lossy(&bytes[..read]).into_owned();
            if text.starts_with("GET /stop ") {
                break;
            }
            asked.push(text);
            let body = r#"{"standing":"serving","version":"9.9.9","pid":1,"instance":"00000000000000000000000000000000","status":"live","open":41,"detached":0,"episodes":[],"peers":77,"reattach_grace_seconds":900}"#;
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: ";
            let _ = stream.write_all(format!("{head}{}\r\n\r\n{body}", body.len()).as_bytes());
        }
        asked
    });
    (SocketAddr::new(V4, port), asked)
}

#[test]
fn an_http_server_of_somebody_else_at_the_told_port_is_not_taken_for_ours() {
    let world = World::new();
    let server = world.serve(&[]);
    let mut session = server.session();
    session.attach("my-thread");
    let _ = published(&world);
    let file = world.state().join("server.json");
    let told = std::fs::read_to_string(&file).expect("it is there");
    server.kill9();
    let (at, asked) = stranger();
    let port =
        address(serde_json::from_str::<Value>(&told).expect("it is JSON")["url"].as_str().expect("a url")).port();
    std::fs::write(&file, told.replace(&format!(":{port}"), &format!(":{}", at.port()))).expect("it can be written");

    let said = world.run(&["server", "status"]);
    assert_eq!(said.code, Some(3), "there is no server: {said:?}");
    assert!(!said.out.contains("9.9.9") && !said.out.contains("77"), "{said:?}");
    let said = world.run(&["episodes", "--json"]);
    assert_eq!(
        (said.code, said.json()["episodes"][0]["external_id"].as_str()),
        (Some(0), Some("my-thread")),
        "{said:?}"
    );
    let _ = Connection::open(at).try_write(b"GET /stop HTTP/1.1\r\n\r\n");
    let asked = asked.join().expect("the stranger ends");
    assert!(asked.iter().all(|request| !request.contains("my-thread")), "it is told nothing: {asked:?}");
}

#[test]
fn the_server_of_a_checkout_is_not_taken_for_that_of_its_copy() {
    let world = World::new();
    let server = world.serve(&[]);
    server.session().attach("original");
    let _ = published(&world);
    let copy = world.folder().join("copy");
    assert!(
        world.program("cp").args(["-R"]).arg(world.repository()).arg(&copy).status().is_ok_and(|done| done.success())
    );
    let run = |arguments: &[&str]| Running::start_with(world.majordomus(arguments).current_dir(&copy)).wait();
    let said = run(&["server", "status"]);
    assert_eq!(said.code, Some(3), "no server of the copy runs: {said:?}");
    let before = server.episodes();
    let said = run(&["announce", "meant for the copy"]);
    assert_ne!(said.code, Some(0), "{said:?}");
    let _ = run(&["episodes", "attach", "meant-for-the-copy"]);
    let listed = server.episodes();
    assert_eq!((&listed["open"], &listed["detached"]), (&before["open"], &before["detached"]), "{listed}");
    assert!(!server.ask(&Request::get("/api/v1/peers")).text().contains("meant for the copy"));
}
