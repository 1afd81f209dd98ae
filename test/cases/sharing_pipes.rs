//! A bridge passes on what its client says and what is answered, byte for byte, and keeps nobody else waiting.

use std::io::Write;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use majordomus_e2e::{INITIALIZE, Said, World, attach_line, detach_line, feed, until};
use serde_json::{Value, json};

const MIB: usize = 1 << 20;

/// What a client is told by a server of its own, and what it is told over a bridge.
fn both_ways(world: &World, input: &[u8]) -> [Said; 2] {
    let own = feed(&mut world.majordomus(&["mcp", "--standalone"]), input);
    let bridged = feed(&mut world.majordomus(&["mcp"]), input);
    [own, bridged]
}

fn same_both_ways(world: &World, what: &str, input: &[u8]) -> Said {
    let [own, bridged] = both_ways(world, input);
    assert_eq!((own.code, bridged.code), (Some(0), Some(0)), "{what}: {bridged:?}");
    assert_eq!(own.out.lines().count(), bridged.out.lines().count(), "{what}");
    for (own, bridged) in own.out.lines().zip(bridged.out.lines()) {
        assert_eq!(own, bridged, "{what}");
    }
    assert_eq!(own.out, bridged.out, "{what}");
    bridged
}

const AFTER: &str = "{\"jsonrpc\":\"2.0\",\"id\":\"after\",\"method\":\"ping\"}\n";

