use super::*;

#[test]
fn only_what_changes_is_shown_and_two_lines_on_each_side() {
    let before = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
    let after = "1\n2\n3\n4\nx\n6\n7\n8\n9\ny\n";
    let expected = "--- f\n+++ f\n@@ line 3 @@\n 3\n 4\n-5\n+x\n 6\n 7\n 8\n 9\n+y\n";
    assert_eq!(shown("f", Some(before), Some(after)), expected);
    assert_eq!(shown("f", Some(before), Some(before)), "");
    assert_eq!(shown("f", None, Some("a\n")), "--- /dev/null\n+++ f\n@@ line 1 @@\n+a\n");
    assert_eq!(shown("f", Some("a\n"), None), "--- f\n+++ /dev/null\n@@ line 1 @@\n-a\n");
}

#[test]
fn a_credential_beside_it_is_not_shown_and_no_line_is_endless() {
    let secret = format!("\"TOKEN\": \"ghp_{}\"\n", "a".repeat(36));
    let long = "x".repeat(100_000);
    let said = shown("f", Some(&secret), Some(&format!("{secret}{long}\u{1b}[2J\n")));
    assert!(!said.contains("ghp_") && said.contains("[redacted]"), "{said}");
    assert!(said.len() < 1000 && !said.contains('\u{1b}'));
}
