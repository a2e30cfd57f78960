//! Prices of models by the token, in the form of LiteLLM's `model_prices_and_context_window.json`.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::usage::PricedTokens;

/// Prices of models.
#[derive(Clone, Debug, Default)]
pub struct TokenPrices {
    models: HashMap<String, ModelPrice>,
}

/// Prices of one model, in USD per token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ModelPrice {
    input: f64,
    output: f64,
    cache_read: f64,
    cache_write: f64,
    /// Tokens of a prompt up to which these prices hold.
    max_input: u64,
}

/// Place of the number of tokens in names such as `input_cost_per_token_above_200k_tokens`.
const ABOVE: &str = "_cost_per_token_above_";

impl TokenPrices {
    /// Prices from an object of models, each with `input_cost_per_token` and, unless it has no output,
    /// `output_cost_per_token`. Models without these, which are paid in another way, are left out.
    ///
    /// # Errors
    /// One line with the reason.
    pub fn read(text: &str) -> Result<Self, String> {
        let example = r#"write e.g. {"my-model": {"input_cost_per_token": 1e-6, "output_cost_per_token": 4e-6}}"#;
        let all: Map<String, Value> = serde_json::from_str(text).map_err(|error| format!("{error}; {example}"))?;
        let mut models = HashMap::new();
        for (name, value) in all {
            let Value::Object(value) = value else {
                return Err(format!("'{}' is not an object; {example}", name.escape_debug()));
            };
            let price = ModelPrice::read(&value).map_err(|why| format!("'{}': {why}", name.escape_debug()))?;
            if let Some(price) = price {
                models.insert(name, price);
            }
        }
        if models.is_empty() {
            return Err(format!("no model has a price; {example}"));
        }
        Ok(Self { models })
    }

    /// Price of a model; a date at the end of its name may be missing in the prices.
    pub(super) fn of_model(&self, name: &str) -> Option<&ModelPrice> {
        self.models.get(name).or_else(|| self.models.get(without_date(name)?))
    }
}

/// Name without `-2024-08-06` or `-20240806` at its end.
fn without_date(name: &str) -> Option<&str> {
    [11, 9].into_iter().find_map(|length| {
        let (base, date) = name.split_at_checked(name.len().checked_sub(length)?)?;
        let digits = date.strip_prefix('-')?.replace('-', "");
        let is_date = digits.len() == 8 && digits.bytes().all(|byte| byte.is_ascii_digit());
        (is_date && !base.is_empty()).then_some(base)
    })
}

impl ModelPrice {
    fn read(value: &Map<String, Value>) -> Result<Option<Self>, String> {
        let price = |name: &str| match value.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(given) => match given.as_f64() {
                Some(price) if price >= 0.0 && price.is_finite() => Ok(Some(price)),
                _ => Err(format!("invalid {name} {given}; write USD per token, e.g. 1e-6")),
            },
        };
        let Some(input) = price("input_cost_per_token")? else { return Ok(None) };
        let max_input = value.keys().filter_map(|name| threshold(name)).min().unwrap_or(u64::MAX);
        Ok(Some(Self {
            input,
            output: price("output_cost_per_token")?.unwrap_or(0.0),
            cache_read: price("cache_read_input_token_cost")?.unwrap_or(input),
            cache_write: price("cache_creation_input_token_cost")?.unwrap_or(input),
            max_input,
        }))
    }

    /// Whether the prices hold for a response with this usage.
    pub(super) const fn covers(&self, usage: &PricedTokens) -> bool {
        usage.input() <= self.max_input
    }

    /// Cost of tokens, in USD.
    pub(super) fn cost(&self, usage: &PricedTokens) -> f64 {
        let parts = [
            (usage.uncached, self.input),
            (usage.cache_read, self.cache_read),
            (usage.cache_write, self.cache_write),
            (usage.output, self.output),
        ];
        parts.into_iter().map(|(tokens, price)| tokens as f64 * price).sum()
    }
}

/// Tokens of a prompt above which another price holds: 200,000 of `input_cost_per_token_above_200k_tokens`.
fn threshold(name: &str) -> Option<u64> {
    let (_, rest) = name.split_once(ABOVE)?;
    let thousands: u64 = rest.strip_suffix("k_tokens")?.parse().ok()?;
    thousands.checked_mul(1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRICES: &str = r#"{
        "sample_spec": {"mode": "chat"},
        "m": {"input_cost_per_token": 2e-6, "output_cost_per_token": 8e-6, "cache_read_input_token_cost": 5e-7},
        "long": {"input_cost_per_token": 1e-6, "output_cost_per_token": 1e-6,
                 "input_cost_per_token_above_200k_tokens": 2e-6, "output_cost_per_token_above_128k_tokens": 2e-6},
        "embed": {"input_cost_per_token": 1e-7}
    }"#;

    #[test]
    fn tokens_cost_what_their_kind_does() {
        let prices = TokenPrices::read(PRICES).unwrap();
        let usage = PricedTokens { uncached: 1000, cache_read: 4000, cache_write: 500, output: 100 };
        let cost = prices.of_model("m").unwrap().cost(&usage);
        assert!((cost - (0.002 + 0.002 + 0.001 + 0.0008)).abs() < 1e-12, "{cost}");
        let long = prices.of_model("long").unwrap();
        assert!(!long.covers(&PricedTokens { uncached: 128_000, ..usage }));
        assert!(long.covers(&PricedTokens { uncached: 123_500, ..usage }));
        assert!(prices.of_model("embed").unwrap().cost(&PricedTokens { output: 0, ..usage }) > 0.0);
    }

    #[test]
    fn a_model_with_a_date_has_the_price_of_the_one_without() {
        let prices = TokenPrices::read(PRICES).unwrap();
        for (name, is_known) in [
            ("m", true),
            ("m-2024-08-06", true),
            ("m-20240806", true),
            ("m-mini", false),
            ("m-mini-2024-08-06", false),
            ("m-2024-08-0x", false),
            ("-20240806", false),
            ("20240806", false),
            ("é-20240806", false),
            ("sample_spec", false),
            ("", false),
        ] {
            assert_eq!(prices.of_model(name).is_some(), is_known, "{name}");
        }
    }

    #[test]
    fn a_file_that_has_no_prices_says_why() {
        for (text, reason) in [
            ("[]", "invalid type"),
            ("{}", "no model has a price"),
            (r#"{"m": 3}"#, "'m' is not an object"),
            (r#"{"m": {"input_cost_per_token": "2e-6"}}"#, "'m': invalid input_cost_per_token \"2e-6\""),
            (r#"{"m": {"input_cost_per_token": -1}}"#, "'m': invalid input_cost_per_token -1"),
        ] {
            let why = TokenPrices::read(text).unwrap_err();
            assert!(why.starts_with(reason), "{text}: {why}");
        }
    }
}
