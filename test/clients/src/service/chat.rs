//! OpenAI Chat Completions.

use serde_json::{Value, json};

use super::{Answer, SENTENCE, Say, unnamed};

pub(super) fn answer(body: &Value, say: &Say<'_>) -> Answer {
    let usage = json!({"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7});
    let (message, finish) = match say {
        Say::Call { name, arguments, number, .. } => {
            let function = json!({"name": name, "arguments": arguments.to_string()});
            let call = json!({"index": 0, "id": format!("call_{number}"), "type": "function", "function": function});
            (json!({"role": "assistant", "content": null, "tool_calls": [call]}), "tool_calls")
        }
        Say::Sentence => (json!({"role": "assistant", "content": SENTENCE}), "stop"),
        Say::Nothing => (json!({"role": "assistant", "content": ""}), "stop"),
    };
    let model = body["model"].as_str().unwrap_or("stand-in");
    let of = |object: &str, choices: Value| json!({"id": "chat_1", "object": object, "created": 1, "model": model, "choices": choices});
    let mut whole = of("chat.completion", json!([{"index": 0, "message": message, "finish_reason": finish}]));
    whole["usage"] = usage.clone();
    let chunk = |choices| of("chat.completion.chunk", choices);
    let mut events = vec![unnamed(&chunk(json!([{"index": 0, "delta": message, "finish_reason": null}])))];
    if !matches!(say, Say::Nothing) {
        let mut last = chunk(json!([]));
        last["usage"] = usage;
        events.push(unnamed(&chunk(json!([{"index": 0, "delta": {}, "finish_reason": finish}]))));
        events.push(unnamed(&last));
        events.push("data: [DONE]\n\n".into());
    }
    Answer { whole, events }
}
