//! A client's hooks and its connection to the server: one sitting, two witnesses, one record under the client's name.

use majordomus_e2e::{CLAUDE_CODE, COPILOT_CLI, Client, Vendor, World, session_id, until};
use serde_json::{Value, json};

const A: &str = "33f9c215-7d04-4eab-92d3-16e8fa04c795";
const B: &str = "440ad326-8e15-4fbc-83e4-27f90b15d8a6";

/// The variable in which each client names its conversation to the servers that it starts, and what it calls itself.
const KNOWN: [(&Vendor, &str, &str); 2] = [
    (&CLAUDE_CODE, "CLAUDE_CODE_SESSION_ID", "claude-code"),
    (&COPILOT_CLI, "COPILOT_AGENT_SESSION_ID", "copilot-cli"),
];

/// Starts the server as the client does, and opens its session under the client's name.
fn server(world: &World, variable: &str, id: &str, name: &str) -> Client {
    let mut client = Client::start(world.majordomus(&["mcp"]).env(variable, id));
    let about = json!({ "name": name, "version": "1" });
    client.ask("initialize", &json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": about }));
    client
}

#[test]
fn a_connection_joins_the_sitting_that_its_clients_hooks_opened() {
    for (vendor, variable, name) in KNOWN {
        let world = World::new();
        let opened = vendor.starts(&world, A);
        let mut client = server(&world, variable, A, name);
        let attached = client.attach("what the model called it");
        let joined = (&attached["episode"]["provider"], &attached["episode"]["external_id"]);
        assert_eq!(joined, (&json!(vendor.id), &json!(A)), "{attached}");
        assert_eq!(session_id(&attached), opened);
        vendor.works(&world, A);
        assert_eq!(client.lose().code, Some(0));
        assert!(world.records().is_empty() && world.logs("open").len() == 1, "a connection ends no such sitting");
        assert!(vendor.ends(&world, A).starts_with(&vendor.ended()));
        let record = world.record();
        assert_eq!((record.text("session_id"), record.text("provider")), (opened.as_str(), vendor.id));
        assert_eq!(record.end(), (vendor.outcome(), vendor.reason, "hook"));
        let mut witnesses: Vec<&str> = record["witnesses"].as_array().unwrap().iter().flat_map(Value::as_str).collect();
        witnesses.sort_unstable();
        assert_eq!(witnesses, ["connection", "hook"]);
    }
}

#[test]
fn a_detach_over_the_connection_leaves_the_sitting_to_its_hooks() {
    for (vendor, variable, name) in KNOWN {
        let world = World::new();
        vendor.starts(&world, A);
        let mut client = server(&world, variable, A, name);
        client.attach("x");
        client.detach();
        assert!(world.records().is_empty() && world.logs("open").len() == 1);
        assert!(vendor.ends(&world, A).starts_with(&vendor.ended()));
        assert_eq!(client.lose().code, Some(0));
        assert_eq!(world.record().end(), (vendor.outcome(), vendor.reason, "hook"));
    }
}

#[test]
fn an_end_by_the_hook_before_the_connection_goes_is_the_one_end() {
    for (vendor, variable, name) in KNOWN {
        let world = World::new();
        let opened = vendor.starts(&world, A);
        let mut client = server(&world, variable, A, name);
        client.attach("x");
        vendor.works(&world, A);
        assert!(vendor.ends(&world, A).starts_with(&vendor.ended()));
        client.tool("majordomus_episodes", &json!({}));
        assert_eq!(client.lose().code, Some(0));
        let record = world.record();
        assert_eq!((record.text("session_id"), record.end()), (&*opened, (vendor.outcome(), vendor.reason, "hook")));
        assert!(world.logs("open").is_empty());
    }
}

/// The variable of the server's process stays what it was when the person clears the conversation; the process does not.
#[test]
fn after_clearing_the_connection_joins_the_new_conversation_of_its_process() {
    let world = World::new();
    CLAUDE_CODE.starts(&world, A);
    CLAUDE_CODE.works(&world, A);
    let mut client = server(&world, "CLAUDE_CODE_SESSION_ID", A, "claude-code");
    CLAUDE_CODE.fire(&world, "end", "12-end-clear", A);
    let second = CLAUDE_CODE.fire(&world, "start", "14-start-clear", B);
    let second = second.split(' ').nth(1).unwrap().to_owned();
    let attached = client.attach("x");
    assert_eq!((session_id(&attached), &attached["episode"]["external_id"]), (second.clone(), &json!(B)), "{attached}");
    CLAUDE_CODE.works(&world, B);
    assert!(CLAUDE_CODE.ends(&world, B).starts_with(&CLAUDE_CODE.ended()));
    assert_eq!(client.lose().code, Some(0));
    let records = world.records();
    assert_eq!(records.len(), 2);
    let first = records.iter().find(|record| record["external_id"] == A).unwrap();
    assert_eq!((first.end(), &first["witnesses"]), (("closed", "clear", "hook"), &json!(["hook"])));
}

/// Without hooks the variable names nothing that is open: the connection is an episode of its own, as ever.
#[test]
fn a_connection_without_hooks_is_its_own_sitting() {
    for (_, variable, name) in KNOWN {
        let world = World::new();
        let mut client = server(&world, variable, A, name);
        let attached = client.attach("my thread");
        assert_eq!(attached["episode"]["external_id"], "my thread", "{attached}");
        client.detach();
        assert_eq!(client.lose().code, Some(0));
        let record = world.record();
        assert_eq!((record.text("external_id"), record.end()), ("my thread", ("closed", "detach", "connection")));
    }
}

/// Another client's connection, which has no such variable, joins nobody's sitting.
#[test]
fn a_connection_of_somebody_else_leaves_the_sitting_alone() {
    let world = World::new();
    let opened = CLAUDE_CODE.starts(&world, A);
    let mut client = world.client();
    let attached = client.attach("another thread");
    assert_eq!(attached["episode"]["provider"], "generic", "{attached}");
    client.detach();
    assert_eq!(client.lose().code, Some(0));
    CLAUDE_CODE.works(&world, A);
    CLAUDE_CODE.ends(&world, A);
    let records = until("both have their records", || Some(world.records()).filter(|records| records.len() == 2));
    let of_hooks = records.iter().find(|record| record["session_id"] == opened.as_str()).unwrap();
    assert_eq!((&of_hooks["witnesses"], &of_hooks["attachments"]), (&json!(["hook"]), &json!(1)));
}
