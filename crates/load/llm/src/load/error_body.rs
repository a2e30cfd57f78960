//! Error message in the body of a failed response.

use serde_json::Value;

/// Maximum length of a message, in characters.
const MAX_CHARS: usize = 200;

/// Message of an error's body, of any of the APIs: `error.message`, `error`, `message` or `detail`; else its text.
pub(super) fn error_message(status: u16, body: &[u8]) -> String {
    let text = match serde_json::from_slice::<Value>(body) {
        Ok(json) => message_of(&json).unwrap_or_else(|| json.to_string()),
        Err(_) => String::from_utf8_lossy(body).into_owned(),
    };
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let start: String = words.chars().take(MAX_CHARS).collect();
    let dots = if start.len() < words.len() { "..." } else { "" };
    if start.is_empty() { format!("status {status}") } else { format!("status {status}: {start}{dots}") }
}

fn message_of(json: &Value) -> Option<String> {
    let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let error = json.get("error");
    error
        .and_then(|error| error.get("message"))
        .and_then(text)
        .or_else(|| error.and_then(text))
        .or_else(|| json.get("message").and_then(text))
        .or_else(|| json.get("detail").and_then(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_is_found_in_the_errors_of_each_api() {
        for (body, expected) in [
            (r#"{"error":{"message":"bad key","code":"x"}}"#, "status 401: bad key"),
            (r#"{"error":"model\n not found"}"#, "status 401: model not found"),
            (r#"{"object":"error","message":"too long"}"#, "status 401: too long"),
            (r#"{"detail":"Not Found"}"#, "status 401: Not Found"),
            (r#"{"detail":[{"msg":"x"}]}"#, r#"status 401: {"detail":[{"msg":"x"}]}"#),
            ("<html>\n  no", "status 401: <html> no"),
            ("", "status 401"),
        ] {
            assert_eq!(error_message(401, body.as_bytes()), expected);
        }
        assert_eq!(error_message(500, "é".repeat(900).as_bytes()).chars().count(), 12 + 200 + 3);
    }
}
