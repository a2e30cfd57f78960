//! Options of the service.

use std::path::PathBuf;

use crate::llm::pace::LlmPace;
use crate::number_range::check_number;
use weir_base::Nanos;
use weir_base::rng::SeededRng;
use weir_workload::delay::Delay;
use weir_workload::mix::Mix;

/// Options of the service.
#[derive(Clone, Debug)]
pub struct Options {
    /// Seed of all random choices.
    pub seed: u64,
    /// Names of models; `*` is any.
    pub models: Vec<String>,
    /// Valid API keys; any, or none, if this is empty.
    pub api_keys: Vec<String>,
    /// Times of the model.
    pub pace: LlmPace,
    /// Requests that run at once; further ones queue.
    pub slots: usize,
    /// Tokens of a response that the request does not limit.
    pub output_tokens: TokenRange,
    /// Tokens of a streamed event.
    pub tokens_per_chunk: u64,
    /// Maximum tokens of prompt and response together.
    pub max_context: u64,
    /// Requests per minute and key; unlimited without it.
    pub requests_per_minute: Option<u64>,
    /// Tokens per minute and key; unlimited without it.
    pub tokens_per_minute: Option<u64>,
    /// Behaviours towards requests.
    pub mix: Mix,
    /// Delay of slow responses.
    pub slow_delay: Delay,
    /// Fraction of streamed responses that break off, 0 to 1.
    pub cut: f64,
    /// File of records.
    pub record: Option<PathBuf>,
    /// Tokens of a block of a prompt, of which records have how many were seen before.
    pub block_tokens: u64,
}

/// Range of numbers of tokens, uniform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenRange {
    /// Least number, from 1.
    pub low: u64,
    /// Greatest number.
    pub high: u64,
}

impl TokenRange {
    /// Maximum number of tokens.
    pub const MAX_TOKENS: u64 = 1_000_000;

    /// Parses `64` or `16..128`.
    ///
    /// # Errors
    /// Invalid notation, with what to write instead.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("invalid number of tokens '{text}'; write e.g. 64 or 16..128");
        let (low, high) = text.split_once("..").unwrap_or((text, text));
        let number = |text: &str| text.trim().parse().map_err(|_| wrong());
        let (low, high): (u64, u64) = (number(low)?, number(high)?);
        if (1..=high).contains(&low) && high <= Self::MAX_TOKENS { Ok(Self { low, high }) } else { Err(wrong()) }
    }

    /// Number of tokens of request `k`.
    pub fn at(self, rng: &SeededRng, k: u64) -> u64 {
        // `unit_at` is in (0, 1].
        let width = (self.high - self.low + 1) as f64;
        self.low + ((rng.unit_at(k) * width).ceil() as u64).clamp(1, self.high - self.low + 1) - 1
    }
}

impl Options {
    /// Default name of the model.
    pub const DEFAULT_MODEL: &str = "weir-llm";
    /// Default tokens of a block of a prompt: as in Mooncake's traces.
    pub const DEFAULT_BLOCK_TOKENS: u64 = 512;
    /// Default maximum of tokens of prompt and response together.
    pub const DEFAULT_MAX_CONTEXT: u64 = 131_072;

    /// Checks the options.
    ///
    /// # Errors
    /// First invalid option, by its flag, in one line.
    pub fn check(&self) -> Result<(), String> {
        check_number("tokens-per-chunk", self.tokens_per_chunk, 1..=TokenRange::MAX_TOKENS)?;
        check_number("block-tokens", self.block_tokens, 1..=TokenRange::MAX_TOKENS)?;
        check_number("max-context", self.max_context, 1..=1_000_000_000)?;
        check_number("slots", self.slots, 1..=1_000_000)?;
        check_number("requests-per-minute", self.requests_per_minute.unwrap_or(1), 1..=1_000_000_000)?;
        check_number("tokens-per-minute", self.tokens_per_minute.unwrap_or(1), 1..=1_000_000_000_000)?;
        // No time is negative.
        if self.pace.jitter > 1.0 {
            return Err(format!("invalid jitter '{}%': above 100%; write e.g. 10%", self.pace.jitter * 100.0));
        }
        Ok(())
    }

    /// Whether there is a model of this name.
    pub fn has_model(&self, name: &str) -> bool {
        self.models.iter().any(|model| model == name || model == "*")
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            seed: 0,
            models: vec![Self::DEFAULT_MODEL.to_owned()],
            api_keys: Vec::new(),
            pace: LlmPace::default(),
            slots: 16,
            output_tokens: TokenRange { low: 16, high: 128 },
            tokens_per_chunk: 1,
            max_context: Self::DEFAULT_MAX_CONTEXT,
            requests_per_minute: None,
            tokens_per_minute: None,
            mix: Mix::good(),
            slow_delay: Delay::Constant(Nanos::from_secs(10)),
            cut: 0.0,
            record: None,
            block_tokens: Self::DEFAULT_BLOCK_TOKENS,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deviation_leaves_times_of_zero_or_more() {
        let pace = LlmPace { jitter: 2.0, ..LlmPace::default() };
        let why = Options { pace, ..Options::default() }.check();
        assert_eq!(why, Err("invalid jitter '200%': above 100%; write e.g. 10%".to_owned()));
        assert_eq!(Options::default().check(), Ok(()));
    }

    #[test]
    fn numbers_of_tokens_are_parsed() {
        assert_eq!(TokenRange::parse("64"), Ok(TokenRange { low: 64, high: 64 }));
        assert_eq!(TokenRange::parse("16..128"), Ok(TokenRange { low: 16, high: 128 }));
        for wrong in ["", "0", "5..2", "x", "1..", "-1", "1000001"] {
            let error = TokenRange::parse(wrong).expect_err(wrong);
            assert!(error.starts_with(&format!("invalid number of tokens '{wrong}'")), "{error}");
        }
    }

    #[test]
    fn numbers_of_tokens_are_in_their_range_and_reach_both_ends() {
        let (range, rng) = (TokenRange { low: 3, high: 5 }, SeededRng::new(1, 2));
        let mut seen = [0; 7];
        (0..300).for_each(|k| seen[range.at(&rng, k) as usize] += 1);
        assert!(seen[..3] == [0; 3] && seen[6] == 0 && seen[3..6].iter().all(|count| *count > 60), "{seen:?}");
    }
}
