//! Rate limits per API key: requests and tokens per minute, and their headers.

use std::collections::HashMap;
use std::sync::Mutex;

use http::header::{HeaderMap, HeaderName, HeaderValue};

use super::error::LlmError;
use super::options::Options;
use weir_base::Nanos;
use weir_events::llm::LlmApi;
use weir_limits::models::{LimitModel, LimitUsage, LimitWindow, RetryTime, ServerLimiter};
use weir_machine::lock::lock;

/// Rate limits of all keys.
#[derive(Debug)]
pub(super) struct TokenLimits {
    keys: Mutex<HashMap<String, KeyLimits>>,
    new_key: KeyLimits,
}

/// Limiters of one key; buckets that refill evenly.
#[derive(Clone, Debug)]
struct KeyLimits {
    requests: Option<ServerLimiter>,
    tokens: Option<ServerLimiter>,
}

/// Decision on a request, and the rate-limit headers of its response.
#[derive(Debug)]
pub(super) struct LimitDecision {
    pub(super) outcome: Result<(), LlmError>,
    pub(super) headers: HeaderMap,
}

/// Maximum number of keys with limits of their own; all further ones share one.
const MAX_KEYS: usize = 10_000;
/// Name of the further keys.
const FURTHER_KEYS: &str = "";

impl TokenLimits {
    /// Limits by these options.
    ///
    /// # Errors
    /// An invalid limit, in one line.
    pub(super) fn new(options: &Options) -> Result<Self, String> {
        let limiter = |limit: Option<u64>| -> Result<Option<ServerLimiter>, String> {
            let window = |limit| LimitWindow::new(LimitModel::TokenBucket, limit, Nanos::from_secs(60));
            Ok(limit.map(window).transpose()?.map(|window| ServerLimiter::new(&[window], Nanos::MILLI)))
        };
        let (requests, tokens) = (limiter(options.requests_per_minute)?, limiter(options.tokens_per_minute)?);
        Ok(Self { keys: Mutex::default(), new_key: KeyLimits { requests, tokens } })
    }

    /// Decides on a request of a key that takes this number of tokens. A request that is rejected for its tokens counts
    /// as a request all the same.
    pub(super) fn judge(&self, key: &str, now: Nanos, tokens: u64, api: LlmApi) -> LimitDecision {
        let mut keys = lock(&self.keys);
        let key = if keys.contains_key(key) || keys.len() < MAX_KEYS { key } else { FURTHER_KEYS };
        let limits = keys.entry(key.to_owned()).or_insert_with(|| self.new_key.clone());
        let judge = |limiter: &mut Option<ServerLimiter>, weight: u64, what: &str| {
            let Some(limiter) = limiter else { return Ok(()) };
            limiter.judge(now, weight).map_err(|rejection| {
                let retry = match rejection.retry {
                    RetryTime::After(time) => Some(time),
                    RetryTime::Finished | RetryTime::Never => None,
                };
                LlmError::limited(what, retry)
            })
        };
        let outcome =
            judge(&mut limits.requests, 1, "requests").and_then(|()| judge(&mut limits.tokens, tokens, "tokens"));
        let mut headers = HeaderMap::new();
        for (limiter, kind) in
            [(&mut limits.requests, MinuteLimit::Requests), (&mut limits.tokens, MinuteLimit::Tokens)]
        {
            if let Some(usage) = limiter.as_mut().and_then(|limiter| limiter.usages(now).first().copied()) {
                kind.add_headers(&mut headers, usage, api);
            }
        }
        LimitDecision { outcome, headers }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MinuteLimit {
    Requests,
    Tokens,
}

impl MinuteLimit {
    fn add_headers(self, headers: &mut HeaderMap, usage: LimitUsage, api: LlmApi) {
        let names = match (api, self) {
            (LlmApi::Messages, Self::Requests) => {
                ["anthropic-ratelimit-requests-limit", "anthropic-ratelimit-requests-remaining"]
                    .map(HeaderName::from_static)
                    .to_vec()
            }
            (LlmApi::Messages, Self::Tokens) => {
                ["anthropic-ratelimit-tokens-limit", "anthropic-ratelimit-tokens-remaining"]
                    .map(HeaderName::from_static)
                    .to_vec()
            }
            (_, Self::Requests) => {
                ["x-ratelimit-limit-requests", "x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"]
                    .map(HeaderName::from_static)
                    .to_vec()
            }
            (_, Self::Tokens) => {
                ["x-ratelimit-limit-tokens", "x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"]
                    .map(HeaderName::from_static)
                    .to_vec()
            }
        };
        let reset = match usage.all {
            RetryTime::After(time) => time,
            RetryTime::Finished | RetryTime::Never => Nanos::ZERO,
        };
        let reset = HeaderValue::from_str(&reset_time(reset)).unwrap_or_else(|_| HeaderValue::from_static("0ms"));
        let values = [HeaderValue::from(usage.window.limit()), HeaderValue::from(usage.remaining), reset];
        headers.extend(names.into_iter().zip(values));
    }
}

/// Time in OpenAI's notation: `20ms`, `1.5s`, `6m0s`.
fn reset_time(time: Nanos) -> String {
    let ms = time.0.div_ceil(Nanos::MILLI.0);
    let seconds = ms as f64 / 1000.0;
    match ms {
        0..1000 => format!("{ms}ms"),
        1000..60_000 => format!("{seconds}s"),
        _ => format!("{}m{}s", ms / 60_000, (ms % 60_000) as f64 / 1000.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_openai_writes_them() {
        let written = [20, 1_500, 60_000, 361_500].map(|ms| reset_time(Nanos::from_millis(ms)));
        assert_eq!(written, ["20ms", "1.5s", "1m0s", "6m1.5s"]);
    }
}