#[test]
fn what_a_client_says_is_answered_over_a_bridge_as_it_is_by_a_server_of_its_own() {
    let world = World::new();
    let mut holder = world.holder();
    let twice = |line: &str| format!("{line}\n{INITIALIZE}\n{line}\n{AFTER}");
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("nothing", Vec::new()),
        ("blank lines", twice("\n\r\n \n").into_bytes()),
        ("a byte-order mark", format!("\u{feff}{INITIALIZE}\n{AFTER}").into_bytes()),
        ("carriage returns", format!("{INITIALIZE}\r\n{}", AFTER.replace('\n', "\r\n")).into_bytes()),
        ("bytes that are no text", [b"\xff\xfe\n".as_slice(), INITIALIZE.as_bytes(), b"\n\xff\xfe\n", AFTER.as_bytes()].concat()),
        ("no JSON", twice("not json").into_bytes()),
        ("half a message", twice(r#"{"jsonrpc":"2.0","id":3,"method":"#).into_bytes()),
        ("an id of null", twice(r#"{"jsonrpc":"2.0","id":null,"method":"tools/list"}"#).into_bytes()),
        ("an id that is an object", twice(r#"{"jsonrpc":"2.0","id":{},"method":"tools/list"}"#).into_bytes()),
        ("ids of many forms", twice(&["\"abc\"", "1", "\"1\"", "9007199254740993", "-1", "\"\"", "1.5"]
            .map(|id| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}")).join("\n")).into_bytes()),
        ("the same id twice", twice("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}\n{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/list\"}").into_bytes()),
        ("a batch", twice(r#"[{"jsonrpc":"2.0","id":2,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}]"#).into_bytes()),
        ("an empty batch", twice("[]").into_bytes()),
        ("a batch of numbers", twice("[1,2]").into_bytes()),
        ("an unknown method", twice(r#"{"jsonrpc":"2.0","id":3,"method":"nobody/knows"}"#).into_bytes()),
        ("an unknown tool", twice(r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"nobody_knows"}}"#).into_bytes()),
        ("no parameters", twice(r#"{"jsonrpc":"2.0","id":3,"method":"tools/call"}"#).into_bytes()),
        ("deep nesting", twice(&format!("{{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"ping\",\"params\":{}{}}}", "[".repeat(5000), "]".repeat(5000))).into_bytes()),
        ("a last line without its end", format!("{INITIALIZE}\n{}", AFTER.trim_end()).into_bytes()),
        ("lists", twice(r#"{"jsonrpc":"2.0","id":3,"method":"tools/list"}"#).into_bytes()),
        ("resources", twice("{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"resources/list\"}\n{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"prompts/list\"}").into_bytes()),
        ("a probe of a later revision", format!("{}\n{INITIALIZE}\n{AFTER}", r#"{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#).into_bytes()),
        ("what a server says to a bridge", twice("{\"majordomus\":\"farewell\",\"why\":\"stopped\"}\n{\"majordomus\":\"farewell\",\"why\":\"moved\"}").into_bytes()),
        ("what a bridge says to a server", twice(r#"{"majordomus":"stop","format":1,"version":"0","checkout":"","pid":1}"#).into_bytes()),
        ("a refused attach", format!("{INITIALIZE}\n{}{}", attach_line(""), attach_line("two\nlines"))
            .into_bytes()),
        ("a refused detach", format!("{INITIALIZE}\n{}", detach_line()).into_bytes()),
    ];
    for (what, input) in &cases {
        same_both_ways(&world, what, input);
        holder.ping();
    }
    assert_eq!(holder.peers().len(), 1);
    assert!(world.nothing_recorded());
}

#[test]
fn a_thousand_lines_of_garbage_are_answered_as_by_a_server_of_its_own_and_errors_not_at_all() {
    let world = World::new();
    let mut holder = world.holder();
    let log: String = (0..1000).map(|line| format!("2026-01-02 12:00:00 INFO line {line} of a log\n")).collect();
    let said = same_both_ways(&world, "a log", format!("{log}{INITIALIZE}\n{log}{AFTER}").as_bytes());
    let after = said.out.lines().last().map(|line| line.contains("\"after\""));
    assert_eq!(after, Some(true), "the connection lives");
    let errors =
        "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"Parse error\"}}\n".repeat(1000);
    let results = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n".repeat(1000);
    let said = same_both_ways(&world, "errors", format!("{INITIALIZE}\n{errors}{results}{AFTER}").as_bytes());
    assert_eq!(said.out.lines().count(), 2, "what is shaped like an answer is never answered");
    holder.ping();
}

#[test]
fn a_line_over_the_bound_is_refused_over_a_bridge_as_by_a_server_of_its_own() {
    let world = World::new();
    let mut holder = world.holder();
    for size in [4 * MIB - 1, 4 * MIB, 4 * MIB + 1, 9 * MIB] {
        let empty = "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"ping\",\"params\":{\"_meta\":{\"x\":\"\"}}}".len();
        let padding = "x".repeat(size - empty);
        let line = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"ping\",\"params\":{{\"_meta\":{{\"x\":\"{padding}\"}}}}}}\n"
        );
        let said = same_both_ways(&world, &size.to_string(), format!("{INITIALIZE}\n{line}{AFTER}").as_bytes());
        let [_, answer, after] = said.out.lines().collect::<Vec<_>>()[..] else { panic!("{size}: {said:?}") };
        let answer: Value = serde_json::from_str(answer).expect("an answer is JSON");
        let expected = if size > 4 * MIB { json!(-32600) } else { Value::Null };
        assert_eq!(answer["error"]["code"], expected, "{size}: {answer}");
        assert!(after.contains("\"after\""), "{after}");
    }
    holder.ping();
}

#[test]
fn answers_of_every_size_arrive_whole_over_a_bridge_whose_input_is_closed_already() {
    let world = World::new();
    let mut holder = world.holder();
    let empty = r#"{"jsonrpc":"2.0","id":"","result":{}}"#.len() + 1;
    for size in [4_095, 4_096, 4_097, 16_384, 65_535, 65_536, 65_537, 1_000_000] {
        let id = "i".repeat(size - empty);
        let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":\"{id}\",\"method\":\"ping\"}}\n");
        let said = feed(&mut world.majordomus(&["mcp"]), line.as_bytes());
        assert_eq!((said.code, said.out.len(), said.err.as_str()), (Some(0), size, ""));
        assert!(said.out.ends_with("\"result\":{}}\n"));
    }
    holder.ping();
}

#[test]
fn thousands_of_requests_before_the_end_of_input_are_answered_in_order_over_a_bridge() {
    let world = World::new();
    let mut holder = world.holder();
    let mut input = format!("{INITIALIZE}\n");
    for id in 2..2000 {
        input += &format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/list\"}}\n");
    }
    input += attach_line("my-thread").replacen("\"id\":2", "\"id\":2000", 1).trim_end();
    let said = feed(&mut world.majordomus(&["mcp"]), input.as_bytes());
    let ids = said.out.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON")["id"].as_u64());
    assert!(ids.eq((1..=2000).map(Some)));
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
    until("its going is seen", || (holder.peers().len() == 1).then_some(()));
    assert_eq!(world.episodes()["detached"], 1);
}

/// The resident memory of a process in bytes; `None` where the system does not say.
fn memory(pid: u32) -> Option<usize> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<usize>().ok()? * 1024)
}

#[test]
fn a_client_over_a_bridge_that_reads_nothing_makes_nobody_wait_and_loses_nothing() {
    const REQUESTS: usize = 4000;
    let world = World::new();
    let mut holder = world.holder();
    let (mut silent, mut other) = (world.server(&["mcp"]), world.bridge());
    let flood = silent.flood(REQUESTS);
    assert!(flood.until_it_stands() < REQUESTS - 1, "it takes everything, whatever waits");
    for pid in [holder.pid(), silent.pid()] {
        assert!(memory(pid).is_none_or(|memory| memory < 64 * MIB), "{pid}: {:?}", memory(pid));
    }
    for client in [&mut holder, &mut other] {
        let since = Instant::now();
        client.attach("my-thread");
        for _ in 0..50 {
            client.ping();
        }
        client.detach();
        assert!(since.elapsed() < Duration::from_secs(2), "{:?}", since.elapsed());
    }
    for id in 1..=REQUESTS {
        let line = silent.line().expect("the server answers");
        assert!(line.starts_with(&format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},")), "{}", &line[..60]);
    }
    flood.join();
    let left = silent.wait();
    assert_eq!((left.code, left.err.as_str()), (Some(0), ""));
}

#[test]
fn a_client_over_a_bridge_that_reads_nothing_loses_nothing_when_its_server_is_killed() {
    const REQUESTS: usize = 1000;
    let world = World::new();
    let (holder, mut silent) = (world.holder(), world.server(&["mcp"]));
    let mut input = silent.take_input();
    let writer = thread::spawn(move || {
        input.write_all(format!("{INITIALIZE}\n").as_bytes()).expect("it reads");
        for id in 2..=REQUESTS {
            let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/list\"}}\n");
            input.write_all(line.as_bytes()).expect("it reads in the end");
        }
    });
    for id in 1..=REQUESTS / 4 {
        assert_eq!(silent.receive()["id"], json!(id));
    }
    holder.kill9();
    let mut answered: Vec<u64> =
        (0..REQUESTS - REQUESTS / 4).map(|_| silent.receive()["id"].as_u64().expect("an id")).collect();
    answered.sort_unstable();
    let expected: Vec<u64> = ((REQUESTS / 4 + 1) as u64..=REQUESTS as u64).collect();
    assert_eq!(answered, expected, "each once, and only the one answer");
    writer.join().expect("everything is taken");
    let left = silent.wait();
    assert_eq!((left.code, left.rest.len()), (Some(0), 0));
}

#[test]
fn a_client_over_a_bridge_that_has_closed_its_output_is_recorded_all_the_same() {
    let world = World::new();
    let mut holder = world.holder();
    let mut command = world.majordomus(&["mcp"]);
    let mut bridge =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it runs");
    drop(bridge.stdout.take());
    let mut input = bridge.stdin.take().expect("its input is a pipe");
    // It may leave as soon as it sees that nobody reads: what it was told before still counts.
    let conversation = format!("{INITIALIZE}\n{}{}", attach_line("my-thread"), detach_line());
    let _ = input.write_all(conversation.as_bytes());
    drop(input);
    bridge.wait().expect("a child can be waited for");
    until("its going is seen", || (holder.peers().len() == 1).then_some(()));
    assert_eq!(world.record().end(), ("closed", "detach", "connection"));
}
