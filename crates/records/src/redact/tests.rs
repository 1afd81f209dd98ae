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
        ("ya29.a0AfH6SMBx0123456789abcdef", "[redacted]"),
        ("GOCSPX-0123456789abcdefghijABCDEFGH", "[redacted]"),
        ("SG.0123456789abcdefghijAB.0123456789abcdefghijABCDEFGH0123456789abcde", "[redacted]"),
        ("shpat_0123456789abcdef0123456789abcdef", "[redacted]"),
        ("xapp-1-A0123456789-0123456789-abcdef", "[redacted]"),
        ("dop_v1_0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", "[redacted]"),
        ("glrt-0123456789abcdefghij", "[redacted]"),
        ("npm_0123456789abcdefghijABCDEFGHIJ012345", "[redacted]"),
        ("AGE-SECRET-KEY-1QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7LQPZRY9X8GF2TVDW0S3", "[redacted]"),
        ("Authorization: Bearer 0123abcd", "Authorization: Bearer [redacted]"),
        ("-H 'authorization: Basic dXNlcjpwYXNzd29yZA=='", "-H 'authorization: Basic [redacted]'"),
        ("{\"Authorization\": \"0123abcd\"}", "{\"Authorization\": \"[redacted]\"}"),
        ("a bearer 0123456789abcdef is sent", "a bearer [redacted] is sent"),
        ("PGPASSWORD=correcthorse psql", "PGPASSWORD=[redacted] psql"),
        ("MY_API_TOKEN = correcthorse", "MY_API_TOKEN = [redacted]"),
        ("accessToken='correcthorse'", "accessToken='[redacted]'"),
        ("passphrase=correcthorse", "passphrase=[redacted]"),
        ("AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "AWS_SECRET_ACCESS_KEY=[redacted]"),
        ("/cb?access_token=abcdefgh&state=1", "/cb?access_token=[redacted]&state=1"),
        ("token=da39a3ee5e6b4b0d3255bfef95601890afd80709", "token=[redacted]"),
        ("passwört password=größer123 ü", "passwört password=[redacted] ü"),
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
        "password: lettersonly",
        "token: da39a3ee5e6b4b0d3255bfef95601890afd80709",
        "secret: 5d1b7c0e-4a52-4f0e-9b77-2c6f0d3e91aa",
        "secret: crates/records2/src/redact.rs",
        "password=/run/secrets/db_password",
        "token::Kind2Something and token == something_else and token => another1",
        "Authorization: Basic authentication",
        "bearer authentication-middleware",
        "bearer src/auth/bearer2.rs",
        "the bearer of news",
        "user:pass@host",
        "SG.short.short",
    ] {
        assert_eq!(redact(text), (text.to_owned(), 0));
    }
}

#[test]
fn redacting_twice_changes_nothing_more() {
    let (once, _) = redact("https://user:secret@host and token=abcdefgh1234");
    assert_eq!(redact(&once), (once.clone(), 0));
}

/// Nothing is timed: work that grows with the square of these lengths is seen as a test that does not come back.
#[test]
fn hostile_lengths_take_time_in_proportion() {
    for part in ["a-", "token:", "eyJ-", "sk-"] {
        assert_eq!(redact(&part.repeat(1_000_000 / part.len())).1, 0);
    }
    let parts = [
        "://",
        "a://",
        "a@b:",
        "a+",
        "ghp_",
        "AKIA",
        "SG.",
        "SG.a",
        "eyJ.",
        "=",
        "\"'",
        "ü",
        "-----BEGIN ",
        "-----BEGIN PRIVATE KEY",
        "secret \"",
        "token=",
        "token: ",
        "token:/",
        "token:a/b.rs",
        "password::",
        "bearer ",
        "authorization:",
        "authorization=a",
        "authorization: bearer a-",
    ];
    for (part, end) in parts.iter().flat_map(|part| ["", "1", ".eyJa.", "@", ":a/b.rs1"].map(|end| (part, end))) {
        let text = part.repeat(60_000 / part.len()) + end;
        assert!(redact(&text).0.len() <= text.len() * 3, "{part}");
    }
}

#[test]
fn no_text_makes_it_cut_a_character() {
    for part in ["ü", "token=ü", "ghp_ü", "https://ü@", "bearer ü", "-----BEGIN ü", "authorization:ü", "eyJü.eyJ.ü"]
    {
        for times in 1..40 {
            let _ = redact(&part.repeat(times));
        }
    }
}
