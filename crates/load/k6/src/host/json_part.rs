//! One value of a JSON text, found without making objects of all others.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// Text of the value at the end of these names and indices; None if there is none. All of the text is read: of keys that
/// stand twice in an object the last one counts, as in `JSON.parse`.
///
/// # Errors
/// If the text is not JSON, or has a number or an escape that this reader does not take.
pub(super) fn json_part<'t>(text: &'t str, names: &[&str]) -> serde_json::Result<Option<&'t str>> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let part = Part { names }.deserialize(&mut reader)?;
    reader.end()?;
    Ok(part)
}

#[derive(Clone, Copy)]
struct Part<'n> {
    names: &'n [&'n str],
}

/// Whether the key of an object is this one, which then needs no memory.
struct IsKey<'n>(&'n str);

impl<'t> DeserializeSeed<'t> for Part<'_> {
    type Value = Option<&'t str>;

    fn deserialize<D: Deserializer<'t>>(self, reader: D) -> Result<Self::Value, D::Error> {
        if self.names.is_empty() {
            let raw: &'t RawValue = serde::Deserialize::deserialize(reader)?;
            return Ok(Some(raw.get()));
        }
        reader.deserialize_any(self)
    }
}

impl<'t> Visitor<'t> for Part<'_> {
    type Value = Option<&'t str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_seq<A: SeqAccess<'t>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let Some((name, names)) = self.names.split_first() else { return Ok(None) };
        let mut left = name.parse::<usize>().ok();
        let mut found = None;
        loop {
            let is_here = left == Some(0);
            left = left.and_then(|left| left.checked_sub(1));
            if is_here {
                match items.next_element_seed(Part { names })? {
                    Some(part) => found = part,
                    None => return Ok(found),
                }
            } else if items.next_element::<IgnoredAny>()?.is_none() {
                return Ok(found);
            }
        }
    }

    fn visit_map<A: MapAccess<'t>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
        let Some((name, names)) = self.names.split_first() else { return Ok(None) };
        let mut found = None;
        while let Some(is_here) = fields.next_key_seed(IsKey(name))? {
            if is_here {
                found = fields.next_value_seed(Part { names })?;
            } else {
                fields.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }
}

impl<'t> DeserializeSeed<'t> for IsKey<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'t>>(self, reader: D) -> Result<bool, D::Error> {
        reader.deserialize_str(self)
    }
}

impl Visitor<'_> for IsKey<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<bool, E> {
        Ok(key == self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    /// The same by the whole value.
    fn of_the_whole<'v>(whole: &'v Value, names: &[&str]) -> Option<&'v Value> {
        names.iter().try_fold(whole, |value, name| match value {
            Value::Array(items) => name.parse::<usize>().ok().and_then(|index| items.get(index)),
            Value::Object(fields) => fields.get(*name),
            _ => None,
        })
    }

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[a1\"\\\\é\n]{0,4}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 30, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec(("[ab01]", inner), 0..4).prop_map(|fields| fields.into_iter().collect::<Value>()),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_part_is_that_of_the_whole(whole in json(), names in prop::collection::vec("[ab01]", 0..4), is_pretty: bool) {
            let text = if is_pretty { format!(" {whole:#}\n") } else { whole.to_string() };
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let part = json_part(&text, &names).unwrap();
            let part = part.map(|part| serde_json::from_str::<Value>(part).unwrap());
            prop_assert_eq!(part.as_ref(), of_the_whole(&whole, &names));
        }

        #[test]
        fn what_is_no_json_has_no_part(text in "[\\[\\]{}:,\"a1 ]{0,12}", name in "[ab01]") {
            prop_assert_eq!(json_part(&text, &[&name]).is_ok(), serde_json::from_str::<IgnoredAny>(&text).is_ok());
        }
    }

    #[test]
    fn the_last_of_equal_keys_counts() {
        assert_eq!(json_part(r#"{"a": 1, "a": [2, 3]}"#, &["a", "1"]).unwrap(), Some("3"));
        assert_eq!(json_part(r#"{"a": [2, 3], "a": 1}"#, &["a", "1"]).unwrap(), None);
    }

    #[test]
    fn numbers_keep_their_digits() {
        let text = r#"{"id": 12345678901234567890123, "x": -0.10e2}"#;
        assert_eq!(json_part(text, &["id"]).unwrap(), Some("12345678901234567890123"));
        assert_eq!(json_part(text, &["x"]).unwrap(), Some("-0.10e2"));
    }
}
