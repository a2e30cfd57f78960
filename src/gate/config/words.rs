//! How people write quantiles, budgets, rates and waits that grow.

use crate::decide::Nanos;
use crate::decide::deadline::DeadlineFormat;
use crate::decide::policy::{Backoff, BudgetRule};
pub(super) use crate::document::words::time;

/// Reads `p95`, `p99.9` as 0.95, 0.999.
pub(crate) fn quantile(text: &str) -> Option<f64> {
    let share = decimal(text.strip_prefix('p')?)? / 100.0;
    (share > 0.0 && share < 1.0).then_some(share)
}

/// Digits, perhaps with a point.
fn decimal(text: &str) -> Option<f64> {
    let plain = text.starts_with(|c: char| c.is_ascii_digit()) && text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    plain.then(|| text.parse().ok())?
}

/// Extra attempts per call at most; beyond that nobody speaks of a budget.
pub(super) const MAX_BUDGET_FRACTION: f64 = 100.0;
/// Extra attempts per window at most.
pub(super) const MAX_BUDGET_MIN_ATTEMPTS: u64 = 1_000_000;
/// The longest window.
pub(super) const MAX_BUDGET_WINDOW: Nanos = Nanos::from_secs(3600);

/// Reads `5% + 1/1s`, or `5%`: what is not said is as by default.
pub(crate) fn budget(text: &str) -> Option<BudgetRule> {
    let (share, rest) = text.split_once('%')?;
    let share = decimal(share.trim())? / 100.0;
    let (floor, window) = if rest.trim().is_empty() {
        (BudgetRule::default().min_per_window, BudgetRule::default().window)
    } else {
        let (floor, window) = rest.trim().strip_prefix('+')?.split_once('/')?;
        let floor = floor.trim();
        let digits = floor.bytes().all(|b| b.is_ascii_digit());
        (floor.parse::<u32>().ok().filter(|_| digits)?, time(window.trim())?)
    };
    let fits = share <= MAX_BUDGET_FRACTION && u64::from(floor) <= MAX_BUDGET_MIN_ATTEMPTS;
    (fits && window > Nanos::ZERO && window <= MAX_BUDGET_WINDOW).then_some(BudgetRule {
        fraction: share,
        min_per_window: floor,
        window,
    })
}

/// Reads `100/1s`: so many in such a time.
pub(super) fn rate(text: &str) -> Option<(u64, Nanos)> {
    let (limit, per) = text.split_once('/')?;
    let limit = Some(limit.trim()).filter(|limit| limit.bytes().all(|b| b.is_ascii_digit()))?.parse().ok()?;
    Some((limit, time(per.trim())?))
}

/// Reads `25ms..1s`.
pub(super) fn backoff(text: &str) -> Option<Backoff> {
    let (first, most) = text.split_once("..")?;
    let (first, most) = (time(first.trim())?, time(most.trim())?);
    (first <= most).then_some(Backoff { min: first, max: most })
}

/// The headers whose form is known.
pub(super) const KNOWN_DEADLINE_HEADERS: [(&str, DeadlineFormat); 3] = [
    ("grpc-timeout", DeadlineFormat::Grpc),
    ("x-envoy-expected-rq-timeout-ms", DeadlineFormat::Millis),
    ("x-request-timeout-ms", DeadlineFormat::Millis),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_as_people_write_them() {
        assert_eq!(quantile("p95"), Some(0.95));
        assert!(quantile("p99.9").is_some_and(|share| (share - 0.999).abs() < 1e-12));
        for wrong in ["95", "p", "p0", "p100", "p-5", "pinf", "p1e1", "p.5", "p1.2.3"] {
            assert_eq!(quantile(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn budgets_as_people_write_them() {
        let budget_of = |share, floor, ms| {
            Some(BudgetRule { fraction: share, min_per_window: floor, window: Nanos::from_millis(ms) })
        };
        assert_eq!(budget("5% + 1/1s"), budget_of(0.05, 1, 1000));
        assert_eq!(budget("200%+10/500ms"), budget_of(2.0, 10, 500));
        assert_eq!(budget("10%"), budget_of(0.1, 1, 1000));
        for wrong in ["", "5", "%", "-5%", "5% 1/1s", "5% + 1", "5% + /1s", "5% + 1/0s", "10001%", "5% + 1.5/1s"] {
            assert_eq!(budget(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn rates_as_people_write_them() {
        assert_eq!(rate("100/1s"), Some((100, Nanos::SECOND)));
        assert_eq!(rate("5 / 100ms"), Some((5, Nanos::from_millis(100))));
        for wrong in ["", "100", "/1s", "100/", "+1/1s", "1.5/1s", "100/1", "100/1s/1s"] {
            assert_eq!(rate(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn waits_that_grow_as_people_write_them() {
        let read = Backoff { min: Nanos::from_millis(25), max: Nanos::from_secs(1) };
        assert_eq!(backoff("25ms..1s"), Some(read));
        for wrong in ["", "1s", "1s..25ms", "..1s", "1s..", "1s...2s"] {
            assert_eq!(backoff(wrong), None, "{wrong}");
        }
    }
}
