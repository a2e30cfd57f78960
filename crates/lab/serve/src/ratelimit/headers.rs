//! Rate-limit headers of responses.

use http::header::{HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};

use super::accounts::RequestDecision;
use weir_base::Nanos;
use weir_limits::key_quota::QuotaDecision;
use weir_limits::models::{LimitModel, LimitUsage, RetryTime};

/// Which rate-limit headers responses have. All times are in whole seconds, rounded up, so that a wait of that long is
/// enough.
///
/// | name | headers | on |
/// |---|---|---|
/// | `retry-after` | `Retry-After` (RFC 9110): earliest time at which the same request would be accepted | 429, if
/// there is such a time |
/// | `ratelimit` | `RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers-11), an item per window |
/// all that the limiter judged |
/// | `x-ratelimit` | `X-RateLimit-Limit`, `-Remaining`, `-Reset` (as GitHub's) of the window with the least room | all
/// that the limiter judged |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateLimitHeaderSet {
    /// `Retry-After`.
    pub retry_after: bool,
    /// `RateLimit-Policy` and `RateLimit`.
    pub rate_limit: bool,
    /// `X-RateLimit-*`.
    pub x_rate_limit: bool,
}

impl RateLimitHeaderSet {
    /// Parses a comma-separated list of `retry-after`, `ratelimit` and `x-ratelimit`, or `none`, or `all`.
    ///
    /// # Errors
    /// Valid names, in one line.
    pub fn read(text: &str) -> Result<Self, String> {
        let mut read = Self::default();
        for word in text.split(',').map(str::trim) {
            match word {
                "retry-after" => read.retry_after = true,
                "ratelimit" => read.rate_limit = true,
                "x-ratelimit" => read.x_rate_limit = true,
                "all" if text == "all" => return Ok(Self { retry_after: true, rate_limit: true, x_rate_limit: true }),
                "none" if text == "none" => {}
                _ => {
                    return Err(format!(
                        "unknown rate-limit headers '{word}'; choose retry-after, ratelimit, x-ratelimit, all or none"
                    ));
                }
            }
        }
        Ok(read)
    }

    /// Whether any header needs the usage of the windows.
    pub(super) fn needs_window_usages(self) -> bool {
        self.rate_limit || self.x_rate_limit
    }

    pub(super) fn add_to(self, headers: &mut HeaderMap, judged: &RequestDecision<'_>) {
        let rejection = match judged.decision {
            // A blocked key is rejected whatever its windows allow.
            QuotaDecision::Blocked => return,
            QuotaDecision::Exceeded(rejection) => Some(rejection),
            QuotaDecision::Accepted | QuotaDecision::InvalidNonce => None,
        };
        if self.retry_after
            && let Some(s) = rejection.and_then(|rejection| retry_after_s(rejection.retry))
        {
            headers.insert(RETRY_AFTER, s.into());
        }
        if self.rate_limit {
            insert(headers, "ratelimit-policy", &join_items(&judged.window_usages, rate_limit_policy_item));
            insert(headers, "ratelimit", &join_items(&judged.window_usages, rate_limit_item));
        }
        if self.x_rate_limit {
            let least = judged.window_usages.iter().min_by_key(|usage| usage.remaining);
            let rejecting = rejection.and_then(|rejection| judged.window_usages.get(rejection.window));
            if let Some(usage) = rejecting.or(least) {
                add_x_rate_limit(headers, usage, judged.unix_time);
            }
        }
    }
}

/// `"20/1s";q=20;w=1`: policy of a window, which is named as it is written.
fn rate_limit_policy_item(LimitUsage { window, .. }: &LimitUsage) -> String {
    match window.model() {
        LimitModel::Concurrency => format!("\"{window}\";q={};qu=\"concurrent-requests\"", window.limit()),
        _ => format!("\"{window}\";q={};w={}", window.limit(), ceil_seconds(window.per())),
    }
}

/// `"20/1s";r=3;t=1`: remaining requests, and the time until there will be more.
fn rate_limit_item(usage: &LimitUsage) -> String {
    let LimitUsage { window, remaining, more, .. } = usage;
    match retry_after_s(*more).filter(|s| *s > 0) {
        Some(s) => format!("\"{window}\";r={remaining};t={s}"),
        None => format!("\"{window}\";r={remaining}"),
    }
}

/// Adds the `X-RateLimit-*` headers; the reset is the time at which the window is empty, in seconds since 1970.
fn add_x_rate_limit(headers: &mut HeaderMap, usage: &LimitUsage, at: Nanos) {
    headers.insert(HeaderName::from_static("x-ratelimit-limit"), usage.window.limit().into());
    headers.insert(HeaderName::from_static("x-ratelimit-remaining"), usage.remaining.into());
    if let RetryTime::After(length) = usage.all {
        headers.insert(HeaderName::from_static("x-ratelimit-reset"), ceil_seconds(at + length).into());
    }
}

