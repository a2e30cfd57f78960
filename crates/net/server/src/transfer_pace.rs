//! Pace of one direction of a transfer: whether a peer takes or sends bytes fast enough.
//!
//! A peer has the stall timeout as an allowance. Time that the server waits for it is used up; its bytes give time back,
//! each 1/N s at a minimum rate of N bytes per second, never more than the whole allowance. So a peer that stands still
//! ends after the stall timeout, and one that moves some bytes now and then ends too, if they are fewer than the minimum
//! rate for that long. Time in which the server does not wait for the peer (a service that works, an event stream
//! without events) is free.

use weir_base::Nanos;

/// Limits of a transfer's pace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PaceRule {
    /// Allowance of waiting time.
    pub stall: Nanos,
    /// Minimum rate, in bytes per second; with 0 any byte gives the whole allowance back.
    pub min_bytes_per_s: u64,
}

/// State of one direction of a transfer.
#[derive(Clone, Copy, Debug, Default)]
pub struct TransferPace {
    /// Allowance that is used up, without the present wait.
    used: Nanos,
    waiting_since: Option<Nanos>,
    /// Bytes that have not given time back yet.
    moved_bytes: u64,
}

impl TransferPace {
    /// Records that the server waits for the peer, from `now` unless it does already.
    pub fn wait(&mut self, now: Nanos) {
        self.waiting_since.get_or_insert(now);
    }

    /// Records bytes; a wait begins anew.
    pub fn record_moved(&mut self, now: Nanos, bytes: u64) {
        self.moved_bytes = self.moved_bytes.saturating_add(bytes);
        if let Some(since) = &mut self.waiting_since {
            self.used += now - std::mem::replace(since, now);
        }
    }

    /// Records that the server waits no longer; the time since the last bytes is used up.
    pub fn stop_waiting(&mut self, now: Nanos) {
        if let Some(since) = self.waiting_since.take() {
            self.used += now - since;
        }
    }

    /// Length of the present wait; zero without one.
    pub fn waited(&self, now: Nanos) -> Nanos {
        self.waiting_since.map_or(Nanos::ZERO, |since| now - since)
    }

    /// Whether the server waits for the peer.
    pub fn is_waiting(&self) -> bool {
        self.waiting_since.is_some()
    }

    /// Whether the allowance is used up. To be called regularly: it also gives time back for bytes.
    pub fn is_expired(&mut self, now: Nanos, rule: PaceRule) -> bool {
        let bytes = u128::from(std::mem::take(&mut self.moved_bytes));
        if bytes > 0 {
            let earned = (bytes * u128::from(Nanos::SECOND.0)).checked_div(u128::from(rule.min_bytes_per_s));
            self.used = earned.map_or(Nanos::ZERO, |earned| self.used - Nanos(earned.min(u128::from(u64::MAX)) as u64));
        }
        self.waiting_since.is_some_and(|since| self.used + (now - since) > rule.stall)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RULE: PaceRule = PaceRule { stall: Nanos::from_secs(60), min_bytes_per_s: 100 };

    /// Second in which a peer expires that moves `bytes` every `interval` seconds, by a rule.
    fn expiry(rule: PaceRule, bytes: u64, interval: u64) -> Option<u64> {
        let mut pace = TransferPace::default();
        pace.wait(Nanos::ZERO);
        (1..10_000_u64).find(|s| {
            let now = Nanos::from_secs(*s);
            if s.is_multiple_of(interval) && bytes > 0 {
                pace.record_moved(now, bytes);
            }
            pace.is_expired(now, rule)
        })
    }

    #[test]
    fn a_peer_that_stands_still_ends_after_the_stall_timeout() {
        assert_eq!(expiry(RULE, 0, 1), Some(61));
    }

    #[test]
    fn a_peer_below_the_minimum_rate_ends_and_one_above_does_not() {
        assert_eq!(expiry(RULE, 1, 1), Some(61), "one byte per second gives 0.6 s back in a minute");
        assert_eq!(expiry(RULE, 50, 1), Some(121), "half the rate lasts for twice the time");
        assert_eq!(expiry(RULE, 100, 1), None);
        assert_eq!(expiry(RULE, 4000, 40), None, "in bursts");
        assert_eq!(
            expiry(PaceRule { min_bytes_per_s: 0, ..RULE }, 1, 60),
            None,
            "without a minimum rate a byte is enough"
        );
    }

    #[test]
    fn bytes_cannot_be_saved_for_later() {
        let mut pace = TransferPace::default();
        pace.record_moved(Nanos::ZERO, 1 << 40);
        assert!(!pace.is_expired(Nanos::ZERO, RULE));
        pace.wait(Nanos::ZERO);
        assert!(!pace.is_expired(Nanos::from_secs(60), RULE));
        assert!(pace.is_expired(Nanos::from_secs(61), RULE));
    }

    #[test]
    fn time_in_which_the_server_does_not_wait_is_free() {
        let mut pace = TransferPace::default();
        for hour in 0..100 {
            let now = Nanos::from_secs(hour * 3600);
            pace.wait(now);
            pace.record_moved(now + Nanos::from_millis(10), 20);
            pace.stop_waiting(now + Nanos::from_millis(10));
            assert!(!pace.is_expired(now + Nanos::SECOND, RULE));
        }
    }

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Wait,
        Moved(u64),
        Stop,
    }

    proptest! {
        /// Against a naive model with fractions of seconds, checked after each step.
        #[test]
        fn the_allowance_is_that_of_a_token_bucket(
            stall in 1_u64..20,
            rate in 1_u64..500,
            steps in prop::collection::vec(
                (0_u64..4000, prop_oneof![Just(Step::Wait), (1_u64..3000).prop_map(Step::Moved), Just(Step::Stop)]),
                1..60,
            ),
        ) {
            let rule = PaceRule { stall: Nanos::from_secs(stall), min_bytes_per_s: rate };
            let mut pace = TransferPace::default();
            let (mut left_s, mut waits, mut now_ms) = (stall as f64, false, 0);
            for (pause_ms, step) in steps {
                now_ms += pause_ms;
                let now = Nanos::from_millis(now_ms);
                if waits {
                    left_s -= pause_ms as f64 / 1e3;
                }
                match step {
                    Step::Wait => {
                        pace.wait(now);
                        waits = true;
                    }
                    Step::Moved(bytes) => {
                        pace.record_moved(now, bytes);
                        left_s = (left_s + bytes as f64 / rate as f64).min(stall as f64);
                    }
                    Step::Stop => {
                        pace.stop_waiting(now);
                        waits = false;
                    }
                }
                let expired = pace.is_expired(now, rule);
                prop_assert_eq!(pace.is_waiting(), waits);
                // Not at the very limit, where rounding decides.
                if left_s.abs() > 1e-3 {
                    prop_assert_eq!(expired, waits && left_s < 0.0);
                }
            }
        }
    }
}
