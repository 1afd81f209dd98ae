use serde_json::{Value, json};

use super::{SERVER, SERVER_META, amend, complete};
use crate::project::mcp::{Era, Revision};
use crate::resource::Kept;

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_legacy_result_stays_what_it_is() {
    for revision in Revision::of(Era::Legacy) {
        assert_eq!(complete(revision, Some(Kept::DECLARATIONS), "{ }"), "{ }");
        let mut result = json!({ "_meta": {} });
        amend(revision, &mut result);
        assert_eq!(result, json!({ "_meta": {} }));
    }
}

#[test]
fn a_modern_result_says_what_it_is_who_answers_and_how_long_it_may_be_kept() {
    let modern = Revision::V2026_07_28;
    let server = json!({ "name": "majordomus", "version": env!("CARGO_PKG_VERSION") });
    assert_eq!(parsed(&format!("{{{}", SERVER.replace("}},", "}}}")))["_meta"][SERVER_META], server);
    let plain = json!({ "resultType": "complete", "_meta": { SERVER_META: server } });
    for body in ["{}", "{ }", " {}"] {
        assert_eq!(parsed(&complete(modern, None, body)), plain);
    }
    let mut kept = plain.clone();
    kept["tools"] = json!([]);
    (kept["ttlMs"], kept["cacheScope"]) = (json!(300_000), json!("public"));
    assert_eq!(parsed(&complete(modern, Some(Kept::DECLARATIONS), r#"{"tools":[]}"#)), kept);
    let mut result = json!({ "_meta": { "dev.majordomus/error": 1 } });
    amend(modern, &mut result);
    assert_eq!(result["_meta"], json!({ "dev.majordomus/error": 1, SERVER_META: server }));
    assert_eq!(result["resultType"], "complete");
}
