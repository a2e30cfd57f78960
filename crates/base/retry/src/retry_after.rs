//! Times and durations in headers: `Retry-After`, and resets of rate limits.

use std::time::UNIX_EPOCH;

use weir_base::decimal_seconds;
use weir_base::nanos::{Nanos, WallNanos};
use weir_base::timestamp::Timestamp;

/// Largest plain number that is a duration in seconds; larger ones are times since 1970 (in seconds it is 2001).
const MAX_LENGTH_S: u64 = 1_000_000_000;
/// Largest time since 1970 in seconds (the year 5138); larger ones are in milliseconds (it is 1973).
const MAX_INSTANT_S: u64 = 100_000_000_000;

/// Longest `Retry-After` that a call without a deadline waits for: a header must not hold a caller for a day.
const MAX_WITHOUT_DEADLINE: Nanos = Nanos::from_secs(60);

/// Whether a call with this deadline, if it has one, waits for this `Retry-After` at all.
pub fn is_waited_for(retry_after: Option<Nanos>, deadline: Nanos) -> bool {
    deadline != Nanos::NEVER || retry_after.is_none_or(|length| length <= MAX_WITHOUT_DEADLINE)
}

/// Parses `Retry-After` or a reset, as a duration from `now`: seconds, a duration with units, a time since 1970 in
/// seconds or milliseconds, or a date (RFC 9110, 10.2.3). Zero if it has passed; `None` if it is nothing of these.
///
/// Services put times where durations belong, so both headers are read alike. How long is waited is up to the caller.
pub fn retry_after(text: &str, now: WallNanos) -> Option<Nanos> {
    let text = text.trim();
    if let Some(seconds) = decimal_seconds::read(text.as_bytes()) {
        // A number with too many digits is NEVER, not a time.
        let whole: u64 = text.split('.').next()?.parse().ok()?;
        return match whole {
            0..MAX_LENGTH_S => Some(seconds),
            MAX_LENGTH_S..MAX_INSTANT_S => Some(until(seconds.0.into(), now)),
            _ => Some(until(u128::from(whole) * 1_000_000, now)),
        };
    }
    length(text).or_else(|| Some(until(date(text).or_else(|| timestamp(text))?, now)))
}

/// Parses milliseconds, with or without a fraction; numbers that are too large for that are times since 1970.
pub fn millis(text: &str, now: WallNanos) -> Option<Nanos> {
    let text = text.trim();
    let whole: u64 = text.split('.').next()?.parse().ok()?;
    if whole >= MAX_LENGTH_S * 1000 {
        return Some(until(u128::from(whole) * 1_000_000, now));
    }
    decimal_seconds::read(text.as_bytes()).map(|thousandfold| Nanos(thousandfold.0.div_ceil(1000)))
}

/// Clock of a service: that of a response's `Date` where it is clearly another than ours.
pub fn service_clock(date_header: Option<&str>, now: WallNanos) -> WallNanos {
    let Some(theirs) = date_header.and_then(|text| i64::try_from(date(text.trim())?).ok()) else { return now };
    if theirs.abs_diff(now.0) > MIN_SKEW.0 { WallNanos(theirs) } else { now }
}

/// Difference from which a `Date` shows another clock: it has whole seconds, and a response may take some.
const MIN_SKEW: Nanos = Nanos::from_secs(10);

fn until(at: u128, now: WallNanos) -> Nanos {
    let left = at.saturating_sub(u128::try_from(now.0).unwrap_or(0));
    Nanos(u64::try_from(left).unwrap_or(u64::MAX))
}

/// Parses an HTTP date (RFC 9110, 5.6.7), in ns since 1970.
fn date(text: &str) -> Option<u128> {
    Some(httpdate::parse_http_date(text).ok()?.duration_since(UNIX_EPOCH).ok()?.as_nanos())
}

/// Parses numbers with units, as in `6m0s`, `20ms` and `1h2m3.5s`.
fn length(text: &str) -> Option<Nanos> {
    let mut rest = text;
    let mut sum = Nanos::ZERO;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, more) = rest.split_at(digits);
        let end = more.find(|c: char| c.is_ascii_digit()).unwrap_or(more.len());
        let (unit, more) = more.split_at(end);
        let per_unit: u128 = match unit {
            "ns" => 1,
            "us" | "\u{b5}s" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            "d" => 86_400_000_000_000,
            _ => return None,
        };
        // The number is in billionths, as for seconds.
        let billionths = decimal_seconds::read(number.as_bytes())?;
        let ns = (u128::from(billionths.0) * per_unit).div_ceil(1_000_000_000);
        sum += Nanos(u64::try_from(ns).unwrap_or(u64::MAX));
        rest = more;
    }
    (!text.is_empty()).then_some(sum)
}

/// Parses `2025-11-22T00:01:30.5Z`, or with an offset (RFC 3339), in ns since 1970.
fn timestamp(text: &str) -> Option<u128> {
    Timestamp::parse(text).filter(|time| time.has_zone).and_then(|time| u128::try_from(time.unix_ns).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_read_in_every_unit() {
        for (text, ns) in [
            ("20ms", 20_000_000),
            ("6m0s", 360_000_000_000),
            ("1h2m3.5s", 3_723_500_000_000),
            ("1.2us", 1_200),
            ("1d", 86_400_000_000_000),
            ("99999999999999999h", u64::MAX),
        ] {
            assert_eq!(length(text), Some(Nanos(ns)), "{text}");
        }
        for text in ["", "s", "1", "1x", "-1s", "1s2", "1..5s", ".5s", "1 s"] {
            assert_eq!(length(text), None, "{text}");
        }
        let now = WallNanos(1_700_000_000_000_000_000);
        assert_eq!(millis("1.5", now), Some(Nanos(1_500_000)));
        assert_eq!([millis("1700000000250", now), millis("-1", now)], [Some(Nanos::from_millis(250)), None]);
    }

    #[test]
    fn a_reset_is_a_length_or_an_instant_by_its_size() {
        let now = WallNanos(1_700_000_000_000_000_000);
        for (text, ms) in [
            ("0", 0),
            ("3600", 3_600_000),
            ("0.5", 500),
            ("1700000010", 10_000),
            ("1700000010.5", 10_500),
            ("1700000000250", 250),
            ("1699999999", 0),
            ("Tue, 14 Nov 2023 22:13:30 GMT", 10_000),
            ("2023-11-14T22:13:21Z", 1_000),
            ("2023-11-14T23:13:21.5+01:00", 1_500),
            ("1m30s", 90_000),
            (" 1 ", 1_000),
        ] {
            assert_eq!(retry_after(text, now), Some(Nanos::from_millis(ms)), "{text}");
        }
        assert_eq!(retry_after("Fri, 31 Dec 9999 23:59:59 GMT", now), Some(Nanos(u64::MAX)));
        let theirs = |text| service_clock(Some(text), now);
        assert_eq!(theirs("Tue, 14 Nov 2023 22:13:25 GMT"), now, "close to ours");
        assert_eq!(theirs("Tue, 14 Nov 2023 23:13:20 GMT"), WallNanos(now.0 + 3_600_000_000_000));
        assert_eq!([theirs("soon"), service_clock(None, now)], [now; 2]);
        for text in [
            "",
            "x",
            "-5",
            "99999999999999999999999999",
            "1e9",
            "NaN",
            "1,2",
            "2023-11-31T00:00:00Z",
            "2023-11-15T00:00:00",
        ] {
            assert_eq!(retry_after(text, now), None, "{text}");
        }
    }
}
