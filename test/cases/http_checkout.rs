//! Two repositories on one configured port: a client that says which checkout it means never ends up at the other one's.

use std::net::TcpListener;

use majordomus_e2e::{Connection, Reply, Request, Server, World, initialize, published};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// What a client's configuration calls a checkout.
fn id(world: &World) -> String {
    let git = world.path(".git");
    let digest = Sha256::digest(git.to_str().expect("the path is UTF-8"));
    digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// Begins a session at the address of a checkout.
fn begin(connection: &mut Connection, id: &str) -> Reply {
    connection.ask(&Request::post(&format!("/mcp?checkout={id}"), &initialize("2025-06-18")))
}

fn misdirected(reply: &Reply, asked: &World, meant: &World) {
    assert_eq!((reply.status, reply.code()), (421, json!(-32600)), "{reply:?}");
    let body = reply.json();
    let message = body["error"]["message"].as_str().expect("an error has a message");
    let place = asked.repository().to_str().expect("the path is UTF-8");
    for named in [&*id(asked), &*id(meant), place, "majordomus serve"] {
        assert!(message.contains(named), "{named}: {message}");
    }
}

#[test]
fn a_client_of_one_checkout_is_told_that_anothers_server_has_its_port() {
    let (first, second) = (World::new(), World::new());
    let port = {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("there is a free port");
        listener.local_addr().expect("it has an address").port()
    };
    let serving = Server::start(&mut first.majordomus(&["serve", "--port", &port.to_string()]));
    let mut client = second.server(&["mcp", "--http-port", &port.to_string()]);
    client.initialize();
    let theirs = published(&second);
    assert_ne!(theirs, serving.address(), "the port was taken");
    let (mut at_first, mut at_second) = (serving.connect(), Connection::open(theirs));

    misdirected(&begin(&mut at_first, &id(&second)), &first, &second);
    misdirected(&begin(&mut at_second, &id(&first)), &second, &first);
    assert_eq!(serving.status()["peers"], 0);
    assert_eq!(begin(&mut at_first, &id(&first)).status, 200);
    let begun = begin(&mut at_second, &id(&second));
    assert_eq!(begun.status, 200);

    // Also what belongs to a session, and what ends one.
    let session = begun.header("mcp-session-id").expect("a session has an id");
    let ping = json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" });
    let of_session = |request: Request| request.header("Mcp-Session-Id", session);
    let target = |id: &str| format!("/mcp?checkout={id}");
    let wrong = target(&id(&first));
    for request in
        [Request::post(&wrong, &ping), Request::new("GET", &wrong), Request::new("DELETE", &wrong)].map(of_session)
    {
        misdirected(&at_second.ask(&request), &second, &first);
    }
    let right = target(&id(&second));
    assert_eq!(at_second.ask(&of_session(Request::post(&right, &ping))).done()["result"], json!({}));
    assert_eq!(at_second.ask(&of_session(Request::post("/mcp?other=1", &ping))).status, 200);
    assert_eq!(at_second.ask(&of_session(Request::new("DELETE", &right))).status, 204);
    assert!(client.lose().code == Some(0));
}

#[test]
fn an_address_that_names_no_checkout_or_several_is_400_and_one_that_names_none_is_as_ever() {
    let world = World::new();
    let server = world.serve(&[]);
    let own = id(&world);
    let ask = |query: &str| server.ask(&Request::post(&format!("/mcp{query}"), &initialize("2025-06-18")));
    for bad in [
        "?checkout=",
        "?checkout",
        "?checkout=main",
        &format!("?checkout={own}0"),
        &format!("?checkout={}", &own[1..]),
        "?checkout=0123456789ABCDEF",
        "?checkout=0123456789abcde%00",
        &format!("?checkout={own}&checkout={own}"),
        &format!("?checkout={own}&x=1&checkout=0123456789abcdef"),
    ] {
        let reply = ask(bad);
        assert_eq!((reply.status, reply.code()), (400, json!(-32600)), "{bad}: {reply:?}");
    }
    for fine in ["", "?", "?x=1&checkouts=2", &format!("?x=1&checkout={own}"), &format!("?checkout={own}&checkout2=1")]
    {
        assert_eq!(ask(fine).status, 200, "{fine}");
    }
    // A linked worktree is a checkout of its own.
    let linked = world.folder().join("linked");
    world.git(&["worktree", "add", "--quiet", linked.to_str().expect("the path is UTF-8")]);
    let mut serve = world.majordomus(&["serve", "--port", "0"]);
    let other = Server::start(serve.current_dir(&linked));
    let reply = other.ask(&Request::post(&format!("/mcp?checkout={own}"), &initialize("2025-06-18")));
    assert_eq!(reply.status, 421, "{reply:?}");
    assert_eq!(other.ask(&Request::get("/api/v1/episodes?checkout=x")).status, 400, "the API has its own arguments");
    assert!(matches!(server.status(), Value::Object(_)));
}
