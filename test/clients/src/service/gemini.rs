//! Gemini's generateContent and streamGenerateContent.

use serde_json::{Value, json};

use super::{Answer, SENTENCE, Say, unnamed};

pub(super) fn answer(body: &Value, say: &Say<'_>) -> Answer {
    let part = match say {
        Say::Call { name, arguments, .. } => json!({"functionCall": {"name": name, "args": arguments}}),
        // Beside its turns the client asks for decisions, as JSON in forms of its own.
        Say::Sentence if body["generationConfig"]["responseMimeType"] == "application/json" => {
            let decision = json!({
                "reasoning": SENTENCE, "next_speaker": "user", "model_choice": "flash", "complexity_score": 1,
                "complexity_reasoning": SENTENCE,
            });
            json!({"text": decision.to_string()})
        }
        Say::Sentence => json!({"text": SENTENCE}),
        Say::Nothing => return Answer { whole: Value::Null, events: Vec::new() },
    };
    let whole = json!({
        "candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 2, "totalTokenCount": 7},
        "modelVersion": "stand-in", "responseId": "response-1",
    });
    let events = vec![unnamed(&whole)];
    Answer { whole, events }
}
