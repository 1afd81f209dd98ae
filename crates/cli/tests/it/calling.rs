//! Commands of the registry, run as a person runs them.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::path::Path;

use majordomus_records::serving::{FORMAT, Published, Serving};
use majordomus_records::{Checkout, Policy, Store};
use rustix::net::{AddressFamily, SocketType};
use serde_json::{Value, json};

use crate::canned::Canned;
use crate::place::{majordomus, repository};

const OURS: (&str, &str) = ("200 OK", r#"{"instance":"0123456789abcdef0123456789abcdef"}"#);
const HANDLE: &str = "ep_y_hjSuTQrgDQPjq1Zsas5Q";

/// The server of a checkout, as far as others can see one.
struct Standing {
    store: Store,
    serving: Serving,
}

impl Standing {
    fn new(folder: &Path) -> Self {
        let store = Store::open(Checkout::find(folder).unwrap(), Policy::default());
        let serving = store.serve().unwrap().unwrap();
        Self { store, serving }
    }

    /// Says that it answers there.
    fn at(mut self, url: &str) -> Self {
        let instance = "0123456789abcdef0123456789abcdef".into();
        let (version, pid) = ("0.1.0".into(), 7);
        let published = Published { format: FORMAT, url: url.into(), instance, version, pid, socket: None };
        self.store.advertise(&mut self.serving, &published).unwrap();
        self
    }
}

fn publish(folder: &Path, url: &str) -> Standing {
    Standing::new(folder).at(url)
}

/// A port that is taken and that nobody listens at.
fn deaf() -> (OwnedFd, String) {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    rustix::net::bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = SocketAddrV4::try_from(rustix::net::getsockname(&socket).unwrap()).unwrap();
    (socket, format!("http://{address}"))
}

#[test]
fn an_answer_is_printed_as_text_or_as_it_came() {
    let peers = json!({ "peers": [{ "id": "p1", "transport": "stdio", "intent": "x\u{1b}[31m" }], "later": 1 });
    let folder = repository();
    let body = peers.to_string();
    let canned = Canned::answering(&[OURS, ("200 OK", &body), OURS, ("200 OK", &body)]);
    let _standing = publish(folder.path(), &canned.url);
    let said = majordomus(folder.path(), &["peers", "--limit", "2"], &[]);
    let expected = "peers:\n  id  transport  intent\n  p1  stdio      x\\u{1b}[31m\nlater: 1\n";
    assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (Some(0), expected, ""));
    let said = majordomus(folder.path(), &["peers", "--json"], &[]);
    assert_eq!((said.code, serde_json::from_str::<Value>(&said.out).unwrap()), (Some(0), peers), "{said:?}");
    let lines: Vec<_> = canned.asked().into_iter().map(|asked| asked.line).collect();
    let named = "GET /api/v1/server";
    assert_eq!(lines, [named, "GET /api/v1/peers?limit=2", named, "GET /api/v1/peers"]);
}

#[test]
fn a_handle_comes_from_the_environment_unless_a_flag_gives_another_and_goes_only_where_it_is_taken() {
    let folder = repository();
    let canned = Canned::answering(&[OURS, ("200 OK", "{}"), OURS, ("200 OK", "{}"), OURS, ("200 OK", "{}")]);
    let _standing = publish(folder.path(), &canned.url);
    let variables = [("MAJORDOMUS_EPISODE_HANDLE", HANDLE)];
    for arguments in [
        &["announce", "Mend it", "--scope", "a", "--scope", "b"][..],
        &["announce", "Mend it", "--episode-handle", "ep_other"],
        &["episodes", "close", "thread-7"],
    ] {
        assert_eq!(majordomus(folder.path(), arguments, &variables).code, Some(0), "{arguments:?}");
    }
    let asked = canned.asked();
    let calls: Vec<_> = asked.iter().filter(|asked| asked.line.starts_with("POST ")).collect();
    let handles: Vec<_> = calls.iter().map(|asked| asked.header("majordomus-episode-handle")).collect();
    assert_eq!(handles, [Some(HANDLE), Some("ep_other"), None]);
    let bodies: Vec<Value> = calls.iter().map(|asked| serde_json::from_str(&asked.body).unwrap()).collect();
    let announced = json!({ "intent": "Mend it", "scope": ["a", "b"] });
    assert_eq!(bodies, [announced, json!({ "intent": "Mend it" }), json!({ "external_id": "thread-7" })]);

    let said = majordomus(folder.path(), &["announce", "x"], &[("MAJORDOMUS_EPISODE_HANDLE", "two words")]);
    assert_eq!((said.code, said.out.as_str()), (Some(1), ""), "{said:?}");
    assert!(said.err.contains("MAJORDOMUS_EPISODE_HANDLE") && said.err.contains("\nhint: "), "{said:?}");
}

#[test]
fn no_proxy_stands_between_a_command_and_this_machine() {
    let folder = repository();
    let (canned, proxy) = (Canned::answering(&[OURS, ("200 OK", "{}")]), Canned::answering(&[]));
    let _standing = publish(folder.path(), &canned.url);
    let names = ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"];
    let said = majordomus(folder.path(), &["peers"], &names.map(|name| (name, proxy.url.as_str())));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!((canned.asked().len(), proxy.asked().len()), (2, 0));
}

