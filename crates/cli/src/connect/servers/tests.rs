use majordomus_providers::{Format, find};
use proptest::prelude::*;
use serde_json::json;

use super::*;

const BINARY: &str = "/opt/it's \"ü\"/majordomus";

fn servers(provider: &str) -> Servers {
    let provider = find(provider).unwrap();
    let mcp = provider.mcp.unwrap();
    let file = mcp.files.iter().find(|file| file.write).unwrap();
    Servers { provider, mcp, at: file.at }
}

fn text(document: &Document) -> String {
    String::from_utf8(document.bytes()).unwrap()
}

fn parse(format: Format, text: &str) -> Document {
    Document::parse(format, text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Connects and removes again, and returns what stood there meanwhile.
fn there_and_back(servers: Servers, format: Format, before: &str) -> String {
    let mut document = parse(format, before);
    let mut note = FileNote::of("x");
    let changes = servers.connect(&mut document, &mut note, BINARY).unwrap_or_else(|error| panic!("{before}: {error}"));
    assert_eq!(changes, [Change::Added("majordomus".into())]);
    let after = text(&document);
    assert!(servers.is_current(&document, BINARY));
    assert_eq!(servers.connect(&mut document, &mut note, BINARY), Ok(Vec::new()));
    assert_eq!(text(&document), after);
    let mut alone = document.clone();
    servers.remove(&mut alone, None, false).unwrap();
    assert_eq!(servers.find(&alone), There::Nothing);
    servers.remove(&mut document, Some(&mut note), false).unwrap();
    assert_eq!(text(&document), before);
    assert!(note.servers.is_empty());
    after
}

const TOML: &[&str] = &[
    "",
    "\n",
    "\n\n",
    "model = \"x\"",
    "model = \"x\" # no newline",
    "# head\r\nmodel = 'x'\r\n\r\n[a]\r\nb = 1\r\n",
    "\u{feff}a = 1\n",
    "a = 1\n\n\n",
    "[mcp_servers]\n",
    "[mcp_servers.other]\ncommand = \"y\" # mine\nargs = [\n  'a', # b\n]\n\n[z]\nwhen = 2026-01-02T03:04:05Z\nf = nan\n",
    "mcp_servers.other.command = 'y'\n",
    "[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ncommand = '''\n[mcp_servers.majordomus]\n'''",
];

#[test]
fn toml_as_it_is_found_comes_back_as_it_was() {
    for before in TOML {
        let after = there_and_back(servers("codex"), Format::Toml, before);
        assert!(after.starts_with(before), "{before:?}\n{after}");
    }
    assert_eq!(
        there_and_back(servers("codex"), Format::Toml, "a = 1\n"),
        "a = 1\n\n[mcp_servers.majordomus]\ndefault_tools_approval_mode = \"approve\"\ncommand = \"/opt/it's \\\"ü\\\"/majordomus\"\nargs = [\"mcp\"]\n"
    );
}

const YAML: &[&str] = &[
    "",
    "\n",
    "# mine",
    "---\n",
    "{}\n",
    "GOOSE_MODEL: x",
    "GOOSE_MODEL: x # no newline",
    "\u{feff}# head\r\nGOOSE_MODEL: 'x'\r\n\r\nextensions:\r\n    dev:\r\n        enabled: true\r\n",
    "extensions:\n",
    "extensions: ~ # none\nz: 1\n",
    "extensions:   null",
    "extensions: {}\n",
    "extensions: { # none\n  }\n",
    "extensions: {dev: {type: builtin, args: [a, 'b, }']}, }\n",
    "extensions:\n  dev:\n    cmd: npx\n    args:\n    - -y\n  # memory:\n  #   cmd: y\n\n# the model\nGOOSE_MODEL: |\n  extensions:\n",
    "base: &base\n  timeout: 300\nextensions:\n  dev:\n    <<: *base\n    note: >+\n      x\n\n\n",
    "extensions:\n  dev: !mine {a: 1}\nnote: |-\n  no newline",
];

#[test]
fn yaml_as_it_is_found_comes_back_as_it_was() {
    for before in YAML {
        there_and_back(servers("goose"), Format::Yaml, before);
    }
    let entry = "  majordomus:\n    enabled: true\n    name: majordomus\n    type: stdio\n    cmd: \"/opt/it's \\\"ü\\\"/majordomus\"\n    args: [mcp]\n";
    for before in ["", "a: 1\n", "# a\n"] {
        let after = there_and_back(servers("goose"), Format::Yaml, before);
        assert_eq!(after, format!("{before}extensions:\n{entry}"));
    }
    let after = there_and_back(servers("goose"), Format::Yaml, "extensions:\n  dev:\n    a: 1\n# end\n");
    assert_eq!(after, format!("extensions:\n  dev:\n    a: 1\n{entry}# end\n"));
}

#[test]
fn yaml_that_has_no_place_for_an_entry_is_refused() {
    for (before, said) in [
        ("extensions: []\n", "extensions is a list, not an object"),
        ("extensions: none\n", "extensions is text, not an object"),
        ("- extensions\n", "the document is a list, not an object"),
        ("a: &a {}\nextensions: *a\n", "extensions is the alias *a; write out what it stands for"),
        ("a: &a {}\nextensions: {<<: *a}\n", "extensions takes members from elsewhere with <<; write them out"),
    ] {
        let mut document = parse(Format::Yaml, before);
        let refused = servers("goose").connect(&mut document, &mut FileNote::of("x"), BINARY).unwrap_err();
        assert_eq!(refused.to_string(), said);
        assert_eq!(text(&document), before);
    }
    // Where the entry is there by an alias, nothing is to be done.
    let before = "a: &a {majordomus: {type: stdio, name: majordomus, enabled: true, cmd: /majordomus, args: [mcp]}}\nextensions: *a\n";
    let mut document = parse(Format::Yaml, before);
    assert_eq!(servers("goose").connect(&mut document, &mut FileNote::of("x"), "/majordomus"), Ok(Vec::new()));
    servers("goose").remove(&mut document, None, false).unwrap_err();
    assert_eq!(text(&document), before);
}

#[test]
fn clients_that_write_one_file_want_the_same_in_it() {
    let wanted = |provider: &'static Provider| {
        let mcp = provider.mcp?;
        Some((provider.id, mcp.files.iter().filter(|file| file.write), members(mcp.members)))
    };
    let all: Vec<_> = majordomus_providers::all().iter().filter_map(wanted).collect();
    for (id, files, members) in &all {
        for (other, others, their) in &all {
            let shared = files.clone().any(|file| others.clone().any(|other| other.path == file.path));
            let differs = members.iter().any(|(key, value)| their.get(key).is_some_and(|their| their != value));
            assert!(!shared || !differs, "{id} and {other} would take one entry from each other for ever");
        }
    }
}

#[test]
fn any_path_can_be_said_in_toml() {
    let codex = servers("codex");
    for path in ["/a\u{7f}/majordomus", "/a\nb\t\\\"'/majordomus", "/\u{1}\u{85}\u{feff}🦀/majordomus"] {
        let mut document = parse(Format::Toml, "");
        codex.connect(&mut document, &mut FileNote::of("x"), path).unwrap();
        assert_eq!(codex.find(&document), There::Ours(path.into()));
    }
}

#[test]
fn json_as_it_is_found_comes_back_as_it_was() {
    for before in [
        "",
        "{}",
        "{\"mcpServers\":{}}",
        "{\n  \"mcpServers\": {\n    \"a\": {\"url\": \"u\"}, // b\n  },\n}",
        "{\r\n}\r\n",
    ] {
        for provider in ["claude-code", "gemini-cli", "cursor", "copilot-cli"] {
            there_and_back(servers(provider), Format::Json, before);
        }
    }
}

#[test]
fn somebody_elses_entry_is_left_as_it_is() {
    for entry in [
        json!({ "command": "other", "args": ["mcp"] }),
        json!({ "command": "/bin/majordomus", "args": ["serve"] }),
        json!({ "command": "/bin/majordomus" }),
        json!({ "url": "http://127.0.0.1:8741/mcp" }),
        json!("majordomus"),
    ] {
        let before = json!({ "mcpServers": { "majordomus": entry } }).to_string();
        let mut document = parse(Format::Json, &before);
        let servers = servers("claude-code");
        assert_eq!(servers.find(&document), There::Foreign);
        let refused = servers.connect(&mut document, &mut FileNote::of("x"), BINARY).unwrap_err().to_string();
        assert!(refused.starts_with("mcpServers.majordomus is there already"), "{refused}");
        assert_eq!(servers.remove(&mut document, None, false), Ok(Vec::new()));
        assert_eq!(text(&document), before);
    }
}

#[test]
fn a_stale_entry_is_mended_where_it_stands() {
    let before = "{\"mcpServers\": {\"majordomus\": {\"args\": [\"mcp\", \"--standalone\"], \"command\": \"/old/majordomus\", \"env\": {\"A\": \"1\"}}}}";
    let mut document = parse(Format::Json, before);
    let changes = servers("claude-code").connect(&mut document, &mut FileNote::of("x"), "/new/majordomus").unwrap();
    assert_eq!(changes, [Change::Updated("majordomus".into())]);
    let mended = before.replace("/old/", "/new/").replace("\"1\"}}}}", "\"1\"}, \"type\": \"stdio\"}}}");
    assert_eq!(text(&document), mended);

    let before = "[mcp_servers.majordomus] # mine\ncommand = '/old/majordomus' # old\nargs = [\"mcp\"]\n\n[z]\na = 1\n";
    let mut document = parse(Format::Toml, before);
    let codex = servers("codex");
    codex.connect(&mut document, &mut FileNote::of("x"), "/new/majordomus").unwrap();
    let mended = before
        .replace("'/old/majordomus'", "\"/new/majordomus\"")
        .replace("args = [\"mcp\"]\n", "args = [\"mcp\"]\ndefault_tools_approval_mode = \"approve\"\n");
    assert_eq!(text(&document), mended);
    codex.remove(&mut document, None, false).unwrap();
    assert_eq!(text(&document), "\n[z]\na = 1\n");

    // As Goose itself writes it, switched off.
    let before = "extensions:\n  majordomus:\n    enabled: false # off\n    type: stdio\n    name: majordomus\n    cmd: '/old/majordomus'\n    args:\n    - mcp\n    - --standalone\n    envs: {}\n  z: {}\n";
    let mut document = parse(Format::Yaml, before);
    let goose = servers("goose");
    goose.connect(&mut document, &mut FileNote::of("x"), "/My Dir/majordomus").unwrap();
    let mended =
        before.replace("enabled: false", "enabled: true").replace("'/old/majordomus'", "\"/My Dir/majordomus\"");
    assert_eq!(text(&document), mended);
    let without = mended.replace("    name: majordomus\n", "");
    let mut document = parse(Format::Yaml, &without);
    goose.connect(&mut document, &mut FileNote::of("x"), "/My Dir/majordomus").unwrap();
    assert_eq!(text(&document), without.replace("    envs: {}\n", "    envs: {}\n    name: majordomus\n"));
    goose.remove(&mut document, None, false).unwrap();
    assert_eq!(text(&document), "extensions:\n  z: {}\n");
}

#[test]
fn toml_that_has_no_place_for_a_table_is_refused() {
    for (before, said) in [
        ("mcp_servers = { a = { command = 'x' } }\n", "mcp_servers is an inline table; write it as [mcp_servers]"),
        ("mcp_servers = 3\n", "mcp_servers is a number, not an object"),
        ("[[mcp_servers]]\na = 1\n", "mcp_servers is a list, not an object"),
    ] {
        let mut document = parse(Format::Toml, before);
        let refused = servers("codex").connect(&mut document, &mut FileNote::of("x"), BINARY).unwrap_err();
        assert_eq!(refused.to_string(), said);
        assert_eq!(text(&document), before);
    }
}

#[test]
fn what_others_put_behind_and_into_a_table_does_not_keep_it() {
    let codex = servers("codex");
    for before in ["a = 1\n", "a = 1", ""] {
        for behind in [
            "[z]\nb = 1\n",
            "\n# theirs\n[z]\nb = 1\n",
            "env.A = '1'\n\n[mcp_servers.majordomus.tools.x]\nc = 1\n\n[z]\nb = 1\n",
        ] {
            let (mut document, mut note) = (parse(Format::Toml, before), FileNote::of("x"));
            codex.connect(&mut document, &mut note, BINARY).unwrap();
            let mut document = parse(Format::Toml, &(text(&document) + behind));
            codex.remove(&mut document, Some(&mut note), false).unwrap();
            let left = text(&document);
            assert!(
                left.starts_with(before) && left.ends_with("[z]\nb = 1\n") && !left.contains("majordomus"),
                "{left}"
            );
            assert_eq!(left.contains("# theirs"), behind.contains("# theirs"));
        }
    }
}

#[test]
fn an_entry_that_another_client_needs_stays_until_that_one_goes() {
    let (first, mut note) = (servers("claude-code"), FileNote::of(".mcp.json"));
    let second =
        Servers { provider: find("copilot-cli").unwrap(), mcp: find("copilot-cli").unwrap().mcp.unwrap(), ..first };
    let mut document = parse(Format::Json, "{\n}");
    first.connect(&mut document, &mut note, BINARY).unwrap();
    second.connect(&mut document, &mut note, BINARY).unwrap();
    let both = text(&document);
    assert_eq!(first.connect(&mut document, &mut note, BINARY), Ok(Vec::new()), "they do not take it from each other");
    assert_eq!(first.remove(&mut document, Some(&mut note), false), Ok(Vec::new()));
    assert_eq!(text(&document), both);
    second.remove(&mut document, Some(&mut note), false).unwrap();
    assert_eq!(text(&document), "{\n}");
    // Without a note it is for whoever asks to know who else is there.
    let mut document = parse(Format::Json, &both);
    first.remove(&mut document, None, true).unwrap();
    assert_eq!(text(&document), both);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn removing_undoes_connecting_in_any_toml(
        parts in prop::collection::vec((0..9_usize, "[a-c]"), 0..7),
        crlf in any::<bool>(),
        end in any::<bool>(),
    ) {
        let mut before = String::new();
        for (at, (kind, name)) in parts.iter().enumerate() {
            before.push_str(&match kind {
                0 => format!("# {name} = 1\n"),
                1 => format!("[t{at}.{name}] # c\nx = '''\n[y]\n'''\n"),
                2 => "\n".to_owned(),
                3 => format!("[mcp_servers.{name}{at}]\ncommand = \"{name}\"\n"),
                4 => format!("[[l{at}]]\nx = {{ y = [1,\n 2] }} # z\n"),
                5 => format!("[q{at}]\n{name}.x = 1\n{name}.y = 2\n"),
                6 => "  \n\n".to_owned(),
                7 => format!("[\"u ü{at}\"]\nw = 1979-05-27\n"),
                _ => format!("[mcp_servers.{name}{at}.env]\nA = 'b'"). to_owned() + "\n",
            });
        }
        if !end && before.ends_with('\n') {
            before.pop();
        }
        if crlf {
            before = before.replace('\n', "\r\n");
        }
        let after = there_and_back(servers("codex"), Format::Toml, &before);
        prop_assert!(after.starts_with(&before));
        let mut rest = parse(Format::Toml, &after).get(&[]).unwrap().clone();
        let list = rest["mcp_servers"].as_object_mut().unwrap();
        list.remove("majordomus");
        if list.is_empty() {
            rest.as_object_mut().unwrap().remove("mcp_servers");
        }
        let read = parse(Format::Toml, &before);
        prop_assert_eq!(Some(&rest), read.get(&[]));
    }
}

/// The text of a YAML mapping with these parts, each of another kind.
fn yaml_of(parts: &[(usize, String)], column: usize, in_extensions: bool) -> String {
    let mut text = String::new();
    let pad = " ".repeat(column);
    for (at, (kind, name)) in parts.iter().enumerate() {
        let part = match kind {
            0 => format!("# {name}: 1\n"),
            1 => "\n".to_owned(),
            2 => format!("{name}{at}: |\n  x\n\n  # y\n"),
            3 => format!("{name}{at}: &{name}{at}\n  k: 'ü: #'\n  # in\n  l:\n  - 1\n  -\n    - z: 2\n"),
            4 => format!("{name}{at}: [1, {{a: b, c: }}, # d\n  e ]\n"),
            5 => format!("{name}{at}:\n"),
            6 => format!("? {name}{at}\n: \"x\n  y\" # z\n"),
            7 => format!("{name}{at}: >+\n   x\n    y\n\n\n"),
            8 => format!("'{name} {at}': !t {name}\n  more\n"),
            _ => format!("\"ü{name}{at}\":\t~ # {name}\n"),
        };
        for line in part.split_inclusive('\n') {
            let blank = line == "\n" || (in_extensions && *kind == 0 && at % 2 == 0);
            text.push_str(if blank { "" } else { &pad });
            text.push_str(line);
        }
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn removing_undoes_connecting_in_any_yaml(
        head in prop::collection::vec((0..10_usize, "[a-c]"), 0..4),
        inner in prop::collection::vec((0..10_usize, "[a-c]"), 0..4),
        tail in prop::collection::vec((0..10_usize, "[d-f]"), 0..4),
        how in 0..9_usize,
        marks in 0..4_usize,
        column in 1..5_usize,
        crlf in any::<bool>(),
        end in any::<bool>(),
    ) {
        let mut before = String::from(["", "---\n", "%YAML 1.2\n--- # x\n", "\u{feff}"][marks]);
        before.push_str(&yaml_of(&head, 0, false));
        before.push_str(&match how {
            0 => String::new(),
            1 => "extensions: # none\n".to_owned(),
            2 => "extensions: {}\n".to_owned(),
            3 => "extensions:  null\n".to_owned(),
            4 => "extensions: {a: {cmd: 'x, y'}, # b\n   c: [d], }\n".to_owned(),
            _ => format!("extensions:\n{}", yaml_of(&inner, column, true)),
        });
        before.push_str(&yaml_of(&tail, 0, false));
        if marks == 1 && end {
            before.push_str("...\n");
        } else if !end && before.ends_with('\n') {
            before.pop();
        }
        if crlf {
            before = before.replace('\n', "\r\n");
        }
        let mut document = parse(Format::Yaml, &before);
        match servers("goose").connect(&mut document, &mut FileNote::of("x"), BINARY) {
            // A literal block that the text ends with, without its newline.
            Err(EditError::Form(why)) if !end => {
                prop_assert!(why.starts_with("the text at its end has no newline"), "{why}");
                prop_assert_eq!(text(&document), before);
            }
            Err(error) => prop_assert!(false, "{before:?}: {error}"),
            Ok(_) => {
                let after = there_and_back(servers("goose"), Format::Yaml, &before);
                let mut rest = parse(Format::Yaml, &after).get(&[]).unwrap().clone();
                let list = rest["extensions"].as_object_mut().unwrap();
                list.remove("majordomus");
                let is_empty = list.is_empty();
                let was = parse(Format::Yaml, &before);
                let was = was.get(&[]).cloned().unwrap_or(json!({}));
                match (was.get("extensions"), is_empty) {
                    (None, true) => _ = rest.as_object_mut().unwrap().remove("extensions"),
                    (Some(serde_json::Value::Null), true) => rest["extensions"] = serde_json::Value::Null,
                    _ => {}
                }
                prop_assert_eq!(rest, was);
            }
        }
    }
}
