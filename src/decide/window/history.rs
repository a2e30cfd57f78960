//! What a key leaves to whoever goes on with it: after a restart, a crash, or in another process.

use super::window_count::CountSnapshot;
use super::{KeyRules, KeyWindows, LimitUnit, Nanos, limit};

/// All that counts of a key's past, as ages, so that it means the same by another clock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyHistory {
    /// What each window remembers; empty after a crash.
    pub windows: Vec<WindowHistory>,
    /// What was sent and nothing more is known of: how long ago, and its weight. After a crash: all that was sent since
    /// the longest of the windows (twice as long for a counter).
    pub sent: Vec<(Nanos, u64)>,
    /// Nothing is to be sent for so long.
    pub hold_for: Nanos,
}

/// What one window remembers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowHistory {
    /// Which one.
    pub window: limit::LimitWindow,
    /// How much of its limit is believed.
    pub limit_estimate: u64,
    /// How long ago something had surely arrived, and how much it counted; the oldest first.
    pub arrived: Vec<(Nanos, u64)>,
    /// In how long a bucket is full.
    pub full_in: Option<Nanos>,
}

impl KeyHistory {
    /// The most that can have been sent under these rules, all of it just now: of a key whose last owner is gone without a
    /// word.
    pub fn worst_case(rules: &KeyRules) -> Self {
        let most = |unit: LimitUnit| {
            let of_unit = rules.limits.iter().filter(|limit| limit.unit == unit);
            of_unit.map(|limit| limit.window.limit()).max().unwrap_or(0)
        };
        let requests = most(LimitUnit::Requests).clamp(1, MAX_REQUESTS);
        let weight = most(LimitUnit::Weight).div_ceil(requests).max(1);
        Self { sent: (0..requests).map(|_| (Nanos::ZERO, weight)).collect(), ..Self::default() }
    }
}

/// Of windows that hold more requests than that, fewer are taken for all.
const MAX_REQUESTS: u64 = 100_000;

impl KeyWindows {
    /// Windows of the same key, of whose past nothing is known; for one that somebody else has used meanwhile. Slots of
    /// before mean nothing any more.
    pub fn without_history(&self, rules: &KeyRules) -> Self {
        Self { in_flight: self.in_flight.emptied(), delay_bound: self.delay_bound, ..Self::new(rules) }
    }

    /// What counts of the past at `now`.
    pub fn history(&mut self, now: Nanos) -> KeyHistory {
        let now = self.advance(now);
        KeyHistory {
            windows: self.counts.iter().map(|meter| meter.history(now)).collect(),
            sent: self.in_flight.unarrived().map(|(at, weight)| (now - at, weight)).collect(),
            hold_for: self.held_until - now,
        }
    }

    /// Goes on, `since` after the history was written; if in doubt, too short is safe. To be called first of all.
    ///
    /// What lies before the start of the clock counts as at its start: one that begins early enough loses nothing. Of
    /// what a history does not say the worst is taken: without windows, a bucket was empty when the last request
    /// arrived.
    pub fn resume(&mut self, now: Nanos, history: &KeyHistory, since: Nanos) {
        let now = self.advance(now);
        self.hold_until(now + (history.hold_for - since));
        let mut sent: Vec<(Nanos, u64)> =
            history.sent.iter().map(|(ago, weight)| (now - (*ago + since), *weight)).collect();
        sent.sort_unstable();
        let arrived =
            sent.into_iter().map(|(at, weight)| (at, self.delay_bound.map_or(now, |way_in| at + way_in), weight));
        let arrived: Vec<_> = arrived.collect();
        for meter in &mut self.counts {
            if let Some(past) = history.windows.iter().find(|past| past.window == meter.limit.window) {
                meter.resume(past, now, since);
                self.last_arrival = self.last_arrival.max(past.arrived.last().map(|(ago, _)| now - (*ago + since)));
            } else if let Some((_, by, _)) = arrived.last() {
                meter.assume_empty(*by);
            }
        }
        for (at, by, weight) in arrived {
            self.arrive(by, weight);
            // Nobody will hear its answer: the server may be at it for as long again.
            for meter in &mut self.counts {
                let amount = meter.limit.unit.amount(weight);
                meter.send(amount);
                meter.end(now + (now - at), amount, &CountSnapshot::default());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::limit::{LimitModel, LimitWindow};
    use crate::decide::window::KeyLimit;

    #[test]
    fn after_an_owner_that_is_gone_a_key_waits_for_window_and_way_and_no_longer() {
        let limit = KeyLimit::new(LimitWindow::read("20/1s", LimitModel::SlidingLog).unwrap());
        for unit in [LimitUnit::Requests, LimitUnit::Weight] {
            let way_in = Some(Nanos::from_millis(50));
            let rules = KeyRules {
                limits: vec![KeyLimit { unit, ..limit }],
                ordered: true,
                delay_bound: way_in,
                ..KeyRules::default()
            };
            let begin = Nanos::from_secs(100);
            for since in [Nanos::ZERO, Nanos::from_millis(400)] {
                let mut windows = KeyWindows::new(&rules);
                windows.resume(begin, &KeyHistory::worst_case(&rules), since);
                // The window, the way in, and a tick of the server's clock.
                assert_eq!(windows.earliest(1), begin - since + Nanos::from_millis(1051));
            }
        }
    }

    #[test]
    fn a_slot_of_before_is_none_of_the_windows_that_are_new() {
        let limit = KeyLimit::new(LimitWindow::read("1/1s", LimitModel::SlidingLog).unwrap());
        let rules = KeyRules { limits: vec![limit], ..KeyRules::default() };
        let mut old = KeyWindows::new(&rules);
        let slot = old.sent(Nanos(5), 1);
        let mut new = old.without_history(&rules);
        new.sent(Nanos(6), 1);
        assert_eq!(new.responded(slot, Nanos(7), Nanos::NEVER), None);
        assert_eq!(new.earliest(1), Nanos::NEVER, "the one that is out has not been heard of");
    }
}
