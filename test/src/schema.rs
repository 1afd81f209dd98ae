//! The protocol's own schemas, as it has published them.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::root;

/// The definitions of one revision.
#[derive(Debug)]
pub struct Schema {
    revision: &'static str,
    document: Value,
    /// Where they stand in it.
    at: &'static str,
}

impl Schema {
    /// Reads them.
    ///
    /// # Panics
    /// Where there are none of that revision.
    #[must_use]
    pub fn of(revision: &'static str) -> Self {
        let path = root().join("test/fixtures/mcp-schema").join(Path::new(revision).with_extension("json"));
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let document: Value = serde_json::from_str(&text).expect("a schema is JSON");
        let at = if document["$defs"].is_object() { "$defs" } else { "definitions" };
        Self { revision, document, at }
    }

    fn has(&self, name: &str) -> bool {
        self.document[self.at][name].is_object()
    }

    /// Holds a message against the definition of that name.
    ///
    /// # Panics
    /// Where it does not fit.
    pub fn fits(&self, name: &str, message: &Value) {
        assert!(self.has(name), "{} has no {name}", self.revision);
        let schema = json!({
            "$schema": self.document["$schema"],
            "allOf": [{ "$ref": format!("#/{}/{name}", self.at) }],
            self.at: self.document[self.at],
        });
        let validator = jsonschema::validator_for(&schema).expect("it is a schema");
        let errors: Vec<String> = validator.iter_errors(message).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{} {name}: {errors:?}\n{message}", self.revision);
    }

    /// Holds an answer against the definitions: a result of that name, or without one an error.
    ///
    /// # Panics
    /// Where it does not fit.
    pub fn answers(&self, answer: &Value, result: Option<&str>) {
        match result {
            Some(name) => {
                let whole = if self.has("JSONRPCResultResponse") { "JSONRPCResultResponse" } else { "JSONRPCResponse" };
                self.fits(whole, answer);
                self.fits(name, &answer["result"]);
            }
            None if self.has("JSONRPCErrorResponse") => self.fits("JSONRPCErrorResponse", answer),
            None => self.fits("JSONRPCError", answer),
        }
    }
}
