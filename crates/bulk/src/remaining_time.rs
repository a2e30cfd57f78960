//! Time that is left, by the jobs that are left and the rate of the last interval.

use std::collections::VecDeque;

use weir_decide::Nanos;
use weir_decide::delivery::dispatch::SendLimit;
use weir_decide::ratelimit::models::LimitModel;

/// Interval of the rate.
const INTERVAL: Nanos = Nanos::from_secs(10);
/// Shortest interval that has a rate.
const MIN_INTERVAL: Nanos = Nanos::from_secs(2);

/// Ended jobs over the last interval.
#[derive(Debug, Default)]
pub(super) struct RecentRate {
    samples: VecDeque<(Nanos, u64)>,
}

impl RecentRate {
    /// Adds the number of jobs that have ended so far.
    pub(super) fn add(&mut self, now: Nanos, ended: u64) {
        self.samples.push_back((now, ended));
        while self.samples.len() > 2 && self.samples.get(1).is_some_and(|(at, _)| now - *at >= INTERVAL) {
            self.samples.pop_front();
        }
    }

    /// Jobs per second over the last interval; None for too short a run.
    pub(super) fn per_s(&self) -> Option<f64> {
        let (first, last) = (self.samples.front()?, self.samples.back()?);
        let length = last.0 - first.0;
        (length >= MIN_INTERVAL).then(|| last.1.saturating_sub(first.1) as f64 / length.as_secs_f64())
    }

    /// Time until `left` jobs have ended; None if it is unknown: no jobs end now, as in a pause. Within a window longer than
    /// the interval the rate is that of the limit.
    pub(super) fn time_left(&self, left: u64, limit: Option<SendLimit>, allowed_per_s: f64) -> Option<Nanos> {
        let is_held =
            matches!(limit, Some(SendLimit::Pause | SendLimit::HostDown | SendLimit::Keys | SendLimit::Retries));
        let is_long = |limit: SendLimit| {
            matches!(limit, SendLimit::Declared(limit)
                if limit.window.model() != LimitModel::Concurrency && limit.window.per() > INTERVAL)
        };
        let rate = match limit.is_some_and(is_long) && allowed_per_s.is_finite() {
            true => Some(allowed_per_s),
            false => self.per_s(),
        };
        rate.filter(|rate| *rate > 0.0 && !is_held && left > 0)
            .map(|rate| left as f64 / rate)
            .filter(|s| *s < MAX_SHOWN_S)
            .map(Nanos::from_secs_f64)
    }
}

/// Longest time that is shown, in seconds: a year.
const MAX_SHOWN_S: f64 = 365.0 * 86_400.0;

#[cfg(test)]
mod tests {
    use super::*;
    use weir_decide::delivery::key_window::KeyLimit;
    use weir_decide::ratelimit::limit_unit::LimitUnit;
    use weir_decide::ratelimit::models::LimitWindow;

    const fn s(s: u64) -> Nanos {
        Nanos::from_secs(s)
    }

    fn declared(text: &str) -> Option<SendLimit> {
        let window = LimitWindow::read(text, LimitModel::SlidingLog).unwrap();
        Some(SendLimit::Declared(KeyLimit { window, unit: LimitUnit::Requests }))
    }

    #[test]
    fn the_time_left_follows_from_the_rate_of_the_last_interval() {
        let mut rate = RecentRate::default();
        rate.add(s(1), 5);
        assert_eq!(rate.time_left(100, None, f64::INFINITY), None, "one sample has no rate");
        (2..=100).for_each(|at| rate.add(s(at), if at <= 50 { 100 * at } else { 5_000 + 20 * (at - 50) }));
        assert_eq!(rate.per_s(), Some(20.0));
        assert_eq!(rate.time_left(1_000, declared("20/1s"), 19.0), Some(s(50)));
        assert_eq!(rate.time_left(0, None, 19.0), None);
    }

    #[test]
    fn without_progress_or_in_a_pause_no_time_is_known() {
        let mut rate = RecentRate::default();
        (1..=30).for_each(|at| rate.add(s(at), 10 * at));
        for held in [SendLimit::Pause, SendLimit::HostDown, SendLimit::Keys, SendLimit::Retries] {
            assert_eq!(rate.time_left(100, Some(held), 5.0), None, "{held:?}");
        }
        (31..=60).for_each(|at| rate.add(s(at), 300));
        assert_eq!(rate.time_left(100, None, 5.0), None, "nothing ends");
    }

    #[test]
    fn in_a_long_window_the_rate_is_that_of_the_limit() {
        let mut rate = RecentRate::default();
        (1..=30).for_each(|at| rate.add(s(at), 500));
        assert_eq!(rate.time_left(600, declared("500/1m"), 8.0), Some(s(75)));
    }
}
