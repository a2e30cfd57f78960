//! The history of a key's windows, for the next owner: after a restart, a crash, or in another process.

use super::count_snapshot::CountSnapshot;
use super::{KeyRules, KeyWindows, LimitUnit, Nanos, models};

/// A key's recent sends, as ages, so that they are valid by another clock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyHistory {
    /// State of each window; empty after a crash.
    pub windows: Vec<WindowHistory>,
    /// Ages and weights of requests with an unknown outcome. After a crash: all that was sent within the longest window
    /// (twice that for a counter).
    pub sent: Vec<(Nanos, u64)>,
    /// Time until the next send at the earliest.
    pub hold_for: Nanos,
}

/// State of one window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowHistory {
    /// The window.
    pub window: models::LimitWindow,
    /// Estimate of its limit.
    pub limit_estimate: u64,
    /// Ages of the latest possible arrivals, and their amounts; the oldest first.
    pub arrived: Vec<(Nanos, u64)>,
    /// Time until the bucket is full.
    pub full_in: Option<Nanos>,
}

impl KeyHistory {
    /// The maximum that may have been sent under these rules, all of it just now: for a key whose last owner crashed
    /// without a record.
    pub fn worst_case(rules: &KeyRules) -> Self {
        let max = |unit: LimitUnit| {
            let of_unit = rules.limits.iter().filter(|limit| limit.unit == unit);
            of_unit.map(|limit| limit.window.limit()).max().unwrap_or(0)
        };
        let requests = max(LimitUnit::Requests).clamp(1, MAX_REQUESTS);
        let weight = max(LimitUnit::Weight).div_ceil(requests).max(1);
        Self { sent: (0..requests).map(|_| (Nanos::ZERO, weight)).collect(), ..Self::default() }
    }
}

/// Maximum number of requests in a worst case; above it weights are added up.
const MAX_REQUESTS: u64 = 100_000;

impl KeyWindows {
    /// Windows of the key without a past, for a key that another process has used meanwhile. Earlier slots are
    /// void.
    pub fn without_history(&self, rules: &KeyRules) -> Self {
        Self { in_flight: self.in_flight.emptied(), delay_bound: self.delay_bound, ..Self::new(rules) }
    }

    /// The history at `now`.
    pub fn history(&mut self, now: Nanos) -> KeyHistory {
        let now = self.advance(now);
        KeyHistory {
            windows: self.counts.iter().map(|count| count.history(now)).collect(),
            sent: self.in_flight.unarrived().map(|(at, weight)| (now - at, weight)).collect(),
            hold_for: self.held_until - now,
        }
    }

    /// Continues from a history written `since` ago; an underestimate is safe. Called before anything else.
    ///
    /// Times before the start of the clock count as its start: a clock that starts early enough loses nothing. Missing
    /// information counts as the worst case: without windows, a bucket was empty when the last request arrived.
    pub fn resume(&mut self, now: Nanos, history: &KeyHistory, since: Nanos) {
        let now = self.advance(now);
        self.hold_until(now + (history.hold_for - since));
        let mut sent: Vec<(Nanos, u64)> =
            history.sent.iter().map(|(ago, weight)| (now - (*ago + since), *weight)).collect();
        sent.sort_unstable();
        let arrived = sent
            .into_iter()
            .map(|(at, weight)| (at, self.delay_bound.map_or(now, |delay_bound| at + delay_bound), weight));
        let arrived: Vec<_> = arrived.collect();
        for count in &mut self.counts {
            if let Some(past) = history.windows.iter().find(|past| past.window == count.limit.window) {
                count.resume(past, now, since);
                self.last_arrival = self.last_arrival.max(past.arrived.last().map(|(ago, _)| now - (*ago + since)));
            } else if let Some((_, by, _)) = arrived.last() {
                count.assume_empty(*by);
            }
        }
        for (at, by, weight) in arrived {
            self.arrive(by, weight);
            // The response is lost: the server may process the request for as long again.
            for count in &mut self.counts {
                let amount = count.limit.unit.amount(weight);
                count.send(amount);
                count.end(now + (now - at), amount, &CountSnapshot::default());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key_window::KeyLimit;
    use weir_limits::models::{LimitModel, LimitWindow};

    #[test]
    fn after_a_crash_a_key_waits_for_window_and_delay_and_no_longer() {
        let limit = KeyLimit::new(LimitWindow::read("20/1s", LimitModel::SlidingLog).unwrap());
        for unit in [LimitUnit::Requests, LimitUnit::Weight] {
            let delay_bound = Some(Nanos::from_millis(50));
            let rules = KeyRules {
                limits: vec![KeyLimit { unit, ..limit }],
                ordered: true,
                delay_bound,
                ..KeyRules::default()
            };
            let begin = Nanos::from_secs(100);
            for since in [Nanos::ZERO, Nanos::from_millis(400)] {
                let mut windows = KeyWindows::new(&rules);
                windows.resume(begin, &KeyHistory::worst_case(&rules), since);
                // The window, the delay bound, and a tick of the server's clock.
                assert_eq!(windows.earliest(1), begin - since + Nanos::from_millis(1051));
            }
        }
    }

    #[test]
    fn after_a_crash_a_bucket_was_empty_when_its_last_request_arrived() {
        let limit = KeyLimit::new(LimitWindow::read("bucket:1000/1s", LimitModel::SlidingLog).unwrap());
        let rules = KeyRules {
            limits: vec![limit],
            delay_bound: Some(Nanos::from_millis(50)),
            clock_tick: Nanos::MILLI,
            ..KeyRules::default()
        };
        let mut windows = KeyWindows::new(&rules);
        let begin = Nanos::from_secs(100);
        windows.resume(begin, &KeyHistory { sent: vec![(Nanos::ZERO, 1)], ..KeyHistory::default() }, Nanos::ZERO);
        // The delay bound, a tick of the server's clock, and the refill of a request; that of the last one at most.
        let least = begin + Nanos::from_millis(50 + 1 + 1);
        assert!((least..=least + Nanos::MILLI).contains(&windows.earliest(1)), "{}", windows.earliest(1));
    }

    #[test]
    fn an_earlier_slot_is_void_in_new_windows() {
        let limit = KeyLimit::new(LimitWindow::read("1/1s", LimitModel::SlidingLog).unwrap());
        let rules = KeyRules { limits: vec![limit], ..KeyRules::default() };
        let mut old = KeyWindows::new(&rules);
        let slot = old.sent(Nanos(5), 1);
        let mut new = old.without_history(&rules);
        new.sent(Nanos(6), 1);
        assert_eq!(new.responded(slot, Nanos(7), Nanos::NEVER), None);
        assert_eq!(new.earliest(1), Nanos::NEVER, "the request in flight has no response");
    }
}
