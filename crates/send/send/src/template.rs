//! Templates with the fields `{key}`, `{nonce}` and `{id}`, which are filled in when a request is sent.

use std::borrow::Cow;
use std::fmt::Write;

use weir_base::placeholder::{Placeholder, placeholders};

/// Values of the fields.
#[derive(Clone, Copy, Debug)]
pub struct TemplateFields<'a> {
    /// API key of the attempt.
    pub key: &'a str,
    /// Nonce of the attempt, greater than any before it with that key.
    pub nonce: u64,
    /// Job ID.
    pub id: &'a str,
}

/// Escaping of a value by its context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Escaping {
    /// Percent-encoding, in a URL or a form.
    Url,
    /// Escaping of a JSON string.
    Json,
    /// None.
    Plain,
}

/// Names of all fields.
const FIELD_NAMES: [&str; 3] = ["key", "nonce", "id"];

/// First unknown field of a text: a word of lower-case letters in braces.
pub fn unknown_field(text: &str) -> Option<&str> {
    fields(text).map(|field| field.name).find(|name| !FIELD_NAMES.contains(name))
}

/// Whether a text has any field that is filled in.
pub fn has_fields(text: &str) -> bool {
    fields(text).any(|field| FIELD_NAMES.contains(&field.name))
}

/// Whether a text has this field.
pub fn has_field(text: &str, name: &str) -> bool {
    fields(text).any(|field| field.name == name)
}

fn fields(text: &str) -> impl Iterator<Item = Placeholder<'_>> {
    placeholders(text, |c| c.is_ascii_lowercase() || c == '_')
}

impl TemplateFields<'_> {
    /// Text with its fields filled in; braces around anything else stay.
    pub fn fill<'t>(&self, text: &'t str, place: Escaping) -> Cow<'t, str> {
        if !text.contains('{') {
            return Cow::Borrowed(text);
        }
        let mut filled = String::with_capacity(text.len() + 32);
        let mut rest = 0;
        for field in fields(text).filter(|field| FIELD_NAMES.contains(&field.name)) {
            filled.push_str(&text[rest..field.start]);
            match field.name {
                "key" => push_escaped(&mut filled, self.key, place),
                "id" => push_escaped(&mut filled, self.id, place),
                // Writing to memory does not fail.
                _ => drop(write!(filled, "{}", self.nonce)),
            }
            rest = field.end;
        }
        filled.push_str(&text[rest..]);
        Cow::Owned(filled)
    }
}

fn push_escaped(into: &mut String, value: &str, place: Escaping) {
    match place {
        Escaping::Plain => into.push_str(value),
        // A plus means a space only in queries.
        Escaping::Url => {
            let parts = form_urlencoded::byte_serialize(value.as_bytes());
            into.extend(parts.map(|part| if part == "+" { "%20" } else { part }));
        }
        Escaping::Json => {
            let quoted = serde_json::Value::from(value).to_string();
            into.push_str(&quoted[1..quoted.len() - 1]);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FIELDS: TemplateFields<'static> = TemplateFields { key: "a b&c", nonce: 17, id: "say \"x\"" };

    #[test]
    fn values_are_escaped_by_their_context() {
        let fill = |text, place| FIELDS.fill(text, place);
        assert_eq!(fill("/a?k={key}&n={nonce}", Escaping::Url), "/a?k=a%20b%26c&n=17");
        assert_eq!(fill(r#"{"id":"{id}"}"#, Escaping::Json), r#"{"id":"say \"x\""}"#);
        assert_eq!(fill("{key}{key}", Escaping::Plain), "a b&ca b&c");
        assert_eq!(fill("{", Escaping::Plain), "{");
        assert_eq!(fill("{} {Key} {a b} {{nonce}}", Escaping::Plain), "{} {Key} {a b} {17}");
    }

    #[test]
    fn an_unknown_field_is_found() {
        assert_eq!(unknown_field("/{key}/{user}"), Some("user"));
        assert_eq!(unknown_field(r#"{"a": {"b": 1}} {} {0}"#), None);
        assert!(has_field("x={nonce}", "nonce") && !has_field("nonce", "nonce"));
    }

    /// Text of fields, near-fields and anything else.
    fn template() -> impl Strategy<Value = Vec<String>> {
        let fields = prop::sample::select(vec!["{key}", "{nonce}", "{id}"]).prop_map(str::to_owned);
        let others =
            prop::sample::select(vec!["{", "}", "{}", "{{", "{Key}", "{ id }", "{user}", "{key", "id}", "\u{e9}"]);
        prop::collection::vec(prop_oneof![fields, others.prop_map(str::to_owned), "[a-z {}:&%\"\\\\]{0,6}"], 0..8)
    }

    /// Reference implementation: replaces fields from left to right.
    fn naive(text: &str, fields: &[(&str, String)]) -> String {
        let mut rest = text;
        let mut filled = String::new();
        while let Some(first) = rest.chars().next() {
            if let Some((name, value)) = fields.iter().find(|(name, _)| rest.starts_with(name)) {
                filled.push_str(value);
                rest = &rest[name.len()..];
            } else {
                filled.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
        filled
    }

    proptest! {
        #[test]
        fn fields_are_filled_in_and_nothing_else_is_changed(pieces in template(), key in any::<String>(), id in ".*") {
            let text = pieces.concat();
            let fields = TemplateFields { key: &key, nonce: 17, id: &id };
            let values = [("{key}", key.clone()), ("{nonce}", "17".into()), ("{id}", id.clone())];
            prop_assert_eq!(fields.fill(&text, Escaping::Plain), naive(&text, &values));
            for (field, _) in &values {
                let is_there = text.contains(field);
                prop_assert_eq!(has_field(&text, &field[1..field.len() - 1]), is_there, "{} in {}", field, text);
            }
        }

        #[test]
        fn an_escaped_value_is_read_back_unchanged(value in any::<String>()) {
            let fields = TemplateFields { key: &value, nonce: 17, id: &value };
            let json = fields.fill(r#"{"a": "{id}", "n": {nonce}}"#, Escaping::Json);
            let read: serde_json::Value = serde_json::from_str(&json).unwrap();
            prop_assert_eq!((read["a"].as_str(), read["n"].as_u64()), (Some(value.as_str()), Some(17)));
            let form = fields.fill("a={key}&b=1", Escaping::Url);
            let pairs: Vec<_> = form_urlencoded::parse(form.as_bytes()).into_owned().collect();
            prop_assert_eq!(pairs, [("a".to_owned(), value.clone()), ("b".to_owned(), "1".to_owned())]);
        }
    }
}
