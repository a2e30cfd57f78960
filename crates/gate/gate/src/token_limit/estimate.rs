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
/// Length from which a text of the characters of Base64 is data.
const MIN_DATA_BYTES: usize = 1024;
/// Maximum length of what may come before it, as `data:image/png;base64,`.
const MAX_PREFIX_BYTES: usize = 128;
const PREFIX_END: &[u8] = b"base64,";
/// Fields with the maximum length of the output, of the APIs of OpenAI and Anthropic.
const OUTPUT_FIELDS: [&str; 3] = ["max_completion_tokens", "max_tokens", "max_output_tokens"];

/// Estimate of a request's tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TokenEstimate {
    /// Tokens of its text.
    pub(crate) text: u64,
    /// The same, and of the output that it allows; at least 1.
    pub(crate) total: u64,
}

impl TokenEstimate {
    /// Text, and the maximum output times the number of choices. A body that is not JSON counts as text.
    pub(crate) fn of_body(body: &[u8]) -> Self {
        match serde_json::from_slice::<AskedTokens>(body) {
            Ok(of) => {
                let total = of.text.saturating_add(of.output.saturating_mul(of.choices));
                Self { text: of.text, total: total.max(1) }
            }
            Err(_) => Self::of_length(body.len() as u64),
        }
    }

    /// Of a body of which only the length is known.
    pub(crate) fn of_length(bytes: u64) -> Self {
        let text = bytes.div_ceil(ASCII_PER_TOKEN);
        Self { text, total: text.max(1) }
    }
}

/// Tokens of a text.
fn text_tokens(text: &str) -> u64 {
    if is_data(text.as_bytes()) {
        return TOKENS_OF_DATA;
    }
    let ascii = text.bytes().filter(u8::is_ascii).count() as u64;
    let others = text.chars().filter(|char| !char.is_ascii()).count() as u64;
    ascii.div_ceil(ASCII_PER_TOKEN) + others
}

/// Whether a text is an image, a sound or a file. Code and JSON may have no space either.
fn is_data(text: &[u8]) -> bool {
    if text.len() < MIN_DATA_BYTES {
        return false;
    }
    let prefix = text[..MAX_PREFIX_BYTES].windows(PREFIX_END.len()).position(|part| part == PREFIX_END);
    let data = &text[prefix.map_or(0, |at| at + PREFIX_END.len())..];
    data.iter().all(|byte| byte.is_ascii_alphanumeric() || b"+/=\r\n".contains(byte))
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

/// A number, rounded down and at least 0; none for any other value.
struct WholeNumber(Option<u64>);

impl<'de> Deserialize<'de> for WholeNumber {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        // Services also take 100.0; a cast saturates.
        Ok(Self(value.as_u64().or_else(|| value.as_f64().map(|number| number as u64))))
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

    fn estimated_tokens(body: &[u8]) -> u64 {
        TokenEstimate::of_body(body).total
    }

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
            (json!({"max_tokens": 1e30}), u64::MAX),
            (json!({"max_tokens": 40.0, "n": 2.5}), 80),
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
    fn text_is_no_image_however_it_begins() {
        for text in ["x".repeat(2000) + &" word".repeat(400), "{\"a\":1}".repeat(500), "a_b".repeat(2000)] {
            let body = json!({"prompt": text}).to_string();
            assert_eq!(TokenEstimate::of_body(body.as_bytes()).text, (text.len() as u64).div_ceil(4));
        }
        assert_eq!(text_tokens(&"AAAA".repeat(255)), 255, "short enough for a name");
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
