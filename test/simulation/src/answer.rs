//! What an answer claims.

use serde_json::Value;

/// The answer to a call of attach or detach, as its caller reads it.
#[derive(Clone, Debug)]
pub(crate) enum Claim {
    /// It is recorded.
    Recorded { session_id: String, attachments: u32, opened_at: String, closed_as: Option<String> },
    /// It is done and not recorded.
    Unrecorded,
    /// It was refused.
    Refused,
}

impl Claim {
    /// Reads the result of a tool's call; `None` for any other.
    pub(crate) fn read(result: &Value) -> Option<Self> {
        if result["isError"] == true {
            return Some(Self::Refused);
        }
        let answer = result.get("structuredContent")?;
        if answer["recorded"] != true {
            return Some(Self::Unrecorded);
        }
        let line = answer["episode"]["repository"].as_str()?;
        Some(Self::Recorded {
            session_id: session_in(line)?.to_owned(),
            attachments: u32::try_from(answer["episode"]["attachments"].as_u64()?).ok()?,
            opened_at: answer["episode"]["opened_at"].as_str()?.to_owned(),
            closed_as: outcome_in(line).map(Into::into),
        })
    }
}

/// The session that a report names.
fn session_in(line: &str) -> Option<&str> {
    line.split(['/', ' ']).find_map(|word| word.strip_prefix("s-").and(word.get(..25)))
}

/// How a report says that an episode ended.
fn outcome_in(line: &str) -> Option<&str> {
    line.strip_prefix("episode closed (")?.split(',').next()
}
