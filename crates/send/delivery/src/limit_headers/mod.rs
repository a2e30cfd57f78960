//! Rate-limit headers of a response, as data for a [`key_window`](super::key_window). All dialects are parsed; invalid
//! parts are ignored.
//!
//! | dialect | headers |
//! |---|---|
//! | RFC 9110 | `Retry-After`, also `Retry-After-Ms` and `X-Ms-Retry-After-Ms` |
//! | draft-ietf-httpapi-ratelimit-headers-11 | `RateLimit-Policy: "p";q=100;w=60` and `RateLimit: "p";r=50;t=30` |
//! | its older versions | `RateLimit-Limit`, `-Remaining`, `-Reset`; `RateLimit: limit=100, remaining=50, reset=30`;
//! `RateLimit-Policy: 100;w=60` |
//! | custom | `X-RateLimit-*`, `X-Rate-Limit-*`, `anthropic-ratelimit-*`, with or without a unit or a period:
//! `x-ratelimit-remaining-tokens`, `X-RateLimit-Limit-Minute` |
//!
//! A reset or `Retry-After` is a duration in seconds, a duration with units (`6m0s`, `20ms`), a time since 1970 in
//! seconds or milliseconds, or a date: services differ, and the values do not overlap. Times are by the service's clock,
//! as its `Date` has it.

mod fields;

use weir_base::{Nanos, WallNanos};
use weir_limits::limit_unit::LimitUnit;
use weir_retry::retry_after::{millis, retry_after};

/// Rate-limit headers of one response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RateLimitHeaders {
    /// Time for which nothing may be sent.
    pub retry_after: Option<Nanos>,
    /// Quota of each limit.
    pub quotas: Vec<Quota>,
}

/// Quota of the sender in one limit, at the time of the response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quota {
    /// Name of the limit; empty without one.
    pub name: String,
    /// Counted unit, if it is reported.
    pub unit: Option<LimitUnit>,
    /// Maximum per window.
    pub limit: Option<u64>,
    /// Length of the window.
    pub per: Option<Nanos>,
    /// Remaining quota.
    pub remaining: Option<u64>,
    /// Time from the response until the quota is replenished.
    pub reset: Option<Nanos>,
}

/// Maximum number of limits per response; further ones are ignored.
const MAX_QUOTAS: usize = 16;

impl RateLimitHeaders {
    /// Parses a response's headers; names in any case. `now`, by the
    /// [`service_clock`](weir_retry::retry_after::service_clock), turns times into durations.
    pub fn read<'a>(headers: impl IntoIterator<Item = (&'a str, &'a [u8])>, now: WallNanos) -> Self {
        let mut reported = Self::default();
        for (name, value) in headers.into_iter().filter(|(name, _)| is_candidate(name)) {
            let Ok(value) = std::str::from_utf8(value) else { continue };
            let lower = name.to_ascii_lowercase();
            match lower.as_str() {
                "retry-after" => reported.raise_retry_after(retry_after(value, now)),
                "retry-after-ms" | "x-ms-retry-after-ms" => reported.raise_retry_after(millis(value, now)),
                "ratelimit-policy" => fields::policies(value, &mut reported),
                "ratelimit" => fields::limits(value, now, &mut reported),
                other => fields::custom(other, value, now, &mut reported),
            }
        }
        reported
    }

    fn raise_retry_after(&mut self, length: Option<Nanos>) {
        self.retry_after = self.retry_after.max(length);
    }

    /// Quota of this name, added if it is new; `None` beyond the maximum.
    fn quota_mut(&mut self, name: &str) -> Option<&mut Quota> {
        let index = self.quotas.iter().position(|quota| quota.name == name).or_else(|| {
            let room = self.quotas.len() < MAX_QUOTAS;
            room.then(|| self.quotas.push(Quota { name: name.to_owned(), ..Quota::default() }))?;
            Some(self.quotas.len() - 1)
        })?;
        self.quotas.get_mut(index)
    }
}

