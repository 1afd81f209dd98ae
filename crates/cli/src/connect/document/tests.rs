use super::*;

fn json(text: &str) -> Document {
    Document::parse(Format::Json, text.as_bytes()).unwrap()
}

fn text(document: &Document) -> String {
    String::from_utf8(document.bytes()).unwrap()
}

fn yaml(text: &str) -> Document {
    Document::parse(Format::Yaml, text.as_bytes()).unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

/// What becomes of a text when a member `b` with the value 2 is put into its root.
fn with_b(before: &str) -> String {
    let mut document = json(before);
    document.insert(&[], Some("b"), &Value::from(2)).unwrap();
    text(&document)
}

#[test]
fn a_member_is_put_where_the_last_one_shows_how() {
    for (before, after) in [
        ("{\n  \"a\": 1\n}\n", "{\n  \"a\": 1,\n  \"b\": 2\n}\n"),
        ("{\r\n\t\"a\": 1\r\n}", "{\r\n\t\"a\": 1,\r\n\t\"b\": 2\r\n}"),
        ("\u{feff}{\n    \"a\": 1,\n}", "\u{feff}{\n    \"a\": 1,\n    \"b\": 2,\n}"),
        ("{\"a\":1}", "{\"a\":1,\"b\":2}"),
        ("{ \"a\": 1 }", "{ \"a\": 1, \"b\": 2 }"),
        ("{ \"a\": 1,  \"c\": 1 }", "{ \"a\": 1,  \"c\": 1,  \"b\": 2 }"),
        ("{}", "{\n  \"b\": 2\n}"),
        ("{  }", "{\n  \"b\": 2\n}"),
        ("{\n}\n", "{\n  \"b\": 2\n}\n"),
        ("{\n  \"a\": 1 // one\n}", "{\n  \"a\": 1, // one\n  \"b\": 2\n}"),
        ("{\n  \"a\": 1, // one\n  // \"z\": 9\n}", "{\n  \"a\": 1, // one\n  // \"z\": 9\n  \"b\": 2,\n}"),
        ("{\"a\": 1 /* , } */}", "{\"a\": 1, /* , } */ \"b\": 2}"),
        ("{\n  \"a\": 1 // one\r\n}\r\n", "{\n  \"a\": 1, // one\n  \"b\": 2\r\n}\r\n"),
        ("{ // nothing\n}", "{ // nothing\n  \"b\": 2\n}"),
        ("{\"a\": 1 // one\n}", "{\"a\": 1, // one\n  \"b\": 2\n}"),
        ("\n\n/* head */ {\"a\": 1}\n// foot", "\n\n/* head */ {\"a\": 1, \"b\": 2}\n// foot"),
    ] {
        assert_eq!(with_b(before), after, "{before:?}");
        let mut document = json(after);
        let space = json(before).space(&[]);
        document.remove(&way(&["b"]), None).unwrap();
        if let Some(space) = space {
            document.set_space(&[], &space).unwrap();
        }
        assert_eq!(text(&document), before);
    }
}

#[test]
fn what_others_put_behind_ours_stays_when_ours_goes() {
    let mut document = json("{\n  \"a\": 1, // one\n  \"b\": 2, // theirs\n  \"c\": 3 // three\n}\n");
    document.remove(&way(&["b"]), None).unwrap();
    assert_eq!(text(&document), "{\n  \"a\": 1, // one\n   // theirs\n  \"c\": 3 // three\n}\n");
    let mut document = json("[1, 2, 3]");
    document.remove(&at(&[], 0), None).unwrap();
    assert_eq!(text(&document), "[ 2, 3]");
}

#[test]
fn what_is_no_document_is_refused_with_its_place() {
    for (format, bytes, said) in [
        (Format::Json, &b"{\n  \"a\": 1\n  \"b\": 2\n}"[..], "line 2, column 9: "),
        (Format::Json, b"{\n  \"a\": }", "line 2, column 8: "),
        (Format::Json, b"{'a': 1}", "line 1, column 2: "),
        (
            Format::Json,
            b"{\"a\": 1, \"b\": {\"c\": 1,\n \"c\": 2}}",
            "line 2, column 2: the key \"c\" stands there twice",
        ),
        (Format::Json, b"\xff\xfe{\0}\0", "it is not UTF-8 text"),
        (Format::Toml, b"a = 1\nb = \n", "line 2, column 5: "),
        (Format::Toml, b"a = 1\na = 2\n", "line 2, column 1: "),
    ] {
        let error = Document::parse(format, bytes).unwrap_err().to_string();
        assert!(error.starts_with(said), "{error}");
    }
    for (bytes, said) in [
        (&b"a: 1\nb: [\n"[..], "line 2, column 4: "),
        ("ü:\n\tb: 2\n".as_bytes(), "line 2, column 2: "),
        ("ü: 1 # ü\nü: 2\n".as_bytes(), "line 2, column 1: the key \"ü\" stands there twice"),
        (b"a: {b: 1, 'b': 2}\n", "line 1, column 11: the key \"b\" stands there twice"),
        (b"a: *b\n", "line 1, column 4: "),
        (b"a: 1\n---\nb: 2\n", "it holds several documents"),
        (b"a: &a [*a]\n", "line 1, column 8: an alias stands for what it is in"),
    ] {
        let error = Document::parse(Format::Yaml, bytes).unwrap_err().to_string();
        assert!(error.starts_with(said), "{error}");
    }
    for (format, open) in
        [(Format::Json, "["), (Format::Json, "{\"a\":"), (Format::Yaml, "- "), (Format::Yaml, "{\"a\":")]
    {
        let deep = open.repeat(100_000);
        assert!(Document::parse(format, deep.as_bytes()).is_err(), "and no stack is too small for it");
    }
    let deep = ["- ".repeat(99), "{a: ".repeat(99), "}".repeat(99)].concat();
    assert!(yaml(&deep).get(&[]).is_some());
}

#[test]
fn an_edit_that_means_something_else_is_refused() {
    let mut document = json("{\"a\": 1}");
    // As if a splice had gone wrong: the text says something that nobody asked for.
    let refused = document.accept(&[], "{\"a\": 2}".into(), Some(serde_json::json!({ "a": 1, "b": 2 })));
    assert_eq!(refused, Err(EditError::Differs("the document".into())));
    assert_eq!(text(&document), "{\"a\": 1}", "and nothing has changed");
}

/// What becomes of a text when a member `b` is put into the mapping `a` of its root, or into the root.
fn with_yaml_b(way: &[Step], before: &str) -> Result<String, EditError> {
    let mut document = yaml(before);
    document.insert(way, Some("b"), &serde_json::json!({ "c": [1, "x"], "d": true }))?;
    Ok(text(&document))
}

#[test]
fn a_member_is_put_into_yaml_as_those_beside_it_are_written() {
    for (before, after) in [
        // In lines: behind the last one and the comments that go with it.
        ("a:\n  z: 1\n", "a:\n  z: 1\n  b:\n    c: [1, x]\n    d: true\n"),
        ("a:\n    z: 1 # one", "a:\n    z: 1 # one\n    b:\n        c: [1, x]\n        d: true"),
        ("a:\r\n z: 1\r\ny: 2\r\n", "a:\r\n z: 1\r\n b:\r\n  c: [1, x]\r\n  d: true\r\ny: 2\r\n"),
        (
            "a:\n  z:\n     y: 1\n\n  # x: 2\n\n# end\n",
            "a:\n  z:\n     y: 1\n\n  # x: 2\n  b:\n     c: [1, x]\n     d: true\n\n# end\n",
        ),
        ("a:\n  z: |+\n    x\n\n\ny: 1\n", "a:\n  z: |+\n    x\n\n\n  b:\n    c: [1, x]\n    d: true\ny: 1\n"),
        ("a:\n  z: >-\n    x\n   \n", "a:\n  z: >-\n    x\n   \n  b:\n    c: [1, x]\n    d: true\n"),
        ("a:\n  z: |-\n    x", "a:\n  z: |-\n    x\n  b:\n    c: [1, x]\n    d: true"),
        ("a:\n  z: x\n    y\n", "a:\n  z: x\n    y\n  b:\n    c: [1, x]\n    d: true\n"),
        ("a:\n  z: &z\n  y:\n", "a:\n  z: &z\n  y:\n  b:\n    c: [1, x]\n    d: true\n"),
        ("a:\n  ? z\n  : - 1\n    - 2\n", "a:\n  ? z\n  : - 1\n    - 2\n  b:\n    c: [1, x]\n    d: true\n"),
        ("a: &a\n  z: !!str 1\n", "a: &a\n  z: !!str 1\n  b:\n    c: [1, x]\n    d: true\n"),
        ("---\na:\n  z: 1\n...\n", "---\na:\n  z: 1\n  b:\n    c: [1, x]\n    d: true\n...\n"),
        ("\u{feff}a:\n  z: {\n   }\n", "\u{feff}a:\n  z: {\n   }\n  b:\n    c: [1, x]\n    d: true\n"),
        // A null becomes a mapping.
        ("a:", "a:\n  b:\n    c: [1, x]\n    d: true"),
        ("a:\n", "a:\n  b:\n    c: [1, x]\n    d: true\n"),
        ("a: # one\n  # two\n# three\nz: 1\n", "a: # one\n  # two\n  b:\n    c: [1, x]\n    d: true\n# three\nz: 1\n"),
        ("a:   ~ # ü\nz: 1\n", "a: # ü\n  b:\n    c: [1, x]\n    d: true\nz: 1\n"),
        ("z:\n - 1\na: null", "z:\n - 1\na:\n  b:\n    c: [1, x]\n    d: true"),
        // In brackets, on the same line.
        ("a: {}\n", "a: {b: {c: [1, x], d: true}}\n"),
        ("a: { } # one\n", "a: { b: {c: [1, x], d: true} } # one\n"),
        ("a: {z: 1, y: 'ü, '}\n", "a: {z: 1, y: 'ü, ', b: {c: [1, x], d: true}}\n"),
        ("{\"a\":{\"z\":1}}", "{\"a\":{\"z\":1, b: {c: [1, x], d: true}}}"),
        ("a: {\n  z: 1, # ,}\n  }\n", "a: {\n  z: 1, # ,}\n  b: {c: [1, x], d: true},\n  }\n"),
        ("a: {z: , y}\n", "a: {z: , y, b: {c: [1, x], d: true}}\n"),
        ("a: {z: }\n", "a: {z:, b: {c: [1, x], d: true} }\n"),
        ("a: { # none\n }", "a: { # none\n b: {c: [1, x], d: true}\n }"),
    ] {
        let way = way(&["a"]);
        assert_eq!(with_yaml_b(&way, before).as_deref(), Ok(after), "{before:?}");
        let mut document = yaml(after);
        document.remove(&to(&way, "b"), None).unwrap();
        if let Some(space) = yaml(before).space(&way) {
            document.set_space(&way, &space).unwrap();
        }
        assert_eq!(text(&document), before);
    }
    for (before, after) in [
        ("", "b:\n  c: [1, x]\n  d: true\n"),
        ("# one", "# one\nb:\n  c: [1, x]\n  d: true"),
        ("  \n\n", "  \n\nb:\n  c: [1, x]\n  d: true\n"),
        ("--- # one\n", "--- # one\nb:\n  c: [1, x]\n  d: true\n"),
        ("%YAML 1.1\n---\n...\n", "%YAML 1.1\n---\nb:\n  c: [1, x]\n  d: true\n...\n"),
        ("z: 1\n\n# end\n", "z: 1\n\n# end\nb:\n  c: [1, x]\n  d: true\n"),
        ("  z: 1\n", "  z: 1\n  b:\n    c: [1, x]\n    d: true\n"),
        ("z: |+\n  x\n\n...\n# end", "z: |+\n  x\n\nb:\n  c: [1, x]\n  d: true\n...\n# end"),
        ("{}\n", "{b: {c: [1, x], d: true}}\n"),
    ] {
        assert_eq!(with_yaml_b(&[], before).as_deref(), Ok(after), "{before:?}");
        let mut document = yaml(after);
        document.remove(&way(&["b"]), None).unwrap();
        assert_eq!(text(&document), before);
    }
}

#[test]
fn yaml_in_which_more_would_change_is_refused() {
    let a = way(&["a"]);
    for (before, said) in [
        ("z: &z {y: 1}\na: *z\n", "a is the alias *z; write out what it stands for"),
        ("a: &a\n  z: 1\ny: *a\n", "a is what an alias stands for, which would change too"),
        ("z: &z {y: 1}\na:\n  <<: *z\n", "a takes members from elsewhere with <<; write them out"),
        ("a: !mine\n  z: 1\n", "a has the tag !mine, which only its reader knows"),
        ("a: &a\n", "a holds nothing; write {} there"),
        ("{a: , z: 1}", "a holds nothing; write {} there"),
        (
            "a:\n  z: |\n    x",
            "the text at its end has no newline, and readers differ in what it means; end it with one",
        ),
        ("a: 1\n", "the edit of a would have changed more than was meant"),
    ] {
        assert_eq!(with_yaml_b(&a, before).map_err(|error| error.to_string()), Err(said.to_owned()));
    }
    assert_eq!(with_yaml_b(&[], "~\n").unwrap_err().to_string(), "the document holds nothing; write {} there");
    let mut document = yaml("a:\n  - 1\n");
    let refused = document.insert(&a, None, &Value::from(2)).unwrap_err();
    assert_eq!(refused.to_string(), "the list at a is not edited in YAML");
    let mut document = yaml("- b: 1\n  c: 2\n");
    let refused = document.remove(&to(&at(&[], 0), "b"), None).unwrap_err();
    assert_eq!(refused.to_string(), "0.b begins on a line of a list; take it out by hand");
    // One that is no text at all is none of ours, and twenty lines can stand for more than there is room for.
    assert_eq!(yaml("1: x\n\"1\": y\n").get(&way(&["1"])), Some(&Value::from("y")));
    let more = (1..20).map(|one| format!("l{one}: &l{one} [{}]\n", vec![format!("*l{}", one - 1); 9].join(", ")));
    let laughs = "l0: &l0 [ha]\n".to_owned() + &more.collect::<String>();
    let refused = Document::parse(Format::Yaml, laughs.as_bytes()).unwrap_err().to_string();
    assert!(refused.ends_with("its aliases stand for too much"), "{refused}");
}

#[test]
fn what_others_put_behind_ours_in_yaml_stays_when_ours_goes() {
    for (before, after) in [
        ("a:\n  b: 1\n  # theirs\n  c: 2\n", "a:\n  # theirs\n  c: 2\n"),
        ("a:\n  b: # ours\n    c: |\n      x\n\nd: 1\n", "a:\nd: 1\n"),
        ("a:\n  z: 1\n  b: 2", "a:\n  z: 1"),
        ("a:\n  z: |\n    x\n  b: 2", "a:\n  z: |\n    x\n"),
        ("a: {b: 1, c: 2}", "a: { c: 2}"),
    ] {
        let mut document = yaml(before);
        document.remove(&way(&["a", "b"]), None).unwrap();
        assert_eq!(text(&document), after);
    }
}

#[test]
fn a_value_in_yaml_is_replaced_where_it_stands() {
    for (before, after) in [
        ("a: 'x' # ü\n", "a: \"~/ü: #\" # ü\n"),
        ("a: x\n  y\nb: 1\n", "a: \"~/ü: #\"\nb: 1\n"),
        ("a:\nb: 1\n", "a: \"~/ü: #\"\nb: 1\n"),
        ("{a: , b: 1}", "{a: \"~/ü: #\" , b: 1}"),
        ("a: &z !!str x\n", "a: &z !!str \"~/ü: #\"\n"),
    ] {
        let mut document = yaml(before);
        document.replace(&way(&["a"]), &Value::from("~/ü: #")).unwrap_or_else(|error| panic!("{before:?}: {error}"));
        assert_eq!(text(&document), after);
    }
    for before in ["a: |\n  x\n", "a: *z\n", "a: &y x\nb: *y\n", "a: !mine x\n"] {
        let mut document = yaml(&format!("z: &z 1\n{before}"));
        document.replace(&way(&["a"]), &Value::from("x")).unwrap_err();
        assert_eq!(text(&document), format!("z: &z 1\n{before}"));
    }
}

#[test]
fn text_is_quoted_where_any_reader_of_yaml_could_take_it_for_something_else() {
    for (value, written) in [
        ("majordomus", "majordomus"),
        ("/usr/local/bin/majordomus", "/usr/local/bin/majordomus"),
        ("/My Dir/ü", "\"/My Dir/ü\""),
        ("~/bin", "\"~/bin\""),
        ("a: b", "\"a: b\""),
        ("a #b", "\"a #b\""),
        ("a,b]", "\"a,b]\""),
        ("Yes", "\"Yes\""),
        ("n", "\"n\""),
        ("NULL", "\"NULL\""),
        ("off", "\"off\""),
        ("1e3", "\"1e3\""),
        ("0x1f", "\"0x1f\""),
        ("12:30:45", "\"12:30:45\""),
        ("2026-12-01", "\"2026-12-01\""),
        (".inf", "\".inf\""),
        ("-", "\"-\""),
        ("---", "\"---\""),
        ("<<", "\"<<\""),
        ("=", "\"=\""),
        ("", "\"\""),
        ("it's", "\"it's\""),
        ("\"\\\n\t\u{1}", "\"\\\"\\\\\\n\\t\\u0001\""),
        ("\u{7f}\u{85}\u{2028}\u{feff}🦀", "\"\\u007f\\u0085\\u2028\\ufeff🦀\""),
    ] {
        let mut document = yaml("");
        document.insert(&[], Some("a"), &Value::from(value)).unwrap();
        assert_eq!(text(&document), format!("a: {written}\n"));
    }
}
