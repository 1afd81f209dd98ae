use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Colour {
    /// Like this one.
    Red,
    /// Unlike it.
    Green,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Inner {
    width: u64,
    note: Option<String>,
}

/// Not shown.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Outer {
    /// How many.
    count: u32,
    colour: Option<Colour>,
    /// The part within.
    inner: Option<Inner>,
    all: Vec<Inner>,
    #[serde(default)]
    limit: Option<u32>,
}

#[test]
fn a_schema_is_plain() {
    let inner = json!({
        "type": "object",
        "properties": {"width": {"type": "integer", "minimum": 0}, "note": {"type": "string"}},
        "required": ["width"],
    });
    let mut described = inner.clone();
    described["description"] = json!("The part within.");
    let expected = json!({
        "type": "object",
        "properties": {
            "count": {"description": "How many.", "type": "integer", "minimum": 0},
            "colour": {"type": "string", "enum": ["red", "green"]},
            "inner": described,
            "all": {"type": "array", "items": inner},
            "limit": {"type": "integer", "minimum": 0},
        },
        "required": ["count", "all"],
        "additionalProperties": false,
    });
    assert_eq!(super::input::<Outer>(), expected);
}

#[test]
fn no_schema_refers_to_another_place() {
    let text = super::output::<Outer>().to_string();
    for keyword in ["$ref", "$defs", "$schema", "Not shown"] {
        assert!(!text.contains(keyword), "{keyword} in {text}");
    }
}

#[test]
fn an_output_that_can_be_null_is_seen_wherever_the_null_is() {
    #[derive(Serialize, JsonSchema)]
    struct Plain {
        #[serde(skip_serializing_if = "Option::is_none")]
        note: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        inner: Option<Colour>,
        null: bool,
    }

    #[derive(Serialize, JsonSchema)]
    struct Deep {
        all: Vec<Vec<Option<Colour>>>,
    }

    assert!(!super::has_null(&super::output::<Plain>()));
    assert!(super::has_null(&super::output::<Outer>()));
    assert!(super::has_null(&super::output::<Deep>()));
}