#[test]
fn a_refusal_exits_1_and_says_what_to_do() {
    let folder = repository();
    let refused = json!({ "error": { "code": "not_found", "message": "no episode\u{7}", "hint": "look again" } });
    let canned = Canned::answering(&[OURS, ("404 Not Found", &refused.to_string())]);
    let _standing = publish(folder.path(), &canned.url);
    let said = majordomus(folder.path(), &["episodes", "close", "x", "--json"], &[]);
    let expected = "error: no episode\\u{7}\nhint: look again\n";
    assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (Some(1), "", expected));
}

#[test]
fn a_server_that_gave_no_answer_may_have_done_what_it_was_asked() {
    let folder = repository();
    let canned = Canned::answering(&[OURS, ("", "")]);
    let _standing = publish(folder.path(), &canned.url);
    let said = majordomus(folder.path(), &["episodes", "close", "x"], &[]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.err.contains("gave no answer") && said.err.contains("hint: it may have done it"), "{said:?}");
}

#[test]
fn without_a_server_a_command_that_needs_one_exits_3() {
    const NO_SERVER: &str =
        "error: no server runs for this checkout\nhint: start one in this checkout: majordomus serve ensure\n";
    let folder = repository();
    let none = |arguments: &[&str]| {
        let said = majordomus(folder.path(), arguments, &[]);
        assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (Some(3), "", NO_SERVER), "{arguments:?}");
    };
    for arguments in [&["peers"][..], &["server", "status", "--json"], &["announce", "x"], &["episodes", "detach"]] {
        none(arguments);
    }
    let stranger = Canned::answering(&[("200 OK", r#"{"instance":"another"}"#), ("200 OK", "{}")]);
    let standing = publish(folder.path(), &stranger.url);
    none(&["peers"]);
    assert_eq!(stranger.asked().len(), 1);
    let (_socket, url) = deaf();
    let standing = standing.at(&url);
    none(&["peers"]);
    let mute = Canned::answering(&[("", "")]);
    let _standing = standing.at(&mute.url);
    let said = majordomus(folder.path(), &["peers"], &[]);
    assert_eq!(said.code, Some(3), "{said:?}");
    assert!(said.err.starts_with("error: the server of this checkout does not answer at http://"), "{said:?}");
}

#[test]
fn outside_a_repository_the_error_is_the_one_of_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let said = majordomus(folder.path(), &["peers"], &[]);
    assert_eq!((said.code, said.out.as_str()), (Some(1), ""));
    assert!(said.err.contains("is not in a git repository") && said.err.contains("git init"), "{said:?}");
}

#[test]
fn what_only_reads_declarations_needs_neither_a_server_nor_a_repository() {
    let folder = tempfile::tempdir().unwrap();
    let said = majordomus(folder.path(), &["capabilities"], &[]);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{said:?}");
    assert!(said.out.starts_with("capabilities:\n  - id: episodes.list\n    title: "), "{said:?}");
    let said = majordomus(folder.path(), &["capabilities", "describe", "peers.list", "--json"], &[]);
    let described: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(described["capability"]["path"], "/api/v1/peers");
    let said = majordomus(folder.path(), &["capabilities", "describe", "peers.none"], &[]);
    assert_eq!((said.code, said.out.as_str()), (Some(1), ""), "{said:?}");
    assert!(said.err.starts_with("error: there is no capability peers.none\nhint: "), "{said:?}");
}

#[test]
fn episodes_without_more_words_lists_what_the_logs_say() {
    let folder = repository();
    let said = majordomus(folder.path(), &["episodes", "--json"], &[]);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{said:?}");
    let expected = json!({ "open": 0, "detached": 0, "episodes": [] });
    assert_eq!(serde_json::from_str::<Value>(&said.out).unwrap(), expected);
}

#[test]
fn a_wrong_command_line_exits_2_and_asks_nobody() {
    let folder = repository();
    let canned = Canned::answering(&[OURS]);
    let _standing = publish(folder.path(), &canned.url);
    for arguments in [
        &["peers", "extra"][..],
        &["peers", "--limit", "0"],
        &["announce"],
        &["server"],
        &["episodes", "extra"],
        &["episodes", "--json", "close", "x"],
        &["capabilities", "describe"],
        &["serve", "extra"],
    ] {
        let said = majordomus(folder.path(), arguments, &[]);
        assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{arguments:?}: {said:?}");
    }
    assert_eq!(canned.asked().len(), 0);
}

#[test]
fn a_variable_that_names_no_host_is_an_error_before_anything_is_served() {
    let folder = repository();
    for (name, value) in [("MAJORDOMUS_ALLOWED_HOSTS", "a.example,b/c"), ("MAJORDOMUS_ALLOWED_ORIGINS", "a.example")] {
        let said = majordomus(folder.path(), &["mcp"], &[(name, value)]);
        assert_eq!((said.code, said.out.as_str()), (Some(1), ""), "{said:?}");
        assert!(said.err.starts_with(&format!("error: {name}: ")) && said.err.contains("\nhint: "), "{said:?}");
    }
}
