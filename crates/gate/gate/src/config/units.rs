//! Parses the text forms of quantiles, budgets, rates and backoffs.

use weir_base::Nanos;
pub(super) use weir_document::units::time;
use weir_retry::backoff::Backoff;
use weir_retry::deadline::DeadlineFormat;
use weir_retry::policy::BudgetRule;

/// Parses `p95` and `p99.9` as 0.95 and 0.999.
pub fn quantile(text: &str) -> Option<f64> {
    let quantile = decimal(text.strip_prefix('p')?)? / 100.0;
    (quantile > 0.0 && quantile < 1.0).then_some(quantile)
}

/// Parses digits with or without a point.
fn decimal(text: &str) -> Option<f64> {
    let plain = text.starts_with(|c: char| c.is_ascii_digit()) && text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    plain.then(|| text.parse().ok())?
}

/// Maximum extra attempts per call.
pub(super) const MAX_BUDGET_FRACTION: f64 = 100.0;
/// Maximum extra attempts per window that are always allowed.
pub(super) const MAX_BUDGET_MIN_ATTEMPTS: u64 = 1_000_000;
/// Maximum length of a window.
pub(super) const MAX_BUDGET_WINDOW: Nanos = Nanos::from_secs(3600);

/// Parses `5% + 1/1s`, or `5%`, where the rest has its defaults.
pub fn budget(text: &str) -> Option<BudgetRule> {
    let (fraction, rest) = text.split_once('%')?;
    let fraction = decimal(fraction.trim())? / 100.0;
    let (min_per_window, window) = if rest.trim().is_empty() {
        (BudgetRule::default().min_per_window, BudgetRule::default().window)
    } else {
        let (count, window) = rest.trim().strip_prefix('+')?.split_once('/')?;
        let count = count.trim();
        let digits = count.bytes().all(|b| b.is_ascii_digit());
        (count.parse::<u32>().ok().filter(|_| digits)?, time(window.trim())?)
    };
    let fits = fraction <= MAX_BUDGET_FRACTION && u64::from(min_per_window) <= MAX_BUDGET_MIN_ATTEMPTS;
    (fits && window > Nanos::ZERO && window <= MAX_BUDGET_WINDOW).then_some(BudgetRule {
        fraction,
        min_per_window,
        window,
    })
}

/// Extra attempts per window that are always allowed, from their number per second; None if it is not whole.
pub(super) fn min_per_window(per_s: f64, window: Nanos) -> Option<u32> {
    let count = per_s * window.as_secs_f64();
    let whole = count.round();
    let fits = (count - whole).abs() <= 1e-9 * whole.max(1.0) && whole <= MAX_BUDGET_MIN_ATTEMPTS as f64;
    fits.then_some(whole as u32)
}

/// The smallest number per second above 0 that is whole itself and per window.
pub(super) fn whole_per_s(window: Nanos) -> u64 {
    let (mut gcd, mut rest) = (Nanos::SECOND.0, window.0);
    while rest > 0 {
        (gcd, rest) = (rest, gcd % rest);
    }
    Nanos::SECOND.0 / gcd
}

/// Parses `100/1s` as 100 and one second.
pub(super) fn rate(text: &str) -> Option<(u64, Nanos)> {
    let (limit, per) = text.split_once('/')?;
    let limit = Some(limit.trim()).filter(|limit| limit.bytes().all(|b| b.is_ascii_digit()))?.parse().ok()?;
    Some((limit, time(per.trim())?))
}

/// Parses `25ms..1s`, the shorter time first.
pub(super) fn backoff(text: &str) -> Option<Backoff> {
    let (min, max) = text.split_once("..")?;
    let (min, max) = (time(min.trim())?, time(max.trim())?);
    (min <= max).then_some(Backoff { min, max })
}

/// Deadline headers with a built-in format.
pub(super) const KNOWN_DEADLINE_HEADERS: [(&str, DeadlineFormat); 3] = [
    ("grpc-timeout", DeadlineFormat::Grpc),
    ("x-envoy-expected-rq-timeout-ms", DeadlineFormat::Millis),
    ("x-request-timeout-ms", DeadlineFormat::Millis),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_parse() {
        assert_eq!(quantile("p95"), Some(0.95));
        assert!(quantile("p99.9").is_some_and(|quantile| (quantile - 0.999).abs() < 1e-12));
        for wrong in ["95", "p", "p0", "p100", "p-5", "pinf", "p1e1", "p.5", "p1.2.3"] {
            assert_eq!(quantile(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn budgets_parse() {
        let budget_of = |fraction, min_per_window, ms| {
            Some(BudgetRule { fraction, min_per_window, window: Nanos::from_millis(ms) })
        };
        assert_eq!(budget("5% + 1/1s"), budget_of(0.05, 1, 1000));
        assert_eq!(budget("200%+10/500ms"), budget_of(2.0, 10, 500));
        assert_eq!(budget("10%"), budget_of(0.1, 250, 10_000));
        for wrong in ["", "5", "%", "-5%", "5% 1/1s", "5% + 1", "5% + /1s", "5% + 1/0s", "10001%", "5% + 1.5/1s"] {
            assert_eq!(budget(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn minima_per_window_are_whole() {
        assert_eq!(min_per_window(1.0, Nanos::SECOND), Some(1));
        assert_eq!(min_per_window(0.1, Nanos::from_secs(30)), Some(3));
        assert_eq!(min_per_window(0.0, Nanos::from_millis(1)), Some(0));
        assert_eq!(min_per_window(1.5, Nanos::SECOND), None);
        assert_eq!(min_per_window(1e6, Nanos::from_secs(2)), None);
        for (window, per_s) in
            [(1000, 1), (10_000, 1), (500, 2), (1500, 2), (300, 10)].map(|(ms, n)| (Nanos::from_millis(ms), n))
        {
            assert_eq!(whole_per_s(window), per_s);
            assert!(min_per_window(per_s as f64, window).is_some());
        }
    }

    #[test]
    fn rates_parse() {
        assert_eq!(rate("100/1s"), Some((100, Nanos::SECOND)));
        assert_eq!(rate("5 / 100ms"), Some((5, Nanos::from_millis(100))));
        for wrong in ["", "100", "/1s", "100/", "+1/1s", "1.5/1s", "100/1", "100/1s/1s"] {
            assert_eq!(rate(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn backoffs_parse() {
        let read = Backoff { min: Nanos::from_millis(25), max: Nanos::from_secs(1) };
        assert_eq!(backoff("25ms..1s"), Some(read));
        for wrong in ["", "1s", "1s..25ms", "..1s", "1s..", "1s...2s"] {
            assert_eq!(backoff(wrong), None, "{wrong}");
        }
    }
}
