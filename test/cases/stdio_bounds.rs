//! Sizes and pace over stdio: long lines, long answers, clients that do not read.

use majordomus_e2e::{INITIALIZE, World, attach_line, feed};
use serde_json::{Value, json};

const MIB: usize = 1 << 20;

#[test]
fn a_message_of_a_megabyte_is_answered() {
    let world = World::new();
    let mut client = world.client();
    let refused = client.tool("majordomus_session_attach", &json!({ "external_id": "x".repeat(MIB) }));
    assert_eq!(refused["isError"], true, "{refused}");
    let done = client.tool("majordomus_announce", &json!({ "intent": "x", "scope": [], "more": "x".repeat(MIB) }));
    assert_eq!(done["isError"], true, "{done}");
    client.ping();
    assert_eq!(client.lose().err, "");
    assert!(world.nothing_recorded());
}

#[test]
fn a_message_over_the_bound_is_answered_with_an_error_and_skipped() {
    let world = World::new();
    let mut client = world.client();
    let mut line = vec![b'x'; 5 * MIB];
    line.push(b'\n');
    client.write(&line);
    let answer = client.receive();
    assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(-32600), &Value::Null), "{answer}");
    client.ping();
    client.attach("my-thread");
}

#[test]
fn answers_of_every_size_arrive_whole_also_when_the_input_is_closed_already() {
    let world = World::new();
    let empty = r#"{"jsonrpc":"2.0","id":"","result":{}}"#.len() + 1;
    for size in [4_095, 4_096, 4_097, 16_384, 65_535, 65_536, 65_537, 1_000_000] {
        let id = "i".repeat(size - empty);
        let said = feed(
            &mut world.majordomus(&["mcp"]),
            format!("{{\"jsonrpc\":\"2.0\",\"id\":\"{id}\",\"method\":\"ping\"}}\n").as_bytes(),
        );
        assert_eq!((said.code, said.out.len()), (Some(0), size));
        assert!(said.out.ends_with("\"result\":{}}\n"));
    }
}

#[test]
fn everything_that_was_sent_before_the_end_of_input_is_answered_in_order() {
    let world = World::new();
    let mut input = format!("{INITIALIZE}\n");
    for id in 2..2000 {
        input += &format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/list\"}}\n");
    }
    // The last line has no end, as of a client that was cut off after it had said everything.
    input += attach_line("my-thread").replacen("\"id\":2", "\"id\":2000", 1).trim_end();
    let said = feed(&mut world.majordomus(&["mcp"]), input.as_bytes());
    let ids = said.out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].as_u64().unwrap());
    assert!(ids.eq(1..=2000));
    assert_eq!(said.code, Some(0));
    assert_eq!(world.episodes()["detached"], 1);
}

/// The resident memory of a process in bytes; `None` where the system does not say.
fn memory(pid: u32) -> Option<usize> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<usize>().ok()? * 1024)
}

#[test]
fn a_client_that_does_not_read_is_waited_for_within_bounded_memory_and_loses_nothing() {
    const REQUESTS: usize = 4000;
    let world = World::new();
    let mut client = world.server(&["mcp"]);
    let flood = client.flood(REQUESTS);
    assert!(flood.until_it_stands() < REQUESTS - 1, "it takes everything, whatever waits");
    if let Some(memory) = memory(client.pid()) {
        assert!(memory < 64 * MIB, "{memory} bytes");
    }
    // Another process serves meanwhile.
    let mut other = world.client();
    other.attach("my-thread");
    other.detach();

    for id in 1..=REQUESTS {
        let line = client.line().expect("the server answers");
        assert!(line.starts_with(&format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},")), "{}", &line[..60]);
    }
    flood.join();
    assert_eq!(client.wait().code, Some(0));
}
