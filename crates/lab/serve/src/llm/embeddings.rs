//! OpenAI's embeddings: seeded vectors of length 1, a function of the text.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};

use super::error::LlmError;
use super::request::tokens_of;
use weir_base::rng::SeededRng;

/// Default number of dimensions.
const DEFAULT_DIMENSIONS: usize = 64;
/// Maximum number of dimensions.
const MAX_DIMENSIONS: usize = 4096;
/// Maximum number of texts of a request.
const MAX_INPUTS: usize = 2048;

#[derive(Debug, Deserialize)]
struct EmbeddingOptions {
    input: Value,
    encoding_format: Option<String>,
    dimensions: Option<usize>,
}

/// Body of the response to a request, which has been read as a request to this model.
pub(super) fn body(request: &[u8], model: &str, seed: u64) -> Result<String, LlmError> {
    let options: EmbeddingOptions =
        serde_json::from_slice(request).map_err(|error| LlmError::invalid(format!("invalid body: {error}"), None))?;
    let dimensions = options.dimensions.unwrap_or(DEFAULT_DIMENSIONS);
    if !(1..=MAX_DIMENSIONS).contains(&dimensions) {
        let message = format!("'dimensions' is not from 1 to {MAX_DIMENSIONS}");
        return Err(LlmError::invalid(message, Some("dimensions")));
    }
    let is_base64 = match options.encoding_format.as_deref() {
        None | Some("float") => false,
        Some("base64") => true,
        Some(_) => {
            let message = "'encoding_format' is neither float nor base64".to_owned();
            return Err(LlmError::invalid(message, Some("encoding_format")));
        }
    };
    let tokens = tokens_of(&options.input);
    let inputs = match options.input {
        // A list of token IDs is one text.
        Value::Array(list) if !list.iter().all(Value::is_number) => list,
        other => vec![other],
    };
    if inputs.len() > MAX_INPUTS {
        return Err(LlmError::invalid(format!("more than {MAX_INPUTS} inputs"), Some("input")));
    }
    let data: Vec<Value> = (0..)
        .zip(&inputs)
        .map(|(index, input): (u64, _)| {
            let vector = embedding(&input.to_string(), dimensions, seed);
            let embedding = if is_base64 {
                let bytes: Vec<u8> = vector.iter().flat_map(|value| value.to_le_bytes()).collect();
                BASE64_STANDARD.encode(bytes).into()
            } else {
                json!(vector)
            };
            json!({"object": "embedding", "index": index, "embedding": embedding})
        })
        .collect();
    let usage = json!({"prompt_tokens": tokens, "total_tokens": tokens});
    Ok(json!({"object": "list", "data": data, "model": model, "usage": usage}).to_string())
}

/// Vector of a text: the same for the same text, seed and number of dimensions.
fn embedding(text: &str, dimensions: usize, seed: u64) -> Vec<f32> {
    // FNV-1a, so that it is the same in every version.
    let hash = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let mut rng = SeededRng::new(seed, hash);
    let vector: Vec<f64> = (0..dimensions).map(|_| rng.normal()).collect();
    let length = vector.iter().map(|value| value * value).sum::<f64>().sqrt();
    vector.iter().map(|value| (value / length) as f32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_have_a_length_of_one_and_depend_on_the_text() {
        let request = br#"{"input":["a","b","a"],"dimensions":3}"#;
        let body: Value = serde_json::from_str(&body(request, "m", 1).expect("a body")).expect("JSON");
        let vector = |index: usize| -> Vec<f64> {
            let list = body["data"][index]["embedding"].as_array().expect("a list");
            list.iter().filter_map(Value::as_f64).collect()
        };
        assert_eq!(vector(0), vector(2));
        assert_ne!(vector(0), vector(1));
        let length: f64 = vector(1).iter().map(|value| value * value).sum();
        assert!((length - 1.0).abs() < 1e-6);
        assert_eq!(body["usage"]["prompt_tokens"], 3);
    }

    #[test]
    fn invalid_options_are_errors() {
        for request in [r#"{"input":"a","dimensions":0}"#, r#"{"input":"a","encoding_format":"hex"}"#, "{}"] {
            assert!(body(request.as_bytes(), "m", 1).is_err(), "{request}");
        }
    }
}