/// Whether a header may be one of limits: their names have `rate` or `retry` in them, and few others do. To look closer
/// at each of a response's headers takes longer than the rest of what is decided about it.
fn is_candidate(name: &str) -> bool {
    name.as_bytes().windows(4).any(|part| match part {
        [b'r' | b'R', rest @ ..] => rest.eq_ignore_ascii_case(b"ate") || rest.eq_ignore_ascii_case(b"etr"),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// 2025-11-22 00:00:00.
    const NOW: WallNanos = WallNanos(1_763_769_600_000_000_000);

    fn read(headers: &[(&str, &str)]) -> RateLimitHeaders {
        RateLimitHeaders::read(headers.iter().map(|(name, value)| (*name, value.as_bytes())), NOW)
    }

    fn quota(name: &str, unit: Option<LimitUnit>, numbers: [Option<u64>; 4]) -> Quota {
        let [limit, per_s, remaining, reset_ms] = numbers;
        let (per, reset) = (per_s.map(Nanos::from_secs), reset_ms.map(Nanos::from_millis));
        Quota { name: name.to_owned(), unit, limit, per, remaining, reset }
    }

    #[test]
    fn the_drafts_two_fields() {
        let reported = read(&[
            ("RateLimit-Policy", r#""burst";q=100;w=60;pk=:c2Q=:, "daily, all";q=1000;w=86400;qu="requests""#),
            ("RateLimit", r#""burst";r=50;t=30"#),
            ("ratelimit", r#""daily, all";r=997"#),
        ]);
        assert_eq!(
            reported.quotas,
            [
                quota("burst", None, [Some(100), Some(60), Some(50), Some(30_000)]),
                quota("daily, all", Some(LimitUnit::Requests), [Some(1000), Some(86400), Some(997), None]),
            ]
        );
    }

    #[test]
    fn a_concurrency_quota_has_no_window() {
        let reported = read(&[("ratelimit-policy", r#""concurrency:5";q=5;qu="concurrent-requests""#)]);
        assert_eq!(reported.quotas, [quota("concurrency:5", Some(LimitUnit::Requests), [Some(5), None, None, None])]);
    }

    #[test]
    fn the_older_forms() {
        let three = [("RateLimit-Limit", "100, 100;w=60"), ("RateLimit-Remaining", "7"), ("RateLimit-Reset", "12")];
        assert_eq!(read(&three).quotas, [quota("", None, [Some(100), Some(60), Some(7), Some(12_000)])]);
        let dictionary = [("RateLimit", "limit=100, remaining=50, reset=5"), ("RateLimit-Policy", "100;w=10")];
        assert_eq!(read(&dictionary).quotas, [quota("", None, [Some(100), Some(10), Some(50), Some(5000)])]);
    }

    #[test]
    fn the_headers_of_known_services() {
        let github = [
            ("x-ratelimit-limit", "5000"),
            ("x-ratelimit-remaining", "4999"),
            ("x-ratelimit-used", "1"),
            ("x-ratelimit-reset", "1763769660"),
            ("x-ratelimit-resource", "core"),
        ];
        assert_eq!(read(&github).quotas, [quota("", None, [Some(5000), None, Some(4999), Some(60_000)])]);
        let llm = [
            ("x-ratelimit-limit-requests", "60"),
            ("x-ratelimit-remaining-requests", "59"),
            ("x-ratelimit-reset-requests", "1s"),
            ("x-ratelimit-limit-tokens", "150000"),
            ("x-ratelimit-remaining-tokens", "149984"),
            ("x-ratelimit-reset-tokens", "6m0s"),
        ];
        let quotas = [
            quota("requests", Some(LimitUnit::Requests), [Some(60), None, Some(59), Some(1000)]),
            quota("tokens", Some(LimitUnit::Weight), [Some(150_000), None, Some(149_984), Some(360_000)]),
        ];
        assert_eq!(read(&llm).quotas, quotas);
        let dated = [
            ("anthropic-ratelimit-input-tokens-remaining", "40000"),
            ("anthropic-ratelimit-input-tokens-reset", "2025-11-22T00:01:30Z"),
        ];
        assert_eq!(
            read(&dated).quotas,
            [quota("input-tokens", Some(LimitUnit::Weight), [None, None, Some(40_000), Some(90_000)])]
        );
        let gateway = [("X-RateLimit-Limit-Minute", "20"), ("X-RateLimit-Remaining-Minute", "0")];
        assert_eq!(read(&gateway).quotas, [quota("minute", None, [Some(20), Some(60), Some(0), None])]);
        let chat = [("x-ratelimit-remaining", "0"), ("x-ratelimit-reset-after", "0.25"), ("x-ratelimit-bucket", "ab1")];
        assert_eq!(read(&chat).quotas, [quota("", None, [None, None, Some(0), Some(250)])]);
        let short = [("x-rate-limit-limit", "15"), ("x-rate-limit-reset", "1763769600500")];
        assert_eq!(read(&short).quotas, [quota("", None, [Some(15), None, None, Some(500)])]);
    }

    #[test]
    fn the_longest_wait_counts() {
        let wait = |headers: &[(&str, &str)]| read(headers).retry_after;
        assert_eq!(wait(&[("Retry-After", "3")]), Some(Nanos::from_secs(3)));
        assert_eq!(wait(&[("retry-after", "1"), ("retry-after-ms", "1250")]), Some(Nanos::from_millis(1250)));
        assert_eq!(wait(&[("retry-after", "Sat, 22 Nov 2025 00:02:00 GMT")]), Some(Nanos::from_secs(120)));
        assert_eq!(wait(&[("retry-after", "Fri, 21 Nov 2025 00:02:00 GMT")]), Some(Nanos::ZERO));
        assert_eq!(wait(&[("retry-after", "soon")]), None);
        assert_eq!(
            wait(&[("retry-after", "1763769630")]),
            Some(Nanos::from_secs(30)),
            "a time where a duration belongs"
        );
        assert_eq!(wait(&[("retry-after", "1763769630500")]), Some(Nanos::from_millis(30_500)));
        assert_eq!(read(&[("ratelimit", r#""p";r=0;t=1763769660"#)]).quotas[0].reset, Some(Nanos::from_secs(60)));
    }

    #[test]
    fn invalid_parts_are_ignored() {
        for value in ["", "-1", "1;2;3", "\"", "\"a", ";;;", ",,,", "q=", "\"p\";r=x;t=-1", "many", "1e9", "NaN"] {
            let names = ["ratelimit", "ratelimit-policy", "ratelimit-limit", "x-ratelimit-reset", "retry-after"];
            for name in names {
                let reported = read(&[(name, value)]);
                let empty = |quota: &Quota| quota.limit.is_none() && quota.reset.is_none() && quota.remaining.is_none();
                let first = value == "1;2;3" && quota_of_one(&reported);
                assert!(reported.quotas.iter().all(empty) || first, "{name}: {value}: {reported:?}");
                assert_eq!(reported.retry_after, None, "{name}: {value}");
            }
        }
        let many: Vec<String> = (0..1000).map(|n| format!("\"{n}\";r=1")).collect();
        assert_eq!(read(&[("ratelimit", &many.join(","))]).quotas.len(), MAX_QUOTAS);
    }

    fn quota_of_one(reported: &RateLimitHeaders) -> bool {
        reported.quotas.iter().all(|quota| quota.limit == Some(1))
    }

    proptest! {
        #[test]
        fn no_headers_upset_the_reading(
            names in prop::collection::vec("(x-|X-)?[Rr]ate-?[Ll]imit(-policy|-reset|-limit|-remaining)?(-tokens|-day)?|retry-after(-ms)?", 1..6),
            values in prop::collection::vec("[\"a-z0-9=;,:.TZ+ -]{0,40}|[0-9]{1,30}|.{0,20}", 6),
            bytes in prop::collection::vec(any::<u8>(), 0..40),
            now: i64,
        ) {
            let all = names.iter().zip(&values).map(|(name, value)| (name.as_str(), value.as_bytes()));
            let odd = [("ratelimit", bytes.as_slice()), ("x-ratelimit-reset", bytes.as_slice())];
            let reported = RateLimitHeaders::read(all.chain(odd), WallNanos(now));
            prop_assert!(reported.quotas.len() <= MAX_QUOTAS);
            prop_assert!(names.iter().all(|name| is_candidate(name) && is_candidate(&name.to_ascii_uppercase())));
        }
    }
}
