//! Who may call over TCP, and which checkout's server an address means.

#![allow(clippy::print_stderr, reason = "a test that is skipped says why")]

use std::fs;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use majordomus_capability::{Effect, Shared, catalogue};
use majordomus_episodes_core::EpisodeBoard;
use majordomus_episodes_core::peers::PeerBoard;
use majordomus_mcp_server::http::{Bound, Callers, HttpLimits, Listen, Port, TOKEN_HEADER};
use majordomus_mcp_server::{HttpOptions, serve_http};
use majordomus_records::{Checkout, Policy, Store};
use rustix::process::{Uid, geteuid};
use serde_json::{Value, json};

use crate::talk::{Answer, Over};

const ATTACH: &str = "/api/v1/episodes/attach";

/// A folder that looks enough like a repository, and what is kept of it.
fn store() -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let git = folder.path().join(".git");
    for name in ["objects", "refs"] {
        fs::create_dir_all(git.join(name)).unwrap();
    }
    fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    let store = Store::open(Checkout::find(folder.path()).unwrap(), Policy::default());
    (folder, store)
}

/// A server of a checkout, or of none, and what it said for people.
fn serve(store: Option<&Store>, callers: Callers, limits: HttpLimits) -> (Over, Vec<String>) {
    let shared = Shared::new(Arc::new(catalogue()), EpisodeBoard::new(), PeerBoard::new());
    let shared = Arc::new(shared.with_records(store.cloned()));
    let bound = Bound::new(&Listen { addresses: Listen::LOOPBACK.to_vec(), port: Port::Exactly(0) }).unwrap();
    let said = Arc::new(Mutex::new(Vec::new()));
    let says = said.clone();
    let mut options = HttpOptions::new(shared.clone(), "0".repeat(32));
    options.diagnostics = Arc::new(move |line| says.lock().unwrap().push(line.to_owned()));
    (options.callers, options.limits) = (callers, limits);
    let over = Over { server: serve_http(bound, options).unwrap(), shared };
    let said = said.lock().unwrap().clone();
    (over, said)
}

fn initialize() -> Value {
    let about =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": about})
}

/// The routes of everything that changes something.
fn changing_routes() -> Vec<&'static str> {
    let registry = catalogue();
    let changing = registry.capabilities().iter().map(|capability| capability.descriptor());
    let changing = changing.filter(|descriptor| descriptor.effect != Effect::Read);
    let routes: Vec<_> = changing.filter_map(|descriptor| descriptor.route).map(|route| route.path).collect();
    assert!(routes.len() >= 3 && routes.contains(&ATTACH), "{routes:?}");
    routes
}

/// What the API answers to everything that changes something, and `/mcp` to what begins and to what ends.
fn changing(over: &Over, headers: &[(&str, &str)]) -> (Vec<Answer>, [Answer; 2]) {
    let mut connection = over.connect();
    let about = json!({"external_id": "a"});
    let api = changing_routes().into_iter().map(|route| connection.post(route, headers, &about)).collect();
    let begin = connection.post("/mcp", headers, &initialize());
    connection.send("DELETE", "/mcp", headers, "");
    (api, [begin, connection.read()])
}

fn queries(over: &Over) {
    let mut connection = over.connect();
    for query in ["/api/v1/episodes", "/api/v1/server", "/api/v1/live", "/openapi.json", "/"] {
        connection.send("GET", query, &[], "");
        assert_eq!(connection.read().status, 200, "{query}");
    }
}

fn is_forbidden(answer: &Answer, over_mcp: bool) -> String {
    assert_eq!(answer.status, 403);
    let error = &answer.json()["error"];
    assert_eq!(error["code"], if over_mcp { json!(-32600) } else { json!("forbidden") }, "{error}");
    format!("{} {}", error["message"], error["hint"])
}

/// Whether a call was refused for want of the token, and not for what it wanted.
fn wants_token(answer: &Answer) -> bool {
    answer.status == 403 && String::from_utf8_lossy(&answer.body).contains(TOKEN_HEADER)
}

#[test]
fn where_callers_are_not_told_every_change_needs_the_token_and_no_query_does() {
    let (_folder, store) = store();
    let (over, said) = serve(Some(&store), Callers::Shown, HttpLimits::default());
    let token = store.token().unwrap();
    let path = store.state().roots()[0].join("token");
    assert_eq!(fs::read_to_string(&path).unwrap(), token);
    assert!(said.len() == 1 && said[0].contains(&*path.to_string_lossy()), "{said:?}");
    let close = format!("{}{}", &token[..31], if token.ends_with('0') { '1' } else { '0' });
    let long = format!("{token}0");
    for wrong in [
        &[] as &[(&str, &str)],
        &[(TOKEN_HEADER, "")],
        &[(TOKEN_HEADER, &close)],
        &[(TOKEN_HEADER, &long)],
        &[(TOKEN_HEADER, &token), (TOKEN_HEADER, &token)],
    ] {
        let (api, mcp) = changing(&over, wrong);
        for (answer, over_mcp) in api.iter().map(|api| (api, false)).chain(mcp.iter().map(|mcp| (mcp, true))) {
            let text = is_forbidden(answer, over_mcp);
            assert!(text.contains(TOKEN_HEADER) && text.contains(&*path.to_string_lossy()), "{text}");
            assert!(!text.contains(&token));
        }
    }
    assert!(over.shared.board.list().is_empty() && over.shared.peers.list().is_empty());
    queries(&over);
    let (api, [begin, delete]) = changing(&over, &[(TOKEN_HEADER, &token)]);
    assert!(!api.iter().any(wants_token) && api.iter().any(|answer| answer.status == 200));
    assert_eq!((begin.status, delete.status), (200, 400));
    over.server.stop();
    assert!(!path.exists());
    let (over, _) = serve(Some(&store), Callers::Shown, HttpLimits::default());
    assert_ne!(store.token().unwrap(), token, "it is new at each start");
    drop(over.server);
    assert_eq!(store.token(), None);
}

