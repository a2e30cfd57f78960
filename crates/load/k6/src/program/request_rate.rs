//! PURE. Maximum rate of requests: `rps` of the options, which all users share.

use std::sync::atomic::{AtomicU64, Ordering};

use weir_base::Nanos;
use weir_pace::shard::Shard;

/// Times at which requests may be sent: each at least an interval after the one before, without a burst after a rest.
#[derive(Debug)]
pub(crate) struct RequestRate {
    interval: Nanos,
    /// Earliest time of the next request, in nanoseconds.
    next: AtomicU64,
}

impl RequestRate {
    /// Share of a process in a rate: its requests are between those of the others.
    pub(crate) fn new(per_second: f64, shard: Shard) -> Self {
        let interval = |turns: u64| Nanos((turns as f64 * 1e9 / per_second) as u64);
        Self { interval: interval(shard.step()), next: AtomicU64::new(interval(shard.first()).0) }
    }

    /// Time at which a request that is ready `now` may be sent; no other request has it.
    pub(crate) fn take(&self, now: Nanos) -> Nanos {
        let time = |next: u64| Nanos(next).max(now);
        let after = |next: u64| Some((time(next) + self.interval).0);
        // It never fails: there is always a time after.
        Nanos(self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, after).unwrap_or(0)).max(now)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn requests_are_an_interval_apart_and_a_rest_leaves_no_burst() {
        let rate = RequestRate::new(10.0, Shard::WHOLE);
        let taken: Vec<u64> = [0, 0, 50, 900, 900].map(|ms| rate.take(Nanos::from_millis(ms)).0 / 1_000_000).to_vec();
        assert_eq!(taken, [0, 100, 200, 900, 1000]);
    }

    #[test]
    fn shares_of_processes_are_between_each_other() {
        let rates: Vec<_> = (0..3).map(|at| RequestRate::new(30.0, Shard::WHOLE.split(at, 3))).collect();
        let mut all: Vec<Nanos> =
            rates.iter().flat_map(|rate| (0..20).map(|_| rate.take(Nanos::ZERO)).collect::<Vec<_>>()).collect();
        all.sort_unstable();
        for (number, at) in all.iter().enumerate() {
            let expected = number as f64 / 30.0;
            assert!((at.as_secs_f64() - expected).abs() < 1e-6, "{number}: {at}");
        }
    }

    proptest! {
        #[test]
        fn a_request_is_sent_as_early_as_the_rate_permits(
            rate in 0.1..100_000.0_f64, waits in proptest::collection::vec(0..50_000_000_u64, 1..50),
        ) {
            let limit = RequestRate::new(rate, Shard::WHOLE);
            let interval = (1e9 / rate) as u64;
            let (mut now, mut earliest) = (0, 0_u64);
            for wait in waits {
                now += wait;
                let expected = earliest.max(now);
                prop_assert_eq!(limit.take(Nanos(now)), Nanos(expected));
                earliest = expected + interval;
            }
        }
    }
}
