//! Estimate of the tokens of a request to a language model, from its body.
//!
//! A tokenizer of each model would be exact and slow, and does not know what a service adds. So text counts as four
//! characters a token, which is the mean of English prose, and one for each other character, and the output as long as
//! the request allows. The response says what it was.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// ASCII characters of a token.
const ASCII_PER_TOKEN: u64 = 4;
/// Tokens of an image, a sound or a file within the body: between OpenAI's 85 and 1,105.
const TOKENS_OF_DATA: u64 = 800;
/// Length from which a text without a space is data.
const MIN_DATA_BYTES: usize = 1024;
/// Fields with the maximum length of the output, of the APIs of OpenAI and Anthropic.
const OUTPUT_FIELDS: [&str; 3] = ["max_completion_tokens", "max_tokens", "max_output_tokens"];

/// Tokens that a request asks for: text, and the maximum output times the number of choices; at least 1. A body that is
/// not JSON counts as text.
pub(crate) fn estimated_tokens(body: &[u8]) -> u64 {
    match serde_json::from_slice::<AskedTokens>(body) {
        Ok(of) => of.text.saturating_add(of.output.saturating_mul(of.choices)).max(1),
        Err(_) => tokens_of_length(body.len() as u64),
    }
}

/// Tokens of a body of which only the length is known; at least 1.
pub(crate) fn tokens_of_length(bytes: u64) -> u64 {
    bytes.div_ceil(ASCII_PER_TOKEN).max(1)
}

/// Tokens of a text.
fn text_tokens(text: &str) -> u64 {
    if text.len() >= MIN_DATA_BYTES && !text.bytes().take(MIN_DATA_BYTES).any(|byte| byte == b' ') && text.is_ascii() {
        return TOKENS_OF_DATA;
    }
    let ascii = text.bytes().filter(u8::is_ascii).count() as u64;
    let others = text.chars().filter(|char| !char.is_ascii()).count() as u64;
    ascii.div_ceil(ASCII_PER_TOKEN) + others
}

struct AskedTokens {
    text: u64,
    output: u64,
    choices: u64,
}

impl<'de> Deserialize<'de> for AskedTokens {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(RequestVisitor)
    }
}

struct RequestVisitor;

impl<'de> Visitor<'de> for RequestVisitor {
    type Value = AskedTokens;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a request")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<AskedTokens, A::Error> {
        let mut of = AskedTokens { text: 0, output: 0, choices: 1 };
        while let Some(key) = map.next_key::<std::borrow::Cow<'de, str>>()? {
            if OUTPUT_FIELDS.contains(&&*key) {
                of.output = of.output.max(map.next_value::<WholeNumber>()?.0.unwrap_or_default());
            } else if key == "n" {
                of.choices = map.next_value::<WholeNumber>()?.0.unwrap_or(1).max(1);
            } else {
                of.text = of.text.saturating_add(map.next_value::<TextTokens>()?.0);
            }
        }
        Ok(of)
    }
}

/// A whole number; none for any other value.
struct WholeNumber(Option<u64>);

impl<'de> Deserialize<'de> for WholeNumber {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(serde_json::Value::deserialize(deserializer)?.as_u64()))
    }
}

/// Tokens of all texts of a value.
struct TextTokens(u64);

impl<'de> Deserialize<'de> for TextTokens {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = TextTokens;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_str<E>(self, text: &str) -> Result<TextTokens, E> {
        Ok(TextTokens(text_tokens(text)))
    }

    fn visit_bool<E>(self, _: bool) -> Result<TextTokens, E> {
        Ok(TextTokens(0))
    }

    fn visit_u64<E>(self, _: u64) -> Result<TextTokens, E> {
        // Prompts may be tokens already.
        Ok(TextTokens(1))
    }

    fn visit_i64<E>(self, _: i64) -> Result<TextTokens, E> {
        Ok(TextTokens(1))
    }

    fn visit_f64<E>(self, _: f64) -> Result<TextTokens, E> {
        Ok(TextTokens(0))
    }

    fn visit_unit<E>(self) -> Result<TextTokens, E> {
        Ok(TextTokens(0))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<TextTokens, A::Error> {
        let mut sum = 0_u64;
        while let Some(TextTokens(one)) = seq.next_element()? {
            sum = sum.saturating_add(one);
        }
        Ok(TextTokens(sum))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<TextTokens, A::Error> {
        let mut sum = 0_u64;
        while let Some(IgnoredAny) = map.next_key()? {
            sum = sum.saturating_add(map.next_value::<TextTokens>()?.0);
        }
        Ok(TextTokens(sum))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    #[test]
    fn requests_of_the_apis_count_their_text_and_their_output() {
        let prompt = "one two three four five six seven eight nine ten"; // 48 characters
        for (body, expected) in [
            (json!({"messages": [{"content": prompt}], "max_tokens": 100}), 112),
            (json!({"messages": [{"content": prompt}], "max_completion_tokens": 100, "n": 3}), 312),
            (json!({"input": prompt, "max_output_tokens": 50}), 62),
            (json!({"prompt": [1, 2, 3], "max_tokens": 5}), 8),
            (json!({"system": prompt, "messages": [{"content": [{"text": prompt}]}]}), 24),
            (json!({"messages": [{"content": "日本語の文章"}]}), 6),
            (json!({"messages": []}), 1),
            (json!({"max_tokens": -5, "n": "many"}), 1),
            (json!({"max_tokens": u64::MAX, "n": 9}), u64::MAX),
        ] {
            assert_eq!(estimated_tokens(body.to_string().as_bytes()), expected, "{body}");
        }
    }

    #[test]
    fn an_image_is_no_megabyte_of_text() {
        let image = format!("data:image/png;base64,{}", "A".repeat(1_000_000));
        let body = json!({"messages": [{"content": [{"image_url": {"url": image}}, {"text": "what is it?"}]}]});
        assert_eq!(estimated_tokens(body.to_string().as_bytes()), TOKENS_OF_DATA + 3);
    }

    #[test]
    fn what_is_not_json_counts_by_its_length() {
        assert_eq!(estimated_tokens(b""), 1);
        assert_eq!(estimated_tokens(&[b'x'; 401]), 101);
        assert_eq!(estimated_tokens(b"{\"messages\": [ broken"), 6);
        // Deeper than the parser goes: no overflow of the stack.
        assert_eq!(estimated_tokens("[".repeat(100_000).as_bytes()), 25_000);
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf =
            prop_oneof![Just(Value::Null), any::<bool>().prop_map(Value::from), "[ -~é日]{0,40}".prop_map(Value::from)];
        leaf.prop_recursive(4, 40, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::hash_map("[a-z]{2,8}", inner, 0..5).prop_map(|map| json!(map)),
            ]
        })
    }

    /// The same of a tree.
    fn naive(value: &Value) -> u64 {
        match value {
            Value::String(text) => text_tokens(text),
            Value::Array(all) => all.iter().map(naive).sum(),
            Value::Object(all) => all.values().map(naive).sum(),
            _ => 0,
        }
    }

    proptest! {
        #[test]
        fn text_is_that_of_all_values(content in value(), max in 0_u64..10_000) {
            let body = json!({"content": content, "max_tokens": max});
            prop_assert_eq!(estimated_tokens(body.to_string().as_bytes()), (naive(&content) + max).max(1));
        }
    }
}
