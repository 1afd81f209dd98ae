use super::*;

#[test]
fn known_shapes_are_replaced_and_counted() {
    for (text, left) in [
        ("ghp_0123456789abcdefghijABCDEFGHIJ012345", "[redacted]"),
        ("fix ghp_0123456789abcdefghijABCDEFGHIJ012345, again", "fix [redacted], again"),
        ("sk-ant-api03-abcdefghijklmnopqrstu", "[redacted]"),
        ("whsec_0123456789abcdefABCDEF", "[redacted]"),
        ("xoxb-123456789012-abcdefghijkl", "[redacted]"),
        ("key AKIAABCDEFGHIJKLMNOP.", "key [redacted]."),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl", "[redacted]"),
        ("https://user:secret@host.example/path", "https://[redacted]@host.example/path"),
        ("https://token@host.example", "https://[redacted]@host.example"),
        ("DB_PASSWORD=correcthorsebattery", "DB_PASSWORD=[redacted]"),
        ("\"api_key\": \"abc12345678\"", "\"api_key\": \"[redacted]\""),
        ("a -----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY----- b", "a [redacted] b"),
        ("-----BEGIN PRIVATE KEY-----\ncut off", "[redacted]"),
        ("sk-abcdefghijklmnopqrstuvwxyz012345ABCDEF", "[redacted]"),
    ] {
        assert_eq!(redact(text), (left.to_owned(), 1), "{text}");
    }
}

#[test]
fn commit_ids_uuids_paths_and_prose_are_never_touched() {
    for text in [
        "da39a3ee5e6b4b0d3255bfef95601890afd80709",
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "5d1b7c0e-4a52-4f0e-9b77-2c6f0d3e91aa",
        "src/token/secret_store.rs",
        "/home/somebody/.ssh/id_ed25519",
        "fix token: refactoring of the parser",
        "secret santa",
        "sk-learn-integration-with-a-very-long-branch-name",
        "ghp_short",
        "https://host.example/a@b",
        "mail me at somebody@host.example",
        "",
        "ünïcödé ✓",
    ] {
        assert_eq!(redact(text), (text.to_owned(), 0));
    }
}

#[test]
fn redacting_twice_changes_nothing_more() {
    let (once, _) = redact("https://user:secret@host and token=abcdefgh1234");
    assert_eq!(redact(&once), (once.clone(), 0));
}
