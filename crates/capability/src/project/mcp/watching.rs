//! What has changed of what can be read.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;

use super::Tools;
use crate::context::Context;
use crate::resource::{Contents, Watch};

/// The member that tells an age: it is another one with each second, and that is no news.
const AGE: &str = "last_activity_seconds_ago";

impl Tools {
    /// A number that is another one once what a URI names has changed; `None` where it names nothing. What cannot be read
    /// now, or has gone, has a number of its own.
    #[must_use]
    pub fn mark(&self, context: &Context, uri: &str) -> Option<u64> {
        let (resource, value) = self.resource(uri)?;
        Some(match resource.watch {
            Watch::Never => 0,
            Watch::Mark(mark) => mark(context, &value),
            Watch::Read => match (resource.read)(context, &value) {
                Ok(Contents::Text(text)) => hash_of(&text),
                Ok(Contents::Blob(base64)) => hash_of(&base64),
                Err(_) => 0,
            },
        })
    }
}

fn hash_of(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    match serde_json::from_str::<Value>(text) {
        Ok(mut value) => {
            forget_ages(&mut value);
            value.to_string().hash(&mut hasher);
        }
        Err(_) => text.hash(&mut hasher),
    }
    hasher.finish()
}

fn forget_ages(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.shift_remove(AGE);
            members.values_mut().for_each(forget_ages);
        }
        Value::Array(elements) => elements.iter_mut().for_each(forget_ages),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
