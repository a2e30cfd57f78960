//! What is normal for a service: bounds from the seconds before a trigger.
//!
//! Seconds differ by themselves, more so the closer the load is to the capacity. The bounds are wide enough for that, and
//! a single second outside of them means nothing: judged are periods.

use super::recovery_second::RecoverySecond;

/// Fraction of the calls of the baseline that a period has to serve.
const SERVED_FRACTION: f64 = 0.9;
/// Standard deviations of a random number of calls that are taken for chance.
const CHANCE_DEVIATIONS: f64 = 3.0;
/// Factor by which times may exceed those of the slowest second of the baseline but one, and milliseconds on top.
const TIME_FACTOR: f64 = 2.0;
const TIME_SLACK_MS: f64 = 5.0;
/// Fraction of calls that may fail beside those of the baseline.
const FAILED_SLACK: f64 = 0.02;
/// Of this number of seconds one may be outside of the bounds: a host that stalls, a garbage collection.
const SECONDS_PER_OUTLIER: usize = 5;
/// Growth of median times within the baseline, as a factor and milliseconds on top, above which its load is too high.
const GROWTH_FACTOR: f64 = 3.0;
const GROWTH_SLACK_MS: f64 = 250.0;

/// Bounds of normal seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BaselineBounds {
    /// Good calls as a fraction of those that were offered.
    pub good_fraction: f64,
    /// Failed calls as a fraction of those that ended.
    pub failed_fraction: f64,
    /// Maximum of the median of a second, in milliseconds.
    pub max_p50_ms: f64,
    /// Maximum of the 90th percentile of a second, in milliseconds.
    pub max_p90_ms: f64,
}

impl BaselineBounds {
    /// Bounds of the seconds before a trigger.
    ///
    /// # Errors
    /// A sentence, if the service does not serve this load before the trigger.
    pub fn of(seconds: &[RecoverySecond]) -> Result<Self, String> {
        // The worst second may be one in which the host stalled.
        let worst = (0..).zip(seconds).min_by_key(|(_, second)| second.good).map_or(0, |(worst, _): (usize, _)| worst);
        let others = (0..).zip(seconds).filter(|(number, _)| *number != worst || seconds.len() < 3);
        let others: Vec<RecoverySecond> = others.map(|(_, second)| second.clone()).collect();
        let offered: f64 = others.iter().map(|second| second.offered_per_s).sum();
        let (good, failed) = totals(&others);
        let length = others.len().max(1) as f64;
        if good == 0.0 {
            return Err("no call succeeded before the trigger".to_owned());
        }
        if is_less(good, SERVED_FRACTION * offered) {
            return Err(format!(
                "only {:.0} of {:.0} calls per second succeeded before the trigger: the load is too high",
                good / length,
                offered / length
            ));
        }
        let medians: Vec<f64> = seconds.iter().filter_map(|second| second.quantile_ms(0.5)).collect();
        let third = (medians.len() / 3).max(1);
        let (first, last) = (median(medians.iter().take(third)), median(medians.iter().rev().take(third)));
        if last > GROWTH_FACTOR * first + GROWTH_SLACK_MS {
            return Err(format!(
                "response times grew before the trigger, from {first:.0} to {last:.0} ms: the load is too high"
            ));
        }
        Ok(Self {
            good_fraction: (good / offered.max(1.0)).min(1.0),
            failed_fraction: failed / (good + failed),
            max_p50_ms: time_bound(seconds, 0.5),
            max_p90_ms: time_bound(seconds, 0.9),
        })
    }

    /// Whether a second is within the bounds. One in which nothing was offered or ended is.
    pub fn is_normal(&self, second: &RecoverySecond) -> bool {
        let ended = second.ended() as f64;
        if ended == 0.0 {
            return !is_less(0.0, self.good_fraction * second.offered_per_s);
        }
        // One call may fail in a second of few.
        let allowed = self.failed_fraction * ended + (FAILED_SLACK * ended).max(1.0);
        let too_slow = |q: f64, max: f64| second.quantile_ms(q).is_some_and(|ms| ms > max);
        let fails = is_more(second.failed as f64, allowed) || (second.good == 0 && second.failed > 0);
        !(fails || too_slow(0.5, self.max_p50_ms) || too_slow(0.9, self.max_p90_ms))
    }

    /// Number of seconds that are not within the bounds.
    pub fn outliers(&self, seconds: &[RecoverySecond]) -> usize {
        seconds.iter().filter(|second| !self.is_normal(second)).count()
    }

    /// Whether a period is within the bounds from its first second on, and as a whole.
    pub fn is_stable(&self, seconds: &[RecoverySecond]) -> bool {
        let (good, failed) = totals(seconds);
        let allowed = (self.failed_fraction + FAILED_SLACK) * (good + failed);
        seconds.first().is_some_and(|first| self.is_normal(first))
            && self.outliers(seconds) <= allowed_outliers(seconds.len())
            && !is_more(failed, allowed)
            && self.serves(seconds)
    }

    /// Whether a period has as many good calls as the baseline, for what was offered.
    pub fn serves(&self, seconds: &[RecoverySecond]) -> bool {
        let offered: f64 = seconds.iter().map(|second| second.offered_per_s).sum();
        !is_less(totals(seconds).0, SERVED_FRACTION * self.good_fraction * offered)
    }
}

/// Number of seconds of a period that may be outside of the bounds.
pub(super) fn allowed_outliers(seconds: usize) -> usize {
    (seconds / SECONDS_PER_OUTLIER).max(1)
}

/// Good and failed calls of a period.
pub(super) fn totals(seconds: &[RecoverySecond]) -> (f64, f64) {
    let sum = |count: fn(&RecoverySecond) -> u64| seconds.iter().map(count).sum::<u64>() as f64;
    (sum(|second| second.good), sum(|second| second.failed))
}

/// Median of values; 0 without any.
pub(super) fn median<'a>(values: impl Iterator<Item = &'a f64>) -> f64 {
    let mut sorted: Vec<f64> = values.copied().collect();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

/// Whether a number of calls is less than expected, by more than chance.
fn is_less(calls: f64, expected: f64) -> bool {
    calls < expected - CHANCE_DEVIATIONS * expected.sqrt()
}

/// Whether a number of calls is more than expected, by more than chance.
fn is_more(calls: f64, expected: f64) -> bool {
    calls > expected + CHANCE_DEVIATIONS * expected.sqrt()
}

/// Bound of a quantile: from the slowest second but one, since the slowest may be one in which the host stalled.
fn time_bound(seconds: &[RecoverySecond], q: f64) -> f64 {
    let mut times: Vec<f64> = seconds.iter().filter_map(|second| second.quantile_ms(q)).collect();
    times.sort_by(|a, b| b.total_cmp(a));
    let slowest = if times.len() > 2 { times.get(1) } else { times.first() };
    slowest.map_or(0.0, |ms| TIME_FACTOR * ms) + TIME_SLACK_MS
}
