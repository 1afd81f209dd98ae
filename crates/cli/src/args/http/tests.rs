use super::{host, list, origin};

#[test]
fn a_list_of_the_environment_is_separated_by_commas() {
    assert_eq!(list(" a.example , ,b.example:1,", host).unwrap(), ["a.example", "b.example:1"]);
    assert_eq!(list("", host).unwrap(), [""; 0]);
    assert!(list("a.example b.example", host).unwrap_err().contains("a.example b.example"));
}

#[test]
fn what_is_no_host_or_no_origin_is_refused() {
    for wrong in ["", "*", "https://a.example", "a.example/", "a.example:", "a.example:http", "[::1", "[x]:1", "a,b"] {
        assert!(host(wrong).is_err(), "{wrong}");
    }
    for wrong in ["", "*", "null", "a.example", "https://", "https://a.example/", "https://*", "1s://a", "file:///"] {
        assert!(origin(wrong).is_err(), "{wrong}");
    }
    assert_eq!(origin("vscode-webview://ab12").unwrap(), "vscode-webview://ab12");
    assert_eq!(origin("http://[::1]:8741").unwrap(), "http://[::1]:8741");
}
