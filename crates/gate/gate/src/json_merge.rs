//! Merges members into the JSON object of a success.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Members to merge into JSON objects.
#[derive(Clone, Debug)]
pub(super) struct JsonMerge {
    members: Vec<(String, Value)>,
    /// The members as JSON, without braces.
    members_json: String,
}

impl JsonMerge {
    /// None without members.
    pub(super) fn new(members: &[(String, Value)]) -> Option<Self> {
        let as_text = |(name, value): &(String, Value)| format!("{}:{value}", Value::from(name.as_str()));
        let text = members.iter().map(as_text).collect::<Vec<_>>().join(",");
        (!members.is_empty()).then(|| Self { members: members.to_vec(), members_json: text })
    }

    /// Appends the members to a JSON object, or replaces its own of the same name. Other bodies are returned unchanged.
    pub(super) fn apply(&self, body: Bytes) -> Bytes {
        let Ok(own) = serde_json::from_slice::<BTreeMap<String, &RawValue>>(&body) else { return body };
        if self.members.iter().any(|(name, _)| own.contains_key(name)) {
            let Ok(mut object) = serde_json::from_slice::<Map<String, Value>>(&body) else { return body };
            object.extend(self.members.iter().cloned());
            return Value::from(object).to_string().into();
        }
        let end = body.iter().rposition(|byte| *byte == b'}').unwrap_or(body.len());
        let inside = body[..end].trim_ascii_end();
        let comma: &[u8] = if own.is_empty() { b"" } else { b"," };
        [inside, comma, self.members_json.as_bytes(), b"}"].concat().into()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use serde_json::json;

    use super::*;

    #[test]
    fn members_are_appended_or_replaced() {
        let merge = JsonMerge::new(&[("message".to_owned(), json!("SUCCESS"))]).unwrap();
        for (body, expected) in [
            (r#"{"time":336}"#, r#"{"time":336,"message":"SUCCESS"}"#),
            ("{ \"time\" : 336 }\n", r#"{ "time" : 336,"message":"SUCCESS"}"#),
            ("{}", r#"{"message":"SUCCESS"}"#),
            (r#"{"message":"x","time":1}"#, r#"{"message":"SUCCESS","time":1}"#),
            ("[1]", "[1]"),
            ("3", "3"),
        ] {
            assert_eq!(merge.apply(Bytes::from(body)), expected);
        }
        assert!(JsonMerge::new(&[]).is_none());
    }
}
