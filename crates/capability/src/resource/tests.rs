use crate::testing::resource;

#[test]
fn a_uri_is_matched_as_a_whole_and_a_template_by_what_its_parameter_may_be() {
    let fixed = resource("majordomus://episodes");
    assert_eq!((fixed.is_template(), fixed.parameter()), (false, None));
    assert_eq!(fixed.value("majordomus://episodes"), Some(String::new()));
    for other in ["majordomus://episodes/", "majordomus://Episodes", "majordomus://episodes?x", ""] {
        assert_eq!(fixed.value(other), None, "{other}");
    }
    let template = resource("majordomus://sessions/{session_id}");
    assert_eq!((template.is_template(), template.parameter()), (true, Some("session_id")));
    for (uri, value) in [
        ("majordomus://sessions/s-1", Some("s-1")),
        ("majordomus://sessions/%C3%BC%2F", Some("ü/")),
        ("majordomus://sessions/", None),
        ("majordomus://sessions/a/b", None),
        ("majordomus://sessions/%", None),
        ("majordomus://sessions/%f", None),
        ("majordomus://sessions/%ff", None),
        ("majordomus://sessions", None),
    ] {
        assert_eq!(template.value(uri).as_deref(), value, "{uri}");
    }
}

#[test]
fn a_parameter_may_stand_between_parts() {
    let template = resource("test://things/{id}/parts");
    assert_eq!((template.is_template(), template.parameter()), (true, Some("id")));
    for (uri, value) in [
        ("test://things/1/parts", Some("1")),
        ("test://things/a%2Fb/parts", Some("a/b")),
        ("test://things//parts", None),
        ("test://things/parts", None),
        ("test://things/1/parts/", None),
        ("test://things/1/2/parts", None),
        ("test://things/1", None),
    ] {
        assert_eq!(template.value(uri).as_deref(), value, "{uri}");
    }
}