fn join_items(usages: &[LimitUsage], item: fn(&LimitUsage) -> String) -> String {
    usages.iter().map(item).collect::<Vec<_>>().join(", ")
}

fn insert(headers: &mut HeaderMap, name: &'static str, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(HeaderName::from_static(name), value);
    }
}

fn retry_after_s(retry: RetryTime) -> Option<u64> {
    match retry {
        RetryTime::After(length) => Some(ceil_seconds(length)),
        RetryTime::Finished | RetryTime::Never => None,
    }
}

fn ceil_seconds(length: Nanos) -> u64 {
    length.0.div_ceil(Nanos::SECOND.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_limits::key_quota::KeyQuota;
    use weir_limits::models::{LimitWindow, ServerLimiter};

    const NOW: Nanos = Nanos(1_700_000_000_250_000_000);

    /// Headers after this number of requests at once, sorted by name.
    fn after(requests: usize, windows: &[&str], which: &str) -> Vec<String> {
        let windows: Vec<LimitWindow> =
            windows.iter().map(|text| LimitWindow::read(text, LimitModel::SlidingLog).expect("valid")).collect();
        let mut account = KeyQuota::new(ServerLimiter::new(&windows, Nanos::MILLI), 10);
        let judgement = (1..=requests as i128).map(|nonce| account.judge(NOW, 1, Some(nonce))).last().expect("one");
        let judged = RequestDecision {
            decision: judgement,
            window_usages: account.limiter().usages(NOW),
            unix_time: NOW,
            slot: None,
        };
        let mut headers = HeaderMap::new();
        RateLimitHeaderSet::read(which).expect("valid").add_to(&mut headers, &judged);
        let text = |value: &HeaderValue| value.to_str().expect("ASCII").to_owned();
        let mut all: Vec<String> = headers.iter().map(|(name, value)| format!("{name}: {}", text(value))).collect();
        all.sort();
        all
    }

    #[test]
    fn ratelimit_headers_have_policy_and_usage() {
        assert_eq!(
            after(17, &["20/1s", "bucket:100/1m", "concurrency:30"], "ratelimit"),
            [
                r#"ratelimit-policy: "20/1s";q=20;w=1, "bucket:100/1m";q=100;w=60, "concurrency:30";q=30;qu="concurrent-requests""#,
                // 1001 ms round up to 2 s; a token takes 0.6 s.
                r#"ratelimit: "20/1s";r=3;t=2, "bucket:100/1m";r=83;t=1, "concurrency:30";r=13"#,
            ]
        );
    }

    #[test]
    fn x_ratelimit_headers_show_the_window_with_the_least_room() {
        assert_eq!(
            after(3, &["100/1m", "aligned:5/1s"], "x-ratelimit"),
            ["x-ratelimit-limit: 5", "x-ratelimit-remaining: 2", "x-ratelimit-reset: 1700000001"]
        );
        assert_eq!(
            after(3, &["concurrency:2", "100/1m"], "x-ratelimit"),
            ["x-ratelimit-limit: 2", "x-ratelimit-remaining: 0"],
            "time alone frees nothing"
        );
    }

    #[test]
    fn retry_after_is_on_rejections_that_end() {
        assert_eq!(after(2, &["2/1s"], "retry-after"), [""; 0]);
        assert_eq!(after(3, &["2/1s"], "retry-after"), ["retry-after: 2"]);
        assert_eq!(after(3, &["2/999ms"], "retry-after"), ["retry-after: 1"]);
        assert_eq!(after(3, &["concurrency:2"], "retry-after"), [""; 0]);
        assert_eq!(after(3, &["2/1s"], "none"), [""; 0]);
        assert_eq!(after(3, &["2/1s"], "all").len(), 6);
        assert_eq!(after(13, &["2/1s"], "all"), [""; 0], "the key is blocked");
    }

    #[test]
    fn lists_of_header_names() {
        assert_eq!(RateLimitHeaderSet::read("none"), Ok(RateLimitHeaderSet::default()));
        let two = RateLimitHeaderSet { retry_after: true, rate_limit: false, x_rate_limit: true };
        assert_eq!(RateLimitHeaderSet::read("x-ratelimit, retry-after"), Ok(two));
        for wrong in ["", "date", "retry-after,", "all,none"] {
            assert!(RateLimitHeaderSet::read(wrong).is_err_and(|why| why.contains("choose retry-after")), "{wrong}");
        }
    }
}
