use super::*;

#[test]
fn front_matter_ends_at_a_line_of_its_own() {
    assert_eq!(front_matter("---\na: 1\nb: \"---\"\n---\nbody\n---\n"), Some("a: 1\nb: \"---\"\n"));
    assert_eq!(front_matter("---\r\na: 1\r\n---\r\nbody"), Some("a: 1\r\n"));
    assert_eq!(front_matter("---\na: 1\n----\n---"), Some("a: 1\n----\n"));
    for none in ["", "a: 1\n---\n", "---\na: 1\n", " ---\n---\n"] {
        assert_eq!(front_matter(none), None, "{none:?}");
    }
}
