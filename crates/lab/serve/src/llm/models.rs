//! Lists of models, as OpenAI and Anthropic have them.

use http::header::HeaderMap;
use serde_json::{Value, json};

/// Time of all models' creation, since 1970: 2026-01-01.
const CREATED_S: u64 = 1_767_225_600;

/// Whether a request is to Anthropic's API rather than OpenAI's; both have the same paths.
pub(super) fn is_anthropic(headers: &HeaderMap) -> bool {
    headers.contains_key("anthropic-version")
}

/// Body of the list of models.
pub(super) fn list(names: &[String], is_anthropic: bool) -> String {
    let data: Vec<Value> = names.iter().map(|name| entry(name, is_anthropic)).collect();
    if !is_anthropic {
        return json!({"object": "list", "data": data}).to_string();
    }
    json!({"data": data, "has_more": false, "first_id": names.first(), "last_id": names.last()}).to_string()
}

/// Entry of a model.
pub(super) fn entry(name: &str, is_anthropic: bool) -> Value {
    if is_anthropic {
        return json!({"type": "model", "id": name, "display_name": name, "created_at": "2026-01-01T00:00:00Z"});
    }
    json!({"id": name, "object": "model", "created": CREATED_S, "owned_by": "weir"})
}
