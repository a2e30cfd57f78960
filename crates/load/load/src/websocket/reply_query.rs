//! Part of a message that its reply repeats.

use std::hash::{DefaultHasher, Hash, Hasher};

use weir_json::{JsonPath, unescaped};

/// Query for the part of a message that its reply repeats.
#[derive(Clone, Debug)]
pub(crate) struct ReplyQuery {
    path: JsonPath,
}

impl ReplyQuery {
    /// Parses `jsonpath "$.id"`, or `$.id`.
    ///
    /// # Errors
    /// What is wrong with it, and what to write.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let own = text.trim();
        let own = own.strip_prefix("jsonpath").map_or(own, str::trim);
        let own = own.strip_prefix('"').and_then(|own| own.strip_suffix('"')).unwrap_or(own);
        let invalid =
            |why: String| format!("invalid query '{}': {why}; write e.g. 'jsonpath \"$.id\"'", text.escape_debug());
        let path = JsonPath::parse(own).map_err(|error| invalid(error.to_string()))?;
        if !path.is_singular() {
            return Err(invalid("it has more than one value".to_owned()));
        }
        Ok(Self { path })
    }

    /// Key of a message; `None` if it is not JSON or lacks the part. Strings are the same however they are escaped.
    #[inline]
    pub(crate) fn key(&self, message: &[u8]) -> Option<u64> {
        let value = self.path.find_one(message).ok()??;
        let mut hasher = DefaultHasher::new();
        match unescaped(value) {
            Some(text) => text.hash(&mut hasher),
            None => value.hash(&mut hasher),
        }
        Some(hasher.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_has_the_key_of_its_message() {
        let query = ReplyQuery::parse("jsonpath \"$.id\"").expect("valid");
        let key = query.key(br#"{"id": "a/b", "n": 1}"#);
        assert!(key.is_some());
        assert_eq!(query.key(br#"{"type":"next","id":"a\/b"}"#), key);
        assert_ne!(query.key(br#"{"id":"a"}"#), key);
        assert_ne!(query.key(br#"{"id":1}"#), query.key(br#"{"id":2}"#));
        for none in [&b"{}"[..], b"text", b"{\"id\"", b""] {
            assert_eq!(query.key(none), None, "{none:?}");
        }
        assert!(ReplyQuery::parse("$.a[0].id").is_ok());
        for wrong in ["jsonpath", "jsonpath \"$.*\"", "xpath \"//id\"", "$[", ""] {
            assert!(ReplyQuery::parse(wrong).is_err(), "{wrong}");
        }
    }
}
