//! Usage of a response: tokens by what they cost.

use std::borrow::Cow;

use serde::Deserialize;

/// Tokens of one response, or sums of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PricedTokens {
    /// Tokens of prompts that were not cached.
    pub(super) uncached: u64,
    /// Tokens of prompts that were read from a cache.
    pub(super) cache_read: u64,
    /// Tokens of prompts that were written into a cache.
    pub(super) cache_write: u64,
    /// Tokens of responses, reasoning included.
    pub(super) output: u64,
}

#[derive(Debug, Deserialize)]
struct UsageBody<'a> {
    #[serde(borrow)]
    model: Option<Cow<'a, str>>,
    usage: Option<UsageObject>,
}

/// Usage of chat completions, completions and embeddings; of responses; and of Anthropic's messages.
#[derive(Debug, Deserialize)]
struct UsageObject {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    prompt_tokens_details: Option<TokenDetails>,
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    input_tokens_details: Option<TokenDetails>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct TokenDetails {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
}

impl TokenDetails {
    /// Whether it counts tokens of a cache.
    fn is_known(&self) -> bool {
        self.cached_tokens.or(self.cache_write_tokens).is_some()
    }

    /// Tokens of a prompt, of which these were read from a cache and written into it.
    fn tokens(details: Option<&Self>, prompt: u64, output: u64) -> PricedTokens {
        let cache_read = details.and_then(|details| details.cached_tokens).unwrap_or(0).min(prompt);
        let written = details.and_then(|details| details.cache_write_tokens).unwrap_or(0);
        let cache_write = written.min(prompt - cache_read);
        PricedTokens { uncached: prompt - cache_read - cache_write, cache_read, cache_write, output }
    }
}

impl PricedTokens {
    /// Model and usage of a response; None without usage.
    pub(super) fn of_response(body: &[u8]) -> Option<(String, Self)> {
        let parsed: UsageBody<'_> = serde_json::from_slice(body).ok()?;
        let usage = parsed.usage?;
        let tokens = if let Some(prompt) = usage.prompt_tokens {
            let details = usage.prompt_tokens_details.as_ref();
            TokenDetails::tokens(details, prompt, usage.completion_tokens.unwrap_or(0))
        } else if let Some(details) = usage.input_tokens_details.filter(TokenDetails::is_known) {
            TokenDetails::tokens(Some(&details), usage.input_tokens?, usage.output_tokens.unwrap_or(0))
        } else {
            // Anthropic counts what was cached apart from the rest.
            Self {
                uncached: usage.input_tokens?,
                cache_read: usage.cache_read_input_tokens.unwrap_or(0),
                cache_write: usage.cache_creation_input_tokens.unwrap_or(0),
                output: usage.output_tokens.unwrap_or(0),
            }
        };
        Some((parsed.model.unwrap_or_default().into_owned(), tokens))
    }

    /// Tokens of prompts.
    pub(super) const fn input(&self) -> u64 {
        self.uncached.saturating_add(self.cache_read).saturating_add(self.cache_write)
    }

    pub(super) fn add(&mut self, other: &Self) {
        for (sum, more) in [
            (&mut self.uncached, other.uncached),
            (&mut self.cache_read, other.cache_read),
            (&mut self.cache_write, other.cache_write),
            (&mut self.output, other.output),
        ] {
            *sum = sum.saturating_add(more);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(text: &str) -> Option<[u64; 4]> {
        let body = format!(r#"{{"model":"m","usage":{text}}}"#);
        let (model, usage) = PricedTokens::of_response(body.as_bytes())?;
        assert_eq!(model, "m");
        Some([usage.uncached, usage.cache_read, usage.cache_write, usage.output])
    }

    #[test]
    fn each_api_counts_in_its_own_words() {
        for (text, expected) in [
            (r#"{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}"#, [10, 0, 0, 5]),
            (r#"{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":4}}"#, [6, 4, 0, 5]),
            (
                r#"{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":4,"cache_write_tokens":3}}"#,
                [3, 4, 3, 5],
            ),
            (r#"{"input_tokens":9,"input_tokens_details":{"cached_tokens":4,"cache_write_tokens":9}}"#, [0, 4, 5, 0]),
            (r#"{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":null}"#, [10, 0, 0, 5]),
            (r#"{"prompt_tokens":8,"total_tokens":8}"#, [8, 0, 0, 0]),
            (r#"{"input_tokens":10,"output_tokens":5,"input_tokens_details":{"cached_tokens":4}}"#, [6, 4, 0, 5]),
            (
                r#"{"input_tokens":10,"output_tokens":5,"cache_read_input_tokens":100,"cache_creation_input_tokens":7}"#,
                [10, 100, 7, 5],
            ),
            (r#"{"input_tokens":10,"output_tokens":5,"cache_read_input_tokens":null}"#, [10, 0, 0, 5]),
            (r#"{"prompt_tokens":3,"prompt_tokens_details":{"cached_tokens":9}}"#, [0, 3, 0, 0]),
        ] {
            assert_eq!(usage(text), Some(expected), "{text}");
        }
        for text in ["null", "{}", r#"{"total_tokens":3}"#, r#"{"prompt_tokens":-1}"#, r#"{"prompt_tokens":"3"}"#] {
            assert_eq!(usage(text), None, "{text}");
        }
        assert!(PricedTokens::of_response(b"<html>").is_none());
    }
}
