use super::*;

#[test]
fn no_external_id_leads_anywhere_but_into_its_own_file() {
    let root = Path::new("/state");
    let ids = [
        "../../../tmp/x",
        "a/b",
        "..\\..\\x",
        "C:x",
        "CON",
        ".",
        "-rf",
        "%2e%2e",
        "é",
        "e\u{301}",
        "A",
        "a",
        "🦀",
        &"x".repeat(256),
        " ",
        "ghp_0123456789abcdefghijABCDEFGHIJ012345",
    ];
    let mut names = std::collections::HashSet::new();
    for id in ids {
        let path = open_log(root, &EpisodeKey::new("generic", id).unwrap());
        assert_eq!(path.parent(), Some(Path::new("/state/open")));
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        assert!(
            name.len() <= 64 && name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.')),
            "{name}"
        );
        assert!(!name.contains("ghp"), "{name}");
        assert!(names.insert(name.to_lowercase()), "{id} shares a file, if only where case does not count");
    }
}

#[test]
fn provider_and_id_are_hashed_apart() {
    let hash = |provider, id| key_hash(&EpisodeKey::new(provider, id).unwrap());
    assert_ne!(hash("ab", "c"), hash("a", "bc"));
    // SHA-256 of "generic", NUL, "thread-7".
    assert_eq!(hash("generic", "thread-7"), "d4712bdae57f4d3f");
}

#[test]
fn a_session_id_is_its_time_and_eight_digits() {
    assert_eq!(session_id(1_800_000_000_000, [0xab, 0, 1, 2]), "s-20270115080000-ab000102");
    assert!(is_session_id("s-20270115080000-ab000102"));
    for wrong in [
        "",
        "s-20270115080000-AB000102",
        "s-2027011508000-ab000102",
        "../../etc/passwd/aaaaaaaaa",
        "s-20270115080000-ab00010/",
    ] {
        assert!(!is_session_id(wrong), "{wrong}");
    }
}

#[test]
fn a_record_lies_in_the_month_in_which_its_session_began() {
    let path = record_path(1_798_761_599_999, "s-20261231235959-00000000", Some("feature/Größe & Co"));
    assert_eq!(path, ".ai/repo/sessions/2026/12/s-20261231235959-00000000--feature-gr-e-co.md");
    assert!(record_path(0, "s", None).ends_with("s--detached.md"));
    assert!(record_path(0, "s", Some("ß")).ends_with("s--branch.md"));
}
