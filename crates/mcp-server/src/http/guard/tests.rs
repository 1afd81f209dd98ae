use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri};
use majordomus_capability::Code;

use super::{Allowed, Caller};

const PORT: u16 = 8741;

fn judged(allowed: &Allowed, uri: &str, headers: &[(&str, &str)]) -> Result<Caller, String> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.append(HeaderName::try_from(*name).unwrap(), HeaderValue::from_str(value).unwrap());
    }
    allowed.judge(&uri.parse::<Uri>().unwrap(), &map, PORT).map_err(|refusal| {
        assert_eq!(refusal.code, Code::Forbidden);
        refusal.hint.unwrap()
    })
}

fn allows(headers: &[(&str, &str)]) -> bool {
    judged(&Allowed::default(), "/mcp", headers) == Ok(Caller::Own)
}

#[test]
fn the_names_of_this_machine_are_ours_with_and_without_a_port() {
    for host in ["localhost", "LocalHost:8741", "127.0.0.1", "127.0.0.1:1", "[::1]", "[::1]:8741", "127.0.0.9:8741"] {
        assert!(allows(&[("host", host)]), "{host}");
    }
}

#[test]
fn every_other_name_is_foreign() {
    let foreign = [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "evil.example:8741",
        "::1",
        "",
        "0.0.0.0",
        "192.168.1.5",
        "[::2]",
        "localhost.",
        "localhost:80:80",
        "127.0.0.1@evil.example",
        "[::1",
    ];
    for host in foreign {
        assert!(!allows(&[("host", host)]), "{host}");
    }
    assert!(!allows(&[]), "none at all");
    assert!(!allows(&[("host", "localhost"), ("host", "evil.example")]), "several");
}

#[test]
fn a_request_line_with_a_host_of_its_own_is_judged_by_that_too() {
    let allowed = Allowed::default();
    assert!(judged(&allowed, "http://evil.example/mcp", &[("host", "localhost")]).is_err());
    assert!(judged(&allowed, "http://localhost:8741/mcp", &[("host", "localhost")]).is_ok());
}

#[test]
fn a_page_of_ours_may_call_under_any_of_our_names() {
    for origin in ["http://localhost:8741", "http://127.0.0.1:8741", "http://[::1]:8741", "http://LOCALHOST:8741"] {
        assert!(allows(&[("host", "127.0.0.1:8741"), ("origin", origin)]), "{origin}");
    }
    // As through a tunnel from another port, where it is the name that the page was loaded under.
    assert!(allows(&[("host", "localhost:9999"), ("origin", "http://localhost:9999")]));
}

#[test]
fn a_page_of_anybody_else_may_not_although_it_is_on_this_machine() {
    let foreign = [
        "http://evil.example",
        "null",
        "",
        "http://localhost:3000",
        "http://localhost",
        "https://127.0.0.1:8741",
        "file://",
        "http://evil.example:8741",
        "http://127.0.0.2:8741",
        "http://localhost:87410",
        "chrome-extension://abc",
    ];
    for origin in foreign {
        assert!(!allows(&[("host", "localhost:8741"), ("origin", origin)]), "{origin}");
    }
    let twice = [("host", "localhost:8741"), ("origin", "http://localhost:8741"), ("origin", "http://evil.example")];
    assert!(!allows(&twice));
}

#[test]
fn a_browser_that_names_another_site_is_believed() {
    for (site, fine) in
        [("none", true), ("same-origin", true), ("same-site", false), ("cross-site", false), ("", false)]
    {
        assert_eq!(allows(&[("host", "localhost"), ("sec-fetch-site", site)]), fine, "{site}");
    }
    let ours = [("host", "localhost:8741"), ("origin", "http://localhost:8741"), ("sec-fetch-site", "cross-site")];
    assert!(!allows(&ours));
}

#[test]
fn what_the_user_allowed_is_let_in_and_browsers_are_told() {
    let allowed = Allowed { hosts: vec!["tools.example".into()], origins: vec!["https://pages.example/".into()] };
    let page = judged(&allowed, "/mcp", &[("host", "localhost"), ("origin", "https://pages.example")]);
    assert_eq!(page, Ok(Caller::Page(HeaderValue::from_static("https://pages.example"))));
    let forwarded = [("host", "tools.example:443"), ("origin", "https://tools.example:443")];
    assert_eq!(judged(&allowed, "/mcp", &forwarded), Ok(Caller::Own));
    assert!(judged(&allowed, "/mcp", &[("host", "tools.example"), ("origin", "https://other.example")]).is_err());
}

#[test]
fn the_refusal_names_the_setting_that_would_allow_it() {
    let host = judged(&Allowed::default(), "/", &[("host", "tools.example")]).unwrap_err();
    assert!(host.contains("--allow-host") && host.contains("MAJORDOMUS_ALLOWED_HOSTS"), "{host}");
    let origin =
        judged(&Allowed::default(), "/", &[("host", "localhost"), ("origin", "https://a.example")]).unwrap_err();
    assert!(origin.contains("--allow-origin") && origin.contains("MAJORDOMUS_ALLOWED_ORIGINS"), "{origin}");
}
