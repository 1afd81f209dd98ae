//! Anthropic Messages.

use serde_json::{Value, json};

use super::{Answer, SENTENCE, Say, named};

pub(super) fn answer(body: &Value, say: &Say<'_>) -> Answer {
    let usage = json!({
        "input_tokens": 5, "output_tokens": 3, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0
    });
    let (block, begun, delta, stop) = match say {
        Say::Call { name, arguments, number, .. } => {
            let block = json!({"type": "tool_use", "id": format!("toolu_{number}"), "name": name, "input": arguments});
            let mut begun = block.clone();
            begun["input"] = json!({});
            (block, begun, json!({"type": "input_json_delta", "partial_json": arguments.to_string()}), "tool_use")
        }
        Say::Sentence | Say::Nothing => (
            json!({"type": "text", "text": SENTENCE}),
            json!({"type": "text", "text": ""}),
            json!({"type": "text_delta", "text": SENTENCE}),
            "end_turn",
        ),
    };
    let model = body["model"].as_str().unwrap_or("stand-in");
    let whole = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": model,
        "content": [block], "stop_reason": stop, "stop_sequence": null, "usage": usage,
    });
    let mut head = whole.clone();
    head["content"] = json!([]);
    head["stop_reason"] = Value::Null;
    let mut events = vec![json!({"type": "message_start", "message": head})];
    if !matches!(say, Say::Nothing) {
        events.extend([
            json!({"type": "content_block_start", "index": 0, "content_block": begun}),
            json!({"type": "content_block_delta", "index": 0, "delta": delta}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({
                "type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": null},
                "usage": {"output_tokens": 3},
            }),
            json!({"type": "message_stop"}),
        ]);
    }
    Answer { whole, events: events.iter().map(named).collect() }
}