#[test]
fn where_there_is_no_place_for_a_token_nothing_is_changed() {
    let (over, said) = serve(None, Callers::Shown, HttpLimits::default());
    assert!(said.len() == 1 && said[0].contains("outside a repository"), "{said:?}");
    let (api, mcp) = changing(&over, &[(TOKEN_HEADER, "")]);
    assert!(api.iter().all(|answer| is_forbidden(answer, false).contains("stdio")));
    assert!(mcp.iter().all(|answer| is_forbidden(answer, true).contains("stdio")));
    queries(&over);
}

#[test]
fn where_callers_are_told_there_is_no_token() {
    let (_folder, store) = store();
    let (over, said) = serve(Some(&store), Callers::Told, HttpLimits::default());
    if !said.is_empty() {
        return eprintln!("this system does not tell: {said:?}");
    }
    assert_eq!(store.token(), None);
    let (api, [begin, _]) = changing(&over, &[]);
    assert!(!api.iter().any(wants_token) && begin.status == 200);
}

/// Does something as another user; `None` where the tests do not run as root.
fn as_another<T: Send>(act: impl FnOnce() -> T + Send) -> Option<T> {
    if !geteuid().is_root() {
        eprintln!("not run as root: there is no second user");
        return None;
    }
    let another = Uid::from_raw(61_234);
    let act = || {
        // This thread's alone, and there is no way back from it.
        rustix::thread::set_thread_res_uid(another, another, another).unwrap();
        act()
    };
    Some(thread::scope(|scope| scope.spawn(act).join().unwrap()))
}

#[test]
fn strangers_take_no_room_from_the_server_and_do_not_stay() {
    let limits =
        HttpLimits { connections: 1, strangers: 2, stranger_time: Duration::from_millis(300), ..HttpLimits::default() };
    let (over, said) = serve(None, Callers::Told, limits);
    if !said.is_empty() {
        return eprintln!("this system does not tell: {said:?}");
    }
    // They say nothing, for as long as they may.
    let Some(silent) = as_another(|| [over.connect(), over.connect()]) else { return };
    let mut third = as_another(|| over.connect()).unwrap();
    assert_eq!(third.read().status, 403, "there is no room for more of them");
    assert_eq!(over.connect().post(ATTACH, &[], &json!({"external_id": "a"})).status, 200);
    for silent in silent {
        silent.closed();
    }
    let mut later = as_another(|| over.connect()).unwrap();
    later.send("GET", "/api/v1/live", &[], "");
    let answer = later.read();
    assert!(is_forbidden(&answer, false).contains("61234"));
    assert_eq!(answer.header("connection"), Some("close"));
    later.closed();
}

/// Asks `/mcp` in all its ways with a query; whoever is let through is answered by something else than these.
fn asked(over: &Over, query: &str) -> [Answer; 3] {
    let target = format!("/mcp{query}");
    let mut connection = over.connect();
    let begin = connection.post(&target, &[], &initialize());
    connection.send("DELETE", &target, &[], "");
    let delete = connection.read();
    connection.send("GET", &target, &[("accept", "text/event-stream")], "");
    [begin, delete, connection.read()]
}

#[test]
fn an_address_that_names_another_checkout_is_misdirected() {
    let ((_here, here), (_there, there)) = (store(), store());
    let (id, other) = (here.checkout().id(), there.checkout().id());
    let (over, _) = serve(Some(&here), Callers::Told, HttpLimits::default());
    for fine in ["", "?", "?x=1", &format!("?checkout={id}"), &format!("?x=1&checkout={id}&y"), "?Checkout=1"] {
        let [begin, delete, get] = asked(&over, fine);
        assert_eq!((begin.status, delete.status, get.status), (200, 400, 405), "{fine}");
    }
    let before = over.shared.peers.list().len();
    for answer in asked(&over, &format!("?checkout={other}")) {
        let error = &answer.json()["error"];
        let text = error["message"].as_str().unwrap();
        assert_eq!((answer.status, &error["code"]), (421, &json!(-32600)));
        let place = here.checkout().worktree.clone().unwrap();
        let named = [&*id, &*other, &*place.to_string_lossy(), "majordomus serve"];
        assert!(named.iter().all(|named| text.contains(named)), "{text}");
    }
    let twice = format!("?checkout={id}&checkout={id}");
    for bad in ["?checkout", "?checkout=", "?checkout=x", &twice, &format!("?checkout={}", id.to_uppercase() + "0")] {
        for answer in asked(&over, bad) {
            assert_eq!((answer.status, &answer.json()["error"]["code"]), (400, &json!(-32600)), "{bad}");
        }
    }
    assert_eq!(over.shared.peers.list().len(), before);
    // The API is not asked for by clients whose configuration outlives a server.
    let mut connection = over.connect();
    connection.send("GET", "/api/v1/live", &[], "");
    assert_eq!(connection.read().status, 200);
}

#[test]
fn a_server_outside_a_repository_is_no_checkouts() {
    let (over, _) = serve(None, Callers::Told, HttpLimits::default());
    let [begin, ..] = asked(&over, "?checkout=0123456789abcdef");
    assert_eq!(begin.status, 421);
    assert!(begin.json()["error"]["message"].as_str().unwrap().contains("for no checkout"));
}
