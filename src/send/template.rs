//! Texts with fields that are filled in when a request is sent: `{key}`, `{nonce}`, `{id}`.

use std::fmt::Write;

/// What is filled in.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    /// The key that is used.
    pub key: &'a str,
    /// The attempt's number, greater than that of all before it.
    pub nonce: u64,
    /// The job's name.
    pub id: &'a str,
}

/// How what is filled in is written, so that it means itself where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a URL or a form: percent-encoded.
    Url,
    /// In a string of JSON: escaped.
    Json,
    /// As it is.
    Plain,
}

/// The fields that there are.
const NAMES: [&str; 3] = ["key", "nonce", "id"];

/// The first of a text's fields that there is not: a word of lower-case letters in braces.
pub fn unknown_field(text: &str) -> Option<&str> {
    fields(text).map(|(_, name)| name).find(|name| !NAMES.contains(name))
}

/// Whether a text has this field.
pub fn has_field(text: &str, name: &str) -> bool {
    fields(text).any(|(_, found)| found == name)
}

/// Where fields begin, and their names.
fn fields(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.match_indices('{').filter_map(|(at, _)| {
        let (name, _) = text[at + 1..].split_once('}')?;
        let word = !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
        word.then_some((at, name))
    })
}

impl Fields<'_> {
    /// The text with its fields filled in; braces around anything else stay.
    pub fn fill(&self, text: &str, place: Place) -> String {
        let mut filled = String::with_capacity(text.len() + 32);
        let mut rest = 0;
        for (at, name) in fields(text).filter(|(_, name)| NAMES.contains(name)) {
            filled.push_str(&text[rest..at]);
            match name {
                "key" => put(&mut filled, self.key, place),
                "id" => put(&mut filled, self.id, place),
                // Writing to memory does not fail.
                _ => drop(write!(filled, "{}", self.nonce)),
            }
            rest = at + name.len() + 2;
        }
        filled.push_str(&text[rest..]);
        filled
    }
}

fn put(into: &mut String, value: &str, place: Place) {
    match place {
        Place::Plain => into.push_str(value),
        // A plus is a blank in queries only.
        Place::Url => {
            let parts = form_urlencoded::byte_serialize(value.as_bytes());
            into.extend(parts.map(|part| if part == "+" { "%20" } else { part }));
        }
        Place::Json => {
            let quoted = serde_json::Value::from(value).to_string();
            into.push_str(&quoted[1..quoted.len() - 1]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELDS: Fields<'static> = Fields { key: "a b&c", nonce: 17, id: "say \"x\"" };

    #[test]
    fn fields_are_filled_in_as_their_place_needs_it() {
        let fill = |text, place| FIELDS.fill(text, place);
        assert_eq!(fill("/a?k={key}&n={nonce}", Place::Url), "/a?k=a%20b%26c&n=17");
        assert_eq!(fill(r#"{"id":"{id}"}"#, Place::Json), r#"{"id":"say \"x\""}"#);
        assert_eq!(fill("{key}{key}", Place::Plain), "a b&ca b&c");
        assert_eq!(fill("{", Place::Plain), "{");
        assert_eq!(fill("{} {Key} {a b} {{nonce}}", Place::Plain), "{} {Key} {a b} {17}");
    }

    #[test]
    fn a_field_that_there_is_not_is_found() {
        assert_eq!(unknown_field("/{key}/{user}"), Some("user"));
        assert_eq!(unknown_field(r#"{"a": {"b": 1}} {} {0}"#), None);
        assert!(has_field("x={nonce}", "nonce") && !has_field("nonce", "nonce"));
    }
}
