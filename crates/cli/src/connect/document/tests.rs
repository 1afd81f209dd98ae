use super::*;

fn json(text: &str) -> Document {
    Document::parse(Format::Json, text.as_bytes()).unwrap()
}

fn text(document: &Document) -> String {
    String::from_utf8(document.bytes()).unwrap()
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
    let deep = "[".repeat(100_000);
    assert!(Document::parse(Format::Json, deep.as_bytes()).is_err(), "and no stack is too small for it");
}

#[test]
fn an_edit_that_means_something_else_is_refused() {
    let mut document = json("{\"a\": 1}");
    // As if a splice had gone wrong: the text says something that nobody asked for.
    let refused = document.accept(&[], "{\"a\": 2}".into(), Some(serde_json::json!({ "a": 1, "b": 2 })));
    assert_eq!(refused, Err(EditError::Differs("the document".into())));
    assert_eq!(text(&document), "{\"a\": 1}", "and nothing has changed");
}
