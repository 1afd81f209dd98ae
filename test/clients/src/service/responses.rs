//! OpenAI Responses, as Codex speaks it.

use serde_json::{Value, json};

use super::{Answer, SENTENCE, Say, named};

pub(super) fn answer(body: &Value, say: &Say<'_>) -> Answer {
    let begun = json!({
        "id": "resp_1", "object": "response", "created_at": 1, "status": "in_progress", "output": [],
        "model": body["model"].as_str().unwrap_or("stand-in"),
    });
    let mut events = vec![json!({"type": "response.created", "response": begun})];
    let item = match say {
        Say::Nothing => None,
        Say::Call { name, namespace, arguments, number } => {
            let mut item = json!({
                "type": "function_call", "id": format!("fc_{number}"), "call_id": format!("call_{number}"),
                "name": name, "arguments": arguments.to_string(), "status": "completed",
            });
            if let Some(namespace) = namespace {
                item["namespace"] = (*namespace).into();
            }
            Some(item)
        }
        Say::Sentence => Some(json!({
            "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": SENTENCE, "annotations": []}],
        })),
    };
    let mut whole = begun;
    if let Some(item) = item {
        let mut added = item.clone();
        added["status"] = "in_progress".into();
        let about = |kind: &str, field: &str, text: &Value| {
            let mut event = json!({"type": kind, "item_id": item["id"], "output_index": 0});
            event[field] = text.clone();
            event
        };
        if matches!(say, Say::Call { .. }) {
            added["arguments"] = "".into();
            events.push(json!({"type": "response.output_item.added", "output_index": 0, "item": added}));
            events.push(about("response.function_call_arguments.delta", "delta", &item["arguments"]));
            events.push(about("response.function_call_arguments.done", "arguments", &item["arguments"]));
        } else {
            added["content"] = json!([]);
            events.push(json!({"type": "response.output_item.added", "output_index": 0, "item": added}));
            for (kind, field) in [("response.output_text.delta", "delta"), ("response.output_text.done", "text")] {
                let mut event = about(kind, field, &SENTENCE.into());
                event["content_index"] = 0.into();
                events.push(event);
            }
        }
        events.push(json!({"type": "response.output_item.done", "output_index": 0, "item": item}));
        whole["status"] = "completed".into();
        whole["output"] = json!([item]);
        whole["usage"] = json!({
            "input_tokens": 5, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 2,
            "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 7,
        });
        events.push(json!({"type": "response.completed", "response": whole}));
    }
    for (number, event) in events.iter_mut().enumerate() {
        event["sequence_number"] = number.into();
    }
    Answer { whole, events: events.iter().map(named).collect() }
}
