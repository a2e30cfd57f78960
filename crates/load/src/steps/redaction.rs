//! What is left out of what is shown of requests and responses.

use std::cmp::Reverse;

use weir_json::JsonPath;
use weir_scenario::value::Value;

/// What stands for a secret.
pub const MASK: &str = "***";
/// Headers whose values are always left out.
const SECRET_HEADERS: [&str; 4] = ["authorization", "cookie", "set-cookie", "proxy-authorization"];

/// Names of what is left out: headers, variables, and fields of JSON bodies.
#[derive(Clone, Debug, Default)]
pub struct Redaction {
    names: Vec<String>,
    fields: Vec<JsonPath>,
}

impl Redaction {
    /// Leaves out what has these names, besides credentials and cookies.
    pub fn new(names: &[String]) -> Self {
        let field = |name: &String| {
            let quoted = name.replace('\\', "\\\\").replace('\'', "\\'");
            // No path has a name with control characters.
            JsonPath::parse(&format!("$..['{quoted}']")).ok()
        };
        Self { names: names.to_vec(), fields: names.iter().filter_map(field).collect() }
    }

    /// Whether the value of a header is left out.
    pub fn is_secret_header(&self, name: &str) -> bool {
        let name = name.trim();
        SECRET_HEADERS.iter().any(|secret| secret.eq_ignore_ascii_case(name))
            || self.names.iter().any(|given| given.eq_ignore_ascii_case(name))
    }

    /// Whether the value of a variable is left out.
    pub fn is_secret_variable(&self, name: &str) -> bool {
        self.names.iter().any(|given| given == name)
    }

    /// Values of the named fields of a body; none of one that is not JSON.
    pub fn field_values(&self, body: &[u8]) -> Vec<String> {
        let mut values = Vec::new();
        for path in &self.fields {
            let mut found = Vec::new();
            if path.find(body, &mut found).is_ok() {
                values.extend(found.iter().flat_map(|json| forms(shown(json), &Value::of_json(json))));
            }
        }
        values
    }
}

/// Texts of a secret variable, as they are in requests and responses.
pub(super) fn variable_texts(value: &Value) -> impl Iterator<Item = String> + use<> {
    forms(shown(value.json().as_bytes()), value)
}

/// A secret as it is in JSON, and as it is elsewhere if that is another text: with quotes and line breaks.
fn forms(json: String, value: &Value) -> impl Iterator<Item = String> + use<> {
    let plain = value.template_text().filter(|plain| *plain != json);
    [Some(json), plain].into_iter().flatten()
}

/// The text without these values.
pub(super) fn masked(text: &str, mut secrets: Vec<String>) -> String {
    // A secret that contains another one is replaced as a whole.
    secrets.sort_by_key(|secret| Reverse(secret.len()));
    let secrets = secrets.iter().filter(|secret| !secret.is_empty());
    secrets.fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), MASK))
}

/// A JSON value without the quotes of a text.
fn shown(json: &[u8]) -> String {
    let text = String::from_utf8_lossy(json);
    text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_headers_variables_and_fields() {
        let redaction = Redaction::new(&["X-Key".to_owned(), "pass'word".to_owned()]);
        assert!(redaction.is_secret_header("authorization") && redaction.is_secret_header(" x-key "));
        assert!(!redaction.is_secret_header("X-Other") && redaction.is_secret_variable("X-Key"));
        let body = br#"{"a": [{"pass'word": "one"}, {"pass'word": 22}], "X-Key": "none"}"#;
        assert_eq!(redaction.field_values(body), ["none", "one", "22"]);
        assert!(redaction.field_values(b"<html>").is_empty());
        let text = masked("one and 22, none", redaction.field_values(body));
        assert_eq!(text, "*** and ***, ***");
        let quoted = redaction.field_values(br#"{"X-Key": "a\"b"}"#);
        assert_eq!(masked(r#"{"x": "a\"b"} and a"b"#, quoted), r#"{"x": "***"} and ***"#);
        let variable = Value::Text("a\"b".into());
        assert_eq!(masked(r#"a\"b a"b"#, variable_texts(&variable).collect()), "*** ***");
    }
}
