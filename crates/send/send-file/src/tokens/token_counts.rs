//! Tokens and costs of a run, by model.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::prices::TokenPrices;
use super::usage::PricedTokens;
use weir_base::number_text::count;

/// Maximum number of models; those of further ones are counted together, without a price.
const MAX_MODELS: usize = 100;
const OTHER_MODELS: &str = "others";

/// Tokens of the responses of a run.
#[derive(Debug, Default)]
pub(crate) struct TokenCounts {
    prices: Option<TokenPrices>,
    models: BTreeMap<String, ModelTokens>,
}

/// Responses of a model.
#[derive(Clone, Copy, Debug, Default)]
struct ModelTokens {
    responses: u64,
    usage: PricedTokens,
    /// Of these, those with a price.
    priced_responses: u64,
    priced: PricedTokens,
}

impl TokenCounts {
    pub(crate) fn new(prices: Option<TokenPrices>) -> Self {
        Self { prices, models: BTreeMap::new() }
    }

    /// Counts a response, if it has usage.
    pub(crate) fn record(&mut self, body: &[u8]) {
        let Some((model, usage)) = PricedTokens::of_response(body) else { return };
        let is_full = self.models.len() >= MAX_MODELS && !self.models.contains_key(&model);
        let model = if is_full { OTHER_MODELS.to_owned() } else { model };
        let price = self.prices.as_ref().and_then(|prices| prices.of_model(&model));
        let has_price = price.is_some_and(|price| price.covers(&usage));
        let counted = self.models.entry(model).or_default();
        counted.responses += 1;
        counted.usage.add(&usage);
        if has_price {
            counted.priced_responses += 1;
            counted.priced.add(&usage);
        }
    }

    fn cost(&self, model: &str, tokens: &ModelTokens) -> Option<f64> {
        let price = self.prices.as_ref()?.of_model(model)?;
        (tokens.priced_responses > 0).then(|| price.cost(&tokens.priced))
    }

    fn total(&self) -> (ModelTokens, Option<f64>) {
        let mut all = ModelTokens::default();
        let mut cost = self.prices.as_ref().map(|_| 0.0);
        for (model, tokens) in &self.models {
            all.responses += tokens.responses;
            all.priced_responses += tokens.priced_responses;
            all.usage.add(&tokens.usage);
            cost = cost.map(|sum| sum + self.cost(model, tokens).unwrap_or(0.0));
        }
        (all, cost)
    }

    /// Part of the summary (docs/schema/send.schema.json).
    pub(crate) fn json(&self) -> Value {
        let object = |tokens: &ModelTokens, cost: Option<f64>| {
            let unpriced = self.prices.as_ref().map(|_| tokens.responses - tokens.priced_responses);
            json!({
                "responses": tokens.responses,
                "input": tokens.usage.input(),
                "cache_read": tokens.usage.cache_read,
                "cache_write": tokens.usage.cache_write,
                "output": tokens.usage.output,
                "cost_usd": cost,
                "unpriced_responses": unpriced,
            })
        };
        let models: Map<String, Value> =
            self.models.iter().map(|(name, tokens)| (name.clone(), object(tokens, self.cost(name, tokens)))).collect();
        let (all, cost) = self.total();
        let mut json = object(&all, cost);
        json["per_model"] = Value::Object(models);
        json
    }

    /// Lines of the summary: name and text.
    pub(crate) fn lines(&self) -> Vec<(&'static str, String)> {
        let (all, cost) = self.total();
        let mut tokens = format!("{} in", count(all.usage.input()));
        if all.usage.cache_read > 0 {
            tokens += &format!(" ({} of them cached)", count(all.usage.cache_read));
        }
        tokens += &format!(", {} out", count(all.usage.output));
        let mut lines = vec![("tokens", tokens)];
        if let Some(cost) = cost {
            let unpriced = all.responses - all.priced_responses;
            let rest = if unpriced > 0 {
                let models = self.models.iter().filter(|(_, tokens)| tokens.responses > tokens.priced_responses);
                let names: Vec<&str> = models.map(|(name, _)| name.as_str()).collect();
                format!("; {} responses have no price in --prices: {}", count(unpriced), named(&names))
            } else {
                String::new()
            };
            lines.push(("cost", format!("{}{rest}", usd(cost))));
        }
        lines
    }
}

/// Names of some models.
fn named(names: &[&str]) -> String {
    const MAX_NAMED: usize = 3;
    let shown = |name: &&str| if name.is_empty() { "(no model)".to_owned() } else { (*name).to_owned() };
    let some: Vec<String> = names.iter().take(MAX_NAMED).map(shown).collect();
    let more = if names.len() > MAX_NAMED { ", ..." } else { "" };
    some.join(", ") + more
}

/// `$12.34`, with as many digits as a small amount needs.
fn usd(amount: f64) -> String {
    if amount >= 1.0 || amount == 0.0 { format!("${amount:.2}") } else { format!("${amount:.6}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(model: &str, input: u64, output: u64) -> Vec<u8> {
        json!({"model": model, "usage": {"prompt_tokens": input, "completion_tokens": output}}).to_string().into_bytes()
    }

    #[test]
    fn costs_are_of_responses_with_a_price_and_the_others_are_counted() {
        let text = r#"{"m": {"input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6,
                             "input_cost_per_token_above_1k_tokens": 2e-6}}"#;
        let mut counts = TokenCounts::new(Some(TokenPrices::read(text).unwrap()));
        for body in
            [response("m", 1000, 500), response("m-2026-01-01", 10, 0), response("m", 1001, 1), response("x", 7, 1)]
        {
            counts.record(&body);
        }
        counts.record(b"{}");
        let json = counts.json();
        assert_eq!((&json["responses"], &json["input"], &json["output"]), (&json!(4), &json!(2018), &json!(502)));
        assert_eq!((&json["unpriced_responses"], &json["per_model"]["x"]["cost_usd"]), (&json!(2), &Value::Null));
        assert!((json["cost_usd"].as_f64().unwrap() - 0.002_01).abs() < 1e-12, "{json}");
        assert_eq!(
            counts.lines(),
            [
                ("tokens", "2,018 in, 502 out".to_owned()),
                ("cost", "$0.002010; 2 responses have no price in --prices: m, x".to_owned()),
            ]
        );
    }

    #[test]
    fn without_prices_there_is_no_cost_and_many_models_take_bounded_memory() {
        let mut counts = TokenCounts::new(None);
        (0..1000).for_each(|number| counts.record(&response(&format!("m{number}"), 1, 1)));
        assert_eq!(counts.models.len(), MAX_MODELS + 1);
        let json = counts.json();
        assert_eq!(
            (&json["cost_usd"], &json["unpriced_responses"], &json["input"]),
            (&Value::Null, &Value::Null, &json!(1000))
        );
        assert_eq!(counts.lines(), [("tokens", "1,000 in, 1,000 out".to_owned())]);
    }
}
